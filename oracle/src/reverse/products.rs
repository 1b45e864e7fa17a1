//! Products of vectors, matrices, and batches of them.

use super::Operation;
use super::elementwise::{broadcast, number};
use crate::error::InstanceError;

/// `y[i, j] = Σ a[i, k] b[k, j]`: the cotangent of `a` is `g bᵀ`, that of `b` is `aᵀ g`.
pub(super) fn matmul(operation: &mut Operation<'_, '_>) -> Result<(), InstanceError> {
    let (left, right) = (operation.operand(0)?, operation.operand(1)?);
    let (result, cotangent) = (operation.result, operation.cotangent);
    // A vector is a matrix of one row on the left, and of one column on the right.
    let (before_left, rows, inner) = match *left.shape {
        [ref before @ .., rows, inner] => (before, rows, inner),
        [inner] => (&[][..], 1, inner),
        [] => return Err(InstanceError::internal("a product of a scalar")),
    };
    let (before_right, columns) = match *right.shape {
        [ref before @ .., _, columns] => (before, columns),
        _ => (&[][..], 1),
    };
    let matrix_axes = usize::from(left.shape.len() > 1) + usize::from(right.shape.len() > 1);
    let batch = &result.shape[..result.shape.len() - matrix_axes];
    let left_places = broadcast(before_left, batch);
    let right_places = broadcast(before_right, batch);
    for side in 0..2 {
        operation.add(side, |total| {
            for (one, (of_left, of_right)) in left_places.iter().zip(&right_places).enumerate() {
                for i in 0..rows {
                    for k in 0..inner {
                        let a = (of_left * rows + i) * inner + k;
                        for j in 0..columns {
                            let b = (of_right * inner + k) * columns + j;
                            let g = cotangent[(one * rows + i) * columns + j];
                            match side {
                                0 => total[a] += g * number(right, b),
                                _ => total[b] += g * number(left, a),
                            }
                        }
                    }
                }
            }
        })?;
    }
    Ok(())
}
