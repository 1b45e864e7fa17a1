//! Indexing: elements of arrays, rows and slices of tensors.

use super::body::Body;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, Op};
use crate::program::{Literal, Span};
use crate::syntax::ast::{self, IndexArg};
use crate::types::{Dim, I32, Ty};

fn indices_of(rank: usize) -> String {
    if rank == 1 {
        "1 index".to_owned()
    } else {
        format!("{rank} indices")
    }
}

impl Body<'_> {
    pub fn index(&mut self, value: &ast::Expr, indices: &[IndexArg], span: &Span) -> hir::Expr {
        let value = self.expr(value, None);
        match self.infer.shallow(&value.ty) {
            Ty::Array(element) => self.array_element(value, &element, indices, span),
            Ty::Tensor { shape, .. } if !shape.is_empty() => self.tensor_part(value, indices, span),
            Ty::Error => self.error(span),
            other => {
                let shown = self.show(&other);
                let mut diagnostic =
                    Diagnostic::error("E0304", format!("`{shown}` cannot be indexed"))
                        .at(&value.span, format!("this is `{shown}`"));
                diagnostic = match other {
                    Ty::Tuple(_) => diagnostic.note("take it apart with `let (a, b) = …`"),
                    Ty::Adt(..) => diagnostic.note("take it apart with `match`"),
                    _ => diagnostic.note("only arrays and tensors have elements"),
                };
                self.report(diagnostic);
                self.error(span)
            }
        }
    }

    fn array_element(
        &mut self,
        array: hir::Expr,
        element: &Ty,
        indices: &[IndexArg],
        span: &Span,
    ) -> hir::Expr {
        let index = match indices {
            [IndexArg::At(index)] => index,
            [IndexArg::Range { start, end, .. }] => {
                return self.array_slice(array, element, (start.as_ref(), end.as_ref()), span);
            }
            _ => {
                self.report(
                    Diagnostic::error("E0304", "an array takes one index")
                        .at(span, "expected `xs[i]` or `xs[a..b]`")
                        .note("`xs[i][j]` reaches into an array of arrays"),
                );
                return self.error(span);
            }
        };
        let index = self.place(index);
        let ty = self.infer.open(element);
        self.op(Op::Index, vec![array, index], ty, span)
    }

    fn tensor_part(&mut self, value: hir::Expr, indices: &[IndexArg], span: &Span) -> hir::Expr {
        let rank = match self.infer.shallow(&value.ty) {
            Ty::Tensor { shape, .. } => shape.len(),
            _ => 0,
        };
        if indices.is_empty() || indices.len() > rank {
            let shown = self.show(&value.ty);
            self.report(
                Diagnostic::error(
                    "E0404",
                    format!("`{shown}` takes at most {}", indices_of(rank)),
                )
                .at(span, format!("{} given", indices.len()))
                .see(&value.span, format!("this is `{shown}`")),
            );
            return self.error(span);
        }
        let mut result = value;
        let mut axis = 0;
        for index in indices {
            match index {
                IndexArg::At(index) => result = self.row(result, axis, index, span),
                IndexArg::Range {
                    start: None,
                    end: None,
                    ..
                } => axis += 1,
                IndexArg::Range {
                    start,
                    end,
                    span: range,
                } => {
                    result = self.slice(result, axis, (start.as_ref(), end.as_ref()), range, span);
                    axis += 1;
                }
            }
        }
        result
    }

    /// An index or the bound of a slice; a number below zero is out of range whatever the length.
    pub fn place(&mut self, expr: &ast::Expr) -> hir::Expr {
        let place = self.index_value(expr);
        let Kind::Literal(Literal::I32(number @ ..0)) = place.kind else {
            return place;
        };
        self.report(
            Diagnostic::error("E0407", format!("index {number} is below zero"))
                .at(&expr.span, "the first is at 0")
                .note("to count from the end, subtract from the length: `x[len(x) - 1]`"),
        );
        self.error(&expr.span)
    }

    fn shape_of(&self, value: &hir::Expr) -> Option<(crate::program::Elem, Vec<Dim>)> {
        match self.infer.shallow(&value.ty) {
            Ty::Tensor { elem, shape } => Some((elem, shape)),
            _ => None,
        }
    }

    /// One slice across `axis`, which leaves the shape.
    fn row(&mut self, value: hir::Expr, axis: usize, index: &ast::Expr, span: &Span) -> hir::Expr {
        let index_value = self.place(index);
        let Some((elem, mut shape)) = self.shape_of(&value) else {
            return self.error(span);
        };
        if axis >= shape.len() {
            return self.error(span);
        }
        let dim = shape.remove(axis);
        if let (Dim::Poly(dim), ast::ExprKind::Int(at)) = (&dim, &index.kind) {
            self.within(dim, *at, &index.span, &value);
        }
        let mut value = value;
        if axis > 0 {
            // The rows of a transposed tensor are the columns of the other.
            let mut permutation = vec![axis];
            permutation.extend((0..=shape.len()).filter(|other| *other != axis));
            let mut moved = vec![dim];
            moved.extend(shape.iter().cloned());
            let ty = Ty::Tensor { elem, shape: moved };
            value = self.op(Op::Transpose(permutation), vec![value], ty, span);
        }
        self.op(
            Op::Row,
            vec![value, index_value],
            Ty::Tensor { elem, shape },
            span,
        )
    }

    /// Reports an index that is past the end for all we know already.
    fn within(&mut self, dim: &Poly, at: u64, span: &Span, value: &hir::Expr) {
        let length = self
            .infer
            .dim(dim)
            .as_constant()
            .and_then(|ratio| ratio.whole());
        let Some(length) = length.filter(|length| *length <= i128::from(at)) else {
            return;
        };
        let shown = self.show(&value.ty);
        self.report(
            Diagnostic::error("E0407", format!("index {at} is past the end of {length}"))
                .at(span, format!("expected less than {length}"))
                .see(&value.span, format!("this is `{shown}`")),
        );
    }

    fn slice(
        &mut self,
        value: hir::Expr,
        axis: usize,
        bounds: (Option<&ast::Expr>, Option<&ast::Expr>),
        range: &Span,
        span: &Span,
    ) -> hir::Expr {
        let Some((elem, mut shape)) = self.shape_of(&value) else {
            return self.error(span);
        };
        let Some(Dim::Poly(whole)) = shape.get(axis).cloned() else {
            return self.error(span);
        };
        let whole = self.infer.dim(&whole);
        let is_dim = |bound: Option<&ast::Expr>| bound.is_none_or(|bound| self.is_dim(bound));
        if !is_dim(bounds.0) || !is_dim(bounds.1) {
            return self.computed_slice(value, axis, bounds, span);
        }
        let start = match bounds.0 {
            Some(start) => self.written_dim(start),
            None => Some(Poly::constant(0)),
        };
        let end = match bounds.1 {
            Some(end) => self.written_dim(end),
            None => Some(whole.clone()),
        };
        let (Some(start), Some(end)) = (start, end) else {
            return self.error(span);
        };
        let differs = |atom| !matches!(atom, Atom::Program(_));
        if !start.is_whole_in(&differs) || !end.is_whole_in(&differs) {
            // `x[0..n/2]`: as a number `n/2` is rounded, as a dim it is not.
            return self.computed_slice(value, axis, bounds, span);
        }
        let Some(length) = end.subtract(&start) else {
            return self.error(span);
        };
        let negative = |poly: &Poly| {
            poly.as_constant()
                .and_then(|ratio| ratio.whole())
                .is_some_and(|number| number < 0)
        };
        let past_end = whole.subtract(&end).is_some_and(|rest| negative(&rest));
        if past_end || negative(&length) {
            let shown = self.show(&value.ty);
            let (start, end) = (self.show_dim(&start), self.show_dim(&end));
            let (message, label) = if past_end {
                let whole = self.show_dim(&whole);
                let message = format!("the slice {start}..{end} ends past {whole}");
                (message, "not within the tensor")
            } else {
                let message = format!("the slice {start}..{end} ends before it begins");
                (message, "its end is before its start")
            };
            self.report(
                Diagnostic::error("E0407", message)
                    .at(range, label)
                    .see(&value.span, format!("this is `{shown}`")),
            );
            return self.error(span);
        }
        if let Some(dim) = shape.get_mut(axis) {
            *dim = Dim::Poly(length.clone());
        }
        let ty = Ty::Tensor { elem, shape };
        let args = self.bounded(value, bounds, span);
        self.op(
            Op::Slice {
                axis,
                bounds: Some((start, length)),
            },
            args,
            ty,
            span,
        )
    }

    /// A slice whose bounds are numbers that the instance computes; its length is its own.
    fn computed_slice(
        &mut self,
        value: hir::Expr,
        axis: usize,
        bounds: (Option<&ast::Expr>, Option<&ast::Expr>),
        span: &Span,
    ) -> hir::Expr {
        let Some((elem, mut shape)) = self.shape_of(&value) else {
            return self.error(span);
        };
        let whole = shape.get(axis).cloned();
        let args = self.bounded(value, bounds, span);
        let length = self.computed_length(&args, whole);
        let is_negative = |length: &Poly| {
            let number = length.as_constant().and_then(|ratio| ratio.whole());
            number.is_some_and(|number| number < 0)
        };
        if length.as_ref().is_some_and(is_negative) {
            self.report(
                Diagnostic::error("E0407", "the slice ends before it begins")
                    .at(span, "its end is always before its start"),
            );
            return self.error(span);
        }
        if let Some(dim) = shape.get_mut(axis) {
            *dim = Dim::Poly(length.unwrap_or_else(|| self.infer.opened_dim()));
        }
        let ty = Ty::Tensor { elem, shape };
        self.op(Op::Slice { axis, bounds: None }, args, ty, span)
    }

    /// The length of a slice whose bounds are named integers, or arithmetic of these.
    fn computed_length(&mut self, args: &[hir::Expr], whole: Option<Dim>) -> Option<Poly> {
        let start = self.integer_of(args.get(1)?)?;
        let end = match (args.get(2), whole) {
            (Some(end), _) => self.integer_of(end)?,
            (None, Some(Dim::Poly(whole))) => self.infer.dim(&whole),
            _ => return None,
        };
        end.subtract(&start)
    }

    /// A tensor with the first number of a slice, and the last one's end where it is given.
    fn bounded(
        &mut self,
        value: hir::Expr,
        bounds: (Option<&ast::Expr>, Option<&ast::Expr>),
        span: &Span,
    ) -> Vec<hir::Expr> {
        let start = match bounds.0 {
            Some(start) => self.place(start),
            None => self.make(Kind::Literal(Literal::I32(0)), I32, span),
        };
        let mut args = vec![value, start];
        args.extend(bounds.1.map(|end| self.place(end)));
        args
    }
}
