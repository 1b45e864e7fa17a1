//! Lays the scratch of a kernel out.
//!
//! Slots of rows that no stage needs at the same time share memory, so that a block of rows stays
//! in the second-level cache while the stages go over it.

use cohort_passes::kernel::rows::layout::{Place, Slot, round_up};
use cohort_passes::kernel::rows::stage::TILE_ROWS;
use cohort_passes::pass::Failed;
use melior::ir::OperationRef;

use crate::read_rows::kernel::Kernel;

/// Reading a whole vector from the last element of a slot must stay inside the scratch.
const SLACK_BYTES: i64 = 128;

/// A vector of zeros, which products start from.
const ZERO_BYTES: i64 = 64;

pub struct ScratchMap {
    /// Of each slot.
    pub offsets: Vec<i64>,
    pub zeros: i64,
    /// Pointers to rows of a product's left side.
    pub table: i64,
    pub bytes: i64,
}

/// The first and last stage that touches a slot.
type Life = (usize, usize);

/// The bytes of scratch that a row of a kernel at the loop level takes.
pub fn bytes_of_row(kernel: OperationRef<'_, '_>) -> Result<i64, Failed> {
    let kernel = Kernel::read(cohort_dialects::builder::extend_op(kernel))?;
    let row_bytes: Vec<i64> = kernel.slots.iter().map(|slot| slot.bytes).collect();
    Ok(place(&kernel.slots, &lives(&kernel), &row_bytes).1)
}

impl ScratchMap {
    pub fn new(kernel: &Kernel<'_>) -> ScratchMap {
        let slots = &kernel.slots;
        let block_rows = kernel.block_rows;
        let product_rows = slots
            .iter()
            .map(|slot| slot.product_rows)
            .max()
            .unwrap_or(0);
        let table = ZERO_BYTES;
        let start = table + round_up((block_rows * product_rows + TILE_ROWS) * 8, 64);
        let block_bytes: Vec<i64> = slots
            .iter()
            .map(|slot| match slot.product_rows {
                0 => slot.bytes * block_rows,
                rows => round_up(block_rows * rows, TILE_ROWS) * (slot.bytes / rows),
            })
            .map(|bytes| round_up(bytes + SLACK_BYTES, 64))
            .collect();
        let (mut offsets, peak) = place(slots, &lives(kernel), &block_bytes);
        let mut bytes = start + peak;
        for (offset, slot) in offsets.iter_mut().zip(slots) {
            if slot.rows {
                *offset += start;
            } else {
                *offset = bytes;
                bytes += round_up(slot.bytes + SLACK_BYTES, 64);
            }
        }
        ScratchMap {
            offsets,
            zeros: 0,
            table,
            bytes,
        }
    }
}

fn lives(kernel: &Kernel<'_>) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; kernel.slots.len()];
    for (at, stage) in kernel.rows.iter().enumerate() {
        for place in kernel.places_of(*stage) {
            if let Place::Slot(slot) = place {
                let first = lives[slot].map_or(at, |(first, _)| first);
                lives[slot] = Some((first, at));
            }
        }
    }
    lives
}

/// Puts every slot of rows at the lowest place that is free while it lives; the bytes of all.
fn place(slots: &[Slot], lives: &[Option<Life>], bytes: &[i64]) -> (Vec<i64>, i64) {
    let mut offsets = vec![0; slots.len()];
    let mut placed: Vec<(Life, i64, i64)> = Vec::new();
    let mut peak = 0;
    for (slot, life) in lives.iter().enumerate() {
        let Some(life) = life.filter(|_| slots[slot].rows) else {
            continue;
        };
        let meets = |other: &Life| other.0 <= life.1 && life.0 <= other.1;
        let mut taken: Vec<(i64, i64)> = placed
            .iter()
            .filter(|(other, ..)| meets(other))
            .map(|(_, start, end)| (*start, *end))
            .collect();
        taken.sort_unstable();
        let mut start = 0;
        for (from, to) in taken {
            if start + bytes[slot] <= from {
                break;
            }
            start = start.max(to);
        }
        offsets[slot] = start;
        placed.push((life, start, start + bytes[slot]));
        peak = peak.max(start + bytes[slot]);
    }
    (offsets, peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slots_that_never_meet_share_memory() {
        let slot = Slot {
            bytes: 64,
            rows: true,
            product_rows: 0,
            on_chip: false,
            bf16: false,
        };
        let slots = [
            slot,
            slot,
            slot,
            Slot {
                rows: false,
                ..slot
            },
        ];
        let lives = [Some((0, 1)), Some((1, 2)), Some((2, 3)), None];
        let (offsets, peak) = place(&slots, &lives, &[64, 128, 64, 64]);
        assert_eq!(offsets, [0, 64, 0, 0]);
        assert_eq!(peak, 192);
    }
}
