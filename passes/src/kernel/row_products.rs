//! Products of a batched kernel whose matrix differs by row.
//!
//! `batch-blocks` makes a product with a shared matrix one dense product over all rows, and any other
//! a `linalg.batch_…`: one matrix a row, read for that row alone.

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, results_of};
use melior::ir::OperationRef;

use crate::support::ir::{TensorType, argument_of, blocks_of, defining_op, key, nested_ops};

/// A product of each row with a matrix that may differ by row.
pub struct RowProduct<'c> {
    /// The operation that multiplies.
    pub operation: OperationRef<'c, 'c>,
    /// The operand of the kernel's records that the matrix is, or is a reshaped part of; `None` when
    /// the kernel computes it.
    pub operand: Option<usize>,
    /// Floating-point operations a row; `None` when a shape is not known.
    pub flops: Option<u64>,
}

/// The products with a matrix a row of a `cfb.kernel`, in order.
pub fn row_products<'c>(kernel: OperationRef<'c, 'c>) -> Vec<RowProduct<'c>> {
    let Some(body) = blocks_of(kernel).first().copied() else {
        return vec![];
    };
    let arguments: Vec<_> = arguments_of(body).into_iter().map(key).collect();
    nested_ops(kernel)
        .into_iter()
        .filter_map(|operation| {
            let matrix = match Op::of(operation) {
                Some(Op::LinalgBatchVecmat | Op::LinalgBatchMatmul) => 1,
                Some(Op::LinalgBatchMatvec) => 0,
                _ => return None,
            };
            let source = source(*operands_of(operation).get(matrix)?);
            let argument = argument_of(source)
                .and_then(|_| arguments.iter().position(|known| *known == key(source)));
            Some(RowProduct {
                operation,
                // The first argument is the number of rows.
                operand: argument.and_then(|argument| argument.checked_sub(1)),
                flops: flops(operation),
            })
        })
        .collect()
}

/// What a value was before it was cut out, reshaped or transposed.
fn source(mut value: Val<'_>) -> Val<'_> {
    const RESHAPES: [Op; 5] = [
        Op::TensorCollapseShape,
        Op::TensorExpandShape,
        Op::TensorExtractSlice,
        Op::LinalgTranspose,
        Op::LinalgBroadcast,
    ];
    while let Some(producer) = defining_op(value) {
        match operands_of(producer).first() {
            Some(operand) if RESHAPES.iter().any(|kind| kind.is(producer)) => value = *operand,
            _ => break,
        }
    }
    value
}

/// Two for each element of the result and of the contracted dim, which is the left side's last.
fn flops(product: OperationRef<'_, '_>) -> Option<u64> {
    let left = TensorType::of_value(*operands_of(product).first()?)?;
    let result = TensorType::of_value(*results_of(product).first()?)?;
    let contracted = (*left.shape.last()?)?;
    let elements: Option<u64> = result.shape.iter().skip(1).copied().product();
    Some(2 * contracted * elements?)
}
