//! What goes along lines of an axis: reductions, softmax, running sums, sorts.

use cohort_frontend::program::{Order, Reduction, SortPart};

use super::Operation;
use super::elementwise::number;
use crate::error::InstanceError;
use crate::scalar::Scalar;
use crate::tensor::lines;

/// The lines along an axis of a shape.
struct Lines {
    length: usize,
    after: usize,
    count: usize,
}

impl Lines {
    fn of(shape: &[usize], axis: usize) -> Lines {
        let (before, after) = (&shape[..axis], &shape[axis + 1..]);
        let after = after.iter().product();
        Lines {
            length: shape[axis],
            after,
            count: before.iter().product::<usize>() * after,
        }
    }

    /// The position of an element of a line.
    fn place(&self, line: usize, index: usize) -> usize {
        (line / self.after * self.length + index) * self.after + line % self.after
    }

    fn places(&self, line: usize) -> impl Iterator<Item = usize> {
        (0..self.length).map(move |index| self.place(line, index))
    }
}

/// The result has one element a line, in their order.
pub(super) fn reduce(
    operation: &mut Operation<'_, '_>,
    op: Reduction,
    axis: usize,
) -> Result<(), InstanceError> {
    let operand = operation.operand(0)?;
    let lines = Lines::of(&operand.shape, axis);
    let (result, cotangent) = (operation.result, operation.cotangent);
    operation.add(0, |total| {
        for (line, g) in cotangent.iter().enumerate().take(lines.count) {
            // Those that are the extreme share its cotangent.
            let takes_part = |place: usize| match op {
                Reduction::Sum | Reduction::Mean => true,
                Reduction::Max | Reduction::Min => number(operand, place) == number(result, line),
            };
            let taking_part = || lines.places(line).filter(|&place| takes_part(place));
            let divisor = match op {
                Reduction::Sum => 1,
                Reduction::Mean | Reduction::Max | Reduction::Min => taking_part().count(),
            };
            for place in taking_part() {
                total[place] += g / divisor as f64;
            }
        }
    })
}

/// `y (g - Σ g y)`.
pub(super) fn softmax(operation: &mut Operation<'_, '_>, axis: usize) -> Result<(), InstanceError> {
    let lines = Lines::of(&operation.result.shape, axis);
    let (result, cotangent) = (operation.result, operation.cotangent);
    operation.add(0, |total| {
        for line in 0..lines.count {
            let product = |place: usize| cotangent[place] * number(result, place);
            let sum: f64 = lines.places(line).map(product).sum();
            for place in lines.places(line) {
                total[place] += number(result, place) * (cotangent[place] - sum);
            }
        }
    })
}

/// An element is in its own sum and in those after it.
pub(super) fn cumsum(operation: &mut Operation<'_, '_>, axis: usize) -> Result<(), InstanceError> {
    let lines = Lines::of(&operation.result.shape, axis);
    let cotangent = operation.cotangent;
    operation.add(0, |total| {
        for line in 0..lines.count {
            let mut sum = 0.0;
            for index in (0..lines.length).rev() {
                let place = lines.place(line, index);
                sum += cotangent[place];
                total[place] += sum;
            }
        }
    })
}

/// Each element goes back to where it was; the result may have fewer than the operand.
pub(super) fn sort(
    operation: &mut Operation<'_, '_>,
    axis: usize,
    order: Order,
) -> Result<(), InstanceError> {
    let operand = operation.operand(0)?;
    let origins = lines::sort(operand, axis, order, SortPart::Indices)?;
    let (own, taken) = (
        Lines::of(&operand.shape, axis),
        Lines::of(&operation.result.shape, axis),
    );
    let cotangent = operation.cotangent;
    operation.add(0, |total| {
        for line in 0..taken.count {
            for index in 0..taken.length {
                if let Scalar::I32(origin) = origins.at(own.place(line, index)) {
                    total[own.place(line, origin as usize)] += cotangent[taken.place(line, index)];
                }
            }
        }
    })
}
