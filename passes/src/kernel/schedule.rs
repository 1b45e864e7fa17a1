//! Chooses the sizes of blocks from a description of the processor that code is for.
//!
//! What is chosen is an attribute of the loop level: `lower-kernels` knows none of these numbers. They change how
//! fast a kernel is, and none of the bits that it gives; what does change bits, as the keys of a block of a softmax,
//! is chosen here too, but is the same for every processor.

use melior::ir::{OperationRef, operation::OperationLike};

use crate::kernel::rows::layout::LANES;
use crate::kernel::rows::stage::{PANEL, TILE_ROWS};
use crate::pass::{Failed, error};
use crate::support::ir::integers;
use cohort_dialects::marks::CACHES;

/// Bytes of a number.
const NUMBER: i64 = 4;

/// Rows of a block past which little is gained, and the same where weights are read again for each block.
const MOST_ROWS: i64 = 96;
const MOST_LARGE_ROWS: i64 = 192;

/// The most columns and terms of a block that `ragged.matmul` may have.
const MOST_COLUMNS: i64 = 2048;
const MOST_TERMS: i64 = 1024;

/// Keys of a block of a softmax. Sums are added block by block, so another number gives other last bits: this one
/// does not depend on the processor. A panel of as many values is 32 KB, a first-level cache.
const KEYS: i64 = 256;

/// The rows of a softmax's block on a GPU where each of its four warps has 16 of its own, as on tensor cores.
pub const ROWS_OF_WARPS: i64 = 64;

/// The depth of the first product up to which all of it is in shared memory at once.
pub const MOST_SOFTMAX_DEPTH: i64 = 128;

/// The rows and keys of a softmax's block on a GPU. Its 128 threads have eight scores each where they exchange them.
pub fn gpu_softmax_blocks(is_on_tensor_cores: bool, depth: i64) -> [i64; 2] {
    match is_on_tensor_cores && depth <= MOST_SOFTMAX_DEPTH {
        true => [ROWS_OF_WARPS, 32],
        false => [32, 32],
    }
}

/// The caches of a core as servers have had it for years, as [`CACHES`] gives them. Code for one runs well on others.
pub const USUAL_CACHES: [i64; 3] = [32 << 10, 1 << 20, 8 << 20];

/// What sizes are chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Bytes of a core's first-level cache of data, of its second-level cache, and of its part of the cache behind.
    caches: [i64; 3],
}

/// Whether a processor can have such caches.
pub fn are_possible(caches: [i64; 3]) -> bool {
    caches[0] >= 4096 && caches.is_sorted() && caches[2] <= 1 << 40
}

impl Default for Processor {
    fn default() -> Processor {
        Processor {
            caches: USUAL_CACHES,
        }
    }
}

impl Processor {
    /// The one that a module's code is for: its attribute `cfb.caches`, or the usual one.
    pub fn of_module(module: OperationRef<'_, '_>) -> Result<Processor, Failed> {
        if !module.has_attribute(&CACHES) {
            return Ok(Processor::default());
        }
        let caches = <[i64; 3]>::try_from(integers(module, CACHES)).ok();
        let Some(caches) = caches.filter(|caches| are_possible(*caches)) else {
            let message = "expected `cfb.caches` to be three numbers of bytes from 4096 up, of which none is smaller \
                           than the one before";
            return Err(error(module, message));
        };
        Ok(Processor { caches })
    }

    /// As many rows as leave their scratch of `peak` bytes each in the second-level cache, beside what else is there;
    /// or more, with scratch in a part of the cache behind, where that spares more: `weights` bytes that are larger
    /// than the cache are read anew for each block.
    pub fn rows_of_block(&self, peak: i64, weights: i64) -> i64 {
        let [_, second, behind] = self.caches;
        let rows = |bytes: i64, most: i64| {
            let fitting = (bytes / peak).clamp(1, most);
            match fitting / TILE_ROWS * TILE_ROWS {
                0 => fitting,
                tiles => tiles,
            }
        };
        let fitting = rows(second / 2, MOST_ROWS);
        let large = rows(behind / 2, MOST_LARGE_ROWS);
        // A row's part of the weights that are read, and its scratch, which leaves the cache and comes back.
        let spared = weights / fitting - weights / large;
        match weights > second / 2 && spared > 2 * peak {
            true => large,
            false => fitting,
        }
    }

    /// The most rows, columns and terms of a block of a product of a call. In the second-level cache there are the left
    /// side's rows, in three sixteenths of it, and a panel of the right side, in an eighth: tiles read both from there as fast
    /// as they multiply, and the more terms, the less often sums are read and written. The right side's panels lie in
    /// half of the cache behind, so that the left side is packed once for many columns.
    pub fn matmul_blocks(&self) -> [i64; 3] {
        let [_, second, behind] = self.caches;
        // Where the cache behind is no larger, a panel leaves room in it for others.
        let panel = (second / 8).min(behind / 32);
        let terms = (panel / (PANEL * NUMBER)).clamp(LANES, MOST_TERMS);
        let row = terms * NUMBER;
        let columns = (behind / 2 / row / PANEL * PANEL).clamp(PANEL, MOST_COLUMNS);
        let rows = (second * 3 / 16 / row / TILE_ROWS * TILE_ROWS).clamp(TILE_ROWS, MOST_ROWS);
        [rows, columns, terms]
    }

    /// The most rows and keys of a block of a softmax. The rows take a tenth of the second-level cache, if they are as
    /// long as a column of a panel that fills the first-level one.
    pub fn softmax_blocks(&self) -> [i64; 2] {
        let [first, second, _] = self.caches;
        let row = (first / PANEL).clamp(NUMBER, KEYS * NUMBER);
        let rows = second / 10 / row / TILE_ROWS * TILE_ROWS;
        [rows.clamp(TILE_ROWS, MOST_ROWS), KEYS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_grow_where_weights_are_read_again() {
        let rows_of_block = |peak, weights| Processor::default().rows_of_block(peak, weights);
        // Weights that stay in the cache cost nothing again; larger ones want the most rows.
        assert_eq!(rows_of_block(1024, 0), 96);
        assert_eq!(rows_of_block(1024, 64 << 20), 192);
        // Twenty KB a row: few rows fit, and it depends on the weights whether more are worth it.
        assert_eq!(rows_of_block(20 << 10, 256 << 10), 24);
        assert_eq!(rows_of_block(20 << 10, 1 << 20), 24);
        assert_eq!(rows_of_block(20 << 10, 9 << 20), 192);
        // What is larger than any cache stays as small as it can be.
        assert_eq!(rows_of_block(400 << 10, 64 << 20), 10);
        assert_eq!(rows_of_block(8 << 20, 1 << 30), 1);
    }

    #[test]
    fn blocks_of_rows_follow_the_caches() {
        let caches = [32 << 10, 512 << 10, 4 << 20];
        let rows_of_block = |peak, weights| Processor { caches }.rows_of_block(peak, weights);
        // Half a megabyte of weights is more than half of this second cache, and stays in the usual one.
        assert_eq!(Processor::default().rows_of_block(1024, 512 << 10), 96);
        assert_eq!(rows_of_block(1024, 256 << 10), 96);
        assert_eq!(rows_of_block(10 << 10, 256 << 10), 24);
        assert_eq!(rows_of_block(10 << 10, 4 << 20), 192);
        assert_eq!(rows_of_block(100 << 10, 64 << 20), 12);
    }

    #[test]
    fn caches_are_possible() {
        assert!(are_possible(USUAL_CACHES));
        assert!(!are_possible([1024, 1 << 20, 8 << 20]));
        assert!(!are_possible([32 << 10, 8 << 20, 1 << 20]));
        assert!(!are_possible([32 << 10, 1 << 20, 1 << 50]));
    }

    #[test]
    fn blocks_follow_the_caches() {
        let blocks = |caches| Processor { caches }.matmul_blocks();
        assert_eq!(Processor::default().matmul_blocks(), [48, 1024, 1024]);
        assert_eq!(blocks([48 << 10, 1 << 20, 16 << 20]), [48, 2048, 1024]);
        // Half the second-level cache, and a quarter of it.
        assert_eq!(blocks([32 << 10, 512 << 10, 4 << 20]), [48, 1024, 512]);
        assert_eq!(blocks([16 << 10, 256 << 10, 4 << 20]), [48, 2048, 256]);
        // There is none behind the second-level cache that is larger.
        assert_eq!(blocks([64 << 10, 1 << 20, 1 << 20]), [96, 512, 256]);
        // However small or large they are, a block is a possible one.
        assert_eq!(blocks([4096, 4096, 4096]), [12, 32, 16]);
        assert_eq!(blocks([1 << 30, 1 << 30, 1 << 30]), [96, 2048, 1024]);
    }

    #[test]
    fn rows_of_softmax_follow_the_caches() {
        let blocks = |caches| Processor { caches }.softmax_blocks();
        assert_eq!(Processor::default().softmax_blocks(), [96, 256]);
        assert_eq!(blocks([48 << 10, 1 << 20, 16 << 20]), [96, 256]);
        assert_eq!(blocks([32 << 10, 512 << 10, 4 << 20]), [48, 256]);
        assert_eq!(blocks([16 << 10, 256 << 10, 4 << 20]), [48, 256]);
        assert_eq!(blocks([4096, 4096, 4096]), [12, 256]);
    }
}
