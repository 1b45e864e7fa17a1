//! Lifting and forcing.

use crate::program::{Arm, Binary, Elem, Expr, ExprKind, Type, Unary};

/// A scalar that a tensor computation produced.
pub fn is_rank_zero(ty: &Type) -> bool {
    matches!(ty, Type::Tensor { shape, .. } if shape.is_empty())
}

pub fn rank_zero(elem: Elem) -> Type {
    Type::Tensor {
        elem,
        shape: Vec::new(),
    }
}

/// The value as a tensor.
pub fn lift(expr: Expr) -> Expr {
    match expr.ty {
        Type::Scalar(elem) => {
            let span = expr.span.clone();
            Expr {
                kind: ExprKind::Lift(Box::new(expr)),
                ty: rank_zero(elem),
                span,
            }
        }
        _ => expr,
    }
}

/// The value on the host. A branch is forced where its value is made, so that branches that have a
/// host value at hand wait for nothing.
pub fn force(expr: Expr) -> Expr {
    let Type::Tensor { elem, .. } = expr.ty else {
        return expr;
    };
    let Expr { kind, ty, span } = expr;
    let kind = match kind {
        ExprKind::Lift(inner) => return *inner,
        ExprKind::Let { var, value, body } => ExprKind::Let {
            var,
            value,
            body: Box::new(force(*body)),
        },
        ExprKind::Phase(body) => ExprKind::Phase(Box::new(force(*body))),
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => ExprKind::If {
            cond,
            then: Box::new(force(*then)),
            otherwise: Box::new(force(*otherwise)),
        },
        ExprKind::Match { scrutinee, arms } => ExprKind::Match {
            scrutinee,
            arms: arms
                .into_iter()
                .map(|arm| Arm {
                    body: force(arm.body),
                    ..arm
                })
                .collect(),
        },
        // What is cheap on the host is done there, once its operand is read.
        ExprKind::Unary {
            op: Unary::Not,
            value,
        } => ExprKind::ScalarUnary {
            op: Unary::Not,
            value: Box::new(force(*value)),
        },
        ExprKind::Binary { op, lhs, rhs } if compares_with_host(&lhs, &rhs) => {
            let (lhs, rhs) = (Box::new(force(*lhs)), Box::new(force(*rhs)));
            ExprKind::ScalarBinary { op, lhs, rhs }
        }
        other => {
            let value = Expr {
                kind: other,
                ty,
                span: span.clone(),
            };
            ExprKind::Force(Box::new(value))
        }
    };
    Expr {
        kind,
        ty: Type::Scalar(elem),
        span,
    }
}

/// An integer that a tensor computed, such as an `argmax`, against one of the host.
fn compares_with_host(lhs: &Expr, rhs: &Expr) -> bool {
    let lifted = |side: &Expr| matches!(side.kind, ExprKind::Lift(_));
    elem(&lhs.ty) == Some(Elem::I32) && (lifted(lhs) || lifted(rhs))
}

/// Whether evaluating the expression always gives a value, and soon: it may then be evaluated
/// although the program asks for it only under a condition.
pub fn is_total(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Text(_) | ExprKind::Var(_) | ExprKind::Param(_) => true,
        ExprKind::SameText { lhs, rhs } => is_total(lhs) && is_total(rhs),
        ExprKind::TupleGet { tuple: value, .. }
        | ExprKind::Len(value)
        | ExprKind::DimSize { value, .. }
        | ExprKind::ScalarUnary { value, .. }
        | ExprKind::Unary { value, .. }
        | ExprKind::ScalarCast(value)
        | ExprKind::Cast(value)
        | ExprKind::Lift(value)
        | ExprKind::Reduce { value, .. }
        | ExprKind::Slice { value, .. }
        | ExprKind::Reshape(value) => is_total(value),
        ExprKind::ScalarBinary { op, lhs, rhs } | ExprKind::Binary { op, lhs, rhs } => {
            // An integer division by zero is an error of the instance.
            let divides =
                matches!(op, Binary::Div | Binary::Rem) && elem(&expr.ty) == Some(Elem::I32);
            !divides && is_total(lhs) && is_total(rhs)
        }
        ExprKind::MatMul { lhs, rhs } => is_total(lhs) && is_total(rhs),
        // A row of known place in a tensor of known length was checked.
        ExprKind::Row { table, index } => {
            let known = matches!(
                &table.ty,
                Type::Tensor { shape, .. } if matches!(shape.first(), Some(crate::program::Dim::Known(_)))
            );
            known && matches!(index.kind, ExprKind::Literal(_)) && is_total(table)
        }
        _ => false,
    }
}

pub fn elem(ty: &Type) -> Option<Elem> {
    match ty {
        Type::Scalar(elem) | Type::Tensor { elem, .. } => Some(*elem),
        _ => None,
    }
}
