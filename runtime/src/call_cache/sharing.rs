//! Equal calls, made once.
//!
//! A kernel whose only operand is a row of a parameter (the leaf of a tree, by its word) computes the
//! same for every instance that names the same row, and words repeat: of the leaves in 64 sentences
//! about half are distinct. The recorder remembers the handle of each such call and returns it again.
//! Kernels are pure and rows independent, so no bit changes; limits count a shared call like any
//! other, so that an instance's failure never depends on its neighbours.
//!
//! As far as there is room, such a call is *cached* ([`crate::call_cache`]), and its handle holds for all
//! instances to come. Otherwise it holds for a while: what an earlier flush computed stays for the
//! instances that were alive then ([`crate::engine`]), so a call is remembered with the *epoch*, the
//! number of flushes before it, and an instance takes the calls since its own first epoch.

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Operand, Source};

use crate::call_cache::CachedCalls;
use crate::program::call_form::CallForm;

/// A larger table is not worth its memory.
const MAX_ROWS: u64 = 1 << 22;

/// The calls of one kernel by the parameter's row, for the kernels where that is enough.
pub struct SharedCalls {
    /// Of the calls that are not cached: the epoch, from 1, and the handle. Made by the first of them.
    entries: Vec<(u64, u64)>,
    /// The bucket of the parameter, and its rows.
    source: u64,
    rows: u64,
    pub cached: CachedCalls,
}

impl SharedCalls {
    /// `None` when the kernel takes anything but one row, when no parameter has rows of that row pool,
    /// and for what only the runtime calls. Nothing is cached so far.
    pub fn of(manifest: &Manifest, kernel: usize) -> Option<SharedCalls> {
        let of_manifest = &manifest.kernels[kernel];
        let [Operand::Row { pool }] = of_manifest.operands[..] else {
            return None;
        };
        if manifest.is_load_time(kernel) || CallForm::of(of_manifest).is_ragged {
            return None;
        }
        let (source, rows) = manifest
            .sources
            .iter()
            .enumerate()
            .find_map(|(index, source)| match source {
                Source::Table { param, pool: of } if *of == pool => {
                    let rows = manifest.weight(*param)?.shape.first().copied()?;
                    (rows <= MAX_ROWS).then_some((index as u64, rows))
                }
                _ => None,
            })?;
        Some(SharedCalls {
            entries: Vec::new(),
            source,
            rows,
            cached: CachedCalls::new(0, 0, 0),
        })
    }

    /// Rows of the parameter.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The bucket of the parameter.
    pub fn source(&self) -> u32 {
        self.source as u32
    }

    /// The parameter's row that is the operand, if it is one.
    #[inline]
    pub fn row(&self, operand: u64) -> Option<usize> {
        let row = operand & u64::from(u32::MAX);
        let source = self.source << (Handle::BUCKET_SHIFT - Handle::RESULT_SHIFT);
        (operand >> Handle::RESULT_SHIFT == source && row < self.rows).then_some(row as usize)
    }

    /// The handle of the row's call, if it is cached, or was made since the epoch `since`, at least 1.
    #[inline]
    pub fn get(&self, row: usize, since: u64) -> Option<u64> {
        if let Some(handle) = self.cached.get(row) {
            return Some(handle.0);
        }
        let (epoch, handle) = *self.entries.get(row)?;
        (epoch >= since).then_some(handle)
    }

    #[inline]
    pub fn set(&mut self, row: usize, epoch: u64, handle: u64) {
        if self.entries.is_empty() {
            self.entries.resize(self.rows as usize, (0, 0));
        }
        self.entries[row] = (epoch, handle);
    }
}
