//! Step 5 of a flush: kernels over ranges of rows.
//!
//! An operand of a launch is read in one of three *modes*. What lies in consecutive rows is
//! *contiguous*: the kernel gets the first row as its base and the list 0, 1, 2, …, which all launches
//! share and which stays in the cache. A list of one row again and again is *identical*. Everything
//! else is *gathered*: the kernel reads each row where it lies, by its index, while it loads its tile. Where
//! calls have many rows each, consecutive ones, the launch is computed call by call, and each is contiguous
//! ([`super::pieces`]).
//!
//! Without gather fusion, rows that are not contiguous are copied together first, by a launch of its
//! own; for comparison.

use std::ffi::c_void;
use std::time::Instant;

use cohort_abi::manifest::{Operand, Unit};
use cohort_abi::{KernelFn, OperandRef};

use super::kernel::Kernel;
use super::launched::{Inspector, Launched};
use super::lists::Lists;
use super::pieces::{PieceOperand, Pieces};
use super::ragged::{RaggedLaunches, Run};
use super::tables::Tables;
use crate::error::Error;
use crate::execute::workers::{Shape, Workers};
use crate::late::{self, Interrupt};
use crate::memory::arena::PoolBase;
use crate::memory::inputs::Lent;
use crate::report::laps::Laps;
use crate::report::profile::{Profile, Span};
use crate::report::stats::{Launches, Modes};

/// Operations a thread between two looks at the clock: some milliseconds of any kernel.
pub(super) const MOST_WORK: u64 = 1 << 27;
/// The same where there is no end, and nobody but [`Interrupt`] is asked: a tenth of a second of products, so that what a
/// part costs does not count.
const MOST_WORK_WITHOUT_END: u64 = 1 << 34;

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

impl Placed {
    /// What a profile calls its launch.
    pub fn span(&self, rows: u32) -> Span {
        Span::Launch {
            kernel: self.kernel,
            calls: self.calls,
            rows,
        }
    }
}

/// What a flush has to launch.
pub(super) struct Flush<'a> {
    pub kernels: &'a [Kernel],
    /// The launches, first those of cached calls.
    pub cached: &'a [Placed],
    pub placed: &'a [Placed],
    pub result_rows: &'a [u32],
    pub index: &'a [u32],
    pub lists: &'a Lists,
    pub ragged: &'a RaggedLaunches,
    pub tables: &'a Tables,
    /// 0, 1, 2, … as long as any list.
    pub identity: &'a [u32],
    pub bases: &'a [PoolBase],
    /// What is read elsewhere; no operand of a launch has rows of it and others.
    pub lent: &'a [Lent],
    pub workers: &'a Workers,
    /// Room for the copies of one launch's operands, when they are copied.
    pub copies: Option<*mut u8>,
    /// When it is too late.
    pub end: Option<Instant>,
    pub interrupt: &'a Interrupt,
    pub profile: Option<&'a Profile>,
    /// Who looks at each launch when it is over.
    pub inspector: Option<&'a mut dyn Inspector>,
}

/// What is written of one launch after another, whose memory is kept from flush to flush.
#[derive(Default)]
pub(super) struct Buffers {
    operands: Vec<OperandRef>,
    results: Vec<*mut c_void>,
    /// Each launch's kernel and rows.
    laps: Laps<(u32, u32)>,
}

impl Flush<'_> {
    /// Counts in `launches`, which has an entry a kernel, from `begin` on; gives when the last was over. When it
    /// is too late, the rest is not computed.
    pub fn run(
        mut self,
        begin: Instant,
        buffers: &mut Buffers,
        launches: &mut [Launches],
    ) -> Result<Instant, Error> {
        self.workers.reserve(self.scratch_bytes())?;
        if self.workers.threads() > 1 {
            self.workers.expect(self.work());
        }
        buffers.laps.begin();
        let outcome = self.launch_all(begin, buffers, launches);
        let end = Instant::now();
        for ((kernel, rows), nanoseconds) in buffers.laps.within(begin, end) {
            launches[kernel as usize].add(rows, nanoseconds);
        }
        outcome.map(|()| end)
    }

    fn launch_all(
        &mut self,
        begin: Instant,
        buffers: &mut Buffers,
        launches: &mut [Launches],
    ) -> Result<(), Error> {
        let Buffers {
            operands,
            results,
            laps,
        } = buffers;
        let mut piece_operands = Vec::new();
        let mut before = begin;
        for placed in self.cached.iter().chain(self.placed) {
            if placed.rows == 0 {
                // Of values without rows.
                continue;
            }
            let kernel = &self.kernels[placed.kernel as usize];
            if let Some(profile) = self.profile {
                profile.begin_launch(placed.kernel);
            }
            let launches = &mut launches[placed.kernel as usize];
            piece_operands.clear();
            let listed = self::operands(
                self,
                kernel,
                placed,
                (&mut *operands, &mut piece_operands),
                &mut launches.modes,
            );
            if let Some(copies) = self.copies {
                launches.copied_rows += copy_operands(self, kernel, placed, operands, copies)?;
            }
            results.clear();
            results.extend(kernel.results.iter().enumerate().map(|(result, pool)| {
                let first = self.result_rows[placed.result_start + result];
                let base = &self.bases[*pool];
                base.address
                    .wrapping_add(first as usize * base.row_bytes)
                    .cast::<c_void>()
            }));
            let tables = placed
                .ragged
                .map(|ragged| self.ragged.launches[ragged].tables);
            let pieces = tables
                .filter(|_| !piece_operands.is_empty())
                .map(|tables| Pieces {
                    spans: self.tables.all_spans(tables),
                    operands: &piece_operands,
                });
            let launch = Launch {
                kernel: kernel.function,
                operands,
                results,
                constants: &kernel.constants,
                pieces,
            };
            let run = |begin, end, scratch| {
                late::until(self.end, self.interrupt, || launch.run(begin, end, scratch));
            };
            if let Some((tasks, _)) = tables.and_then(|tables| self.tables.tasks(tables)) {
                match self.end {
                    None => self.workers.each_task(tasks, &run),
                    Some(_) => {
                        for some in tasks.chunks(self.workers.threads()) {
                            self.workers.each_task(some, &run);
                            self.in_time()?;
                        }
                    }
                }
            } else {
                let shape = Shape {
                    rows: u64::from(placed.rows),
                    row_tile: kernel.row_tile,
                    row_work: kernel.row_work + listed / u64::from(placed.rows),
                };
                match tables.and_then(|tables| self.tables.spans(kernel, tables)) {
                    None => self.each_range(shape, &run)?,
                    Some(spans) => self.each_span(spans, shape, &run)?,
                }
            }
            let work = tables.map(|tables| self.tables.work(tables));
            let rows = work.map_or(placed.rows, |(_, rows)| rows as u32);
            match self.profile {
                None => laps.lap((placed.kernel, rows)),
                // It shows when each of them began and ended.
                Some(profile) => {
                    let after = Instant::now();
                    launches.add(rows, (after - before).as_nanos() as u64);
                    profile.span(placed.span(rows), before, after);
                    before = after;
                }
            }
            if let Some(inspector) = self.inspector.as_deref_mut() {
                inspector.launched(&Launched {
                    number: placed.kernel as usize,
                    kernel,
                    operands,
                    results,
                    bases: self.bases,
                    entries: placed.entries,
                    pieces,
                    spans: tables.and_then(|tables| self.tables.spans(kernel, tables)),
                });
            }
            if let Some((work, _)) = work {
                launches.ragged.add(work);
            }
            self.in_time()?;
        }
        Ok(())
    }

    /// Where the rows of a row pool are that a launch reads as an operand, of which this is one.
    fn base(&self, pool: usize, row: u32) -> PoolBase {
        let base = self.bases[pool];
        let mut lent = self.lent.iter();
        let lent = lent.find(|lent| lent.has(pool, row));
        lent.map_or(base, |lent| lent.base(base.row_bytes))
    }

    /// Operations of all launches, but for those of lists.
    fn work(&self) -> u64 {
        let launched = self.cached.iter().chain(self.placed);
        let work = launched.map(|placed| {
            let kernel = &self.kernels[placed.kernel as usize];
            u64::from(placed.rows).saturating_mul(kernel.row_work)
        });
        work.fold(0, u64::saturating_add)
    }

    /// What the kernel needs that needs the most.
    fn scratch_bytes(&self) -> usize {
        let launched = self.cached.iter().chain(self.placed);
        let scratch = launched.map(|placed| self.kernels[placed.kernel as usize].scratch_bytes);
        scratch.max().unwrap_or(0)
    }

    fn in_time(&self) -> Result<(), Error> {
        self.interrupt.check()?;
        match self.end {
            Some(end) if Instant::now() >= end => Err(Error::Late),
            _ => Ok(()),
        }
    }

    /// Calls `run` for ranges of all rows, and looks now and then whether to go on.
    fn each_range(
        &self,
        shape: Shape,
        run: &(dyn Fn(u64, u64, *mut u8) + Sync),
    ) -> Result<(), Error> {
        let tile = shape.row_tile.max(1);
        let most = match self.end {
            None => MOST_WORK_WITHOUT_END,
            Some(_) => MOST_WORK,
        };
        let most = most.saturating_mul(self.workers.threads() as u64);
        let rows = (most / shape.row_work.max(1)).max(1).next_multiple_of(tile);
        let mut first = 0;
        while first < shape.rows {
            let part = Shape {
                rows: rows.min(shape.rows - first),
                ..shape
            };
            let run = |begin, end, scratch: *mut u8| run(first + begin, first + end, scratch);
            self.workers.each_range(part, &run);
            first += part.rows;
            self.in_time()?;
        }
        Ok(())
    }

    /// Calls `run` for ranges of rows that are of one call each.
    fn each_span(
        &self,
        spans: &[(u32, u32)],
        shape: Shape,
        run: &(dyn Fn(u64, u64, *mut u8) + Sync),
    ) -> Result<(), Error> {
        for (first, rows) in spans {
            let (first, rows) = (u64::from(*first), u64::from(*rows));
            if rows > 0 {
                let of_call = Shape { rows, ..shape };
                let run = |begin, end, scratch: *mut u8| run(first + begin, first + end, scratch);
                self.each_range(of_call, &run)?;
            }
        }
        Ok(())
    }
}

/// Finds the mode of each operand and what the kernel is given for it; returns the work that lists
/// take.
fn operands<'a>(
    flush: &Flush<'a>,
    kernel: &Kernel,
    placed: &Placed,
    (operands, pieces): (&mut Vec<OperandRef>, &mut Vec<PieceOperand<'a>>),
    modes: &mut [Modes],
) -> u64 {
    let entries = placed.entries as usize;
    let mut lists = flush.lists.operands[placed.list_start..].iter();
    let tables = placed
        .ragged
        .map(|ragged| flush.ragged.launches[ragged].tables);
    let mut work = 0;
    operands.clear();
    for (position, (operand, modes)) in kernel.operands.iter().zip(modes).enumerate() {
        let start = placed.index_start + position * entries;
        let index = &flush.index[start..start + entries];
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
            Operand::Ragged { pool, .. } | Operand::Row { pool } if placed.ragged.is_some() => {
                let launch = placed.ragged.unwrap_or(0);
                match flush.ragged.run(launch, position) {
                    Run::ByCall => {
                        modes.gathered += 1;
                        let firsts = flush.ragged.firsts(launch, position);
                        rows_from(flush.base(*pool, firsts[0]), 0, firsts)
                    }
                    Run::OnePiece { first } => {
                        modes.contiguous += 1;
                        let base = flush.base(*pool, first);
                        rows_from(base, first, &flush.identity[..entries])
                    }
                    Run::Pieces => {
                        modes.contiguous += 1;
                        let firsts = flush.ragged.firsts(launch, position);
                        let base = flush.base(*pool, firsts[0]);
                        pieces.push(PieceOperand {
                            position,
                            row_bytes: base.row_bytes,
                            firsts,
                        });
                        rows_from(base, 0, &flush.identity[..entries])
                    }
                    Run::Listed { first, list } => {
                        let list = flush.tables.list(list);
                        let base = flush.base(*pool, first.wrapping_add(list[0]));
                        match is_identical(list) {
                            true => modes.identical += 1,
                            false => modes.gathered += 1,
                        }
                        rows_from(base, first, list)
                    }
                }
            }
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
            | Operand::Stacked { pool, .. } => {
                let base = flush.base(*pool, index[0]);
                if is_contiguous(index) {
                    modes.contiguous += 1;
                    rows_from(base, index[0], &flush.identity[..entries])
                } else {
                    match is_identical(index) {
                        true => modes.identical += 1,
                        false => modes.gathered += 1,
                    }
                    rows_from(base, 0, index)
                }
            }
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
) -> Result<u64, Error> {
    let tables = placed
        .ragged
        .map(|ragged| flush.ragged.launches[ragged].tables);
    let spans = tables.and_then(|tables| flush.tables.spans(kernel, tables));
    let mut rows = 0;
    let mut to = copies;
    for (operand, given) in kernel.operands.iter().zip(operands) {
        let pool = match operand {
            Operand::Row { pool } | Operand::Stacked { pool, .. } => pool,
            // Where the unit is the call, its rows lie behind each other anyway.
            Operand::Ragged { pool, .. } if kernel.form.unit == Unit::Rows => pool,
            _ => continue,
        };
        if std::ptr::eq(given.index, flush.identity.as_ptr()) {
            continue;
        }
        let row_bytes = flush.bases[*pool].row_bytes;
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
        match spans {
            // What is between the rows of calls names no row.
            Some(spans) => flush.each_span(spans, shape, &run)?,
            None => flush.each_range(shape, &run)?,
        }
        *given = OperandRef {
            base: to.cast_const().cast(),
            index: flush.identity.as_ptr(),
            offsets: std::ptr::null(),
        };
        to = to.wrapping_add(copy_bytes(row_bytes, placed.entries));
        rows += u64::from(placed.entries);
    }
    Ok(rows)
}

/// What the copy of an operand takes, so that the next one is aligned like rows are.
fn copy_bytes(row_bytes: usize, entries: u32) -> usize {
    (row_bytes * entries as usize).next_multiple_of(64)
}

/// The room that the copies of a launch's operands may need.
pub(super) fn copies_bytes(kernel: &Kernel, entries: u32, bases: &[PoolBase]) -> usize {
    let rows = kernel.operands.iter().map(|operand| match operand {
        Operand::Row { pool } | Operand::Ragged { pool, .. } | Operand::Stacked { pool, .. } => {
            copy_bytes(bases[*pool].row_bytes, entries)
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
            // SAFETY: the index lists rows of the base's row pool, which was checked when it was
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
    pieces: Option<Pieces<'a>>,
}

// SAFETY: threads get disjoint ranges of rows, and a kernel writes only to the result rows of its
// range, which are no operand's rows; everything else is only read.
unsafe impl Sync for Launch<'_> {}

impl Launch<'_> {
    fn run(&self, begin: u64, end: u64, scratch: *mut u8) {
        let Some(pieces) = &self.pieces else {
            return self.call(begin, end, self.operands, scratch);
        };
        let mut operands = self.operands.to_vec();
        for (call, begin, end) in pieces.within(begin, end) {
            pieces.move_to(call, self.operands, &mut operands);
            self.call(begin, end, &operands, scratch);
        }
    }

    fn call(&self, begin: u64, end: u64, operands: &[OperandRef], scratch: *mut u8) {
        // SAFETY: the kernel's ABI. Operands, results and constants are those that the manifest
        // lists; index lists hold rows of their row pools (checked when they were written) for every
        // row of the launch, work items are within their calls, or indices count up from a base that has as many
        // rows; the results' rows were reserved and committed; the scratch has the size that the largest kernel asks
        // for and belongs to this thread.
        unsafe {
            (self.kernel)(
                begin as i64,
                end as i64,
                operands.as_ptr(),
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
