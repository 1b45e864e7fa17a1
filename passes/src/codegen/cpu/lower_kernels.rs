//! `lower-kernels`: batched kernels (level 2) to loops and vectors for the CPU (level 3).
//!
//! Each `cfb.kernel` becomes a `func.func` of the ABI's `KernelFn` signature, with the attribute
//! `cfb.kernel`: a description in JSON (`passes/src/kernel/description.rs`) that `lower-control`
//! moves into the manifest.
//!
//! ```mlir
//! cfb.kernel @cell {
//! ^bb0(%rows: index, %x: tensor<?x28xf32>):
//!   %w = ml_program.global_load_const @w : tensor<28x28xf32>
//!   %p = linalg.matmul ins(%x, %w : …) outs(%bias : …) -> tensor<?x28xf32>
//!   %h = math.tanh %p : tensor<?x28xf32>
//!   cfb.yield %h : tensor<?x28xf32>
//! }
//! // becomes
//! func.func @cell(%begin: i64, %end: i64, %operands: !llvm.ptr, %results: !llvm.ptr,
//!                 %constants: !llvm.ptr, %scratch: !llvm.ptr) attributes {cfb.kernel = "{…}"} {
//!   scf.for %block = %begin to %end step %block_rows : i64 {
//!     // stage: the addresses of the rows of %x, read through its index list
//!     // stage: scratch = bias + x·w, on micro-kernels
//!     llvm.call @cohort_product(…)
//!     // stage: tanh of the scratch, stored to the rows of the result
//!     scf.for %row = … { scf.for %column = … { … vector<16xf32> … } }
//!   }
//!   return
//! }
//! ```
//!
//! The body is read as a graph of the values of one row; a plan cuts it into stages over memory that
//! is scratch or the results' rows; each kind of stage has a file that writes it. Products run on
//! shared micro-kernels, `cohort_product` and what it calls, which are added to the module once.
//!
//! The same row gives the same bits whatever other rows it is computed with: the order of every
//! fold and product depends on nothing but the program.
//!
//! A kernel whose unit is the call (`unit = "calls"`) has tensors with ragged dims, and goes over
//! calls instead: each result is written by loops over its dims, which end at the call's own
//! lengths, with folds where their index is known; a product runs on register blocks over panels
//! that are packed into scratch, after Goto and van de Geijn (Anatomy of High-Performance Matrix
//! Multiplication, 2008). See `passes/src/codegen/cpu/lower_calls.rs`.
//!
//! Requires: level 2, `accumulate-products` for speed. Leaves: no `cfb.kernel`; `func`, `scf`,
//! `arith`, `vector`, `llvm`, and of `math` only what the stock conversions lower. Limits: elements
//! are `f32`, `i32` or `i1`; only the batch dim is dynamic; slices have static bounds.

mod call_shape;
pub(crate) mod compute;
mod fold;
mod frame;
mod function;
pub(crate) mod loops;
mod micro_kernels;
mod plan;
pub(super) mod product;
pub(crate) mod reduce_rows;
pub(crate) mod repetition;
mod scratch;

use cohort_dialects::builder::{Builder, extend_op, name_of, operands_of};
use melior::{
    Context,
    ir::{
        Module, OperationRef, ValueLike, attribute::FlatSymbolRefAttribute,
        operation::OperationLike,
    },
};

use super::lower_calls;
use crate::kernel::{calls, rows::read};
use crate::pass::{Failed, Outcome, PassInfo, error};
use crate::support::ir::{
    blocks_of, clone_op, erase, name_attribute, nested_ops, set_attribute, top_level,
};

pub const PASS: PassInfo = PassInfo {
    name: "lower-kernels",
    summary: "Make batched kernels loops and vectors for the CPU (level 2 to level 3)",
    description: include_str!("lower_kernels.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let kernels: Vec<_> = top_level(module)
        .into_iter()
        .filter(|op| name_of(*op) == "cfb.kernel")
        .collect();
    let records: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| name_of(*op) == "cfb.record")
        .collect();
    let mut has_products = false;
    let mut has_blocks = false;
    let mut has_calls = false;
    for kernel in kernels {
        for (name, scalars) in variants(context, kernel, &records)? {
            if calls::is_over_calls(kernel) {
                has_calls = true;
                has_blocks |= lower_calls::lower(context, kernel, &name, &scalars)?;
            } else {
                has_products |= function::lower(context, kernel, &name, &scalars)?;
            }
        }
        erase(kernel);
    }
    if has_products {
        add_shared(context, module, &micro_kernels::module())?;
    }
    if has_calls {
        add_shared(context, module, &lower_calls::polls())?;
    }
    if has_blocks {
        add_shared(context, module, &lower_calls::blocks())?;
    }
    if !cohort_dialects::math::expand_polynomials(module) {
        return Err(error(
            module,
            "the expansion of transcendental functions did not end",
        ));
    }
    Ok(())
}

/// The functions that a kernel needs: names, and which operands are host scalars. That is for its
/// records to say. A second way of recording it gets a function, and a name, of its own.
fn variants<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    records: &[OperationRef<'c, 'c>],
) -> Result<Vec<(String, Vec<bool>)>, Failed> {
    let name = name_attribute(kernel, "sym_name")
        .ok_or_else(|| error(kernel, "expected a kernel with a name"))?;
    let mut variants: Vec<(String, Vec<bool>)> = Vec::new();
    for record in records {
        if name_attribute(*record, "kernel").as_ref() != Some(&name) {
            continue;
        }
        let scalars: Vec<bool> = operands_of(*record)
            .into_iter()
            .map(|operand| read::elem_of(operand.r#type()).is_some())
            .collect();
        match variants.iter().find(|(_, known)| *known == scalars) {
            Some((variant, _)) if *variant == name => {}
            Some((variant, _)) => set_callee(context, *record, variant),
            None if variants.is_empty() => variants.push((name.clone(), scalars)),
            None => {
                let variant = format!("{name}_scalars_{}", variants.len());
                set_callee(context, *record, &variant);
                variants.push((variant, scalars));
            }
        }
    }
    if variants.is_empty() {
        variants.push((name, vec![]));
    }
    Ok(variants)
}

fn set_callee<'c>(context: &'c Context, record: OperationRef<'c, 'c>, kernel: &str) {
    let callee = FlatSymbolRefAttribute::new(context, kernel).into();
    set_attribute(record, "kernel", callee);
}

/// Adds the shared code of products to the module.
fn add_shared<'c>(context: &'c Context, module: OperationRef<'c, 'c>, code: &str) -> Outcome {
    let Some(body) = blocks_of(module).first().copied() else {
        return Ok(());
    };
    let parsed = Module::parse(context, code)
        .ok_or_else(|| error(module, "internal error: the micro-kernels do not parse"))?;
    let end = Builder::at_end(context, body, module.location());
    for function in top_level(extend_op(parsed.as_operation())) {
        end.insert(clone_op(function));
    }
    Ok(())
}
