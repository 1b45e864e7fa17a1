//! Recordings are made: what the control program records of a structure, and where it comes from.
//!
//! The control program runs on a recorder of its own, with *marks* in place of the instance's numbers: they say which
//! number it is. Where the log then has a row of a parameter that a mark chose, that is where the instance's number
//! goes. A parameter may have fewer rows than there are numbers, so a mark is one digit of the number's place a
//! *take*; and one take more, in which all first digits are others, tells marks from rows that the program names.

use std::collections::HashMap;

use cohort_abi::Handle;

use super::recording::{Chosen, Form, Group, Part, Recording, Used, halves, reference};
use super::replay::SHARED_KEY;
use super::{MAX_ROWS, Recorder};
use crate::slot::Slot;
use crate::structure::Image;

/// More digits are not worth their takes.
const MOST_DIGITS: usize = 3;
/// Marks are smaller, so that a few digits of them are a number.
const LARGEST_BASE: u64 = 1 << 20;

/// The marks of an instance's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    count: u64,
    base: u64,
    digits: usize,
}

impl Marks {
    /// For `count` numbers, each of which must choose one of `rows` rows; `None` where they cannot be told apart.
    pub fn new(count: usize, rows: u64) -> Option<Marks> {
        let (count, base) = (count as u64, rows.min(LARGEST_BASE));
        if count == 0 {
            return Some(Marks {
                count,
                base,
                digits: 0,
            });
        }
        let digits = (1..=MOST_DIGITS).find(|digits| base.pow(*digits as u32) >= count)?;
        (base >= 2).then_some(Marks {
            count,
            base,
            digits,
        })
    }

    /// How often the control program runs.
    pub fn takes(&self) -> usize {
        self.digits + 1
    }

    /// The mark of a number in a take.
    pub fn mark(&self, take: usize, number: usize) -> u64 {
        let digit = |digit: usize| number as u64 / self.base.pow(digit as u32) % self.base;
        match take == self.digits {
            true => (digit(0) + 1) % self.base,
            false => digit(take),
        }
    }

    /// The number that has these marks in all takes.
    fn number(&self, marks: &[u64]) -> Option<u32> {
        let (last, digits) = marks.split_last()?;
        let number = digits.iter().rev().try_fold(0_u64, |number, digit| {
            number.checked_mul(self.base)?.checked_add(*digit)
        })?;
        let is_it = number < self.count && self.mark(self.digits, number as usize) == *last;
        is_it.then_some(number as u32)
    }
}

/// What the control program made of an instance with marks.
pub struct Take {
    /// The recorder's log.
    pub log: Vec<u64>,
    /// The result.
    pub result: Image,
}

/// What stands in a slot.
#[derive(Clone, Copy)]
enum Origin {
    Number(u64),
    /// That result and offset of a base.
    Row(Base, u8, u32),
}

/// What rows are relative to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Base {
    Input(usize),
    Chosen(usize),
    Shared(usize),
    Group(usize),
    Constant(usize),
}

/// Where the calls of a bucket go.
enum Place {
    Group(usize),
    /// By position.
    Shared(Vec<usize>),
    /// By position what each is a name of. Nothing in a recording needs the name: where calls go is known.
    Ghosts(Vec<Origin>),
}

/// What the calls of a group have in their slots, and in their lists.
#[derive(Clone, Default)]
struct Columns {
    slots: Vec<Vec<Origin>>,
    lists: Vec<Vec<Origin>>,
}

/// Different things, in the order in which they are met.
struct Met<T> {
    all: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T: Copy + Eq + std::hash::Hash> Met<T> {
    fn new() -> Met<T> {
        Met {
            all: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn place(&mut self, of: T) -> usize {
        let all = &mut self.all;
        *self.places.entry(of).or_insert_with(|| {
            all.push(of);
            all.len() - 1
        })
    }
}

/// A recording that is being made.
struct Making<'a> {
    of: &'a Recorder,
    marks: Marks,
    takes: &'a [Take],
    inputs: &'a [u64],
    source_rows: &'a [u64],
    /// By how far they are behind the first bucket of calls.
    places: Vec<Place>,
    /// Spaces of input rows.
    spaces: Met<usize>,
    constants: Met<u64>,
    chosen: Met<Chosen>,
    /// Kernels and their operands.
    shared: Vec<(u32, Base)>,
    groups: Vec<Group>,
    columns: Vec<Columns>,
}

impl Recorder {
    /// The recording of a structure, of takes that this recorder made. It is for recorders of which `shares` says
    /// whether they share a call of a kernel on an operand. `inputs` are the instance's first input rows, one a space;
    /// `source_rows` the rows that numbers choose from, one a source. `None` where something does not follow from the
    /// structure and the numbers alone, or is too large.
    pub fn recording(
        &self,
        shares: impl Fn(u32, u64) -> bool,
        marks: Marks,
        takes: &[Take],
        inputs: &[u64],
        source_rows: &[u64],
    ) -> Option<Recording> {
        let mut making = Making {
            of: self,
            marks,
            takes,
            inputs,
            source_rows,
            places: Vec::new(),
            spaces: Met::new(),
            constants: Met::new(),
            chosen: Met::new(),
            shared: Vec::new(),
            groups: Vec::new(),
            columns: Vec::new(),
        };
        let length = takes.first()?.log.len();
        if takes.iter().any(|take| take.log.len() != length) {
            return None;
        }
        making.find_places(&shares)?;
        making.read_log()?;
        let results = making.results()?;
        let used = Used {
            calls: self.limits.max_nodes - self.calls_left(),
            rows: (MAX_ROWS / self.max_results) as i64 - self.state.rows_left,
            bytes: self.state.start.memory_left - self.state.memory_left,
        };
        making.write(used, &results)
    }

    /// Whether a call of a kernel on that operand may be answered by an equal one.
    pub fn shares(&self, kernel: u32, operand: u64) -> bool {
        let calls = self.kernels.get(kernel as usize);
        let shared = calls.and_then(|calls| calls.shared.as_ref());
        shared.is_some_and(|shared| shared.row(operand).is_some())
    }
}

impl Making<'_> {
    /// The kernel, the bucket, and where the slots of each entry are.
    fn entries(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let (recorder, log) = (self.of, &self.takes[0].log);
        let mut at = 0;
        std::iter::from_fn(move || {
            let bucket = *log.get(at)? as usize;
            let kernel = recorder.buckets.kernel(bucket);
            let form = &recorder.kernels.get(kernel as usize)?.form;
            let slots = at + 1;
            at = slots + form.entry_length(&log[slots..]);
            Some((kernel, bucket, slots))
        })
    }

    fn first_bucket(&self) -> usize {
        self.of.numbering.first_call(self.of.chunks)
    }

    /// Divides buckets in those whose calls are shared, those of ghosts, and others. Of these the least deep is the
    /// first group.
    fn find_places(&mut self, shares: &impl Fn(u32, u64) -> bool) -> Option<()> {
        let first = self.first_bucket();
        let buckets = &self.of.buckets;
        let mut shared = vec![None; buckets.count() - first];
        for (kernel, bucket, slots) in self.entries() {
            let operand = self.takes[0].log.get(slots);
            let is_shared = operand.is_some_and(|operand| shares(kernel, *operand));
            let known = shared.get_mut(bucket.checked_sub(first)?)?;
            if known
                .replace(is_shared)
                .is_some_and(|known| known != is_shared)
            {
                return None;
            }
        }
        let mut groups = Vec::new();
        for (number, is_shared) in shared.into_iter().enumerate() {
            let bucket = first + number;
            let kernel = buckets.kernel(bucket);
            self.places.push(match is_shared {
                Some(true) if buckets.key(bucket) != SHARED_KEY => return None,
                Some(true) => Place::Shared(Vec::new()),
                _ if kernel as usize == self.of.kernels.len() - 1 => Place::Ghosts(Vec::new()),
                _ => {
                    groups.push(bucket);
                    Place::Group(0)
                }
            });
        }
        groups.sort_by_key(|bucket| buckets.key(*bucket));
        for bucket in groups {
            self.places[bucket - first] = Place::Group(self.groups.len());
            let kernel = buckets.kernel(bucket);
            let form = &self.of.kernels[kernel as usize].form;
            self.groups.push(Group {
                kernel,
                key: buckets.key(bucket),
                rows: buckets.rows(bucket),
                calls: self.of.bucket_calls(bucket),
                words: 0,
            });
            let lists = form.slots.iter().filter(|slot| **slot == Slot::List);
            self.columns.push(Columns {
                slots: vec![Vec::new(); form.slots.len()],
                lists: vec![Vec::new(); lists.count()],
            });
        }
        Some(())
    }

    /// Puts each entry where it goes.
    fn read_log(&mut self) -> Option<()> {
        let entries: Vec<_> = self.entries().collect();
        let first = self.first_bucket();
        let takes = self.takes;
        for (kernel, bucket, slots) in entries {
            let slot = |at: usize| move |take: usize| takes[take].log[at];
            self.number(slot(slots - 1))?;
            let place = bucket.checked_sub(first)?;
            let group = match self.places.get(place)? {
                Place::Group(group) => *group,
                Place::Ghosts(_) => {
                    let row = self.handle(slot(slots))?;
                    if let Place::Ghosts(rows) = &mut self.places[place] {
                        rows.push(row);
                    }
                    continue;
                }
                Place::Shared(_) => {
                    let Origin::Row(operand, 0, 0) = self.handle(slot(slots))? else {
                        return None;
                    };
                    if let Place::Shared(calls) = &mut self.places[place] {
                        calls.push(self.shared.len());
                    }
                    self.shared.push((kernel, operand));
                    continue;
                }
            };
            let form = &self.of.kernels[kernel as usize].form;
            let (mut listed, mut list) = (slots + form.slots.len(), 0);
            for (number, kind) in form.slots.iter().enumerate() {
                let at = slots + number;
                let origin = match kind {
                    Slot::Row => self.handle(slot(at))?,
                    Slot::Scalar | Slot::List => self.number(slot(at))?,
                };
                self.columns[group].slots[number].push(origin);
                if *kind == Slot::List {
                    let end = listed + takes[0].log[at] as usize;
                    for handle in listed..end {
                        let row = self.handle(slot(handle))?;
                        self.columns[group].lists[list].push(row);
                    }
                    (listed, list) = (end, list + 1);
                }
            }
        }
        Some(())
    }

    /// The result's slots and what belongs to it.
    fn results(&mut self) -> Option<Vec<Origin>> {
        let takes = self.takes;
        let image = &takes[0].result;
        if takes
            .iter()
            .any(|take| take.result.slots.len() != image.slots.len())
        {
            return None;
        }
        let mut is_handle = vec![false; image.slots.len()];
        for place in &image.handles {
            is_handle[*place] = true;
        }
        let slots = is_handle.into_iter().enumerate();
        let slots = slots.map(|(place, is_handle)| {
            let slot = |take: usize| takes[take].result.slots[place];
            match is_handle {
                true => self.handle(slot),
                false => self.number(slot),
            }
        });
        slots.collect()
    }

    /// What is the same in all takes.
    fn number(&self, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let value = slot(0);
        let is_same = (1..self.takes.len()).all(|take| slot(take) == value);
        is_same.then_some(Origin::Number(value))
    }

    /// Where a handle comes from.
    fn handle(&mut self, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let handle = Handle(slot(0));
        let (bucket, result) = (handle.bucket() as usize, handle.result());
        let numbering = &self.of.numbering;
        let is_same = (1..self.takes.len()).all(|take| slot(take) == handle.0);
        if bucket < numbering.sources {
            if !is_same {
                return self.chosen(bucket, slot);
            }
            let first_result = Handle::new(bucket as u32, 0, handle.position());
            let constant = self.constants.place(first_result.0);
            return Some(Origin::Row(Base::Constant(constant), result, 0));
        }
        if !is_same {
            return None;
        }
        let Some(number) = bucket.checked_sub(self.first_bucket()) else {
            let space = numbering.input_space(bucket)?;
            let offset = u32::try_from(handle.0.checked_sub(self.inputs[space])?).ok()?;
            return Some(Origin::Row(
                Base::Input(self.spaces.place(space)),
                0,
                offset,
            ));
        };
        let position = handle.position() as usize;
        match self.places.get(number)? {
            Place::Group(group) => {
                Some(Origin::Row(Base::Group(*group), result, handle.position()))
            }
            Place::Shared(calls) => {
                Some(Origin::Row(Base::Shared(*calls.get(position)?), result, 0))
            }
            Place::Ghosts(rows) => (result == 0).then(|| rows.get(position).copied())?,
        }
    }

    /// A row that differs from take to take.
    fn chosen(&mut self, source: usize, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let handles = (0..self.takes.len()).map(|take| Handle(slot(take)));
        let marks = handles.map(|handle| {
            let row = Handle::new(source as u32, 0, handle.position());
            (handle == row).then_some(u64::from(handle.position()))
        });
        let rows = *self.source_rows.get(source)?;
        let chosen = self.chosen.place(Chosen {
            number: self.marks.number(&marks.collect::<Option<Vec<_>>>()?)?,
            source: source as u32,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        });
        Some(Origin::Row(Base::Chosen(chosen), 0, 0))
    }

    /// The number of a base, as a recording counts them.
    fn base(&self, base: Base) -> usize {
        let chosen = self.spaces.all.len();
        let shared = chosen + self.chosen.all.len();
        let groups = shared + self.shared.len();
        let constants = groups + self.groups.len();
        match base {
            Base::Input(place) => place,
            Base::Chosen(place) => chosen + place,
            Base::Shared(place) => shared + place,
            Base::Group(place) => groups + place,
            Base::Constant(place) => constants + place,
        }
    }

    /// The recording of what was found.
    fn write(&self, used: Used, results: &[Origin]) -> Option<Recording> {
        let mut references = Met::new();
        let mut values = Vec::new();
        let mut largest = 0;
        for origin in self.columns.iter().flat_map(Columns::all).chain(results) {
            if let Origin::Row(base, result, offset) = *origin {
                references.place((base, result));
                largest = largest.max(offset);
            }
        }
        for origin in results {
            if let Origin::Number(value) = *origin {
                values.push(value);
            }
        }
        let form = Form::new(largest, references.all.len() + values.len())?;
        let row = |base, result, offset| {
            let reference = references.places.get(&(base, result))?;
            Some(form.word(*reference as u32, offset))
        };
        let (mut groups, mut columns) = (Vec::new(), Vec::new());
        for (group, of_group) in self.groups.iter().zip(&self.columns) {
            let first = columns.len();
            for origin in of_group.all() {
                columns.push(match *origin {
                    Origin::Row(base, result, offset) => row(base, result, offset)?,
                    Origin::Number(value) => short(value)?,
                });
            }
            let words = u32::try_from(columns.len() - first).ok()?;
            let [low, high] = halves(group.key);
            groups.extend([group.kernel, low, high, group.rows, group.calls, words]);
        }
        let mut numbers = references.all.len() as u32..;
        let results = results.iter().map(|origin| match *origin {
            Origin::Row(base, result, offset) => row(base, result, offset),
            Origin::Number(_) => Some(form.word(numbers.next()?, 0)),
        });
        let results = results.collect::<Option<_>>()?;
        let chosen = self.chosen.all.iter();
        let chosen = chosen.flat_map(|chosen| [chosen.number, chosen.source, chosen.rows]);
        let shared = self.shared.iter();
        let shared = shared.flat_map(|(kernel, operand)| [*kernel, self.base(*operand) as u32]);
        let references = references.all.iter();
        let references = references.map(|(base, result)| reference(self.base(*base), *result));
        let addresses = self.takes.first()?.result.addresses.iter();
        let addresses = addresses.map(|place| u32::try_from(*place).ok());
        let parts = [
            (
                Part::Inputs,
                self.spaces.all.iter().map(|space| *space as u32).collect(),
            ),
            (Part::Chosen, chosen.collect()),
            (Part::Shared, shared.collect()),
            (Part::Groups, groups),
            (Part::Results, results),
            (Part::Addresses, addresses.collect::<Option<_>>()?),
            (Part::Values, values.into_iter().flat_map(halves).collect()),
            (
                Part::Constants,
                self.constants
                    .all
                    .iter()
                    .copied()
                    .flat_map(halves)
                    .collect(),
            ),
            (Part::References, references.collect::<Option<_>>()?),
            (Part::Columns, columns),
        ];
        Recording::new(used, form, &parts)
    }
}

impl Columns {
    /// Column after column.
    fn all(&self) -> impl Iterator<Item = &Origin> {
        self.slots.iter().chain(&self.lists).flatten()
    }
}

/// The 32 bits of a number in a slot, which may be one with a sign.
fn short(value: u64) -> Option<u32> {
    let short = value as u32;
    let is_it = value == u64::from(short) || value as i64 == i64::from(short as i32);
    is_it.then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_numbers_apart() {
        for (count, rows) in [
            (0, 0),
            (1, 2),
            (3, 2),
            (8, 2),
            (5, 1000),
            (1000, 10),
            (1_000_000, 1 << 31),
        ] {
            let marks = Marks::new(count, rows).unwrap();
            for number in 0..count {
                let of_number: Vec<u64> = (0..marks.takes())
                    .map(|take| marks.mark(take, number))
                    .collect();
                assert!(
                    of_number.iter().all(|mark| *mark < rows),
                    "{count} of {rows}"
                );
                assert_eq!(
                    marks.number(&of_number),
                    Some(number as u32),
                    "{count} of {rows}"
                );
            }
        }
        let marks = Marks::new(5, 1000).unwrap();
        assert_eq!(marks.number(&[5, 6]), None);
        assert_eq!(marks.number(&[3, 3]), None);
        assert!(Marks::new(9, 2).is_none());
        assert!(Marks::new(1, 1).is_none());
    }
}
