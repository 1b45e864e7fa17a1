//! Writes reductions over lists: each row of the kernel folds any number of rows of a space.
//!
//! Lanes run along the last dim of a row, and the list is walked once for each few vectors of it,
//! which stay in registers meanwhile. Every element is combined in the order of the list, from the
//! start on, so an empty list gives the start.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, arguments_of, name_of, operands_of, operations_of, result_of};
use melior::ir::{OperationRef, ValueLike};

use super::compute::{Computer, DIVISIONS, Known, Lanes, element_address};
use super::frame::{Block, Frame, Row};
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::rows::body::Store;
use crate::kernel::rows::graph::Linear;
use crate::kernel::rows::layout::{LANES, elem_bytes};
use crate::kernel::rows::read::elem_of;
use crate::kernel::rows::stage::ReduceRows;
use crate::support::ir::{blocks_of, key};

/// Vectors of a row that are folded at once.
const MAX_VECTORS: i64 = 4;

pub fn reduce<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: &ReduceRows<'c>,
    block: Option<Block<'c>>,
) {
    let node = &frame.graph.nodes[stage.node];
    let Some(layout) = &frame.layouts.of_node[stage.node] else {
        return;
    };
    let strides = layout.strides.clone();
    let reducer = Reducer {
        frame,
        stage,
        elem: node.elem,
        store: Store {
            place: layout.place,
            address: Linear {
                constant: 0,
                coefficients: strides,
            },
            value: stage.init_value,
        },
    };
    frame.for_rows(e, block, |e, row| {
        if let Some(row) = row {
            reducer.row(e, row, &node.shape);
        }
    });
}

struct Reducer<'a, 'f, 'c> {
    frame: &'a Frame<'f, 'c>,
    stage: &'a ReduceRows<'c>,
    elem: Elem,
    store: Store,
}

/// The entries of a row's list in the operand's index.
#[derive(Clone, Copy)]
struct List<'c> {
    first: Val<'c>,
    end: Val<'c>,
}

impl<'f, 'c> Reducer<'_, 'f, 'c> {
    fn row(&self, e: &Emitter<'c>, row: Row<'c>, shape: &[i64]) {
        let mut computer = Computer::new(e, self.frame, &self.stage.init, Some(row));
        computer.touch(e, self.store.place);
        let offsets = self.frame.operands[self.stage.list].offsets;
        let entry = e.offset(offsets, e.times(row.in_bucket, 4));
        let list = List {
            first: e.load_u32(entry),
            end: e.load_u32(e.offset_by(entry, 4)),
        };
        let (outer, size) = match shape.split_last() {
            Some((size, outer)) => (outer, *size),
            None => (shape, 1),
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
            let wide = MAX_VECTORS * LANES;
            let whole = size / wide * wide;
            let together: Vec<i64> = (0..MAX_VECTORS).map(|vector| vector * LANES).collect();
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
        computer: &Computer<'_, 'f, 'c>,
        list: List<'c>,
        indices: &[Vec<Index<'c>>],
        lanes: Lanes<'c>,
    ) {
        let mut known = Known::new();
        let starts: Vec<_> = indices
            .iter()
            .map(|index| computer.value(e, self.stage.init_value, index, lanes, &mut known))
            .collect();
        let operand = self.stage.list;
        let entries = self.frame.operands[operand].index;
        let dense = Linear {
            constant: 0,
            coefficients: crate::kernel::rows::graph::dense_strides(&self.stage.init.domain),
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
                    combine(
                        e,
                        self.stage.op,
                        self.elem,
                        [*carried, element],
                        lanes.width,
                    )
                })
                .collect()
        });
        for (index, end) in indices.iter().zip(ends) {
            computer.store(e, &self.store, end, self.elem, index, lanes);
        }
    }
}

/// The operation's body on vectors, or on single elements: what is carried, and the list's element.
pub fn combine<'c>(
    e: &Emitter<'c>,
    op: OperationRef<'c, 'c>,
    elem: Elem,
    [carried, element]: [Val<'c>; 2],
    width: Width,
) -> Val<'c> {
    let Some(body) = blocks_of(op).first().copied() else {
        return carried;
    };
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (argument, value) in arguments_of(body).into_iter().zip([carried, element]) {
        values.insert(key(argument), value);
    }
    for op in operations_of(body) {
        let mut operands: Vec<_> = operands_of(op)
            .into_iter()
            .filter_map(|operand| values.get(&key(operand)).copied())
            .collect();
        let name = name_of(op);
        if name == "cfb.yield" {
            return operands.first().copied().unwrap_or(carried);
        }
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
