//! `form-warpgroups`: large products are multiplied by warpgroups, on cards that have them (the loop level).
//!
//! On cards of sm_90a four warps can multiply together what lies in shared memory (`wgmma`), and no warp loads factors into registers.
//! It is the only way to more than two thirds of such a card's peak. A tile whose rows are kept in bf16 (`keep-rows-bf16`) and
//! whose weights are parameters gets a size for that, beside those for all cards, which others go on using.
//!
//! ```mlir
//! ragged.tiles over [2048] small […] large […] from 256 largest [8, 16, 32, 4, 8, 3] from 2048 rounded bf16 weights { … }
//! // becomes
//! ragged.tiles over [2048] small […] large […] from 256 largest [8, 16, 32, 4, 8, 3] from 2048
//!     warpgroups [3, 256, 4] from 3072 rounded bf16 weights { … }
//! ```
//!
//! A block has three warpgroups, one below the other, of 64 rows each, and 256 columns of all sums together, or as many as are a
//! multiple of 8 of each sum: of sizes whose sums fit registers it reads the fewest bytes for what it multiplies. It has as many
//! buffers of 64 terms as shared memory has room for, up to four. The size is used once there are enough rows to give each
//! multiprocessor a block.
//!
//! Weights are rounded when they are loaded, once more: column after column, as the instruction reads them.
//!
//! Requires: what `keep-rows-bf16` leaves. Leaves: the same. A tile whose rows are `f32`, whose weights are computed, whose number of
//! terms is not a multiple of 64 or that has fewer columns than a block stays as it is; if it has a `largest` size, a remark says why.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::Op;
use cohort_dialects::keys;
use cohort_passes::pass::{Outcome, PassInfo, remark};
use cohort_passes::support::ir::{set_attribute, top_level};
use melior::{
    Context,
    ir::{
        OperationRef,
        attribute::{DenseI64ArrayAttribute, IntegerAttribute},
        r#type::IntegerType,
    },
};

use super::lower_kernels_to_gpu::function::MOST_CLUSTER_SHARED;
use super::lower_kernels_to_gpu::launches::{self, Tile};
use super::lower_kernels_to_gpu::tile::{GROUP_TERMS, Size};
use super::plan_kernels_for_gpu::rows_from;

/// The pass `form-warpgroups`.
pub const PASS: PassInfo = PassInfo {
    name: "form-warpgroups",
    summary: "Multiply large products by warpgroups, on cards that have them (the loop level)",
    description: include_str!("form_warpgroups.rs"),
    run,
};

/// Warpgroups of a block: each thread has 128 sums and there are registers for 384 threads of that.
const GROUPS: i64 = 3;

/// Columns of all sums of a block.
const COLUMNS: i64 = 256;

/// Buffers, the best first.
const STAGES: [i64; 3] = [4, 3, 2];

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = top_level(module).into_iter();
    let Some(gpu) = operations.find(|op| Op::GpuModule.is(*op)) else {
        return Ok(());
    };
    let kernels = top_level(gpu).into_iter();
    for kernel in kernels.filter(|op| Op::RaggedKernel.is(*op)) {
        for tile in launches::tiles(kernel)? {
            let (numbers, from) = match size(&tile) {
                Ok(size) => size,
                Err(reason) => {
                    if tile.precision == Precision::Bf16 && tile.largest.is_some() {
                        let text = format!("no warpgroups multiply this: {reason}");
                        remark(tile.op, &text);
                    }
                    continue;
                }
            };
            let numbers = DenseI64ArrayAttribute::new(context, &numbers).into();
            set_attribute(tile.op, keys::WARPGROUPS, numbers);
            let ty = IntegerType::new(context, 64).into();
            set_attribute(
                tile.op,
                keys::GROUPED_FROM,
                IntegerAttribute::new(ty, from).into(),
            );
        }
    }
    Ok(())
}

/// The size of a tile, and the rows of the kernel from which on it is used; or why it has none.
fn size(tile: &Tile<'_>) -> Result<([i64; 3], i64), &'static str> {
    let gates = tile.gates();
    let columns = COLUMNS / gates.all / 8 * 8;
    let segments = || tile.chains.iter().flat_map(|chain| &chain.segments);
    if !tile.small.keeps_rows() {
        return Err("its rows are not kept in bf16");
    }
    if segments().any(|segment| segment.rounded.is_none()) {
        return Err("its weights are computed");
    }
    if segments().any(|segment| segment.k % GROUP_TERMS != 0) {
        return Err("its number of terms is not a multiple of 64");
    }
    if columns > tile.columns() {
        return Err("it has fewer columns than a block");
    }
    let numbers = |stages| [GROUPS, columns, stages];
    let has_room = |stages: &i64| {
        Size::of_warpgroups(numbers(*stages)).shared_bytes(gates) <= MOST_CLUSTER_SHARED
    };
    let stages = STAGES.into_iter().find(has_room);
    let numbers = numbers(stages.ok_or("a block has no room for two buffers")?);
    let from = rows_from(Size::of_warpgroups(numbers), gates, tile.matrix_rows());
    let largest = tile.largest.map_or(tile.large.1, |(_, from)| from);
    Ok((numbers, from.max(largest)))
}
