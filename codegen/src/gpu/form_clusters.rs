//! `form-clusters`: blocks that keep weights form clusters, on cards that have them (the loop level).
//!
//! Where weights stay for a flush (`hold-weights`), blocks wait for each other behind each level. On cards from sm_90 on, 16
//! neighbouring blocks can be a *cluster*: they have a barrier of their own, and up to 227 KB of shared memory each. If such a
//! cluster holds all weights that stay, it needs nothing of other clusters: each computes some instances from their first level to
//! their last, and barriers of the whole grid are left for what instances share (`abi/src/gpu/flush.rs`).
//!
//! ```mlir
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 resident [8, 64, 3] { … }
//! // becomes
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 resident [8, 64, 3] clustered [16, 64, 3] { … }
//! ```
//!
//! A block has the fewest columns that 16 blocks can divide all launches' between them: 4, 8, 16 or 32 of each sum, the same in
//! all. So that a block has the same ones at each level, a launch whose columns have 12 such parts is given to 16 blocks, of which
//! four have nothing to do. Where more than half of the blocks have columns, none is left for other rows of the same columns: a
//! thread then has a second row where there are more rows than one for each thread of a column, as a block would take two tiles one
//! after another. The numbers are those of `resident`. Both sizes are compiled, so the code for older cards stays as it is.
//!
//! Requires: what `hold-weights` leaves. Leaves: the same; a module in which no weights stay as it is. Where they do, and a cluster
//! has no room for all of them, the first launch whose weights stay gets a remark.

use cohort_dialects::builder::{Op, operations_of};
use cohort_dialects::keys;
use cohort_passes::pass::{Outcome, PassInfo, remark};
use cohort_passes::support::ir::{blocks_of, set_attribute, top_level};
use melior::{
    Context,
    ir::{OperationRef, attribute::DenseI64ArrayAttribute},
};

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;

use super::hold_weights::{Room, numbers, size, small_bytes};
use super::lower_kernels_to_gpu::function::{MOST_CLUSTER_SHARED, SHARED, shared_bytes};
use super::lower_kernels_to_gpu::launches::{self, Launch};
use super::lower_kernels_to_gpu::tile::rows_in_cluster;
use crate::read_rows::kernel::Kernel;

/// The pass `form-clusters`.
pub const PASS: PassInfo = PassInfo {
    name: "form-clusters",
    summary: "Let blocks that keep weights form clusters, on cards that have them (the loop level)",
    description: include_str!("form_clusters.rs"),
    run,
};

/// What a cluster's blocks have room for, beside the orders of the flush (`persistence`). With the fewest columns a block has
/// the most rows at a time.
const CLUSTER: Room = Room {
    bytes: MOST_CLUSTER_SHARED - 1024,
    columns: &[4, 8, 16, 32],
    has: |parts| parts <= CLUSTER_BLOCKS as i64,
    thread_rows: rows_in_cluster,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = top_level(module).into_iter();
    let Some(gpu) = operations.find(|op| Op::GpuModule.is(*op)) else {
        return Ok(());
    };
    let kernels = top_level(gpu).into_iter();
    // The bytes that functions need for as long as they run.
    let (mut tiles, mut others) = (vec![], 0);
    for kernel in kernels.filter(|op| Op::RaggedKernel.is(*op)) {
        let stages = blocks_of(kernel).into_iter().flat_map(operations_of);
        if stages.into_iter().any(|op| Op::RaggedCalls.is(op)) {
            others = others.max(SHARED);
            continue;
        }
        let read = Kernel::read(kernel)?;
        let launches: Vec<_> = launches::read(&read)?.into_iter().map(|it| it.1).collect();
        for (launch, bytes) in shared_bytes(&read, launches)? {
            others = others.max(bytes);
            match launch {
                Launch::Tile(tile) if tile.resident.is_some() => tiles.push(*tile),
                Launch::Tile(tile) => others = others.max(small_bytes(&tile)),
                Launch::Rows(_) => {}
            }
        }
    }
    let (Some(first), false) = (tiles.first(), tiles.iter().any(|it| it.clustered.is_some()))
    else {
        return Ok(());
    };
    let is_alone = first.resident.is_some_and(|size| size.held_at.is_none());
    // The weights that begin first are the first.
    tiles.sort_by_key(|tile| tile.resident.and_then(|size| size.held_at));
    let Some(found) = size(&tiles, others, is_alone, &CLUSTER) else {
        let room = CLUSTER.bytes - if is_alone { 0 } else { others };
        let most = CLUSTER.columns.iter().max().copied().unwrap_or(0);
        remark(
            tiles[0].op,
            &format!(
                "all blocks of a GPU wait for each other behind each level: a cluster of {CLUSTER_BLOCKS} blocks, of {most} \
                 columns and {room} bytes for weights at most, does not hold all that stay"
            ),
        );
        return Ok(());
    };
    for (tile, numbers) in tiles.iter().zip(numbers(&tiles, found)) {
        let numbers = DenseI64ArrayAttribute::new(context, &numbers);
        set_attribute(tile.op, keys::CLUSTERED, numbers.into());
    }
    Ok(())
}
