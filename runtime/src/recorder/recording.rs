//! Recordings are made: what the control program records of a structure, and where it comes from.
//!
//! The control program runs on a recorder of its own, with *marks* in place of the instance's numbers: they say which
//! number it is. Where the log then has a row of a parameter that a mark chose, that is where the instance's number
//! goes. A parameter may have fewer rows than there are numbers, so a mark is one digit of the number's place a
//! *take*; and one take more, in which all first digits are others, tells marks from rows that the program names.

use std::collections::HashMap;

use cohort_abi::Handle;

use super::replay::{Chosen, Group, Recording, SHARED_KEY, SharedCall, Word};
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

/// Where a slot comes from.
#[derive(Clone, Copy)]
enum Origin {
    Constant(usize),
    Input(usize, u64),
    Chosen(usize),
    Shared(usize, u64),
    Group(usize, u64),
    Bucket(usize),
}

/// Where the calls of a bucket go.
enum Place {
    Group(usize),
    /// By position.
    Shared(Vec<usize>),
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
    constants: Vec<u64>,
    constant_places: HashMap<u64, usize>,
    chosen: Vec<Chosen>,
    chosen_places: HashMap<Chosen, usize>,
    shared: Vec<(u32, Origin)>,
    groups: Vec<Group>,
}

impl Recorder {
    /// The recording of a structure, of takes that this recorder made. It is for recorders of which `shares` says
    /// whether they share a call of a kernel on an operand. `inputs` are the instance's first input rows, one a space;
    /// `source_rows` the rows that numbers choose from, one a source. `None` where something does not follow from the
    /// structure and the numbers alone.
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
            constants: Vec::new(),
            constant_places: HashMap::new(),
            chosen: Vec::new(),
            chosen_places: HashMap::new(),
            shared: Vec::new(),
            groups: Vec::new(),
        };
        let length = takes.first()?.log.len();
        if takes.iter().any(|take| take.log.len() != length) {
            return None;
        }
        making.find_places(&shares)?;
        let log = making.log()?;
        let results = making.results()?;
        let addresses = takes[0].result.addresses.iter();
        let addresses = addresses.map(|place| u32::try_from(*place).ok());
        Some(Recording {
            log: making.words(&log)?,
            results: making.words(&results)?,
            shared: making.shared_calls()?,
            addresses: addresses.collect::<Option<_>>()?,
            nodes: self.limits.max_nodes - self.calls_left(),
            rows: (MAX_ROWS / self.max_results) as i64 - self.state.rows_left,
            bytes: self.state.start.memory_left - self.state.memory_left,
            constants: making.constants.into(),
            chosen: making.chosen.into(),
            groups: making.groups.into(),
        })
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

    /// Divides buckets in those whose calls are shared and others.
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
        for (number, is_shared) in shared.into_iter().enumerate() {
            let bucket = first + number;
            if is_shared == Some(true) {
                if buckets.key(bucket) != SHARED_KEY {
                    return None;
                }
                self.places.push(Place::Shared(Vec::new()));
                continue;
            }
            self.places.push(Place::Group(self.groups.len()));
            self.groups.push(Group {
                kernel: buckets.kernel(bucket),
                key: buckets.key(bucket),
                rows: buckets.rows(bucket),
                calls: buckets.ragged_calls(bucket),
            });
        }
        Some(())
    }

    /// The entries, but for those of shared calls.
    fn log(&mut self) -> Option<Vec<Origin>> {
        let entries: Vec<_> = self.entries().collect();
        let first = self.first_bucket();
        let takes = self.takes;
        let mut log = Vec::with_capacity(takes[0].log.len());
        for (kernel, bucket, slots) in entries {
            let slot = |at: usize| move |take: usize| takes[take].log[at];
            self.constant(slot(slots - 1))?;
            let number = bucket.checked_sub(first)?;
            match self.places.get(number)? {
                Place::Group(group) => log.push(Origin::Bucket(*group)),
                Place::Shared(_) => {
                    let operand = self.handle(slot(slots))?;
                    self.shared.push((kernel, operand));
                    if let Some(Place::Shared(calls)) = self.places.get_mut(number) {
                        calls.push(self.shared.len() - 1);
                    }
                    continue;
                }
            }
            let form = &self.of.kernels[kernel as usize].form;
            let mut lists = slots + form.slots.len();
            for (at, kind) in (slots..).zip(&form.slots) {
                log.push(match kind {
                    Slot::Row => self.handle(slot(at))?,
                    Slot::Scalar | Slot::List => self.constant(slot(at))?,
                });
            }
            for (at, kind) in (slots..).zip(&form.slots) {
                if *kind == Slot::List {
                    let end = lists + takes[0].log[at] as usize;
                    for handle in lists..end {
                        log.push(self.handle(slot(handle))?);
                    }
                    lists = end;
                }
            }
        }
        Some(log)
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
                false => self.constant(slot),
            }
        });
        slots.collect()
    }

    /// What is the same in all takes.
    fn constant(&mut self, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let value = slot(0);
        if (1..self.takes.len()).any(|take| slot(take) != value) {
            return None;
        }
        let constants = &mut self.constants;
        let place = *self.constant_places.entry(value).or_insert_with(|| {
            constants.push(value);
            constants.len() - 1
        });
        Some(Origin::Constant(place))
    }

    /// Where a handle comes from.
    fn handle(&mut self, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let handle = Handle(slot(0));
        let bucket = handle.bucket() as usize;
        let numbering = &self.of.numbering;
        let is_same = (1..self.takes.len()).all(|take| slot(take) == handle.0);
        if bucket < numbering.sources {
            return match is_same {
                true => self.constant(slot),
                false => self.chosen(bucket, slot),
            };
        }
        if !is_same {
            return None;
        }
        let result = u64::from(handle.result()) << Handle::RESULT_SHIFT;
        let Some(number) = bucket.checked_sub(self.first_bucket()) else {
            let space = numbering.input_space(bucket)?;
            return Some(Origin::Input(
                space,
                handle.0.checked_sub(self.inputs[space])?,
            ));
        };
        match self.places.get(number)? {
            Place::Group(group) => {
                let offset = result | u64::from(handle.position());
                Some(Origin::Group(*group, offset))
            }
            Place::Shared(calls) => {
                let call = *calls.get(handle.position() as usize)?;
                Some(Origin::Shared(call, result))
            }
        }
    }

    /// A row that differs from take to take.
    fn chosen(&mut self, source: usize, slot: impl Fn(usize) -> u64) -> Option<Origin> {
        let handles = (0..self.takes.len()).map(|take| Handle(slot(take)));
        let marks = handles.map(|handle| {
            let row = Handle::new(source as u32, 0, handle.position());
            (handle == row).then_some(u64::from(handle.position()))
        });
        let chosen = Chosen {
            number: self.marks.number(&marks.collect::<Option<Vec<_>>>()?)?,
            source: source as u32,
            rows: *self.source_rows.get(source)?,
        };
        let all = &mut self.chosen;
        let place = *self.chosen_places.entry(chosen).or_insert_with(|| {
            all.push(chosen);
            all.len() - 1
        });
        Some(Origin::Chosen(place))
    }

    fn shared_calls(&self) -> Option<Box<[SharedCall]>> {
        let calls = self.shared.iter().map(|(kernel, operand)| {
            Some(SharedCall {
                kernel: *kernel,
                operand: self.word(*operand)?,
            })
        });
        calls.collect()
    }

    fn words(&self, origins: &[Origin]) -> Option<Box<[Word]>> {
        origins.iter().map(|origin| self.word(*origin)).collect()
    }

    /// As the recording counts bases.
    fn word(&self, origin: Origin) -> Option<Word> {
        let inputs = self.constants.len();
        let chosen = inputs + self.inputs.len();
        let shared = chosen + self.chosen.len();
        let groups = shared + self.shared.len();
        let buckets = groups + self.groups.len();
        match origin {
            Origin::Constant(place) => Word::new(place, 0),
            Origin::Input(space, offset) => Word::new(inputs + space, offset),
            Origin::Chosen(place) => Word::new(chosen + place, 0),
            Origin::Shared(place, offset) => Word::new(shared + place, offset),
            Origin::Group(place, offset) => Word::new(groups + place, offset),
            Origin::Bucket(place) => Word::new(buckets + place, 0),
        }
    }
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
