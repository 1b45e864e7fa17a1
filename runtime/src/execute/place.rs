//! Steps 1 and 2 of a flush: buckets or groups become launches, and results get rows.

use cohort_abi::manifest::{Operand, Unit};

use super::Executor;
use super::indices::all_inside;
use super::launch::{Placed, copies_bytes};
use super::ragged::RaggedLaunches;
use crate::error::Error;
use crate::memory::arena::Region;
use crate::program::call_form::CallForm;
use crate::program::log::Entries;
use crate::recorder::Recorder;
use crate::schedule::groups::{Groups, Share};
use crate::schedule::{Order, Ready};

/// In place of a launch: the calls of the bucket are in several.
const APART: usize = usize::MAX;

/// Where the calls of a bucket go.
#[derive(Clone, Copy, Default)]
pub(super) struct BucketPlan {
    /// Behind the last: a bucket of ghosts.
    pub kernel: u32,
    /// The launch, if all its calls are in one.
    pub placed: usize,
    /// The number of its next call in the launch; where they are apart, of that one's place.
    pub next: u32,
    /// The rows of the calls before that, of a bucket that is a launch.
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
        self.order.clear();
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
                self.order.push(ready);
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
    pub(super) fn take_rows(&mut self, regions: &mut Vec<Region>) -> Result<(), Error> {
        self.next_rows.clear();
        self.next_rows.resize(self.arena.row_pools(), 0);
        for ready in &self.order {
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

    /// Makes each bucket a launch; returns the length of the index.
    pub(super) fn place_buckets(&mut self) -> usize {
        let mut index_length = 0;
        for index in 0..self.order.len() {
            let ready = self.order[index];
            let bucket = ready.bucket as usize;
            let first_result = self.result_rows.len();
            self.plans[bucket].placed = self.placed.len();
            self.place(ready.kernel, ready.calls, ready.rows, &mut index_length);
            for (result, row) in self.result_rows[first_result..].iter().enumerate() {
                self.rows.set_first(bucket, result, *row);
            }
        }
        index_length
    }

    /// Takes the launches from the groups; returns the length of the index.
    pub(super) fn place_groups(&mut self, log: &[u64]) -> Result<usize, Error> {
        if self.has_ragged && !self.is_padded() {
            self.measure_groups(log)?;
        }
        let mut index_length = 0;
        for index in 0..self.groups.launches.len() {
            let (kernel, calls) = self.groups.launches[index];
            let rows = match self.forms[kernel as usize].is_ragged {
                true => self.ragged.place_group(index, calls),
                false => calls,
            };
            self.place(kernel, calls, rows, &mut index_length);
        }
        self.begin_groups();
        for (ready, share) in self.order.iter().zip(&self.groups.shares) {
            let Share::Whole { launch, first } = *share else {
                continue;
            };
            let kernel = &self.kernels[ready.kernel as usize];
            let row = match kernel.form.is_ragged {
                // Padding may be between its calls.
                true if self.is_padded() => continue,
                true => self.ragged.start(launch, first),
                false => first,
            };
            let results = self.placed[launch as usize].result_start;
            for result in 0..kernel.results.len() {
                let first_row = self.result_rows[results + result] + row;
                (self.rows).set_first(ready.bucket as usize, result, first_row);
            }
        }
        Ok(index_length)
    }

    /// Makes the first call of each bucket the next one that [`BucketPlan::take_in_group`] gives.
    pub(super) fn begin_groups(&mut self) {
        for (ready, share) in self.order.iter().zip(&self.groups.shares) {
            let plan = &mut self.plans[ready.bucket as usize];
            (plan.placed, plan.next) = match *share {
                Share::Whole { launch, first } => (launch as usize, first),
                Share::Apart { start } => (APART, start),
            };
        }
    }

    /// Finds how many rows each call of a group makes.
    pub(super) fn measure_groups(&mut self, log: &[u64]) -> Result<(), Error> {
        let launches = self.groups.launches.iter();
        self.ragged.begin_groups(launches.map(|(_, calls)| *calls));
        self.begin_groups();
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.forms.get(self.plans[bucket].kernel as usize))
        {
            let Some(form) = entry.kernel else {
                continue;
            };
            let plan = &mut self.plans[entry.bucket];
            let Some((launch, call)) = plan.next_in_group(&self.groups) else {
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
        order: Order,
        index_length: &mut usize,
    ) -> Result<(), Error> {
        if self.lists.operands.is_empty() {
            return Ok(());
        }
        let (log, mut at) = (recorder.log(), 0);
        for calls in recorder.replayed() {
            self.measure_lists(&log[at..calls.place], order)?;
            at = calls.place;
            self.measure_replayed(&calls);
        }
        self.measure_lists(&log[at..], order)?;
        match order {
            Order::Buckets => {
                for ready in &self.order {
                    let plan = &mut self.plans[ready.bucket as usize];
                    (plan.next, plan.next_row) = (0, 0);
                }
            }
            Order::Groups => self.begin_groups(),
        }
        self.lists.place(index_length)
    }

    /// Notes the lengths of the lists of calls in the log.
    fn measure_lists(&mut self, log: &[u64], order: Order) -> Result<(), Error> {
        let mut entries = Entries::of(log);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.plans[bucket].kernel as usize))
        {
            let Some(kernel) = entry.kernel else {
                continue;
            };
            let (plan, form) = (&mut self.plans[entry.bucket], &kernel.form);
            let rows = form.rows(entry.slots);
            let spot = match order {
                Order::Buckets => plan.take(rows),
                Order::Groups => match plan.take_in_group::<true>(&self.groups, form, &self.ragged)
                {
                    Some(spot) => spot,
                    None => return all_inside(true),
                },
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
    /// The place of the bucket's next call, which makes `rows` rows.
    #[inline]
    pub fn take(&mut self, rows: u64) -> Spot {
        let spot = Spot {
            launch: self.placed,
            call: self.next as usize,
            row: self.next_row as usize,
        };
        self.next += 1;
        self.next_row += rows as u32;
        spot
    }
    /// Whether the bucket's calls are in several launches.
    pub fn is_apart(&self) -> bool {
        self.placed == APART
    }

    /// The launch of the bucket's next call, where launches are groups, and its number in it.
    #[inline]
    fn next_in_group(&mut self, groups: &Groups) -> Option<(u32, u32)> {
        let next = self.next;
        self.next += 1;
        match self.is_apart() {
            true => groups.places.get(next as usize).copied(),
            false => Some((self.placed as u32, next)),
        }
    }

    /// The place of the bucket's next call, where launches are groups.
    #[inline]
    pub fn take_in_group<const HAS_RAGGED: bool>(
        &mut self,
        groups: &Groups,
        form: &CallForm,
        ragged: &RaggedLaunches,
    ) -> Option<Spot> {
        let (launch, call) = self.next_in_group(groups)?;
        let row = match HAS_RAGGED && form.is_ragged {
            true => ragged.start(launch, call),
            false => call,
        };
        Some(Spot {
            launch: launch as usize,
            call: call as usize,
            row: row as usize,
        })
    }
}
