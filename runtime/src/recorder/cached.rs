//! Calls that are cached from batch to batch; see [`crate::call_cache`].

use super::Recorder;
use crate::call_cache::{CachedCalls, NewCalls};

impl Recorder {
    /// Caches nothing so far, and from now on at most `most` calls of each kernel.
    pub fn cache(&mut self, most: &[u32]) {
        self.forget_cached();
        for (number, (kernel, most)) in self.kernels.iter_mut().zip(most).enumerate() {
            if let Some(shared) = &mut kernel.shared {
                shared.cached =
                    CachedCalls::new(self.numbering.cached(number) as u32, *most, shared.rows());
            }
        }
    }

    /// Forgets all that was cached; between batches only.
    pub fn forget_cached(&mut self) {
        self.new_cached.clear();
        for kernel in &mut self.kernels {
            if let Some(shared) = &mut kernel.shared {
                shared.cached.clear();
            }
        }
    }

    /// The calls that the next flush computes, to be cached; for each kernel that has some.
    pub fn new_cached_calls(&self) -> impl Iterator<Item = NewCalls<'_>> {
        // Mostly there are none.
        let kernels = match self.new_cached.is_empty() {
            true => &[],
            false => &self.kernels[..],
        };
        kernels.iter().enumerate().filter_map(|(kernel, calls)| {
            let shared = calls.shared.as_ref()?;
            let (first, rows) = shared.cached.new_calls();
            (!rows.is_empty()).then(|| NewCalls {
                kernel,
                first,
                source: shared.source(),
                rows,
            })
        })
    }

    /// For each kernel the number of calls that are computed and cached.
    pub fn cached_calls(&self) -> impl Iterator<Item = usize> {
        let kernels = self.kernels[..self.numbering.kernels].iter();
        kernels.map(|kernel| {
            let shared = kernel.shared.as_ref();
            shared.map_or(0, |shared| shared.cached.computed())
        })
    }

    /// Whether a call may read a cached one, which is in no bucket of the flush.
    pub fn has_cached(&self) -> bool {
        let mut shared = self
            .kernels
            .iter()
            .filter_map(|calls| calls.shared.as_ref());
        shared.any(|shared| !shared.cached.is_empty())
    }

    /// Takes all cached calls back but the first `count` of those that are not computed.
    pub(super) fn take_back_cached(&mut self, count: usize) {
        for kernel in self.new_cached.drain(count..).rev() {
            if let Some(shared) = &mut self.kernels[kernel as usize].shared {
                shared.cached.take_back();
            }
        }
    }

    /// The new cached calls are computed.
    pub(super) fn cached_flushed(&mut self) {
        for kernel in self.new_cached.drain(..) {
            if let Some(shared) = &mut self.kernels[kernel as usize].shared {
                shared.cached.flushed();
            }
        }
    }

    /// Calls that were answered by equal ones since the last [`Recorder::clear_counts`].
    pub fn shared_calls(&self) -> u64 {
        self.shared_calls
    }

    /// Sets what [`Recorder::shared_calls`] and [`Recorder::forks`] count to zero.
    pub fn clear_counts(&mut self) {
        self.shared_calls = 0;
        (self.forks.side_by_side, self.forks.in_turn) = (0, 0);
    }
}
