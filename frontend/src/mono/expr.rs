//! Expressions of one instance.

use super::arms::Goal;
use super::decide::Row;
use super::function::{Instance, NO_LENGTH};
use super::known;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, Pattern, PatternKind};
use crate::program::{Closure, Dim, Elem, Expr, ExprKind, Literal, ParamId, Span, Type, VarId};
use crate::types::{self, Ty};

impl Instance<'_, '_> {
    pub fn expr(&mut self, expr: &hir::Expr) -> Expr {
        let span = &expr.span;
        let ty = self.ty(&expr.ty, span);
        if !self.mono.count_expression(span) {
            return self.placeholder(ty, span);
        }
        let kind = match &expr.kind {
            Kind::Error => return self.placeholder(ty, span),
            Kind::Literal(literal) => ExprKind::Literal(*literal),
            Kind::Local(local) => {
                let var = self.locals.get(local).copied().unwrap_or_default();
                return self.read(var, span);
            }
            Kind::Param(index) => ExprKind::Param(ParamId(*index)),
            Kind::Dim(dim) => return self.dim_value(dim, span),
            Kind::Let {
                pattern,
                value,
                body,
            } => return self.let_pattern(pattern, value, body),
            Kind::Length { dim, count, body } => {
                let Dim::Instance(name) = self.dim(dim, span) else {
                    return self.expr(body);
                };
                ExprKind::Length {
                    name,
                    count: self.boxed(count),
                    body: self.boxed(body),
                }
            }
            // `main` may have phases where another function is the entry, and calls it or not.
            Kind::Phase(body) if self.request.function != self.mono.checked.entry => {
                return self.expr(body);
            }
            Kind::Phase(body) => ExprKind::Phase(Box::new(self.expr(body))),
            Kind::Tuple(parts) => ExprKind::Tuple(self.exprs(parts)),
            Kind::Construct {
                constructor,
                fields,
                ..
            } => {
                let Type::Adt(adt) = ty else {
                    return self.placeholder(ty, span);
                };
                ExprKind::Construct {
                    adt,
                    constructor: *constructor,
                    fields: self.exprs(fields),
                }
            }
            Kind::Match { scrutinee, arms } => {
                return self.match_arms(scrutinee, arms, ty, span);
            }
            Kind::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.boxed(cond);
                match known::truth(&cond) {
                    Some(true) => return self.expr(then),
                    Some(false) => return self.expr(otherwise),
                    None => ExprKind::If {
                        cond,
                        then: self.boxed(then),
                        otherwise: self.boxed(otherwise),
                    },
                }
            }
            Kind::While {
                vars,
                init,
                cond,
                body,
            } => {
                let init = self.exprs(init);
                let vars = vars.iter().map(|var| self.declare(*var)).collect();
                ExprKind::While {
                    vars,
                    init,
                    cond: self.boxed(cond),
                    body: self.boxed(body),
                }
            }
            Kind::Map {
                arrays,
                params,
                body,
            } => {
                let arrays = self.exprs(arrays);
                ExprKind::Map {
                    arrays,
                    closure: self.closure(params, body),
                }
            }
            Kind::Fold {
                array,
                init,
                acc,
                element,
                body,
            } => {
                let (array, init) = (self.boxed(array), self.boxed(init));
                let params = [acc.clone(), element.clone()];
                ExprKind::Fold {
                    array,
                    init,
                    closure: self.closure(&params, body),
                }
            }
            Kind::Call {
                function,
                types,
                dims,
                args,
            } => {
                let types = types.iter().map(|ty| self.ty(ty, span)).collect();
                let dims = dims.iter().map(|dim| self.dim(dim, span)).collect();
                let function = self.mono.function(*function, types, dims);
                ExprKind::Call {
                    function,
                    args: self.exprs(args),
                }
            }
            Kind::Array(elements) => ExprKind::Array(self.exprs(elements)),
            Kind::Op(op, args) => return self.op(op, args, ty, span),
        };
        Expr {
            kind,
            ty,
            span: span.clone(),
        }
    }

    pub fn exprs(&mut self, exprs: &[hir::Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &hir::Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    /// A closure whose parameters are variables; patterns are taken apart in its body.
    fn closure(&mut self, patterns: &[Pattern], body: &hir::Expr) -> Closure {
        let mut params: Vec<VarId> = Vec::new();
        for pattern in patterns {
            params.push(match pattern.kind {
                PatternKind::Bind(local) => self.declare(local),
                _ => {
                    let ty = self.ty(&pattern.ty, &pattern.span);
                    self.var("part", ty, &pattern.span)
                }
            });
        }
        let tests: Vec<(VarId, &Pattern)> = params
            .iter()
            .copied()
            .zip(patterns)
            .filter(|(_, pattern)| !matches!(pattern.kind, PatternKind::Bind(_)))
            .collect();
        let ty = self.ty(&body.ty, &body.span);
        let goal = Goal {
            ty,
            span: body.span.clone(),
            bodies: vec![body],
            guards: Vec::new(),
        };
        let body = self.decide_and_write(vec![Row::new(0, false, tests)], &goal);
        Closure {
            params,
            body: Box::new(body),
        }
    }

    /// A dim's number: a literal if it is known, else the length of an argument that has it.
    fn dim_value(&mut self, dim: &Poly, span: &Span) -> Expr {
        let ty = Type::Scalar(Elem::I32);
        match self.dim(dim, span) {
            Dim::Known(size) => {
                let value = i32::try_from(size).unwrap_or(i32::MAX);
                Expr {
                    kind: ExprKind::Literal(Literal::I32(value)),
                    ty,
                    span: span.clone(),
                }
            }
            Dim::Instance(name) if name == NO_LENGTH => Expr {
                kind: ExprKind::Literal(Literal::I32(0)),
                ty,
                span: span.clone(),
            },
            Dim::Instance(_) => match self.argument_with(dim, span) {
                Some((value, axis)) => {
                    let kind = ExprKind::DimSize {
                        value: Box::new(value),
                        axis,
                    };
                    Expr {
                        kind,
                        ty,
                        span: span.clone(),
                    }
                }
                None => {
                    let name = match dim.as_atom() {
                        Some(Atom::Variable(index)) => {
                            self.mono.variable_name(self.request.function, index)
                        }
                        _ => "this dim".to_owned(),
                    };
                    self.report(
                        Diagnostic::error("E0708", format!("no argument is as long as `{name}`"))
                            .at(span, "its number is not known here")
                            .note("take the length of a tensor with `len(x)` or `dim(x, axis)`"),
                    );
                    self.placeholder(ty, span)
                }
            },
        }
    }

    /// An argument, or a part of one, with this dim, and the axis that has it.
    fn argument_with(&mut self, dim: &Poly, span: &Span) -> Option<(Expr, usize)> {
        let params = self.source.params.clone();
        for local in params {
            let ty = &self.source.locals.get(local)?.ty;
            let Some((path, axis)) = find_dim(ty, dim) else {
                continue;
            };
            let var = *self.locals.get(&local)?;
            let mut value = self.read(var, span);
            for index in path {
                let part = match &value.ty {
                    Type::Tuple(parts) => parts.get(index)?.clone(),
                    _ => return None,
                };
                let kind = ExprKind::TupleGet {
                    tuple: Box::new(value),
                    index,
                };
                value = Expr {
                    kind,
                    ty: part,
                    span: span.clone(),
                };
            }
            return Some((value, axis));
        }
        None
    }
}

/// Where a dim stands in a type: the way through tuples, and the axis.
fn find_dim(ty: &Ty, dim: &Poly) -> Option<(Vec<usize>, usize)> {
    match ty {
        Ty::Tensor { shape, .. } => {
            let axis = shape
                .iter()
                .position(|own| *own == types::Dim::Poly(dim.clone()))?;
            Some((Vec::new(), axis))
        }
        Ty::Tuple(parts) => parts.iter().enumerate().find_map(|(index, part)| {
            let (mut path, axis) = find_dim(part, dim)?;
            path.insert(0, index);
            Some((path, axis))
        }),
        _ => None,
    }
}
