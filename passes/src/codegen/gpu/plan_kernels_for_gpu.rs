//! `plan-kernels-for-gpu`: per-instance kernels (level 2) to loops over memory for a GPU (the loop level).
//!
//! Adds a `gpu.module` with a `ragged.kernel` for each kernel whose unit is the call, by the planner of
//! `plan-kernels`. Kernels of level 2 stay where they are, for the CPU; those over rows are read there by
//! `lower-kernels-to-gpu` as well.
//!
//! ```mlir
//! cfb.kernel @scores attributes {lengths = [@n], rows = [@n], unit = "calls"} {
//! ^bb0(%calls: index, %n: tensor<?xindex>, %x: tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>):
//!   …
//! }
//! // becomes, besides
//! gpu.module @cohort_gpu {
//!   ragged.kernel @scores attributes {lengths = [@n], rows = [@n], unit = "calls"} {
//!     …
//!     ragged.calls {
//!       ragged.matmul over [@n, @n] depth [64] blocks [64, 16] into %r (d0, d1) -> (d0, d1) : memref<?x?x?xf32>
//!       left along_depth { … } right along_depth { … }
//!     }
//!   }
//! }
//! ```
//!
//! What differs from the CPU's plan:
//!
//! - There are no vectors, and nothing is said of pieces for threads: calls are cut into tiles.
//! - `blocks` are the columns and the terms of a tile. `along_depth` says whether neighbours along the depth are
//!   neighbours in a tile in shared memory; where a side is copied rather than computed, that is as they lie in memory.
//! - What is made of sums may read the one at its own index only: others are in registers of other threads. A fold
//!   of them computes them again.
//!
//! A host scalar that a kernel takes beside tensors becomes a tensor first, by a kernel that copies it
//! (`plan_kernels_for_gpu/lifts.rs`): a launch takes an operand in one form.
//!
//! Requires: level 2. Leaves: level 2 with the loop level in a `gpu.module`; where there is one already, everything as
//! it is. Limits: those of `plan-kernels`.

mod lifts;

use cohort_dialects::builder::{Builder, name_of, operands_of, region_with_block};
use melior::{
    Context,
    ir::{OperationRef, ValueLike, attribute::StringAttribute, operation::OperationLike},
};

use super::lower_kernels_to_gpu::MODULE;
use super::{binary, precision};
use crate::codegen::plan_calls::{self, Target};
use crate::kernel::calls::is_over_calls;
use crate::kernel::rows::read::elem_of;
use crate::kernel::variants::records_of;
use crate::pass::{Outcome, PassInfo, error};
use crate::support::ir::{COMPUTED, name_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "plan-kernels-for-gpu",
    summary: "Make per-instance kernels loops over memory for a GPU (level 2 to the loop level)",
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
    let target = Target::Gpu(precision::of(module)?);
    let records = records_of(module);
    let builder = Builder::before(context, *first)
        .ok_or_else(|| error(*first, "expected a kernel in a module"))?
        .at(module.location());
    let (region, block) = region_with_block(&[], module.location());
    let inside = Builder::at_end(context, block, module.location());
    for kernel in kernels {
        if is_over_calls(kernel) {
            let name = name_attribute(kernel, "sym_name").unwrap_or_default();
            let scalars = host_scalars(&name, &records);
            plan_calls::plan(&inside, kernel, &name, &scalars, target)?;
        }
    }
    let name = StringAttribute::new(context, MODULE).into();
    builder.op("gpu.module", &[], &[], &[("sym_name", name)], vec![region]);
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
        let name = name_attribute(*kernel, "sym_name");
        name_of(*kernel) == "cfb.kernel" && name.is_none_or(|name| !computed.contains(&name))
    };
    operations.into_iter().filter(is_run).collect()
}

/// Which operands of a kernel its records pass as host scalars: all records the same, see [`lifts`].
pub fn host_scalars(name: &str, records: &[OperationRef<'_, '_>]) -> Vec<bool> {
    let mut own = records
        .iter()
        .filter(|record| name_attribute(**record, "kernel").as_deref() == Some(name));
    let scalars = own.next().map(|record| {
        let operands = operands_of(*record).into_iter();
        operands
            .map(|operand| elem_of(operand.r#type()).is_some())
            .collect()
    });
    scalars.unwrap_or_default()
}
