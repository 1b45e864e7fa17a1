//! `lower-kernels-to-gpu`: kernels at the loop level as functions of a `gpu.module` (level 3).
//!
//! Each `ragged.kernel` that `plan-kernels-for-gpu` has left in the `gpu.module` becomes a few `gpu.func`s, one or
//! more a *launch*. Nothing else is read, and nothing is chosen here. What the runtime must know of them is left on the module as `cfb.gpu_kernels`: for each
//! kernel a description in JSON (`passes/src/kernel/description.rs`), which `lower-control` takes
//! into the manifest. Arguments, grid and scratch are those of `abi/src/gpu.rs`.
//!
//! ```mlir
//! gpu.module @cohort_gpu {
//!   ragged.kernel @cell {
//!     …
//!     ragged.tiles over [28] small [2, 1, 32, 1] large [8, 2, 16, 1] from 4096 {
//!       %p:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28] … : …
//!       %m = arith.mulf %p#0, %p#1 : f32
//!       ragged.store %m, %h (d0) -> (d0) : memref<?x28xf32>
//!     }
//!   }
//! }
//! // becomes
//! gpu.module @cohort_gpu attributes {cfb.gpu_kernels = {cell = "{…}"}} {
//!   llvm.mlir.global internal @cell$0_small$shared() {addr_space = 3 : i32} : !llvm.array<9728 x i8>
//!   gpu.func @cell$0_small(%rows: i64, %base: !llvm.ptr<1>, %index: !llvm.ptr<1>, …) kernel {
//!     // rows of %x, gathered through their index, and columns of %w: to shared memory, while the
//!     // ones before are multiplied
//!     nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
//!     // the sums of a thread stay in registers until the last step; then each thread takes four
//!     // neighbouring columns of a row, of both gates
//!     llvm.store %h, %result {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
//!     gpu.return
//!   }
//!   gpu.func @cell$0_large(…) kernel { … }
//! }
//! ```
//!
//! A launch of `ragged.tiles` has two functions or more, one for each of its sizes; stages of one launch have barriers in between.
//! Sums of products never lie in device memory.
//!
//! Copies to shared memory are asynchronous (`cp.async`, sm_80), of two buffers in turn: the next k of
//! both sides are on their way while the last ones are multiplied. They take no registers for data, so a
//! tile may be larger.
//!
//! # Accesses of 16 bytes, and banks
//!
//! A thread takes at most 16 bytes of memory at once, so four neighbouring floats are one copy, load or
//! store wherever they begin at a multiple of 16 bytes: where the rows of what is read or written, and the
//! offsets and strides of its slices, are multiples of four floats. Neighbouring threads take neighbouring
//! fours, so that a warp's 512 bytes are whole sectors. This holds of
//!
//! - the rows and the weights that are copied to shared memory for a product;
//! - what pointwise work after a product reads and stores: its sums are redistributed for that (below);
//! - pointwise stages, what folds along the last dim of a row read, and the rows of a list.
//!
//! What a sum starts from, such as a bias, is read where the sum is: as many neighbours as a thread has
//! columns. Elsewhere - an odd width, a transposed operand, booleans - elements are taken one by one, by
//! neighbouring threads.
//!
//! Shared memory has 32 banks of 4 bytes, and what a warp reads from different rows of one bank comes one
//! after another; of accesses of 8 and 16 bytes that counts for each half and each quarter of the warp.
//! So:
//!
//! | access | a warp's lanes | in |
//! |---|---|---|
//! | left side, `f32` | the same 16 bytes of a row: one broadcast | `tile/lanes.rs` |
//! | right side, `f32` | neighbouring columns of one k | `tile/lanes.rs` |
//! | both sides, tensor cores | 8 rows and 4 pairs of k; 8 columns of 4 pairs of k. Rows are padded by 8 floats, each k by 4, so that all are in different banks | `tile/tensor.rs` |
//! | both sides, warpgroups | no lane: pieces of 16 bytes are swizzled over 128 as `wgmma` reads them, so that copies write 32 banks | `tile/warpgroup.rs` |
//! | sums, written | neighbouring columns of a row, 4, 8 or 16 bytes a lane; from tensor cores 8 rows of 8 columns, which lie 8 banks apart by padding | `tile/tail.rs` |
//! | sums, read | a quarter of the warp reads 32 neighbouring floats of a row of one gate | `tile/tail.rs` |
//! | lanes of a fold | 33 floats apart for each result | `rows/folds.rs` |
//!
//! Sums are not computed by the thread that needs them: a thread that has five gates of eight rows has no
//! registers for four columns of them, and with fewer rows each element of the right side would be read
//! more often. So they go through shared memory once, in the place of the buffers, which nobody needs any
//! more; that is `gates` writes and a quarter as many reads for each column, against K multiply-adds.
//!
//! With the module's attribute `cfb.precision = #cfb<precision tf32>` or `bf16` (`round-products-tf32`,
//! `round-products-bf16`) tiles are computed by tensor cores: `mma.sync` adds products of rounded factors
//! to sums of `f32` in registers. Rows are rounded as they are read from shared memory
//! (`cvt.rna.tf32.f32`, `cvt.rn.bf16x2.f32`), or were when they were stored, where they are kept in bf16. A size for warpgroups has
//! both sides in bf16, and `wgmma.mma_async` multiplies them (sm_90a). Weights of kernels over rows that are parameters are
//! constants of another form, `rounded`: made once when the program is loaded, dense, whatever slice or
//! transposition of the parameter they are, and in bf16 with two neighbouring k of a column in a word,
//! which halves what is copied and kept. A weight that a launch computes is rounded as rows are. All else
//! stays `f32`: folds, products that are folds, products of a kernel over calls
//! that do not compute a tile of a result, which have a remark, and kernels on the CPU. Numbers are within
//! about 1e-3 (tf32) or 1e-2 (bf16) of an instance's largest; where tensors decide, a decision can fall
//! otherwise.
//!
//! The same row gives the same bits whatever other rows it is computed with, and in every size of
//! tile: each sum has one order of k, and no value is added up by several threads in turn.
//!
//! A kernel whose unit is the call (docs/decisions/0005) is cut into tiles of calls: products and
//! softmax-like folds of any lengths, in one launch for all calls; see
//! `codegen/src/gpu/lower_kernels_to_gpu/calls.rs`.
//!
//! Requires: `plan-kernels-for-gpu`, `accumulate-products` for speed. Leaves: a `gpu.module` of `gpu`, `scf`, `arith`,
//! `vector`, `llvm`, and of `math` what the stock conversions lower. Limits: those of `lower-kernels`;
//! a kernel that has no plan has no code, and its program does not run on a GPU. A launch that asks for more shared
//! memory than a block has is an error.

mod calls;
pub(in crate::gpu) mod function;
pub(in crate::gpu) mod launches;
pub(super) mod ops;
mod rows;
pub(super) mod site;
pub(super) mod tile;

pub(super) use function::is_foreign;

use cohort_dialects::builder::{Builder, Op, operands_of, operations_of, result_of};
pub use cohort_dialects::marks::GPU_KERNELS as ATTRIBUTE;
use cohort_passes::kernel::calls::is_over_calls;
use cohort_passes::pass::{Failed, Outcome, PassInfo, error, remark};
use cohort_passes::support::ir::{
    blocks_of, entries_of, erase, nested_ops, replace_uses, set_attribute, symbol_of, top_level,
};
use melior::ir::attribute::DictionaryAttribute;
use melior::{
    Context,
    ir::{
        Attribute, Identifier, OperationRef, attribute::StringAttribute, operation::OperationLike,
    },
};

use crate::gpu::lower_kernels_to_gpu::function::Lowered;
use crate::gpu::plan_kernels_for_gpu::kernels_of;
use crate::gpu::precision;

/// The pass `lower-kernels-to-gpu`.
pub const PASS: PassInfo = PassInfo {
    name: "lower-kernels-to-gpu",
    summary: "Make kernels functions of a gpu.module (the loop level to level 3)",
    description: include_str!("lower_kernels_to_gpu.rs"),
    run,
};

/// The `gpu.module` that holds all functions.
pub const MODULE: &str = "cohort_gpu";

const UNPLANNED: &str =
    "expected a `gpu.module` with the kernel's loops, as `plan-kernels-for-gpu` leaves it";

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let kernels = kernels_of(module);
    let Some(gpu) = planned(module, &kernels)? else {
        return Ok(());
    };
    let block = blocks_of(gpu).first().copied();
    let block = block.ok_or_else(|| error(gpu, "expected a gpu.module with a body"))?;
    let planned = operations_of(block).into_iter();
    let planned: Vec<_> = planned.filter(|op| Op::RaggedKernel.is(*op)).collect();
    for kernel in kernels {
        let name = symbol_of(kernel);
        let mut named = planned.iter().map(|op| symbol_of(*op));
        // Of row-wise kernels the planner has said which have no code.
        if is_over_calls(kernel) && !named.any(|planned| planned == name) {
            return Err(error(kernel, UNPLANNED));
        }
    }
    let precision = precision::of(module)?;
    let inside = Builder::at_end(context, block, module.location());
    let mut descriptions: Vec<(Identifier<'c>, Attribute<'c>)> = Vec::new();
    for (number, kernel) in planned.into_iter().enumerate() {
        let name = symbol_of(kernel).unwrap_or_default();
        let mut stages = blocks_of(kernel).into_iter().flat_map(operations_of);
        let lowered = match stages.any(|op| Op::RaggedCalls.is(op)) {
            true => calls::lower(context, &inside, kernel, &name, precision)?,
            false => function::lower(context, &inside, kernel, (&name, number))?,
        };
        match lowered {
            Lowered::Functions(description) => descriptions.push((
                Identifier::new(context, &name),
                StringAttribute::new(context, &description).into(),
            )),
            Lowered::Refused { op, reason } => refuse(op, &reason),
        }
        erase(kernel);
    }
    let descriptions = DictionaryAttribute::new(context, &descriptions);
    set_attribute(gpu, ATTRIBUTE, descriptions.into());
    expand_reciprocal_roots(context, gpu);
    if !crate::math::expand_polynomials(gpu) {
        return Err(error(
            module,
            "the expansion of transcendental functions did not end",
        ));
    }
    Ok(())
}

/// `1 / sqrt(x)`, as on the CPU; the instruction for it is not exact to the last place.
fn expand_reciprocal_roots<'c>(context: &'c Context, gpu: OperationRef<'c, 'c>) {
    for op in nested_ops(gpu) {
        if !Op::MathRsqrt.is(op) {
            continue;
        }
        let Some(b) = Builder::before(context, op) else {
            continue;
        };
        let ty = b.f32();
        let one = b.float(1.0, ty);
        let root = b.sqrt(operands_of(op)[0]);
        let value = b.divf(one, root);
        replace_uses(result_of(op, 0), value);
        erase(op);
    }
}

pub(crate) fn refuse(op: OperationRef<'_, '_>, reason: &str) {
    remark(
        op,
        &format!("no code for GPUs, on which its program does not run: {reason}"),
    );
}

/// The module that `plan-kernels-for-gpu` has left; none where all is done, or nothing is to do.
fn planned<'c>(
    module: OperationRef<'c, 'c>,
    kernels: &[OperationRef<'c, 'c>],
) -> std::result::Result<Option<OperationRef<'c, 'c>>, Failed> {
    let mut operations = top_level(module).into_iter();
    let gpu = operations.find(|op| Op::GpuModule.is(*op));
    match (gpu, kernels.first()) {
        (Some(gpu), _) => Ok((!gpu.has_attribute(&ATTRIBUTE)).then_some(gpu)),
        (None, Some(kernel)) => Err(error(*kernel, UNPLANNED)),
        (None, None) => Ok(None),
    }
}

/// The entries of the module's attribute: kernels' names, and their descriptions.
pub fn descriptions<'c>(attribute: Attribute<'c>) -> Vec<(String, Attribute<'c>)> {
    entries_of(attribute).unwrap_or_default()
}

/// Kept here so that the module's submodules need not know how passes fail.
type Result<T> = std::result::Result<T, Failed>;
