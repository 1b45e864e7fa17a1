//! Built-ins on arrays that are written out with the simpler ones: `set`, `filter`, `any`, `all`,
//! `range(a, b)`, `concat` of arrays, and slices of arrays.

use super::body::{Body, Why};
use super::calls::Args;
use super::control::let_in;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind, LocalId, Op, Pattern, PatternKind};
use crate::program::{Binary, Elem, Literal, Reduction, Span, Unary};
use crate::syntax::ast;
use crate::types::{BOOL, I32, Ty};

/// Values that are computed once and have names that no source can hold.
struct Names<'s> {
    span: &'s Span,
    bound: Vec<(Pattern, hir::Expr)>,
}

impl Body<'_> {
    /// Gives a value a name; reading it computes nothing anew.
    fn named(&mut self, names: &mut Names<'_>, name: &str, value: hir::Expr) -> hir::Expr {
        let ty = value.ty.clone();
        let local = self.temporary(name, ty.clone(), names.span);
        names
            .bound
            .push((bind(local, ty.clone(), names.span), value));
        self.make(Kind::Local(local), ty, names.span)
    }

    /// An integer that the host knows from here on.
    fn on_host(&mut self, names: &mut Names<'_>, name: &str, value: hir::Expr) -> hir::Expr {
        let read = self.op(Op::Host, vec![value], I32, names.span);
        self.named(names, name, read)
    }

    fn number(&mut self, value: i32, span: &Span) -> hir::Expr {
        self.make(Kind::Literal(Literal::I32(value)), I32, span)
    }

    fn compute(&mut self, op: Binary, lhs: &hir::Expr, rhs: &hir::Expr, span: &Span) -> hir::Expr {
        let ty = match op {
            Binary::Lt | Binary::Eq | Binary::Or | Binary::And => BOOL,
            _ => I32,
        };
        let operands = vec![lhs.clone(), rhs.clone()];
        self.op(Op::Binary(op), operands, ty, span)
    }

    fn choose(&mut self, cond: hir::Expr, then: hir::Expr, otherwise: hir::Expr) -> hir::Expr {
        let (ty, span) = (then.ty.clone(), cond.span.clone());
        let kind = Kind::If {
            cond: Box::new(cond),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        self.make(kind, ty, &span)
    }

    fn numbers_to(&mut self, count: hir::Expr, span: &Span) -> hir::Expr {
        self.op(Op::Range, vec![count], Ty::array(I32), span)
    }

    fn length(&mut self, array: &hir::Expr, span: &Span) -> hir::Expr {
        self.op(Op::Len, vec![array.clone()], I32, span)
    }

    /// `range(a, b)`: the numbers from `a` to the last one before `b`.
    pub fn range_between(&mut self, start: &ast::Expr, end: &ast::Expr, span: &Span) -> hir::Expr {
        let start = self.expect(start, &I32, &Why::NONE);
        let end = self.expect(end, &I32, &Why::NONE);
        let mut names = Names::new(span);
        let start = self.on_host(&mut names, "start", start);
        let end = self.on_host(&mut names, "end", end);
        let count = self.compute(Binary::Sub, &end, &start, span);
        let count = self.named(&mut names, "count", count);
        let zero = self.number(0, span);
        // A difference that an i32 does not hold is more than there is memory for.
        let most = self.number(i32::MAX, span);
        let wraps = self.compute(Binary::Lt, &count, &zero, span);
        let count = self.choose(wraps, most, count);
        let some = self.compute(Binary::Lt, &start, &end, span);
        let count = self.choose(some, count, zero);
        let numbers = self.numbers_to(count, span);
        let place = self.temporary("place", I32, span);
        let from = self.make(Kind::Local(place), I32, span);
        let body = self.compute(Binary::Add, &start, &from, span);
        let kind = Kind::Map {
            arrays: vec![numbers],
            params: vec![bind(place, I32, span)],
            body: Box::new(body),
        };
        let shifted = self.make(kind, Ty::array(I32), span);
        let_in(names.bound, shifted)
    }

    /// `xs[a..b]`
    pub fn array_slice(
        &mut self,
        array: hir::Expr,
        element: &Ty,
        bounds: (Option<&ast::Expr>, Option<&ast::Expr>),
        span: &Span,
    ) -> hir::Expr {
        let start = bounds.0.map(|start| self.place(start));
        let end = bounds.1.map(|end| self.place(end));
        let mut names = Names::new(span);
        let array = self.named(&mut names, "array", array);
        let start = match start {
            Some(start) => self.on_host(&mut names, "start", start),
            None => self.number(0, span),
        };
        let end = match end {
            Some(end) => self.on_host(&mut names, "end", end),
            None => self.length(&array, span),
        };
        let count = self.compute(Binary::Sub, &end, &start, span);
        let count = self.named(&mut names, "count", count);
        // A count below zero or beyond the length is an index out of range: the bound that is, or the count below zero.
        let zero = self.number(0, span);
        let length = self.length(&array, span);
        let below = self.compute(Binary::Lt, &count, &zero, span);
        let negative = self.compute(Binary::Lt, &start, &zero, span);
        let late = self.choose(below.clone(), count.clone(), end);
        let index = self.choose(negative, start.clone(), late);
        let beyond = self.compute(Binary::Lt, &length, &count, span);
        let wrong = self.compute(Binary::Or, &below, &beyond, span);
        let places = self.numbers_to(length, span);
        let failing = self.op(Op::Index, vec![places, index], I32, span);
        let count = self.choose(wrong, failing, count);
        let numbers = self.numbers_to(count, span);
        let place = self.temporary("place", I32, span);
        let from = self.make(Kind::Local(place), I32, span);
        let at = self.compute(Binary::Add, &from, &start, span);
        self.infer.enter();
        let opened = self.infer.open(element);
        let body = self.op(Op::Index, vec![array, at], opened, span);
        self.infer.leave();
        let kind = Kind::Map {
            arrays: vec![numbers],
            params: vec![bind(place, I32, span)],
            body: Box::new(body),
        };
        let slice = self.make(kind, Ty::array(element.clone()), span);
        let_in(names.bound, slice)
    }

    /// `set(xs, i, x)`: the array with another element at one place.
    pub fn set(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([array, index, value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let span = args.span;
        let array = self.expr(array, hint);
        let element = self.element_type(&array, "`set`");
        let index = self.place(index);
        let why = Why {
            span: Some(&array.span),
            text: "like the array's elements",
        };
        let value = self.expect(value, &element, &why);
        let mut names = Names::new(span);
        let array = self.named(&mut names, "array", array);
        let value = self.named(&mut names, "value", value);
        let index = self.on_host(&mut names, "index", index);
        let length = self.length(&array, span);
        let places = self.numbers_to(length, span);
        let places = self.named(&mut names, "places", places);
        let index = self.op(Op::Index, vec![places.clone(), index], I32, span);
        let index = self.named(&mut names, "index", index);
        let place = self.temporary("place", I32, span);
        let from = self.make(Kind::Local(place), I32, span);
        let here = self.compute(Binary::Eq, &from, &index, span);
        self.infer.enter();
        let opened = self.infer.open(&element);
        let old = self.temporary("old", opened.clone(), span);
        let kept = self.make(Kind::Local(old), opened, span);
        let mut body = self.choose(here, value, kept);
        body.ty = self.infer.open(&element);
        self.infer.leave();
        let kind = Kind::Map {
            arrays: vec![places, array],
            params: vec![bind(place, I32, span), bind(old, element.clone(), span)],
            body: Box::new(body),
        };
        let changed = self.make(kind, Ty::array(element), span);
        let_in(names.bound, changed)
    }

    /// `concat(xs, ys, …)` of arrays, one behind the other.
    pub fn concat_arrays(
        &mut self,
        args: &Args<'_>,
        first: hir::Expr,
        rest: Vec<hir::Expr>,
    ) -> hir::Expr {
        let span = args.span;
        if let Some(axis) = args.axis {
            self.report(
                Diagnostic::error("E0302", "`concat` of arrays takes no axis")
                    .at(&axis.span, "not expected here")
                    .note("arrays are put one behind the other: `concat(xs, ys)`"),
            );
            return self.error(span);
        }
        let element = self.element_type(&first, "`concat`");
        let ty = Ty::array(element.clone());
        let first_span = first.span.clone();
        let mut joined = first;
        for array in rest {
            let why = Why {
                span: Some(&first_span),
                text: "like the first",
            };
            let array = self.coerce(array, &ty, &why);
            let (acc, array_ty) = (self.temporary("joined", ty.clone(), span), ty.clone());
            let held = self.make(Kind::Local(acc), array_ty, span);
            self.infer.enter();
            let opened = self.infer.open(&element);
            let local = self.temporary("element", opened.clone(), span);
            let value = self.make(Kind::Local(local), opened, span);
            self.infer.leave();
            let body = self.op(Op::Push, vec![held, value], ty.clone(), span);
            let kind = Kind::Fold {
                array: Box::new(array),
                init: Box::new(joined),
                acc: bind(acc, ty.clone(), span),
                element: bind(local, element.clone(), span),
                body: Box::new(body),
            };
            joined = self.make(kind, ty.clone(), span);
        }
        joined
    }

    /// `filter(xs, |x| e)`: the elements for which `e` holds. It is asked of all before any is kept, so that those
    /// that tensors decide are computed together.
    pub fn filter(&mut self, args: &Args<'_>) -> hir::Expr {
        let [ast::Arg::Value(array), closure] = args.given.as_slice() else {
            self.wrong_arguments(args, 2);
            return self.error(args.span);
        };
        let span = args.span;
        let array = self.expr(array, None);
        let element = self.element_type(&array, "`filter`");
        let Some(closure) = self.closure(closure, 1, args.usage) else {
            return self.error(span);
        };
        let mut names = Names::new(span);
        let array = self.named(&mut names, "array", array);
        let depth = self.scope.len();
        self.infer.enter();
        let opened = self.infer.open(&element);
        let pattern = match closure.params.first() {
            Some(pattern) => self.irrefutable(pattern, &opened),
            None => return self.error(span),
        };
        let cond = self.condition(&closure.body);
        self.infer.leave();
        self.scope.truncate(depth);
        let kind = Kind::Map {
            arrays: vec![array.clone()],
            params: vec![pattern],
            body: Box::new(cond),
        };
        let flags = self.make(kind, Ty::array(BOOL), span);
        let flags = self.named(&mut names, "flags", flags);

        let ty = Ty::array(element.clone());
        let acc = self.temporary("kept", ty.clone(), span);
        let held = self.make(Kind::Local(acc), ty.clone(), span);
        let place = self.temporary("place", I32, span);
        let at = self.make(Kind::Local(place), I32, span);
        self.infer.enter();
        let opened = self.infer.open(&element);
        let value = self.op(Op::Index, vec![array.clone(), at.clone()], opened, span);
        self.infer.leave();
        let holds = self.op(Op::Index, vec![flags, at], BOOL, span);
        let pushed = self.op(Op::Push, vec![held.clone(), value], ty.clone(), span);
        let body = self.choose(holds, pushed, held);
        let none = self.make(Kind::Array(Vec::new()), ty.clone(), span);
        let length = self.length(&array, span);
        let kind = Kind::Fold {
            array: Box::new(self.numbers_to(length, span)),
            init: Box::new(none),
            acc: bind(acc, ty.clone(), span),
            element: bind(place, I32, span),
            body: Box::new(body),
        };
        let kept = self.make(kind, ty, span);
        let_in(names.bound, kept)
    }

    /// `any(xs, |x| e)`, `any(flags)` of an array and of a tensor; `all` likewise.
    pub fn any_or_all(&mut self, args: &Args<'_>, op: Binary) -> hir::Expr {
        let [ast::Arg::Value(first), rest @ ..] = args.given.as_slice() else {
            self.wrong_arguments(args, 2);
            return self.error(args.span);
        };
        let span = args.span;
        let flags = if rest.is_empty() {
            let value = self.expr(first, None);
            if matches!(self.infer.shallow(&value.ty), Ty::Tensor { .. }) {
                return self.any_or_all_of_tensor(args, value, op);
            }
            let why = Why {
                span: Some(span),
                text: "to go over",
            };
            self.coerce(value, &Ty::array(BOOL), &why)
        } else {
            let flags = self.map(args);
            if matches!(flags.ty, Ty::Error) {
                return flags;
            }
            let body = match &flags.kind {
                Kind::Map { body, .. } => body.span.clone(),
                _ => flags.span.clone(),
            };
            if self.infer.unify(&flags.ty, &Ty::array(BOOL)).is_err() {
                let shown = match self.infer.shallow(&flags.ty) {
                    Ty::Array(element) => self.show(&element),
                    other => self.show(&other),
                };
                let name = &args.name.name;
                self.report(
                    Diagnostic::error(
                        "E0307",
                        format!("`{name}` asks for a `bool`, not `{shown}`"),
                    )
                    .at(&body, format!("this is `{shown}`"))
                    .note(format!("it is used as `{}`", args.usage)),
                );
                return self.error(span);
            }
            flags
        };
        let start = Kind::Literal(Literal::Bool(op == Binary::And));
        let start = self.make(start, BOOL, span);
        let acc = self.temporary("so_far", BOOL, span);
        let flag = self.temporary("flag", BOOL, span);
        let left = self.make(Kind::Local(acc), BOOL, span);
        let right = self.make(Kind::Local(flag), BOOL, span);
        let body = self.compute(op, &left, &right, span);
        let kind = Kind::Fold {
            array: Box::new(flags),
            init: Box::new(start),
            acc: bind(acc, BOOL, span),
            element: bind(flag, BOOL, span),
            body: Box::new(body),
        };
        self.make(kind, BOOL, span)
    }

    /// A count of elements: of those that hold for `any`, of those that do not for `all`.
    fn any_or_all_of_tensor(&mut self, args: &Args<'_>, value: hir::Expr, op: Binary) -> hir::Expr {
        let span = args.span;
        let Ty::Tensor {
            elem: Elem::Bool,
            shape,
        } = self.infer.shallow(&value.ty)
        else {
            return self.refuse(args, &value, "bools");
        };
        if shape.is_empty() {
            return self.refuse(args, &value, "an array or a tensor of bools");
        }
        let counted = match op {
            Binary::Or => value,
            _ => {
                let ty = value.ty.clone();
                self.op(Op::Unary(Unary::Not), vec![value], ty, span)
            }
        };
        let ty = Ty::Tensor {
            elem: Elem::I32,
            shape,
        };
        let numbers = self.op(Op::Cast, vec![counted], ty, span);
        let count = self.reduce(args, numbers, Reduction::Sum);
        let Ty::Tensor { shape, .. } = self.infer.shallow(&count.ty) else {
            return count;
        };
        let zero = self.number(0, span);
        let ty = Ty::Tensor {
            elem: Elem::Bool,
            shape,
        };
        let compare = match op {
            Binary::Or => Binary::Gt,
            _ => Binary::Eq,
        };
        self.op(Op::Binary(compare), vec![count, zero], ty, span)
    }
}

impl<'s> Names<'s> {
    fn new(span: &'s Span) -> Self {
        Names {
            span,
            bound: Vec::new(),
        }
    }
}

fn bind(local: LocalId, ty: Ty, span: &Span) -> Pattern {
    Pattern {
        kind: PatternKind::Bind(local),
        ty,
        span: span.clone(),
    }
}
