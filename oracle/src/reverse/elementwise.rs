//! Elementwise operations: each element of the result is made of one of each operand.

use std::f64::consts::FRAC_2_SQRT_PI;

use cohort_frontend::program::{Binary, Unary};

use super::Operation;
use crate::error::InstanceError;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

pub(super) fn unary(operation: &mut Operation<'_, '_>, op: Unary) -> Result<(), InstanceError> {
    let operand = operation.operand(0)?;
    let (result, cotangent) = (operation.result, operation.cotangent);
    operation.add(0, |total| {
        for (position, g) in cotangent.iter().enumerate() {
            let (x, y) = (number(operand, position), number(result, position));
            total[position] += of_unary(op, x, y, *g);
        }
    })
}

/// What the cotangent `g` of `y = op(x)` makes of that of `x`.
fn of_unary(op: Unary, x: f64, y: f64, g: f64) -> f64 {
    match op {
        Unary::Neg => -g,
        Unary::Abs if x > 0.0 => g,
        Unary::Abs if x < 0.0 => -g,
        Unary::Relu if x > 0.0 => g,
        // At 0, and of a number that is none.
        Unary::Abs | Unary::Relu => 0.0,
        Unary::Exp => g * y,
        Unary::Log => g / x,
        Unary::Sqrt => g / (2.0 * y),
        Unary::Sin => g * x.cos(),
        Unary::Cos => -g * x.sin(),
        Unary::Tanh => g * (1.0 - y * y),
        Unary::Erf => g * FRAC_2_SQRT_PI * (-x * x).exp(),
        Unary::Sigmoid => g * y * (1.0 - y),
        // Of bools.
        Unary::Not => 0.0,
    }
}

pub(super) fn binary(operation: &mut Operation<'_, '_>, op: Binary) -> Result<(), InstanceError> {
    let (left, right) = (operation.operand(0)?, operation.operand(1)?);
    let (result, cotangent) = (operation.result, operation.cotangent);
    let places = [
        broadcast(&left.shape, &result.shape),
        broadcast(&right.shape, &result.shape),
    ];
    for side in 0..2 {
        operation.add(side, |total| {
            for (position, g) in cotangent.iter().enumerate() {
                let a = number(left, places[0][position]);
                let b = number(right, places[1][position]);
                let parts = of_binary(op, a, b, number(result, position), *g);
                total[places[side][position]] += parts[side];
            }
        })?;
    }
    Ok(())
}

/// What the cotangent `g` of `y = op(a, b)` makes of those of `a` and `b`.
fn of_binary(op: Binary, a: f64, b: f64, y: f64, g: f64) -> [f64; 2] {
    match op {
        Binary::Add => [g, g],
        Binary::Sub => [g, -g],
        Binary::Mul => [g * b, g * a],
        Binary::Div => [g / b, -g * y / b],
        Binary::Pow => [of_base(a, b, g), of_exponent(a, b, y, g)],
        // To the left only where it is strictly better.
        Binary::Max if a > b => [g, 0.0],
        Binary::Min if a < b => [g, 0.0],
        Binary::Max | Binary::Min => [0.0, g],
        // Of integers or to bools.
        Binary::Rem
        | Binary::And
        | Binary::Or
        | Binary::Eq
        | Binary::Ne
        | Binary::Lt
        | Binary::Le
        | Binary::Gt
        | Binary::Ge => [0.0, 0.0],
    }
}

/// `b a^(b-1)`; a power of 0 is 1 for any base.
fn of_base(a: f64, b: f64, g: f64) -> f64 {
    match b == 0.0 {
        true => 0.0,
        false => g * b * a.powf(b - 1.0),
    }
}

/// `a^b ln a`; all powers of 0 are 0 to the right of the exponent 0.
fn of_exponent(a: f64, b: f64, y: f64, g: f64) -> f64 {
    match a == 0.0 && b >= 0.0 {
        true => 0.0,
        false => g * y * a.ln(),
    }
}

pub(super) fn select(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let cond = operation.operand(0)?;
    let (result, cotangent) = (operation.result, operation.cotangent);
    let of_cond = broadcast(&cond.shape, &result.shape);
    for (side, is_chosen) in [(1, true), (2, false)] {
        let own = broadcast(&operation.operand(side)?.shape, &result.shape);
        operation.add(side, |total| {
            for (position, g) in cotangent.iter().enumerate() {
                if cond.at(of_cond[position]) == Scalar::Bool(is_chosen) {
                    total[own[position]] += g;
                }
            }
        })?;
    }
    Ok(())
}

/// One number, everywhere.
pub(super) fn fill(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    operation.send_back(0, |_| 0)
}

/// The sum of any number of operands of one shape.
pub(super) fn sum_of_array(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    for operand in 0..operation.operands.len() {
        operation.send_back(operand, |position| position)?;
    }
    Ok(())
}

/// For each position of the result, the one in a tensor that is broadcast to it: shapes are aligned at
/// the last axis, and an axis that is missing or of length 1 repeats.
pub(super) fn broadcast(own: &[usize], result: &[usize]) -> Vec<usize> {
    let mut places = vec![0];
    let missing = result.len() - own.len();
    for (axis, &length) in result.iter().enumerate() {
        let repeats = axis < missing || own[axis - missing] == 1;
        let own_length = if repeats { 1 } else { length };
        let index = |index: usize| if repeats { 0 } else { index };
        places = places
            .into_iter()
            .flat_map(|place| (0..length).map(move |i| place * own_length + index(i)))
            .collect();
    }
    places
}

/// An element of a tensor of floats; of others there is none that counts.
pub(super) fn number(tensor: &Tensor, position: usize) -> f64 {
    match tensor.at(position) {
        Scalar::F32(value) => value,
        Scalar::I32(_) | Scalar::Bool(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::broadcast;

    #[test]
    fn an_axis_that_is_missing_or_of_length_one_repeats() {
        assert_eq!(broadcast(&[2], &[3, 2]), [0, 1, 0, 1, 0, 1]);
        assert_eq!(broadcast(&[3, 1], &[3, 2]), [0, 0, 1, 1, 2, 2]);
        assert_eq!(broadcast(&[2, 1, 2], &[2, 2, 2]), [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(broadcast(&[], &[2, 2]), [0, 0, 0, 0]);
        assert!(broadcast(&[1], &[0]).is_empty());
    }
}
