//! Operations that only move elements: slices, joins, reshapes, rows.

use std::sync::Arc;

use cohort_frontend::program::Elem;

use super::{Tensor, length_mismatch};
use crate::error::{ErrorKind, InstanceError};
use crate::scalar::Scalar;

pub(crate) fn slice(
    value: &Tensor,
    axis: usize,
    start: usize,
    length: usize,
) -> Result<Tensor, InstanceError> {
    let (_, available, after) = value.around(axis)?;
    if start + length > available {
        return Err(InstanceError::new(
            ErrorKind::IndexOutOfRange,
            format!(
                "the slice {start} to {} is outside of {available}",
                start + length
            ),
        ));
    }
    let mut shape = value.shape.clone();
    shape[axis] = length;
    value.rearranged(shape, |position| {
        let (outer, index, inner) = split_position(position, length, after);
        (outer * available + start + index) * after + inner
    })
}

/// Joins tensors of equal shapes but for `axis`.
pub(crate) fn concat(values: &[Arc<Tensor>], axis: usize) -> Result<Tensor, InstanceError> {
    let first = values
        .first()
        .ok_or_else(|| InstanceError::internal("concat of nothing"))?;
    let (before, _, after) = first.around(axis)?;
    let mut shape = first.shape.clone();
    shape[axis] = 0;
    for value in values {
        let mut expected = first.shape.clone();
        expected[axis] = value.around(axis)?.1;
        if value.shape != expected {
            return Err(length_mismatch("concat", first, value));
        }
        shape[axis] += value.shape[axis];
    }
    let mut data = Tensor::build(first.elem(), vec![0], |_| Ok(Scalar::zero(first.elem())))?.data;
    let mut doubtful = Vec::new();
    for outer in 0..before {
        for value in values {
            let run = value.shape[axis] * after;
            for position in outer * run..(outer + 1) * run {
                data.push(value.at(position))?;
                doubtful.push(value.is_doubtful(position));
            }
        }
    }
    Ok(Tensor {
        shape,
        data,
        doubtful,
    })
}

pub(crate) fn reshape(value: &Tensor, shape: Vec<usize>) -> Result<Tensor, InstanceError> {
    if shape.iter().product::<usize>() != value.count() {
        return Err(InstanceError::new(
            ErrorKind::ShapeMismatch,
            format!("{} cannot be reshaped to {shape:?}", value.describe()),
        ));
    }
    Ok(Tensor {
        shape,
        data: value.data.clone(),
        doubtful: value.doubtful.clone(),
    })
}

/// Axis `i` of the result is axis `permutation[i]` of the value.
pub(crate) fn transpose(value: &Tensor, permutation: &[usize]) -> Result<Tensor, InstanceError> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..value.shape.len()) {
        let message = format!("{permutation:?} does not permute {}", value.describe());
        return Err(InstanceError::internal(message));
    }
    let strides: Vec<usize> = (0..value.shape.len())
        .map(|axis| value.shape[axis + 1..].iter().product())
        .collect();
    let shape: Vec<usize> = permutation.iter().map(|&axis| value.shape[axis]).collect();
    value.rearranged(shape.clone(), |position| {
        let mut source = 0;
        let mut rest = position;
        for (length, &axis) in shape.iter().zip(permutation).rev() {
            source += rest % length * strides[axis];
            rest /= length;
        }
        source
    })
}

/// One slice of the first axis.
pub(crate) fn row(table: &Tensor, index: i32) -> Result<Tensor, InstanceError> {
    let (_, rows, row_length) = table.around(0)?;
    let index = check_index(index, rows)?;
    table.rearranged(table.shape[1..].to_vec(), |position| {
        index * row_length + position
    })
}

/// The rows that a rank-1 tensor of indices names.
pub(crate) fn gather(table: &Tensor, indices: &Tensor) -> Result<Tensor, InstanceError> {
    let (_, rows, row_length) = table.around(0)?;
    let mut chosen = Vec::new();
    for position in 0..indices.count() {
        match indices.at(position) {
            Scalar::I32(index) => chosen.push(check_index(index, rows)?),
            _ => {
                return Err(InstanceError::internal(
                    "the indices of gather are not integers",
                ));
            }
        }
    }
    let shape = [&[chosen.len()], &table.shape[1..]].concat();
    table.rearranged(shape, |position| {
        chosen[position / row_length] * row_length + position % row_length
    })
}

/// Tensors of one shape as one tensor with a leading axis.
pub(crate) fn stack(
    elem: Elem,
    row_shape: &[usize],
    rows: &[Arc<Tensor>],
) -> Result<Tensor, InstanceError> {
    if let Some(odd) = rows.iter().find(|row| row.shape != row_shape) {
        return Err(length_mismatch("stack", &rows[0], odd));
    }
    let row_length: usize = row_shape.iter().product();
    let shape = [&[rows.len()], row_shape].concat();
    let at = |position: usize| (&rows[position / row_length], position % row_length);
    let result = Tensor::build(elem, shape, |position| {
        let (row, position) = at(position);
        Ok(row.at(position))
    })?;
    Ok(result.doubted_where(|position| {
        let (row, position) = at(position);
        row.is_doubtful(position)
    }))
}

/// Every element is its own index along `axis`.
pub(crate) fn iota(shape: Vec<usize>, axis: usize) -> Result<Tensor, InstanceError> {
    let template = Tensor::i32(&shape, Vec::new());
    let (_, length, after) = template.around(axis)?;
    Tensor::build(Elem::I32, shape, |position| {
        let (_, index, _) = split_position(position, length, after);
        i32::try_from(index)
            .map(Scalar::I32)
            .map_err(|_| InstanceError::internal("an axis is longer than an i32 can count"))
    })
}

/// Checks a host index against the length of what it indexes.
pub(crate) fn check_index(index: i32, length: usize) -> Result<usize, InstanceError> {
    usize::try_from(index)
        .ok()
        .filter(|&index| index < length)
        .ok_or_else(|| {
            InstanceError::new(
                ErrorKind::IndexOutOfRange,
                format!("index {index} is out of range for a length of {length}"),
            )
        })
}

/// A position as (position before the axis, index along it, position after it).
pub(crate) fn split_position(
    position: usize,
    length: usize,
    after: usize,
) -> (usize, usize, usize) {
    (
        position / after / length,
        position / after % length,
        position % after,
    )
}
