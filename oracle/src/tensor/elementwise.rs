//! Elementwise operations, with broadcasting as in NumPy.

use cohort_frontend::program::{Binary, Elem, Unary};

use super::{Tensor, doubt, length_mismatch};
use crate::error::InstanceError;
use crate::scalar::{self, Scalar};

pub(crate) fn unary(op: Unary, value: &Tensor) -> Result<Tensor, InstanceError> {
    let result = Tensor::build(value.elem(), value.shape.clone(), |i| {
        scalar::unary(op, value.at(i))
    })?;
    Ok(result.doubted_where(|i| value.is_doubtful(i)))
}

pub(crate) fn cast(value: &Tensor, to: Elem) -> Result<Tensor, InstanceError> {
    let result = Tensor::build(to, value.shape.clone(), |i| {
        Ok(scalar::cast(value.at(i), to))
    })?;
    Ok(result.doubted_where(|i| value.is_doubtful(i) || value.is_nan(i)))
}

pub(crate) fn binary(op: Binary, lhs: &Tensor, rhs: &Tensor) -> Result<Tensor, InstanceError> {
    let shape = broadcast_shape(&lhs.shape, &rhs.shape)
        .ok_or_else(|| length_mismatch("broadcasting", lhs, rhs))?;
    let lhs = broadcast_to(lhs, &shape)?;
    let rhs = broadcast_to(rhs, &shape)?;
    let elem = match op {
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => Elem::Bool,
        _ => lhs.elem(),
    };
    let result = Tensor::build(elem, shape, |i| scalar::binary(op, lhs.at(i), rhs.at(i)))?;
    Ok(result.doubted_where(|i| doubt::of_binary(op, &lhs, &rhs, i)))
}

pub(crate) fn select(
    cond: &Tensor,
    then: &Tensor,
    otherwise: &Tensor,
) -> Result<Tensor, InstanceError> {
    let branches = broadcast_shape(&then.shape, &otherwise.shape)
        .ok_or_else(|| length_mismatch("select", then, otherwise))?;
    let shape = broadcast_shape(&cond.shape, &branches)
        .ok_or_else(|| length_mismatch("select", cond, then))?;
    let cond = broadcast_to(cond, &shape)?;
    let then = broadcast_to(then, &shape)?;
    let otherwise = broadcast_to(otherwise, &shape)?;
    let chosen = |i: usize| match cond.at(i) == Scalar::Bool(true) {
        true => &then,
        false => &otherwise,
    };
    let result = Tensor::build(then.elem(), shape, |i| Ok(chosen(i).at(i)))?;
    Ok(result.doubted_where(|i| cond.is_doubtful(i) || chosen(i).is_doubtful(i)))
}

/// The shape both broadcast to: aligned at the last axis, with lengths equal or one of them 1.
fn broadcast_shape(lhs: &[usize], rhs: &[usize]) -> Option<Vec<usize>> {
    let rank = lhs.len().max(rhs.len());
    let padded = |shape: &[usize]| [&vec![1; rank - shape.len()], shape].concat();
    let pairs = padded(lhs).into_iter().zip(padded(rhs));
    pairs
        .map(|lengths| match lengths {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}

/// Repeats `value` along every axis of `shape` that it lacks or has with length 1.
fn broadcast_to(value: &Tensor, shape: &[usize]) -> Result<Tensor, InstanceError> {
    if value.shape == shape {
        return Ok(value.clone());
    }
    let missing = shape.len() - value.shape.len();
    value.rearranged(shape.to_vec(), |position| {
        let mut source = 0;
        let mut stride_in_value = 1;
        let mut rest = position;
        for axis in (0..shape.len()).rev() {
            let index = rest % shape[axis];
            rest /= shape[axis];
            if axis >= missing && value.shape[axis - missing] != 1 {
                source += index * stride_in_value;
                stride_in_value *= shape[axis];
            }
        }
        source
    })
}
