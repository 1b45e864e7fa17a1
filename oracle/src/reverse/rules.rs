//! Which rule an operation has.

use cohort_frontend::program::{ExprKind, SortPart};

use super::{Operation, elementwise, movement, products, reductions};
use crate::error::InstanceError;

/// Adds to the cotangents of the operands what that of the result makes of them.
pub(super) fn pull_back(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    match &operation.expr.kind {
        ExprKind::Unary { op, .. } | ExprKind::ScalarUnary { op, .. } => {
            elementwise::unary(operation, *op)
        }
        ExprKind::Binary { op, .. } | ExprKind::ScalarBinary { op, .. } => {
            elementwise::binary(operation, *op)
        }
        ExprKind::Select { .. } => elementwise::select(operation),
        ExprKind::Fill(_) => elementwise::fill(operation),
        // Of a float; one of another type has no cotangent.
        ExprKind::Cast(_) | ExprKind::ScalarCast(_) => operation.send_back(0, |position| position),

        ExprKind::Reduce { op, axis, .. } => reductions::reduce(operation, *op, *axis),
        ExprKind::Softmax { axis, .. } => reductions::softmax(operation, *axis),
        ExprKind::CumSum { axis, .. } => reductions::cumsum(operation, *axis),
        ExprKind::Sort {
            axis,
            order,
            part: SortPart::Values,
            ..
        } => reductions::sort(operation, *axis, *order),
        ExprKind::SegmentSum { .. } => movement::segment_sum(operation),
        ExprKind::Scatter { .. } => movement::scatter(operation),

        ExprKind::MatMul { .. } => products::matmul(operation),

        ExprKind::Sum(_) => elementwise::sum_of_array(operation),
        ExprKind::Stack(_) => movement::stack(operation),
        ExprKind::Slice { axis, start, .. } => movement::slice(operation, *axis, *start),
        ExprKind::Concat { axis, .. } => movement::concat(operation, *axis),
        ExprKind::Reshape(_) | ExprKind::CheckShape(_) => {
            operation.send_back(0, |position| position)
        }
        ExprKind::Transpose { permutation, .. } => movement::transpose(operation, permutation),
        ExprKind::Row { .. } | ExprKind::Gather { .. } => movement::rows(operation),

        other => Err(InstanceError::internal(format!(
            "the gradient of {other:?} is not implemented"
        ))),
    }
}
