//! `lower-control`: level 2 to level 3. The control program becomes code that calls the runtime.
//!
//! Every function of the control program gets the runtime's context as its first parameter. A lazy
//! handle becomes an `i64`, a value of an algebraic data type or an array a pointer to slots (see
//! `abi`), a host scalar stays what it is. Records become calls of `cohort_record`;
//! parameters and constants that the program passes on become handles of *sources*, rows that exist
//! before anything runs; what may fail is checked and calls `cohort_fail`. Recursive functions check
//! the depth and the stack, a `cfb.turn` counts a step. `cohort_entry` is what the runtime calls.
//!
//! A `cfb.fork`, or a `cfb.map` with the attribute `cfb.fork`, becomes functions, a strand each, which
//! `cohort_fork` begins and `cohort_join` waits for.
//!
//! A `cfb.force` calls `cohort_force`, which suspends the instance until the tensor is there; all
//! that the instance needs afterwards is on its own stack, so nothing else is done for it. The guard
//! of a force is read in the same way, right after the flush that computed both, and gives the
//! instance up where it holds. A `cfb.phase` raises the phase in the context, a `cfb.ghost` calls
//! `cohort_ghost`.
//!
//! ```mlir
//! func.func private @leaf(%w: i32) -> !cfb.lazy<tensor<4xf32>> {
//!   %x = cfb.param_row @emb[%w] : !cfb.lazy<tensor<4xf32>>
//!   %h = cfb.record @leaf_0(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
//!   return %h : !cfb.lazy<tensor<4xf32>>
//! }
//! // becomes
//! func.func private @coh.leaf(%context: !llvm.ptr, %w: i32) -> i64 {
//!   … scf.if %out_of_range { call @cohort_fail(…) }
//!   %x = arith.ori %source, %row : i64
//!   llvm.store %x, %operands : i64, !llvm.ptr
//!   %h = call @cohort_record(%context, %kernel, %operands) : (!llvm.ptr, i32, !llvm.ptr) -> i64
//!   return %h : i64
//! }
//! ```
//!
//! Requires: level 2 whose kernels `lower-kernels` has lowered; one function with `cfb.entry`.
//! Leaves: `func`, `scf`, `arith`, `math` and `llvm` on scalars and pointers, and the manifest as
//! the module's attribute `cfb.manifest`. `cfb.adt`, `ml_program.global` and functions that the
//! entry does not reach are gone.
//!
//! A tensor with instance dims is its handle and its lengths; a row of it, or a length, is arithmetic.
//!
//! Not supported yet, each an error at its operation: functions of several basic blocks.
//! `cfb.array_push` copies the array, but for one that a `cfb.fold` carries and only pushes to.

mod arrays;
mod calls;
mod constants;
mod decisions;
mod emit;
mod entry;
mod function;
mod gradients;
mod growth;
mod manifest;
mod ragged;
mod records;
mod regions;
mod scalars;
mod strands;
mod structure;
mod types;

use cohort_dialects::builder::Op;
pub use cohort_dialects::marks::MANIFEST as MANIFEST_ATTRIBUTE;
use cohort_passes::kernel::description::ATTRIBUTE;
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{erase, set_attribute, top_level};
use melior::{
    Context,
    ir::{OperationRef, attribute::StringAttribute, operation::OperationLike},
};

use calls::CallGraph;
use manifest::ManifestBuilder;

/// The pass `lower-control`.
pub const PASS: PassInfo = PassInfo {
    name: "lower-control",
    summary: "Lower the control program to calls of the runtime's ABI (level 2 to level 3)",
    description: include_str!("lower_control.rs"),
    run,
};

/// What all functions of the control program share while they are lowered.
struct Program<'c> {
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    manifest: ManifestBuilder,
    calls: CallGraph,
    /// Functions of strands so far.
    strands: usize,
}

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let calls = CallGraph::new(module)?;
    let manifest = ManifestBuilder::new(module)?;
    let mut program = Program {
        context,
        module,
        manifest,
        calls,
        strands: 0,
    };

    emit::declare_runtime(&program);
    for function in program.calls.reachable() {
        function::lower(&mut program, function)?;
    }
    let manifest = entry::lower(&mut program)?;

    let json = serde_json::to_string(&manifest)
        .map_err(|problem| error(module, &format!("cannot write the manifest: {problem}")))?;
    set_attribute(
        module,
        MANIFEST_ATTRIBUTE,
        StringAttribute::new(context, &json).into(),
    );
    program.calls.erase();
    for operation in top_level(module) {
        let is_declared = matches!(Op::of(operation), Some(Op::CfbAdt | Op::MlProgramGlobal));
        if is_declared || operation.has_attribute(&ATTRIBUTE) {
            erase(operation);
        }
    }
    Ok(())
}
