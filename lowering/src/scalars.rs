//! Host scalars, and the ways between them and tensors.

use cohort_dialects::builder::{Builder, Op, Val, region_with_block, result_of};
use cohort_frontend::program::{Binary, Elem, Expr, ExprKind, Literal, Type};

use crate::expr::Lowering;
use crate::types::{elem_of, known, shape_of};
use crate::{integers, numbers};

impl<'c> Lowering<'_, 'c> {
    pub fn scalar(&mut self, at: Builder<'c>, expr: &Expr) -> Val<'c> {
        let ty = self.types().whole(&expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => numbers::constant(at, ty, *literal),
            ExprKind::ScalarUnary { op, value } => {
                let operand = self.value(at, value);
                numbers::unary(at, *op, elem_of(&value.ty), operand)
            }
            ExprKind::ScalarBinary {
                op: op @ (Binary::And | Binary::Or),
                lhs,
                rhs,
            } if !is_total(rhs) => self.short_circuit(at, *op, lhs, rhs),
            ExprKind::ScalarBinary { op, lhs, rhs } => {
                let left = self.value(at, lhs);
                let right = self.value(at, rhs);
                let elem = elem_of(&lhs.ty);
                match elem {
                    _ if numbers::can_fail(*op, elem, rhs) => {
                        numbers::checked_division(at, *op, left, right)
                    }
                    Elem::I32 => integers::integers(at, *op, left, right, rhs),
                    _ => numbers::binary(at, *op, elem, left, right),
                }
            }
            ExprKind::ScalarCast(value) => {
                let operand = self.value(at, value);
                numbers::cast(at, elem_of(&value.ty), elem_of(&expr.ty), operand, ty)
            }
            ExprKind::Force(value) => {
                let tensor = self.value(at, value);
                at.value(Op::CfbForce, &[tensor], ty)
            }
            ExprKind::DimSize { value, axis } => {
                let dim = &shape_of(&value.ty)[*axis];
                match known(dim) {
                    Some(length) => {
                        let length = i32::try_from(length).unwrap_or(i32::MAX);
                        numbers::constant(at, ty, Literal::I32(length))
                    }
                    None => {
                        let value = self.value(at, value);
                        let length = numbers::length(at, value, *axis);
                        at.index_cast(length, ty)
                    }
                }
            }
            other => unreachable!("not an operation on host scalars: {other:?}"),
        }
    }

    /// `and`, `or` whose right side must not run unless it decides: it may fail, force or call.
    fn short_circuit(&mut self, at: Builder<'c>, op: Binary, lhs: &Expr, rhs: &Expr) -> Val<'c> {
        let cond = self.value(at, lhs);
        let ty = self.types().whole(&rhs.ty);
        let right = self.region(at, &[], rhs, &rhs.ty, Op::ScfYield);
        let (settled, block) = region_with_block(&[], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let value = numbers::constant(inside, ty, Literal::Bool(op == Binary::Or));
        inside.scf_yield(&[value]);
        let regions = if op == Binary::And {
            [right, settled]
        } else {
            [settled, right]
        };
        result_of(at.scf_if(cond, &[ty], regions), 0)
    }
}

/// Whether a host expression only computes, so that running it in vain does no harm.
fn is_total(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Var(_) => true,
        ExprKind::ScalarUnary { value, .. }
        | ExprKind::ScalarCast(value)
        | ExprKind::Len(value)
        | ExprKind::DimSize { value, .. } => is_total(value),
        ExprKind::ScalarBinary { op, lhs, rhs } => {
            is_total(lhs) && is_total(rhs) && !numbers::can_fail(*op, elem_of(&lhs.ty), rhs)
        }
        ExprKind::TupleGet { tuple, .. } => matches!(tuple.ty, Type::Tuple(_)) && is_total(tuple),
        _ => false,
    }
}
