//! Where a block uses a parameter, and what its gradient is made of there.
//!
//! A parameter has one gradient for all rows, so it is computed by no call: a *site* names the values
//! of each call that it is the sum of, `Σ leftᵀ right` over rows for a product, `Σ right` for anything
//! else. A part of a parameter, reshaped or transposed, is a *view* of it: an offset and strides.

use cohort_dialects::builder::{Op, Val, operands_of};
use cohort_dialects::keys;
use melior::ir::OperationRef;

use crate::support::dim_equality::reassociation;
use crate::support::ir::{TensorType, integers};

/// Elements of a parameter: where the first is, how many along each dim, and how far apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub parameter: String,
    pub offset: u64,
    pub shape: Vec<u64>,
    pub strides: Vec<u64>,
}

impl View {
    /// All of a parameter.
    pub fn whole(parameter: String, ty: &TensorType<'_>) -> Option<View> {
        let shape: Vec<u64> = ty.shape.iter().copied().collect::<Option<_>>()?;
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Some(View {
            parameter,
            offset: 0,
            shape,
            strides,
        })
    }

    /// `count` of its rows, from `first` on.
    pub fn rows(&self, first: u64, count: u64) -> View {
        let mut rows = self.clone();
        rows.offset += first * self.strides[0];
        rows.shape[0] = count;
        rows
    }

    /// What an operation makes of a view, if that is a view too.
    pub fn through(&self, operation: OperationRef<'_, '_>, result: Val<'_>) -> Option<View> {
        let shape: Vec<u64> = TensorType::of_value(result)?
            .shape
            .into_iter()
            .collect::<Option<_>>()?;
        let mut view = View {
            shape,
            ..self.clone()
        };
        match Op::of(operation) {
            Some(Op::LinalgTranspose) => {
                let permutation = integers(operation, keys::PERMUTATION);
                let of = |axis: &i64| self.strides.get(*axis as usize).copied();
                view.strides = permutation.iter().map(of).collect::<Option<_>>()?;
            }
            Some(Op::TensorExtractSlice) => {
                if operands_of(operation).len() > 1 || view.shape.len() != self.shape.len() {
                    return None;
                }
                let offsets = integers(operation, keys::STATIC_OFFSETS);
                for (offset, stride) in offsets.iter().zip(&self.strides) {
                    view.offset += *offset as u64 * stride;
                }
                let steps = integers(operation, keys::STATIC_STRIDES);
                for (stride, step) in view.strides.iter_mut().zip(steps) {
                    *stride *= step as u64;
                }
            }
            Some(Op::TensorExpandShape) => {
                view.strides = vec![1; view.shape.len()];
                for (axis, group) in reassociation(operation).into_iter().enumerate() {
                    let mut stride = self.strides[axis];
                    for own in group.into_iter().rev() {
                        view.strides[own] = stride;
                        stride *= view.shape[own];
                    }
                }
            }
            Some(Op::TensorCollapseShape) => {
                view.strides = Vec::new();
                for group in reassociation(operation) {
                    let real: Vec<usize> = (group.into_iter())
                        .filter(|axis| self.shape[*axis] != 1)
                        .collect();
                    for pair in real.windows(2) {
                        if self.strides[pair[0]] != self.strides[pair[1]] * self.shape[pair[1]] {
                            return None;
                        }
                    }
                    let stride = real.last().map_or(1, |axis| self.strides[*axis]);
                    view.strides.push(stride);
                }
            }
            _ => return None,
        }
        Some(view)
    }
}

/// One use of a parameter.
pub struct Site<'c> {
    pub view: View,
    /// Of a product, the factor whose rows are the view's first dim.
    pub left: Option<Val<'c>>,
    pub right: Val<'c>,
}
