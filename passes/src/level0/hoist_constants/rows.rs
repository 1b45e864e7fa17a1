//! What is the same in all rows of a kernel.

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, is_arithmetic, operands_of, results_of,
};
use cohort_dialects::keys;
use melior::ir::{OperationRef, ValueLike, r#type::TypeLike};

use super::is_storable_type;
use crate::support::dims;
use crate::support::ir::{TensorType, blocks_of, defining_op, integer_attribute, integers, key};

/// The first argument of a kernel whose calls make one row each.
pub fn number_of_rows<'c>(scope: OperationRef<'c, 'c>) -> Option<Val<'c>> {
    let is_plain = Op::CfbKernel.is(scope) && !dims::has_lengths(scope);
    let body = blocks_of(scope).first().copied().filter(|_| is_plain)?;
    arguments_of(body).first().copied()
}

/// The row that a value has one of for each row of its kernel, if an arena can hold it.
pub fn row_of(value: Val<'_>) -> Option<TensorType<'_>> {
    let mut ty = TensorType::of_value(value)?;
    if ty.shape.first() != Some(&None) {
        return None;
    }
    ty.shape.remove(0);
    is_storable_type(&ty).then_some(ty)
}

/// Whether an operation of a kernel gives each row what it would give that row alone, so that operands
/// which are the same in all rows give results which are. `rows` is the number of rows.
pub fn keeps_rows<'c>(operation: OperationRef<'c, 'c>, rows: Val<'c>) -> bool {
    let tensors = operands_of(operation)
        .into_iter()
        .chain(results_of(operation));
    let are_dims_known = tensors
        .filter_map(TensorType::of_value)
        .all(|ty| ty.shape.iter().skip(1).all(Option::is_some));
    let sizes = || {
        let operands = operands_of(operation).into_iter();
        operands.filter(|operand| operand.r#type().is_index())
    };
    let has_rows = |value: &Val<'c>| {
        TensorType::of_value(*value).is_some_and(|ty| ty.shape.first() == Some(&None))
    };
    let folds_rows =
        operands_of(operation).iter().any(has_rows) && !results_of(operation).iter().all(has_rows);
    let counts_rows = || sizes().all(|size| key(size) == key(rows));
    are_dims_known
        && !folds_rows
        && match Op::of(operation) {
            Some(Op::TensorEmpty) => counts_rows(),
            // From the first row to the last.
            Some(Op::TensorExtractSlice) => {
                let first = |name| integers(operation, name).first().copied();
                counts_rows()
                    && first(keys::STATIC_OFFSETS) == Some(0)
                    && first(keys::STATIC_STRIDES) == Some(1)
            }
            // Results with rows have them of an operand with rows.
            Some(Op::LinalgFill | Op::LinalgBroadcast | Op::LinalgReduce | Op::LinalgMatmul) => {
                true
            }
            Some(Op::TensorConcat) => integer_attribute(operation, keys::DIM) != Some(0),
            _ => is_arithmetic(operation),
        }
}

/// A value for each of the rows of a kernel.
pub fn repeat<'c>(b: &Builder<'c>, rows: Val<'c>, value: Val<'c>) -> Val<'c> {
    let Some(ty) = TensorType::of_value(value) else {
        return value;
    };
    let of_rows = ty.batched().to_type();
    let empty = b.tensor_empty(&[rows], of_rows);
    b.broadcast(value, empty, &[0])
}

/// What [`repeat`] made, in order.
pub fn repetition<'c>(repeated: Val<'c>) -> Vec<OperationRef<'c, 'c>> {
    let Some(broadcast) = defining_op(repeated) else {
        return vec![];
    };
    let empty = operands_of(broadcast).get(1).copied().and_then(defining_op);
    empty.into_iter().chain([broadcast]).collect()
}
