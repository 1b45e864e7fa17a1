//! What a flush knows of the launches of ragged kernels: the lengths of their calls, and the first row of
//! each operand of each call. Everything else is made of these ([`super::tables`]).
//!
//! Values of one instance lie in one piece, and so do mostly those of a whole launch: what one bucket
//! computed, the next reads, in the same order. An operand of which that is true needs no index list,
//! and none is made ([`Run`]).

use cohort_abi::manifest::{Operand, Padding, Unit};

use super::Executor;
use super::bucket_rows::NO_ROW;
use super::indices::all_inside;
use super::tables::Found;
use crate::error::Error;
use crate::program::call_form::CallForm;

/// How many rows of storage the calls of a launch get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padded {
    /// As many as they have.
    Not,
    /// As many as the longest of them.
    ToLongest,
    To(Padding),
}

impl Padded {
    /// Rounds the rows of the calls of a launch; more than can be counted are as many as can be.
    pub fn apply(self, rows: &mut [u32]) {
        match self {
            Padded::Not => {}
            Padded::ToLongest => {
                let longest = rows.iter().copied().max().unwrap_or(0);
                rows.fill(longest);
            }
            Padded::To(padding) => {
                let up = |rows: u32| rows.checked_next_multiple_of(padding.rows);
                for rows in rows.iter_mut() {
                    *rows = up(*rows).unwrap_or(u32::MAX);
                }
                let all: u64 = rows.iter().copied().map(u64::from).sum();
                let more = all.next_multiple_of(u64::from(padding.bulk)) - all;
                if let Some(last) = rows.last_mut() {
                    let padded = u64::from(*last) + more;
                    *last = u32::try_from(padded).unwrap_or(u32::MAX);
                }
            }
        }
    }
}

/// How the rows that a launch reads of one operand lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Run {
    /// The list of the first rows of calls tells them.
    #[default]
    ByCall,
    /// Row `i` of the launch reads row `first + i`.
    OnePiece { first: u32 },
    /// What each call reads lies in one piece from its first row on, and calls are computed one by one.
    Pieces,
    /// Row `i` of the launch reads row `first` and as many more as entry `i` of a list.
    Listed { first: u32, list: usize },
}

/// A launch of a ragged kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RaggedLaunch {
    /// Its first operand's run; the others follow.
    pub run_start: usize,
    /// Its part of `lengths`.
    lengths: (usize, usize),
    /// The first row of its first operand's first call.
    first_start: usize,
    operands: usize,
    /// Whether some operand of some call has no rows.
    has_empty: bool,
    /// Its tables, when all its calls are known.
    pub tables: Found,
}

/// All launches of ragged kernels of a flush.
#[derive(Debug, Default)]
pub(super) struct RaggedLaunches {
    pub launches: Vec<RaggedLaunch>,
    pub runs: Vec<Run>,
    /// Of each launch the number of its calls, then each length of all calls.
    lengths: Vec<u32>,
    /// Of each operand the first row of each call, one operand after another.
    firsts: Vec<u32>,
    /// Of launches that are groups: where the starts of its calls begin, by launch; and for each
    /// call the row of the launch at which it begins.
    group_starts: Vec<usize>,
    starts: Vec<u32>,
}

impl RaggedLaunches {
    pub fn clear(&mut self) {
        self.launches.clear();
        self.runs.clear();
        self.lengths.clear();
        self.firsts.clear();
        self.group_starts.clear();
        self.starts.clear();
    }

    /// Makes room for a launch; gives its number.
    pub fn add(&mut self, form: &CallForm, calls: u32) -> usize {
        let operands = form.slots.len();
        let begin = self.lengths.len();
        self.lengths.push(calls);
        let end = begin + 1 + form.lengths().count() * calls as usize;
        self.lengths.resize(end, 0);
        self.launches.push(RaggedLaunch {
            run_start: self.runs.len(),
            lengths: (begin, end),
            first_start: self.firsts.len(),
            operands,
            has_empty: false,
            tables: Found::default(),
        });
        self.runs.resize(self.runs.len() + operands, Run::ByCall);
        let firsts = self.firsts.len() + operands * calls as usize;
        self.firsts.resize(firsts, 0);
        self.launches.len() - 1
    }

    /// Notes the lengths of a call; whether kernels can be told them.
    #[inline]
    pub fn note_lengths(
        &mut self,
        launch: usize,
        call: usize,
        form: &CallForm,
        entry: &[u64],
    ) -> bool {
        let begin = self.launches[launch].lengths.0;
        let calls = self.lengths[begin] as usize;
        let mut fit = true;
        for (column, operand) in form.lengths().enumerate() {
            fit &= entry[operand] <= u64::from(u32::MAX);
            self.lengths[begin + 1 + column * calls + call] = entry[operand] as u32;
        }
        fit
    }

    /// Notes the first row of an operand of a call, if it has rows.
    #[inline]
    pub fn note_first(&mut self, launch: usize, operand: usize, call: usize, row: Option<u32>) {
        let launch = &mut self.launches[launch];
        launch.has_empty |= row.is_none();
        let calls = self.lengths[launch.lengths.0] as usize;
        self.firsts[launch.first_start + operand * calls + call] = row.unwrap_or(NO_ROW);
    }

    /// Calls of a launch that have no rows of an operand begin where the first one begins that does: nobody reads what is there, but
    /// it lies where the others' rows do.
    pub fn place_empty(&mut self, launch: usize) {
        let launch = &self.launches[launch];
        let calls = self.lengths[launch.lengths.0] as usize;
        if !launch.has_empty {
            return;
        }
        let operands = launch.operands;
        let firsts = &mut self.firsts[launch.first_start..][..operands * calls];
        for firsts in firsts.chunks_mut(calls.max(1)) {
            let any = firsts.iter().copied().find(|first| *first != NO_ROW);
            for first in firsts.iter_mut().filter(|first| **first == NO_ROW) {
                *first = any.unwrap_or(0);
            }
        }
    }

    /// The first row of an operand in each call of a launch.
    pub fn firsts(&self, launch: usize, operand: usize) -> &[u32] {
        let launch = &self.launches[launch];
        let calls = self.lengths[launch.lengths.0] as usize;
        &self.firsts[launch.first_start + operand * calls..][..calls]
    }

    /// How the rows lie that a launch reads of an operand.
    pub fn run(&self, launch: usize, operand: usize) -> Run {
        self.runs[self.launches[launch].run_start + operand]
    }

    /// The number of a launch's calls, then each length of all calls.
    pub fn lengths(&self, launch: usize) -> &[u32] {
        let (begin, end) = self.launches[launch].lengths;
        &self.lengths[begin..end]
    }

    /// Begins with groups of `calls` calls.
    pub fn begin_groups(&mut self, calls: impl Iterator<Item = u32>) {
        let mut total = 0;
        for calls in calls {
            self.group_starts.push(total);
            total += calls as usize;
        }
        self.starts.resize(total, 0);
    }

    /// A call of a group makes `rows` rows.
    pub fn set_rows(&mut self, group: u32, call: u32, rows: u64) {
        self.starts[self.group_starts[group as usize] + call as usize] = rows as u32;
    }

    /// Gives the calls of each group the rows that its padding adds.
    pub fn pad(&mut self, paddings: impl Iterator<Item = Padded>) {
        for ((group, begin), padding) in self.group_starts.iter().enumerate().zip(paddings) {
            let all = self.starts.len();
            let end = self.group_starts.get(group + 1).copied().unwrap_or(all);
            padding.apply(&mut self.starts[*begin..end]);
        }
    }

    /// The rows of all calls of a group.
    pub fn group_rows(&self, group: usize, calls: u32) -> u64 {
        let begin = self.group_starts[group];
        let rows = &self.starts[begin..begin + calls as usize];
        rows.iter().copied().map(u64::from).sum()
    }

    /// Makes the rows of a group's calls the places where they begin; gives how many there are.
    pub fn place_group(&mut self, group: usize, calls: u32) -> u32 {
        let begin = self.group_starts[group];
        let mut next = 0;
        for start in &mut self.starts[begin..begin + calls as usize] {
            let rows = std::mem::replace(start, next);
            next += rows;
        }
        next
    }

    /// The row of a group at which a call begins.
    #[inline]
    pub fn start(&self, group: u32, call: u32) -> u32 {
        self.starts[self.group_starts[group as usize] + call as usize]
    }
}

impl Executor {
    /// Finds what the lengths of ragged launches make, or makes it.
    pub(super) fn find_tables(&mut self) -> Result<(), Error> {
        for placed in self.placed.iter().filter(|placed| placed.rows > 0) {
            let Some(launch) = placed.ragged else {
                continue;
            };
            let kernel = &self.kernels[placed.kernel as usize];
            let row_bytes = |pool| self.arena.row_bytes(pool);
            let lengths = self.ragged.lengths(launch);
            let Some(found) = (self.tables).find(kernel, lengths, placed.rows, row_bytes) else {
                return all_inside(true);
            };
            self.ragged.launches[launch].tables = found;
            self.ragged.place_empty(launch);
            if kernel.form.unit == Unit::Rows {
                let runs = self.ragged.launches[launch].run_start;
                for (position, operand) in kernel.operands.iter().enumerate() {
                    let firsts = self.ragged.firsts(launch, position);
                    self.ragged.runs[runs + position] = match operand {
                        Operand::Row { .. } => self.tables.repeat(kernel, position, found, firsts),
                        Operand::Ragged { .. } => {
                            self.tables.expand(kernel, position, found, firsts)
                        }
                        _ => continue,
                    };
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_groups_begin_where_those_before_them_end() {
        let mut launches = RaggedLaunches::default();
        launches.begin_groups([2, 3].into_iter());
        for (group, call, rows) in [(1, 2, 4), (0, 0, 7), (1, 0, 0), (0, 1, 1), (1, 1, 5)] {
            launches.set_rows(group, call, rows);
        }
        assert_eq!(
            [launches.place_group(0, 2), launches.place_group(1, 3)],
            [8, 9]
        );
        let starts = [0, 1, 2].map(|call| launches.start(1, call));
        assert_eq!((launches.start(0, 1), starts), (7, [0, 0, 5]));
    }

    #[test]
    fn padded_calls_have_the_rows_of_the_longest_of_their_group() {
        let mut launches = RaggedLaunches::default();
        launches.begin_groups([2, 3].into_iter());
        for (group, call, rows) in [(0, 0, 7), (0, 1, 1), (1, 1, 5), (1, 2, 4)] {
            launches.set_rows(group, call, rows);
        }
        launches.pad([Padded::ToLongest; 2].into_iter());
        assert_eq!(
            [launches.group_rows(0, 2), launches.group_rows(1, 3)],
            [14, 15]
        );
        assert_eq!(launches.place_group(1, 3), 15);
        assert_eq!([0, 1, 2].map(|call| launches.start(1, call)), [0, 5, 10]);
    }

    #[test]
    fn padded_calls_begin_at_multiples() {
        let mut launches = RaggedLaunches::default();
        launches.begin_groups([2, 3].into_iter());
        for (group, call, rows) in [(0, 0, 7), (0, 1, 1), (1, 1, 5), (1, 2, 4)] {
            launches.set_rows(group, call, rows);
        }
        let to = Padded::To(Padding { rows: 4, bulk: 10 });
        launches.pad([Padded::Not, to].into_iter());
        assert_eq!(
            [launches.place_group(0, 2), launches.place_group(1, 3)],
            [8, 20]
        );
        assert_eq!([0, 1, 2].map(|call| launches.start(1, call)), [0, 0, 8]);
        // What cannot be counted is refused where memory is taken.
        let mut rows = [u32::MAX - 1, 3];
        to.apply(&mut rows);
        assert_eq!(rows, [u32::MAX, 5]);
    }
}
