//! When a batch has enough whose size nobody asked for.
//!
//! More rows in a launch share what the launch costs and the reading of its weights. Once a launch takes long
//! beside both, more of them share nothing that counts; and once the rows of a batch are more than the caches
//! hold, what one launch computes has left them before the next one reads it. So a batch ends when it is past
//! both. Where a row is a matrix, that is after some instances; where rows are short, or launches many, hardly
//! ever.

use cohort_abi::manifest::Manifest;

use crate::memory::second_level_bytes;
use crate::recorder::Recorder;

/// Rows that are worth a batch, whatever the cache.
const FEWEST_BYTES: u64 = 1 << 18;
/// Operations of a launch beside which the microsecond before it is little.
const FLOPS_A_LAUNCH: u64 = 1 << 20;
/// Operations for each byte of the weights beside which reading them from the second cache is little: those of 32
/// rows of a product.
const FLOPS_A_CACHED_BYTE: u64 = 16;
/// The same, of weights that the second cache does not hold beside rows: those of 512.
const FLOPS_A_BYTE: u64 = 256;

/// When a batch has enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Enough {
    /// Bytes of rows, if launches have work enough.
    pub bytes: u64,
    /// The operations that launches then have, as a mean.
    flops_a_launch: u64,
}

impl Enough {
    /// Of a batch that takes all instances that it may have.
    pub const NEVER: Enough = Enough {
        bytes: u64::MAX,
        flops_a_launch: u64::MAX,
    };

    /// With that many bytes of packed weights, on this machine.
    pub fn with(weights: u64) -> Enough {
        Enough::of(weights, second_level_bytes())
    }

    fn of(weights: u64, cache: Option<u64>) -> Enough {
        // Half of it is for rows, and half for weights.
        let half = cache.unwrap_or(0) / 2;
        // A launch is taken to read all weights, which one of several kernels does not.
        let flops_a_byte = match weights <= half {
            true => FLOPS_A_CACHED_BYTE,
            false => FLOPS_A_BYTE,
        };
        Enough {
            bytes: half.max(FEWEST_BYTES),
            flops_a_launch: weights
                .saturating_mul(flops_a_byte)
                .saturating_add(FLOPS_A_LAUNCH),
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
        let launches = buckets.pending().len() as u64;
        flops.fold(0, u64::saturating_add) >= self.flops_a_launch.saturating_mul(launches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_past_the_cache_and_past_the_weights() {
        let of = |weights, cache| {
            let enough = Enough::of(weights, cache);
            (enough.bytes >> 10, enough.flops_a_launch >> 20)
        };
        assert_eq!(of(0, None), (256, 1));
        assert_eq!(of(0, Some(256 << 10)), (256, 1));
        assert_eq!(of(1 << 20, Some(2 << 20)), (1024, 17));
        assert_eq!(of(2 << 20, Some(2 << 20)), (1024, 513));
        assert_eq!(of(u64::MAX, None), (256, u64::MAX >> 20));
    }
}
