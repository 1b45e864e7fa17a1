//! The addresses that a kernel's function works with, and loops over its rows.

use std::collections::HashMap;

use cohort_dialects::builder::Val;

use super::scratch::ScratchMap;
use crate::codegen::emit::Emitter;
use crate::kernel::rows::graph::{Graph, NodeId};
use crate::kernel::rows::layout::{Layouts, Place, elem_bytes};

/// What stays the same for a whole call.
pub struct Frame<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub layouts: &'a Layouts,
    pub map: &'a ScratchMap,
    pub scratch: Val<'c>,
    pub operands: Vec<Operand<'c>>,
    pub results: Vec<Val<'c>>,
    pub constants: HashMap<NodeId, Val<'c>>,
    /// Packed panels of a parameter.
    pub panels: HashMap<NodeId, Val<'c>>,
}

/// The fields of an operand's [`OperandRef`](cohort_abi::OperandRef).
#[derive(Clone, Copy)]
pub struct Operand<'c> {
    pub base: Val<'c>,
    pub index: Val<'c>,
    pub offsets: Val<'c>,
}

/// A row of the block, or none in the part that runs once a call.
#[derive(Clone, Copy)]
pub struct Row<'c> {
    /// Counted from the block's first row.
    pub in_block: Val<'c>,
    /// Counted from the bucket's first row.
    pub in_bucket: Val<'c>,
}

/// The rows that a stage runs over.
#[derive(Clone, Copy)]
pub struct Block<'c> {
    pub first: Val<'c>,
    pub count: Val<'c>,
}

impl<'c> Frame<'_, 'c> {
    /// The address of a row of a place; of a place that all rows share, its start.
    pub fn address(&self, e: &Emitter<'c>, place: Place, row: Option<Row<'c>>) -> Val<'c> {
        match (place, row) {
            (Place::Constant(node), _) => self.constants[&node],
            (Place::Slot(slot), row) => {
                let base = e.offset_by(self.scratch, self.map.offsets[slot]);
                let slot = &self.layouts.slots[slot];
                match row.filter(|_| slot.rows) {
                    None => base,
                    Some(row) => e.offset(base, e.times(row.in_block, slot.bytes)),
                }
            }
            (Place::Operand(operand), Some(row)) => {
                let entry = e.offset(self.operands[operand].index, e.times(row.in_bucket, 4));
                self.operand_row(e, operand, entry)
            }
            (Place::Result(result), Some(row)) => {
                let node = &self.graph.nodes[self.graph.results[result]];
                let bytes = node.elements() * elem_bytes(node.elem);
                e.offset(self.results[result], e.times(row.in_bucket, bytes))
            }
            (Place::Operand(_) | Place::Result(_), None) => {
                unreachable!("only rows have operands and results")
            }
        }
    }

    /// The address of the row of an operand that an entry of its index names.
    pub fn operand_row(&self, e: &Emitter<'c>, operand: usize, entry: Val<'c>) -> Val<'c> {
        let bytes = self.operand_bytes(operand);
        e.offset(
            self.operands[operand].base,
            e.times(e.load_u32(entry), bytes),
        )
    }

    fn operand_bytes(&self, operand: usize) -> i64 {
        let node = &self.graph.nodes[self.graph.operands[operand]];
        node.elements() * elem_bytes(node.elem)
    }

    /// Runs a body for every row of the block, or once without a block.
    pub fn for_rows(
        &self,
        e: &Emitter<'c>,
        block: Option<Block<'c>>,
        body: impl FnOnce(&Emitter<'c>, Option<Row<'c>>),
    ) {
        let Some(block) = block else {
            return body(e, None);
        };
        e.for_loop(e.int(0), block.count, 1, &[], |e, in_block, _| {
            let in_bucket = e.add(block.first, in_block);
            body(
                e,
                Some(Row {
                    in_block,
                    in_bucket,
                }),
            );
            vec![]
        });
    }
}
