//! Writes reductions over lists: each row of the kernel folds any number of rows of a row pool.
//!
//! Lanes run along the last dim of a row, and the list is walked once for each few vectors of it,
//! which stay in registers meanwhile. Every element is combined in the order of the list, from the
//! start on, so an empty list gives the start.

use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::graph::dense_strides;
use cohort_passes::kernel::rows::layout::{LANES, elem_bytes};
use cohort_passes::pass::Outcome;
use melior::ir::OperationRef;

use super::compute::{Computer, Known, Lanes};
use super::frame::{Block, Frame, Rows};
use crate::emit::{Emitter, Index, Width, element_address};
use crate::read_rows::folds::{List, combine};
use crate::read_rows::memory::{Entries, Row};

pub fn fold_list<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let reducer = Reducer {
        frame,
        list: List::read(frame.arguments.kernel, stage)?,
    };
    frame.for_rows(e, block, |e, row| {
        if let Some(row) = row {
            reducer.row(e, row);
        }
    });
    Ok(())
}

struct Reducer<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    list: List<'c>,
}

impl<'a, 'c> Reducer<'_, 'a, 'c> {
    fn row(&self, e: &Emitter<'c>, row: Row<'c>) {
        let shape = &self.list.init.domain;
        let mut computer = Computer::new(e, self.frame, &self.list.init, Rows::One(Some(row)));
        computer.touch(e, self.list.store.place, self.list.elem);
        let entries = self.frame.arguments.list(e, self.list.list, row);
        let (outer, size) = match shape.split_last() {
            Some((size, outer)) => (outer, *size),
            None => (&shape[..], 1),
        };
        e.for_nest(outer, &[], &mut |e, index, _| {
            let dim = index.len();
            let at = |start: Index<'c>, vectors: &[i64]| -> Vec<Vec<Index<'c>>> {
                vectors
                    .iter()
                    .map(|vector| {
                        let mut index = index.to_vec();
                        if dim < shape.len() {
                            index.push(start.plus(*vector));
                        }
                        index
                    })
                    .collect()
            };
            if size < LANES {
                let lanes = match size {
                    1 => Lanes {
                        width: Width::Scalar,
                        dim: None,
                        mask: None,
                    },
                    _ => Lanes {
                        width: Width::Vector,
                        dim: Some(dim),
                        mask: Some(e.mask(size)),
                    },
                };
                self.fold(e, &computer, entries, &at(Index::constant(0), &[0]), lanes);
                return vec![];
            }
            // Several vectors at once, then what is left of them; the last may overlap.
            let lanes = Lanes {
                width: Width::Vector,
                dim: Some(dim),
                mask: None,
            };
            let wide = self.list.vectors * LANES;
            let whole = size / wide * wide;
            let together: Vec<i64> = (0..self.list.vectors)
                .map(|vector| vector * LANES)
                .collect();
            e.for_static(whole, wide, &[], |e, start, _| {
                self.fold(e, &computer, entries, &at(start, &together), lanes);
                vec![]
            });
            if whole < size {
                let rest = (whole..size).step_by(LANES as usize);
                let rest: Vec<i64> = rest.map(|start| start.min(size - LANES)).collect();
                self.fold(e, &computer, entries, &at(Index::constant(0), &rest), lanes);
            }
            vec![]
        });
    }

    /// Folds the list at some indices of the row at once.
    fn fold(
        &self,
        e: &Emitter<'c>,
        computer: &Computer<'_, 'a, 'c>,
        list: Entries<'c>,
        indices: &[Vec<Index<'c>>],
        lanes: Lanes<'c>,
    ) {
        let mut known = Known::new();
        let starts: Vec<_> = indices
            .iter()
            .map(|index| computer.value(e, self.list.store.value, index, lanes, &mut known))
            .collect();
        let operand = self.list.list;
        let dense = Affine::strided(0, &dense_strides(&self.list.init.domain));
        let ends = e.for_loop(list.first, list.end, 1, &starts, |e, entry, carried| {
            let base = self.frame.arguments.listed(e, operand, entry);
            indices
                .iter()
                .zip(carried)
                .map(|(index, carried)| {
                    let bytes = elem_bytes(self.list.elem);
                    let at = element_address(e, base, &dense, bytes, index);
                    let element = e.load_elem(at, self.list.elem, lanes.width, lanes.mask);
                    combine(
                        e,
                        self.list.step,
                        self.list.elem,
                        [*carried, element],
                        lanes.width,
                    )
                })
                .collect()
        });
        for (index, end) in indices.iter().zip(ends) {
            computer.store(e, &self.list.store, end, self.list.elem, index, lanes);
        }
    }
}
