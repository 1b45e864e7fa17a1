//! Products of vectors, matrices, and batches of them.

use super::{Data, Tensor, length_mismatch};
use crate::error::InstanceError;

/// The last axis of `lhs` by the first of the last two of `rhs`, or its only one. What comes before
/// matrices broadcasts.
pub(crate) fn matmul(lhs: &Tensor, rhs: &Tensor) -> Result<Tensor, InstanceError> {
    let (left, right) = (lhs.shape.as_slice(), rhs.shape.as_slice());
    let (before_left, rows, inner) = match *left {
        [k] => (&[][..], None, k),
        [ref before @ .., m, k] => (before, Some(m), k),
        [] => return Err(not_a_product(lhs, rhs)),
    };
    let (before_right, rhs_inner, columns) = match *right {
        [k] => (&[][..], k, None),
        [ref before @ .., k, n] => (before, k, Some(n)),
        [] => return Err(not_a_product(lhs, rhs)),
    };
    if inner != rhs_inner {
        return Err(length_mismatch("matrix product", lhs, rhs));
    }
    let batch = broadcast(before_left, before_right)
        .ok_or_else(|| length_mismatch("matrix product", lhs, rhs))?;
    let shape = [&batch[..], rows.as_slice(), columns.as_slice()].concat();
    let one = Sizes {
        rows: rows.unwrap_or(1),
        inner,
        columns: columns.unwrap_or(1),
    };
    let places: Vec<(usize, usize)> = (0..batch.iter().product())
        .map(|number| {
            let left = place(number, &batch, before_left) * one.rows * inner;
            (
                left,
                place(number, &batch, before_right) * inner * one.columns,
            )
        })
        .collect();
    let data = match (&lhs.data, &rhs.data) {
        (Data::F32(a), Data::F32(b)) => {
            let multiply = |(left, right): (usize, usize)| {
                product(one, 0.0, |total, i, k, j| {
                    total + a[left + i * inner + k] * b[right + k * one.columns + j]
                })
            };
            Data::F32(places.into_iter().flat_map(multiply).collect())
        }
        (Data::I32(a), Data::I32(b)) => {
            let multiply = |(left, right): (usize, usize)| {
                product(one, 0_i32, |total, i, k, j| {
                    let factor = b[right + k * one.columns + j];
                    total.wrapping_add(a[left + i * inner + k].wrapping_mul(factor))
                })
            };
            Data::I32(places.into_iter().flat_map(multiply).collect())
        }
        _ => return Err(not_a_product(lhs, rhs)),
    };
    Ok(Tensor {
        shape,
        data,
        doubtful: Vec::new(),
    })
}

/// What comes before the matrices of either side, together.
fn broadcast(left: &[usize], right: &[usize]) -> Option<Vec<usize>> {
    let rank = left.len().max(right.len());
    let at = |shape: &[usize], axis: usize| {
        let axis = (axis + shape.len()).checked_sub(rank);
        axis.map_or(1, |axis| shape[axis])
    };
    let both = (0..rank).map(|axis| (at(left, axis), at(right, axis)));
    both.map(|(left, right)| match (left, right) {
        (1, other) | (other, 1) => Some(other),
        _ => (left == right).then_some(left),
    })
    .collect()
}

/// Which of its own matrices a side has at a place of the batch.
fn place(mut number: usize, batch: &[usize], own: &[usize]) -> usize {
    let (mut place, mut stride) = (0, 1);
    for (length, own) in batch.iter().rev().zip(own.iter().rev()) {
        if *own != 1 {
            place += number % length * stride;
        }
        stride *= own;
        number /= length;
    }
    place
}

#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    inner: usize,
    columns: usize,
}

/// Every sum over `k`, in order; the loops are nested so that memory is read in order, too.
fn product<T: Copy>(sizes: Sizes, zero: T, step: impl Fn(T, usize, usize, usize) -> T) -> Vec<T> {
    let mut result = vec![zero; sizes.rows * sizes.columns];
    for i in 0..sizes.rows {
        for k in 0..sizes.inner {
            for j in 0..sizes.columns {
                let total = &mut result[i * sizes.columns + j];
                *total = step(*total, i, k, j);
            }
        }
    }
    result
}

fn not_a_product(lhs: &Tensor, rhs: &Tensor) -> InstanceError {
    let message = format!("no product of {} and {}", lhs.describe(), rhs.describe());
    InstanceError::internal(message)
}
