//! The children of an expression.

use crate::program::{Expr, ExprKind};

macro_rules! children {
    ($name:ident, $expr:ty, $iter:ident, $borrow:ident) => {
        pub fn $name(expr: $expr, visit: &mut dyn FnMut($expr)) {
            let Expr { kind, .. } = expr;
            match kind {
                ExprKind::Literal(_)
                | ExprKind::Text(_)
                | ExprKind::Var(_)
                | ExprKind::Param(_)
                | ExprKind::Iota { .. } => {}
                ExprKind::Let { value, body, .. }
                | ExprKind::Length { count: value, body, .. } => {
                    visit(value);
                    visit(body);
                }
                ExprKind::Tuple(parts)
                | ExprKind::Array(parts)
                | ExprKind::Construct { fields: parts, .. }
                | ExprKind::Call { args: parts, .. }
                | ExprKind::Concat { values: parts, .. } => parts.$iter().for_each(visit),
                ExprKind::Match { scrutinee, arms } => {
                    visit(scrutinee);
                    for arm in arms {
                        visit(children!(@$borrow arm.body));
                    }
                }
                ExprKind::If { cond, then, otherwise }
                | ExprKind::Select { cond, then, otherwise } => {
                    visit(cond);
                    visit(then);
                    visit(otherwise);
                }
                ExprKind::While { init, cond, body, .. } => {
                    init.$iter().for_each(&mut *visit);
                    visit(cond);
                    visit(body);
                }
                ExprKind::Map { arrays, closure } => {
                    arrays.$iter().for_each(&mut *visit);
                    visit(children!(@$borrow closure.body));
                }
                ExprKind::Fold { array, init, closure } => {
                    visit(array);
                    visit(init);
                    visit(children!(@$borrow closure.body));
                }
                ExprKind::Index { array: first, index: second }
                | ExprKind::Push { array: first, value: second }
                | ExprKind::ScalarBinary { lhs: first, rhs: second, .. }
                | ExprKind::Binary { lhs: first, rhs: second, .. }
                | ExprKind::MatMul { lhs: first, rhs: second }
                | ExprKind::SameText { lhs: first, rhs: second }
                | ExprKind::Row { table: first, index: second }
                | ExprKind::Gather { table: first, indices: second }
                | ExprKind::SegmentSum { values: first, segments: second } => {
                    visit(first);
                    visit(second);
                }
                ExprKind::Scatter { value, indices, rows } => {
                    visit(value);
                    visit(indices);
                    visit(rows);
                }
                ExprKind::TupleGet { tuple: value, .. }
                | ExprKind::Phase(value)
                | ExprKind::Debug { value, .. }
                | ExprKind::Len(value)
                | ExprKind::Reverse(value)
                | ExprKind::Range(value)
                | ExprKind::Sum(value)
                | ExprKind::Stack(value)
                | ExprKind::ScalarUnary { value, .. }
                | ExprKind::ScalarCast(value)
                | ExprKind::Lift(value)
                | ExprKind::Force(value)
                | ExprKind::Unary { value, .. }
                | ExprKind::Cast(value)
                | ExprKind::Fill(value)
                | ExprKind::Reduce { value, .. }
                | ExprKind::ArgMax { value, .. }
                | ExprKind::Softmax { value, .. }
                | ExprKind::CumSum { value, .. }
                | ExprKind::Sort { value, .. }
                | ExprKind::Slice { value, .. }
                | ExprKind::Reshape(value)
                | ExprKind::CheckShape(value)
                | ExprKind::Transpose { value, .. }
                | ExprKind::DimSize { value, .. }
                | ExprKind::Random { counter: value } => visit(value),
            }
        }
    };
    (@shared $place:expr) => { &$place };
    (@unique $place:expr) => { &mut $place };
}

children!(for_each_child, &Expr, iter, shared);
children!(for_each_child_mut, &mut Expr, iter_mut, unique);
