//! `explain-batching`: says, at places of the source, what is batched how and what is not.
//!
//! The module is left as it is; everything said is a remark:
//!
//! * of each block: its operands that differ by row and those that all rows share;
//! * of each row operand that is a parameter at every call: which parameters, since with one of them
//!   alone it would be shared;
//! * of each product whose matrix differs by row: why it does, and its arithmetic;
//! * of each decision: that instances wait there for a flush.
//!
//! ```mlir
//! cfb.kernel @f_0 {
//! ^bb0(%rows: index, %x: tensor<?x8xf32>, %m: tensor<?x8x8xf32>):
//!   %p = linalg.batch_vecmat ins(%x, %m : …) outs(%z : …) -> tensor<?x8xf32>
//!   cfb.yield %p : tensor<?x8xf32>
//! }
//! %v = cfb.param @v : !cfb.lazy<tensor<8x8xf32>>
//! %w = cfb.param @w : !cfb.lazy<tensor<8x8xf32>>
//! %a = cfb.record @f_0(%x, %v) : (…) -> !cfb.lazy<tensor<8xf32>>
//! %b = cfb.record @f_0(%a, %w) : (…) -> !cfb.lazy<tensor<8xf32>>
//! // remarks
//! //   block `f_0`: row operands 0 (tensor<8xf32>), 1 (tensor<8x8xf32>); no shared operands; called
//! //     at 2 places
//! //   operand 1 of block `f_0` is @v at some calls and @w at others; it would be shared if …
//! //   a product with a matrix a row, 128 flops each: the matrix is operand 1 of block `f_0`, …
//! ```
//!
//! Where a value comes from is followed through calls, branches and loops of the control program.
//! After just-in-time dynamic batching's and ACRoBat's distinction of batched and shared operands.
//!
//! Requires: level 2. Leaves: the same. `batch-run --explain` is the other half: what that costs in a
//! run.

use cohort_dialects::builder::{Op, arguments_of, operands_of, operations_of};
use melior::{
    Context,
    ir::{OperationRef, ValueLike},
};

use crate::kernel::row_products::{RowProduct, row_products};
use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, blocks_of, global_of, kernel_of, nested_ops, symbol_of, top_level,
};
use crate::support::origins::{Origin, Origins};

/// The pass `explain-batching`.
pub const PASS: PassInfo = PassInfo {
    name: "explain-batching",
    summary: "Remark, at places of the source, what is batched how and what is not (level 2)",
    description: include_str!("explain_batching.rs"),
    run,
};

fn run<'c>(_context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let origins = Origins::new(module);
    let all = nested_ops(module);
    for kernel in top_level(module) {
        if Op::CfbKernel.is(kernel) {
            explain_kernel(kernel, &all, &origins);
        }
    }
    for operation in &all {
        if Op::CfbForce.is(*operation) {
            remark(
                *operation,
                "a decision: the instance waits here until the others wait or end, and then for \
                 one flush",
            );
        }
    }
    Ok(())
}

fn explain_kernel<'c>(
    kernel: OperationRef<'c, 'c>,
    all: &[OperationRef<'c, 'c>],
    origins: &Origins<'c>,
) {
    let Some(name) = symbol_of(kernel) else {
        return;
    };
    let records: Vec<_> = all
        .iter()
        .copied()
        .filter(|op| Op::CfbRecord.is(*op))
        .filter(|op| kernel_of(*op).as_deref() == Some(&name))
        .collect();
    remark(kernel, &summary(kernel, &name, records.len()));

    let of_operand = |index: usize| -> Vec<Origin<'c>> {
        let operands = records
            .iter()
            .filter_map(|r| operands_of(*r).get(index).copied());
        origins.of_all(operands)
    };
    for index in 0..row_types(kernel).len() {
        if let Some(parameters) = parameters(&of_operand(index)) {
            remark(
                kernel,
                &format!(
                    "operand {index} of block `{name}` is the parameter {}; it would be shared if \
                     every call of the block had the same",
                    parameters.join(" or ")
                ),
            );
        }
    }
    for product in row_products(kernel) {
        remark(
            product.operation,
            &explain_product(&product, &name, of_operand),
        );
    }
}

/// The types of a row of the kernel's row operands.
fn row_types(kernel: OperationRef<'_, '_>) -> Vec<String> {
    let Some(body) = blocks_of(kernel).first().copied() else {
        return vec![];
    };
    arguments_of(body)
        .into_iter()
        .skip(1)
        .map(|argument| match TensorType::of_value(argument) {
            Some(mut ty) if ty.rank() > 1 => {
                ty.shape.remove(0);
                ty.to_type().to_string()
            }
            Some(ty) => ty.element.to_string(),
            None => argument.r#type().to_string(),
        })
        .collect()
}

fn summary(kernel: OperationRef<'_, '_>, name: &str, places: usize) -> String {
    let rows: Vec<String> = row_types(kernel)
        .iter()
        .enumerate()
        .map(|(index, ty)| format!("{index} ({ty})"))
        .collect();
    let body = blocks_of(kernel);
    let mut shared: Vec<String> = body
        .iter()
        .flat_map(|body| operations_of(*body))
        .filter(|op| Op::MlProgramGlobalLoadConst.is(*op))
        .filter_map(global_of)
        .map(|parameter| format!("@{parameter}"))
        .collect();
    shared.sort();
    shared.dedup();
    let or_none = |list: Vec<String>, what: &str| match list.as_slice() {
        [] => format!("no {what}"),
        list => format!("{what} {}", list.join(", ")),
    };
    format!(
        "block `{name}`: {}; {}; called at {places} place{}",
        or_none(rows, "row operands"),
        or_none(shared, "shared operands"),
        if places == 1 { "" } else { "s" }
    )
}

/// The parameters that a value may be, when it can be nothing else.
fn parameters(origins: &[Origin<'_>]) -> Option<Vec<String>> {
    let names: Option<Vec<String>> = origins
        .iter()
        .map(|origin| match origin {
            Origin::Parameter(name) => Some(format!("@{name}")),
            _ => None,
        })
        .collect();
    names.filter(|names| !names.is_empty())
}

fn explain_product<'c>(
    product: &RowProduct<'_>,
    block: &str,
    of_operand: impl Fn(usize) -> Vec<Origin<'c>>,
) -> String {
    let arithmetic = product
        .flops
        .map_or(String::new(), |flops| format!(", {flops} flops each"));
    let why = match product.operand {
        None => "the block computes the matrix from its rows".to_owned(),
        Some(operand) => {
            let mut origins: Vec<String> =
                of_operand(operand).iter().map(Origin::to_string).collect();
            origins.dedup();
            format!(
                "the matrix is operand {operand} of block `{block}`, {}",
                match origins.as_slice() {
                    [] => "which no call gives".to_owned(),
                    list => list.join(" or "),
                }
            )
        }
    };
    format!("a product with a matrix a row{arithmetic}: {why}")
}
