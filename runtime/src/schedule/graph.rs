//! The calls of a flush with what each waits for, one by one: what whole instances are compared by, and
//! what an explanation looks at.
//!
//! Calls are numbered in the order in which they were recorded. Ghosts are not calls: a call that
//! reads one waits for what it stands for. A *kind* is a kernel in a phase; only calls of one kind may be
//! launched together.

use cohort_abi::Handle;

use super::{Ready, Recorded};
use crate::program::call_form::CallForm;
use crate::program::log::Entries;
use crate::program::slot::Slot;

/// No call of the flush: computed before it, or a source.
const NONE: u32 = u32::MAX;

/// What calls of one launch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The phase of the calls.
    pub phase: u32,
    /// The kernel's number in the manifest.
    pub kernel: u32,
}

/// What is known of a bucket by its number.
#[derive(Clone, Copy)]
struct OfBucket {
    kind: u32,
    kernel: u32,
    /// Of its next call.
    next_place: u32,
}

/// All calls of a flush, and which of them each reads.
#[derive(Debug, Default)]
pub struct CallGraph {
    /// In order of phase.
    pub kinds: Vec<Kind>,
    /// Of each call.
    pub kind: Vec<u32>,
    /// The calls that a call reads; one that it reads twice is there twice. Those of call `c` are
    /// `inputs[input_ends[c - 1]..input_ends[c]]`.
    pub inputs: Vec<u32>,
    /// Of each call, where its part of `inputs` ends.
    pub input_ends: Vec<u32>,
    /// The first call of each instance.
    pub segments: Vec<u32>,
    /// Of each call, its number when calls are counted bucket by bucket, as these are listed.
    pub places: Vec<u32>,
    /// By bucket: where its rows begin in `calls`, and the calls that make them, by position.
    bucket_starts: Vec<u32>,
    calls: Vec<u32>,
}

impl CallGraph {
    /// `buckets` are those of calls, without the ghosts'.
    pub fn build(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) {
        let Recorded { log, forms, .. } = recorded;
        let mut of_buckets = self.prepare(buckets, recorded.ghosts);
        let mut next: Vec<u32> = self.bucket_starts.clone();
        let mut segments = recorded.segments.iter().peekable();
        let mut entries = Entries::of(log);
        while let Some(entry) = entries.next(|bucket| forms.get(of_buckets[bucket].kernel as usize))
        {
            let (bucket, call) = (entry.bucket, self.kind.len() as u32);
            while segments.next_if(|begin| **begin <= entry.at).is_some() {
                self.segments.push(call);
            }
            let first = next[bucket] as usize;
            let of_bucket = &mut of_buckets[bucket];
            let Some(form) = entry.kernel else {
                next[bucket] += 1;
                self.calls[first] = self.call_of(entry.slots[0]).unwrap_or(NONE);
                continue;
            };
            let rows = form.rows(entry.slots) as usize;
            next[bucket] += rows as u32;
            self.calls[first..first + rows].fill(call);
            self.kind.push(of_bucket.kind);
            self.places.push(of_bucket.next_place);
            of_bucket.next_place += 1;
            self.add_inputs(form, entry.slots);
            self.input_ends.push(self.inputs.len() as u32);
        }
    }

    /// The calls that a call reads.
    fn add_inputs(&mut self, form: &CallForm, entry: &[u64]) {
        let (operands, lists) = entry.split_at(form.slots.len());
        for (index, (operand, slot)) in operands.iter().zip(&form.slots).enumerate() {
            // The handle of no rows may be that of the next call's.
            let is_read = *slot == Slot::Row && !(form.is_ragged && form.is_empty(index, entry));
            if is_read && let Some(input) = self.call_of(*operand) {
                self.inputs.push(input);
            }
        }
        for handle in lists {
            if let Some(input) = self.call_of(*handle) {
                self.inputs.push(input);
            }
        }
    }

    /// Empties the graph, makes kinds and a place for the calls of each bucket; gives what is known of each
    /// bucket.
    fn prepare(&mut self, buckets: &[Ready], ghosts: &[Ready]) -> Vec<OfBucket> {
        self.kind.clear();
        self.places.clear();
        self.inputs.clear();
        self.input_ends.clear();
        self.segments.clear();
        let all = || buckets.iter().chain(ghosts);
        let count = all().map(|ready| ready.bucket + 1).max().unwrap_or(0) as usize;
        self.bucket_starts.clear();
        self.bucket_starts.resize(count, NONE);
        let mut rows = 0;
        for ready in all() {
            self.bucket_starts[ready.bucket as usize] = rows;
            rows += ready.rows;
        }
        self.calls.clear();
        self.calls.resize(rows as usize, NONE);

        let mut sorted: Vec<&Ready> = buckets.iter().collect();
        sorted.sort_unstable_by_key(|ready| (ready.phase, ready.kernel));
        let nothing = OfBucket {
            kind: NONE,
            kernel: NONE,
            next_place: 0,
        };
        let mut of_buckets = vec![nothing; count];
        let mut place = 0;
        for ready in buckets {
            of_buckets[ready.bucket as usize].next_place = place;
            place += ready.calls;
        }
        self.kinds.clear();
        for ready in sorted {
            let kind = Kind {
                phase: ready.phase,
                kernel: ready.kernel,
            };
            if self.kinds.last() != Some(&kind) {
                self.kinds.push(kind);
            }
            let of_bucket = &mut of_buckets[ready.bucket as usize];
            of_bucket.kind = self.kinds.len() as u32 - 1;
            of_bucket.kernel = ready.kernel;
        }
        of_buckets
    }

    /// The call of the flush that a handle names.
    #[inline]
    fn call_of(&self, handle: u64) -> Option<u32> {
        let handle = Handle(handle);
        let start = *self.bucket_starts.get(handle.bucket() as usize)?;
        if start == NONE {
            return None;
        }
        let call = *self
            .calls
            .get(start as usize + handle.position() as usize)?;
        (call != NONE).then_some(call)
    }

    /// How many calls.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// The calls that a call reads; one that it reads twice is there twice.
    pub fn inputs_of(&self, call: usize) -> &[u32] {
        let begin = match call.checked_sub(1) {
            Some(before) => self.input_ends[before],
            None => 0,
        };
        &self.inputs[begin as usize..self.input_ends[call] as usize]
    }

    /// For each call how many calls of its own group of kinds lie on the longest way to it, itself included;
    /// `None` when that would take too much memory. `groups` has the number of each kind's, below `count`.
    fn ranks_of(&self, groups: &[u32], count: usize) -> Option<Vec<u32>> {
        const MAX_CELLS: usize = 1 << 26;
        if count.checked_mul(self.len())? > MAX_CELLS {
            return None;
        }
        // A row a call, an entry a group.
        let mut chains = vec![0_u32; count * self.len()];
        let mut ranks = Vec::with_capacity(self.len());
        for call in 0..self.len() {
            let (before, rest) = chains.split_at_mut(call * count);
            let own = &mut rest[..count];
            for input in self.inputs_of(call) {
                let input = *input as usize;
                let input = &before[input * count..(input + 1) * count];
                for (own, input) in own.iter_mut().zip(input) {
                    *own = (*own).max(*input);
                }
            }
            let group = groups[self.kind[call] as usize] as usize;
            own[group] += 1;
            ranks.push(own[group]);
        }
        Some(ranks)
    }

    /// The fewest launches of each kernel that any order can do with, whatever the phases: the calls of a
    /// kernel on one way depend on each other. Kernels that nothing calls are not there.
    pub fn fewest_launches(&self) -> Option<Vec<(u32, u32)>> {
        let mut kernels: Vec<u32> = self.kinds.iter().map(|kind| kind.kernel).collect();
        kernels.sort_unstable();
        kernels.dedup();
        let group = |kind: &Kind| kernels.partition_point(|kernel| *kernel < kind.kernel) as u32;
        let groups: Vec<u32> = self.kinds.iter().map(group).collect();
        let mut fewest = vec![0; kernels.len()];
        for (kind, rank) in (self.kind.iter()).zip(self.ranks_of(&groups, kernels.len())?) {
            let fewest = &mut fewest[groups[*kind as usize] as usize];
            *fewest = rank.max(*fewest);
        }
        Some(kernels.into_iter().zip(fewest).collect())
    }
}
