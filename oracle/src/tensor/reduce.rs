//! Reductions along an axis, `argmax` and `softmax`.

use cohort_frontend::program::{Binary, Elem, Reduction, Unary};

use super::{Tensor, elementwise};
use crate::error::{ErrorKind, InstanceError};
use crate::scalar::{self, Scalar};

/// Reduces `axis` away. An empty axis gives what changes nothing: 0, or the lowest or highest
/// number; its mean is NaN.
pub(crate) fn reduce(op: Reduction, value: &Tensor, axis: usize) -> Result<Tensor, InstanceError> {
    let elem = value.elem();
    let (combine, initial) = match op {
        Reduction::Sum | Reduction::Mean => (Binary::Add, Scalar::zero(elem)),
        Reduction::Max => (Binary::Max, lowest(elem)),
        Reduction::Min => (Binary::Min, highest(elem)),
    };
    let (_, length, _) = value.around(axis)?;
    let reduced = each_line(value, axis, elem, |line| {
        line.iter()
            .try_fold(initial, |total, &x| scalar::binary(combine, total, x))
    })?;
    match op {
        Reduction::Mean => {
            let count = scalar::cast(Scalar::F32(length as f64), elem);
            elementwise::binary(Binary::Div, &reduced, &Tensor::full(Vec::new(), count)?)
        }
        _ => Ok(reduced),
    }
}

/// The index of the first largest element. A NaN is larger than nothing; of NaNs alone it is the
/// first.
pub(crate) fn argmax(value: &Tensor, axis: usize) -> Result<Tensor, InstanceError> {
    each_line(value, axis, Elem::I32, |line| {
        let mut best = 0;
        for (index, &x) in line.iter().enumerate() {
            let is_larger = scalar::binary(Binary::Gt, x, line[best])? == Scalar::Bool(true);
            if is_larger || (is_nan(line[best]) && !is_nan(x)) {
                best = index;
            }
        }
        if line.is_empty() {
            let message = "argmax of an axis of length 0";
            return Err(InstanceError::new(ErrorKind::IndexOutOfRange, message));
        }
        Ok(scalar::cast(Scalar::F32(best as f64), Elem::I32))
    })
}

/// `exp(x - max) / Σ exp(x - max)`.
pub(crate) fn softmax(value: &Tensor, axis: usize) -> Result<Tensor, InstanceError> {
    let kept = |reduced: Tensor| {
        let mut shape = value.shape.clone();
        shape[axis] = 1;
        Tensor {
            shape,
            data: reduced.data,
            doubtful: reduced.doubtful,
        }
    };
    let largest = kept(reduce(Reduction::Max, value, axis)?);
    let shifted = elementwise::binary(Binary::Sub, value, &largest)?;
    let powers = elementwise::unary(Unary::Exp, &shifted)?;
    let total = kept(reduce(Reduction::Sum, &powers, axis)?);
    elementwise::binary(Binary::Div, &powers, &total)
}

/// A tensor without `axis` that holds `summary` of each line along it.
fn each_line(
    value: &Tensor,
    axis: usize,
    elem: Elem,
    summary: impl Fn(&[Scalar]) -> Result<Scalar, InstanceError>,
) -> Result<Tensor, InstanceError> {
    let (_, length, after) = value.around(axis)?;
    let mut shape = value.shape.clone();
    shape.remove(axis);
    let line = |position: usize| {
        let (outer, inner) = (position / after, position % after);
        (0..length).map(move |index| (outer * length + index) * after + inner)
    };
    let result = Tensor::build(elem, shape, |position| {
        let line: Vec<Scalar> = line(position).map(|position| value.at(position)).collect();
        summary(&line)
    })?;
    let is_doubtful = |position| value.is_doubtful(position) || value.is_nan(position);
    Ok(result.doubted_where(|position| line(position).any(is_doubtful)))
}

fn is_nan(value: Scalar) -> bool {
    matches!(value, Scalar::F32(value) if value.is_nan())
}

fn lowest(elem: Elem) -> Scalar {
    match elem {
        Elem::F32 => Scalar::F32(f64::NEG_INFINITY),
        Elem::I32 => Scalar::I32(i32::MIN),
        Elem::Bool => Scalar::Bool(false),
    }
}

fn highest(elem: Elem) -> Scalar {
    match elem {
        Elem::F32 => Scalar::F32(f64::INFINITY),
        Elem::I32 => Scalar::I32(i32::MAX),
        Elem::Bool => Scalar::Bool(true),
    }
}
