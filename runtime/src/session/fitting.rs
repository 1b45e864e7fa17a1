//! When a batch has enough whose size nobody asked for.
//!
//! More rows in a launch share what the launch costs and the reading of its weights. Once the rows of a batch
//! are many times the weights, and a launch takes long beside its beginning, more of them share nothing that
//! counts; and once they are more than the caches hold, what one launch computes has left them before the
//! next one reads it. So a batch ends when it is past all three. Where a row is a matrix, that is after some
//! instances; where weights are large, or launches many, hardly ever.

use cohort_abi::manifest::Manifest;

use crate::memory::second_level_bytes;
use crate::recorder::Recorder;

/// How many times what the second cache holds a batch's rows are before they are too many for it: only those
/// that were computed last are read soon.
const TIMES_CACHE: u64 = 2;
/// Rows that are worth a batch, whatever the cache.
const FEWEST_BYTES: u64 = 1 << 20;
/// How many times the weights' bytes rows take before reading the weights is little of what a batch does.
const TIMES_WEIGHTS: u64 = 16;
/// Operations of a launch beside which the few microseconds before it are little.
const FLOPS_A_LAUNCH: u64 = 4 << 20;

/// When a batch has enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Enough {
    /// Bytes of rows, if launches have work enough.
    pub bytes: u64,
}

impl Enough {
    /// Of a batch that takes all instances that it may have.
    pub const NEVER: Enough = Enough { bytes: u64::MAX };

    /// With that many bytes of packed weights, on this machine.
    pub fn with(weights: u64) -> Enough {
        Enough::of(weights, second_level_bytes())
    }

    fn of(weights: u64, cache: Option<u64>) -> Enough {
        let of_cache = cache.unwrap_or(0).saturating_mul(TIMES_CACHE);
        let of_weights = weights.saturating_mul(TIMES_WEIGHTS);
        Enough {
            bytes: of_cache.max(FEWEST_BYTES).max(of_weights),
        }
    }

    /// Whether the batch that is recorded has enough.
    pub fn has(self, manifest: &Manifest, batch: &Recorder) -> bool {
        if !batch.is_full(self.bytes) {
            return false;
        }
        let buckets = batch.buckets();
        let flops = buckets.pending().iter().map(|bucket| {
            let bucket = *bucket as usize;
            // Ghosts have a number behind the last.
            let kernel = manifest.kernels.get(buckets.kernel(bucket) as usize);
            let a_row = kernel.map_or(0, |kernel| kernel.flops_per_row);
            a_row.saturating_mul(u64::from(buckets.rows(bucket)))
        });
        flops.fold(0, u64::saturating_add) >= FLOPS_A_LAUNCH * buckets.pending().len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_past_the_cache_and_past_the_weights() {
        let bytes = |weights, cache| Enough::of(weights, cache).bytes;
        assert_eq!(bytes(0, None), 1 << 20);
        assert_eq!(bytes(0, Some(256 << 10)), 1 << 20);
        assert_eq!(bytes(0, Some(2 << 20)), 4 << 20);
        assert_eq!(bytes(1 << 20, Some(2 << 20)), 16 << 20);
        assert_eq!(bytes(u64::MAX, None), u64::MAX);
    }
}
