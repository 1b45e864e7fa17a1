//! Calls of an instance whose structure is known: they are recorded without running the control program.
//!
//! A [`Recording`] is what the control program records of a structure. For an instance of it buckets are found, equal
//! calls are looked up, and it is noted where the instance's rows begin. Its calls are not written to the log: the
//! flush makes index lists of the recording itself ([`crate::execute`]). What looks at the calls of a flush one by one
//! reads the log, and [`Recorder::write_out`] writes them there before.

use cohort_abi::Handle;

use super::Recorder;
use super::recording::{Part, Recording};
use crate::slot::Slot;

/// The order key of calls that may be shared: the first phase, the first depth.
pub(super) const SHARED_KEY: u64 = 1;

/// An instance whose calls are not in the log.
#[derive(Debug)]
struct Instance {
    recording: Recording,
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
    /// Those that an instance has of its own, one behind another.
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
    /// The instance's own bases, those of groups last.
    pub bases: &'a [u64],
    /// Where in the log they would begin.
    pub place: usize,
}

impl<'a> Calls<'a> {
    /// The base of each group.
    #[inline]
    pub fn of_groups(&self) -> &'a [u64] {
        &self.bases[self.bases.len() - self.recording.groups().len()..]
    }
}

impl Recorder {
    /// Records the calls of the instance that has just begun and writes its result. `data` are its first input rows,
    /// one a space, and its numbers, as [`crate::structure::Reading::read`] gives them.
    ///
    /// Where the instance or the batch has no room for them, or a number chooses no row, nothing is recorded but
    /// calls that may be shared, and the answer is `false`: the control program then tells what is wrong.
    pub fn replay(&mut self, recording: Recording, data: &[u64], results: &mut [u64]) -> bool {
        let first = self.replayed.bases.len();
        let mut bases = std::mem::take(&mut self.replayed.bases);
        let is_done = self.replay_on(&recording, data, results, &mut bases, first);
        self.replayed.bases = bases;
        match is_done {
            true => self.replayed.instances.push(Instance {
                recording,
                bases: first,
                place: self.log.len(),
                segment: self.state.segment,
            }),
            false => self.replayed.bases.truncate(first),
        }
        is_done
    }

    fn replay_on(
        &mut self,
        recording: &Recording,
        data: &[u64],
        results: &mut [u64],
        bases: &mut Vec<u64>,
        first: usize,
    ) -> bool {
        let used = recording.used();
        if self.state.memory_left < used.bytes {
            return false;
        }
        let (origins, numbers) = data.split_at(self.numbering.spaces);
        let inputs = recording.part(Part::Inputs).iter();
        let (chosen, shared) = (recording.chosen(), recording.shared());
        let own = inputs.len() + chosen.len() + shared.len() + recording.groups().len();
        if bases.try_reserve(own).is_err() {
            return false;
        }
        bases.extend(inputs.map(|space| origins[*space as usize]));
        for chosen in chosen {
            let row = numbers[chosen.number as usize] as u32;
            // One with a sign is larger than any.
            if row >= chosen.rows {
                return false;
            }
            bases.push(Handle::new(chosen.source, 0, row).0);
        }
        for call in shared {
            let operand = call.operand as usize;
            let operand = match operand.checked_sub(own) {
                Some(constant) => recording.constant(constant),
                None => bases[first + operand],
            };
            match self.share_call(call.kernel, operand) {
                Some(handle) => bases.push(handle),
                None => return false,
            }
        }
        let of_groups = bases.len();
        for group in recording.groups() {
            let Some(bucket) = self.buckets.at(group.kernel, group.key) else {
                return false;
            };
            bases.push(Handle::new(bucket, 0, self.buckets.rows(bucket as usize)).0);
        }
        let rest = recording.part(Part::Results).len() - results.len();
        let Some(rest) = self.allocate(rest) else {
            return false;
        };
        for (group, base) in recording.groups().zip(&bases[of_groups..]) {
            let bucket = Handle(*base).bucket();
            self.buckets.append(bucket, group.rows);
            if self.kernels[group.kernel as usize].form.is_ragged {
                self.buckets.add_calls(bucket, group.calls);
            }
        }
        recording.write_results(&bases[first..], results, rest);
        self.take_calls(used.calls);
        self.state.rows_left -= used.rows;
        self.state.memory_left -= used.bytes;
        true
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
        if let Some(kept) = shared.kept.keep(row) {
            self.new_kept.push(kernel);
            return Some(kept.0);
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
            recording: &instance.recording,
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
            self.write_calls(&instance.recording, self.replayed.bases(number), &mut log);
        }
        for begin in &mut self.segments[segment..] {
            *begin += log.len() - written;
        }
        log.extend_from_slice(&self.log[written..]);
        self.replayed.spare = std::mem::replace(&mut self.log, log);
        self.replayed.clear();
    }

    /// Appends the entries of an instance's groups to a log.
    fn write_calls(&self, recording: &Recording, bases: &[u64], log: &mut Vec<u64>) {
        let mut columns = recording.part(Part::Columns);
        let of_groups = &bases[bases.len() - recording.groups().len()..];
        for (group, base) in recording.groups().zip(of_groups) {
            let (own, rest) = columns.split_at(group.words as usize);
            columns = rest;
            let slots = &self.kernels[group.kernel as usize].form.slots;
            let calls = group.calls as usize;
            // Where the next call's part of each list is.
            let mut lists: Vec<usize> = Vec::new();
            let mut listed = slots.len() * calls;
            for (slot, column) in slots.iter().zip(0..) {
                if *slot == Slot::List {
                    lists.push(listed);
                    let lengths = &own[column * calls..][..calls];
                    listed += lengths.iter().map(|length| *length as usize).sum::<usize>();
                }
            }
            for call in 0..calls {
                log.push(u64::from(Handle(*base).bucket()));
                let words = (0..slots.len()).map(|column| own[column * calls + call]);
                log.extend(
                    slots
                        .iter()
                        .zip(words.clone())
                        .map(|(slot, word)| match slot {
                            Slot::Row => recording.handle(bases, word),
                            Slot::Scalar | Slot::List => u64::from(word),
                        }),
                );
                let lengths = slots.iter().zip(words);
                let lengths = lengths.filter(|(slot, _)| **slot == Slot::List);
                for ((_, length), next) in lengths.zip(&mut lists) {
                    let rows = &own[*next..][..length as usize];
                    log.extend(rows.iter().map(|word| recording.handle(bases, *word)));
                    *next += length as usize;
                }
            }
        }
    }
}
