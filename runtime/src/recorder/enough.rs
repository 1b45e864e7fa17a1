//! When a batch has enough whose size nobody asked for.
//!
//! More rows in a launch share what the launch costs and the reading of its weights. Once launches take long
//! beside both, more of them share nothing that counts; and once the rows of a batch are more than the caches
//! hold, what one launch computes has left them before the next one reads it. So a batch ends when it is past
//! both. Where a row is a matrix, or an instance has many rows, that is after some instances; where rows are few
//! and short, or launches many, hardly ever.

use std::sync::Arc;

use cohort_abi::manifest::Manifest;

use super::Recorder;
use crate::memory::second_level_bytes;
use crate::program::pack::Constants;

/// Rows that are worth a batch, whatever the cache.
const FEWEST_BYTES: u64 = 1 << 18;
/// Operations of a launch beside which the microsecond before it is little.
const FLOPS_A_LAUNCH: u64 = 1 << 20;
/// Operations for each byte of the weights beside which reading them from the second cache is little: those of 32
/// rows of a product.
const FLOPS_A_CACHED_BYTE: u64 = 16;
/// The same, of weights that the second cache does not hold beside rows: those of 256.
const FLOPS_A_BYTE: u64 = 128;

/// When a batch has enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Bytes of rows, if launches have work enough.
    pub bytes: u64,
    /// The operations that a launch of each kernel has then, as a mean over launches.
    flops: Arc<[u64]>,
}

impl Enough {
    /// Of a batch that takes all instances that it may have.
    pub fn never() -> Enough {
        Enough {
            bytes: u64::MAX,
            flops: Arc::from([]),
        }
    }

    /// With these weights, on this machine.
    pub fn with(constants: &Constants) -> Enough {
        let of_kernels: Vec<u64> = constants.bytes_of_kernels().collect();
        Enough::of(constants.bytes(), &of_kernels, second_level_bytes())
    }

    fn of(weights: u64, of_kernels: &[u64], cache: Option<u64>) -> Enough {
        // Half of it is for rows, and half for weights.
        let half = cache.unwrap_or(0) / 2;
        let flops_a_byte = match weights <= half {
            true => FLOPS_A_CACHED_BYTE,
            false => FLOPS_A_BYTE,
        };
        let flops = of_kernels
            .iter()
            .map(|bytes| (bytes.saturating_mul(flops_a_byte)).saturating_add(FLOPS_A_LAUNCH));
        Enough {
            bytes: half.max(FEWEST_BYTES),
            flops: flops.collect(),
        }
    }

    /// Whether the batch that is recorded, whose rows take `bytes`, has enough.
    pub fn has(&self, manifest: &Manifest, recorder: &Recorder, bytes: u64) -> bool {
        if bytes < self.bytes {
            return false;
        }
        let buckets = recorder.buckets();
        let (mut flops, mut enough) = (0_u64, 0_u64);
        for bucket in buckets.pending() {
            let bucket = *bucket as usize;
            // Ghosts have a number behind the last.
            let kernel = buckets.kernel(bucket) as usize;
            if let (Some(of), Some(least)) = (manifest.kernels.get(kernel), self.flops.get(kernel))
            {
                let rows = u64::from(buckets.rows(bucket));
                flops = flops.saturating_add(of.flops_per_row.saturating_mul(rows));
                enough = enough.saturating_add(*least);
            }
        }
        flops >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_past_the_cache_and_past_the_weights() {
        let of = |weights, cache| {
            let enough = Enough::of(weights, &[weights, 0], cache);
            let flops: Vec<u64> = enough.flops.iter().map(|flops| flops >> 20).collect();
            (enough.bytes >> 10, flops)
        };
        assert_eq!(of(0, None), (256, vec![1, 1]));
        assert_eq!(of(0, Some(256 << 10)), (256, vec![1, 1]));
        assert_eq!(of(1 << 20, Some(2 << 20)), (1024, vec![17, 1]));
        assert_eq!(of(2 << 20, Some(2 << 20)), (1024, vec![257, 1]));
        assert_eq!(of(u64::MAX, None), (256, vec![u64::MAX >> 20, 1]));
    }
}
