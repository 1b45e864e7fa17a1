//! The calls that a flush computes to be kept: launches of their own, before all others, whose results
//! go to rows that stay ([`crate::keeping`]).

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Operand};

use super::Executor;
use super::launch::Placed;
use crate::arena::{Arena, Region};
use crate::error::Error;
use crate::recorder::Recorder;

/// Where kept calls have their rows, and the launches of a flush that fill some of these.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    /// For each kernel: the row of its first kept call, for each result; empty if none is kept.
    first: Vec<Vec<u32>>,
    pub placed: Vec<Placed>,
}

impl KeptRows {
    /// Makes room for at most `most` calls of each kernel.
    pub fn new(manifest: &Manifest, most: &[u32], arena: &mut Arena) -> Result<KeptRows, Error> {
        let mut first = vec![Vec::new(); manifest.kernels.len()];
        for ((first, kernel), most) in first.iter_mut().zip(&manifest.kernels).zip(most) {
            for space in kernel.results.iter().filter(|_| *most > 0) {
                first.push(arena.add_kept(*space, u64::from(*most))?);
            }
        }
        Ok(KeptRows {
            first,
            placed: Vec::new(),
        })
    }
}

impl Executor {
    /// Tells where the rows of kept calls are.
    pub(super) fn show_kept(&mut self) {
        for (kernel, results) in self.kept.first.iter().enumerate() {
            for (result, row) in results.iter().enumerate() {
                let bucket = self.numbering.kept(kernel);
                self.rows.set_first(bucket, result, *row);
            }
        }
    }

    /// Makes the new kept calls of each kernel a launch.
    pub(super) fn place_kept(&mut self, recorder: &Recorder, index_length: &mut usize) {
        self.kept.placed.clear();
        for calls in recorder.new_kept_calls() {
            let count = calls.rows.len() as u32;
            self.kept.placed.push(Placed {
                kernel: calls.kernel as u32,
                calls: count,
                rows: count,
                entries: count,
                index_start: *index_length,
                result_start: self.result_rows.len(),
                list_start: 0,
                ragged: None,
            });
            let first = self.kept.first[calls.kernel].iter();
            self.result_rows.extend(first.map(|row| row + calls.first));
            *index_length += calls.rows.len();
        }
    }

    /// Writes the index lists of these launches; whether all rows are there.
    pub(super) fn write_kept_indices(&mut self, recorder: &Recorder) -> bool {
        let index = self.index.words_mut();
        let mut inside = true;
        for (calls, placed) in recorder.new_kept_calls().zip(&self.kept.placed) {
            let [Operand::Row { space }] = self.kernels[calls.kernel].operands[..] else {
                return false;
            };
            let all = self.arena.rows(space);
            for (entry, row) in index[placed.index_start..].iter_mut().zip(calls.rows) {
                let row = self.rows.find(Handle::new(calls.source, 0, *row).0, all);
                inside &= row.is_some();
                *entry = row.unwrap_or(0) as u32;
            }
        }
        inside
    }

    /// The rows that these launches fill.
    pub(super) fn new_kept_regions(&self) -> impl Iterator<Item = Region> {
        self.kept.placed.iter().flat_map(|placed| {
            let results = self.kernels[placed.kernel as usize].results.iter();
            let first = &self.result_rows[placed.result_start..];
            results.zip(first).map(|(space, first)| Region {
                space: *space,
                first: *first,
                rows: placed.rows,
            })
        })
    }
}
