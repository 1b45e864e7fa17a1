//! Index lists of calls that are written from recordings ([`crate::recorder`]), where each bucket is a launch.
//!
//! The calls of an instance in a launch lie behind each other, and a recording has their operands list by list. So a list
//! gets the rows of all these calls in one loop, which adds to each offset the row that it is relative to.

use cohort_abi::Handle;
use cohort_abi::manifest::Operand;

use super::Executor;
use crate::recorder::{Calls, Form, Part};

/// Writes rows of one instance.
struct Rows<'a> {
    form: Form,
    /// What each reference of the recording stands for.
    of_references: &'a [u32],
}

impl Rows<'_> {
    /// Makes words rows; whether all are below `all`.
    #[inline]
    fn write(&self, to: &mut [u32], words: &[u32], all: u64) -> bool {
        let mut last = 0;
        for (to, word) in to.iter_mut().zip(words) {
            let first = self.of_references[self.form.reference(*word)];
            // Rows of a space fit 31 bits, and so do those of an instance.
            *to = first.wrapping_add(self.form.offset(*word));
            last = last.max(*to);
        }
        words.is_empty() || u64::from(last) < all
    }
}

impl Executor {
    /// Whether calls are looked at one by one before kernels run: then all must be in the log.
    pub fn reads_calls(&self) -> bool {
        self.has_ragged || self.survey.is_some() || self.is_padded() || self.scheduler.reads_calls()
    }

    /// Writes the index lists of calls; whether all rows are there.
    pub(super) fn write_replayed(&mut self, calls: &Calls<'_>) -> bool {
        let recording = calls.recording;
        let mut inside = true;
        self.of_references.clear();
        for reference in recording.part(Part::References) {
            let (base, result) = recording.follow(calls.bases, *reference);
            let row = self.rows.of_result(base, result);
            inside &= row.is_some();
            self.of_references.push(row.unwrap_or(0));
        }
        let rows = Rows {
            form: recording.form(),
            of_references: &self.of_references,
        };
        let index = self.index.words_mut();
        let mut columns = recording.part(Part::Columns);
        for (group, base) in recording.groups().zip(calls.of_groups()) {
            let (mut own, rest) = columns.split_at(group.words as usize);
            columns = rest;
            let (base, count) = (Handle(*base), group.calls as usize);
            if count == 0 {
                continue;
            }
            let plan = &mut self.plans[base.bucket() as usize];
            plan.next += group.calls;
            let placed = &self.placed[plan.placed];
            let kernel = &self.kernels[group.kernel as usize];
            let row = base.position() as usize;
            let mut slot = placed.index_start + row;
            for operand in &kernel.operands {
                let (words, rest) = own.split_at(count);
                own = rest;
                match operand {
                    Operand::Row { space } => {
                        let to = &mut index[slot..slot + count];
                        inside &= rows.write(to, words, self.arena.rows(*space));
                    }
                    Operand::Scalar(_) | Operand::Length => {
                        index[slot..slot + count].copy_from_slice(words);
                    }
                    Operand::Rows { .. } => {}
                    // Only in calls that are in the log.
                    Operand::Ragged { .. } | Operand::Stacked { .. } => inside = false,
                }
                slot += placed.calls as usize;
            }
            let lists = kernel.operands.iter().filter_map(|operand| match operand {
                Operand::Rows { space } => Some(*space),
                _ => None,
            });
            for (space, list) in lists.zip(placed.list_start..) {
                let begin = self.lists.start(list, row);
                let to = &mut index[begin..self.lists.start(list, row + count)];
                let (words, rest) = own.split_at(to.len());
                own = rest;
                inside &= rows.write(to, words, self.arena.rows(space));
            }
        }
        inside
    }

    /// Notes the lengths of the lists of calls.
    pub(super) fn measure_replayed(&mut self, calls: &Calls<'_>) {
        let mut columns = calls.recording.part(Part::Columns);
        for (group, base) in calls.recording.groups().zip(calls.of_groups()) {
            let (own, rest) = columns.split_at(group.words as usize);
            columns = rest;
            let (base, count) = (Handle(*base), group.calls as usize);
            if count == 0 {
                continue;
            }
            let plan = &mut self.plans[base.bucket() as usize];
            plan.next += group.calls;
            plan.next_row += group.rows;
            let kernel = &self.kernels[group.kernel as usize];
            let lists = kernel.operands.iter().zip(own.chunks_exact(count));
            let lists = lists.filter(|(operand, _)| matches!(operand, Operand::Rows { .. }));
            for ((_, lengths), list) in lists.zip(self.placed[plan.placed].list_start..) {
                for (length, row) in lengths.iter().zip(base.position() as usize..) {
                    self.lists.set_length(list, row, u64::from(*length));
                }
            }
        }
    }
}
