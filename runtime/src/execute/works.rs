//! How much work instances are, by what they recorded.

use cohort_abi::manifest::Unit;

use super::Executor;
use super::kernel::Kernel;
use crate::program::log::Entries;
use crate::recorder::Recorder;

impl Executor {
    /// For each segment of what was recorded since the last flush, its operations, roughly.
    pub fn works(&self, recorder: &Recorder) -> Vec<u64> {
        let (log, segments) = (recorder.log(), recorder.segments());
        let mut works = vec![0_u64; segments.len()];
        let kernel_of = |bucket| self.kernels.get(recorder.buckets().kernel(bucket) as usize);
        let (mut entries, mut segment) = (Entries::of(log), 0);
        while let Some(entry) = entries.next(kernel_of) {
            while segments
                .get(segment + 1)
                .is_some_and(|next| *next <= entry.at)
            {
                segment += 1;
            }
            if let (Some(kernel), Some(work)) = (entry.kernel, works.get_mut(segment)) {
                *work = work.saturating_add(self.call_work(kernel, entry.slots));
            }
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
        let listed = entry.len() - form.slots.len();
        of_call.saturating_add(listed as u64)
    }
}
