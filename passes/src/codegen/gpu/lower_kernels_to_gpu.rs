//! `lower-kernels-to-gpu`: batched kernels (level 2) as functions of a `gpu.module` (level 3).
//!
//! Each `cfb.kernel` becomes a few `gpu.func`s, one or more a *launch*, and stays where it is, for the
//! CPU. What the runtime must know of them is left on the module as `cfb.gpu_kernels`: for each
//! kernel a description in JSON (`passes/src/kernel/description.rs`), which `lower-control` takes
//! into the manifest. Arguments, grid and scratch are those of `abi/src/gpu.rs`.
//!
//! ```mlir
//! cfb.kernel @cell {
//! ^bb0(%rows: index, %x: tensor<?x28xf32>):
//!   %w = ml_program.global_load_const @w : tensor<28x56xf32>
//!   %p = linalg.matmul ins(%x, %w : …) outs(%bias : …) -> tensor<?x56xf32>
//!   %a = tensor.extract_slice %p[0, 0] [%rows, 28] [1, 1] : …
//!   %b = tensor.extract_slice %p[0, 28] [%rows, 28] [1, 1] : …
//!   %h = arith.mulf %a, %b : tensor<?x28xf32>
//!   cfb.yield %h : tensor<?x28xf32>
//! }
//! // becomes, besides
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
//! The body is read as the same graph of values of one row as for the CPU. A plan cuts it into
//! launches of two kinds: tiles of products with all pointwise work that reads them, and stages over
//! whole rows for everything else, with barriers in between (Cortex §4 calls it fusion of operators;
//! the shared iteration space of gates is ACRoBat's horizontal fusion, §5). Sums of products never
//! lie in device memory, unless what reads them needs more than one column.
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
//! - what pointwise work after a product reads and stores: its sums are dealt anew for that (below);
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
//! | sums, written | neighbouring columns of a row, 4, 8 or 16 bytes a lane; from tensor cores 8 rows of 8 columns, which lie 8 banks apart by padding | `tile/tail.rs` |
//! | sums, read | a quarter of the warp reads 32 neighbouring floats of a row of one gate | `tile/tail.rs` |
//! | lanes of a fold | 33 floats apart for each result | `rows/folds.rs` |
//!
//! Sums are not computed by the thread that needs them: a thread that has five gates of eight rows has no
//! registers for four columns of them, and with fewer rows each element of the right side would be read
//! more often. So they go through shared memory once, in the place of the buffers, which nobody needs any
//! more; that is `gates` writes and a quarter as many reads for each column, against K multiply-adds.
//!
//! With the module's attribute `cfb.precision = "tf32"` or `"bf16"` (`round-products-tf32`,
//! `round-products-bf16`) tiles are computed by tensor cores: `mma.sync` adds products of rounded factors
//! to sums of `f32` in registers. Rows are rounded as they are read from shared memory
//! (`cvt.rna.tf32.f32`, `cvt.rn.bf16x2.f32`). Weights of kernels over rows that are parameters are
//! constants of another form, `rounded`: made once when the program is loaded, dense, whatever slice or
//! transposition of the parameter they are, and in bf16 with two neighbouring k of a column in a word,
//! which halves what is copied and kept. A weight that a launch computes is rounded as rows are. All else
//! stays `f32`: folds, products of at most four columns, which are folds, products of a kernel over calls
//! that are no tile of a result, of all of which a remark tells, and kernels on the CPU. Numbers are within
//! about 1e-3 (tf32) or 1e-2 (bf16) of an instance's largest; where tensors decide, a decision can fall
//! otherwise.
//!
//! The same row gives the same bits whatever other rows it is computed with, and in every size of
//! tile: each sum has one order of k, and no value is added up by several threads in turn.
//!
//! A kernel whose unit is the call (docs/decisions/0005) is cut into tiles of calls: products and
//! softmax-like folds of any lengths, in one launch for all calls; see
//! `passes/src/codegen/gpu/lower_kernels_to_gpu/calls.rs`.
//!
//! Requires: level 2, `accumulate-products` for speed. Leaves: a `gpu.module` of `gpu`, `scf`, `arith`,
//! `vector`, `llvm`, and of `math` what the stock conversions lower. Limits: those of `lower-kernels`;
//! a kernel that has no plan has no code, with a remark, and its program does not run on a GPU.

mod calls;
mod function;
mod lifts;
mod ops;
mod plan;
mod rows;
mod site;
mod tile;

use cohort_dialects::builder::{
    Builder, arguments_of, name_of, operands_of, region_with_block, result_of,
};
use melior::{
    Context,
    ir::{
        Attribute, Identifier, OperationRef, ValueLike,
        attribute::{AttributeLike, StringAttribute},
        operation::OperationLike,
    },
};

use crate::codegen::gpu::lower_kernels_to_gpu::function::Lowered;
use crate::codegen::gpu::precision;
use crate::kernel::calls::is_over_calls;
use crate::kernel::rows::read::elem_of;
use crate::pass::{Failed, Outcome, PassInfo, error, remark};
use crate::support::ir::{
    COMPUTED, TensorType, blocks_of, erase, name_attribute, nested_ops, replace_uses,
    set_attribute, top_level,
};

pub const PASS: PassInfo = PassInfo {
    name: "lower-kernels-to-gpu",
    summary: "Make batched kernels functions of a gpu.module (level 2 to level 3)",
    description: include_str!("lower_kernels_to_gpu.rs"),
    run,
};

/// The `gpu.module` that holds all functions.
pub const MODULE: &str = "cohort_gpu";

/// Its attribute: a dictionary of each kernel's description in JSON.
pub const ATTRIBUTE: &str = "cfb.gpu_kernels";

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let kernels_of = || {
        let operations = top_level(module).into_iter();
        operations
            .filter(|op| name_of(*op) == "cfb.kernel")
            .collect::<Vec<_>>()
    };
    lifts::lift_scalars(context, module, &kernels_of());
    let operations = top_level(module);
    let kernels = kernels_of();
    let Some(first) = kernels.first() else {
        return Ok(());
    };
    let computed: Vec<String> = operations
        .iter()
        .filter_map(|op| name_attribute(*op, COMPUTED))
        .collect();
    let records: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| name_of(*op) == "cfb.record")
        .collect();

    let precision = precision::of(module)?;
    let builder = Builder::before(context, *first)
        .ok_or_else(|| error(*first, "expected a kernel in a module"))?
        .at(module.location());
    let (region, block) = region_with_block(&[], module.location());
    let inside = Builder::at_end(context, block, module.location());
    let mut descriptions: Vec<(Identifier<'c>, Attribute<'c>)> = Vec::new();
    for kernel in kernels {
        let name = name_attribute(kernel, "sym_name").unwrap_or_default();
        if computed.contains(&name) {
            // Computed once, by the host, when the weights are loaded.
            continue;
        }
        let Some(scalars) = host_scalars(kernel, &name, &records) else {
            continue;
        };
        let lowered = match is_over_calls(kernel) {
            true => calls::lower(context, &inside, kernel, &name, &scalars, precision)?,
            false => function::lower(context, &inside, kernel, &name, &scalars, precision)?,
        };
        match lowered {
            Lowered::Functions(description) => descriptions.push((
                Identifier::new(context, &name),
                StringAttribute::new(context, &description).into(),
            )),
            Lowered::Refused { op, reason } => refuse(op, &reason),
        }
    }
    let name = StringAttribute::new(context, MODULE).into();
    let gpu = builder.op("gpu.module", &[], &[], &[("sym_name", name)], vec![region]);
    let entries: Vec<_> = descriptions
        .iter()
        .map(|(name, value)| {
            format!(
                "{:?} = {value}",
                name.as_string_ref().as_str().unwrap_or("")
            )
        })
        .collect();
    let dictionary = builder.attr(&format!("{{{}}}", entries.join(", ")));
    set_attribute(gpu, ATTRIBUTE, dictionary);
    expand_reciprocal_roots(context, gpu);
    if !cohort_dialects::math::expand_polynomials(gpu) {
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
        if name_of(op) != "math.rsqrt" {
            continue;
        }
        let Some(b) = Builder::before(context, op) else {
            continue;
        };
        let ty = b.ty("f32");
        let one = [("value", b.attr("1.0 : f32"))];
        let one = b.value_with("arith.constant", &[], ty, &one);
        let root = b.value("math.sqrt", &operands_of(op), ty);
        let value = b.value("arith.divf", &[one, root], ty);
        replace_uses(result_of(op, 0), value);
        erase(op);
    }
}

fn refuse(op: OperationRef<'_, '_>, reason: &str) {
    remark(
        op,
        &format!("no code for GPUs, on which its program does not run: {reason}"),
    );
}

/// Which operands of a kernel its records pass as host scalars; `None` where it must stay on the
/// CPU, which was said.
fn host_scalars<'c>(
    kernel: OperationRef<'c, 'c>,
    name: &str,
    records: &[OperationRef<'c, 'c>],
) -> Option<Vec<bool>> {
    let block = blocks_of(kernel).first().copied()?;
    for argument in arguments_of(block).into_iter().skip(1) {
        let dynamic = |ty: TensorType<'c>| ty.shape.iter().skip(1).any(Option::is_none);
        if !is_over_calls(kernel) && TensorType::of_value(argument).is_some_and(dynamic) {
            refuse(kernel, "an operand whose rows differ in shape");
            return None;
        }
    }
    let mut own = records
        .iter()
        .filter(|record| name_attribute(**record, "kernel").as_deref() == Some(name));
    // All records pass the same, see `lifts`.
    let scalars = own.next().map(|record| {
        let operands = operands_of(*record).into_iter();
        operands
            .map(|operand| elem_of(operand.r#type()).is_some())
            .collect()
    });
    Some(scalars.unwrap_or_default())
}

/// The entries of the module's attribute: kernels' names, and their descriptions.
pub fn descriptions<'c>(attribute: Attribute<'c>) -> Vec<(String, Attribute<'c>)> {
    // SAFETY: the attribute is alive, and its kind is asked before its entries are read.
    unsafe {
        let raw = attribute.to_raw();
        if !mlir_sys::mlirAttributeIsADictionary(raw) {
            return vec![];
        }
        (0..mlir_sys::mlirDictionaryAttrGetNumElements(raw))
            .map(|at| {
                let entry = mlir_sys::mlirDictionaryAttrGetElement(raw, at);
                let name = mlir_sys::mlirIdentifierStr(entry.name);
                let bytes = std::slice::from_raw_parts(name.data.cast::<u8>(), name.length);
                let name = String::from_utf8_lossy(bytes).into_owned();
                (name, Attribute::from_raw(entry.attribute))
            })
            .collect()
    }
}

/// Kept here so that the module's submodules need not know how passes fail.
type Result<T> = std::result::Result<T, Failed>;
