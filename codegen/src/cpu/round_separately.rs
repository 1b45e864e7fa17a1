//! `round-separately`: processors without fused multiply-adds multiply, round, and add.
//!
//! A fused multiply-add rounds once. Where the processor has none, as x86-64 before AVX2, each would be a call of a
//! function of the C library, a number at a time. Where the module says that its processor has none, a multiply-add
//! becomes two operations:
//!
//! ```mlir
//! module attributes {cfb.rounding = #cfb<rounding separate>} { … %s = vector.fma %a, %b, %c : vector<16xf32> … }
//! // becomes
//! … %p = arith.mulf %a, %b : vector<16xf32>
//!   %s = arith.addf %p, %c : vector<16xf32> …
//! ```
//!
//! Results differ from those of other processors in their last bits, and are the same for every batch, as ever: each
//! sum is still one chain in the order of its terms. Code for GPUs is as it was.
//!
//! Requires: level 3. Leaves: level 3.

use cohort_dialects::builder::{Builder, Op, operands_of, result_of};
use cohort_dialects::enums::Rounding;
use cohort_dialects::marks::ROUNDING;
use cohort_passes::pass::{Outcome, PassInfo};
use cohort_passes::support::ir::{enum_attribute, erase, nested_ops, replace_uses, top_level};
use melior::{
    Context,
    ir::{OperationRef, operation::OperationLike},
};

/// The pass `round-separately`.
pub const PASS: PassInfo = PassInfo {
    name: "round-separately",
    summary: "Multiply and add in two steps for processors that cannot in one (level 3)",
    description: include_str!("round_separately.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    if enum_attribute(module, ROUNDING) != Some(Rounding::Separate) {
        return Ok(());
    }
    let of_the_host = |operation: &OperationRef<'c, 'c>| !Op::GpuModule.is(*operation);
    let functions = top_level(module).into_iter().filter(of_the_host);
    for operation in functions.flat_map(nested_ops) {
        if !matches!(Op::of(operation), Some(Op::VectorFma | Op::MathFma)) {
            continue;
        }
        let operands = operands_of(operation);
        let builder = Builder::before(context, operation);
        if let ([a, b, c], Some(builder)) = (operands.as_slice(), builder) {
            let builder = builder.at(operation.location());
            let sum = builder.addf(builder.mulf(*a, *b), *c);
            replace_uses(result_of(operation, 0), sum);
            erase(operation);
        }
    }
    Ok(())
}
