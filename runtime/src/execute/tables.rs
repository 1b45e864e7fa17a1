//! Tables that the lengths of a launch's calls make: where each call's rows begin, the lengths as
//! kernels read them, what each call costs, and which thread computes which part.
//!
//! None of them depends on where operands lie. So launches whose calls have equal lengths, in the same
//! order, share them: the operators of a layer where their kernels ask for the same table, and all
//! layers of a network. They are made once a batch (CoRa §5, auxiliary structures that operators share
//! and that are hoisted). What is equal is found by comparing all lengths. Only the first rows of the
//! operands of calls are found for each launch by itself ([`super::indices`]). Where these differ from
//! those of another launch by the same number everywhere, as from layer to layer, index lists are
//! shared, too: a list counts from a row that each launch has for itself.

mod lengths;

use std::collections::HashMap;
use std::sync::Arc;

use cohort_abi::manifest::Unit;

use super::kernel::Kernel;
use super::pieces;
use super::ragged::{Padded, Run};
use super::work_items::{CallWork, Rule, Task, WorkItems};
use crate::program::call_form::CallForm;
use crate::report::stats::{RaggedWork, TableCounts};
use lengths::Lengths;

/// Words that tables may have together when a flush begins; else those of earlier flushes are dropped.
const MOST_WORDS: usize = 1 << 22;

/// How tables are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRule {
    pub items: Rule,
    /// Every call has room for as many rows as the longest of its launch.
    pub is_padded: bool,
    /// Calls have room as their kernels' descriptions say.
    pub keeps_padding: bool,
    /// Without, each launch has tables of its own.
    pub is_shared: bool,
    /// Calls with many rows may be computed one by one.
    pub has_pieces: bool,
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
}

/// A table made of some lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// What a kernel of this form does.
    Work {
        form: usize,
    },
    /// Of each call the first row, where it has as many as this extent says, with the padding.
    Starts {
        extent: usize,
        padded: Padded,
    },
    /// And how many.
    Spans {
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

/// What a launch does.
#[derive(Debug)]
struct Work {
    ragged: RaggedWork,
    /// The rows that are computed, as a reader counts them; those that are stored, and more if calls have
    /// room for more.
    rows: u64,
    room: u64,
    /// Its number among those that are made tasks.
    items: Option<usize>,
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
    items: WorkItems,
    /// The words of all tables together.
    size: usize,
    counts: TableCounts,
    /// Room to make one in.
    call_works: Vec<CallWork>,
    offsets: Vec<u32>,
    /// Memory of lists that nobody needs any more, for the next ones: the system gives new memory page by page.
    spare: Vec<Vec<u32>>,
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
            items: WorkItems::default(),
            size: 0,
            counts: TableCounts::default(),
            call_works: Vec::new(),
            offsets: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// From now on calls are divided between `threads` threads.
    pub fn set_threads(&mut self, threads: usize) {
        self.clear();
        self.rule.items.threads = threads;
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.by_words.clear();
        self.hints.fill(usize::MAX);
        self.works.clear();
        // The next lists are probably as long, in the same order.
        self.spare = std::mem::take(&mut self.lists);
        self.spare.reverse();
        self.spans.clear();
        self.items.clear();
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

    /// The tables of a launch with room for a number of rows; `words` is the number of its calls and then
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
        let starts = has_starts.then(|| {
            self.find_list(of, Table::Starts { extent, padded }, |tables, list| {
                let spans = tables.lengths_of(of).spans(kernel, padded);
                list.extend(spans.map(|(first, _)| first));
            })
        });
        let spans = by_row.then(|| {
            self.find_table(of, Table::Spans { extent }, |tables| {
                let spans = tables.lengths_of(of).spans(kernel, padded);
                let spans: Vec<_> = spans.collect();
                let words = 2 * spans.len();
                (add(&mut tables.spans, spans), words)
            })
        });
        Some(Found {
            lengths: of,
            work,
            starts,
            spans,
        })
    }

    /// How the rows of an operand lie of which each call has as many as its own, from these first rows
    /// on, in a launch over rows.
    pub fn expand(&mut self, kernel: &Kernel, operand: usize, found: Found, firsts: &[u32]) -> Run {
        // Where a work item of all rows would begin, says each call. Padding may be before it.
        let mut items = (self.all_spans(found).iter().zip(firsts))
            .filter(|((_, rows), _)| *rows > 0)
            .map(|((begin, _), first)| first.checked_sub(*begin));
        if let Some(Some(first)) = items.next()
            && items.all(|item| item == Some(first))
        {
            return Run::OnePiece { first };
        }
        let room = self.works[found.work].room as usize;
        if self.rule.has_pieces && pieces::are_worth_it(kernel, firsts.len(), room) {
            return Run::Pieces;
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

    /// The rows of an operand, counted from the least of `firsts`: `table` says which ones, given the number of what
    /// `firsts` are counted from there.
    fn find_rows(
        &mut self,
        kernel: &Kernel,
        operand: usize,
        found: Found,
        firsts: &[u32],
        table: impl FnOnce(usize) -> Table,
    ) -> Run {
        let mut offsets = std::mem::take(&mut self.offsets);
        let calls = self.all_spans(found).iter().zip(firsts);
        let first = (calls.clone())
            .filter(|((_, rows), _)| *rows > 0)
            .map(|(_, first)| *first)
            .min();
        let first = first.unwrap_or(0);
        offsets.clear();
        // Where a call without rows would have its first does not matter.
        offsets.extend(calls.map(|((_, rows), row)| match rows {
            0 => 0,
            _ => row - first,
        }));
        let number = self.find_words(&offsets, kernel.hints + 1 + operand);
        let table = table(number);
        let list = self.find_list(found.lengths, table, |tables, list| {
            let room = tables.works[found.work].room as usize;
            let is_repeated = matches!(table, Table::Repeated { .. });
            append_rows(tables.all_spans(found), &offsets, room, is_repeated, list);
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

    /// As [`Tables::find_table`], of a list, which `write` writes.
    fn find_list(
        &mut self,
        of: usize,
        table: Table,
        write: impl FnOnce(&Tables, &mut Vec<u32>),
    ) -> usize {
        self.find_table(of, table, |tables| {
            let mut list = tables.spare.pop().unwrap_or_default();
            list.clear();
            write(tables, &mut list);
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
        let read = (0..lengths.calls())
            .map(|call| form.read_rows_of(lengths.of_call(kernel, call)))
            .fold(0, u64::saturating_add);
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
            dense_rows: calls.saturating_mul(form.read_rows_of(&longest)),
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
        let items = (form.unit == Unit::Calls).then(|| {
            let division = form.division.as_ref();
            self.items.add(&self.call_works, division, self.rule.items)
        });
        let words = items.map_or(0, |number| self.items.words(number));
        let work = Work {
            ragged,
            rows: read,
            room,
            items,
        };
        (add(&mut self.works, work), words)
    }

    /// One of the lengths of a launch's calls. Kernels that count rows do not ask for it.
    pub fn lengths(&self, found: Found, column: usize) -> &[u32] {
        self.lengths_of(found.lengths).column(column)
    }

    /// The first row of each call of a launch, where its kernel counts calls that make rows.
    pub fn starts(&self, found: Found) -> Option<&[u32]> {
        found.starts.map(|starts| &self.lists[starts][..])
    }

    /// Where the calls of a launch over rows have theirs, if these are not to be one range.
    pub fn spans(&self, kernel: &Kernel, found: Found) -> Option<&[(u32, u32)]> {
        let has_spans = self.rule.is_padded || !kernel.form.fused;
        found
            .spans
            .filter(|_| has_spans)
            .map(|_| self.all_spans(found))
    }

    /// Where the calls of a launch over rows have theirs.
    pub fn all_spans(&self, found: Found) -> &[(u32, u32)] {
        found.spans.map_or(&[], |spans| &self.spans[spans])
    }

    /// A list of [`Run::Listed`].
    pub fn list(&self, list: usize) -> &[u32] {
        &self.lists[list]
    }

    /// What a launch does, and how many rows it computes, as a reader counts them.
    pub fn work(&self, found: Found) -> (&RaggedWork, u64) {
        let work = &self.works[found.work];
        (&work.ragged, work.rows)
    }

    /// The tasks of a launch whose kernel counts calls, and the work items that they count.
    pub fn tasks(&self, found: Found) -> Option<(&[Task], &[[u32; 3]])> {
        let number = self.works[found.work].items?;
        Some((self.items.tasks(number), self.items.list(number)))
    }
}

/// Appends a word for each row of a launch: that of its call, again and again or counting up. Room that no
/// call has is 0.
fn append_rows(
    spans: &[(u32, u32)],
    words: &[u32],
    room: usize,
    is_repeated: bool,
    list: &mut Vec<u32>,
) {
    let before = list.len();
    list.reserve(room);
    for ((begin, rows), word) in spans.iter().zip(words) {
        list.resize(before + *begin as usize, 0);
        match is_repeated {
            true => list.extend(std::iter::repeat_n(*word, *rows as usize)),
            false => list.extend(*word..word + rows),
        }
    }
    list.resize(before + room, 0);
}

/// Adds a table to others; gives its number.
fn add<T>(tables: &mut Vec<T>, table: T) -> usize {
    tables.push(table);
    tables.len() - 1
}

#[cfg(test)]
mod tests;
