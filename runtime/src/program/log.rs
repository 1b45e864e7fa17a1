//! The log of calls, entry by entry.
//!
//! An entry is `[bucket, operand slots…, handles of lists…]`, one after another, in the order of recording. The
//! entry of a ghost has one operand, the handle that it stands for. The form of the kernel's calls says how long an
//! entry is, and the bucket which kernel it is of: whoever goes over the log knows the buckets.

use crate::program::call_form::CallForm;

/// What the log's calls are of.
pub trait Called {
    /// The form of its calls.
    fn form(&self) -> &CallForm;
}

impl Called for CallForm {
    fn form(&self) -> &CallForm {
        self
    }
}

/// A walk over a log.
#[derive(Clone, Debug)]
pub struct Entries<'l> {
    log: &'l [u64],
    at: usize,
}

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'l, 'k, K> {
    /// Where in the log it begins.
    pub at: usize,
    /// The number of its bucket.
    pub bucket: usize,
    /// What is called; of a ghost nothing.
    pub kernel: Option<&'k K>,
    /// The call's operand slots, and behind them the handles of its lists.
    pub slots: &'l [u64],
}

impl<'l> Entries<'l> {
    /// Of a log, from its first entry on.
    pub fn of(log: &'l [u64]) -> Entries<'l> {
        Entries { log, at: 0 }
    }

    /// The next entry, whose bucket is of that kernel: a ghost's is of none.
    #[inline(always)]
    pub fn next<'k, K: Called>(
        &mut self,
        kernel_of: impl FnOnce(usize) -> Option<&'k K>,
    ) -> Option<Entry<'l, 'k, K>> {
        let at = self.at;
        let bucket = *self.log.get(at)? as usize;
        let rest = &self.log[at + 1..];
        let kernel = kernel_of(bucket);
        let length = kernel.map_or(1, |kernel| kernel.form().entry_length(rest));
        self.at = at + 1 + length;
        Some(Entry {
            at,
            bucket,
            kernel,
            slots: &rest[..length],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::slot::Slot;

    #[test]
    fn entries_are_as_long_as_their_calls() {
        let forms = [
            CallForm::plain([Slot::Row, Slot::Scalar].into()),
            CallForm::plain([Slot::List, Slot::Row, Slot::List].into()),
        ];
        // Bucket 7 is of the first kernel, 8 of the second, 9 of ghosts.
        let log = [7, 1, 2, 9, 3, 8, 2, 4, 1, 5, 6, 7, 7, 8, 9];
        let mut entries = Entries::of(&log);
        let mut seen = Vec::new();
        while let Some(entry) = entries.next(|bucket| forms.get(bucket - 7)) {
            seen.push((entry.at, entry.bucket, entry.kernel.is_some(), entry.slots));
        }
        let expected: [(usize, usize, bool, &[u64]); 4] = [
            (0, 7, true, &[1, 2]),
            (3, 9, false, &[3]),
            (5, 8, true, &[2, 4, 1, 5, 6, 7]),
            (12, 7, true, &[8, 9]),
        ];
        assert_eq!(seen, expected);
    }
}
