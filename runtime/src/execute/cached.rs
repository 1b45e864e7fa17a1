//! The calls that a flush computes to be cached: launches of their own, before all others, whose results
//! go to rows that stay ([`crate::call_cache`]).

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Operand};

use super::Executor;
use super::launch::Placed;
use crate::error::Error;
use crate::memory::arena::{Arena, Region};
use crate::recorder::Recorder;

/// Where cached calls have their rows, and the launches of a flush that fill some of these.
#[derive(Debug, Default)]
pub(super) struct CachedRows {
    /// For each kernel: the row of its first cached call, for each result; empty if none is cached.
    first: Vec<Vec<u32>>,
    pub placed: Vec<Placed>,
}

impl CachedRows {
    /// Makes room for at most `most` calls of each kernel.
    pub fn new(manifest: &Manifest, most: &[u32], arena: &mut Arena) -> Result<CachedRows, Error> {
        let mut first = vec![Vec::new(); manifest.kernels.len()];
        for ((first, kernel), most) in first.iter_mut().zip(&manifest.kernels).zip(most) {
            for pool in kernel.results.iter().filter(|_| *most > 0) {
                first.push(arena.add_cached(*pool, u64::from(*most))?);
            }
        }
        Ok(CachedRows {
            first,
            placed: Vec::new(),
        })
    }
}

impl Executor {
    /// Tells where the rows of cached calls are.
    pub(super) fn show_cached(&mut self) {
        for (kernel, results) in self.cached.first.iter().enumerate() {
            for (result, row) in results.iter().enumerate() {
                let bucket = self.numbering.cached(kernel);
                self.rows.set_first(bucket, result, *row);
            }
        }
    }

    /// Makes the new cached calls of each kernel a launch.
    pub(super) fn place_cached(&mut self, recorder: &Recorder, index_length: &mut usize) {
        self.cached.placed.clear();
        for calls in recorder.new_cached_calls() {
            let count = calls.rows.len() as u32;
            self.cached.placed.push(Placed {
                kernel: calls.kernel as u32,
                calls: count,
                rows: count,
                entries: count,
                index_start: *index_length,
                result_start: self.result_rows.len(),
                list_start: 0,
                ragged: None,
            });
            let first = self.cached.first[calls.kernel].iter();
            self.result_rows.extend(first.map(|row| row + calls.first));
            *index_length += calls.rows.len();
        }
    }

    /// Writes the index lists of these launches; whether all rows are there.
    pub(super) fn write_cached_indices(&mut self, recorder: &Recorder) -> bool {
        let index = self.index.words_mut();
        let mut inside = true;
        for (calls, placed) in recorder.new_cached_calls().zip(&self.cached.placed) {
            let [Operand::Row { pool }] = self.kernels[calls.kernel].operands[..] else {
                return false;
            };
            let all = self.arena.rows(pool);
            for (entry, row) in index[placed.index_start..].iter_mut().zip(calls.rows) {
                let row = self.rows.find(Handle::new(calls.source, 0, *row).0, all);
                inside &= row.is_some();
                *entry = row.unwrap_or(0) as u32;
            }
        }
        inside
    }

    /// The rows that these launches fill.
    pub(super) fn new_cached_regions(&self) -> impl Iterator<Item = Region> {
        self.cached.placed.iter().flat_map(|placed| {
            let results = self.kernels[placed.kernel as usize].results.iter();
            let first = &self.result_rows[placed.result_start..];
            results.zip(first).map(|(pool, first)| Region {
                pool: *pool,
                first: *first,
                rows: placed.rows,
            })
        })
    }
}
