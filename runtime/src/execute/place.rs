//! Step 2 of a flush: the scheduler's launches get rows for their results, and places for their index lists.

use cohort_abi::manifest::{Operand, Unit};

use super::Executor;
use super::copies::copies_bytes;
use super::indices::all_inside;
use super::launch::Placed;
use super::ragged::RaggedLaunches;
use crate::error::Error;
use crate::memory::arena::Region;
use crate::program::call_form::CallForm;
use crate::program::log::Entries;
use crate::recorder::Recorder;
use crate::schedule::Ready;
use crate::schedule::groups::{Groups, Share};

/// In place of a launch: each call of the bucket has a place of its own.
const APART: usize = usize::MAX;

/// Where the calls of a bucket go.
#[derive(Clone, Copy, Default)]
pub(super) struct BucketPlan {
    /// Behind the last: a bucket of ghosts.
    pub kernel: u32,
    /// The launch, if the bucket is whole; a number beyond all launches if it is apart.
    pub placed: usize,
    /// The number of its next call in the launch; where they are apart, of that one's place.
    pub next: u32,
    /// Of a ragged kernel that is not apart: the row of the launch at which that call begins.
    pub next_row: u32,
}

/// Where a call is in its launch.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub launch: usize,
    /// How many calls are before it, and how many rows they make.
    pub call: usize,
    pub row: usize,
}

impl Executor {
    /// Lists the buckets of the flush.
    pub(super) fn collect(&mut self, recorder: &Recorder) {
        self.ready.clear();
        self.ghosts.clear();
        let buckets = recorder.buckets();
        self.make_room(buckets.count());
        for bucket in buckets.pending() {
            let number = *bucket as usize;
            let ready = Ready {
                bucket: *bucket,
                kernel: buckets.kernel(number),
                phase: buckets.phase(number),
                depth: buckets.depth(number),
                calls: recorder.bucket_calls(number),
                rows: buckets.rows(number),
            };
            self.plans[number] = BucketPlan {
                kernel: ready.kernel,
                ..BucketPlan::default()
            };
            if ready.kernel as usize == self.kernels.len() {
                self.ghosts.push(ready);
            } else if ready.calls > 0 {
                self.ready.push(ready);
            }
        }
        self.placed.clear();
        self.result_rows.clear();
        self.lists.clear();
        self.ragged.clear();
        self.tables.begin_flush();
    }

    /// Takes rows for all results, one region a row pool: as many as calls of the buckets make, however
    /// these are launched.
    fn take_rows(&mut self, regions: &mut Vec<Region>) -> Result<(), Error> {
        self.next_rows.clear();
        self.next_rows.resize(self.arena.row_pools(), 0);
        for ready in &self.ready {
            for pool in &self.kernels[ready.kernel as usize].results {
                self.next_rows[*pool] += u64::from(ready.rows);
            }
        }
        self.take_next_rows(regions)
    }

    /// Takes as many rows of each row pool as `next_rows` says, which becomes the first of each.
    pub(super) fn take_next_rows(&mut self, regions: &mut Vec<Region>) -> Result<(), Error> {
        for (pool, next) in self.next_rows.iter_mut().enumerate() {
            if *next > 0 {
                let region = self.arena.take(pool, *next)?;
                regions.push(region);
                *next = u64::from(region.first);
            }
        }
        Ok(())
    }

    /// Takes rows for all results, and gives each launch its place among them; returns the length of the index.
    pub(super) fn place_groups(
        &mut self,
        log: &[u64],
        regions: &mut Vec<Region>,
    ) -> Result<usize, Error> {
        let is_padded = self.is_padded();
        // Elsewhere the rows of buckets say where calls begin.
        let is_measured = is_padded || (self.has_ragged && self.is_some_ragged_apart());
        if is_padded {
            self.pad(log, regions)?;
        } else {
            if is_measured {
                self.measure_groups(log)?;
            }
            self.take_rows(regions)?;
        }
        let mut index_length = 0;
        for index in 0..self.groups.launches.len() {
            let launch = self.groups.launches[index];
            let rows = match is_measured && self.forms[launch.kernel as usize].is_ragged {
                true => self.ragged.place_group(index, launch.calls),
                false => launch.rows,
            };
            self.place(launch.kernel, launch.calls, rows, &mut index_length);
        }
        for (ready, share) in self.ready.iter().zip(&mut self.groups.shares) {
            let plan = &mut self.plans[ready.bucket as usize];
            let Share::Whole { launch, call, row } = share else {
                plan.begin(share);
                continue;
            };
            if is_measured && self.forms[ready.kernel as usize].is_ragged {
                *row = self.ragged.start(*launch, *call);
            }
            let results = self.placed[*launch as usize].result_start;
            let results =
                &self.result_rows[results..][..self.kernels[ready.kernel as usize].results.len()];
            for (result, first) in results.iter().enumerate() {
                (self.rows).set_first(ready.bucket as usize, result, first + *row);
            }
            plan.begin(share);
        }
        Ok(index_length)
    }

    /// Whether calls of some bucket of a ragged kernel are in several launches.
    fn is_some_ragged_apart(&self) -> bool {
        let mut buckets = self.ready.iter().zip(&self.groups.shares);
        buckets.any(|(ready, share)| {
            matches!(share, Share::Apart { .. }) && self.forms[ready.kernel as usize].is_ragged
        })
    }

    /// Goes back to the first call of each bucket.
    fn begin_groups(&mut self) {
        for (ready, share) in self.ready.iter().zip(&self.groups.shares) {
            self.plans[ready.bucket as usize].begin(share);
        }
    }

    /// Finds how many rows each call of a ragged kernel makes.
    pub(super) fn measure_groups(&mut self, log: &[u64]) -> Result<(), Error> {
        let launches = self.groups.launches.iter();
        (self.ragged).begin_groups(launches.map(|launch| launch.calls));
        self.begin_groups();
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.forms.get(self.plans[bucket].kernel as usize))
        {
            let Some(form) = entry.kernel else {
                continue;
            };
            let plan = &mut self.plans[entry.bucket];
            let Some((launch, call)) = plan.take_place(&self.groups) else {
                return all_inside(true);
            };
            if form.is_ragged {
                (self.ragged).set_rows(launch, call, form.rows(entry.slots));
            }
        }
        Ok(())
    }

    /// Gives a launch rows for its results and a place for its index lists.
    fn place(&mut self, kernel: u32, calls: u32, rows: u32, index_length: &mut usize) {
        let of_kernel = &self.kernels[kernel as usize];
        let form = &of_kernel.form;
        let entries = match form.unit {
            Unit::Rows => rows,
            Unit::Calls => calls,
        };
        self.placed.push(Placed {
            kernel,
            calls,
            rows,
            entries,
            index_start: *index_length,
            result_start: self.result_rows.len(),
            list_start: self.lists.add(of_kernel.lists, entries),
            ragged: match form.is_ragged {
                true => Some(self.ragged.add(form, calls)),
                false => None,
            },
        });
        for pool in &of_kernel.results {
            let next = &mut self.next_rows[*pool];
            self.result_rows.push(*next as u32);
            *next += u64::from(rows);
        }
        // Where the unit is the call, one list more may tell where results begin.
        let lists = of_kernel.operands.len() + usize::from(form.unit == Unit::Calls);
        *index_length += lists * entries as usize;
    }

    /// Reads the lengths of all lists, and gives them a place in the index behind everything else.
    pub(super) fn place_lists(
        &mut self,
        recorder: &Recorder,
        index_length: &mut usize,
    ) -> Result<(), Error> {
        if self.lists.operands.is_empty() {
            return Ok(());
        }
        let (log, mut at) = (recorder.log(), 0);
        for calls in recorder.replayed() {
            self.measure_lists(&log[at..calls.place])?;
            at = calls.place;
            self.measure_replayed(&calls);
        }
        self.measure_lists(&log[at..])?;
        self.begin_groups();
        self.lists.place(index_length)
    }

    /// Notes the lengths of the lists of calls in the log.
    fn measure_lists(&mut self, log: &[u64]) -> Result<(), Error> {
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.plans[bucket].kernel as usize))
        {
            let Some(kernel) = entry.kernel else {
                continue;
            };
            let (plan, form) = (&mut self.plans[entry.bucket], &kernel.form);
            let rows = form.rows(entry.slots);
            let Some(spot) = plan.take(&self.groups, form, &self.ragged, rows) else {
                return all_inside(true);
            };
            let lists = kernel.operands.iter().zip(entry.slots);
            let lists = lists.filter(|(operand, _)| matches!(operand, Operand::Rows { .. }));
            for ((_, length), list) in lists.zip(self.placed[spot.launch].list_start..) {
                match form.unit {
                    // Every row of a call has the list.
                    Unit::Rows => {
                        for row in spot.row..spot.row + rows as usize {
                            self.lists.set_length(list, row, *length);
                        }
                    }
                    Unit::Calls => self.lists.set_length(list, spot.call, *length),
                }
            }
        }
        Ok(())
    }

    /// Makes the list 0, 1, 2, … as long as the longest launch, and room for copies.
    pub(super) fn make_lists(&mut self) -> Result<(), Error> {
        let longest = self.all_placed().map(|placed| placed.entries).max();
        let longest = longest.unwrap_or(0) as usize;
        if self.identity_length < longest {
            let length = longest.next_power_of_two();
            self.identity
                .ensure(length * size_of::<u32>(), "the index lists of a batch")?;
            let list = &mut self.identity.words_mut()[..length];
            for (entry, row) in list.iter_mut().zip(0..) {
                *entry = row;
            }
            self.identity_length = length;
        }
        if !self.gather_fusion {
            let bytes = self.all_placed().map(|placed| {
                let kernel = &self.kernels[placed.kernel as usize];
                copies_bytes(kernel, placed.entries, &self.bases)
            });
            let bytes = bytes.max().unwrap_or(0);
            self.copies.ensure(bytes, "copies of operands")?;
        }
        Ok(())
    }
}

impl BucketPlan {
    /// The first call of the bucket is the next one that [`BucketPlan::take`] gives.
    fn begin(&mut self, share: &Share) {
        (self.placed, self.next, self.next_row) = match *share {
            Share::Whole { launch, call, row } => (launch as usize, call, row),
            Share::Apart { start } => (APART, start, 0),
        };
    }

    /// Whether each of the bucket's calls has a place of its own.
    pub fn is_apart(&self) -> bool {
        self.placed == APART
    }

    /// The launch of the bucket's next call, and its number in it.
    #[inline]
    fn take_place(&mut self, groups: &Groups) -> Option<(u32, u32)> {
        let next = self.next;
        self.next += 1;
        match self.placed {
            APART => groups.places.get(next as usize).copied(),
            placed => Some((placed as u32, next)),
        }
    }

    /// The place of the bucket's next call, which makes `rows` rows.
    #[inline]
    pub fn take(
        &mut self,
        groups: &Groups,
        form: &CallForm,
        ragged: &RaggedLaunches,
        rows: u64,
    ) -> Option<Spot> {
        let (launch, call) = self.take_place(groups)?;
        let row = match (form.is_ragged, self.placed) {
            (false, _) => call,
            (true, APART) => ragged.start(launch, call),
            (true, _) => {
                self.next_row += rows as u32;
                self.next_row - rows as u32
            }
        };
        Some(Spot {
            launch: launch as usize,
            call: call as usize,
            row: row as usize,
        })
    }
}
