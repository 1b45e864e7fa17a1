//! Where comparing NaN decided an element.
//!
//! A comparison with NaN has an answer that means nothing. The answer is marked, and the mark stays
//! on what is made of it by logic, choices, integer arithmetic and rearrangement, so that an
//! instance whose path such an element decides can be given up. A number made of it is a number
//! like any: it is unmarked.

use cohort_frontend::program::{Binary, Elem};

use super::Tensor;
use crate::scalar::Scalar;

impl Tensor {
    pub(crate) fn is_doubtful(&self, position: usize) -> bool {
        self.doubtful.get(position).copied().unwrap_or(false)
    }

    pub(crate) fn is_nan(&self, position: usize) -> bool {
        matches!(self.at(position), Scalar::F32(value) if value.is_nan())
    }

    /// The tensor with the elements marked for which `is_doubtful` holds; numbers never are.
    pub(crate) fn doubted_where(mut self, is_doubtful: impl Fn(usize) -> bool) -> Tensor {
        if self.elem() != Elem::F32 {
            let doubtful: Vec<bool> = (0..self.count()).map(is_doubtful).collect();
            if doubtful.contains(&true) {
                self.doubtful = doubtful;
            }
        }
        self
    }
}

/// Whether element `i` of `op` on two tensors of one shape is doubtful.
pub(crate) fn of_binary(op: Binary, lhs: &Tensor, rhs: &Tensor, i: usize) -> bool {
    let (left, right) = (lhs.is_doubtful(i), rhs.is_doubtful(i));
    match (op, lhs.at(i)) {
        // The right side counts where the left one leaves it to decide.
        (Binary::And, Scalar::Bool(decides)) => left || (decides && right),
        (Binary::Or, Scalar::Bool(decides)) => left || (!decides && right),
        _ => left || right || lhs.is_nan(i) || rhs.is_nan(i),
    }
}
