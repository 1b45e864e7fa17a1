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

use cohort_abi::{KernelFn, OperandRef};

use super::kernel::Kernel;
use super::launched::{Inspector, Launched};
use super::lists::Lists;
use super::pieces::Pieces;
use super::ragged::RaggedLaunches;
use super::tables::Tables;
use super::{copies, operands};
use crate::error::Error;
use crate::execute::workers::{Shape, Workers};
use crate::late::{self, Interrupt};
use crate::memory::arena::PoolBase;
use crate::memory::inputs::Lent;
use crate::report::laps::Laps;
use crate::report::profile::{Profile, Span};
use crate::report::stats::Launches;

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
    /// Is shown each launch when it is over.
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
            let listed = operands::find(
                self,
                kernel,
                placed,
                (&mut *operands, &mut piece_operands),
                &mut launches.modes,
            );
            if let Some(copies) = self.copies {
                launches.copied_rows +=
                    copies::copy_operands(self, kernel, placed, operands, copies)?;
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
    pub fn base(&self, pool: usize, row: u32) -> PoolBase {
        let base = self.bases[pool];
        let mut lent = self.lent.iter();
        let lent = lent.find(|lent| lent.has(pool, row));
        lent.map_or(base, |lent| lent.base(base.row_bytes))
    }

    /// The same, of a list of rows all of which have one base.
    pub fn base_of(&self, pool: usize, rows: &[u32]) -> PoolBase {
        self.base(pool, rows.first().copied().unwrap_or(0))
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
    pub fn each_range(
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
    pub fn each_span(
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
