//! The addresses that a kernel's function works with, and loops over its rows.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::{LANES, Place, elem_bytes};

use super::scratch::ScratchMap;
use crate::emit::{Emitter, Width};
use crate::read_rows::memory::{Arguments, OperandFields, Row};

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

/// What computes a stage's values at a time.
#[derive(Clone, Copy)]
pub enum Rows<'c> {
    /// A row, whose elements are the lanes; none in the part that runs once a call.
    One(Option<Row<'c>>),
    /// Sixteen rows from one on, each in its lane; those that the mask says.
    Across { first: Row<'c>, mask: Val<'c> },
}

/// Where the rows of a place lie.
#[derive(Clone, Copy)]
pub struct Address<'c> {
    /// Of the row, or of the one that the lanes count from.
    pub base: Val<'c>,
    pub lanes: LaneRows<'c>,
}

/// The rows of the lanes.
#[derive(Clone, Copy)]
pub enum LaneRows<'c> {
    /// All lanes read the same place.
    Same,
    /// At a stride in bytes.
    Strided(i64),
    /// Each at its offset in bytes; and, where it may be, whether they are neighbours that are one element long, as a
    /// flag of one bit and the first one's offset.
    Listed {
        offsets: Val<'c>,
        neighbours: Option<(Val<'c>, Val<'c>)>,
    },
}

impl<'c> Frame<'_, 'c> {
    /// Where a row or the rows of a place lie; of a place that all rows share, its start.
    pub fn rows_of(
        &self,
        e: &Emitter<'c>,
        place: Place,
        rows: Rows<'c>,
        elem: Elem,
    ) -> Address<'c> {
        let (first, mask) = match rows {
            Rows::One(row) => {
                return Address {
                    base: self.address(e, place, row),
                    lanes: LaneRows::Same,
                };
            }
            Rows::Across { first, mask } => (first, mask),
        };
        let kernel = self.arguments.kernel;
        let lanes = match place {
            Place::Operand(operand) => return self.listed_rows(e, operand, (first, mask), elem),
            Place::Result(result) => LaneRows::Strided(kernel.results[result].row_bytes()),
            Place::Slot(slot) if kernel.slots[slot].rows => {
                LaneRows::Strided(kernel.slots[slot].bytes)
            }
            Place::Slot(_) | Place::Constant(_) | Place::Sum(_) => LaneRows::Same,
        };
        Address {
            base: self.address(e, place, Some(first)),
            lanes,
        }
    }

    /// The rows that an operand's index names for sixteen rows.
    fn listed_rows(
        &self,
        e: &Emitter<'c>,
        operand: usize,
        (first, mask): (Row<'c>, Val<'c>),
        elem: Elem,
    ) -> Address<'c> {
        let OperandFields { base, index, .. } = self.arguments.operands[operand];
        let bytes = self.arguments.kernel.operands[operand].memory.row_bytes();
        let list = e.offset(index, e.times(first.in_bucket, 4));
        let entries = e.load_elem(list, Elem::I32, Width::Vector, Some(mask));
        let offsets = e.scaled_lanes(entries, bytes);
        // Values of one call mostly lie one behind another.
        let neighbours = (bytes == elem_bytes(elem)).then(|| {
            let first = e.times(e.load_u32(list), bytes);
            (e.are_neighbours(entries), first)
        });
        Address {
            base,
            lanes: LaneRows::Listed {
                offsets,
                neighbours,
            },
        }
    }

    /// Runs a body for every row of the block, or for sixteen rows after another.
    pub fn for_rows_or_lanes(
        &self,
        e: &Emitter<'c>,
        block: Option<Block<'c>>,
        across_rows: bool,
        body: impl FnOnce(&Emitter<'c>, Rows<'c>),
    ) {
        let Some(block) = block.filter(|_| across_rows) else {
            return self.for_rows(e, block, |e, row| body(e, Rows::One(row)));
        };
        e.for_loop(e.int(0), block.count, LANES, &[], |e, in_block, _| {
            let in_bucket = e.add(block.first, in_block);
            let first = Row {
                in_block,
                in_bucket,
            };
            let mask = e.first_lanes(e.sub(block.count, in_block));
            body(e, Rows::Across { first, mask });
            vec![]
        });
    }

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
