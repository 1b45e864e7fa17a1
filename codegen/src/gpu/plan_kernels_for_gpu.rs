//! `plan-kernels-for-gpu`: kernels (level 2) to loops over memory for a GPU (the loop level).
//!
//! Adds a `gpu.module` with a `ragged.kernel` for each kernel. Kernels of level 2 stay where they are, for `plan-kernels`.
//! One whose unit is the call is planned by the planner of `plan-kernels`:
//!
//! ```mlir
//! cfb.kernel @scores attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
//! ^bb0(%calls: index, %n: tensor<?xindex>, %x: tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>):
//!   …
//! }
//! // becomes, besides
//! gpu.module @cohort_gpu {
//!   ragged.kernel @scores attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
//!     …
//!     ragged.calls {
//!       ragged.matmul over [@n, @n] depth [64] blocks [64, 16] into %r (d0, d1) -> (d0, d1) : memref<?x?x?xf32>
//!       left along_depth { … } right along_depth { … }
//!     }
//!   }
//! }
//! ```
//!
//! What differs there from the CPU's plan:
//!
//! - There are no vectors, and nothing is said of work items for threads: calls are cut into tiles.
//! - `blocks` are the columns and the terms of a tile. `along_depth` says whether neighbours along the depth are
//!   neighbours in a tile in shared memory; where a side is copied rather than computed, that is as they lie in memory.
//! - What is made of sums may read the one at its own index only: others are in registers of other threads. A fold
//!   of them computes them again.
//!
//! A row-wise kernel becomes a list of launches, one after another:
//!
//! ```mlir
//! ragged.kernel @cell {
//!   %x = ragged.operand row : memref<?x28xf32>
//!   %h = ragged.result : memref<?x28xf32>
//!   %w = ragged.param @w : memref<28x56xf32>
//!   ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 4096 {
//!     %zero = arith.constant 0.0 : f32
//!     %p:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 28 columns 56 gates [0, 28]
//!         copies [4, 4, 4] from %zero, %zero : …
//!     %m = arith.mulf %p#0, %p#1 : f32
//!     ragged.store %m, %h (d0) -> (d0) : memref<?x28xf32>
//!   }
//! }
//! ```
//!
//! - `ragged.tiles` are products with all pointwise work that reads them. Slices of a product are *gates*, products of
//!   their own over the columns of a tile, so that what is made of them at the same column is computed where the sums
//!   lie, in registers (Cortex §4 calls it fusion of operators; the shared iteration space of gates is ACRoBat's
//!   horizontal fusion, §5). A product is never stored but where a fold or a later launch needs more of it than
//!   one column; then the last value is stored that can still be computed with it.
//! - `ragged.blocks` are stages over whole rows for everything else, with a barrier after each. A fold of few results and
//!   many values is made by warps. What only the stages of one launch touch is in shared memory, if there is room.
//! - What all rows share is computed once, by stages between launches.
//! - Tiles have two sizes, for few rows and for many, each as large as registers and shared memory allow; they are those of
//!   tensor cores where the module asks for less than `f32`, and then there may be a third, the largest, of which a block has
//!   more warps and more shared memory than code may declare. A product of at most four columns is a fold, with a
//!   remark then.
//! - A copy to shared memory has 16 bytes where rows, offsets and strides are multiples of that, and a thread takes four
//!   neighbours at once where the same holds of what it stores, or folds.
//!
//! A kernel that no plan fits has no code for a GPU, with a remark that says why.
//!
//! A host scalar that a kernel takes beside tensors becomes a tensor first, by a kernel that copies it
//! (`plan_kernels_for_gpu/lifts.rs`): a launch takes an operand in one form.
//!
//! Requires: level 2. Leaves: level 2 with the loop level in a `gpu.module`; where there is one already, everything as
//! it is. Limits: those of `plan-kernels`.

mod lifts;
mod rows;

pub use rows::{buffers, rows_from};

use cohort_dialects::builder::{Builder, Op, operands_of, region_with_block};
use cohort_dialects::keys;
use cohort_passes::kernel::calls::is_over_calls;
use cohort_passes::kernel::variants::records_of;
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{
    COMPUTED, elem_of, kernel_of, name_attribute, symbol_of, top_level,
};
use melior::{
    Context,
    ir::{OperationRef, ValueLike, attribute::StringAttribute, operation::OperationLike},
};

use super::lower_kernels_to_gpu::MODULE;
use super::{binary, precision};
use crate::plan_calls::{self, Aim};

/// The pass `plan-kernels-for-gpu`.
pub const PASS: PassInfo = PassInfo {
    name: "plan-kernels-for-gpu",
    summary: "Make kernels loops over memory for a GPU (level 2 to the loop level)",
    description: include_str!("plan_kernels_for_gpu.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    if binary::is_there(module) {
        return Ok(());
    }
    lifts::lift_scalars(context, module, &kernels_of(module));
    let kernels = kernels_of(module);
    let Some(first) = kernels.first() else {
        return Ok(());
    };
    let precision = precision::of(module)?;
    let aim = Aim::gpu(precision);
    let records = records_of(module);
    let builder = Builder::before(context, *first)
        .ok_or_else(|| error(*first, "expected a kernel in a module"))?
        .at(module.location());
    let (region, block) = region_with_block(&[], module.location());
    let inside = Builder::at_end(context, block, module.location());
    for kernel in kernels {
        let name = symbol_of(kernel).unwrap_or_default();
        let scalars = host_scalars(&name, &records);
        match is_over_calls(kernel) {
            true => plan_calls::plan(&inside, kernel, &name, &scalars, aim)?,
            false => rows::plan(&inside, kernel, &name, &scalars, precision)?,
        }
    }
    let name = StringAttribute::new(context, MODULE).into();
    builder.op(
        Op::GpuModule,
        &[],
        &[],
        &[(keys::SYM_NAME, name)],
        vec![region],
    );
    Ok(())
}

/// The kernels of a module that a GPU is to run: not those that are computed once, by the host, when the weights
/// are loaded.
pub fn kernels_of<'c>(module: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let operations = top_level(module);
    let computed: Vec<String> = operations
        .iter()
        .filter_map(|op| name_attribute(*op, COMPUTED))
        .collect();
    let is_run = |kernel: &OperationRef<'c, 'c>| {
        let name = symbol_of(*kernel);
        Op::CfbKernel.is(*kernel) && name.is_none_or(|name| !computed.contains(&name))
    };
    operations.into_iter().filter(is_run).collect()
}

/// Which operands of a kernel its records pass as host scalars: all records the same, see [`lifts`].
pub fn host_scalars(name: &str, records: &[OperationRef<'_, '_>]) -> Vec<bool> {
    let mut own = records
        .iter()
        .filter(|record| kernel_of(**record).as_deref() == Some(name));
    let scalars = own.next().map(|record| {
        let operands = operands_of(*record).into_iter();
        operands
            .map(|operand| elem_of(operand.r#type()).is_some())
            .collect()
    });
    scalars.unwrap_or_default()
}
