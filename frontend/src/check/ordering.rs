//! Built-ins that put elements in order or add them up in turn, and those that make positions of
//! indices.

use super::body::{Body, Why};
use super::calls::Args;
use super::control::let_in;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, Op};
use crate::program::{Binary, Elem, Order, SortPart, Unary};
use crate::syntax::ast;
use crate::types::{Dim, F32, I32, Ty};

impl Body<'_> {
    /// The index of the first least element: that of the first largest, of numbers in reverse.
    pub fn argmin(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some((value, elem, mut shape, axis)) = self.numbers_along(args) else {
            return self.error(args.span);
        };
        let ty = value.ty.clone();
        let reversed = match elem {
            Elem::F32 => self.op(Op::Unary(Unary::Neg), vec![value], ty, args.span),
            // The least integer has no negative, but a complement.
            _ => {
                let least = self.int(1, true, args.span, Some(&I32));
                let op = Op::Binary(Binary::Sub);
                self.op(op, vec![least, value], ty, args.span)
            }
        };
        shape.remove(axis);
        let ty = Ty::tensor(Elem::I32, shape);
        self.op(Op::ArgMax(axis), vec![reversed], ty, args.span)
    }

    pub fn cumsum(&mut self, args: &Args<'_>) -> hir::Expr {
        match self.numbers_along(args) {
            Some((value, _, _, axis)) => {
                let ty = value.ty.clone();
                self.op(Op::CumSum(axis), vec![value], ty, args.span)
            }
            None => self.error(args.span),
        }
    }

    /// `sort` and `argsort`: in ascending order.
    pub fn sort(&mut self, args: &Args<'_>, part: SortPart) -> hir::Expr {
        let Some((value, elem, shape, axis)) = self.numbers_along(args) else {
            return self.error(args.span);
        };
        let elem = match part {
            SortPart::Values => elem,
            SortPart::Indices => Elem::I32,
        };
        let (order, ty) = (Order::Ascending, Ty::tensor(elem, shape));
        self.op(Op::Sort { axis, order, part }, vec![value], ty, args.span)
    }

    /// The largest elements and their indices: the beginnings of two sorts.
    pub fn topk(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value, asked]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, None);
        let count = self.written_dim(asked);
        let Some((elem @ (Elem::F32 | Elem::I32), shape)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor of numbers");
        };
        let axis = match args.axis {
            Some(axis) => self.axis(axis, shape.len(), &value),
            None => Some(shape.len() - 1),
        };
        let (Some(count), Some(axis)) = (count, axis) else {
            return self.error(args.span);
        };
        if !self.can_be_taken(&count, &shape[axis], asked, &value) {
            return self.error(args.span);
        }
        let ty = value.ty.clone();
        let whole = self.temporary("whole", ty.clone(), args.span);
        let mut taken = shape;
        if let Some(dim) = taken.get_mut(axis) {
            *dim = count;
        }
        let parts = [(SortPart::Values, elem), (SortPart::Indices, Elem::I32)];
        let parts = parts.map(|(part, elem)| {
            let local = self.make(Kind::Local(whole), ty.clone(), &value.span);
            let order = Order::Descending;
            let ty = Ty::tensor(elem, taken.clone());
            self.op(Op::Sort { axis, order, part }, vec![local], ty, args.span)
        });
        let both = Ty::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
        let tuple = self.make(Kind::Tuple(parts.into()), both, args.span);
        let pattern = hir::Pattern {
            kind: hir::PatternKind::Bind(whole),
            ty,
            span: args.span.clone(),
        };
        let_in(vec![(pattern, value)], tuple)
    }

    /// Whether an axis has the number of elements asked for: a constant of the program, or all of them.
    fn can_be_taken(
        &mut self,
        count: &Poly,
        whole: &Poly,
        asked: &ast::Expr,
        value: &hir::Expr,
    ) -> bool {
        let (shown, taken, all) = (
            self.show(&value.ty),
            self.show_dim(count),
            self.show_dim(whole),
        );
        let at_most = |poly: &Poly, limit: i128| {
            let number = poly.as_constant().and_then(|ratio| ratio.whole());
            number.is_some_and(|number| number <= limit)
        };
        let is_too_large = whole.subtract(count).is_some_and(|rest| at_most(&rest, -1));
        let diagnostic = if at_most(count, 0) || is_too_large {
            let message = format!("`topk` takes 1 to {all} elements here, not {taken}");
            Diagnostic::error("E0407", message)
                .at(&asked.span, format!("the axis has length {all}"))
        } else if count != whole && count.atoms().any(|atom| !matches!(atom, Atom::Program(_))) {
            Diagnostic::error(
                "E0708",
                "the number of elements that `topk` takes must be known when compiling",
            )
            .at(&asked.span, "differs from instance to instance")
            .note(format!("it may also be all of them, {all}"))
        } else {
            return true;
        };
        self.report(diagnostic.see(&value.span, format!("this is `{shown}`")));
        false
    }

    /// `one_hot(indices, C)`: a new last axis, 1 at the index and 0 elsewhere.
    pub fn one_hot(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([indices, count]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let indices = self.expr(indices, Some(&I32));
        let count = self.size(count);
        let Ty::Tensor {
            elem: Elem::I32,
            shape,
        } = self.infer.shallow(&indices.ty)
        else {
            return self.refuse(args, &indices, "i32 or a tensor of i32");
        };
        let Some((count, counted)) = count else {
            return self.error(args.span);
        };
        let span = args.span;
        let with_last = |dim: &Poly| {
            let mut longer = shape.clone();
            longer.push(Dim::Poly(dim.clone()));
            longer
        };
        let of = |elem, shape| Ty::Tensor { elem, shape };
        let column = match shape.is_empty() {
            true => indices,
            false => {
                let ty = of(Elem::I32, with_last(&Poly::constant(1)));
                self.op(Op::Reshape, vec![indices], ty, span)
            }
        };
        let line = Ty::tensor(Elem::I32, vec![count.clone()]);
        let line = self.op(Op::Iota(0), vec![], line, span);
        let ty = of(Elem::Bool, with_last(&count));
        let is_it = self.op(Op::Binary(Binary::Eq), vec![column, line], ty, span);
        let ty = of(Elem::F32, with_last(&count));
        let rows = self.op(Op::Cast, vec![is_it], ty, span);
        self.with_sizes(counted, rows)
    }

    /// `segment_sum(x, segments, C)`: row `s` is the sum of the rows of `x` of segment `s`.
    pub fn segment_sum(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([values, segments, count]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let values = self.expr(values, Some(&F32));
        let Some((elem @ (Elem::F32 | Elem::I32), mut shape)) = self.tensor(&values) else {
            return self.refuse(args, &values, "a tensor of numbers");
        };
        let expected = Ty::tensor(Elem::I32, shape.iter().take(1).cloned().collect());
        let why = Why {
            span: Some(&values.span),
            text: "with a segment for each row",
        };
        let segments = self.expect(segments, &expected, &why);
        let Some((count, counted)) = self.size(count) else {
            return self.error(args.span);
        };
        if let Some(rows) = shape.first_mut() {
            *rows = count;
        }
        let ty = Ty::tensor(elem, shape);
        let sums = self.op(Op::SegmentSum, vec![values, segments], ty, args.span);
        self.with_sizes(counted, sums)
    }

    /// `scatter(x, indices, rows)`: `x` with other rows in the places that the indices name.
    pub fn scatter(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value, indices, rows]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, Some(&F32));
        let Some((elem, shape)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor");
        };
        let Some((indices, rows)) = self.rows_to_scatter(args, &value, indices, rows) else {
            return self.error(args.span);
        };
        let span = args.span;
        let ty = value.ty.clone();
        if elem != Elem::Bool {
            return self.op(Op::Scatter, vec![value, indices, rows], ty, span);
        }
        let [value, rows] = [value, rows].map(|flags| match self.infer.shallow(&flags.ty) {
            Ty::Tensor { shape, .. } => {
                let elem = Elem::I32;
                self.op(Op::Cast, vec![flags], Ty::Tensor { elem, shape }, span)
            }
            _ => flags,
        });
        let numbers = Ty::tensor(Elem::I32, shape);
        let numbers = self.op(Op::Scatter, vec![value, indices, rows], numbers, span);
        let zero = self.int(0, false, span, Some(&I32));
        let is_not = Op::Binary(Binary::Ne);
        self.op(is_not, vec![numbers, zero], ty, span)
    }

    /// `scatter_add(x, indices, rows)`: `x` and the sum of the rows that go to each place.
    pub fn scatter_add(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value, indices, rows]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, Some(&F32));
        let Some((Elem::F32 | Elem::I32, _)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor of numbers");
        };
        let Some((indices, rows)) = self.rows_to_scatter(args, &value, indices, rows) else {
            return self.error(args.span);
        };
        let ty = value.ty.clone();
        let sums = self.op(Op::SegmentSum, vec![rows, indices], ty.clone(), args.span);
        self.op(Op::Binary(Binary::Add), vec![value, sums], ty, args.span)
    }

    /// Indices of rows of a tensor, and as many rows like its own.
    fn rows_to_scatter(
        &mut self,
        args: &Args<'_>,
        value: &hir::Expr,
        indices: &ast::Expr,
        rows: &ast::Expr,
    ) -> Option<(hir::Expr, hir::Expr)> {
        let indices = self.expr(indices, None);
        let (elem, mut shape) = self.tensor(value)?;
        let count = match self.tensor(&indices) {
            Some((Elem::I32, count)) if count.len() == 1 => count.into_iter().next()?,
            _ => {
                self.refuse(args, &indices, "i32[_]; an array becomes one by `stack`");
                return None;
            }
        };
        *shape.first_mut()? = count;
        let why = Why {
            span: Some(&indices.span),
            text: "with a row for each index",
        };
        let rows = self.expect(rows, &Ty::tensor(elem, shape), &why);
        Some((indices, rows))
    }

    /// A tensor of numbers, its parts, and the axis that is meant: the last where none is given.
    fn numbers_along(&mut self, args: &Args<'_>) -> Option<(hir::Expr, Elem, Vec<Poly>, usize)> {
        let value = self.first_argument(args, 2)?;
        let Some((elem @ (Elem::F32 | Elem::I32), shape)) = self.tensor(&value) else {
            self.refuse(args, &value, "a tensor of numbers");
            return None;
        };
        let last = shape.len() - 1;
        let axis = self.axis_argument(args, 1, shape.len(), &value, last)?;
        Some((value, elem, shape, axis))
    }
}
