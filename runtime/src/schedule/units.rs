//! The calls of a flush as *units*: calls of one bucket that read the same units, one operand like the
//! other.
//!
//! The calls of a unit become ready together whatever the order, so to schedule units is to schedule
//! calls. Where instances do the same, a unit is a bucket, and a flush of thousands of calls has a dozen
//! of them; where each has a structure of its own, most calls are units of their own.
//!
//! A *kind* is a kernel in a phase; only calls of one kind may be launched together. The *rank* of a unit
//! is the number of calls of its kind on the longest way to it, itself included. A kind needs as many
//! launches as its highest rank. By depth it has as many as it has buckets, so where some unit's rank is
//! that number, no order does with fewer; where this is so of all kinds, the search is over, most often
//! long before the last call.

use cohort_abi::Handle;

use super::{Ready, Recorded};
use crate::program::call_form::CallForm;
use crate::program::log::Entries;
use crate::program::slot::Slot;

/// No call of the flush: computed before it, or a source. And no unit.
pub const NONE: u32 = u32::MAX;

/// In what a bucket has for its first row: the rows have entries of their own.
const IS_MAPPED: u32 = 1 << 31;
/// As many units of a bucket are compared with a call before it is one by itself.
const MOST_COMPARED: usize = 4;
/// Numbers on the longest ways that are kept at most.
const MOST_CELLS: usize = 1 << 24;

/// What units of one launch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The phase of the calls.
    pub phase: u32,
    /// The kernel's number in the manifest.
    pub kernel: u32,
    /// How many buckets it has,
    pub buckets: u32,
    /// and how many all kinds before it have.
    pub first_bucket: u32,
    calls: u64,
    /// Of its calls' depths.
    depths: u64,
    /// Where the longest ways count its calls; [`NONE`] of a kind with one bucket, all of whose calls are
    /// of the first rank.
    column: u32,
    highest: u32,
}

/// Calls of a bucket that read the same units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// An index into [`Units::kinds`].
    pub kind: u32,
    /// From 1; not known where there would be too much to remember.
    pub rank: u32,
    /// Where its inputs begin and end.
    inputs: (u32, u32),
    /// The unit of the same bucket that was found before it.
    pub before: u32,
}

/// What is known of a bucket by its number.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The number of its first call, or, with [`IS_MAPPED`], of its first row in `mapped`.
    first: u32,
    /// The unit of all its calls, if there is but one; then `unit_of` need not tell. [`NONE`] of one whose
    /// rows are mapped.
    only: u32,
    /// How many calls, and how many rows, were seen so far.
    calls: u32,
    rows: u32,
    /// The place in the list of buckets, or [`NONE`] of a bucket of ghosts.
    index: u32,
}

const NO_ENTRY: Entry = Entry {
    first: NONE,
    only: NONE,
    calls: 0,
    rows: 0,
    index: NONE,
};

/// What is known of a bucket by its place in the list.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    /// An index into [`Units::kinds`].
    pub kind: u32,
    /// Of its first call, in the order of buckets.
    pub first_call: u32,
    /// Its last unit; the others are before that.
    pub last: u32,
}

/// All units of a flush, and which of them each reads.
#[derive(Debug, Default)]
pub struct Units {
    /// In order of phase, and then of the average depth of their calls.
    pub kinds: Vec<Kind>,
    /// In the order in which they were found.
    pub units: Vec<Unit>,
    /// The units that each unit reads; one that it reads twice is there twice.
    inputs: Vec<u32>,
    /// In the order in which they were given.
    pub buckets: Vec<Bucket>,
    /// Of each call of a bucket with several units, calls being counted bucket by bucket.
    pub unit_of: Vec<u32>,
    entries: Vec<Entry>,
    /// A bit of each bucket: whether it is one of the flush. Most handles are of none where tensors decide,
    /// and of far more buckets than what is known of each has room for in a cache.
    is_of_flush: Vec<u64>,
    /// By row of a bucket of ghosts or of a ragged kernel: a unit, or [`NONE`].
    mapped: Vec<u32>,
    /// Of each unit, a row of columns: the most calls of a kind on the longest way to it.
    ways: Vec<u32>,
    columns: usize,
    has_ranks: bool,
    /// The places of buckets in order of their kinds.
    sorted: Vec<u32>,
    /// The units that the call at hand reads.
    read: Vec<u32>,
}

impl Units {
    /// Finds the units of all calls; or does not, where no order has fewer launches than that of depth.
    /// `buckets` are those of calls, without the ghosts'.
    pub fn find(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> bool {
        let open = self.list_kinds(buckets);
        if open == 0 {
            return false;
        }
        self.enter(recorded, buckets);
        let is_complete = self.read_log(recorded, buckets, open);
        for ready in buckets.iter().chain(recorded.ghosts) {
            self.is_of_flush[ready.bucket as usize / 64] = 0;
        }
        is_complete
    }

    /// How many units.
    pub fn count(&self) -> usize {
        self.units.len()
    }

    /// Whether the ranks of units are known.
    pub fn has_ranks(&self) -> bool {
        self.has_ranks
    }

    /// The units that each unit reads, those of one unit behind those of another.
    pub fn inputs(&self) -> &[u32] {
        &self.inputs
    }

    /// The units that a unit reads; one that it reads twice is there twice.
    pub fn inputs_of(&self, unit: usize) -> &[u32] {
        let (begin, end) = self.units[unit].inputs;
        &self.inputs[begin as usize..end as usize]
    }

    /// Makes the kinds; gives how many have several buckets.
    fn list_kinds(&mut self, buckets: &[Ready]) -> usize {
        self.sorted.clear();
        self.sorted.extend(0..buckets.len() as u32);
        let of = |index: &u32| &buckets[*index as usize];
        (self.sorted).sort_unstable_by_key(|index| (of(index).phase, of(index).kernel));
        self.kinds.clear();
        for ready in self.sorted.iter().map(of) {
            let depths = u64::from(ready.depth) * u64::from(ready.calls);
            match self.kinds.last_mut() {
                Some(kind) if (kind.phase, kind.kernel) == (ready.phase, ready.kernel) => {
                    kind.buckets += 1;
                    kind.calls += u64::from(ready.calls);
                    kind.depths += depths;
                }
                _ => self.kinds.push(Kind {
                    phase: ready.phase,
                    kernel: ready.kernel,
                    buckets: 1,
                    // Who it is, until it is in order.
                    first_bucket: self.kinds.len() as u32,
                    calls: u64::from(ready.calls),
                    depths,
                    column: NONE,
                    highest: 0,
                }),
            }
        }
        self.kinds.iter().filter(|kind| kind.buckets > 1).count()
    }

    /// Puts the kinds in order, and gives every bucket its kind and its calls numbers.
    fn enter(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) {
        self.units.clear();
        self.inputs.clear();
        self.ways.clear();
        self.mapped.clear();
        self.buckets.clear();
        let nothing = Bucket {
            kind: 0,
            first_call: 0,
            last: NONE,
        };
        self.buckets.resize(buckets.len(), nothing);
        // The buckets of a kind are together, those of the kinds one behind another as kinds were listed.
        let mut sorted = self.sorted.iter();
        for kind in &self.kinds {
            for index in sorted.by_ref().take(kind.buckets as usize) {
                self.buckets[*index as usize].kind = kind.first_bucket;
            }
        }
        self.kinds.sort_unstable_by(by_average_depth);
        self.sorted.clear();
        self.sorted.resize(self.kinds.len(), 0);
        (self.columns, self.has_ranks) = (0, true);
        let mut before = 0;
        for (number, kind) in self.kinds.iter_mut().enumerate() {
            self.sorted[kind.first_bucket as usize] = number as u32;
            kind.first_bucket = before;
            before += kind.buckets;
            if kind.buckets > 1 {
                kind.column = self.columns as u32;
                self.columns += 1;
            }
        }
        let mut calls = 0;
        for (index, (ready, bucket)) in buckets.iter().zip(&mut self.buckets).enumerate() {
            bucket.kind = self.sorted[bucket.kind as usize];
            bucket.first_call = calls;
            let is_ragged = recorded.forms[ready.kernel as usize].is_ragged;
            let first = match is_ragged {
                false => calls,
                true => map(&mut self.mapped, ready.rows),
            };
            enter(
                &mut self.entries,
                &mut self.is_of_flush,
                ready.bucket,
                first,
                index as u32,
            );
            calls += ready.calls;
        }
        for ghost in recorded.ghosts {
            let first = map(&mut self.mapped, ghost.rows);
            enter(
                &mut self.entries,
                &mut self.is_of_flush,
                ghost.bucket,
                first,
                NONE,
            );
        }
        if self.unit_of.len() < calls as usize {
            self.unit_of.resize(calls as usize, NONE);
        }
    }

    /// Goes over the calls until nothing more can be gained; whether all are units then.
    fn read_log(&mut self, recorded: Recorded<'_>, buckets: &[Ready], mut open: usize) -> bool {
        let mut calls = Entries::of(recorded.log);
        while let Some(call) = calls.next(|number| {
            let ready = buckets.get(self.entries[number].index as usize)?;
            Some(&recorded.forms[ready.kernel as usize])
        }) {
            let (number, slots) = (call.bucket, call.slots);
            let entry = self.entries[number];
            let Some(form) = call.kernel else {
                let row = (entry.first & !IS_MAPPED) + entry.rows;
                self.mapped[row as usize] = self.unit_at(slots[0]);
                self.entries[number].rows += 1;
                continue;
            };
            let ready = &buckets[entry.index as usize];
            let bucket = self.buckets[entry.index as usize];
            // Nothing of the flush lies before the first depth, so nobody needs to look.
            let is_first = (ready.phase, ready.depth) == (0, 1) && bucket.last != NONE;
            let unit = match is_first || self.reads_the_same(bucket.last, form, slots) {
                true => bucket.last,
                false => {
                    self.note_inputs(form, slots);
                    match self.same_unit(bucket) {
                        Some(unit) => unit,
                        None => {
                            open -= usize::from(self.add_unit(entry.index as usize));
                            if open == 0 {
                                return false;
                            }
                            self.units.len() as u32 - 1
                        }
                    }
                }
            };
            let seen = &mut self.entries[number];
            seen.calls += 1;
            if entry.calls == 0 && entry.first & IS_MAPPED == 0 {
                seen.only = unit;
            } else if entry.only != unit {
                // What is known of all its calls so far is known of each from now on.
                let first = bucket.first_call as usize;
                let end = first + entry.calls as usize;
                if entry.only != NONE {
                    self.unit_of[first..end].fill(entry.only);
                    seen.only = NONE;
                }
                self.unit_of[end] = unit;
            }
            if form.is_ragged {
                let rows = form.rows(slots) as u32;
                let first = ((entry.first & !IS_MAPPED) + entry.rows) as usize;
                self.mapped[first..first + rows as usize].fill(unit);
                seen.rows += rows;
            }
        }
        true
    }

    /// Whether a call reads what the unit does. May say no where it does.
    #[inline]
    fn reads_the_same(&self, unit: u32, form: &CallForm, entry: &[u64]) -> bool {
        let (Some(unit), Some(handles)) = (self.units.get(unit as usize), &form.handles) else {
            return false;
        };
        let (mut next, end) = unit.inputs;
        for slot in handles {
            let read = self.unit_at(entry[*slot]);
            if read != NONE {
                if next == end || self.inputs[next as usize] != read {
                    return false;
                }
                next += 1;
            }
        }
        next == end
    }

    /// Notes the units that a call reads.
    fn note_inputs(&mut self, form: &CallForm, entry: &[u64]) {
        self.read.clear();
        let (operands, lists) = entry.split_at(form.slots.len());
        for (index, (operand, slot)) in operands.iter().zip(&form.slots).enumerate() {
            // The handle of no rows may be that of the next call's.
            let is_read = *slot == Slot::Row && !(form.is_ragged && form.is_empty(index, entry));
            if is_read {
                self.note_input(*operand);
            }
        }
        lists.iter().for_each(|handle| self.note_input(*handle));
    }

    fn note_input(&mut self, handle: u64) {
        let unit = self.unit_at(handle);
        if unit != NONE {
            self.read.push(unit);
        }
    }

    /// The unit of the call that a handle names, if it is one of the flush.
    #[inline]
    fn unit_at(&self, handle: u64) -> u32 {
        let handle = Handle(handle);
        let bucket = handle.bucket() as usize;
        let bits = self.is_of_flush.get(bucket / 64).copied().unwrap_or(0);
        if bits >> (bucket % 64) & 1 == 0 {
            return NONE;
        }
        let entry = &self.entries[bucket];
        if entry.only != NONE {
            return entry.only;
        }
        let (units, first) = match entry.first & IS_MAPPED {
            0 => (&self.unit_of, entry.first),
            _ => (&self.mapped, entry.first & !IS_MAPPED),
        };
        let at = first as usize + handle.position() as usize;
        units.get(at).copied().unwrap_or(NONE)
    }

    /// The unit of the bucket that reads the same as the call at hand.
    fn same_unit(&self, bucket: Bucket) -> Option<u32> {
        let mut unit = bucket.last;
        for _ in 0..MOST_COMPARED {
            if unit == NONE {
                return None;
            }
            // Most are of one or two units, so they are compared here and not by a function's call.
            let inputs = self.inputs_of(unit as usize);
            let mut pairs = inputs.iter().zip(&self.read);
            if inputs.len() == self.read.len() && pairs.all(|(a, b)| a == b) {
                return Some(unit);
            }
            unit = self.units[unit as usize].before;
        }
        None
    }

    /// Makes a unit of the call at hand; whether no order can have fewer launches of its kind than that of
    /// depth, which was not known before.
    fn add_unit(&mut self, bucket: usize) -> bool {
        let bucket = &mut self.buckets[bucket];
        let number = self.units.len();
        let begin = self.inputs.len();
        self.inputs.extend_from_slice(&self.read);
        let mut unit = Unit {
            kind: bucket.kind,
            rank: 1,
            inputs: (begin as u32, self.inputs.len() as u32),
            before: bucket.last,
        };
        bucket.last = number as u32;
        let mut is_closed = false;
        if self.has_ranks {
            let columns = self.columns;
            self.ways.resize((number + 1) * columns, 0);
            let (before, own) = self.ways.split_at_mut(number * columns);
            for input in &self.read {
                let input = &before[*input as usize * columns..][..columns];
                for (own, input) in own.iter_mut().zip(input) {
                    *own = (*own).max(*input);
                }
            }
            let kind = &mut self.kinds[unit.kind as usize];
            if let Some(own) = own.get_mut(kind.column as usize) {
                *own += 1;
                unit.rank = *own;
                is_closed = *own > kind.highest && *own == kind.buckets;
                kind.highest = kind.highest.max(*own);
            }
            self.has_ranks = self.ways.len() <= MOST_CELLS;
        }
        self.units.push(unit);
        is_closed
    }
}

/// By phase; then by the average, exactly, in whole numbers, so that ties are ties; then by kernel.
fn by_average_depth(a: &Kind, b: &Kind) -> std::cmp::Ordering {
    let scaled = |kind: &Kind, other: &Kind| u128::from(kind.depths) * u128::from(other.calls);
    (a.phase, scaled(a, b), a.kernel).cmp(&(b.phase, scaled(b, a), b.kernel))
}

/// Room for the calls of that many rows.
fn map(mapped: &mut Vec<u32>, rows: u32) -> u32 {
    let first = mapped.len();
    mapped.resize(first + rows as usize, NONE);
    first as u32 | IS_MAPPED
}

fn enter(
    entries: &mut Vec<Entry>,
    is_of_flush: &mut Vec<u64>,
    bucket: u32,
    first: u32,
    index: u32,
) {
    let bucket = bucket as usize;
    if entries.len() <= bucket {
        entries.resize(bucket + 1, NO_ENTRY);
        is_of_flush.resize(bucket / 64 + 1, 0);
    }
    is_of_flush[bucket / 64] |= 1 << (bucket % 64);
    entries[bucket] = Entry {
        first,
        index,
        ..NO_ENTRY
    };
}
