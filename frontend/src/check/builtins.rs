//! The built-in functions: their names, and those on arrays and scalars.

use super::body::{Body, Why};
use super::calls::{Args, closure_misplaced};
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind, Op};
use crate::program::{Binary, Elem, Reduction, Span, Unary};
use crate::syntax::ast::{self, Arg};
use crate::types::{Dim, I32, Ty};

/// Every built-in with how it is used; the prelude adds more functions, written in the language.
pub const BUILTINS: &[(&str, &str)] = &[
    ("len", "len(x)"),
    ("push", "push(array, value)"),
    ("reverse", "reverse(array)"),
    ("set", "set(array, index, value)"),
    ("range", "range(count) or range(start, end)"),
    ("filter", "filter(array, |element| …)"),
    (
        "any",
        "any(array, |element| …), any(bools) or any(tensor, axis = 0)",
    ),
    (
        "all",
        "all(array, |element| …), all(bools) or all(tensor, axis = 0)",
    ),
    ("map", "map(array, …, |element, …| …)"),
    ("fold", "fold(array, start, |acc, element| …)"),
    ("sum", "sum(array) or sum(tensor, axis = 0)"),
    ("max", "max(a, b) or max(tensor, axis = 0)"),
    ("min", "min(a, b) or min(tensor, axis = 0)"),
    ("mean", "mean(tensor, axis = 0)"),
    ("stack", "stack(array)"),
    ("sigmoid", "sigmoid(x)"),
    ("tanh", "tanh(x)"),
    ("exp", "exp(x)"),
    ("log", "log(x)"),
    ("sqrt", "sqrt(x)"),
    ("sin", "sin(x)"),
    ("cos", "cos(x)"),
    ("erf", "erf(x)"),
    ("abs", "abs(x)"),
    ("relu", "relu(x)"),
    ("pow", "pow(a, b)"),
    ("softmax", "softmax(x) or softmax(x, axis = 0)"),
    ("argmax", "argmax(x) or argmax(x, axis = 0)"),
    ("argmin", "argmin(x) or argmin(x, axis = 0)"),
    ("sort", "sort(x) or sort(x, axis = 0)"),
    ("argsort", "argsort(x) or argsort(x, axis = 0)"),
    (
        "topk",
        "let (values, indices) = topk(x, k) or topk(x, k, axis = 0)",
    ),
    ("cumsum", "cumsum(x) or cumsum(x, axis = 0)"),
    ("one_hot", "one_hot(indices, C)"),
    ("einsum", "einsum(\"ij,jk->ik\", a, b)"),
    ("segment_sum", "segment_sum(x, segments, C)"),
    ("scatter", "scatter(x, indices, rows)"),
    ("scatter_add", "scatter_add(x, indices, rows)"),
    ("split", "let (a, b) = split(x) or split(x, 2, axis = 0)"),
    ("concat", "concat(a, b, …) or concat(a, b, axis = 0)"),
    ("reshape", "reshape(x, [n, 2*D])"),
    ("transpose", "transpose(x) or transpose(x, [1, 0, 2])"),
    ("zeros", "zeros([n, D])"),
    ("ones", "ones([n, D])"),
    ("fill", "fill([n, D], value)"),
    ("select", "select(condition, a, b)"),
    ("f32", "f32(x)"),
    ("i32", "i32(x)"),
    ("dim", "dim(x, axis)"),
    ("gather", "gather(table, indices)"),
    ("iota", "iota([n, n], axis)"),
    ("debug", "debug(\"text\", value)"),
    ("random", "random(counter) or random(counter, [D])"),
];

pub fn is_builtin(name: &str) -> bool {
    BUILTINS.iter().any(|(known, _)| *known == name)
}

fn unary_op(name: &str) -> Option<Unary> {
    Some(match name {
        "sigmoid" => Unary::Sigmoid,
        "tanh" => Unary::Tanh,
        "exp" => Unary::Exp,
        "log" => Unary::Log,
        "sqrt" => Unary::Sqrt,
        "sin" => Unary::Sin,
        "cos" => Unary::Cos,
        "erf" => Unary::Erf,
        "abs" => Unary::Abs,
        "relu" => Unary::Relu,
        _ => return None,
    })
}

impl Body<'_> {
    pub fn builtin(
        &mut self,
        name: &ast::Ident,
        usage: &'static str,
        args: &[Arg],
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let mut given = Vec::new();
        let mut axis = None;
        for arg in args {
            match arg {
                Arg::Named(label, value) if label.name == "axis" && axis.is_none() => {
                    axis = Some(value);
                }
                Arg::Named(label, _) => {
                    self.report(
                        Diagnostic::error(
                            "E0302",
                            format!("`{}` has no argument by name `{}`", name.name, label.name),
                        )
                        .at(&label.span, "not expected here")
                        .note(format!("it is used as `{usage}`")),
                    );
                    return self.error(span);
                }
                other => given.push(other),
            }
        }
        let args = Args {
            name,
            span,
            usage,
            given,
            axis,
        };
        if let Some(axis) = args.axis
            && !usage.contains("axis =")
        {
            self.report(
                Diagnostic::error("E0302", format!("`{}` takes no axis", name.name))
                    .at(&axis.span, "not expected here")
                    .note(format!("it is used as `{usage}`")),
            );
            return self.error(span);
        }
        if let Some(op) = unary_op(&name.name) {
            let Some([value]) = self.exactly(&args) else {
                return self.error(span);
            };
            let value = self.expr(value, hint);
            return self.elementwise(&name.name, op, value, span);
        }
        match name.name.as_str() {
            "len" => self.len(&args),
            "push" => self.push(&args, hint),
            "reverse" => self.reverse(&args, hint),
            "set" => self.set(&args, hint),
            "range" => self.range(&args),
            "filter" => self.filter(&args),
            "any" => self.any_or_all(&args, Binary::Or),
            "all" => self.any_or_all(&args, Binary::And),
            "map" => self.map(&args),
            "fold" => self.fold(&args, hint),
            "sum" => self.sum(&args),
            "max" => self.extreme(&args, Binary::Max, Reduction::Max, hint),
            "min" => self.extreme(&args, Binary::Min, Reduction::Min, hint),
            "mean" => self.reduction(&args, Reduction::Mean),
            "stack" => self.stack(&args),
            "pow" => self.pairwise(&args, Binary::Pow, hint),
            "select" => self.select(&args, hint),
            "f32" => self.cast(&args, Elem::F32),
            "i32" => self.cast(&args, Elem::I32),
            "random" => self.random(&args),
            "debug" => self.debug(&args, hint),
            _ => self.tensor_builtin(&args, hint),
        }
    }

    /// `debug("text", value)`: the value.
    fn debug(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([text, value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, hint);
        let ast::ExprKind::Text(text) = &text.kind else {
            self.report(
                Diagnostic::error("E0309", "the text of `debug` is written in the program")
                    .at(&text.span, "expected a text in double quotes")
                    .note(format!("it is used as `{}`", args.usage)),
            );
            return self.error(args.span);
        };
        let ty = value.ty.clone();
        self.op(Op::Debug(text.clone()), vec![value], ty, args.span)
    }

    pub fn wrong_arguments(&mut self, args: &Args<'_>, wanted: usize) {
        if !self.wrong_count(
            &format!("`{}`", args.name.name),
            wanted,
            args.given.len(),
            args.span,
            args.usage,
        ) {
            // The number is right, so an argument is of the wrong kind.
            let closure = args.given.iter().find_map(|arg| match arg {
                Arg::Closure(closure) => Some(closure.span.clone()),
                _ => None,
            });
            let span = closure.unwrap_or_else(|| args.span.clone());
            self.report(closure_misplaced(&span).note(format!("it is used as `{}`", args.usage)));
        }
    }

    /// The arguments as values, exactly `N` of them.
    pub fn exactly<'e, const N: usize>(&mut self, args: &Args<'e>) -> Option<[&'e ast::Expr; N]> {
        let values = self.values(args)?;
        let found: Result<[&ast::Expr; N], _> = values.try_into();
        if found.is_err() {
            self.wrong_arguments(args, N);
        }
        found.ok()
    }

    /// The arguments as values; a closure among them is reported.
    pub fn values<'e>(&mut self, args: &Args<'e>) -> Option<Vec<&'e ast::Expr>> {
        let mut values = Vec::new();
        for arg in &args.given {
            match arg {
                Arg::Value(value) => values.push(value),
                Arg::Closure(ast::Closure { span, .. })
                | Arg::Named(ast::Ident { span, .. }, _) => {
                    self.report(closure_misplaced(span));
                    return None;
                }
            }
        }
        Some(values)
    }

    pub fn op(&mut self, op: Op, args: Vec<hir::Expr>, ty: Ty, span: &Span) -> hir::Expr {
        self.make(Kind::Op(op, args), ty, span)
    }

    /// Reports an argument of a type that the built-in does not take.
    pub fn refuse(&mut self, args: &Args<'_>, value: &hir::Expr, wanted: &str) -> hir::Expr {
        if !matches!(self.infer.shallow(&value.ty), Ty::Error) {
            let shown = self.show(&value.ty);
            let message = format!("`{}` does not apply to `{shown}`", args.name.name);
            self.report(
                Diagnostic::error("E0303", message)
                    .at(&value.span, format!("this is `{shown}`, expected {wanted}"))
                    .note(format!("it is used as `{}`", args.usage)),
            );
        }
        self.error(args.span)
    }

    fn len(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, None);
        match self.infer.shallow(&value.ty) {
            Ty::Array(_) => self.op(Op::Len, vec![value], I32, args.span),
            Ty::Tensor { shape, .. } if !shape.is_empty() => {
                self.op(Op::DimSize(0), vec![value], I32, args.span)
            }
            _ => self.refuse(args, &value, "an array or a tensor"),
        }
    }

    fn push(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([array, value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let array = self.expr(array, hint);
        let element = self.element_type(&array, "`push`");
        let why = Why {
            span: Some(&array.span),
            text: "like the array's elements",
        };
        let value = self.expect(value, &element, &why);
        self.op(Op::Push, vec![array, value], Ty::array(element), args.span)
    }

    fn reverse(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([array]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let array = self.expr(array, hint);
        let element = self.element_type(&array, "`reverse`");
        self.op(Op::Reverse, vec![array], Ty::array(element), args.span)
    }

    fn range(&mut self, args: &Args<'_>) -> hir::Expr {
        if let [Arg::Value(start), Arg::Value(end)] = args.given.as_slice() {
            return self.range_between(start, end, args.span);
        }
        let Some([count]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let count = self.expect(count, &I32, &Why::NONE);
        self.op(Op::Range, vec![count], Ty::array(I32), args.span)
    }

    fn sum(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(values) = self.values(args) else {
            return self.error(args.span);
        };
        let Some(first) = values.first() else {
            self.wrong_arguments(args, 1);
            return self.error(args.span);
        };
        let value = self.expr(first, None);
        let Ty::Array(element) = self.infer.shallow(&value.ty) else {
            return self.reduce(args, value, Reduction::Sum);
        };
        if self.wrong_count(
            "`sum` of an array",
            1,
            args.given.len(),
            args.span,
            args.usage,
        ) {
            return self.error(args.span);
        }
        let element = self.infer.shallow(&element);
        match &element {
            Ty::Tensor {
                elem: Elem::F32 | Elem::I32,
                shape,
            } if !shape.contains(&Dim::Any) => {
                self.of_elements(Op::SumArray, value, element, args.span)
            }
            Ty::Tensor {
                elem: Elem::F32 | Elem::I32,
                ..
            } => self.refuse(args, &value, "elements of one shape"),
            _ => self.refuse(args, &value, "an array of numbers or tensors"),
        }
    }

    fn extreme(
        &mut self,
        args: &Args<'_>,
        pair: Binary,
        reduction: Reduction,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        if args.given.len() == 1 {
            return self.reduction(args, reduction);
        }
        if let Some(axis) = args.axis {
            self.report(
                Diagnostic::error(
                    "E0302",
                    format!("`{}` of two takes no axis", args.name.name),
                )
                .at(&axis.span, "not expected here")
                .note(format!("it is used as `{}`", args.usage)),
            );
            return self.error(args.span);
        }
        self.pairwise(args, pair, hint)
    }

    fn pairwise(&mut self, args: &Args<'_>, op: Binary, hint: Option<&Ty>) -> hir::Expr {
        let Some([lhs, rhs]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let (lhs, rhs) = self.operands(lhs, rhs, hint);
        self.combine(op, &args.name.name, lhs, rhs, &args.name.span, args.span)
    }

    fn select(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([cond, then, otherwise]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let cond = self.expr(cond, None);
        let (then, otherwise) = self.operands(then, otherwise, hint);
        let types = [&cond, &then, &otherwise].map(|value| self.infer.shallow(&value.ty));
        let [
            Ty::Tensor {
                elem: Elem::Bool,
                shape: cond_shape,
            },
            left,
            right,
        ] = types
        else {
            return self.refuse(args, &cond, "bool");
        };
        let (
            Ty::Tensor {
                elem: e1,
                shape: s1,
            },
            Ty::Tensor {
                elem: e2,
                shape: s2,
            },
        ) = (&left, &right)
        else {
            let culprit = if left.elem().is_none() {
                &then
            } else {
                &otherwise
            };
            return self.refuse(args, culprit, "a scalar or a tensor");
        };
        if e1 != e2 {
            let expected = left.clone();
            let why = Why {
                span: Some(&then.span),
                text: "like the other",
            };
            self.coerce(otherwise, &expected, &why);
            return self.error(args.span);
        }
        let shape = self
            .broadcast(s1, s2)
            .and_then(|shape| self.broadcast(&cond_shape, &shape));
        match shape {
            Ok(shape) => {
                let ty = Ty::Tensor { elem: *e1, shape };
                self.op(Op::Select, vec![cond, then, otherwise], ty, args.span)
            }
            Err((left, right)) => {
                let (left, right) = (self.show_dim(&left), self.show_dim(&right));
                let mut diagnostic = Diagnostic::error(
                    "E0402",
                    format!("the shapes in `select` do not fit: {left} against {right}"),
                )
                .at(&args.name.span, "needs equal dims, or a 1 that is repeated");
                for value in [&cond, &then, &otherwise] {
                    let shown = self.show(&value.ty);
                    diagnostic = diagnostic.see(&value.span, format!("this is `{shown}`"));
                }
                self.report(diagnostic);
                self.error(args.span)
            }
        }
    }

    fn cast(&mut self, args: &Args<'_>, elem: Elem) -> hir::Expr {
        let Some([value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, None);
        match self.infer.shallow(&value.ty) {
            Ty::Tensor { elem: own, .. } if own == elem => value,
            Ty::Tensor { shape, .. } => {
                self.op(Op::Cast, vec![value], Ty::Tensor { elem, shape }, args.span)
            }
            _ => self.refuse(args, &value, "a scalar or a tensor"),
        }
    }

    fn random(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(values) = self.values(args) else {
            return self.error(args.span);
        };
        let (counter, shape) = match values.as_slice() {
            [counter] => (counter, Some((Vec::new(), Vec::new()))),
            [counter, shape] => (counter, self.sizes(shape)),
            _ => {
                self.wrong_arguments(args, 1);
                return self.error(args.span);
            }
        };
        let counter = self.expect(counter, &I32, &Why::NONE);
        let Some((shape, counted)) = shape else {
            return self.error(args.span);
        };
        let ty = Ty::tensor(Elem::F32, shape);
        let random = self.op(Op::Random, vec![counter], ty, args.span);
        self.with_sizes(counted, random)
    }
}
