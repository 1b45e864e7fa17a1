//! A whole flush in one launch: the function that runs every launch of a schedule, with barriers among
//! all blocks in between.
//!
//! A flush is a sequence of *steps*. The launches of one step need nothing of each other, and those of
//! the next may read whatever they wrote. Launched one by one, each step waits for the latency of a
//! launch; in one launch ([`GpuFlush::symbol`]) the blocks stay on the card, take the blocks of all
//! launches of a step in turn, and meet at a *grid barrier* before the next one.
//!
//! The function takes one argument, the address of a *schedule* in the device's memory, a multiple of 8.
//! As many blocks are launched as the schedule says, each of [`GpuFlush::threads`] threads, and all of
//! them are on the card at the same time (a cooperative launch). On the host it is a
//! [`SimFn`](super::SimFn) like any other, which calls those of the launches.
//!
//! # Clusters
//!
//! Cards from sm_90 on can run blocks in *clusters*: [`CLUSTER_BLOCKS`] neighbouring blocks, whose barrier takes a fraction of what
//! one of the whole grid does. A program may have another function for these ([`GpuClusters`]), which does all that the first
//! one does and then gives each cluster steps of its own: those of some instances, which need nothing of the others.
//!
//! # The schedule
//!
//! Words of 32 bits, then arguments of 64:
//!
//! | words | count | |
//! |---|---|---|
//! | `arrived` | 1 | 0; then the blocks that have come to a grid barrier, added up over all of them |
//! | `blocks` | 1 | blocks that are launched |
//! | `steps` | 1 | steps of the whole grid; at least 1 where there are no clusters |
//! | `clusters` | 1 | clusters that have steps of their own, or 0; then the blocks are theirs, [`CLUSTER_BLOCKS`] of each |
//! | `all_steps` | 1 | the same with those of all clusters |
//! | | 1 | 0 |
//! | `launch`, `blocks` | for each step, first those of the grid, then those of one cluster after another | the number of its first launch, and the blocks of all its launches |
//! | `step`, `steps` | for each cluster | the number of its first step, and how many it has, at least 1 |
//! | `function`, `blocks`, `columns`, `arguments` | for each launch, those of a step one after another | the function's number in [`GpuFlush::functions`], or in [`GpuClusters::functions`]; its blocks, at least 1; of these, how many the first dim of the grid has; where its arguments begin, in bytes from the beginning of the schedule |
//! | arguments | for each call | as [listed](super#arguments), where a multiple of 8 bytes begins |
//! | | | 0, [`GpuFlush::argument_bytes`] of them: a list is read as if it were as long as the longest |
//!
//! Blocks of the function [`NOTHING`] do nothing: they stand between launches so that the next one begins with a block that
//! has its weights.
//!
//! Behind a step of the grid there is a barrier of the grid, unless nothing follows; behind one of a cluster, a barrier of the
//! cluster.
//!
//! Block `b` of a launch is at `b % columns` of the grid's first dim and at `b / columns` of the second.
//! The product of `blocks` and `steps` is less than 2³¹ ([`most_steps`]), so that `arrived` can count.

use serde::{Deserialize, Serialize};

/// The function that runs a flush.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFlush {
    /// Its name in the PTX or CUBIN; for the host, that of a [`SimFn`](super::SimFn).
    pub symbol: String,
    /// Threads of a block, which all its functions have.
    pub threads: u32,
    /// Static shared memory of a block: the most that a function has, and what it does next.
    pub shared_bytes: u32,
    /// Bytes of arguments that it reads of each call, whose list may be shorter.
    pub argument_bytes: u32,
    /// The symbols of the functions that it runs, by their numbers in a schedule.
    pub functions: Vec<String>,
    /// What runs it in clusters instead, in code for a card that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<GpuClusters>,
}

/// The function that runs a flush where blocks form clusters, of as many threads and arguments as the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuClusters {
    /// Its name, as [`GpuFlush::symbol`].
    pub symbol: String,
    /// Shared memory of a block.
    pub shared_bytes: u32,
    /// The symbols of the functions that it runs, by their numbers in a schedule.
    pub functions: Vec<String>,
}

/// Blocks of a cluster: the most that a card can be asked for.
pub const CLUSTER_BLOCKS: u32 = 16;

/// The number of no function.
pub const NOTHING: u32 = u32::MAX;
/// Words before those of the steps.
pub const HEADER_WORDS: usize = 6;
/// Words of a cluster.
pub const CLUSTER_WORDS: usize = 2;
/// Words of a step.
pub const STEP_WORDS: usize = 2;
/// Words of a launch.
pub const LAUNCH_WORDS: usize = 4;

/// How many steps a schedule for `blocks` blocks may have.
pub fn most_steps(blocks: u32) -> usize {
    ((1 << 31) - 1) / blocks.max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_can_be_counted() {
        assert_eq!(most_steps(0), (1 << 31) - 1);
        assert_eq!(most_steps(1 << 11), (1 << 20) - 1);
        for blocks in [1_u32, 3, 264, 65_535] {
            assert!(most_steps(blocks) as u64 * u64::from(blocks) < 1 << 31);
        }
    }
}
