//! Transcendental functions as polynomials.
//!
//! Most expansions are MLIR's own. Its `sin` and `cos` lose all accuracy away from zero and it has
//! none for `powf`, so these three are ours (see `math/wide.rs`); so are `exp`, `tanh` and `erf`, which
//! models use most and which take fewer operations than MLIR's (see `math/narrow.rs`). The error of each is bounded by a
//! test: below 1 unit in the last place for `exp`, `log`, `sin`, `cos` and `powf`, below 5 for
//! `tanh` and `erf`.

mod narrow;
mod wide;

use cohort_dialects::builder::{Builder, Op, operands_of, result_of};
use cohort_dialects::rewrites::expand_math;
use melior::ir::{
    OperationRef, ValueLike,
    operation::{OperationLike, WalkOrder, WalkResult},
};

/// The operations that [`expand_polynomials`] expands, on `f32` and vectors of it.
pub const EXPANDABLE: &[Op] = &[
    Op::MathAcos,
    Op::MathAsin,
    Op::MathAtan,
    Op::MathAtan2,
    Op::MathCbrt,
    Op::MathCos,
    Op::MathErf,
    Op::MathErfc,
    Op::MathExp,
    Op::MathExpm1,
    Op::MathLog,
    Op::MathLog1p,
    Op::MathLog2,
    Op::MathPowf,
    Op::MathSin,
    Op::MathTanh,
];

/// Replaces every operation in [`EXPANDABLE`] inside `operation` by its polynomial.
/// False when the rewriting did not come to an end.
pub fn expand_polynomials(operation: OperationRef<'_, '_>) -> bool {
    expand(operation, EXPANDABLE)
}

/// The same for the chosen operations, of these kinds.
pub fn expand(operation: OperationRef<'_, '_>, kinds: &[Op]) -> bool {
    expand_ours(operation, kinds);
    let upstream = kinds.iter().copied().filter(|kind| !is_ours(*kind));
    expand_math(operation, &upstream.collect::<Vec<_>>())
}

fn is_ours(kind: Op) -> bool {
    wide::is_expandable(kind) || narrow::is_expandable(kind)
}

fn expand_ours(root: OperationRef<'_, '_>, kinds: &[Op]) {
    let mut found = Vec::new();
    root.walk(WalkOrder::PreOrder, |operation| {
        if let Some(kind) = Op::of(operation).filter(|kind| is_ours(*kind) && kinds.contains(kind))
        {
            found.push((kind, operation.to_raw()));
        }
        WalkResult::Advance
    });
    let context = root.context();
    // SAFETY: the context outlives the operations in it.
    let context = unsafe { context.to_ref() };
    for (kind, operation) in found {
        // SAFETY: the operation was found alive, and only it and its own uses change here.
        let operation: OperationRef<'_, '_> = unsafe { OperationRef::from_raw(operation) };
        let Some(builder) = Builder::before(context, operation) else {
            continue;
        };
        let operands = operands_of(operation);
        let value = wide::expand(builder, kind, &operands)
            .or_else(|| narrow::expand(builder, kind, &operands));
        let Some(value) = value else {
            continue;
        };
        let result = result_of(operation, 0);
        // SAFETY: both values are alive; the operation has no use left when it is destroyed, and no
        // reference to it is kept.
        unsafe {
            mlir_sys::mlirValueReplaceAllUsesOfWith(result.to_raw(), value.to_raw());
            mlir_sys::mlirOperationDestroy(operation.to_raw());
        }
    }
}
