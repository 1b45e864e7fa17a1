//! What a bucket holds, by its number.
//!
//! | buckets | their rows |
//! |---|---|
//! | one a source of the manifest | the source's |
//! | one a kernel | of the calls that are kept ([`crate::keeping`]) |
//! | one a space, for each chunk of inputs | what came with the instances |
//! | all others | of the calls of a batch |

use cohort_abi::manifest::Manifest;

/// The numbers of the buckets of a program.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    pub sources: usize,
    pub kernels: usize,
    pub spaces: usize,
}

impl Numbering {
    pub fn of(manifest: &Manifest) -> Numbering {
        Numbering {
            sources: manifest.sources.len(),
            kernels: manifest.kernels.len(),
            spaces: manifest.spaces.len(),
        }
    }

    /// The bucket of a kernel's kept calls.
    pub fn kept(&self, kernel: usize) -> usize {
        self.sources + kernel
    }

    /// The kernel whose kept calls have the bucket.
    #[inline]
    pub fn kept_kernel(&self, bucket: usize) -> Option<usize> {
        let kernel = bucket.checked_sub(self.sources)?;
        (kernel < self.kernels).then_some(kernel)
    }

    /// The bucket of a chunk's inputs in a space.
    pub fn input(&self, chunk: usize, space: usize) -> usize {
        self.sources + self.kernels + chunk * self.spaces + space
    }

    /// The space of a bucket of inputs; of any bucket behind them something else.
    pub fn input_space(&self, bucket: usize) -> Option<usize> {
        let input = bucket.checked_sub(self.input(0, 0))?;
        Some(input % self.spaces.max(1))
    }

    /// The first bucket behind those of `chunks` chunks of inputs.
    pub fn first_call(&self, chunks: usize) -> usize {
        self.input(chunks, 0)
    }
}
