//! Calls of an instance whose structure is known: they are recorded without running the control program.
//!
//! A [`Recording`] is what the control program records of a structure. For an instance of it buckets are found, equal
//! calls are looked up, and it is noted where the instance's rows begin. Its calls are not written to the log: the
//! flush makes index lists of the recording itself ([`crate::execute`]). What looks at the calls of a flush one by one
//! reads the log, and [`Recorder::write_out`] writes them there before.

use cohort_abi::Handle;

use super::Recorder;
use super::recording::{Part, Recording, Run, SAME_ROW};
use super::recordings::Recordings;
use crate::program::slot::Slot;

/// The order key of calls that may be shared: the first phase, the first depth.
pub(super) const SHARED_KEY: u64 = 1;

/// An instance whose calls are not in the log.
#[derive(Debug)]
struct Instance {
    recording: u32,
    /// Where its bases begin.
    bases: usize,
    /// Where in the log its calls would begin.
    place: usize,
    segment: usize,
}

/// The instances since the last flush whose calls are not in the log, in order.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    instances: Vec<Instance>,
    /// Those of all of them, one behind another.
    bases: Vec<u64>,
    /// Of a log that was written out.
    spare: Vec<u64>,
}

impl Replayed {
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    pub fn clear(&mut self) {
        self.instances.clear();
        self.bases.clear();
    }

    fn bases(&self, number: usize) -> &[u64] {
        let end = match self.instances.get(number + 1) {
            Some(next) => next.bases,
            None => self.bases.len(),
        };
        &self.bases[self.instances[number].bases..end]
    }
}

/// Calls that are not in the log.
#[derive(Clone, Copy)]
pub(crate) struct Calls<'a> {
    pub recording: &'a Recording,
    /// The instance's bases, those of groups last.
    pub bases: &'a [u64],
    /// Where in the log they would begin.
    pub place: usize,
}

impl<'a> Calls<'a> {
    /// The base of each group.
    #[inline]
    pub fn of_groups(&self) -> &'a [u64] {
        &self.bases[self.recording.first_group()..]
    }
}

impl Recorder {
    /// What calls are written from.
    pub fn recordings(&mut self) -> &mut Recordings {
        &mut self.recordings
    }

    /// Records the calls of the instance that has just begun and writes its result. `data` are its first input rows,
    /// one a row pool, and its numbers, as [`crate::program::structure::Reading::read`] gives them.
    ///
    /// Where the instance or the batch has no room for them, or a number chooses no row, nothing is recorded but
    /// calls that may be shared, and the answer is `false`: the control program then tells what is wrong.
    pub fn replay(&mut self, recording: u32, data: &[u64], results: &mut [u64]) -> bool {
        let first = self.replayed.bases.len();
        let mut bases = std::mem::take(&mut self.replayed.bases);
        let recordings = std::mem::take(&mut self.recordings);
        let recording_of = recordings.get(recording);
        let done = self.replay_on(recording_of, data, results, &mut bases, first);
        self.recordings = recordings;
        self.replayed.bases = bases;
        match done {
            Some(()) => self.replayed.instances.push(Instance {
                recording,
                bases: first,
                place: self.log.len(),
                segment: self.state.segment,
            }),
            None => self.replayed.bases.truncate(first),
        }
        done.is_some()
    }

    fn replay_on(
        &mut self,
        recording: &Recording,
        data: &[u64],
        results: &mut [u64],
        bases: &mut Vec<u64>,
        first: usize,
    ) -> Option<()> {
        let (used, all) = (recording.used(), recording.bases());
        let groups = (all - recording.first_group()) as u64;
        if self.state.memory_left < used.bytes || self.buckets.left() < groups {
            return None;
        }
        bases.try_reserve(all).ok()?;
        let (origins, numbers) = data.split_at(self.numbering.row_pools);
        let inputs = recording.part(Part::Inputs).iter();
        bases.extend(inputs.map(|pool| origins[*pool as usize]));
        for chosen in recording.chosen() {
            let row = numbers[chosen.number as usize] as u32;
            // One with a sign is larger than any.
            if row >= chosen.rows {
                return None;
            }
            bases.push(Handle::new(chosen.source, 0, row).0);
        }
        for calls in recording.shared() {
            self.share_calls(calls.kernel, calls.source, calls.rows, numbers, bases)?;
        }
        let rest = recording.part(Part::Results).len() - results.len();
        let rest = self.allocate(rest)?;
        for run in recording.runs() {
            let before = bases.len();
            // There are buckets left.
            (self.buckets).append_run(run.kernel, run.key, run.rows, bases)?;
            if self.kernels[run.kernel as usize].form.is_ragged {
                for (handle, calls) in bases[before..].iter().zip(run.calls) {
                    self.buckets.add_calls(Handle(*handle).bucket(), *calls);
                }
            }
        }
        recording.write_results(&bases[first..], results, rest);
        self.take_calls(used.calls);
        self.state.rows_left -= used.rows;
        self.state.memory_left -= used.bytes;
        Some(())
    }

    /// The handles of calls of a kernel on rows of a source, as [`super::recording::SharedCalls`] have them. `None` as of
    /// [`Recorder::share_call`], or where a number chooses no row.
    fn share_calls(
        &mut self,
        kernel: u32,
        source: u32,
        mut rows: &[u32],
        numbers: &[u64],
        bases: &mut Vec<u64>,
    ) -> Option<()> {
        let row_of = |row: u32| match row & SAME_ROW {
            0 => numbers[row as usize] as u32,
            _ => row & !SAME_ROW,
        };
        while !rows.is_empty() {
            // Those that are cached are all at the same key.
            let cached = &self.kernels[kernel as usize].shared.as_ref()?.cached;
            let known = rows
                .iter()
                .map_while(|row| cached.get(row_of(*row) as usize));
            let before = bases.len();
            bases.extend(known.map(|handle| handle.0));
            let known = bases.len() - before;
            self.shared_calls += known as u64;
            rows = &rows[known..];
            if let Some((row, behind)) = rows.split_first() {
                let operand = Handle::new(source, 0, row_of(*row)).0;
                bases.push(self.share_call(kernel, operand)?);
                rows = behind;
            }
        }
        Some(())
    }

    /// The handle of a call on a parameter's row, which is made if there is no equal one. `None` where there is no
    /// bucket for it, or where the equal one has another order key, as an instance may make it in a later phase.
    #[inline]
    fn share_call(&mut self, kernel: u32, operand: u64) -> Option<u64> {
        let since = self.state.first_epoch.max(self.known_epoch);
        let shared = self.kernels[kernel as usize].shared.as_mut()?;
        let row = shared.row(operand)?;
        if let Some(handle) = shared.get(row, since) {
            self.shared_calls += 1;
            let bucket = Handle(handle).bucket() as usize;
            return (self.buckets.key(bucket) == SHARED_KEY).then_some(handle);
        }
        if let Some(cached) = shared.cached.add(row) {
            self.new_cached.push(kernel);
            return Some(cached.0);
        }
        let bucket = self.buckets.at(kernel, SHARED_KEY)?;
        if self.log.try_reserve(2).is_err() {
            return None;
        }
        let handle = Handle::new(bucket, 0, self.buckets.append(bucket, 1)).0;
        self.log.extend([u64::from(bucket), operand]);
        shared.set(row, self.epoch, handle);
        Some(handle)
    }

    /// Memory for what belongs to a result, beside its own slots.
    fn allocate(&mut self, slots: usize) -> Option<&'static mut [u64]> {
        if slots == 0 {
            return Some(&mut []);
        }
        let first = self.state.memory.alloc(slots);
        if first.is_null() {
            return None;
        }
        // SAFETY: `alloc` gave room for that many slots, which nothing else refers to and which stay until the memory
        // of the batch is taken back; all bits are numbers, and whoever asked writes them before that.
        unsafe {
            first.write_bytes(0, slots);
            Some(std::slice::from_raw_parts_mut(first, slots))
        }
    }

    /// The calls since the last flush that are not in the log, in the order of recording.
    pub(crate) fn replayed(&self) -> impl ExactSizeIterator<Item = Calls<'_>> {
        let instances = self.replayed.instances.iter().enumerate();
        instances.map(|(number, instance)| Calls {
            recording: self.recordings.get(instance.recording),
            bases: self.replayed.bases(number),
            place: instance.place,
        })
    }

    /// Writes those calls to the log as well, where each instance has its own behind those of the instances before it.
    pub fn write_out(&mut self) {
        if self.replayed.is_empty() {
            return;
        }
        let mut log = std::mem::take(&mut self.replayed.spare);
        log.clear();
        let (mut written, mut segment) = (0, 0);
        for (number, instance) in self.replayed.instances.iter().enumerate() {
            for begin in &mut self.segments[segment..=instance.segment] {
                *begin += log.len() - written;
            }
            segment = instance.segment + 1;
            log.extend_from_slice(&self.log[written..instance.place]);
            written = instance.place;
            self.write_calls(
                self.recordings.get(instance.recording),
                self.replayed.bases(number),
                &mut log,
            );
        }
        for begin in &mut self.segments[segment..] {
            *begin += log.len() - written;
        }
        log.extend_from_slice(&self.log[written..]);
        self.replayed.spare = std::mem::replace(&mut self.log, log);
        self.replayed.clear();
    }

    /// Appends the entries of an instance's groups to a log, each behind those that it reads.
    fn write_calls(&self, recording: &Recording, bases: &[u64], log: &mut Vec<u64>) {
        let mut groups = Vec::new();
        let (mut columns, mut base) = (recording.part(Part::Columns), recording.first_group());
        for run in recording.runs() {
            let slots = &self.kernels[run.kernel as usize].form.slots;
            let calls = run.all_calls as usize;
            // Where the next call's part of each list is.
            let mut lists = Vec::new();
            let mut words = slots.len() * calls;
            for (slot, lengths) in slots.iter().zip(columns.chunks(calls.max(1))) {
                if *slot == Slot::List {
                    lists.push(words);
                    words += lengths.iter().map(|length| *length as usize).sum::<usize>();
                }
            }
            let (own, behind) = columns.split_at(words);
            columns = behind;
            let mut first = 0;
            for (calls, key) in run.calls.iter().zip(run.key..) {
                let end = first + *calls as usize;
                groups.push((key, bases[base], first..end, own, run, lists.clone()));
                for (slot, lengths) in lists.iter_mut().zip(list_lengths(slots, own, run)) {
                    let lengths = lengths[first..end].iter();
                    *slot += lengths.map(|length| *length as usize).sum::<usize>();
                }
                (first, base) = (end, base + 1);
            }
        }
        groups.sort_by_key(|(key, ..)| *key);
        for (_, base, calls, own, run, mut lists) in groups {
            let slots = &self.kernels[run.kernel as usize].form.slots;
            for call in calls {
                log.push(u64::from(Handle(base).bucket()));
                let words = own[call..].iter().step_by(run.all_calls as usize);
                log.extend(slots.iter().zip(words).map(|(slot, word)| match slot {
                    Slot::Row => recording.handle(bases, *word),
                    Slot::Scalar | Slot::List => u64::from(*word),
                }));
                for (next, lengths) in lists.iter_mut().zip(list_lengths(slots, own, run)) {
                    let rows = &own[*next..][..lengths[call] as usize];
                    log.extend(rows.iter().map(|word| recording.handle(bases, *word)));
                    *next += rows.len();
                }
            }
        }
    }
}

/// Of each list of a kernel with these slots, the lengths that the calls of a run have, whose columns these are.
fn list_lengths<'r>(
    slots: &'r [Slot],
    columns: &'r [u32],
    run: Run<'_>,
) -> impl Iterator<Item = &'r [u32]> {
    let all = slots
        .iter()
        .zip(columns.chunks(run.all_calls.max(1) as usize));
    let lists = all.filter(|(slot, _)| **slot == Slot::List);
    lists.map(|(_, lengths)| lengths)
}
