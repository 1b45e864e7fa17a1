//! Tables that the lengths of a launch's calls make: where each call's rows begin, the lengths as
//! kernels read them, what each call costs, and who computes what of it.
//!
//! None of them depends on where operands lie. So launches whose calls have equal lengths, in the same
//! order, share them: the operators of a layer where their kernels ask for the same table, and all
//! layers of a network. They are made once a batch (CoRa §5, auxiliary structures that operators share
//! and that are hoisted). What is equal is found by comparing all lengths. Only the first rows of the
//! operands of calls are found for each launch by itself ([`super::indices`]). Where these differ from
//! those of another launch by the same number everywhere, as from layer to layer, index lists are
//! shared, too: a list counts from a row that each launch has for itself.

use std::collections::HashMap;
use std::sync::Arc;

use cohort_abi::manifest::Unit;

use super::kernel::Kernel;
use super::pieces::{CallWork, Pieces, Rule, Task};
use super::ragged::{Padded, Run};
use crate::call_form::CallForm;
use crate::stats::{RaggedWork, TableCounts};

/// Words that tables may have together when a flush begins; else those of earlier flushes are dropped.
const MOST_WORDS: usize = 1 << 22;

/// How tables are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRule {
    pub pieces: Rule,
    /// Every call has room for as many rows as the longest of its launch.
    pub is_padded: bool,
    /// Calls have room as their kernels' descriptions say.
    pub keeps_padding: bool,
    /// Without, each launch has tables of its own.
    pub is_shared: bool,
}

impl TableRule {
    /// The room that a kernel's calls have.
    pub fn padded(&self, form: &CallForm) -> Padded {
        match form.padding {
            _ if self.is_padded => Padded::ToLongest,
            Some(padding) if self.keeps_padding => Padded::To(padding),
            _ => Padded::Not,
        }
    }
}

/// Which tables a launch reads; those that its kernel asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    lengths: usize,
    work: usize,
    starts: Option<usize>,
    spans: Option<usize>,
    by_row: Option<usize>,
}

/// A table made of some lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// What a kernel of this form does.
    Work {
        form: usize,
    },
    /// Of each call the first row, where it has as many as this extent says, and so much room.
    Starts {
        extent: usize,
        padded: Padded,
    },
    /// And how many.
    Spans {
        extent: usize,
    },
    /// Each length of each row, one length after another.
    ByRow {
        extent: usize,
    },
    /// The rows of each call, counted from the call's first row, which words tell: for each row of the
    /// call the next one, or that one again.
    Expanded {
        extent: usize,
        firsts: usize,
    },
    Repeated {
        extent: usize,
        firsts: usize,
    },
}

/// Numbers, of calls, and what was made of them.
#[derive(Debug)]
struct Words {
    words: Arc<[u32]>,
    /// Where the words are lengths: the tables made of them, and their numbers.
    tables: Vec<(Table, usize)>,
}

/// The lengths of the calls of a launch: the number of calls, then each length of all calls.
#[derive(Clone, Copy)]
struct Lengths<'a>(&'a [u32]);

impl<'a> Lengths<'a> {
    fn calls(self) -> usize {
        self.0[0] as usize
    }

    fn columns(self) -> usize {
        (self.0.len() - 1) / self.calls().max(1)
    }

    /// One of the lengths of all calls.
    fn column(self, position: usize) -> &'a [u32] {
        let calls = self.calls();
        &self.0[1 + position * calls..][..calls]
    }

    /// A call's length, given by operand.
    fn of_call(self, kernel: &Kernel, call: usize) -> impl Fn(usize) -> u64 {
        move |operand| u64::from(self.column(kernel.form.column(operand))[call])
    }

    fn are_same(self, one: usize, other: usize) -> bool {
        let mut columns = (0..self.columns()).map(|column| self.column(column));
        columns.all(|column| column[one] == column[other])
    }

    /// The longest length of all calls, given by operand.
    fn longest(self, kernel: &Kernel) -> impl Fn(usize) -> u64 {
        move |operand| {
            let longest = self.column(kernel.form.column(operand)).iter().max();
            longest.map_or(0, |longest| u64::from(*longest))
        }
    }

    /// The rows of each call.
    fn rows(self, kernel: &Kernel) -> impl Iterator<Item = u64> {
        (0..self.calls()).map(move |call| kernel.form.rows_of(self.of_call(kernel, call)))
    }

    /// The rows that each call has room for; no more than an index can tell.
    fn rooms(self, kernel: &Kernel, padded: Padded) -> Vec<u32> {
        let count = |rows| u32::try_from(rows).unwrap_or(u32::MAX);
        let mut rooms: Vec<_> = self.rows(kernel).map(count).collect();
        padded.apply(&mut rooms);
        rooms
    }

    /// Of each call the first row, and how many.
    fn spans(self, kernel: &Kernel, padded: Padded) -> impl Iterator<Item = (u32, u32)> {
        let rooms = self.rooms(kernel, padded);
        let mut next = 0;
        self.rows(kernel).zip(rooms).map(move |(rows, room)| {
            let first = next;
            next += room;
            (first, rows as u32)
        })
    }
}

/// What a launch does.
#[derive(Debug)]
struct Work {
    ragged: RaggedWork,
    /// The rows that are computed, and those that there are if calls have room for more.
    rows: u64,
    room: u64,
    /// Its number among those that are made tasks.
    pieces: Option<usize>,
}

/// The tables of a batch.
#[derive(Debug)]
pub(super) struct Tables {
    rule: TableRule,
    words: Vec<Words>,
    by_words: HashMap<Arc<[u32]>, usize>,
    /// The words that were found last, by what asked for them: the next launch of a kernel's form
    /// probably has the same.
    hints: Vec<usize>,
    works: Vec<Work>,
    lists: Vec<Vec<u32>>,
    spans: Vec<Vec<(u32, u32)>>,
    pieces: Pieces,
    /// The words of all tables together.
    size: usize,
    counts: TableCounts,
    /// Room to make one in.
    call_works: Vec<CallWork>,
    offsets: Vec<u32>,
}

impl Tables {
    pub fn new(rule: TableRule) -> Tables {
        Tables {
            rule,
            words: Vec::new(),
            by_words: HashMap::new(),
            hints: Vec::new(),
            works: Vec::new(),
            lists: Vec::new(),
            spans: Vec::new(),
            pieces: Pieces::default(),
            size: 0,
            counts: TableCounts::default(),
            call_works: Vec::new(),
            offsets: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.by_words.clear();
        self.hints.fill(usize::MAX);
        self.works.clear();
        self.lists.clear();
        self.spans.clear();
        self.pieces.clear();
        self.size = 0;
    }

    /// No launch of an earlier flush needs its tables.
    pub fn begin_flush(&mut self) {
        if !self.rule.is_shared || self.size > MOST_WORDS {
            self.clear();
        }
    }

    /// Tables made and shared since [`Tables::clear_counts`].
    pub fn counts(&self) -> TableCounts {
        self.counts
    }

    pub fn rule(&self) -> TableRule {
        self.rule
    }

    pub fn clear_counts(&mut self) {
        self.counts = TableCounts::default();
    }

    /// The tables of a launch with room for so many rows; `words` is the number of its calls and then
    /// each length of all calls. `None` if the calls do not have as many rows.
    pub fn find(
        &mut self,
        kernel: &Kernel,
        words: &[u32],
        rows: u32,
        row_bytes: impl Fn(usize) -> u64,
    ) -> Option<Found> {
        let of = self.find_words(words, kernel.hints);
        let (form, extent) = (kernel.form_number, kernel.extent);
        let work = self.find_table(of, Table::Work { form }, |tables| {
            tables.make_work(of, kernel, row_bytes)
        });
        if self.works[work].room != u64::from(rows) {
            return None;
        }
        let padded = self.rule.padded(&kernel.form);
        let by_row = kernel.form.unit == Unit::Rows;
        let has_starts = !by_row && kernel.form.has_extent();
        let has_lengths = by_row && words.len() > 1;
        Some(Found {
            lengths: of,
            work,
            starts: has_starts.then(|| {
                self.find_list(of, Table::Starts { extent, padded }, |lengths| {
                    let spans = lengths.spans(kernel, padded);
                    spans.map(|(first, _)| first).collect()
                })
            }),
            spans: by_row.then(|| {
                self.find_table(of, Table::Spans { extent }, |tables| {
                    let spans = tables.lengths_of(of).spans(kernel, padded);
                    let spans: Vec<_> = spans.collect();
                    let words = 2 * spans.len();
                    (add(&mut tables.spans, spans), words)
                })
            }),
            by_row: has_lengths.then(|| {
                self.find_list(of, Table::ByRow { extent }, |lengths| {
                    lengths_by_row(lengths, kernel, rows as usize, padded)
                })
            }),
        })
    }

    /// How the rows of an operand lie of which each call has as many as its own, from these first rows
    /// on, in a launch over rows.
    pub fn expand(&mut self, kernel: &Kernel, operand: usize, found: Found, firsts: &[u32]) -> Run {
        let spans = found.spans.map_or(&[][..], |spans| &self.spans[spans]);
        // Where a piece of all rows would begin, says each call. Padding may be before it.
        let mut pieces = (spans.iter().zip(firsts))
            .filter(|((_, rows), _)| *rows > 0)
            .map(|((begin, _), first)| first.checked_sub(*begin));
        if let Some(Some(first)) = pieces.next()
            && pieces.all(|piece| piece == Some(first))
        {
            return Run::OnePiece { first };
        }
        let extent = kernel.extent;
        self.find_rows(kernel, operand, found, firsts, |firsts| Table::Expanded {
            extent,
            firsts,
        })
    }

    /// How the rows of an operand lie of which each call has one, in a launch over rows.
    pub fn repeat(&mut self, kernel: &Kernel, operand: usize, found: Found, firsts: &[u32]) -> Run {
        let extent = kernel.extent;
        self.find_rows(kernel, operand, found, firsts, |firsts| Table::Repeated {
            extent,
            firsts,
        })
    }

    fn find_rows(
        &mut self,
        kernel: &Kernel,
        operand: usize,
        found: Found,
        firsts: &[u32],
        table: impl FnOnce(usize) -> Table,
    ) -> Run {
        let spans = found.spans.map_or(&[][..], |spans| &self.spans[spans]);
        let calls = spans.iter().zip(firsts);
        let first = (calls.clone())
            .filter(|((_, rows), _)| *rows > 0)
            .map(|(_, first)| *first)
            .min();
        let first = first.unwrap_or(0);
        let mut offsets = std::mem::take(&mut self.offsets);
        offsets.clear();
        // Where a call without rows would have its first does not matter.
        offsets.extend(calls.map(|((_, rows), row)| match rows {
            0 => 0,
            _ => row - first,
        }));
        let number = self.find_words(&offsets, kernel.hints + 1 + operand);
        let table = table(number);
        let list = self.find_table(found.lengths, table, |tables| {
            let spans = found.spans.map_or(&[][..], |spans| &tables.spans[spans]);
            let room = tables.works[found.work].room as usize;
            let list = list_rows(
                spans,
                &offsets,
                room,
                matches!(table, Table::Repeated { .. }),
            );
            (add(&mut tables.lists, list), room)
        });
        self.offsets = offsets;
        Run::Listed { first, list }
    }

    fn lengths_of(&self, words: usize) -> Lengths<'_> {
        Lengths(&self.words[words].words)
    }

    /// The number of these words.
    fn find_words(&mut self, words: &[u32], hint: usize) -> usize {
        if self.hints.len() <= hint {
            self.hints.resize(hint + 1, usize::MAX);
        }
        if self.rule.is_shared {
            let known = self.words.get(self.hints[hint]);
            let found = match known.is_some_and(|known| *known.words == *words) {
                true => Some(self.hints[hint]),
                false => self.by_words.get(words).copied(),
            };
            if let Some(found) = found {
                self.hints[hint] = found;
                self.counts.shared += 1;
                return found;
            }
        }
        self.counts.made += 1;
        self.size += words.len();
        let words: Arc<[u32]> = words.into();
        let number = add(
            &mut self.words,
            Words {
                words: words.clone(),
                tables: Vec::new(),
            },
        );
        if self.rule.is_shared {
            self.by_words.insert(words, number);
            self.hints[hint] = number;
        }
        number
    }

    /// The number of a table of these lengths, which `make` makes if it is missing, and tells its words.
    fn find_table(
        &mut self,
        of: usize,
        table: Table,
        make: impl FnOnce(&mut Tables) -> (usize, usize),
    ) -> usize {
        let mut known = self.words[of].tables.iter();
        if let Some((_, number)) = known.find(|(known, _)| *known == table) {
            self.counts.shared += 1;
            return *number;
        }
        let (number, words) = make(self);
        self.counts.made += 1;
        self.size += words;
        self.words[of].tables.push((table, number));
        number
    }

    fn find_list(
        &mut self,
        of: usize,
        table: Table,
        make: impl FnOnce(Lengths<'_>) -> Vec<u32>,
    ) -> usize {
        self.find_table(of, table, |tables| {
            let list = make(tables.lengths_of(of));
            let words = list.len();
            (add(&mut tables.lists, list), words)
        })
    }

    fn make_work(
        &mut self,
        of: usize,
        kernel: &Kernel,
        row_bytes: impl Fn(usize) -> u64,
    ) -> (usize, usize) {
        let lengths = Lengths(&self.words[of].words);
        let form = &kernel.form;
        let calls = lengths.calls() as u64;
        let longest = lengths.longest(kernel);
        let dense_rows = calls.saturating_mul(form.rows_of(&longest));
        let rows_flops = |rows: u64| rows.saturating_mul(kernel.flops_per_row);
        let rows = lengths.rows(kernel).fold(0, u64::saturating_add);
        let room = match self.rule.padded(form) {
            Padded::Not => rows,
            padded => {
                let rooms = lengths.rooms(kernel, padded);
                rooms.into_iter().map(u64::from).sum()
            }
        };
        let dense_flops = calls.saturating_mul(form.flops(&longest));
        let mut ragged = RaggedWork {
            calls,
            flops: rows_flops(rows),
            bytes: 0,
            dense_rows,
            dense_flops: dense_flops.saturating_add(rows_flops(dense_rows)),
            dense_bytes: calls.saturating_mul(kernel.ragged_bytes(&row_bytes, &longest)),
        };
        self.call_works.clear();
        let (mut flops, mut bytes, mut work) = (0, 0, CallWork::default());
        for call in 0..lengths.calls() {
            // An instance often makes several calls, one a head.
            if call == 0 || !lengths.are_same(call - 1, call) {
                let length = lengths.of_call(kernel, call);
                flops = form.flops(&length);
                bytes = kernel.ragged_bytes(&row_bytes, &length);
                // A triangle is half of its square.
                let rising = form.rising_flops(&length);
                work = CallWork {
                    even: (flops - rising).saturating_add(bytes),
                    rising: rising / 2,
                    length: (form.division.as_ref()).map_or(0, |division| length(division.length)),
                };
            }
            ragged.flops = ragged.flops.saturating_add(flops);
            ragged.bytes = ragged.bytes.saturating_add(bytes);
            self.call_works.push(work);
        }
        let pieces = (form.unit == Unit::Calls).then(|| {
            let division = form.division.as_ref();
            self.pieces
                .add(&self.call_works, division, self.rule.pieces)
        });
        let words = pieces.map_or(0, |number| self.pieces.words(number));
        let work = Work {
            ragged,
            rows,
            room,
            pieces,
        };
        (add(&mut self.works, work), words)
    }

    /// One of the lengths of a launch's entries.
    pub fn lengths(&self, found: Found, column: usize) -> &[u32] {
        let lengths = self.lengths_of(found.lengths);
        match found.by_row {
            None => lengths.column(column),
            Some(list) => {
                let rows = self.lists[list].len() / lengths.columns();
                &self.lists[list][column * rows..][..rows]
            }
        }
    }

    /// The first row of each call of a launch, where its kernel counts calls that make rows.
    pub fn starts(&self, found: Found) -> Option<&[u32]> {
        found.starts.map(|starts| &self.lists[starts][..])
    }

    /// Where the calls of a launch over rows have theirs, if these are not to be one range.
    pub fn spans(&self, kernel: &Kernel, found: Found) -> Option<&[(u32, u32)]> {
        let has_spans = self.rule.is_padded || !kernel.form.fused;
        let spans = found.spans.filter(|_| has_spans);
        spans.map(|spans| &self.spans[spans][..])
    }

    /// A list of [`Run::Listed`].
    pub fn list(&self, list: usize) -> &[u32] {
        &self.lists[list]
    }

    /// What a launch does, and how many rows it computes.
    pub fn work(&self, found: Found) -> (&RaggedWork, u64) {
        let work = &self.works[found.work];
        (&work.ragged, work.rows)
    }

    /// The tasks of a launch whose kernel counts calls, and the pieces that they count.
    pub fn tasks(&self, found: Found) -> Option<(&[Task], &[[u32; 3]])> {
        let number = self.works[found.work].pieces?;
        Some((self.pieces.tasks(number), self.pieces.list(number)))
    }
}

fn lengths_by_row(lengths: Lengths<'_>, kernel: &Kernel, rows: usize, padded: Padded) -> Vec<u32> {
    let mut by_row = vec![0; rows * lengths.columns()];
    for (column, by_row) in by_row.chunks_exact_mut(rows.max(1)).enumerate() {
        let spans = lengths.spans(kernel, padded);
        for ((first, rows), length) in spans.zip(lengths.column(column)) {
            by_row[first as usize..][..rows as usize].fill(*length);
        }
    }
    by_row
}

/// The row of each row of a launch: that of its call, again and again or counting up.
fn list_rows(spans: &[(u32, u32)], firsts: &[u32], room: usize, is_repeated: bool) -> Vec<u32> {
    let mut list = vec![0; room];
    for ((begin, rows), first) in spans.iter().zip(firsts) {
        let list = &mut list[*begin as usize..][..*rows as usize];
        match is_repeated {
            true => list.fill(*first),
            false => (list.iter_mut().zip(*first..)).for_each(|(entry, row)| *entry = row),
        }
    }
    list
}

/// Adds a table to others; gives its number.
fn add<T>(tables: &mut Vec<T>, table: T) -> usize {
    tables.push(table);
    tables.len() - 1
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use cohort_abi::manifest::{self, CallShape, Division, Extent, Manifest, Operand};
    use cohort_abi::{KernelFn, OperandRef};

    use super::*;
    use crate::pack::pack_constants;

    const RULE: TableRule = TableRule {
        pieces: Rule {
            threads: 2,
            remapping: true,
        },
        is_padded: false,
        keeps_padding: true,
        is_shared: true,
    };

    /// A projection, attention over calls and a projection again, of that many layers.
    fn layers(layers: usize) -> Vec<Kernel> {
        let n = |times| Extent {
            lengths: vec![0],
            times,
        };
        let squared = Extent {
            lengths: vec![0, 0],
            times: 1 << 20,
        };
        let rows = |extents: Vec<Extent>| CallShape {
            extents,
            rows: Some(0),
            ..CallShape::default()
        };
        let over_rows = CallShape {
            fused: true,
            ..rows(vec![n(1)])
        };
        let over_calls = CallShape {
            unit: Unit::Calls,
            flops: vec![squared],
            division: Some(Division {
                length: 0,
                tile: 2,
                shared: 0,
                rising: vec![],
            }),
            ..rows(vec![n(1)])
        };
        let kernel = |name: &str, call: &CallShape| manifest::Kernel {
            name: name.to_owned(),
            symbol: name.to_owned(),
            location: String::new(),
            operands: vec![
                Operand::Length,
                Operand::Ragged {
                    space: 0,
                    extent: 0,
                },
            ],
            results: vec![0],
            constants: vec![],
            scratch_bytes: 0,
            row_tile: 1,
            flops_per_row: 5,
            row_products: vec![],
            call: call.clone(),
            gpu: None,
        };
        let layer = [&over_rows, &over_calls, &over_rows];
        let kernels = (0..layers).flat_map(|_| layer.map(|call| kernel("k", call)));
        let manifest = Manifest {
            kernels: kernels.collect(),
            spaces: vec![manifest::Space {
                elem: manifest::Elem::F32,
                shape: vec![4],
            }],
            ..crate::arena::tests::manifest()
        };
        let constants = pack_constants(&manifest, &[]).unwrap();
        let functions = vec![nothing as KernelFn; manifest.kernels.len()];
        Kernel::all(&manifest, &functions, &constants)
    }

    unsafe extern "C" fn nothing(
        _: i64,
        _: i64,
        _: *const OperandRef,
        _: *const *mut c_void,
        _: *const *const c_void,
        _: *mut c_void,
    ) {
    }

    /// A flush of all kernels over calls of these lengths: the tables of each.
    fn flush(tables: &mut Tables, kernels: &[Kernel], lengths: &[u32]) -> Vec<Found> {
        tables.begin_flush();
        let words = [&[lengths.len() as u32], lengths].concat();
        let rows = lengths.iter().sum();
        let each = kernels
            .iter()
            .map(|kernel| tables.find(kernel, &words, rows, |_| 16));
        each.map(Option::unwrap).collect()
    }

    /// Everything that launches read.
    fn read(tables: &Tables, found: &[Found]) -> String {
        let each = found.iter().map(|found| {
            let rows = (
                tables.starts(*found),
                found.spans.map(|spans| &tables.spans[spans]),
            );
            let work = (tables.work(*found), tables.tasks(*found));
            format!("{:?} {rows:?} {work:?}", tables.lengths(*found, 0))
        });
        each.collect()
    }

    #[test]
    fn six_layers_have_the_tables_of_one() {
        let lengths = [3, 0, 4, 1];
        let mut one = Tables::new(RULE);
        let first = flush(&mut one, &layers(1), &lengths);
        assert_eq!(one.lengths(first[0], 0), [3, 3, 3, 4, 4, 4, 4, 1]);
        assert_eq!(one.lengths(first[1], 0), lengths);
        assert_eq!(one.starts(first[1]).unwrap(), [0, 3, 3, 7]);
        // The lengths, also by row; first rows; the rows of each call; work of either kind.
        assert_eq!(one.counts(), TableCounts { made: 6, shared: 5 });
        let mut six = Tables::new(RULE);
        let found = flush(&mut six, &layers(6), &lengths);
        let counts = TableCounts {
            made: 6,
            shared: 5 + 5 * 11,
        };
        assert_eq!(six.counts(), counts);
        let mut apart = Tables::new(TableRule {
            is_shared: false,
            ..RULE
        });
        let found_apart = flush(&mut apart, &layers(6), &lengths);
        let counts = TableCounts {
            made: 6 * 11,
            shared: 0,
        };
        assert_eq!(apart.counts(), counts);
        assert_eq!(read(&six, &found), read(&apart, &found_apart));
        assert_eq!(read(&six, &found[15..]), read(&one, &first));
    }

    #[test]
    fn lengths_in_another_order_are_others_and_are_found_again_until_the_batch_ends() {
        let kernels = layers(1);
        let mut tables = Tables::new(RULE);
        let all = [&[3, 4, 1][..], &[4, 3, 1], &[3, 4], &[], &[3, 4, 1]];
        let found = all.map(|lengths| flush(&mut tables, &kernels, lengths));
        assert_eq!(found[0], found[4]);
        for (at, one) in found[..4].iter().enumerate() {
            let mut alone = Tables::new(RULE);
            let found = flush(&mut alone, &kernels, all[at]);
            assert_eq!(read(&tables, one), read(&alone, &found));
        }
        tables.clear();
        tables.clear_counts();
        flush(&mut tables, &kernels, all[0]);
        assert_eq!(tables.counts(), TableCounts { made: 6, shared: 5 });
    }

    #[test]
    fn tables_that_became_too_large_are_dropped() {
        let kernels = layers(1);
        let mut tables = Tables::new(RULE);
        let long: Vec<u32> = (0..MOST_WORDS as u32 / 4).map(|call| call % 2).collect();
        flush(&mut tables, &kernels, &[3, 4]);
        flush(&mut tables, &kernels, &long);
        assert!(tables.size > MOST_WORDS);
        let found = flush(&mut tables, &kernels, &[3, 4]);
        assert!(tables.size < 100);
        assert_eq!(tables.starts(found[1]).unwrap(), [0, 3]);
    }

    #[test]
    fn other_rows_than_there_is_room_for_are_refused() {
        let kernels = layers(1);
        let mut tables = Tables::new(RULE);
        assert_eq!(tables.find(&kernels[1], &[2, 3, 4], 8, |_| 16), None);
        let mut padded = Tables::new(TableRule {
            is_padded: true,
            ..RULE
        });
        let found = padded.find(&kernels[0], &[2, 3, 4], 8, |_| 16).unwrap();
        assert_eq!(padded.spans(&kernels[0], found).unwrap(), [(0, 3), (4, 4)]);
        assert_eq!(padded.lengths(found, 0), [3, 3, 3, 0, 4, 4, 4, 4]);
    }

    #[test]
    fn lists_count_from_a_row_and_are_made_only_where_rows_do_not_lie_in_one_piece() {
        let kernels = layers(2);
        let mut tables = Tables::new(RULE);
        let found = flush(&mut tables, &kernels, &[2, 0, 2, 1]);
        let (kernel, of) = (&kernels[0], found[0]);
        let run = tables.expand(kernel, 1, of, &[10, 77, 12, 14]);
        assert_eq!(run, Run::OnePiece { first: 10 });
        let before = tables.counts();
        let rows = |tables: &Tables, run| match run {
            Run::Listed { first, list } => {
                tables.list(list).iter().map(|row| first + row).collect()
            }
            _ => vec![],
        };
        let run = tables.expand(kernel, 1, of, &[10, 77, 30, 2]);
        assert_eq!(rows(&tables, run), [10, 11, 30, 31, 2]);
        let again = tables.repeat(kernel, 1, of, &[10, 77, 30, 2]);
        assert_eq!(rows(&tables, again), [10, 10, 30, 30, 2]);
        // The next layer's rows lie as these do.
        let next = tables.expand(&kernels[3], 1, found[3], &[110, 5, 130, 102]);
        assert_eq!(rows(&tables, next), [110, 111, 130, 131, 102]);
        let counts = tables.counts();
        assert_eq!(
            (counts.made - before.made, counts.shared - before.shared),
            (3, 3)
        );
        // Equal rows of others than these lengths are another list.
        let other = flush(&mut tables, &kernels, &[1, 1, 1, 1]);
        let run = tables.expand(kernel, 1, other[0], &[10, 77, 30, 2]);
        assert_eq!(rows(&tables, run), [10, 77, 30, 2]);
    }
}
