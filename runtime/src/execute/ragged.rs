//! What a flush knows of the launches of ragged kernels: where each call's rows begin, which operands
//! lie in one piece, and how much work each call is.
//!
//! Values of one instance lie in one piece, and so do mostly those of a whole launch: what one bucket
//! computed, the next reads, in the same order. An operand of which that is true needs no index list,
//! and none is written ([`Run`]).

use super::launch::Placed;
use super::pieces::CallWork;
use crate::call_form::CallForm;

/// How the rows that a launch reads of one operand lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// No row is known so far.
    Unknown,
    /// Row `i` of the launch reads row `first + i`, for all calls so far. Nothing is written.
    OnePiece { first: u32 },
    /// The index list is written.
    Scattered,
}

impl Run {
    /// A call reads `rows` rows from `first` on as the launch's rows from `row` on; `index` is the
    /// operand's list.
    #[inline]
    pub fn add(&mut self, index: &mut [u32], row: usize, rows: usize, first: u32) {
        if rows == 0 {
            return;
        }
        // Calls may come in any order, so what counts is the row at which the piece would begin.
        let begin = first.wrapping_sub(row as u32);
        match *self {
            Run::Unknown => *self = Run::OnePiece { first: begin },
            Run::OnePiece { first } if first == begin => {}
            Run::OnePiece { first } => {
                // What is not that piece is overwritten, by this call and by those that follow.
                count_up(index, first);
                *self = Run::Scattered;
                count_up(&mut index[row..row + rows], begin.wrapping_add(row as u32));
            }
            Run::Scattered => count_up(&mut index[row..row + rows], first),
        }
    }
}

impl Run {
    /// Writes the list of an operand that lies in one piece, for those who must have one.
    pub fn write(self, index: &mut [u32]) {
        if let Run::OnePiece { first } = self {
            count_up(index, first);
        }
    }
}

fn count_up(list: &mut [u32], first: u32) {
    for (entry, offset) in list.iter_mut().zip(0..) {
        *entry = first.wrapping_add(offset);
    }
}

/// A launch of a ragged kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RaggedLaunch {
    /// Its first operand's run; the others follow.
    pub run_start: usize,
    /// Its first call's place in `works` and `spans`.
    pub work_start: usize,
    /// Its first operand's place in `longest`.
    pub length_start: usize,
    /// Of products, besides those a row.
    pub flops: u64,
    /// Of ragged operands and results.
    pub bytes: u64,
}

/// All launches of ragged kernels of a flush.
#[derive(Debug, Default)]
pub(super) struct RaggedLaunches {
    pub launches: Vec<RaggedLaunch>,
    pub runs: Vec<Run>,
    /// What each call costs, where the unit is the call.
    pub works: Vec<CallWork>,
    /// The first row of each call in its launch, and how many it has.
    spans: Vec<(u32, u32)>,
    /// The longest length of each operand that is one.
    pub longest: Vec<u64>,
    /// Of launches that are groups: where the starts of its calls begin, by launch; and for each
    /// call the row of the launch at which it begins.
    group_starts: Vec<usize>,
    starts: Vec<u32>,
}

impl RaggedLaunches {
    pub fn clear(&mut self) {
        self.launches.clear();
        self.runs.clear();
        self.works.clear();
        self.spans.clear();
        self.longest.clear();
        self.group_starts.clear();
        self.starts.clear();
    }

    /// Where the calls of a launch have their rows.
    pub fn spans(&self, launch: usize, calls: u32) -> &[(u32, u32)] {
        let start = self.launches[launch].work_start;
        &self.spans[start..start + calls as usize]
    }

    /// Makes room for a launch; gives its number.
    pub fn add(&mut self, form: &CallForm, calls: u32) -> usize {
        let operands = form.slots.len();
        self.launches.push(RaggedLaunch {
            run_start: self.runs.len(),
            work_start: self.works.len(),
            length_start: self.longest.len(),
            ..RaggedLaunch::default()
        });
        self.runs.resize(self.runs.len() + operands, Run::Unknown);
        let works = self.works.len() + calls as usize;
        self.works.resize(works, CallWork::default());
        self.spans.resize(works, (0, 0));
        self.longest.resize(self.longest.len() + operands, 0);
        self.launches.len() - 1
    }

    /// What the calls of a launch cost.
    pub fn works(&self, placed: &Placed) -> &[CallWork] {
        let launch = placed.ragged.map(|ragged| self.launches[ragged].work_start);
        launch.map_or(&[], |start| {
            &self.works[start..start + placed.calls as usize]
        })
    }

    /// Notes where a call has its rows.
    pub fn set_span(&mut self, launch: usize, call: usize, row: usize, rows: u64) {
        let start = self.launches[launch].work_start;
        self.spans[start + call] = (row as u32, rows as u32);
    }

    /// Notes the lengths of a call.
    pub fn note_lengths(&mut self, launch: usize, form: &CallForm, entry: &[u64]) {
        let start = self.launches[launch].length_start;
        for operand in form.lengths() {
            let longest = &mut self.longest[start + operand];
            *longest = (*longest).max(entry[operand]);
        }
    }

    /// Begins with groups of so many calls each.
    pub fn begin_groups(&mut self, calls: impl Iterator<Item = u32>) {
        let mut total = 0;
        for calls in calls {
            self.group_starts.push(total);
            total += calls as usize;
        }
        self.starts.resize(total, 0);
    }

    /// A call of a group makes so many rows.
    pub fn set_rows(&mut self, group: u32, call: u32, rows: u64) {
        self.starts[self.group_starts[group as usize] + call as usize] = rows as u32;
    }

    /// Gives every call of a group the rows of the longest of them.
    pub fn pad(&mut self) {
        for (group, begin) in self.group_starts.iter().enumerate() {
            let all = self.starts.len();
            let end = self.group_starts.get(group + 1).copied().unwrap_or(all);
            let rows = &mut self.starts[*begin..end];
            let longest = rows.iter().copied().max().unwrap_or(0);
            rows.fill(longest);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_only_where_rows_do_not_lie_in_one_piece() {
        let mut index = [9; 7];
        let mut run = Run::Unknown;
        run.add(&mut index, 0, 0, 77);
        assert_eq!(run, Run::Unknown);
        // Out of order, as groups are.
        run.add(&mut index, 2, 2, 12);
        run.add(&mut index, 0, 2, 10);
        run.add(&mut index, 4, 0, 3);
        assert_eq!((run, index), (Run::OnePiece { first: 10 }, [9; 7]));
        run.add(&mut index, 5, 2, 30);
        run.add(&mut index, 4, 1, 2);
        assert_eq!((run, index), (Run::Scattered, [10, 11, 12, 13, 2, 30, 31]));
    }

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
        launches.pad();
        assert_eq!(
            [launches.group_rows(0, 2), launches.group_rows(1, 3)],
            [14, 15]
        );
        assert_eq!(launches.place_group(1, 3), 15);
        assert_eq!([0, 1, 2].map(|call| launches.start(1, call)), [0, 5, 10]);
    }
}
