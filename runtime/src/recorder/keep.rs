//! Calls that are kept from batch to batch; see [`crate::keeping`].

use super::Recorder;
use crate::keeping::{KeptCalls, NewCalls};

impl Recorder {
    /// Keeps nothing so far, and from now on at most `most` calls of each kernel.
    pub fn keep(&mut self, most: &[u32]) {
        self.forget_kept();
        for (number, (kernel, most)) in self.kernels.iter_mut().zip(most).enumerate() {
            if let Some(shared) = &mut kernel.shared {
                shared.kept =
                    KeptCalls::new(self.numbering.kept(number) as u32, *most, shared.rows());
            }
        }
    }

    /// Forgets all that was kept; between batches only.
    pub fn forget_kept(&mut self) {
        self.new_kept.clear();
        for kernel in &mut self.kernels {
            if let Some(shared) = &mut kernel.shared {
                shared.kept.clear();
            }
        }
    }

    /// The calls that the next flush computes, to be kept; for each kernel that has some.
    pub fn new_kept_calls(&self) -> impl Iterator<Item = NewCalls<'_>> {
        // Mostly there are none.
        let kernels = match self.new_kept.is_empty() {
            true => &[],
            false => &self.kernels[..],
        };
        kernels.iter().enumerate().filter_map(|(kernel, calls)| {
            let shared = calls.shared.as_ref()?;
            let (first, rows) = shared.kept.new_calls();
            (!rows.is_empty()).then(|| NewCalls {
                kernel,
                first,
                source: shared.source(),
                rows,
            })
        })
    }

    /// For each kernel the number of calls that are computed and kept.
    pub fn kept_calls(&self) -> impl Iterator<Item = usize> {
        let kernels = self.kernels[..self.numbering.kernels].iter();
        kernels.map(|kernel| {
            let shared = kernel.shared.as_ref();
            shared.map_or(0, |shared| shared.kept.computed())
        })
    }

    /// Takes all kept calls back but the first `count` of those that are not computed.
    pub(super) fn take_back_kept(&mut self, count: usize) {
        for kernel in self.new_kept.drain(count..).rev() {
            if let Some(shared) = &mut self.kernels[kernel as usize].shared {
                shared.kept.take_back();
            }
        }
    }

    /// The new kept calls are computed.
    pub(super) fn kept_flushed(&mut self) {
        for kernel in self.new_kept.drain(..) {
            if let Some(shared) = &mut self.kernels[kernel as usize].shared {
                shared.kept.flushed();
            }
        }
    }

    /// Calls that were answered by equal ones since the last [`Recorder::clear_counts`].
    pub fn shared_calls(&self) -> u64 {
        self.shared_calls
    }

    /// Sets what [`Recorder::shared_calls`] counts to zero.
    pub fn clear_counts(&mut self) {
        self.shared_calls = 0;
    }
}
