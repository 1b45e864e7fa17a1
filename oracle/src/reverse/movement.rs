//! Operations that only move elements, and sums of those that meet.

use super::Operation;
use crate::error::InstanceError;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

pub(super) fn slice(
    operation: &mut Operation<'_, '_>,
    axis: usize,
    start: u64,
) -> Result<(), InstanceError> {
    let (_, available, _) = operation.operand(0)?.around(axis)?;
    let (_, length, after) = operation.result.around(axis)?;
    operation.send_back(0, |position| {
        let (outer, index) = (position / after / length, position / after % length);
        (outer * available + start as usize + index) * after + position % after
    })
}

/// The operands are parts of `axis`, one after another.
pub(super) fn concat(operation: &mut Operation<'_, '_>, axis: usize) -> Result<(), InstanceError> {
    let (_, available, after) = operation.result.around(axis)?;
    let cotangent = operation.cotangent;
    let mut start = 0;
    for (index, operand) in operation.operands.iter().enumerate() {
        let (_, length, _) = operand.around(axis)?;
        operation.add(index, |total| {
            for (position, total) in total.iter_mut().enumerate() {
                let (outer, index) = (position / after / length, position / after % length);
                *total += cotangent[(outer * available + start + index) * after + position % after];
            }
        })?;
        start += length;
    }
    Ok(())
}

/// The operands are rows of the result.
pub(super) fn stack(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let cotangent = operation.cotangent;
    for (index, operand) in operation.operands.iter().enumerate() {
        let row = &cotangent[index * operand.count()..];
        operation.add(index, |total| {
            for (total, part) in total.iter_mut().zip(row) {
                *total += part;
            }
        })?;
    }
    Ok(())
}

/// Axis `i` of the result is axis `permutation[i]` of the operand.
pub(super) fn transpose(
    operation: &mut Operation<'_, '_>,
    permutation: &[usize],
) -> Result<(), InstanceError> {
    let operand = operation.operand(0)?;
    let result = &operation.result.shape;
    operation.send_back(0, |position| {
        let mut index = vec![0; permutation.len()];
        let mut rest = position;
        for (length, &axis) in result.iter().zip(permutation).rev() {
            index[axis] = rest % length;
            rest /= length;
        }
        let axes = index.iter().zip(&operand.shape);
        axes.fold(0, |place, (index, length)| place * length + index)
    })
}

/// The rows of a table that indices name: each row goes back to its own.
pub(super) fn rows(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let (table, indices) = (operation.operand(0)?, operation.operand(1)?);
    let (_, _, row_length) = table.around(0)?;
    let rows = integers(indices)?;
    operation.send_back(0, |position| {
        rows[position / row_length] * row_length + position % row_length
    })
}

/// The rows of the operand are added up to the rows of the result that the segments name.
pub(super) fn segment_sum(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let (_, _, row_length) = operation.operand(0)?.around(0)?;
    let segments = integers(operation.operand(1)?)?;
    let cotangent = operation.cotangent;
    operation.add(0, |total| {
        for (position, total) in total.iter_mut().enumerate() {
            let row = segments[position / row_length];
            *total += cotangent[row * row_length + position % row_length];
        }
    })
}

/// Rows of the first operand were replaced by those of the last, of equal indices by the last one.
pub(super) fn scatter(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let (_, count, row_length) = operation.operand(0)?.around(0)?;
    let indices = integers(operation.operand(1)?)?;
    let mut source = vec![None; count];
    for (row, &place) in indices.iter().enumerate() {
        source[place] = Some(row);
    }
    let cotangent = operation.cotangent;
    operation.add(0, |total| {
        for (position, total) in total.iter_mut().enumerate() {
            if source[position / row_length].is_none() {
                *total += cotangent[position];
            }
        }
    })?;
    operation.add(2, |total| {
        for (position, total) in total.iter_mut().enumerate() {
            let row = position / row_length;
            if source[indices[row]] == Some(row) {
                *total += cotangent[indices[row] * row_length + position % row_length];
            }
        }
    })
}

/// Indices that were found to be in range on the way forward.
fn integers(indices: &Tensor) -> Result<Vec<usize>, InstanceError> {
    (0..indices.count())
        .map(|position| match indices.at(position) {
            Scalar::I32(index) => usize::try_from(index).ok(),
            _ => None,
        })
        .collect::<Option<_>>()
        .ok_or_else(|| InstanceError::internal("indices that are not such"))
}
