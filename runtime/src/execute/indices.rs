//! Step 3 of a flush: one pass over the log turns handles into rows, and into index lists.

use cohort_abi::manifest::{Operand, Unit};

use super::Executor;
use super::bucket_rows::{BucketRows, NO_ROW};
use super::kernel::Kernel;
use super::launch::Placed;
use super::lists::Lists;
use super::place::Spot;
use super::ragged::RaggedLaunches;
use crate::error::Error;
use crate::memory::arena::Arena;
use crate::program::log::Entries;
use crate::recorder::{Part, Recorder};

impl Executor {
    /// Writes the index lists of all launches: from the log, and from recordings.
    pub(super) fn write_indices(&mut self, recorder: &Recorder) -> Result<(), Error> {
        let log = recorder.log();
        self.begin_division(recorder);
        if self.has_ragged {
            // Then all calls are in the log.
            self.write_part_of_log::<true>(recorder, 0, log.len())?;
            self.end_division();
            return Ok(());
        }
        let (mut at, mut inside) = (0, true);
        let mut replayed = recorder.replayed().peekable();
        while let Some(calls) = replayed.next() {
            if let Some(next) = replayed.peek() {
                next.recording.fetch_columns();
            }
            self.write_part_of_log::<false>(recorder, at, calls.place)?;
            at = calls.place;
            if self.is_part_over() {
                self.end_part();
            }
            inside &= self.write_replayed(&calls);
            self.written(calls.recording.part(Part::Columns).len());
        }
        self.write_part_of_log::<false>(recorder, at, log.len())?;
        self.end_division();
        all_inside(!inside)
    }

    /// Turns a part of the log into index lists; ends parts of the instances on the way.
    fn write_part_of_log<const HAS_RAGGED: bool>(
        &mut self,
        recorder: &Recorder,
        from: usize,
        to: usize,
    ) -> Result<(), Error> {
        let (log, mut at) = (recorder.log(), from);
        while let Some(end) = self.part_end(recorder, at, to) {
            self.write_log::<HAS_RAGGED>(&log[at..end])?;
            self.written(end - at);
            self.end_part();
            at = end;
        }
        self.written(to - at);
        self.write_log::<HAS_RAGGED>(&log[at..to])
    }

    /// Turns the log into index lists, and notes the rows of calls whose buckets do not tell them. Every row is
    /// checked against its row pool, so that whatever compiled code recorded, no kernel reads outside of an arena.
    fn write_log<const HAS_RAGGED: bool>(&mut self, log: &[u64]) -> Result<(), Error> {
        let mut outside = false;
        let mut writer = Writer {
            rows: &mut self.rows,
            arena: &self.arena,
            lists: &self.lists,
            ragged: &mut self.ragged,
            index: self.index.words_mut(),
            outside: &mut outside,
        };
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.plans[bucket].kernel as usize))
        {
            let Some(kernel) = entry.kernel else {
                *writer.outside |= !write_ghost(writer.rows, entry.bucket, entry.slots[0]);
                continue;
            };
            let plan = &mut self.plans[entry.bucket];
            match self.placed.get(plan.placed) {
                Some(placed) if !HAS_RAGGED || placed.ragged.is_none() => {
                    plan.next += 1;
                    writer.call(kernel, placed, plan.next as usize - 1, entry.slots);
                }
                _ => {
                    let (form, rows) = (&kernel.form, kernel.form.rows(entry.slots));
                    let Some(spot) = plan.take(&self.groups, form, writer.ragged, rows) else {
                        return all_inside(true);
                    };
                    let placed = &self.placed[spot.launch];
                    match HAS_RAGGED && form.is_ragged {
                        true => writer.ragged_call(kernel, placed, spot, entry.slots),
                        false => writer.call(kernel, placed, spot.row, entry.slots),
                    }
                    if plan.is_apart() {
                        let firsts = &self.result_rows[placed.result_start..];
                        let firsts = &firsts[..kernel.results.len()];
                        writer.note_rows(entry.bucket, firsts, spot.row as u32, rows as u32);
                    }
                }
            }
        }
        all_inside(outside)
    }
}

/// Writes the index lists of launches.
struct Writer<'a> {
    rows: &'a mut BucketRows,
    arena: &'a Arena,
    lists: &'a Lists,
    ragged: &'a mut RaggedLaunches,
    index: &'a mut [u32],
    /// Whether some handle has no row.
    outside: &'a mut bool,
}

impl Writer<'_> {
    /// Writes row `row` of a launch from the slots of a call's entry.
    #[inline(always)]
    fn call(&mut self, kernel: &Kernel, placed: &Placed, row: usize, entry: &[u64]) {
        let (operands, mut handles) = entry.split_at(kernel.operands.len());
        let mut slot = placed.index_start + row;
        let mut list = placed.list_start;
        for (operand, value) in kernel.operands.iter().zip(operands) {
            match operand {
                Operand::Scalar(_) | Operand::Length => self.index[slot] = *value as u32,
                Operand::Row { pool } | Operand::Ragged { pool, .. } => {
                    self.index[slot] = self.row(*value, *pool)
                }
                Operand::Rows { pool } | Operand::Stacked { pool, .. } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    let start = self.lists.start(list, row);
                    for (at, handle) in listed.iter().enumerate() {
                        self.index[start + at] = self.row(*handle, *pool);
                    }
                    list += 1;
                }
            }
            slot += placed.calls as usize;
        }
    }

    /// As [`Writer::call`], for a call of a ragged kernel.
    #[inline(never)]
    fn ragged_call(&mut self, kernel: &Kernel, placed: &Placed, spot: Spot, entry: &[u64]) {
        let form = &kernel.form;
        let rows = form.rows(entry);
        let Some(launch) = placed.ragged else {
            *self.outside = true;
            return;
        };
        *self.outside |= !(self.ragged).note_lengths(launch, spot.call, form, entry);
        let (operands, mut handles) = entry.split_at(kernel.operands.len());
        // The lists' entries that are this call's.
        let (first, count) = match form.unit {
            Unit::Rows => (spot.row, rows as usize),
            Unit::Calls => (spot.call, 1),
        };
        let entries = placed.entries as usize;
        let own = |position: usize| {
            let start = placed.index_start + position * entries + first;
            start..start + count
        };
        let mut list = placed.list_start;
        for (position, (operand, value)) in kernel.operands.iter().zip(operands).enumerate() {
            match operand {
                Operand::Scalar(_) => self.index[own(position)].fill(*value as u32),
                Operand::Length => {}
                Operand::Row { pool } => {
                    let row = self.row(*value, *pool);
                    (self.ragged).note_first(launch, position, spot.call, Some(row));
                }
                Operand::Ragged { pool, extent } => {
                    let of_operand = form.extent(*extent, entry);
                    let row = self.first_row(*value, *pool, of_operand);
                    (self.ragged).note_first(launch, position, spot.call, row);
                }
                Operand::Rows { pool } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    for row in first..first + count {
                        let start = self.lists.start(list, row);
                        for (at, handle) in listed.iter().enumerate() {
                            self.index[start + at] = self.row(*handle, *pool);
                        }
                    }
                    list += 1;
                }
                Operand::Stacked { pool, .. } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    for (at, handle) in own(position).zip(listed) {
                        self.index[at] = self.row(*handle, *pool);
                    }
                }
            }
        }
    }

    /// The next call of a bucket has rows from that one of its launch on, whose results begin at `firsts`.
    #[inline]
    fn note_rows(&mut self, bucket: usize, firsts: &[u32], begin: u32, rows: u32) {
        for (result, first) in firsts.iter().enumerate() {
            for row in first + begin..first + begin + rows {
                self.rows.push(bucket, result, row);
            }
        }
    }

    /// The first of `rows` rows from a handle on; nothing of none, as it may be behind the last.
    fn first_row(&mut self, handle: u64, pool: usize, rows: u64) -> Option<u32> {
        if rows == 0 {
            return None;
        }
        let all = self.arena.rows(pool);
        let row = self.rows.find(handle, all);
        let row = row.filter(|row| row.checked_add(rows).is_some_and(|end| end <= all));
        *self.outside |= row.is_none();
        Some(row.unwrap_or(0) as u32)
    }

    #[inline]
    fn row(&mut self, handle: u64, pool: usize) -> u32 {
        let row = self.rows.find(handle, self.arena.rows(pool));
        *self.outside |= row.is_none();
        row.unwrap_or(0) as u32
    }
}

/// Gives a ghost the row that it stands for. Of what row pool it is, is checked where it is read.
fn write_ghost(rows: &mut BucketRows, bucket: usize, of: u64) -> bool {
    let row = rows.find(of, u64::from(NO_ROW));
    rows.push(bucket, 0, row.unwrap_or(u64::from(NO_ROW)) as u32);
    row.is_some()
}

pub(super) fn all_inside(outside: bool) -> Result<(), Error> {
    if outside {
        return Err(Error::Internal(
            "a call was recorded with a handle of no row".to_owned(),
        ));
    }
    Ok(())
}
