//! Products, on every level.

use cohort_dialects::builder::{Op, operands_of, result_of};
use melior::ir::OperationRef;

use crate::support::ir::TensorType;

/// Whether an operation multiplies vectors or matrices.
pub fn multiplies(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(operation),
        Some(
            Op::LinalgMatmul
                | Op::LinalgMatvec
                | Op::LinalgVecmat
                | Op::LinalgBatchMatmul
                | Op::LinalgBatchMatvec
                | Op::LinalgBatchVecmat
                | Op::LinalgDot
        )
    )
}

/// Multiplications for a row of a product.
pub fn size(product: OperationRef<'_, '_>) -> u64 {
    let left = TensorType::of_value(operands_of(product)[0]);
    let contracted = left.and_then(|left| left.shape.last().copied().flatten());
    let result = TensorType::of_value(result_of(product, 0));
    let elements = result.map_or(1, |ty| ty.shape.into_iter().flatten().product());
    contracted.unwrap_or(1) * elements
}
