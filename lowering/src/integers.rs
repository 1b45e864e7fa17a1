//! Integer arithmetic that no single operation has, the same on the host and elementwise.

use cohort_dialects::builder::{Builder, Op, Val};
use cohort_frontend::program::{Binary, Elem, Expr, ExprKind, Literal};
use melior::ir::ValueLike;

use crate::numbers::{binary, constant_like, is_safe_divisor, select};

/// An operation of integers whose right side is `expr`, of value `rhs`; no divisor is zero.
pub fn integers<'c>(
    at: Builder<'c>,
    op: Binary,
    lhs: Val<'c>,
    rhs: Val<'c>,
    expr: &Expr,
) -> Val<'c> {
    match op {
        Binary::Pow => power(at, lhs, rhs, literal(expr)),
        Binary::Div | Binary::Rem if !is_safe_divisor(expr) => divide(at, op, lhs, rhs),
        _ => binary(at, op, Elem::I32, lhs, rhs),
    }
}

fn number<'c>(at: Builder<'c>, like: Val<'c>, number: i32) -> Val<'c> {
    constant_like(at, like, like.r#type(), Literal::I32(number))
}

fn apply<'c>(at: Builder<'c>, op: Binary, left: Val<'c>, right: Val<'c>) -> Val<'c> {
    binary(at, op, Elem::I32, left, right)
}

/// A division that wraps: the least integer by -1 has no result of its own.
fn divide<'c>(at: Builder<'c>, op: Binary, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    let negates = apply(at, Binary::Eq, rhs, number(at, rhs, -1));
    let divisor = select(at, negates, number(at, rhs, 1), rhs);
    let result = apply(at, op, lhs, divisor);
    match op {
        Binary::Div => {
            let negated = apply(at, Binary::Sub, number(at, lhs, 0), lhs);
            select(at, negates, negated, result)
        }
        _ => result,
    }
}

/// A power that wraps: products, where the exponent is known. A negative exponent is one of
/// `1 / base`, which is 0 but for 1 and -1.
fn power<'c>(at: Builder<'c>, base: Val<'c>, exponent: Val<'c>, known: Option<i32>) -> Val<'c> {
    let Some(known) = known.filter(|known| *known >= 0) else {
        return at.value(Op::MathIpowi, &[base, exponent], base.r#type());
    };
    let mut square = base;
    let mut product = None;
    for bit in 0..i32::BITS - known.leading_zeros() {
        if bit > 0 {
            square = apply(at, Binary::Mul, square, square);
        }
        if known >> bit & 1 == 1 {
            product = Some(match product {
                Some(product) => apply(at, Binary::Mul, product, square),
                None => square,
            });
        }
    }
    product.unwrap_or_else(|| number(at, base, 1))
}

/// The number of an expression that is one everywhere.
fn literal(expr: &Expr) -> Option<i32> {
    match &expr.kind {
        ExprKind::Literal(Literal::I32(value)) => Some(*value),
        ExprKind::Lift(value) | ExprKind::Fill(value) => literal(value),
        _ => None,
    }
}
