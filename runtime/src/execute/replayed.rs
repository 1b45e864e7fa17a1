//! Index lists of calls that are written from recordings ([`crate::recorder`]), where each bucket is whole in a launch.
//!
//! The calls of an instance in a launch lie behind each other, and a recording has what they read operand by operand. So
//! each list gets what these calls have there in one loop, which adds to an offset the row that it is relative to.

use cohort_abi::Handle;
use cohort_abi::manifest::Operand;

use super::launch::Placed;
use super::{Executor, recorded};
use crate::recorder::{Calls, Form, Part, Recorder, Run, follow};

/// A row beyond those of any row pool, and still is with an offset added.
const BEYOND: u32 = 1 << 31;

/// Rows of one instance.
struct Rows<'a> {
    form: Form,
    /// What each reference of the recording stands for.
    of_references: &'a [u32],
}

impl Rows<'_> {
    #[inline(always)]
    fn row(&self, word: u32) -> u32 {
        let first = self.of_references[self.form.reference(word)];
        // Rows of a row pool fit 31 bits, and so do those of an instance.
        first.wrapping_add(self.form.offset(word))
    }

    /// Makes words rows; the last of them in their row pool.
    #[inline(always)]
    fn write(&self, to: &mut [u32], words: &[u32]) -> u32 {
        let mut last = 0;
        for (to, word) in to.iter_mut().zip(words) {
            *to = self.row(*word);
            last = last.max(*to);
        }
        last
    }

    /// Makes the words of a run rows, each group's where its target says, which then says where the next list has them;
    /// the last of them in their row pool.
    fn write_run(&self, targets: &mut [Target], index: &mut [u32], mut words: &[u32]) -> u32 {
        let mut last = 0;
        if targets.len() == words.len() {
            // A chain: one call each.
            for (target, word) in targets.iter_mut().zip(words) {
                let row = self.row(*word);
                index[target.slot] = row;
                last = last.max(row);
                target.slot += target.step;
            }
            return last;
        }
        for target in targets {
            let (own, behind) = words.split_at(target.calls);
            words = behind;
            let to = &mut index[target.slot..target.slot + target.calls];
            last = last.max(self.write(to, own));
            target.slot += target.step;
        }
        last
    }
}

/// Where the calls of a group are in the next list of their launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    slot: usize,
    calls: usize,
    /// From one list of the launch to the next.
    step: usize,
    /// The first list operand of the launch, and the first call's row.
    list: usize,
    row: usize,
}

impl Target {
    fn of(placed: &Placed, row: u32, calls: u32) -> Target {
        Target {
            slot: placed.index_start + row as usize,
            calls: calls as usize,
            step: placed.calls as usize,
            list: placed.list_start,
            row: row as usize,
        }
    }
}

impl Executor {
    /// Whether calls of the flush at hand are looked at one by one before kernels run: then all must be in the log.
    pub(super) fn reads_calls(&mut self, recorder: &Recorder) -> bool {
        self.has_ragged || self.survey.is_some() || self.is_padded() || {
            let recorded = recorded(recorder, &self.forms, &self.ghosts);
            self.scheduler.reads_calls(recorded, &self.ready)
        }
    }

    /// Writes the index lists of calls; whether all rows are there.
    pub(super) fn write_replayed(&mut self, calls: &Calls<'_>) -> bool {
        self.find_references(calls);
        let mut inside = true;
        let recording = calls.recording;
        let rows = Rows {
            form: recording.form(),
            of_references: &self.of_references,
        };
        let index = self.index.words_mut();
        let mut columns = recording.part(Part::Columns);
        let mut bases = calls.of_groups();
        for run in recording.runs() {
            let (own, behind) = bases.split_at(run.calls.len());
            bases = behind;
            let kernel = &self.kernels[run.kernel as usize];
            self.targets.clear();
            for (base, calls) in own.iter().zip(run.calls).filter(|(_, calls)| **calls > 0) {
                let base = Handle(*base);
                let plan = &mut self.plans[base.bucket() as usize];
                let placed = &self.placed[plan.placed];
                self.targets.push(Target::of(placed, plan.next, *calls));
                plan.next += calls;
            }
            for operand in &kernel.operands {
                let (mut words, behind) = columns.split_at(run.all_calls as usize);
                columns = behind;
                let (mut last, mut all) = (0, u64::MAX);
                match operand {
                    Operand::Row { pool } => {
                        all = self.arena.rows(*pool);
                        last = rows.write_run(&mut self.targets, index, words);
                    }
                    Operand::Scalar(_) | Operand::Length => {
                        for target in &mut self.targets {
                            let (own, behind) = words.split_at(target.calls);
                            words = behind;
                            index[target.slot..target.slot + target.calls].copy_from_slice(own);
                            target.slot += target.step;
                        }
                    }
                    Operand::Rows { .. } => {
                        let targets = self.targets.iter_mut();
                        targets.for_each(|target| target.slot += target.step);
                    }
                    // Only in calls that are in the log.
                    Operand::Ragged { .. } | Operand::Stacked { .. } => inside = false,
                }
                inside &= run.all_calls == 0 || u64::from(last) < all;
            }
            let lists = kernel.operands.iter().filter_map(|operand| match operand {
                Operand::Rows { pool } => Some(*pool),
                _ => None,
            });
            for (number, pool) in lists.enumerate() {
                let all = self.arena.rows(pool);
                for target in &self.targets {
                    let list = target.list + number;
                    let begin = self.lists.start(list, target.row);
                    let end = self.lists.start(list, target.row + target.calls);
                    let (own, behind) = columns.split_at(end - begin);
                    columns = behind;
                    let last = rows.write(&mut index[begin..end], own);
                    inside &= own.is_empty() || u64::from(last) < all;
                }
            }
        }
        inside
    }

    /// Finds the rows that references stand for. One without a row, as of a tensor without rows where the whole batch has
    /// none in its row pool, stands for one beyond all, so that only a call that reads it is at fault.
    fn find_references(&mut self, calls: &Calls<'_>) {
        let recording = calls.recording;
        self.of_references.clear();
        for reference in recording.part(Part::References) {
            let (base, result) = follow(*reference);
            let row = self.rows.of_result(calls.bases[base], result);
            self.of_references.push(row.unwrap_or(BEYOND));
        }
        for handle in recording.fixed() {
            let row = self.rows.of_result(handle, Handle(handle).result());
            self.of_references.push(row.unwrap_or(BEYOND));
        }
    }

    /// Notes the lengths of the lists of calls.
    pub(super) fn measure_replayed(&mut self, calls: &Calls<'_>) {
        let mut columns = calls.recording.part(Part::Columns);
        let mut bases = calls.of_groups();
        for run in calls.recording.runs() {
            let (own, behind) = bases.split_at(run.calls.len());
            bases = behind;
            let kernel = &self.kernels[run.kernel as usize];
            let count = run.all_calls as usize;
            let mut words = kernel.operands.len() * count;
            let mut number = 0;
            for (operand, lengths) in kernel.operands.iter().zip(columns.chunks(count.max(1))) {
                if !matches!(operand, Operand::Rows { .. }) {
                    continue;
                }
                words += lengths.iter().map(|length| *length as usize).sum::<usize>();
                let mut lengths = lengths;
                for (base, calls) in own.iter().zip(run.calls).filter(|(_, calls)| **calls > 0) {
                    let base = Handle(*base);
                    let plan = &self.plans[base.bucket() as usize];
                    let placed = &self.placed[plan.placed];
                    let (own, behind) = lengths.split_at(*calls as usize);
                    lengths = behind;
                    let list = placed.list_start + number;
                    (self.lists).set_lengths(list, plan.next as usize, own);
                }
                number += 1;
            }
            self.count_calls(own, run);
            columns = &columns[words..];
        }
    }

    /// Calls of the log are behind those of a run.
    fn count_calls(&mut self, bases: &[u64], run: Run<'_>) {
        for (base, calls) in bases.iter().zip(run.calls) {
            self.plans[Handle(*base).bucket() as usize].next += calls;
        }
    }
}
