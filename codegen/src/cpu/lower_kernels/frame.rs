//! The addresses that a kernel's function works with, and loops over its rows.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::Place;

use super::scratch::ScratchMap;
use crate::emit::{Emitter, Width};
use crate::read_rows::kernel::Kernel;

/// What stays the same for a whole call.
pub struct Frame<'a, 'c> {
    pub kernel: &'a Kernel<'c>,
    pub map: &'a ScratchMap,
    pub scratch: Val<'c>,
    pub operands: Vec<OperandFields<'c>>,
    pub results: Vec<Val<'c>>,
    pub constants: Vec<Val<'c>>,
}

/// The fields of an operand's [`OperandRef`](cohort_abi::OperandRef).
#[derive(Clone, Copy)]
pub struct OperandFields<'c> {
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
            (Place::Constant(constant), _) => self.constants[constant],
            (Place::Slot(slot), row) => {
                let base = e.offset_by(self.scratch, self.map.offsets[slot]);
                let slot = &self.kernel.slots[slot];
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
                let bytes = self.kernel.results[result].row_bytes();
                e.offset(self.results[result], e.times(row.in_bucket, bytes))
            }
            (Place::Sum(_), _) => unreachable!("a processor keeps no sums"),
            (Place::Operand(_) | Place::Result(_), None) => {
                unreachable!("only rows have operands and results")
            }
        }
    }

    /// The address of the row of an operand that an entry of its index names.
    pub fn operand_row(&self, e: &Emitter<'c>, operand: usize, entry: Val<'c>) -> Val<'c> {
        let bytes = self.kernel.operands[operand].memory.row_bytes();
        e.offset(
            self.operands[operand].base,
            e.times(e.load_u32(entry), bytes),
        )
    }

    /// The scalar that a row's record gives an operand.
    pub fn host_scalar(
        &self,
        e: &Emitter<'c>,
        operand: usize,
        elem: Elem,
        row: Option<Row<'c>>,
    ) -> Val<'c> {
        let Some(row) = row else {
            return e.bits(0, elem, Width::Scalar);
        };
        let index = self.operands[operand].index;
        // Of a truth value, the low byte holds 0 or 1.
        let address = e.offset(index, e.times(row.in_bucket, 4));
        e.load_elem(address, elem, Width::Scalar, None)
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
