//! Slices, concatenation, reshapes and transposition.

use cohort_dialects::builder::{Builder, Op, Val};
use cohort_dialects::keys;
use cohort_frontend::program::{Dim, Elem, Expr, ExprKind};
use melior::ir::{
    Attribute,
    attribute::{ArrayAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute},
    r#type::IntegerType,
};

use crate::expr::Lowering;
use crate::types::{DYNAMIC, elem_of, known, shape_of};

impl<'c> Lowering<'_, 'c> {
    pub fn shaped(&mut self, at: Builder<'c>, expr: &Expr) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        match &expr.kind {
            ExprKind::Slice {
                value, axis, start, ..
            } => {
                let operand = self.value(at, value);
                self.slice(at, elem, operand, &shape, *axis, *start)
            }
            ExprKind::Concat { values, axis } => match &values[..] {
                [only] => self.value(at, only),
                _ if values
                    .iter()
                    .any(|value| known(&shape_of(&value.ty)[*axis]).is_none()) =>
                {
                    self.concat_rows(at, expr, values, *axis)
                }
                _ => {
                    let operands = self.exprs(at, values);
                    let ty = self.types().whole(&expr.ty);
                    at.concat(*axis, &operands, ty)
                }
            },
            ExprKind::Reshape(value) => {
                let operand = self.value(at, value);
                let from = shape_of(&value.ty);
                match keeps_lengths(&from, &shape) {
                    true => self.reshape(at, elem, operand, &from, &shape),
                    false => self.recounted(at, elem, operand, &from, &shape),
                }
            }
            ExprKind::CheckShape(value) => {
                let operand = self.value(at, value);
                self.checked(at, elem, operand, &shape_of(&value.ty), &shape)
            }
            ExprKind::Transpose { value, permutation } => {
                let operand = self.value(at, value);
                let stays = permutation
                    .iter()
                    .enumerate()
                    .all(|(axis, from)| axis == *from);
                if stays {
                    return operand;
                }
                self.tensors(at, elem)
                    .transpose(operand, &shape, permutation)
            }
            other => unreachable!("not an operation on shapes: {other:?}"),
        }
    }

    /// `sizes[axis]` elements along one axis, from `start` on, and all along the others.
    pub fn slice(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        sizes: &[Dim],
        axis: usize,
        start: u64,
    ) -> Val<'c> {
        let context = at.context();
        let array = |values: &[i64]| -> Attribute<'c> {
            DenseI64ArrayAttribute::new(context, values).into()
        };
        let mut offsets = vec![0; sizes.len()];
        offsets[axis] = start as i64;
        let lengths = self.dims.sizes(at, sizes);
        let mut operands = vec![value];
        operands.extend(&lengths);
        let attributes = [
            (keys::STATIC_OFFSETS, array(&offsets)),
            (keys::STATIC_SIZES, array(&signed(sizes))),
            (keys::STATIC_STRIDES, array(&vec![1; sizes.len()])),
            (
                keys::OPERAND_SEGMENT_SIZES,
                DenseI32ArrayAttribute::new(context, &[1, 0, lengths.len() as i32, 0]).into(),
            ),
        ];
        let ty = self.types().tensor(elem, sizes);
        at.value_with(Op::TensorExtractSlice, &operands, ty, &attributes)
    }

    /// The same elements in another shape: runs of axes with equal products are collapsed to one
    /// axis, which is then expanded.
    pub fn reshape(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        to: &[Dim],
    ) -> Val<'c> {
        let runs = runs(from, to);
        let middle: Vec<Dim> = runs.iter().map(|run| run.dim.clone()).collect();
        let value = if middle == from {
            value
        } else {
            let groups = groups(at, runs.iter().map(|run| run.from), from.len());
            let ty = self.types().tensor(elem, &middle);
            at.collapse(value, groups, ty)
        };
        if middle == to {
            return value;
        }
        let groups = groups(at, runs.iter().map(|run| run.to), to.len());
        let output_shape = DenseI64ArrayAttribute::new(at.context(), &signed(to)).into();
        let mut operands = vec![value];
        operands.extend(self.dims.sizes(at, to));
        let attributes = [
            (keys::REASSOCIATION, groups),
            (keys::STATIC_OUTPUT_SHAPE, output_shape),
        ];
        at.value_with(
            Op::TensorExpandShape,
            &operands,
            self.types().tensor(elem, to),
            &attributes,
        )
    }
}

/// Whether each length that differs by instance is one of both shapes, and no others are joined with it
/// or before it.
fn keeps_lengths(from: &[Dim], to: &[Dim]) -> bool {
    let (mut from, mut to) = (from.iter(), to.iter());
    runs(from.as_slice(), to.as_slice()).into_iter().all(|run| {
        let own = |dims: Vec<&Dim>| {
            let dims = dims.into_iter().filter(|dim| known(dim) != Some(1));
            dims.cloned().collect::<Vec<_>>()
        };
        let (left, right) = (
            own(from.by_ref().take(run.from).collect()),
            own(to.by_ref().take(run.to).collect()),
        );
        let is_known = |dims: &[Dim]| dims.iter().all(|dim| known(dim).is_some());
        let counts_rows = left.len() > 1 && !is_known(from.as_slice());
        is_known(&left) && is_known(&right) && !counts_rows || left == right && left.len() == 1
    })
}

/// Axes of one shape that hold the same elements as axes of another.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    /// How many axes of the first shape.
    from: usize,
    /// How many axes of the second.
    to: usize,
    /// The product of either.
    dim: Dim,
}

/// A product of dims: the known ones' number, and the others' names in order.
#[derive(Clone, PartialEq, Eq)]
struct Product {
    known: u64,
    names: Vec<String>,
}

impl Product {
    fn of(dim: &Dim) -> Product {
        match dim {
            Dim::Known(length) => Product {
                known: *length,
                names: vec![],
            },
            Dim::Instance(name) => Product {
                known: 1,
                names: vec![name.clone()],
            },
        }
    }

    fn times(&mut self, dim: &Dim) {
        let other = Product::of(dim);
        self.known *= other.known;
        self.names.extend(other.names);
        self.names.sort_unstable();
    }

    /// Whether fewer axes are in this product than in another that it may become.
    fn is_less(&self, other: &Product) -> bool {
        (self.names.len(), self.known) < (other.names.len(), other.known)
    }

    fn dim(&self) -> Dim {
        match &self.names[..] {
            [] => Dim::Known(self.known),
            [name] if self.known == 1 => Dim::Instance(name.clone()),
            names => Dim::Instance(format!("{} * {}", self.known, names.join(" * "))),
        }
    }
}

/// Splits two shapes of the same number of elements into the shortest runs of equal products. Axes
/// of length 1 at the end belong to the last run; a rank-0 side has no run at all.
fn runs(from: &[Dim], to: &[Dim]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        let (i0, j0) = (i, j);
        let (mut left, mut right) = (Product::of(&from[i]), Product::of(&to[j]));
        (i, j) = (i + 1, j + 1);
        while left != right {
            // The products of the whole shapes are equal, so one side has axes left unless a length
            // is 0 or goes by another name; then the whole rest is one run.
            if i < from.len() && (left.is_less(&right) || j == to.len()) {
                left.times(&from[i]);
                i += 1;
            } else if j < to.len() {
                right.times(&to[j]);
                j += 1;
            } else {
                right = left.clone();
            }
        }
        runs.push(Run {
            from: i - i0,
            to: j - j0,
            dim: left.dim(),
        });
    }
    if let Some(last) = runs.last_mut() {
        last.from += from.len() - i;
        last.to += to.len() - j;
    }
    runs
}

/// `[[0, 1], [2]]`: which axes make up each one. None do where the other side is of rank 0.
fn groups<'c>(at: Builder<'c>, counts: impl Iterator<Item = usize>, rank: usize) -> Attribute<'c> {
    let mut next = 0;
    let groups: Vec<Attribute<'c>> = counts
        .map(|count| {
            let axes: Vec<_> = (next..next + count).map(|axis| integer(at, axis)).collect();
            next += count;
            ArrayAttribute::new(at.context(), &axes).into()
        })
        .collect();
    debug_assert!(groups.is_empty() || next == rank);
    ArrayAttribute::new(at.context(), &groups).into()
}

fn integer<'c>(at: Builder<'c>, value: usize) -> Attribute<'c> {
    IntegerAttribute::new(IntegerType::new(at.context(), 64).into(), value as i64).into()
}

/// Lengths as MLIR's attributes have them, those that are operands marked.
fn signed(shape: &[Dim]) -> Vec<i64> {
    shape
        .iter()
        .map(|dim| known(dim).unwrap_or(DYNAMIC) as i64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Run, runs};
    use cohort_frontend::program::Dim;

    fn run(from: usize, to: usize, length: u64) -> Run {
        let dim = Dim::Known(length);
        Run { from, to, dim }
    }

    fn shape(lengths: &[u64]) -> Vec<Dim> {
        crate::types::known_shape(lengths)
    }

    fn runs_of(from: &[u64], to: &[u64]) -> Vec<Run> {
        runs(&shape(from), &shape(to))
    }

    #[test]
    fn runs_are_as_short_as_can_be() {
        assert_eq!(runs_of(&[4, 6], &[4, 2, 3]), [run(1, 1, 4), run(1, 2, 6)]);
        assert_eq!(runs_of(&[4, 6], &[24]), [run(2, 1, 24)]);
        assert_eq!(runs_of(&[4, 6], &[8, 3]), [run(2, 2, 24)]);
    }

    #[test]
    fn ones_at_the_end_join_the_last_run() {
        assert_eq!(runs_of(&[5], &[5, 1, 1]), [run(1, 3, 5)]);
        assert_eq!(runs_of(&[1, 5, 1], &[5]), [run(3, 1, 5)]);
    }

    #[test]
    fn a_scalar_has_no_runs() {
        assert_eq!(runs_of(&[1, 1], &[]), []);
        assert_eq!(runs_of(&[], &[1]), []);
    }

    #[test]
    fn instance_dims_are_told_apart_by_name() {
        let n = || Dim::Instance("n".to_owned());
        let with_one = [n(), Dim::Known(1)];
        let dim = n();
        assert_eq!(
            runs(&with_one, &[n()]),
            [Run {
                from: 2,
                to: 1,
                dim
            }]
        );
        let heads = [n(), Dim::Known(4), Dim::Known(7)];
        let joined = [n(), Dim::Known(28)];
        let dim = n();
        let expected = [
            Run {
                from: 1,
                to: 1,
                dim,
            },
            run(2, 1, 28),
        ];
        assert_eq!(runs(&heads, &joined), expected);
    }
}
