//! Writes reductions over lists: each row of the kernel folds any number of rows of a space.
//!
//! Lanes run along the last dim of a row, and the list is walked once for each few vectors of it,
//! which stay in registers meanwhile. Every element is combined in the order of the list, from the
//! start on, so an empty list gives the start.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, arguments_of, name_of, operands_of, operations_of, result_of};
use melior::ir::{BlockRef, OperationRef, ValueLike, operation::OperationLike};

use super::body::{Body, block_of, yields};
use super::compute::{Computer, DIVISIONS, Known, Lanes, element_address};
use super::frame::{Block, Frame, Row};
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::loop_level::address_of;
use crate::kernel::rows::body::{Store, ValueId};
use crate::kernel::rows::graph::Linear;
use crate::kernel::rows::layout::{LANES, Place, elem_bytes};
use crate::kernel::rows::read::elem_of;
use crate::pass::{Outcome, error};
use crate::support::ir::{integer_attribute, integers, key};

pub fn fold_list<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let operands = operands_of(stage);
    let over = integers(stage, "over");
    let start = block_of(stage, 0)?;
    let init = Body::read(frame.kernel, start, over, None)?;
    let init_value = init.id(yields(start)[0]);
    let Place::Operand(list) = frame.kernel.place(operands[0]) else {
        return Err(error(stage, "expected a list"));
    };
    let reducer = Reducer {
        frame,
        list,
        step: block_of(stage, 1)?,
        vectors: integer_attribute(stage, "vectors").unwrap_or(1),
        elem: init.values[init_value].1,
        init,
        init_value,
        store: Store {
            place: frame.kernel.place(operands[1]),
            address: address_of(stage).ok_or_else(|| error(stage, "expected a linear map"))?,
            value: init_value,
        },
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
    /// The list's position among the kernel's operands.
    list: usize,
    step: BlockRef<'c, 'c>,
    /// Vectors of a row that are folded at once.
    vectors: i64,
    elem: Elem,
    /// Computes the start of each element of the result.
    init: Body<'c>,
    init_value: ValueId,
    store: Store,
}

/// The entries of a row's list in the operand's index.
#[derive(Clone, Copy)]
struct List<'c> {
    first: Val<'c>,
    end: Val<'c>,
}

impl<'a, 'c> Reducer<'_, 'a, 'c> {
    fn row(&self, e: &Emitter<'c>, row: Row<'c>) {
        let shape = &self.init.domain;
        let mut computer = Computer::new(e, self.frame, &self.init, Some(row));
        computer.touch(e, self.store.place);
        let offsets = self.frame.operands[self.list].offsets;
        let entry = e.offset(offsets, e.times(row.in_bucket, 4));
        let list = List {
            first: e.load_u32(entry),
            end: e.load_u32(e.offset_by(entry, 4)),
        };
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
                self.fold(e, &computer, list, &at(Index::constant(0), &[0]), lanes);
                return vec![];
            }
            // Several vectors at once, then what is left of them; the last may overlap.
            let lanes = Lanes {
                width: Width::Vector,
                dim: Some(dim),
                mask: None,
            };
            let wide = self.vectors * LANES;
            let whole = size / wide * wide;
            let together: Vec<i64> = (0..self.vectors).map(|vector| vector * LANES).collect();
            e.for_static(whole, wide, &[], |e, start, _| {
                self.fold(e, &computer, list, &at(start, &together), lanes);
                vec![]
            });
            if whole < size {
                let rest = (whole..size).step_by(LANES as usize);
                let rest: Vec<i64> = rest.map(|start| start.min(size - LANES)).collect();
                self.fold(e, &computer, list, &at(Index::constant(0), &rest), lanes);
            }
            vec![]
        });
    }

    /// Folds the list at some indices of the row at once.
    fn fold(
        &self,
        e: &Emitter<'c>,
        computer: &Computer<'_, 'a, 'c>,
        list: List<'c>,
        indices: &[Vec<Index<'c>>],
        lanes: Lanes<'c>,
    ) {
        let mut known = Known::new();
        let starts: Vec<_> = indices
            .iter()
            .map(|index| computer.value(e, self.init_value, index, lanes, &mut known))
            .collect();
        let operand = self.list;
        let entries = self.frame.operands[operand].index;
        let dense = Linear {
            constant: 0,
            coefficients: crate::kernel::rows::graph::dense_strides(&self.init.domain),
        };
        let ends = e.for_loop(list.first, list.end, 1, &starts, |e, entry, carried| {
            let entry = e.offset(entries, e.times(entry, 4));
            let base = self.frame.operand_row(e, operand, entry);
            indices
                .iter()
                .zip(carried)
                .map(|(index, carried)| {
                    let bytes = elem_bytes(self.elem);
                    let at = element_address(e, base, &dense, bytes, index);
                    let element = e.load_elem(at, self.elem, lanes.width, lanes.mask);
                    combine(e, self.step, self.elem, [*carried, element], lanes.width)
                })
                .collect()
        });
        for (index, end) in indices.iter().zip(ends) {
            computer.store(e, &self.store, end, self.elem, index, lanes);
        }
    }
}

/// A body of scalars on vectors, or on single elements: what is carried, and the list's element.
pub fn combine<'c>(
    e: &Emitter<'c>,
    body: BlockRef<'c, 'c>,
    elem: Elem,
    [carried, element]: [Val<'c>; 2],
    width: Width,
) -> Val<'c> {
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (argument, value) in arguments_of(body).into_iter().zip([carried, element]) {
        values.insert(key(argument), value);
    }
    for op in operations_of(body) {
        let mut operands: Vec<_> = operands_of(op)
            .into_iter()
            .filter_map(|operand| values.get(&key(operand)).copied())
            .collect();
        if op.result_count() == 0 {
            return operands.first().copied().unwrap_or(carried);
        }
        let name = name_of(op);
        let result = result_of(op, 0);
        let elem = elem_of(result.r#type()).unwrap_or(elem);
        let value = if name == "arith.constant" {
            let scalar = e.copy(op, &[], result.r#type());
            e.splat(scalar, elem, width)
        } else {
            if DIVISIONS.contains(&name.as_str()) {
                operands[1] = e.safe_divisor(operands[0], operands[1], width);
            }
            e.copy(op, &operands, e.elem_type(elem, width))
        };
        values.insert(key(result), value);
    }
    carried
}
