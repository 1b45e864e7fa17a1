//! The longest ways through what instances computed, whatever they waited for between two flushes.
//!
//! Calls of one kernel on one way, each needing what the one before it made, can never share a launch; any others
//! could. So a kernel needs as many launches as the longest way has calls of it, over all instances that
//! are alive together. Instances that are not, batches one after another, share nothing: their longest ways
//! are added up.

use std::collections::HashMap;

use cohort_abi::Handle;

use crate::program::call_form::CallForm;
use crate::program::log::Entries;
use crate::program::slot::Slot;
use crate::schedule::{Ready, Recorded};

/// Of all ways that are remembered.
const MAX_CELLS: usize = 1 << 26;

/// Of the calls of a bucket: the first row of each, and the way to it, in calls of each kernel.
#[derive(Debug, Default)]
struct Calls {
    first_rows: Vec<u32>,
    rows: u32,
    ways: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Ways {
    kernels: usize,
    /// By bucket, as long as rows of it can be read.
    calls: HashMap<u32, Calls>,
    cells: usize,
    /// Of each kernel, the most calls on one way, of the instances that are alive.
    longest: Vec<u32>,
    /// The same of all before them, added up.
    before: Vec<u64>,
    is_incomplete: bool,
}

impl Ways {
    pub fn new(kernels: usize) -> Ways {
        Ways {
            kernels,
            longest: vec![0; kernels],
            before: vec![0; kernels],
            ..Ways::default()
        }
    }

    /// Instances from now on share nothing with those before.
    pub fn begin(&mut self) {
        for (before, longest) in self.before.iter_mut().zip(&mut self.longest) {
            *before += u64::from(std::mem::take(longest));
        }
        self.calls.clear();
        self.cells = 0;
    }

    /// The fewest launches of a kernel; `None` when there was too much to remember.
    pub fn fewest(&self, kernel: usize) -> Option<u64> {
        let launches = self.before[kernel] + u64::from(self.longest[kernel]);
        (!self.is_incomplete).then_some(launches)
    }

    /// A call of the kernel is made by itself.
    pub fn add_alone(&mut self, kernel: usize) {
        self.longest[kernel] = self.longest[kernel].max(1);
    }

    /// No row of these buckets can be read any more.
    pub fn forget(&mut self, buckets: &[u32]) {
        for bucket in buckets {
            if let Some(calls) = self.calls.remove(bucket) {
                self.cells -= calls.ways.len();
            }
        }
    }

    /// What a flush is about to compute.
    pub fn flush(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) {
        if self.is_incomplete {
            return;
        }
        let kernels: HashMap<u32, u32> = buckets
            .iter()
            .map(|ready| (ready.bucket, ready.kernel))
            .collect();
        let ghost = CallForm::plain([Slot::Row].into());
        let form_of = |bucket: usize| {
            let kernel = kernels.get(&(bucket as u32))?;
            Some(&recorded.forms[*kernel as usize])
        };
        let mut entries = Entries::of(recorded.log);
        while let Some(entry) = entries.next(form_of) {
            let form = entry.kernel.unwrap_or(&ghost);
            let mut way = self.longest_of(form, entry.slots);
            if let Some(&kernel) = kernels.get(&(entry.bucket as u32)) {
                let own = &mut way[kernel as usize];
                *own += 1;
                let longest = &mut self.longest[kernel as usize];
                *longest = (*longest).max(*own);
            }
            self.cells += way.len();
            let calls = self.calls.entry(entry.bucket as u32).or_default();
            calls.first_rows.push(calls.rows);
            calls.rows += form.rows(entry.slots) as u32;
            calls.ways.append(&mut way);
            if self.cells > MAX_CELLS {
                self.is_incomplete = true;
                self.calls.clear();
                return;
            }
        }
    }

    /// Of all that a call reads.
    fn longest_of(&self, form: &CallForm, entry: &[u64]) -> Vec<u32> {
        let (operands, lists) = entry.split_at(form.slots.len());
        let rows = operands.iter().zip(&form.slots).enumerate();
        let rows = rows.filter(|(index, (_, slot))| {
            // The handle of no rows may be that of the next call's.
            **slot == Slot::Row && !(form.is_ragged && form.is_empty(*index, entry))
        });
        let mut way = vec![0; self.kernels];
        for handle in rows.map(|(_, (operand, _))| operand).chain(lists) {
            let handle = Handle(*handle);
            let Some(calls) = self.calls.get(&handle.bucket()) else {
                continue;
            };
            let after = calls
                .first_rows
                .partition_point(|first| *first <= handle.position());
            let of_call = after.saturating_sub(1) * self.kernels;
            for (own, other) in way.iter_mut().zip(&calls.ways[of_call..]) {
                *own = (*own).max(*other);
            }
        }
        way
    }
}
