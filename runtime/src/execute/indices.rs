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
use crate::recorder::Recorder;

impl Executor {
    /// Writes the index lists of buckets, where no kernel is ragged: from the log, and from recordings.
    pub(super) fn write_all_indices(&mut self, recorder: &Recorder) -> Result<(), Error> {
        let (log, mut at, mut inside) = (recorder.log(), 0, true);
        let mut replayed = recorder.replayed().peekable();
        while let Some(calls) = replayed.next() {
            if let Some(next) = replayed.peek() {
                next.recording.fetch_columns();
            }
            self.write_indices::<false>(&log[at..calls.place])?;
            at = calls.place;
            inside &= self.write_replayed(&calls);
        }
        self.write_indices::<false>(&log[at..])?;
        all_inside(!inside)
    }

    /// Turns the log into the index lists of buckets. Every row is checked against its row pool, so that
    /// whatever compiled code recorded, no kernel reads outside of an arena.
    pub(super) fn write_indices<const HAS_RAGGED: bool>(
        &mut self,
        log: &[u64],
    ) -> Result<(), Error> {
        let index = self.index.words_mut();
        let mut outside = false;
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.plans[bucket].kernel as usize))
        {
            let Some(kernel) = entry.kernel else {
                outside |= !write_ghost(&mut self.rows, entry.bucket, entry.slots[0]);
                continue;
            };
            let plan = &mut self.plans[entry.bucket];
            let mut writer = Writer {
                rows: &self.rows,
                arena: &self.arena,
                lists: &self.lists,
                ragged: &mut self.ragged,
                index,
                outside: &mut outside,
            };
            let placed = &self.placed[plan.placed];
            if HAS_RAGGED && placed.ragged.is_some() {
                let spot = plan.take(kernel.form.rows(entry.slots));
                writer.ragged_call(kernel, placed, spot, entry.slots);
            } else {
                plan.next += 1;
                writer.call(kernel, placed, plan.next as usize - 1, entry.slots);
            }
        }
        all_inside(outside)
    }

    /// Turns the log into the index lists of groups, and notes the rows of calls whose buckets do not tell
    /// them.
    pub(super) fn write_grouped_indices<const HAS_RAGGED: bool>(
        &mut self,
        log: &[u64],
    ) -> Result<(), Error> {
        let is_padded = self.is_padded();
        let index = self.index.words_mut();
        let mut outside = false;
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.plans[bucket].kernel as usize))
        {
            let bucket = entry.bucket;
            let Some(kernel) = entry.kernel else {
                outside |= !write_ghost(&mut self.rows, bucket, entry.slots[0]);
                continue;
            };
            let (plan, form) = (&mut self.plans[bucket], &kernel.form);
            let Some(spot) = plan.take_in_group::<HAS_RAGGED>(&self.groups, form, &self.ragged)
            else {
                return all_inside(true);
            };
            let is_scattered = plan.is_apart() || (HAS_RAGGED && form.is_ragged && is_padded);
            let placed = &self.placed[spot.launch];
            let mut writer = Writer {
                rows: &self.rows,
                arena: &self.arena,
                lists: &self.lists,
                ragged: &mut self.ragged,
                index,
                outside: &mut outside,
            };
            match HAS_RAGGED && form.is_ragged {
                true => writer.ragged_call(kernel, placed, spot, entry.slots),
                false => writer.call(kernel, placed, spot.row, entry.slots),
            }
            if is_scattered {
                let rows = form.rows(entry.slots) as u32;
                for result in 0..kernel.results.len() {
                    let first = self.result_rows[placed.result_start + result] + spot.row as u32;
                    for row in 0..rows {
                        self.rows.push(bucket, result, first + row);
                    }
                }
            }
        }
        all_inside(outside)
    }
}

/// Writes the index lists of launches.
struct Writer<'a> {
    rows: &'a BucketRows,
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
                    (self.ragged).note_first(launch, position, spot.call, row);
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

    /// The first of `rows` rows from a handle on.
    fn first_row(&mut self, handle: u64, pool: usize, rows: u64) -> u32 {
        if rows == 0 {
            // It may be behind the last, and nobody reads it.
            return 0;
        }
        let all = self.arena.rows(pool);
        let row = self.rows.find(handle, all);
        let row = row.filter(|row| row + rows <= all);
        *self.outside |= row.is_none();
        row.unwrap_or(0) as u32
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
