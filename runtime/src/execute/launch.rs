//! Step 5 of a flush: kernels over ranges of rows.
//!
//! An operand of a launch is read in one of three *modes*. What lies in consecutive rows is
//! *contiguous*: the kernel gets the first row as its base and the list 0, 1, 2, …, which all launches
//! share and which stays in the cache. A list of one row again and again is *identical*. Everything
//! else is *gathered*: the kernel reads each row where it lies, by its index, while it loads its tile.
//!
//! Without gather fusion, rows that are not contiguous are copied together first, by a launch of its
//! own; for comparison.

use std::ffi::c_void;
use std::time::Instant;

use cohort_abi::manifest::{Operand, Unit};
use cohort_abi::{KernelFn, OperandRef};

use super::kernel::Kernel;
use super::lists::Lists;
use super::pieces::Pieces;
use super::ragged::{RaggedLaunches, Run};
use crate::arena::SpaceBase;
use crate::stats::{Launches, Modes, RaggedWork};
use crate::workers::{Shape, Workers};

/// A launch with its rows placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub kernel: u32,
    pub calls: u32,
    /// What the calls make; of an ordinary kernel, one each.
    pub rows: u32,
    /// What the kernel counts: rows, or calls.
    pub entries: u32,
    /// Of the first operand's list in the index; the others follow.
    pub index_start: usize,
    /// Of the first result's first row in the list of them; the others follow.
    pub result_start: usize,
    /// The first list operand; the others follow.
    pub list_start: usize,
    /// Its number among the launches of ragged kernels.
    pub ragged: Option<usize>,
}

/// What a flush has to launch, in a form that may move to the pool's threads.
pub(super) struct Flush<'a> {
    pub kernels: &'a [Kernel],
    /// The launches, first those of kept calls.
    pub kept: &'a [Placed],
    pub placed: &'a [Placed],
    pub result_rows: &'a [u32],
    /// Between the rows of calls are others.
    pub is_padded: bool,
    pub index: &'a [u32],
    pub lists: &'a Lists,
    pub ragged: &'a RaggedLaunches,
    pub pieces: &'a Pieces,
    /// 0, 1, 2, … as long as any list.
    pub identity: &'a [u32],
    pub bases: &'a [SpaceBase],
    pub workers: &'a Workers,
    /// Room for the copies of one launch's operands, when they are copied.
    pub copies: Option<*mut u8>,
}

// SAFETY: what is not Send are addresses of the executor's constants and rows. It is borrowed
// mutably until the flush is done, so they stay valid and nothing else uses them meanwhile.
unsafe impl Send for Flush<'_> {}

impl Flush<'_> {
    /// Counts in `launches`, which has an entry a kernel.
    pub fn run(self, launches: &mut [Launches]) {
        let mut operands = Vec::new();
        let mut results = Vec::new();
        let mut before = Instant::now();
        for placed in self.kept.iter().chain(self.placed) {
            if placed.rows == 0 {
                // Of values without rows.
                continue;
            }
            let kernel = &self.kernels[placed.kernel as usize];
            let launches = &mut launches[placed.kernel as usize];
            let listed = self::operands(&self, kernel, placed, &mut operands, &mut launches.modes);
            if let Some(copies) = self.copies {
                launches.copied_rows += copy_operands(&self, kernel, placed, &mut operands, copies);
            }
            results.clear();
            results.extend(kernel.results.iter().enumerate().map(|(result, space)| {
                let first = self.result_rows[placed.result_start + result];
                let base = &self.bases[*space];
                base.address
                    .wrapping_add(first as usize * base.row_bytes)
                    .cast::<c_void>()
            }));
            let launch = Launch {
                kernel: kernel.function,
                operands: &operands,
                results: &results,
                constants: &kernel.constants,
            };
            let run = |begin, end, scratch| launch.run(begin, end, scratch);
            match (kernel.form.unit, placed.ragged) {
                (Unit::Calls, Some(ragged)) => {
                    self.workers.each_task(self.pieces.tasks(ragged), &run);
                }
                (_, ragged) => {
                    let shape = Shape {
                        rows: u64::from(placed.rows),
                        row_tile: kernel.row_tile,
                        row_work: kernel.row_work + listed / u64::from(placed.rows),
                    };
                    match ragged.filter(|_| self.is_padded || !kernel.form.fused) {
                        None => self.workers.each_range(shape, &run),
                        Some(ragged) => {
                            let spans = self.ragged.spans(ragged, placed.calls);
                            self.each_span(spans, shape, &run);
                        }
                    }
                }
            }

            let after = Instant::now();
            let rows = match placed.ragged.filter(|_| self.is_padded) {
                None => placed.rows,
                Some(ragged) => {
                    let spans = self.ragged.spans(ragged, placed.calls).iter();
                    spans.map(|(_, rows)| rows).sum()
                }
            };
            launches.add(rows, (after - before).as_nanos() as u64);
            if let Some(ragged) = placed.ragged {
                let computed = Placed { rows, ..*placed };
                let work = ragged_work(kernel, &computed, self.ragged, ragged, self.bases);
                launches.ragged.add(&work);
            }
            before = after;
        }
    }

    /// Calls `run` for ranges of rows that are of one call each.
    fn each_span(
        &self,
        spans: &[(u32, u32)],
        shape: Shape,
        run: &(dyn Fn(u64, u64, *mut u8) + Sync),
    ) {
        for (first, rows) in spans {
            let (first, rows) = (u64::from(*first), u64::from(*rows));
            if rows > 0 {
                let of_call = Shape { rows, ..shape };
                let run = |begin, end, scratch: *mut u8| run(first + begin, first + end, scratch);
                self.workers.each_range(of_call, &run);
            }
        }
    }
}

/// What a launch of a ragged kernel does, and what it would do if all its calls were as long as the
/// longest.
pub(super) fn ragged_work(
    kernel: &Kernel,
    placed: &Placed,
    ragged: &RaggedLaunches,
    number: usize,
    bases: &[SpaceBase],
) -> RaggedWork {
    let launch = &ragged.launches[number];
    let calls = u64::from(placed.calls);
    let longest = |operand: usize| ragged.longest[launch.length_start + operand];
    let form = &kernel.form;
    let rows_work = |rows: u64| rows.saturating_mul(kernel.flops_per_row);
    let dense_rows = calls.saturating_mul(form.rows_of(longest));
    let row_bytes = |space: usize| bases[space].row_bytes as u64;
    let dense_bytes = calls.saturating_mul(kernel.ragged_bytes(row_bytes, longest));
    let dense_flops = calls.saturating_mul(form.flops(longest));
    RaggedWork {
        calls,
        flops: launch
            .flops
            .saturating_add(rows_work(u64::from(placed.rows))),
        bytes: launch.bytes,
        dense_rows,
        dense_flops: dense_flops.saturating_add(rows_work(dense_rows)),
        dense_bytes,
    }
}

/// Finds the mode of each operand and what the kernel is given for it; returns the work that lists
/// take.
fn operands(
    flush: &Flush<'_>,
    kernel: &Kernel,
    placed: &Placed,
    operands: &mut Vec<OperandRef>,
    modes: &mut [Modes],
) -> u64 {
    let entries = placed.entries as usize;
    let mut lists = flush.lists.operands[placed.list_start..].iter();
    let mut work = 0;
    operands.clear();
    for (position, (operand, modes)) in kernel.operands.iter().zip(modes).enumerate() {
        let start = placed.index_start + position * entries;
        let index = &flush.index[start..start + entries];
        operands.push(match operand {
            Operand::Scalar(_) | Operand::Length => OperandRef {
                base: std::ptr::null(),
                index: index.as_ptr(),
                offsets: std::ptr::null(),
            },
            Operand::Ragged { space, .. } => {
                let base = &flush.bases[*space];
                let run = match (kernel.form.unit, placed.ragged) {
                    (Unit::Rows, Some(ragged)) => {
                        flush.ragged.runs[flush.ragged.launches[ragged].run_start + position]
                    }
                    // Of each call a first row.
                    _ => Run::Scattered,
                };
                let first = match run {
                    Run::OnePiece { first } => {
                        modes.contiguous += 1;
                        Some(first as usize * base.row_bytes)
                    }
                    Run::Unknown | Run::Scattered => {
                        modes.gathered += 1;
                        None
                    }
                };
                OperandRef {
                    base: base.address.wrapping_add(first.unwrap_or(0)).cast(),
                    index: first.map_or(index.as_ptr(), |_| flush.identity.as_ptr()),
                    offsets: std::ptr::null(),
                }
            }
            Operand::Rows { space } => {
                modes.gathered += 1;
                let base = &flush.bases[*space];
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
            Operand::Row { space } | Operand::Stacked { space, .. } => {
                let base = &flush.bases[*space];
                if is_contiguous(index) {
                    modes.contiguous += 1;
                    let first = index[0] as usize * base.row_bytes;
                    OperandRef {
                        base: base.address.wrapping_add(first).cast(),
                        index: flush.identity.as_ptr(),
                        offsets: std::ptr::null(),
                    }
                } else {
                    match is_identical(index) {
                        true => modes.identical += 1,
                        false => modes.gathered += 1,
                    }
                    OperandRef {
                        base: base.address.cast(),
                        index: index.as_ptr(),
                        offsets: std::ptr::null(),
                    }
                }
            }
        });
    }
    if kernel.form.unit == Unit::Calls && kernel.form.has_extent() {
        let start = placed.index_start + kernel.operands.len() * entries;
        operands.push(OperandRef {
            base: std::ptr::null(),
            index: flush.index[start..start + entries].as_ptr(),
            offsets: std::ptr::null(),
        });
    }
    if let (Some(_), Some(ragged)) = (&kernel.form.division, placed.ragged) {
        operands.push(OperandRef {
            base: std::ptr::null(),
            index: flush.pieces.list(ragged).as_ptr().cast(),
            offsets: std::ptr::null(),
        });
    }
    work
}

/// Most lists that are not end at their second element, so asking costs little.
fn is_contiguous(index: &[u32]) -> bool {
    let mut next = index[0];
    index.iter().all(|row| {
        let is_next = *row == next;
        next = next.wrapping_add(1);
        is_next
    })
}

fn is_identical(index: &[u32]) -> bool {
    index.iter().all(|row| *row == index[0])
}

/// Copies the rows of each operand that is not contiguous together; returns how many.
fn copy_operands(
    flush: &Flush<'_>,
    kernel: &Kernel,
    placed: &Placed,
    operands: &mut [OperandRef],
    copies: *mut u8,
) -> u64 {
    let padded = placed.ragged.filter(|_| flush.is_padded);
    let padded = padded.filter(|_| kernel.form.unit == Unit::Rows);
    let mut rows = 0;
    let mut to = copies;
    for (operand, given) in kernel.operands.iter().zip(operands) {
        let space = match operand {
            Operand::Row { space } | Operand::Stacked { space, .. } => space,
            // Where the unit is the call, its rows lie behind each other anyway.
            Operand::Ragged { space, .. } if kernel.form.unit == Unit::Rows => space,
            _ => continue,
        };
        if std::ptr::eq(given.index, flush.identity.as_ptr()) {
            continue;
        }
        let row_bytes = flush.bases[*space].row_bytes;
        let copy = Copy {
            from: *given,
            to,
            row_bytes,
        };
        let shape = Shape {
            rows: u64::from(placed.entries),
            row_tile: 1,
            row_work: row_bytes as u64,
        };
        let run = |begin, end, _: *mut u8| copy.run(begin, end);
        match padded {
            // What is between the rows of calls names no row.
            Some(ragged) => {
                let spans = flush.ragged.spans(ragged, placed.calls);
                flush.each_span(spans, shape, &run);
            }
            None => flush.workers.each_range(shape, &run),
        }
        *given = OperandRef {
            base: to.cast_const().cast(),
            index: flush.identity.as_ptr(),
            offsets: std::ptr::null(),
        };
        to = to.wrapping_add(copy_bytes(row_bytes, placed.entries));
        rows += u64::from(placed.entries);
    }
    rows
}

/// What the copy of an operand takes, so that the next one is aligned like rows are.
fn copy_bytes(row_bytes: usize, entries: u32) -> usize {
    (row_bytes * entries as usize).next_multiple_of(64)
}

/// The room that the copies of a launch's operands may need.
pub(super) fn copies_bytes(kernel: &Kernel, entries: u32, bases: &[SpaceBase]) -> usize {
    let rows = kernel.operands.iter().map(|operand| match operand {
        Operand::Row { space } | Operand::Ragged { space, .. } | Operand::Stacked { space, .. } => {
            copy_bytes(bases[*space].row_bytes, entries)
        }
        // Lists are never copied.
        Operand::Rows { .. } | Operand::Scalar(_) | Operand::Length => 0,
    });
    rows.sum()
}

struct Copy {
    from: OperandRef,
    to: *mut u8,
    row_bytes: usize,
}

// SAFETY: threads get disjoint ranges of rows, each writes those of its range, and what is read is
// written by nobody meanwhile.
unsafe impl Sync for Copy {}

impl Copy {
    fn run(&self, begin: u64, end: u64) {
        for row in begin as usize..end as usize {
            // SAFETY: the index lists rows of the base's space, which was checked when it was
            // written; the room for copies holds as many rows as the launch has calls, and does not
            // overlap the arena.
            unsafe {
                let from = (self.from.base as *const u8)
                    .add(*self.from.index.add(row) as usize * self.row_bytes);
                let to = self.to.add(row * self.row_bytes);
                std::ptr::copy_nonoverlapping(from, to, self.row_bytes);
            }
        }
    }
}

/// One launch, ready to be computed by several threads.
struct Launch<'a> {
    kernel: KernelFn,
    operands: &'a [OperandRef],
    results: &'a [*mut c_void],
    constants: &'a [*const c_void],
}

// SAFETY: threads get disjoint ranges of rows, and a kernel writes only to the result rows of its
// range, which are no operand's rows; everything else is only read.
unsafe impl Sync for Launch<'_> {}

impl Launch<'_> {
    fn run(&self, begin: u64, end: u64, scratch: *mut u8) {
        // SAFETY: the kernel's ABI. Operands, results and constants are those that the manifest
        // lists; index lists hold rows of their spaces (checked when they were written) for every
        // row of the launch, pieces are within their calls, or indices count up from a base that has as many rows; the results' rows were
        // reserved and committed; the scratch has the size that the largest kernel asks for and
        // belongs to this thread.
        unsafe {
            (self.kernel)(
                begin as i64,
                end as i64,
                self.operands.as_ptr(),
                self.results.as_ptr(),
                self.constants.as_ptr(),
                scratch.cast(),
            );
        }
    }
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
