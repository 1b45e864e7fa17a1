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
//!     warpgroups [4, 128, 3] from 2048 held rounded bf16 weights { … }
//! ```
//!
//! Where all terms of 128 columns have room in shared memory, a block's weights stay there (`held`). It has four warpgroups, of 64 rows
//! each, and goes on from rows to rows: two multiply while the others store what is made of their sums, and rows alone come from the
//! second cache.
//!
//! Elsewhere a block has three warpgroups, one below the other, and 256 columns: of sizes whose sums fit registers it reads the fewest
//! bytes for what it multiplies. Columns are those of all sums together, a multiple of 8 of each. Either has as many buffers of 64
//! terms as shared memory has room for, up to four. The size is used once there are enough rows to give each multiprocessor a block.
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
        Attribute, OperationRef,
        attribute::{DenseI64ArrayAttribute, IntegerAttribute},
        r#type::IntegerType,
    },
};

use super::lower_kernels_to_gpu::function::MOST_CLUSTER_SHARED;
use super::lower_kernels_to_gpu::launches::{self, Tile};
use super::lower_kernels_to_gpu::tile::{GROUP_TERMS, Panels, Size};
use super::plan_kernels_for_gpu::rows_from;

/// The pass `form-warpgroups`.
pub const PASS: PassInfo = PassInfo {
    name: "form-warpgroups",
    summary: "Multiply large products by warpgroups, on cards that have them (the loop level)",
    description: include_str!("form_warpgroups.rs"),
    run,
};

/// Warpgroups of a block, and columns of all its sums: half as many sums has each thread, and registers are for 384 threads with
/// 128 of them.
const STREAMED: [i64; 2] = [3, 256];

/// The same where weights stay in shared memory: two pairs of warpgroups that take turns.
const HELD: [i64; 2] = [4, 128];

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
            let Chosen {
                numbers,
                from,
                is_held,
            } = match size(&tile) {
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
            if is_held {
                set_attribute(tile.op, keys::HELD, Attribute::unit(context));
            }
        }
    }
    Ok(())
}

/// A size, and the rows of the kernel from which on it is used.
struct Chosen {
    numbers: [i64; 3],
    from: i64,
    /// Whether weights stay in shared memory.
    is_held: bool,
}

/// The size of a tile, or why it has none.
fn size(tile: &Tile<'_>) -> Result<Chosen, &'static str> {
    let gates = tile.gates();
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
    let sizes = |[groups, columns]: [i64; 2]| {
        let columns = columns / gates.all / 8 * 8;
        let stages = STAGES.iter().filter(move |_| columns <= tile.columns());
        stages.map(move |stages| [groups, columns, *stages])
    };
    let has_room = |bytes: i64| bytes <= MOST_CLUSTER_SHARED;
    let held = sizes(HELD).find(|size| has_room(Panels::new(*size).shared_bytes(tile)));
    let streamed = |size: &[i64; 3]| has_room(Size::of_warpgroups(*size).shared_bytes(gates));
    let numbers = held.or_else(|| sizes(STREAMED).find(streamed));
    let numbers = numbers.ok_or("it has fewer columns than a block")?;
    let from = rows_from(Size::of_warpgroups(numbers), gates, tile.matrix_rows());
    let largest = tile.largest.map_or(tile.large.1, |(_, from)| from);
    Ok(Chosen {
        numbers,
        from: from.max(largest),
        is_held: held.is_some(),
    })
}
