//! Recordings are made: what the control program records of a structure, and where it comes from.
//!
//! The control program runs several times, each a *take*, with [`Marks`] in place of the instance's numbers: where
//! the log then has a row of a parameter that a mark chose, that is where the instance's number goes.

use cohort_abi::Handle;
use rustc_hash::FxHashMap;

use super::Recorder;
use super::marks::Marks;
use super::recording::{
    Chosen, Form, Part, Recording, Run, SAME_ROW, Used, halves, reference, write_run,
};
use super::replay::SHARED_KEY;
use crate::program::log::Entries;
use crate::program::slot::Slot;
use crate::program::structure::Image;

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
    /// Nothing: the row is always the same.
    Fixed(usize),
}

/// Where the calls of a bucket go.
enum Destination {
    Group(usize),
    /// By position.
    Shared(Vec<usize>),
    /// By position what each is a name of. Nothing in a recording needs the name: where calls go is known.
    Ghosts(Vec<Origin>),
}

/// The calls of a kernel at an order key, which are a bucket.
#[derive(Clone, Copy)]
struct Group {
    kernel: u32,
    key: u64,
    calls: u32,
    rows: u32,
    /// Its first column: it has one for each slot of its calls, and behind these one for each list.
    column: usize,
}

/// What the calls of groups have in their slots and in their lists, column by column.
#[derive(Default)]
struct Columns {
    /// The column of each, as they are met.
    cells: Vec<(u32, Origin)>,
    /// Where each column begins in `sorted`, and where the last one ends.
    starts: Vec<usize>,
    sorted: Vec<Origin>,
}

/// A call that may be equal to others, and its operand: as the calls of a kernel have it.
#[derive(Clone, Copy)]
struct SharedCall {
    kernel: u32,
    source: u32,
    row: u32,
}

/// Different things, in the order in which they are met.
struct Met<T> {
    all: Vec<T>,
    places: FxHashMap<T, usize>,
}

impl<T: Copy + Eq + std::hash::Hash> Met<T> {
    fn new() -> Met<T> {
        Met {
            all: Vec::new(),
            places: FxHashMap::default(),
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
    places: Vec<Destination>,
    /// Row pools of input rows.
    row_pools: Met<usize>,
    fixed: Met<u64>,
    chosen: Met<Chosen>,
    shared: Vec<SharedCall>,
    groups: Vec<Group>,
    columns: Columns,
}

impl Recorder {
    /// The recording of a structure, of takes that this recorder made. It is for recorders of which `shares` says
    /// whether they share a call of a kernel on an operand. `inputs` are the instance's first input rows, one a row
    /// pool; `source_rows` the rows that numbers choose from, one a source. `None` where something does not follow
    /// from the structure and the numbers alone, or is too large.
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
            row_pools: Met::new(),
            fixed: Met::new(),
            chosen: Met::new(),
            shared: Vec::new(),
            groups: Vec::new(),
            columns: Columns::default(),
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
            rows: self.max_calls as i64 - self.state.rows_left,
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
        let recorder = self.of;
        let mut entries = Entries::of(&self.takes[0].log);
        std::iter::from_fn(move || {
            let kernel_of = |bucket| {
                let kernel = recorder.buckets.kernel(bucket);
                recorder.kernels.get(kernel as usize)
            };
            let entry = entries.next(kernel_of)?;
            entry.kernel?;
            let kernel = recorder.buckets.kernel(entry.bucket);
            Some((kernel, entry.bucket, entry.at + 1))
        })
    }

    fn first_bucket(&self) -> usize {
        self.of.numbering.first_call(self.of.chunks)
    }

    /// Divides buckets in those whose calls are shared, those of ghosts, and others, which are groups: of one kernel
    /// after another, the least deep first.
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
                Some(true) => Destination::Shared(Vec::new()),
                _ if kernel as usize == self.of.kernels.len() - 1 => {
                    Destination::Ghosts(Vec::new())
                }
                _ => {
                    groups.push(bucket);
                    Destination::Group(0)
                }
            });
        }
        groups.sort_by_key(|bucket| (buckets.kernel(*bucket), buckets.key(*bucket)));
        let mut column = 0;
        for bucket in groups {
            self.places[bucket - first] = Destination::Group(self.groups.len());
            let kernel = buckets.kernel(bucket);
            let form = &self.of.kernels[kernel as usize].form;
            self.groups.push(Group {
                kernel,
                key: buckets.key(bucket),
                calls: self.of.bucket_calls(bucket),
                rows: buckets.rows(bucket),
                column,
            });
            let lists = form.slots.iter().filter(|slot| **slot == Slot::List);
            column += form.slots.len() + lists.count();
        }
        u32::try_from(column).ok()?;
        self.columns.starts = vec![0; column + 1];
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
                Destination::Group(group) => *group,
                Destination::Ghosts(_) => {
                    let row = self.handle(slot(slots))?;
                    if let Destination::Ghosts(rows) = &mut self.places[place] {
                        rows.push(row);
                    }
                    continue;
                }
                Destination::Shared(_) => {
                    let (source, row) = self.source_row(slot(slots))?;
                    if let Destination::Shared(calls) = &mut self.places[place] {
                        calls.push(self.shared.len());
                    }
                    self.shared.push(SharedCall {
                        kernel,
                        source,
                        row,
                    });
                    continue;
                }
            };
            let form = &self.of.kernels[kernel as usize].form;
            let first_column = self.groups[group].column;
            let (mut listed, mut list) =
                (slots + form.slots.len(), first_column + form.slots.len());
            for (number, kind) in form.slots.iter().enumerate() {
                let at = slots + number;
                let origin = match kind {
                    Slot::Row => self.handle(slot(at))?,
                    Slot::Scalar | Slot::List => self.number(slot(at))?,
                };
                self.columns.push(first_column + number, origin);
                if *kind == Slot::List {
                    let end = listed + takes[0].log[at] as usize;
                    for handle in listed..end {
                        let row = self.handle(slot(handle))?;
                        self.columns.push(list, row);
                    }
                    (listed, list) = (end, list + 1);
                }
            }
        }
        self.columns.sort();
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
        match bucket < numbering.sources {
            true if is_same => {
                return Some(Origin::Row(Base::Fixed(self.fixed.place(handle.0)), 0, 0));
            }
            true => {
                let chosen = self.chosen(bucket, slot)?;
                return Some(Origin::Row(Base::Chosen(self.chosen.place(chosen)), 0, 0));
            }
            false if is_same => {}
            false => return None,
        }
        let Some(number) = bucket.checked_sub(self.first_bucket()) else {
            let pool = numbering.input_pool(bucket)?;
            let offset = u32::try_from(handle.0.checked_sub(self.inputs[pool])?).ok()?;
            return Some(Origin::Row(
                Base::Input(self.row_pools.place(pool)),
                0,
                offset,
            ));
        };
        let position = handle.position() as usize;
        match self.places.get(number)? {
            Destination::Group(group) => {
                Some(Origin::Row(Base::Group(*group), result, handle.position()))
            }
            Destination::Shared(calls) => {
                Some(Origin::Row(Base::Shared(*calls.get(position)?), result, 0))
            }
            Destination::Ghosts(rows) => (result == 0).then(|| rows.get(position).copied())?,
        }
    }

    /// A row that differs from take to take.
    fn chosen(&self, source: usize, slot: impl Fn(usize) -> u64) -> Option<Chosen> {
        let handles = (0..self.takes.len()).map(|take| Handle(slot(take)));
        let marks = handles.map(|handle| {
            let row = Handle::new(source as u32, 0, handle.position());
            (handle == row).then_some(u64::from(handle.position()))
        });
        let rows = *self.source_rows.get(source)?;
        Some(Chosen {
            number: self.marks.number(&marks.collect::<Option<Vec<_>>>()?)?,
            source: source as u32,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        })
    }

    /// The source of a row, and which one it is, as [`super::recording::SharedCalls`] say it.
    fn source_row(&self, slot: impl Fn(usize) -> u64) -> Option<(u32, u32)> {
        let handle = Handle(slot(0));
        let source = handle.bucket();
        let (row, mark) = match (1..self.takes.len()).all(|take| slot(take) == handle.0) {
            true => (handle.position(), SAME_ROW),
            false => (self.chosen(source as usize, slot)?.number, 0),
        };
        (row < SAME_ROW).then_some((source, row | mark))
    }

    /// The number of a base, as a recording counts them, and shared calls by these numbers.
    fn base(&self, base: Base, shared_calls: &[usize]) -> Option<usize> {
        let chosen = self.row_pools.all.len();
        let shared = chosen + self.chosen.all.len();
        let groups = shared + self.shared.len();
        Some(match base {
            Base::Input(place) => place,
            Base::Chosen(place) => chosen + place,
            Base::Shared(place) => shared + shared_calls[place],
            Base::Group(place) => groups + place,
            Base::Fixed(_) => return None,
        })
    }

    /// The recording of what was found.
    fn write(&self, used: Used, results: &[Origin]) -> Option<Recording> {
        let mut references = Met::new();
        let mut values = Vec::new();
        let mut largest = 0;
        for origin in self.columns.sorted.iter().chain(results) {
            match *origin {
                Origin::Row(Base::Fixed(_), ..) | Origin::Number(_) => {}
                Origin::Row(base, result, offset) => {
                    references.place((base, result));
                    largest = largest.max(offset);
                }
            }
        }
        for origin in results {
            if let Origin::Number(value) = *origin {
                values.push(value);
            }
        }
        let of_bases = references.all.len();
        let rows = of_bases + self.fixed.all.len();
        let form = Form::new(largest, rows + values.len())?;
        let row = |base, result, offset| {
            let reference = match base {
                Base::Fixed(place) => of_bases + place,
                _ => *references.places.get(&(base, result))?,
            };
            Some(form.word(reference as u32, offset))
        };
        let (mut runs, mut columns) = (Vec::new(), Vec::new());
        let goes_on =
            |one: &Group, other: &Group| one.kernel == other.kernel && one.key + 1 == other.key;
        for run in self.groups.chunk_by(goes_on) {
            let form = &self.of.kernels[run[0].kernel as usize].form;
            let lists = form.slots.iter().filter(|slot| **slot == Slot::List);
            for column in 0..form.slots.len() + lists.count() {
                for origin in (run.iter()).flat_map(|group| self.columns.of(group.column + column))
                {
                    columns.push(match *origin {
                        Origin::Row(base, result, offset) => row(base, result, offset)?,
                        Origin::Number(value) => short(value)?,
                    });
                }
            }
            let calls: Vec<u32> = run.iter().map(|group| group.calls).collect();
            let rows: Vec<u32> = run.iter().map(|group| group.rows).collect();
            let run = Run {
                kernel: run[0].kernel,
                key: run[0].key,
                all_calls: calls
                    .iter()
                    .try_fold(0_u32, |sum, calls| sum.checked_add(*calls))?,
                calls: &calls,
                rows: &rows,
            };
            write_run(&mut runs, run)?;
        }
        let mut numbers = rows as u32..;
        let results = results.iter().map(|origin| match *origin {
            Origin::Row(base, result, offset) => row(base, result, offset),
            Origin::Number(_) => Some(form.word(numbers.next()?, 0)),
        });
        let results = results.collect::<Option<_>>()?;
        let chosen = self.chosen.all.iter();
        let chosen = chosen.flat_map(|chosen| [chosen.number, chosen.source, chosen.rows]);
        let (shared, shared_calls) = self.shared_runs();
        let references = references.all.iter().map(|(base, result)| {
            let base = self.base(*base, &shared_calls)?;
            reference(base, *result)
        });
        let addresses = self.takes.first()?.result.addresses.iter();
        let addresses = addresses.map(|place| u32::try_from(*place).ok());
        let parts = [
            (
                Part::Inputs,
                self.row_pools.all.iter().map(|pool| *pool as u32).collect(),
            ),
            (Part::Chosen, chosen.collect()),
            (Part::Shared, shared),
            (Part::Runs, runs),
            (Part::Results, results),
            (Part::Addresses, addresses.collect::<Option<_>>()?),
            (Part::Values, values.into_iter().flat_map(halves).collect()),
            (Part::References, references.collect::<Option<_>>()?),
            (
                Part::Fixed,
                self.fixed.all.iter().copied().flat_map(halves).collect(),
            ),
            (Part::Columns, columns),
        ];
        let first_group = self.row_pools.all.len() + self.chosen.all.len() + self.shared.len();
        let bases = [first_group, first_group + self.groups.len()];
        Recording::new(used, form, bases, &parts)
    }

    /// The words of shared calls, kernel by kernel, and the number of each among them.
    fn shared_runs(&self) -> (Vec<u32>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.shared.len()).collect();
        let of = |call: usize| (self.shared[call].kernel, self.shared[call].source);
        order.sort_by_key(|call| of(*call));
        let mut numbers = vec![0; order.len()];
        let mut words = Vec::new();
        for run in order.chunk_by(|one, other| of(*one) == of(*other)) {
            let (kernel, source) = of(run[0]);
            words.extend([kernel, source, run.len() as u32]);
            words.extend(run.iter().map(|call| self.shared[*call].row));
        }
        for (number, call) in order.iter().enumerate() {
            numbers[*call] = number;
        }
        (words, numbers)
    }
}

impl Columns {
    fn push(&mut self, column: usize, origin: Origin) {
        self.cells.push((column as u32, origin));
        self.starts[column] += 1;
    }

    /// Puts what was met into its columns, where it stays in order; `starts` had the lengths of these.
    fn sort(&mut self) {
        let mut end = 0;
        for start in &mut self.starts {
            end += std::mem::replace(start, end);
        }
        let mut next = self.starts.clone();
        self.sorted = vec![Origin::Number(0); self.cells.len()];
        for (column, origin) in self.cells.drain(..) {
            let place = &mut next[column as usize];
            self.sorted[*place] = origin;
            *place += 1;
        }
    }

    fn of(&self, column: usize) -> &[Origin] {
        &self.sorted[self.starts[column]..self.starts[column + 1]]
    }
}

/// The 32 bits of a number in a slot, which may be one with a sign.
fn short(value: u64) -> Option<u32> {
    let short = value as u32;
    let is_it = value == u64::from(short) || value as i64 == i64::from(short as i32);
    is_it.then_some(short)
}
