//! How much work instances are, by what they recorded.

use cohort_abi::manifest::Unit;

use super::Executor;
use super::kernel::Kernel;
use crate::recorder::Recorder;

impl Executor {
    /// For each segment of what was recorded since the last flush, its operations, roughly.
    pub fn works(&self, recorder: &Recorder) -> Vec<u64> {
        let (log, segments) = (recorder.log(), recorder.segments());
        let mut works = vec![0_u64; segments.len()];
        let (mut at, mut segment) = (0, 0);
        while at < log.len() {
            while segments.get(segment + 1).is_some_and(|next| *next <= at) {
                segment += 1;
            }
            let (number, entry) = (recorder.buckets().kernel(log[at] as usize), &log[at + 1..]);
            let Some(kernel) = self.kernels.get(number as usize) else {
                // A ghost, which has one operand.
                at += 2;
                continue;
            };
            if let Some(work) = works.get_mut(segment) {
                *work = work.saturating_add(self.call_work(kernel, entry));
            }
            at += 1 + kernel.form.entry_length(entry);
        }
        works
    }

    fn call_work(&self, kernel: &Kernel, entry: &[u64]) -> u64 {
        let form = &kernel.form;
        let of_call = match form.unit {
            Unit::Rows => form.rows(entry).saturating_mul(kernel.row_work),
            Unit::Calls => {
                let length = |operand: usize| entry[operand];
                let row_bytes = |pool| self.arena.row_bytes(pool);
                (form.flops(length)).saturating_add(kernel.ragged_bytes(row_bytes, length))
            }
        };
        let listed = form.entry_length(entry) - form.slots.len();
        of_call.saturating_add(listed as u64)
    }
}
