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
//! long before the last call. Often no call needs to be looked at for that: what a call waits for goes down
//! depth by depth, so a kind that is alone at each depth above its deepest has that rank. The search is given
//! up, too, where units are many for each launch that may be saved: then most calls are units by themselves,
//! and to search costs more than it saves.

use cohort_abi::Handle;

use super::{Ready, Recorded, UNITS_A_LAUNCH};
use crate::program::call_form::CallForm;
use crate::program::slot::Slot;

/// No call of the flush: computed before it, or a source. And no unit.
pub const NONE: u32 = u32::MAX;

/// In what a bucket has for its first row: the rows have entries of their own.
const IS_MAPPED: u32 = 1 << 31;
/// How many units of a bucket a call is compared with before it becomes one of its own.
const MOST_COMPARED: usize = 4;
/// Calls with as many handles or fewer are gone over in a loop of their own.
const FEW: usize = 16;
/// How many units are searched even where that saves nothing.
const FEWEST_UNITS: usize = 256;
/// The most numbers on the longest ways that are kept.
const MOST_CELLS: usize = 1 << 24;

/// What units of one launch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The phase of the calls.
    pub phase: u32,
    /// The kernel's number in the manifest.
    pub kernel: u32,
    /// How many buckets it has.
    pub buckets: u32,
    /// How many all kinds before it have together.
    pub first_bucket: u32,
    calls: u64,
    /// Of its calls' depths.
    depths: u64,
    /// Where the longest ways count its calls; [`NONE`] of a kind with one bucket, all of whose calls are
    /// of the first rank.
    column: u32,
    highest: u32,
    /// The slots with handles of its calls, where each has the same: where they begin, and how many there are.
    /// [`NONE`] where the form of the kernel's calls says.
    handles: (u32, u32),
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

/// What is known of a bucket by its number, on a line of a cache: most calls need nothing else.
///
/// It is read number by number and never whole: a processor waits for what was written by smaller parts.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
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
    /// How long the entries of its calls are behind the bucket, where all are ordinary calls of the same length; [`NONE`]
    /// where the form of the kernel's calls says.
    length: u32,
    /// As of [`Kind`]. Nothing of the flush lies before the first depth, so nobody needs to look there.
    handles: (u32, u32),
    /// As of [`Bucket`], and where the inputs of that unit begin and end.
    last: u32,
    inputs: (u32, u32),
}

const NO_ENTRY: Entry = Entry {
    first: NONE,
    only: NONE,
    calls: 0,
    rows: 0,
    index: NONE,
    length: NONE,
    handles: (0, 0),
    last: NONE,
    inputs: (0, NONE),
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
    /// By depth, how many buckets of the phase at hand there are.
    depths: Vec<u32>,
    /// The slots with handles of the calls of kinds.
    handles: Vec<u32>,
    /// The units that the call at hand reads, where these may be many.
    read: Vec<u32>,
    /// How many launches an order may save at most, as far as is known.
    savable: u32,
}

impl Units {
    /// Finds the units of all calls; or does not, where no order has fewer launches than that of depth, or none has so
    /// much fewer that it is worth a search.
    /// `buckets` are those of calls, without the ghosts', and those that [`Units::open_kinds`] was asked of last.
    pub fn find(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> bool {
        self.enter(recorded, buckets);
        let is_complete = self.read_log(recorded, buckets);
        for ready in buckets.iter().chain(recorded.ghosts) {
            self.is_of_flush[ready.bucket as usize / 64] = 0;
        }
        is_complete
    }

    /// Makes the kinds; gives how many there are of which some order may have fewer launches than that of depth, as far
    /// as their buckets tell.
    pub fn open_kinds(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> usize {
        let open = self.list_kinds(buckets);
        let is_ragged = |kind: &Kind| recorded.forms[kind.kernel as usize].is_ragged;
        // A ghost is deeper than what it names, and the depth of a ragged call may be that of an operand without rows.
        if open == 0
            || recorded.has_gaps
            || !recorded.ghosts.is_empty()
            || self.kinds.iter().any(is_ragged)
        {
            return open;
        }
        open - self.close_kinds(buckets, recorded.has_cached)
    }

    /// Finds the kinds that are alone at each depth above their deepest, where each call reads one of the depth before
    /// its own; gives how many of those with several buckets are.
    fn close_kinds(&mut self, buckets: &[Ready], has_cached: bool) -> usize {
        let (mut closed, mut begin) = (0, 0);
        for of_phase in self.kinds.chunk_by_mut(|a, b| a.phase == b.phase) {
            let count: usize = of_phase.iter().map(|kind| kind.buckets as usize).sum();
            let sorted = &self.sorted[begin..begin + count];
            begin += count;
            let depth = |index: &u32| buckets[*index as usize].depth as usize;
            self.depths.clear();
            let deepest = sorted.iter().map(depth).max().unwrap_or(0);
            self.depths.resize(deepest + 1, 0);
            sorted
                .iter()
                .for_each(|index| self.depths[depth(index)] += 1);
            if has_cached && of_phase[0].phase == 0 {
                // One more at the first depth.
                (self.depths.get_mut(1).into_iter()).for_each(|first| *first += 1);
            }
            let mut first = 0;
            for kind in of_phase {
                let own = &sorted[first..first + kind.buckets as usize];
                first += own.len();
                let shared = own.iter().filter(|index| self.depths[depth(index)] > 1);
                let deepest = own.iter().map(depth).max();
                if own.len() > 1 && shared.map(depth).all(|depth| Some(depth) == deepest) {
                    kind.highest = kind.buckets;
                    closed += 1;
                }
            }
        }
        closed
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
                    // Its number in order of arrival, until the kinds are sorted.
                    first_bucket: self.kinds.len() as u32,
                    calls: u64::from(ready.calls),
                    depths,
                    column: NONE,
                    highest: 0,
                    handles: (0, NONE),
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
        self.handles.clear();
        for kind in &mut self.kinds {
            if let Some(handles) = &recorded.forms[kind.kernel as usize].handles {
                kind.handles = (self.handles.len() as u32, handles.len() as u32);
                self.handles.extend(handles.iter().map(|slot| *slot as u32));
            }
        }
        self.kinds.sort_unstable_by(by_average_depth);
        self.sorted.clear();
        self.sorted.resize(self.kinds.len(), 0);
        (self.columns, self.has_ranks, self.savable) = (0, true, 0);
        let mut before = 0;
        for (number, kind) in self.kinds.iter_mut().enumerate() {
            self.sorted[kind.first_bucket as usize] = number as u32;
            kind.first_bucket = before;
            before += kind.buckets;
            if kind.buckets > 1 {
                kind.column = self.columns as u32;
                self.columns += 1;
                self.savable += kind.buckets - kind.highest.max(1);
            }
        }
        let mut calls = 0;
        for (index, (ready, bucket)) in buckets.iter().zip(&mut self.buckets).enumerate() {
            bucket.kind = self.sorted[bucket.kind as usize];
            bucket.first_call = calls;
            let form = &recorded.forms[ready.kernel as usize];
            let entry = Entry {
                first: match form.is_ragged {
                    false => calls,
                    true => map(&mut self.mapped, ready.rows),
                },
                index: index as u32,
                length: match form.handles {
                    Some(_) => form.slots.len() as u32,
                    None => NONE,
                },
                handles: match (ready.phase, ready.depth) {
                    (0, 1) => (0, 0),
                    _ => self.kinds[bucket.kind as usize].handles,
                },
                ..NO_ENTRY
            };
            enter(
                &mut self.entries,
                &mut self.is_of_flush,
                ready.bucket,
                entry,
            );
            calls += ready.calls;
        }
        for ghost in recorded.ghosts {
            let entry = Entry {
                first: map(&mut self.mapped, ghost.rows),
                length: 1,
                ..NO_ENTRY
            };
            enter(
                &mut self.entries,
                &mut self.is_of_flush,
                ghost.bucket,
                entry,
            );
        }
        if self.unit_of.len() < calls as usize {
            self.unit_of.resize(calls as usize, NONE);
        }
    }

    /// Goes over the calls until nothing more can be gained, or too little; whether all are units then.
    fn read_log(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> bool {
        let form_of = |index: u32| &recorded.forms[buckets[index as usize].kernel as usize];
        let mut read = std::mem::take(&mut self.read);
        let mut log = recorded.log;
        let mut is_complete = true;
        while let Some((number, rest)) = log.split_first() {
            let number = *number as usize;
            let entry = &self.entries[number];
            // Where the next entry is hangs on as few loads as can be: the processor goes ahead to it.
            let (call, rest) = rest.split_at(match entry.length {
                NONE => form_of(entry.index).entry_length(rest),
                length => length as usize,
            });
            log = rest;
            if entry.index == NONE {
                self.name(number, call[0]);
                continue;
            }
            let mut few = [NONE; FEW];
            let inputs = match entry.handles.1 as usize {
                0..=FEW => {
                    let count = self.few_inputs(entry.handles, call, &mut few);
                    &few[..count]
                }
                _ => {
                    self.all_inputs(form_of(entry.index), call, &mut read);
                    &read[..]
                }
            };
            let (begin, end) = entry.inputs;
            let of_last = self.inputs.get(begin as usize..end as usize);
            let unit = match of_last.is_some_and(|of_last| are_equal(of_last, inputs)) {
                true => entry.last,
                false => match self.same_unit(entry.last, inputs) {
                    Some(unit) => unit,
                    None => {
                        self.add_unit(number, inputs);
                        if self.is_worth_nothing() {
                            is_complete = false;
                            break;
                        }
                        self.entries[number].last
                    }
                },
            };
            let entry = &mut self.entries[number];
            entry.calls += 1;
            if entry.only == unit {
                continue;
            }
            if entry.first & IS_MAPPED != 0 {
                let rows = form_of(entry.index).rows(call) as u32;
                let first = ((entry.first & !IS_MAPPED) + entry.rows) as usize;
                entry.rows += rows;
                self.mapped[first..first + rows as usize].fill(unit);
            }
            self.part(number, unit);
        }
        self.read = read;
        is_complete
    }

    /// Whether the search cannot pay any more: no launch is left to save, or too few for the number of units.
    fn is_worth_nothing(&self) -> bool {
        let most = FEWEST_UNITS.max(UNITS_A_LAUNCH * self.savable as usize);
        self.savable == 0 || self.units.len() > most
    }

    /// The next row of a bucket of ghosts has the unit of what it is a name of.
    fn name(&mut self, number: usize, of: u64) {
        let unit = self.unit_at(of);
        let entry = &mut self.entries[number];
        let row = (entry.first & !IS_MAPPED) + entry.rows;
        entry.rows += 1;
        self.mapped[row as usize] = unit;
    }

    /// The last call of a bucket is not of the unit that all before it are of.
    fn part(&mut self, number: usize, unit: u32) {
        let entry = &mut self.entries[number];
        if entry.calls == 1 && entry.first & IS_MAPPED == 0 {
            entry.only = unit;
            return;
        }
        let first = self.buckets[entry.index as usize].first_call as usize;
        let end = first + entry.calls as usize - 1;
        // What is known of all its calls so far is known of each from now on.
        if entry.only != NONE {
            self.unit_of[first..end].fill(entry.only);
            entry.only = NONE;
        }
        self.unit_of[end] = unit;
    }

    /// The units that a call reads which has handles in these slots; gives how many.
    #[inline(always)]
    fn few_inputs(&self, (first, count): (u32, u32), call: &[u64], read: &mut [u32; FEW]) -> usize {
        let slots = &self.handles[first as usize..(first + count) as usize];
        let mut next = 0;
        for slot in slots {
            // Which operands are of the flush changes from call to call, so no branch asks for it.
            let unit = self.unit_at(call[*slot as usize]);
            read[next % FEW] = unit;
            next += usize::from(unit != NONE);
        }
        next
    }

    /// The units that any call reads.
    fn all_inputs(&self, form: &CallForm, entry: &[u64], read: &mut Vec<u32>) {
        read.clear();
        let (operands, lists) = entry.split_at(form.slots.len());
        for (index, (operand, slot)) in operands.iter().zip(&form.slots).enumerate() {
            // The handle of no rows may be that of the next call's.
            let is_read = *slot == Slot::Row && !(form.is_ragged && form.is_empty(index, entry));
            if is_read {
                read.push(self.unit_at(*operand));
            }
        }
        read.extend(lists.iter().map(|handle| self.unit_at(*handle)));
        read.retain(|unit| *unit != NONE);
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

    /// The unit of the bucket with that last one that reads the same as the call at hand.
    fn same_unit(&self, last: u32, read: &[u32]) -> Option<u32> {
        let mut unit = last;
        for _ in 0..MOST_COMPARED {
            if unit == NONE {
                return None;
            }
            if are_equal(self.inputs_of(unit as usize), read) {
                return Some(unit);
            }
            unit = self.units[unit as usize].before;
        }
        None
    }

    /// Makes a unit of the call at hand, of the bucket of that number.
    fn add_unit(&mut self, number: usize, read: &[u32]) {
        let entry = &mut self.entries[number];
        let bucket = &mut self.buckets[entry.index as usize];
        let number = self.units.len();
        let begin = self.inputs.len();
        self.inputs.extend_from_slice(read);
        let mut unit = Unit {
            kind: bucket.kind,
            rank: 1,
            inputs: (begin as u32, self.inputs.len() as u32),
            before: bucket.last,
        };
        bucket.last = number as u32;
        (entry.last, entry.inputs) = (bucket.last, unit.inputs);
        if self.has_ranks {
            let columns = self.columns;
            self.ways.resize((number + 1) * columns, 0);
            let (before, own) = self.ways.split_at_mut(number * columns);
            for input in read {
                let input = &before[*input as usize * columns..][..columns];
                for (own, input) in own.iter_mut().zip(input) {
                    *own = (*own).max(*input);
                }
            }
            let kind = &mut self.kinds[unit.kind as usize];
            if let Some(own) = own.get_mut(kind.column as usize) {
                *own += 1;
                unit.rank = *own;
                if *own > kind.highest {
                    self.savable -= *own - kind.highest.max(1);
                    kind.highest = *own;
                }
            }
            self.has_ranks = self.ways.len() <= MOST_CELLS;
        }
        self.units.push(unit);
    }
}

/// Most are of one or two units, so they are compared here and not by a function's call.
#[inline(always)]
fn are_equal(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// By phase; then by the average, exactly, in whole numbers, so that ties are ties; then by kernel.
fn by_average_depth(a: &Kind, b: &Kind) -> std::cmp::Ordering {
    let scaled = |kind: &Kind, other: &Kind| u128::from(kind.depths) * u128::from(other.calls);
    (a.phase, scaled(a, b), a.kernel).cmp(&(b.phase, scaled(b, a), b.kernel))
}

/// Room for the calls of `rows` rows.
fn map(mapped: &mut Vec<u32>, rows: u32) -> u32 {
    let first = mapped.len();
    mapped.resize(first + rows as usize, NONE);
    first as u32 | IS_MAPPED
}

fn enter(entries: &mut Vec<Entry>, is_of_flush: &mut Vec<u64>, bucket: u32, entry: Entry) {
    let bucket = bucket as usize;
    if entries.len() <= bucket {
        entries.resize(bucket + 1, NO_ENTRY);
        is_of_flush.resize(bucket / 64 + 1, 0);
    }
    is_of_flush[bucket / 64] |= 1 << (bucket % 64);
    entries[bucket] = entry;
}
