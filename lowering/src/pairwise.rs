//! Running sums, sorts and sums of segments: folds over the pairs of elements of a line, which any
//! kernel has whatever the line's length.
//!
//! A line of n elements costs n² steps, of arithmetic that nothing is stored for: an element's place
//! in order is the number of those before it.

use cohort_dialects::builder::{Builder, CmpfPredicate, Op, Val};
use cohort_frontend::program::{
    Binary, Dim, Elem, Expr, ExprKind, Literal, Order, Reduction, SortPart,
};
use melior::ir::ValueLike;

use crate::expr::Lowering;
use crate::numbers;
use crate::types::{elem_of, known, shape_of};

impl<'c> Lowering<'_, 'c> {
    pub fn pairwise(&mut self, at: Builder<'c>, expr: &Expr) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        match &expr.kind {
            ExprKind::CumSum { value, axis } => {
                let operand = self.value(at, value);
                self.running_sums(at, elem_of(&expr.ty), operand, &shape, *axis)
            }
            ExprKind::Sort {
                value,
                axis,
                order,
                part,
            } => {
                let line = Line {
                    elem: elem_of(&value.ty),
                    shape: shape_of(&value.ty),
                    axis: *axis,
                };
                let operand = self.value(at, value);
                let places = self.places(at, operand, &line, *order);
                let places = self.enough(at, places, &line, &shape[*axis]);
                self.placed(at, operand, places, &line, &shape[*axis], *part)
            }
            ExprKind::SegmentSum { values, segments } => {
                let operand = self.value(at, values);
                let segments = self.segments(at, segments, &shape[0]);
                self.segment_sums(at, operand, segments, values, &shape)
            }
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => {
                let source = shape_of(&rows.ty);
                let value = self.value(at, value);
                let indices = self.segments(at, indices, &shape[0]);
                let rows = self.value(at, rows);
                let elem = elem_of(&expr.ty);
                self.scattered(at, elem, (value, &shape), indices, (rows, &source))
            }
            other => unreachable!("no fold over pairs: {other:?}"),
        }
    }

    /// Each element the sum of those up to it: along `axis` stand the sums, along the next axis what
    /// is added up.
    fn running_sums(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        shape: &[Dim],
        axis: usize,
    ) -> Val<'c> {
        let pairs = inserted(shape, axis, &shape[axis]);
        let own = self.tensors(at, elem);
        let all = own.broadcast(value, &pairs, &[axis]);
        let (sum, summand) = (self.iota(at, &pairs, axis), self.iota(at, &pairs, axis + 1));
        let counts = numbers::binary(at, Binary::Le, Elem::I32, summand, sum);
        let zero = numbers::zero(elem);
        let counted = numbers::select(at, counts, all, own.filled(&pairs, zero));
        own.reduce(Binary::Add, zero, counted, shape, axis + 1)
    }

    /// Where each element of a line comes in order: how many come before it.
    fn places(&self, at: Builder<'c>, value: Val<'c>, line: &Line, order: Order) -> Val<'c> {
        let Line { elem, shape, axis } = line;
        let pairs = inserted(shape, *axis, &shape[*axis]);
        let tensors = self.tensors(at, *elem);
        let one = tensors.broadcast(value, &pairs, &[axis + 1]);
        let other = tensors.broadcast(value, &pairs, &[*axis]);
        let other_is_first = numbers::binary(
            at,
            Binary::Lt,
            Elem::I32,
            self.iota(at, &pairs, axis + 1),
            self.iota(at, &pairs, *axis),
        );
        // The first of two comes first unless the second must.
        let must = precedes(at, *elem, order, one, other);
        let yes = numbers::constant_like(at, must, must.r#type(), Literal::Bool(true));
        let may = numbers::binary(at, Binary::Ne, Elem::Bool, must, yes);
        let other_must = precedes(at, *elem, order, other, one);
        let is_before = numbers::select(at, other_is_first, may, other_must);
        let integers = self.tensors(at, Elem::I32);
        let ty = self.types().tensor(Elem::I32, &pairs);
        let counted = numbers::cast(at, Elem::Bool, Elem::I32, is_before, ty);
        let zero = numbers::zero(Elem::I32);
        integers.reduce(Binary::Add, zero, counted, shape, axis + 1)
    }

    /// Places in lines that have as many elements as are taken: the instance ends where they are too
    /// short.
    fn enough(&self, at: Builder<'c>, places: Val<'c>, line: &Line, count: &Dim) -> Val<'c> {
        let (Some(count), None) = (known(count), known(&line.shape[line.axis])) else {
            return places;
        };
        let integer = self.types().elem(Elem::I32);
        let last = Literal::I32(i32::try_from(count).unwrap_or(i32::MAX) - 1);
        let last = numbers::constant(at, integer, last);
        let length = self.dims.size(at, &line.shape[line.axis]);
        let within = at.value(Op::CfbWithin, &[last, length], integer);
        // What is added is 0, which only an instance with enough elements computes.
        let nothing = numbers::binary(at, Binary::Sub, Elem::I32, within, last);
        let nothing = self.spread(at, Elem::I32, nothing, &line.shape);
        numbers::binary(at, Binary::Add, Elem::I32, places, nothing)
    }

    /// The elements that have the first `count` places, or the indices of these.
    fn placed(
        &self,
        at: Builder<'c>,
        value: Val<'c>,
        places: Val<'c>,
        line: &Line,
        count: &Dim,
        part: SortPart,
    ) -> Val<'c> {
        let Line { elem, shape, axis } = line;
        let pairs = inserted(shape, *axis, count);
        let integers = self.tensors(at, Elem::I32);
        let place = integers.broadcast(places, &pairs, &[*axis]);
        let wanted = self.iota(at, &pairs, *axis);
        let is_it = numbers::binary(at, Binary::Eq, Elem::I32, place, wanted);
        let (tensors, candidates) = match part {
            SortPart::Values => {
                let tensors = self.tensors(at, *elem);
                (tensors, tensors.broadcast(value, &pairs, &[*axis]))
            }
            SortPart::Indices => (integers, self.iota(at, &pairs, axis + 1)),
        };
        // One element has the place. A maximum hands it on as it is, also a NaN and a negative zero.
        let least = numbers::neutral(Reduction::Max, tensors.elem);
        let none = tensors.filled(&pairs, least);
        let chosen = numbers::select(at, is_it, candidates, none);
        let mut result = shape.clone();
        result[*axis] = count.clone();
        tensors.reduce(Binary::Max, least, chosen, &result, axis + 1)
    }

    /// The segments' numbers, all of them within `count`: the instance waits for the least and the
    /// largest and ends where one is not.
    fn segments(&mut self, at: Builder<'c>, segments: &Expr, count: &Dim) -> Val<'c> {
        let value = self.value(at, segments);
        let shape = shape_of(&segments.ty);
        let integers = self.tensors(at, Elem::I32);
        let (zero, integer) = (numbers::zero(Elem::I32), self.types().elem(Elem::I32));
        let length = self.length_unless_none(at, count, &shape);
        let ends = [(Binary::Min, Binary::Max), (Binary::Max, Binary::Min)];
        ends.into_iter().fold(value, |within, (to_end, back)| {
            let end = integers.reduce(to_end, zero, value, &[], 0);
            let end = at.value(Op::CfbForce, &[end], integer);
            let end = at.value(Op::CfbWithin, &[end, length], integer);
            // No element is beyond it, so this changes none.
            let end = self.spread(at, Elem::I32, end, &shape);
            numbers::binary(at, back, Elem::I32, within, end)
        })
    }

    /// The rows of each segment together.
    fn segment_sums(
        &self,
        at: Builder<'c>,
        values: Val<'c>,
        segments: Val<'c>,
        source: &Expr,
        shape: &[Dim],
    ) -> Val<'c> {
        let elem = elem_of(&source.ty);
        let pairs = inserted(&shape_of(&source.ty), 0, &shape[0]);
        let others: Vec<usize> = (0..pairs.len()).filter(|axis| *axis != 1).collect();
        let (own, integers) = (self.tensors(at, elem), self.tensors(at, Elem::I32));
        let segment = integers.broadcast(segments, &pairs, &others);
        let wanted = self.iota(at, &pairs, 0);
        let counts = numbers::binary(at, Binary::Eq, Elem::I32, segment, wanted);
        let all = own.broadcast(values, &pairs, &[0]);
        let zero = numbers::zero(elem);
        let counted = numbers::select(at, counts, all, own.filled(&pairs, zero));
        own.reduce(Binary::Add, zero, counted, shape, 1)
    }

    /// A tensor with rows in place of those that the indices name, the last of each.
    fn scattered(
        &self,
        at: Builder<'c>,
        elem: Elem,
        (value, shape): (Val<'c>, &[Dim]),
        indices: Val<'c>,
        (rows, source): (Val<'c>, &[Dim]),
    ) -> Val<'c> {
        let (own, integers) = (self.tensors(at, elem), self.tensors(at, Elem::I32));
        // Which of the rows each place takes, -1 for none.
        let (places, pairs) = (&shape[..1], [shape[0].clone(), source[0].clone()]);
        let named = integers.broadcast(indices, &pairs, &[0]);
        let place = self.iota(at, &pairs, 0);
        let is_named = numbers::binary(at, Binary::Eq, Elem::I32, named, place);
        let none = Literal::I32(-1);
        let row = self.iota(at, &pairs, 1);
        let row = numbers::select(at, is_named, row, integers.filled(&pairs, none));
        let last = integers.reduce(Binary::Max, none, row, places, 1);
        // A maximum hands the row on as it is, also NaN and negative zeros.
        let pairs = inserted(source, 0, &shape[0]);
        let others: Vec<usize> = (1..pairs.len()).collect();
        let taken = integers.broadcast(last, &pairs, &others);
        let row = self.iota(at, &pairs, 1);
        let is_taken = numbers::binary(at, Binary::Eq, Elem::I32, taken, row);
        let all = own.broadcast(rows, &pairs, &[0]);
        let least = numbers::neutral(Reduction::Max, elem);
        let candidates = numbers::select(at, is_taken, all, own.filled(&pairs, least));
        let scattered = own.reduce(Binary::Max, least, candidates, shape, 1);
        let inner: Vec<usize> = (1..shape.len()).collect();
        let last = match inner.is_empty() {
            true => last,
            false => integers.broadcast(last, shape, &inner),
        };
        let zeros = integers.filled(shape, numbers::zero(Elem::I32));
        let is_kept = numbers::binary(at, Binary::Lt, Elem::I32, last, zeros);
        numbers::select(at, is_kept, value, scattered)
    }
}

/// The lines of a tensor along an axis.
struct Line {
    elem: Elem,
    shape: Vec<Dim>,
    axis: usize,
}

/// Whether an element must come before another, wherever they stand: it is less or larger, as the
/// order has it, or a number before a NaN.
fn precedes<'c>(
    at: Builder<'c>,
    elem: Elem,
    order: Order,
    left: Val<'c>,
    right: Val<'c>,
) -> Val<'c> {
    let (op, unordered_or) = match order {
        Order::Ascending => (Binary::Lt, CmpfPredicate::Ult),
        Order::Descending => (Binary::Gt, CmpfPredicate::Ugt),
    };
    if elem != Elem::F32 {
        return numbers::binary(at, op, elem, left, right);
    }
    let is_number = at.cmpf(CmpfPredicate::Ord, left, left);
    let wins = at.cmpf(unordered_or, left, right);
    numbers::binary(at, Binary::And, Elem::Bool, is_number, wins)
}

/// A shape with one more dim in front of an axis.
fn inserted(shape: &[Dim], axis: usize, dim: &Dim) -> Vec<Dim> {
    let mut longer = shape.to_vec();
    longer.insert(axis, dim.clone());
    longer
}
