//! Divisors of integer tensors: one that is zero is the instance's error, so the instance waits for
//! what is not known on the host.

use super::emit::Emit;
use super::scalars::{force, lift};
use crate::program::{Binary, Elem, Expr, ExprKind, Literal, Reduction, Span, Type};

const INTEGER: Type = Type::Scalar(Elem::I32);

impl Emit<'_, '_> {
    /// A divisor as a tensor that has a value only if no element is zero.
    pub fn divisor(&mut self, divisor: &Expr) -> Box<Expr> {
        let divisor = *self.tensor(divisor);
        Box::new(match divisor.kind {
            ExprKind::Lift(host) => match host.kind {
                ExprKind::Literal(Literal::I32(number)) if number != 0 => lift(*host),
                _ => {
                    let span = host.span.clone();
                    self.bound(*host, |host| lift(unless_zero(host, &span)))
                }
            },
            _ => self.tensor_divisor(divisor),
        })
    }

    /// Elements that are zero become what the host makes of there being one: an error.
    fn tensor_divisor(&mut self, divisor: Expr) -> Expr {
        let span = divisor.span.clone();
        let ty = divisor.ty.clone();
        let rank = match &ty {
            Type::Tensor { shape, .. } => shape.len(),
            _ => 0,
        };
        let with_elem = |elem| match &ty {
            Type::Tensor { shape, .. } => Type::Tensor {
                elem,
                shape: shape.clone(),
            },
            other => other.clone(),
        };
        let bools = with_elem(Elem::Bool);
        let is_zero = |divisor: &Expr| {
            let zero = lift(number(0, &span));
            binary(Binary::Eq, divisor.clone(), zero, bools.clone(), &span)
        };
        let select = |cond, then, otherwise| {
            let kind = ExprKind::Select {
                cond: Box::new(cond),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            };
            typed(kind, with_elem(Elem::I32), &span)
        };
        let mut inner = None;
        let outer = self.bound(divisor, |divisor| {
            inner = Some(divisor.clone());
            divisor
        });
        let Some(divisor) = inner else { return outer };
        let flags = select(
            is_zero(&divisor),
            lift(number(0, &span)),
            lift(number(1, &span)),
        );
        let least = (0..rank).rev().fold(flags, |value, axis| {
            let mut ty = value.ty.clone();
            if let Type::Tensor { shape, .. } = &mut ty {
                shape.remove(axis);
            }
            let kind = ExprKind::Reduce {
                op: Reduction::Min,
                value: Box::new(value),
                axis,
            };
            typed(kind, ty, &span)
        });
        let checked = self.bound(force(least), |flag| {
            let error = lift(unless_zero(flag, &span));
            select(is_zero(&divisor), error, divisor.clone())
        });
        within(outer, checked)
    }

    /// `let v = value; body(v)`.
    fn bound(&mut self, value: Expr, body: impl FnOnce(Expr) -> Expr) -> Expr {
        let (ty, span) = (value.ty.clone(), value.span.clone());
        let var = self.var("divisor", ty.clone(), &span);
        let body = body(typed(ExprKind::Var(var), ty, &span));
        let ty = body.ty.clone();
        let kind = ExprKind::Let {
            var,
            value: Box::new(value),
            body: Box::new(body),
        };
        typed(kind, ty, &span)
    }
}

/// A `let` with another body.
fn within(bound: Expr, body: Expr) -> Expr {
    let ty = body.ty.clone();
    match bound.kind {
        ExprKind::Let { var, value, .. } => {
            let kind = ExprKind::Let {
                var,
                value,
                body: Box::new(body),
            };
            typed(kind, ty, &bound.span)
        }
        _ => body,
    }
}

/// `k + k % k`: the number itself, and the error of a division by zero for zero.
fn unless_zero(number: Expr, span: &Span) -> Expr {
    let host = |op, lhs: Expr, rhs: Expr| {
        let kind = ExprKind::ScalarBinary {
            op,
            lhs: Box::new(lhs),
            rhs: Box::new(rhs),
        };
        typed(kind, INTEGER, span)
    };
    let nothing = host(Binary::Rem, number.clone(), number.clone());
    host(Binary::Add, number, nothing)
}

fn binary(op: Binary, lhs: Expr, rhs: Expr, ty: Type, span: &Span) -> Expr {
    let kind = ExprKind::Binary {
        op,
        lhs: Box::new(lhs),
        rhs: Box::new(rhs),
    };
    typed(kind, ty, span)
}

fn number(value: i32, span: &Span) -> Expr {
    typed(ExprKind::Literal(Literal::I32(value)), INTEGER, span)
}

fn typed(kind: ExprKind, ty: Type, span: &Span) -> Expr {
    Expr {
        kind,
        ty,
        span: span.clone(),
    }
}
