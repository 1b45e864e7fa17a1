//! `map` and `fold`.

use super::body::{Body, Why};
use super::calls::{Args, closure_misplaced};
use super::control::let_in;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind};
use crate::program::Span;
use crate::syntax::ast;
use crate::types::{I32, Ty};

impl Body<'_> {
    /// The type of an array's elements; reports what is not an array.
    pub fn element_type(&mut self, array: &hir::Expr, what: &str) -> Ty {
        match self.infer.shallow(&array.ty) {
            Ty::Array(element) => *element,
            Ty::Error => Ty::Error,
            unknown @ Ty::Unknown(_) => {
                let element = self.infer.fresh_type();
                // An unknown agrees with any array.
                let _ = self.infer.unify(&unknown, &Ty::array(element.clone()));
                element
            }
            other => {
                let shown = self.show(&other);
                let mut diagnostic =
                    Diagnostic::error("E0304", format!("{what} goes over an array, not `{shown}`"))
                        .at(&array.span, format!("this is `{shown}`"));
                if other.elem().is_some() && !other.is_scalar() {
                    diagnostic =
                        diagnostic.note("go over its rows with `map(range(len(x)), |i| x[i])`");
                } else if other == I32 {
                    diagnostic = diagnostic.note("count with `range(n)`");
                }
                self.report(diagnostic);
                Ty::Error
            }
        }
    }

    pub fn fold(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let [ast::Arg::Value(array), ast::Arg::Value(init), closure] = args.given.as_slice() else {
            self.wrong_arguments(args, 3);
            return self.error(args.span);
        };
        let array = self.expr(array, None);
        let element = self.element_type(&array, "`fold`");
        let init = self.expr(init, hint);
        let Some(closure) = self.closure(closure, 2, args.usage) else {
            return self.error(args.span);
        };
        let ty = init.ty.clone();
        let depth = self.scope.len();
        self.infer.enter();
        let opened = (self.infer.open(&ty), self.infer.open(&element));
        let (acc, element) = match closure.params.as_slice() {
            [acc, element] => (
                self.irrefutable(acc, &opened.0),
                self.irrefutable(element, &opened.1),
            ),
            _ => return self.error(args.span),
        };
        let why = Why {
            span: Some(&init.span),
            text: "like the start",
        };
        let body = self.next_turn(&closure.body, &ty, &why, |changing| {
            let types = changing
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("`, `");
            format!(
                "`fold` keeps lengths; a loop whose variable says that they change does not: \
                 `for x in xs with (a: … = start) {{ … }}` with `{types}`"
            )
        });
        self.infer.leave();
        self.scope.truncate(depth);
        let result = self.infer.open(&ty);
        let (array, init, body) = (Box::new(array), Box::new(init), Box::new(body));
        self.make(
            Kind::Fold {
                array,
                init,
                acc,
                element,
                body,
            },
            result,
            args.span,
        )
    }

    pub fn map(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some((closure, arrays)) = args.given.split_last().filter(|(_, a)| !a.is_empty()) else {
            self.wrong_arguments(args, 2);
            return self.error(args.span);
        };
        let mut values = Vec::new();
        for array in arrays {
            match array {
                ast::Arg::Value(value) => values.push(self.expr(value, None)),
                ast::Arg::Named(ast::Ident { span, .. }, _)
                | ast::Arg::Closure(ast::Closure { span, .. }) => {
                    self.report(closure_misplaced(span));
                    return self.error(args.span);
                }
            }
        }
        let Some(closure) = self.closure(closure, values.len(), args.usage) else {
            return self.error(args.span);
        };
        if matches!(
            values.first().map(|v| self.infer.shallow(&v.ty)),
            Some(Ty::Tuple(_))
        ) {
            return self.map_tuples(values, &closure, args.span);
        }
        let mut of_arrays = arrays.iter().zip(&values);
        if of_arrays.all(|(array, value)| is_split(array) && value.ty.elem().is_some()) {
            return self.map_one(values, &closure);
        }
        let elements: Vec<Ty> = values
            .iter()
            .map(|array| self.element_type(array, "`map`"))
            .collect();
        let depth = self.scope.len();
        self.infer.enter();
        let mut params = Vec::new();
        for (pattern, element) in closure.params.iter().zip(&elements) {
            let element = self.infer.open(element);
            params.push(self.irrefutable(pattern, &element));
        }
        let body = self.expr(&closure.body, None);
        let element = self.infer.generalise(&body.ty);
        self.infer.leave();
        self.scope.truncate(depth);
        let kind = Kind::Map {
            arrays: values,
            params,
            body: Box::new(body),
        };
        self.make(kind, Ty::array(element), args.span)
    }

    /// `map` over a `split` into one part applies the closure to the tensor itself: there are no tuples of one element.
    fn map_one(&mut self, values: Vec<hir::Expr>, closure: &ast::Closure) -> hir::Expr {
        let depth = self.scope.len();
        let mut bindings = Vec::new();
        for (pattern, value) in closure.params.iter().zip(values) {
            bindings.push((self.irrefutable(pattern, &value.ty), value));
        }
        let body = self.expr(&closure.body, None);
        self.scope.truncate(depth);
        let_in(bindings, body)
    }

    /// `map` over tuples is written out once an element, so that the elements may differ in type.
    fn map_tuples(
        &mut self,
        values: Vec<hir::Expr>,
        closure: &ast::Closure,
        span: &Span,
    ) -> hir::Expr {
        let mut rows: Vec<Vec<Ty>> = Vec::new();
        for value in &values {
            match self.infer.shallow(&value.ty) {
                Ty::Tuple(elements) => rows.push(elements),
                Ty::Error => return self.error(span),
                other => {
                    let shown = self.show(&other);
                    self.report(
                        Diagnostic::error("E0304", "`map` takes either tuples or arrays").at(
                            &value.span,
                            format!("this is `{shown}`, the first is a tuple"),
                        ),
                    );
                    return self.error(span);
                }
            }
        }
        let length = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != length) {
            self.report(
                Diagnostic::error("E0304", "the tuples of a `map` are equally long")
                    .at(span, "these are not"),
            );
            return self.error(span);
        }
        let mut lets = Vec::new();
        let mut parts: Vec<Vec<hir::Expr>> = Vec::new();
        for (value, row) in values.into_iter().zip(&rows) {
            let binds: Vec<hir::Pattern> = row
                .iter()
                .map(|ty| {
                    let id = self.temporary("part", ty.clone(), span);
                    let kind = hir::PatternKind::Bind(id);
                    hir::Pattern {
                        kind,
                        ty: ty.clone(),
                        span: span.clone(),
                    }
                })
                .collect();
            parts.push(binds.iter().map(|bind| local_of(bind, span)).collect());
            let ty = value.ty.clone();
            let kind = hir::PatternKind::Tuple(binds);
            lets.push((
                hir::Pattern {
                    kind,
                    ty,
                    span: span.clone(),
                },
                value,
            ));
        }
        let mut elements = Vec::new();
        for index in 0..length {
            let depth = self.scope.len();
            let mut bindings = Vec::new();
            for (pattern, part) in closure.params.iter().zip(&parts) {
                let Some(part) = part.get(index).cloned() else {
                    continue;
                };
                let pattern = self.irrefutable(pattern, &part.ty);
                bindings.push((pattern, part));
            }
            let body = self.expr(&closure.body, None);
            self.scope.truncate(depth);
            elements.push(let_in(bindings, body));
        }
        let ty = Ty::Tuple(elements.iter().map(|element| element.ty.clone()).collect());
        let tuple = self.make(Kind::Tuple(elements), ty, span);
        let_in(lets, tuple)
    }
}

/// Whether an argument is a call of `split`.
fn is_split(argument: &ast::Arg) -> bool {
    match argument {
        ast::Arg::Value(value) => {
            matches!(&value.kind, ast::ExprKind::Call { name, .. } if name.name == "split")
        }
        _ => false,
    }
}

fn local_of(bind: &hir::Pattern, span: &Span) -> hir::Expr {
    let kind = match bind.kind {
        hir::PatternKind::Bind(id) => Kind::Local(id),
        _ => Kind::Error,
    };
    hir::Expr {
        kind,
        ty: bind.ty.clone(),
        span: span.clone(),
    }
}
