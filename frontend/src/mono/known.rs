//! What is known of a number or a condition when compiling.
//!
//! A function may ask how long its arguments are. Where a call says that, only what the call can come to is made for it: what is
//! behind a condition on lengths may have types that other lengths alone have.

use crate::program::{Binary, Expr, ExprKind, Literal, Unary};

/// A truth value made of literals alone.
pub fn truth(expr: &Expr) -> Option<bool> {
    match value(expr)? {
        Literal::Bool(truth) => Some(truth),
        _ => None,
    }
}

/// Nothing where an operation would overflow, or ends the instance.
fn value(expr: &Expr) -> Option<Literal> {
    match &expr.kind {
        ExprKind::Literal(literal @ (Literal::I32(_) | Literal::Bool(_))) => Some(*literal),
        ExprKind::Unary { op, value: of } | ExprKind::ScalarUnary { op, value: of } => {
            match (op, value(of)?) {
                (Unary::Not, Literal::Bool(truth)) => Some(Literal::Bool(!truth)),
                (Unary::Neg, Literal::I32(number)) => number.checked_neg().map(Literal::I32),
                (Unary::Abs, Literal::I32(number)) => number.checked_abs().map(Literal::I32),
                _ => None,
            }
        }
        ExprKind::Binary { op, lhs, rhs } | ExprKind::ScalarBinary { op, lhs, rhs } => {
            match (value(lhs), value(rhs)) {
                (Some(Literal::Bool(left)), right) => of_truths(*op, left, right),
                (Some(Literal::I32(left)), Some(Literal::I32(right))) => {
                    of_numbers(*op, left, right)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The right side is not looked at where the left one settles it.
fn of_truths(op: Binary, left: bool, right: Option<Literal>) -> Option<Literal> {
    let right = match right {
        Some(Literal::Bool(right)) => Some(right),
        _ => None,
    };
    let truth = match (op, left, right) {
        (Binary::And, false, _) => false,
        (Binary::Or, true, _) => true,
        (Binary::And | Binary::Or, _, Some(right)) => right,
        (Binary::Eq, _, Some(right)) => left == right,
        (Binary::Ne, _, Some(right)) => left != right,
        _ => return None,
    };
    Some(Literal::Bool(truth))
}

fn of_numbers(op: Binary, left: i32, right: i32) -> Option<Literal> {
    let number = match op {
        Binary::Add => left.checked_add(right),
        Binary::Sub => left.checked_sub(right),
        Binary::Mul => left.checked_mul(right),
        Binary::Div => left.checked_div(right),
        Binary::Rem => left.checked_rem(right),
        Binary::Min => Some(left.min(right)),
        Binary::Max => Some(left.max(right)),
        _ => {
            return Some(Literal::Bool(match op {
                Binary::Eq => left == right,
                Binary::Ne => left != right,
                Binary::Lt => left < right,
                Binary::Le => left <= right,
                Binary::Gt => left > right,
                Binary::Ge => left >= right,
                _ => return None,
            }));
        }
    };
    number.map(Literal::I32)
}
