//! The addresses that a kernel's function works with, and loops over its rows.

use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::Place;

use super::scratch::ScratchMap;
use crate::emit::Emitter;
use crate::read_rows::memory::{Arguments, Row};

/// What stays the same for a whole call.
pub struct Frame<'a, 'c> {
    pub arguments: Arguments<'a, 'c>,
    pub map: &'a ScratchMap,
    pub scratch: Val<'c>,
    pub constants: Vec<Val<'c>>,
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
                let slot = &self.arguments.kernel.slots[slot];
                match row.filter(|_| slot.rows) {
                    None => base,
                    Some(row) => e.offset(base, e.times(row.in_block, slot.bytes)),
                }
            }
            (Place::Sum(_), _) => unreachable!("a processor keeps no sums"),
            (Place::Operand(_) | Place::Result(_), row) => self.arguments.address(e, place, row),
        }
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
