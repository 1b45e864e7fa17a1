//! `while` and `for`, with their variables.

use super::body::{Body, Why};
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind};
use crate::program::Span;
use crate::syntax::ast;
use crate::types::{Dim, Ty};

impl Body<'_> {
    /// Checks the initial values of a loop's variables; gives their declared types too.
    fn loop_vars(&mut self, vars: &[ast::LoopVar], span: &Span) -> Option<Vec<(hir::Expr, Ty)>> {
        if vars.is_empty() {
            self.report(
                Diagnostic::error("E0302", "a loop needs a variable")
                    .at(span, "it would have no value")
                    .note("write `with (x = start)`; the body gives the next `x`"),
            );
            return None;
        }
        let mut checked = Vec::new();
        for var in vars {
            checked.push(match &var.ty {
                Some(written) => {
                    let (ty, _) = self.annotation(written);
                    let why = Why {
                        span: Some(&written.span),
                        text: "because of this annotation",
                    };
                    (self.expect(&var.init, &ty, &why), ty)
                }
                None => {
                    let init = self.expr(&var.init, None);
                    let ty = init.ty.clone();
                    (init, ty)
                }
            });
        }
        Some(checked)
    }

    fn loop_body(&mut self, body: &ast::Expr, vars: &[ast::LoopVar], types: &[Ty]) -> hir::Expr {
        let expected = tuple_of(types);
        let names: Vec<&str> = vars.iter().map(|var| var.name.name.as_str()).collect();
        let text = format!("to become the next ({})", names.join(", "));
        let span = vars.first().map(|var| var.name.span.clone());
        let why = Why {
            span: span.as_ref(),
            text: &text,
        };
        self.next_turn(body, &expected, &why, |changing| {
            let names = names.iter().zip(changing);
            let changing: Vec<String> = names
                .filter_map(|(name, ty)| Some(format!("{name}: {} = …", ty.as_ref()?)))
                .collect();
            format!(
                "where lengths change from turn to turn, write `with ({})`",
                changing.join(", ")
            )
        })
    }

    /// Checks what a loop goes on with. If only lengths are others than before, `note` makes words of
    /// the types, with `_` for these lengths, of the variables whose they are.
    pub fn next_turn(
        &mut self,
        body: &ast::Expr,
        expected: &Ty,
        why: &Why<'_>,
        note: impl FnOnce(Vec<Option<String>>) -> String,
    ) -> hir::Expr {
        let checked = self.expr(body, Some(expected));
        if self.infer.unify(&checked.ty, expected).is_ok() {
            return checked;
        }
        let mut diagnostic = self.mismatch(&checked, expected, why);
        let parts = |ty: &Ty| match self.infer.resolve(ty) {
            Ty::Tuple(parts) => parts,
            only => vec![only],
        };
        let (found, wanted) = (parts(&checked.ty), parts(expected));
        let loose: Option<Vec<Ty>> = (found.iter().zip(&wanted))
            .map(|(found, wanted)| loosened(found, wanted))
            .collect();
        if let Some(loose) = loose.filter(|_| found.len() == wanted.len()) {
            let changed = loose.iter().zip(&wanted);
            let changed = changed.map(|(ty, wanted)| (ty != wanted).then(|| self.show(ty)));
            diagnostic = diagnostic.note(note(changed.collect()));
        }
        self.report(diagnostic);
        self.error(&checked.span)
    }

    pub fn while_loop(
        &mut self,
        cond: &ast::Expr,
        vars: &[ast::LoopVar],
        body: &ast::Expr,
        span: &Span,
        _hint: Option<&Ty>,
    ) -> hir::Expr {
        let Some(inits) = self.loop_vars(vars, span) else {
            return self.error(span);
        };
        let (inits, types): (Vec<hir::Expr>, Vec<Ty>) = inits.into_iter().unzip();
        let depth = self.scope.len();
        self.infer.enter();
        let mut locals = Vec::new();
        for (var, ty) in vars.iter().zip(&types) {
            let ty = self.infer.open(ty);
            locals.push(self.declare(&var.name, ty));
        }
        let cond = self.condition(cond);
        let body = self.loop_body(body, vars, &types);
        self.infer.leave();
        self.scope.truncate(depth);
        let ty = self.infer.open(&tuple_of(&types));
        let (cond, body) = (Box::new(cond), Box::new(body));
        self.make(
            Kind::While {
                vars: locals,
                init: inits,
                cond,
                body,
            },
            ty,
            span,
        )
    }

    pub fn for_loop(
        &mut self,
        pattern: &ast::Pattern,
        array: &ast::Expr,
        vars: &[ast::LoopVar],
        body: &ast::Expr,
        span: &Span,
        _hint: Option<&Ty>,
    ) -> hir::Expr {
        let array = self.expr(array, None);
        let element = self.element_type(&array, "a `for` loop");
        let Some(inits) = self.loop_vars(vars, span) else {
            return self.error(span);
        };
        let (mut inits, types): (Vec<hir::Expr>, Vec<Ty>) = inits.into_iter().unzip();
        let ty = tuple_of(&types);
        let depth = self.scope.len();
        self.infer.enter();
        let element = self.infer.open(&element);
        let element = self.irrefutable(pattern, &element);
        let mut binds = Vec::new();
        for (var, ty) in vars.iter().zip(&types) {
            let ty = self.infer.open(ty);
            let id = self.declare(&var.name, ty.clone());
            let kind = hir::PatternKind::Bind(id);
            binds.push(hir::Pattern {
                kind,
                ty,
                span: var.name.span.clone(),
            });
        }
        let body = self.loop_body(body, vars, &types);
        self.infer.leave();
        self.scope.truncate(depth);
        let single = inits.len() == 1;
        let init = match inits.pop() {
            Some(only) if single => only,
            Some(last) => {
                inits.push(last);
                hir::Expr {
                    kind: Kind::Tuple(inits),
                    ty: ty.clone(),
                    span: span.clone(),
                }
            }
            None => return self.error(span),
        };
        let acc = match binds.pop() {
            Some(only) if single => only,
            Some(last) => {
                binds.push(last);
                let ty = Ty::Tuple(binds.iter().map(|bind| bind.ty.clone()).collect());
                let kind = hir::PatternKind::Tuple(binds);
                hir::Pattern {
                    kind,
                    ty,
                    span: span.clone(),
                }
            }
            None => return self.error(span),
        };
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
            span,
        )
    }
}

/// The type of which both are, if they differ in lengths alone.
fn loosened(found: &Ty, wanted: &Ty) -> Option<Ty> {
    match (found, wanted) {
        (Ty::Tensor { elem, shape }, Ty::Tensor { elem: e, shape: s })
            if elem == e && shape.len() == s.len() =>
        {
            let dims = shape.iter().zip(s);
            let shape = dims.map(|(own, other)| match own == other {
                true => own.clone(),
                false => Dim::Any,
            });
            Some(Ty::Tensor {
                elem: *elem,
                shape: shape.collect(),
            })
        }
        _ => (found == wanted).then(|| wanted.clone()),
    }
}

fn tuple_of(types: &[Ty]) -> Ty {
    match types {
        [only] => only.clone(),
        many => Ty::Tuple(many.to_vec()),
    }
}
