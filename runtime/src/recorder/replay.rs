//! Calls of an instance whose structure is known: they are written to the log without running the control program.
//!
//! A [`Recording`] is what the control program records of a structure, relative to where an instance's calls begin in
//! each bucket, to its input rows and to the rows that its numbers choose. Writing it for an instance is
//! one addition a slot.

use cohort_abi::Handle;

use super::Recorder;

/// The order key of calls that may be shared: the first phase, the first depth.
pub(super) const SHARED_KEY: u64 = 1;

/// A slot as the sum of one of the instance's *bases* and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    /// Bits of the offset: a result and a position in a bucket, as in a handle.
    const BASE_SHIFT: u32 = Handle::BUCKET_SHIFT;

    /// `None` if there are too many bases, or the offset is too large.
    pub fn new(base: usize, offset: u64) -> Option<Word> {
        let base = u64::try_from(base).ok()?;
        (base < 1 << (u64::BITS - Self::BASE_SHIFT) && offset < 1 << Self::BASE_SHIFT)
            .then_some(Word(base << Self::BASE_SHIFT | offset))
    }

    #[inline]
    fn of(self, bases: &[u64]) -> u64 {
        bases[(self.0 >> Self::BASE_SHIFT) as usize] + (self.0 & ((1 << Self::BASE_SHIFT) - 1))
    }
}

/// A row of a parameter that a number chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chosen {
    /// Which of the instance's numbers.
    pub number: u32,
    /// The source, and its rows.
    pub source: u32,
    pub rows: u64,
}

/// A call that is equal to others on the same row, see [`crate::sharing`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCall {
    pub kernel: u32,
    pub operand: Word,
}

/// The calls of a kernel at an order key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub kernel: u32,
    pub key: u64,
    pub rows: u32,
    /// Of a ragged kernel.
    pub calls: u32,
}

/// What is recorded of instances of one structure.
///
/// The bases of an instance are, one behind another, `constants`, the first input row of each space, what is `chosen`,
/// results of the `shared` calls, and the first call in the bucket of each of the `groups`; then the numbers of these
/// buckets.
#[derive(Debug, Default)]
pub struct Recording {
    pub(super) constants: Box<[u64]>,
    pub(super) chosen: Box<[Chosen]>,
    pub(super) shared: Box<[SharedCall]>,
    pub(super) groups: Box<[Group]>,
    /// The entries of the log.
    pub(super) log: Box<[Word]>,
    /// The result's slots and what belongs to it, see [`crate::structure::Image`]; an address is one as its place.
    pub(super) results: Box<[Word]>,
    pub(super) addresses: Box<[u32]>,
    /// What the instance uses of its limits: calls, rows beyond one each, bytes.
    pub(super) nodes: u64,
    pub(super) rows: i64,
    pub(super) bytes: u64,
}

impl Recording {
    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        size_of::<Recording>()
            + size_of_val(&*self.constants)
            + size_of_val(&*self.chosen)
            + size_of_val(&*self.shared)
            + size_of_val(&*self.groups)
            + size_of_val(&*self.log)
            + size_of_val(&*self.results)
            + size_of_val(&*self.addresses)
    }
}

impl Recording {
    /// Writes a result, its own slots and the rest.
    fn write_results(&self, bases: &[u64], own: &mut [u64], rest: &mut [u64]) {
        let words = self.results.iter().map(|word| word.of(bases));
        let first = rest.as_ptr();
        let slots = own.len();
        for (slot, value) in own.iter_mut().chain(&mut *rest).zip(words) {
            *slot = value;
        }
        for place in &self.addresses {
            let place = *place as usize;
            let slot = match place.checked_sub(slots) {
                None => &mut own[place],
                Some(place) => &mut rest[place],
            };
            *slot = first.wrapping_add(*slot as usize - slots) as u64;
        }
    }
}

impl Recorder {
    /// Records the calls of the instance that has just begun and writes its result. `data` are its first input rows,
    /// one a space, and its numbers, as [`crate::structure::Reading::read`] gives them.
    ///
    /// Where the instance or the batch has no room for them, or a number chooses no row, nothing is written, and the
    /// answer is `false`: the control program then tells what is wrong.
    pub fn replay(&mut self, recording: &Recording, data: &[u64], results: &mut [u64]) -> bool {
        let mut bases = std::mem::take(&mut self.bases);
        let is_done = self.replay_on(recording, data, results, &mut bases);
        self.bases = bases;
        is_done
    }

    fn replay_on(
        &mut self,
        recording: &Recording,
        data: &[u64],
        results: &mut [u64],
        bases: &mut Vec<u64>,
    ) -> bool {
        let entries = recording.log.len() + 2 * recording.shared.len();
        if self.state.memory_left < recording.bytes || self.log.try_reserve(entries).is_err() {
            return false;
        }
        let (origins, numbers) = data.split_at(self.numbering.spaces);
        bases.clear();
        bases.extend_from_slice(&recording.constants);
        bases.extend_from_slice(origins);
        for chosen in &recording.chosen {
            let row = numbers[chosen.number as usize] as i32;
            if row < 0 || row as u64 >= chosen.rows {
                return false;
            }
            bases.push(Handle::new(chosen.source, 0, row as u32).0);
        }
        for call in &recording.shared {
            match self.share_call(call.kernel, call.operand.of(bases)) {
                Some(handle) => bases.push(handle),
                None => return false,
            }
        }
        let first_group = bases.len();
        for group in &recording.groups {
            let Some(bucket) = self.buckets.at(group.kernel, group.key) else {
                return false;
            };
            bases.push(Handle::new(bucket, 0, self.buckets.rows(bucket as usize)).0);
        }
        let Some(rest) = self.allocate(recording.results.len() - results.len()) else {
            return false;
        };
        for (group, place) in recording.groups.iter().zip(first_group..) {
            let bucket = Handle(bases[place]).bucket();
            self.buckets.append(bucket, group.rows);
            if group.calls > 0 {
                self.buckets.add_calls(bucket, group.calls);
            }
            bases.push(u64::from(bucket));
        }
        let entries = recording.log.iter().map(|word| word.of(bases));
        self.log.extend(entries);
        recording.write_results(bases, results, rest);
        self.take_calls(recording.nodes);
        self.state.rows_left -= recording.rows;
        self.state.memory_left -= recording.bytes;
        true
    }

    /// The handle of a call on a parameter's row, which is made if there is no equal one. `None` where there is no
    /// bucket for it, or where the equal one has another order key, as an instance may make it in a later phase.
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
}
