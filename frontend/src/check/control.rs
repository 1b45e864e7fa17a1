//! Blocks, branches, loops, `map` and `fold`.

use super::body::{Body, Why};
use super::explain::first_of;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind};
use crate::program::{Elem, Span};
use crate::syntax::ast;
use crate::types::{BOOL, Ty};

/// Of a branch whose type is that of the first one.
pub const LIKE_FIRST_BRANCH: &str = "like the first branch";

/// Of an arm whose type is that of the first one.
pub const LIKE_FIRST_ARM: &str = "like the first arm";

impl Body<'_> {
    pub fn block(
        &mut self,
        statements: &[ast::Statement],
        result: &ast::Expr,
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let depth = self.scope.len();
        let mut checked = Vec::new();
        for statement in statements {
            checked.push(match statement {
                ast::Statement::Let(binding) => Some(self.binding(binding)),
                ast::Statement::Phase(phase) => {
                    self.check_phase(phase, span);
                    None
                }
            });
        }
        let mut body = self.expr(result, hint);
        self.scope.truncate(depth);
        for statement in checked.into_iter().rev() {
            let ty = body.ty.clone();
            let span = body.span.clone();
            let kind = match statement {
                Some((pattern, value)) => Kind::Let {
                    pattern,
                    value: Box::new(value),
                    body: Box::new(body),
                },
                None => Kind::Phase(Box::new(body)),
            };
            body = hir::Expr { kind, ty, span };
        }
        body
    }

    /// All instances go through the same phases, so one begins where each instance comes by once.
    fn check_phase(&mut self, phase: &Span, block: &Span) {
        if self.phases.as_ref() != Some(block) {
            self.report(
                Diagnostic::error("E0709", "a phase cannot begin here")
                    .at(phase, "not a statement of the body of `main` itself")
                    .note("`phase;` stands among the `let`s of `main`, which each instance passes once"),
            );
        }
    }

    fn binding(&mut self, binding: &ast::Let) -> (hir::Pattern, hir::Expr) {
        let (value, ty) = match &binding.ty {
            Some(written) => {
                let (ty, counted) = self.annotation(written);
                let why = Why {
                    span: Some(&written.span),
                    text: "because of this annotation",
                };
                let value = self.expr(&binding.value, Some(&ty));
                let value = match self.same_lengths(&value, &ty, counted) {
                    Some(same) => same,
                    None => self.coerce(value, &ty, &why),
                };
                (value, ty)
            }
            None => {
                // The pattern tells `split` how many parts are wanted.
                let hint = self.pattern_hint(&binding.pattern);
                let value = self.expr(&binding.value, hint.as_ref());
                let ty = value.ty.clone();
                (value, ty)
            }
        };
        let ty = self.infer.open(&ty);
        let pattern = self.irrefutable(&binding.pattern, &ty);
        self.bind_lengths(&pattern, &value);
        (pattern, value)
    }

    fn pattern_hint(&mut self, pattern: &ast::Pattern) -> Option<Ty> {
        match &pattern.kind {
            ast::PatternKind::Tuple(parts) if parts.len() > 1 => Some(Ty::Tuple(
                parts.iter().map(|_| self.infer.fresh_type()).collect(),
            )),
            _ => None,
        }
    }

    /// A condition is one `bool`; a tensor of several is a common slip.
    pub fn condition(&mut self, cond: &ast::Expr) -> hir::Expr {
        let checked = self.expr(cond, Some(&BOOL));
        if self.infer.unify(&checked.ty, &BOOL).is_ok() {
            return checked;
        }
        let shown = self.show(&checked.ty);
        let mut diagnostic =
            Diagnostic::error("E0307", format!("a condition is one `bool`, not `{shown}`"))
                .at(&checked.span, format!("this is `{shown}`"));
        if let Ty::Tensor { elem, shape } = self.infer.shallow(&checked.ty) {
            diagnostic = match (elem, shape.len()) {
                (Elem::Bool, rank) => diagnostic.note(format!(
                    "ask for one element, `{}`, or for several: `any(…)`, `all(…)`",
                    first_of(rank)
                )),
                (Elem::I32, 0) => diagnostic.note("compare it: `x != 0`"),
                (_, 0) => diagnostic.note("compare it: `x > 0.5`"),
                (_, rank) => {
                    diagnostic.note(format!("compare one element: `{} > 0`", first_of(rank)))
                }
            };
        }
        self.report(diagnostic);
        self.error(&checked.span)
    }

    pub fn if_else(
        &mut self,
        cond: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let cond = self.condition(cond);
        let then = self.expr(then, hint);
        let ty = self.branch_type(&then, hint);
        let why = Why {
            span: Some(&then.span),
            text: LIKE_FIRST_BRANCH,
        };
        let otherwise = self.expect(otherwise, &ty, &why);
        let ty = self.infer.open(&ty);
        let (cond, then, otherwise) = (Box::new(cond), Box::new(then), Box::new(otherwise));
        self.make(
            Kind::If {
                cond,
                then,
                otherwise,
            },
            ty,
            span,
        )
    }

    /// The type that all branches agree on: the expected one if the first branch has it.
    fn branch_type(&mut self, first: &hir::Expr, hint: Option<&Ty>) -> Ty {
        match hint {
            Some(hint) if self.infer.unify(&first.ty, hint).is_ok() => hint.clone(),
            _ => first.ty.clone(),
        }
    }

    pub fn match_arms(
        &mut self,
        scrutinee: &ast::Expr,
        arms: &[ast::Arm],
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let scrutinee = self.expr(scrutinee, None);
        let mut checked: Vec<hir::Arm> = Vec::new();
        let mut ty: Option<Ty> = None;
        let mut sound = true;
        for arm in arms {
            let depth = self.scope.len();
            let before = self.diagnostics.len();
            let pattern = self.pattern(&arm.pattern, &scrutinee.ty);
            sound &= self.diagnostics.len() == before && !is_broken(&arm.pattern);
            let guard = arm.guard.as_ref().map(|guard| self.condition(guard));
            let body = match (&ty, checked.first()) {
                (Some(ty), Some(first)) => {
                    let first = first.body.span.clone();
                    let why = Why {
                        span: Some(&first),
                        text: LIKE_FIRST_ARM,
                    };
                    self.expect(&arm.body, &ty.clone(), &why)
                }
                _ => {
                    let body = self.expr(&arm.body, hint);
                    ty = Some(self.branch_type(&body, hint));
                    body
                }
            };
            self.scope.truncate(depth);
            checked.push(hir::Arm {
                pattern,
                guard,
                body,
            });
        }
        // What a pattern with a mistake was meant to match is not known.
        if sound {
            self.check_arms(&checked, &scrutinee, span);
        }
        let Some(ty) = ty else {
            return self.error(span);
        };
        let ty = self.infer.open(&ty);
        self.make(
            Kind::Match {
                scrutinee: Box::new(scrutinee),
                arms: checked,
            },
            ty,
            span,
        )
    }
}

/// `let` for each binding, the first outermost.
pub fn let_in(bindings: Vec<(hir::Pattern, hir::Expr)>, body: hir::Expr) -> hir::Expr {
    bindings
        .into_iter()
        .rev()
        .fold(body, |body, (pattern, value)| {
            let (ty, span) = (body.ty.clone(), body.span.clone());
            let kind = Kind::Let {
                pattern,
                value: Box::new(value),
                body: Box::new(body),
            };
            hir::Expr { kind, ty, span }
        })
}

/// Whether a part of the pattern did not parse.
fn is_broken(pattern: &ast::Pattern) -> bool {
    match &pattern.kind {
        ast::PatternKind::Error => true,
        ast::PatternKind::Constructor { fields, .. } => {
            fields.iter().any(|field| is_broken(&field.pattern))
        }
        ast::PatternKind::Tuple(parts) | ast::PatternKind::Or(parts) => parts.iter().any(is_broken),
        _ => false,
    }
}
