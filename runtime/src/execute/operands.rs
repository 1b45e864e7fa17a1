//! What a kernel is given for each of its operands: a base, and a list of rows counted from there.

use cohort_abi::OperandRef;
use cohort_abi::manifest::{Operand, Unit};

use super::kernel::Kernel;
use super::launch::{Flush, Placed};
use super::pieces::PieceOperand;
use super::reads::{Known, Reads};
use crate::memory::arena::PoolBase;
use crate::report::stats::Modes;

/// Finds the mode of each operand and what the kernel is given for it; returns the work that lists
/// take.
pub fn find<'a>(
    flush: &Flush<'a>,
    kernel: &Kernel,
    placed: &Placed,
    (operands, pieces): (&mut Vec<OperandRef>, &mut Vec<PieceOperand<'a>>),
    modes: &mut [Modes],
) -> u64 {
    let entries = placed.entries as usize;
    let known = Known {
        index: flush.index,
        ragged: flush.ragged,
        tables: flush.tables,
    };
    let mut lists = flush.lists.operands[placed.list_start..].iter();
    let tables = placed
        .ragged
        .map(|ragged| flush.ragged.launches[ragged].tables);
    let mut work = 0;
    operands.clear();
    for (position, (operand, modes)) in kernel.operands.iter().zip(modes).enumerate() {
        let index = known.entries(placed, position);
        operands.push(match operand {
            Operand::Scalar(_) => list_only(index),
            Operand::Length => list_only(match (tables, kernel.form.unit) {
                (Some(tables), Unit::Calls) => {
                    (flush.tables).lengths(tables, kernel.form.column(position))
                }
                // No row asks how long its call is.
                (Some(_), Unit::Rows) => &[],
                (None, _) => index,
            }),
            Operand::Rows { pool } => {
                modes.gathered += 1;
                let base = &flush.bases[*pool];
                let list = lists.next();
                let (offsets, rows) = list.map_or((0, 0), |list| (list.offsets, list.rows));
                let offsets = &flush.lists.offsets[offsets..];
                work += base.row_bytes as u64 * u64::from(offsets[entries]);
                OperandRef {
                    base: base.address.cast(),
                    index: flush.index[rows..].as_ptr(),
                    offsets: offsets.as_ptr(),
                }
            }
            Operand::Row { pool }
            | Operand::Ragged { pool, .. }
            | Operand::Stacked { pool, .. } => match known.reads(placed, (position, operand)) {
                Reads::Entries(rows) => {
                    let base = flush.base_of(*pool, rows);
                    if is_contiguous(rows) {
                        modes.contiguous += 1;
                        let first = rows.first().copied().unwrap_or(0);
                        rows_from(base, first, &flush.identity[..entries])
                    } else {
                        match is_identical(rows) {
                            true => modes.identical += 1,
                            false => modes.gathered += 1,
                        }
                        rows_from(base, 0, rows)
                    }
                }
                Reads::ByCall(firsts) => {
                    modes.gathered += 1;
                    rows_from(flush.base_of(*pool, firsts), 0, firsts)
                }
                Reads::OnePiece { first } => {
                    modes.contiguous += 1;
                    let base = flush.base(*pool, first);
                    rows_from(base, first, &flush.identity[..entries])
                }
                Reads::Pieces(firsts) => {
                    modes.contiguous += 1;
                    let base = flush.base_of(*pool, firsts);
                    pieces.push(PieceOperand {
                        position,
                        row_bytes: base.row_bytes,
                        firsts,
                    });
                    rows_from(base, 0, &flush.identity[..entries])
                }
                Reads::Listed { first, list } => {
                    let of_list = list.first().copied().unwrap_or(0);
                    let base = flush.base(*pool, first.wrapping_add(of_list));
                    match is_identical(list) {
                        true => modes.identical += 1,
                        false => modes.gathered += 1,
                    }
                    rows_from(base, first, list)
                }
            },
        });
    }
    if let Some(tables) = tables {
        operands.extend(flush.tables.starts(tables).map(list_only));
        let items = flush.tables.tasks(tables).map(|(_, items)| items);
        let items = items.filter(|_| kernel.form.division.is_some());
        operands.extend(items.map(|items| list_only(items.as_flattened())));
    }
    work
}

/// What the kernel is given for rows: those that a list counts from a row of a row pool.
fn rows_from(base: PoolBase, first: u32, list: &[u32]) -> OperandRef {
    OperandRef {
        base: (base.address)
            .wrapping_add(first as usize * base.row_bytes)
            .cast(),
        index: list.as_ptr(),
        offsets: std::ptr::null(),
    }
}

/// What the kernel is given for numbers that are not rows.
fn list_only(list: &[u32]) -> OperandRef {
    OperandRef {
        base: std::ptr::null(),
        index: list.as_ptr(),
        offsets: std::ptr::null(),
    }
}

/// Most lists that are not end at their second element, so asking costs little.
fn is_contiguous(index: &[u32]) -> bool {
    let mut next = index.first().copied().unwrap_or(0);
    index.iter().all(|row| {
        let is_next = *row == next;
        next = next.wrapping_add(1);
        is_next
    })
}

fn is_identical(index: &[u32]) -> bool {
    index.iter().all(|row| Some(row) == index.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_apart() {
        for (list, contiguous, identical) in [
            (&[7][..], true, true),
            (&[7, 8, 9], true, false),
            (&[7, 7, 7], false, true),
            (&[7, 8, 8], false, false),
            (&[9, 8, 7], false, false),
        ] {
            assert_eq!(is_contiguous(list), contiguous, "{list:?}");
            assert_eq!(is_identical(list), identical, "{list:?}");
        }
    }
}
