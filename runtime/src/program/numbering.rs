//! What a bucket holds, by its number.
//!
//! | buckets | their rows |
//! |---|---|
//! | one a source of the manifest | the source's |
//! | one a kernel | of the cached calls ([`crate::call_cache`]) |
//! | one a row pool, for each chunk of inputs | what came with the instances |
//! | all others | of the calls of a batch |

use cohort_abi::manifest::Manifest;

/// The numbers of the buckets of a program.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    pub sources: usize,
    pub kernels: usize,
    pub row_pools: usize,
}

impl Numbering {
    pub fn of(manifest: &Manifest) -> Numbering {
        Numbering {
            sources: manifest.sources.len(),
            kernels: manifest.kernels.len(),
            row_pools: manifest.row_pools.len(),
        }
    }

    /// The bucket of a kernel's cached calls.
    pub fn cached(&self, kernel: usize) -> usize {
        self.sources + kernel
    }

    /// The kernel whose cached calls have the bucket.
    #[inline]
    pub fn cached_kernel(&self, bucket: usize) -> Option<usize> {
        let kernel = bucket.checked_sub(self.sources)?;
        (kernel < self.kernels).then_some(kernel)
    }

    /// The bucket of a chunk's inputs in a row pool.
    pub fn input(&self, chunk: usize, pool: usize) -> usize {
        self.sources + self.kernels + chunk * self.row_pools + pool
    }

    /// The row pool of a bucket of inputs; of any bucket behind them something else.
    pub fn input_pool(&self, bucket: usize) -> Option<usize> {
        let input = bucket.checked_sub(self.input(0, 0))?;
        Some(input % self.row_pools.max(1))
    }

    /// The first bucket behind those of `chunks` chunks of inputs.
    pub fn first_call(&self, chunks: usize) -> usize {
        self.input(chunks, 0)
    }
}
