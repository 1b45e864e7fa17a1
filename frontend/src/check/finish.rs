//! The end of a function's check: what inference found is written into the tree.

use super::body::Body;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, LocalId, Op, Pattern, PatternKind};
use crate::program::Span;
use crate::types::Ty;

impl Body<'_> {
    /// Resolves every type of the function and reports those that nothing determines.
    pub fn finish(
        &mut self,
        params: Vec<LocalId>,
        mut body: hir::Expr,
        span: &Span,
    ) -> hir::Function {
        let equation = match self.infer.settle() {
            Ok(()) => self.infer.take_unsettled(),
            Err(equation) => Some(equation),
        };
        if let Some((left, right)) = equation {
            let (left, right) = (self.show_dim(&left), self.show_dim(&right));
            self.report(
                Diagnostic::error("E0401", format!("cannot make {left} equal to {right}"))
                    .at(span, "a call in here has dims that nothing determines"),
            );
        }
        // After other mistakes, what they left open is not a mistake of its own.
        let silent = !self.diagnostics.is_empty();
        let mut finish = Finish {
            body: self,
            reported: silent,
        };
        finish.expr(&mut body);
        let mut locals = std::mem::take(&mut self.locals);
        for local in &mut locals {
            local.ty = self.infer.resolve(&local.ty);
        }
        hir::Function {
            params,
            locals,
            body,
        }
    }
}

struct Finish<'b, 'a> {
    body: &'b mut Body<'a>,
    reported: bool,
}

impl Finish<'_, '_> {
    fn ty(&mut self, ty: &mut Ty, span: &Span) {
        *ty = self.body.infer.resolve(ty);
        let mut unknown = has_unknown(ty);
        ty.visit_dims(&mut |dim| unknown |= is_unknown(dim));
        if unknown && !self.reported {
            self.reported = true;
            let shown = self.body.show(ty);
            self.body.report(
                Diagnostic::error("E0306", "the type of this is not known")
                    .at(span, format!("all that is known is `{shown}`"))
                    .note("write it: `let x: [f32[H]] = []`"),
            );
        }
    }

    fn dim(&mut self, dim: &mut Poly, span: &Span) {
        *dim = self.body.infer.dim(dim);
        if is_unknown(dim) && !self.reported {
            self.reported = true;
            self.body.report(
                Diagnostic::error("E0306", "a dim of this is not known")
                    .at(span, "nothing here determines it"),
            );
        }
    }

    fn expr(&mut self, expr: &mut hir::Expr) {
        let span = expr.span.clone();
        match &mut expr.kind {
            Kind::Error | Kind::Literal(_) | Kind::Local(_) | Kind::Param(_) => {}
            Kind::Dim(dim) => self.dim(dim, &span),
            Kind::Let {
                pattern,
                value,
                body,
            } => {
                self.pattern(pattern);
                self.expr(value);
                self.expr(body);
            }
            Kind::Phase(body) => self.expr(body),
            Kind::Length { dim, count, body } => {
                self.dim(dim, &span);
                self.expr(count);
                self.expr(body);
            }
            Kind::Tuple(parts) | Kind::Array(parts) | Kind::Construct { fields: parts, .. } => {
                parts.iter_mut().for_each(|part| self.expr(part));
            }
            Kind::Match { scrutinee, arms } => {
                self.expr(scrutinee);
                for arm in arms {
                    self.pattern(&mut arm.pattern);
                    arm.guard.iter_mut().for_each(|guard| self.expr(guard));
                    self.expr(&mut arm.body);
                }
            }
            Kind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond);
                self.expr(then);
                self.expr(otherwise);
            }
            Kind::While {
                init, cond, body, ..
            } => {
                init.iter_mut().for_each(|init| self.expr(init));
                self.expr(cond);
                self.expr(body);
            }
            Kind::Map {
                arrays,
                params,
                body,
            } => {
                arrays.iter_mut().for_each(|array| self.expr(array));
                params.iter_mut().for_each(|param| self.pattern(param));
                self.expr(body);
            }
            Kind::Fold {
                array,
                init,
                acc,
                element,
                body,
            } => {
                self.expr(array);
                self.expr(init);
                self.pattern(acc);
                self.pattern(element);
                self.expr(body);
            }
            Kind::Call {
                types, dims, args, ..
            } => {
                args.iter_mut().for_each(|arg| self.expr(arg));
                types.iter_mut().for_each(|ty| self.ty(ty, &span));
                dims.iter_mut().for_each(|dim| self.dim(dim, &span));
            }
            Kind::Op(op, args) => {
                if let Op::Slice {
                    bounds: Some((start, length)),
                    ..
                } = op
                {
                    self.dim(start, &span);
                    self.dim(length, &span);
                }
                args.iter_mut().for_each(|arg| self.expr(arg));
            }
        }
        self.ty(&mut expr.ty, &span);
    }

    fn pattern(&mut self, pattern: &mut Pattern) {
        pattern.ty = self.body.infer.resolve(&pattern.ty);
        match &mut pattern.kind {
            PatternKind::Construct { fields: parts, .. }
            | PatternKind::Tuple(parts)
            | PatternKind::Or(parts) => {
                parts.iter_mut().for_each(|part| self.pattern(part));
            }
            PatternKind::Wildcard
            | PatternKind::Bind(_)
            | PatternKind::Int(_)
            | PatternKind::Bool(_) => {}
        }
    }
}

fn is_unknown(dim: &Poly) -> bool {
    dim.atoms().any(|atom| matches!(atom, Atom::Unknown(_)))
}

fn has_unknown(ty: &Ty) -> bool {
    match ty {
        Ty::Unknown(_) => true,
        Ty::Tuple(parts) | Ty::Adt(_, parts) => parts.iter().any(has_unknown),
        Ty::Array(element) => has_unknown(element),
        Ty::Tensor { .. } | Ty::Str | Ty::Generic(_) | Ty::Error => false,
    }
}
