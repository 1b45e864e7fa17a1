//! Walking typed expressions without recursion: chains of `let` are as long as the source.

use cohort_frontend::program::{Closure, Expr, ExprKind};

/// Visits `root` and every expression below it, each before its children, in the source's order.
pub fn each_expr<'p>(root: &'p Expr, mut visit: impl FnMut(&'p Expr)) {
    let mut pending = vec![root];
    while let Some(expr) = pending.pop() {
        visit(expr);
        let mut below = children(expr);
        below.reverse();
        pending.append(&mut below);
    }
}

/// The expressions directly below one, in order of evaluation.
pub fn children(expr: &Expr) -> Vec<&Expr> {
    use ExprKind as K;
    match &expr.kind {
        K::Literal(_) | K::Text(_) | K::Var(_) | K::Param(_) | K::Iota { .. } => vec![],
        K::Let { value, body, .. } => vec![value, body],
        K::Length { count, body, .. } => vec![count, body],
        K::Tuple(elements) | K::Array(elements) => elements.iter().collect(),
        K::TupleGet { tuple: value, .. }
        | K::Phase(value)
        | K::Debug { value, .. }
        | K::Len(value)
        | K::Reverse(value)
        | K::Range(value)
        | K::Sum(value)
        | K::Stack(value)
        | K::ScalarUnary { value, .. }
        | K::ScalarCast(value)
        | K::Lift(value)
        | K::Force(value)
        | K::Unary { value, .. }
        | K::Cast(value)
        | K::Fill(value)
        | K::Reduce { value, .. }
        | K::ArgMax { value, .. }
        | K::Softmax { value, .. }
        | K::CumSum { value, .. }
        | K::Sort { value, .. }
        | K::Slice { value, .. }
        | K::Reshape(value)
        | K::CheckShape(value)
        | K::Transpose { value, .. }
        | K::DimSize { value, .. }
        | K::Random { counter: value } => vec![value],
        K::Construct { fields, .. } => fields.iter().collect(),
        K::Match { scrutinee, arms } => std::iter::once(&**scrutinee)
            .chain(arms.iter().map(|arm| &arm.body))
            .collect(),
        K::If {
            cond,
            then,
            otherwise,
        }
        | K::Select {
            cond,
            then,
            otherwise,
        } => {
            vec![cond, then, otherwise]
        }
        K::While {
            init, cond, body, ..
        } => init.iter().chain([&**cond, &**body]).collect(),
        K::Call { args, .. } => args.iter().collect(),
        K::Index { array, index } => vec![array, index],
        K::Push { array, value } => vec![array, value],
        K::Map { arrays, closure } => arrays.iter().chain([body(closure)]).collect(),
        K::Fold {
            array,
            init,
            closure,
        } => vec![array, init, body(closure)],
        K::SameText { lhs, rhs } => vec![lhs, rhs],
        K::ScalarBinary { lhs, rhs, .. } | K::Binary { lhs, rhs, .. } | K::MatMul { lhs, rhs } => {
            vec![lhs, rhs]
        }
        K::Concat { values, .. } => values.iter().collect(),
        K::Row { table, index } => vec![table, index],
        K::Gather { table, indices } => vec![table, indices],
        K::SegmentSum { values, segments } => vec![values, segments],
        K::Scatter {
            value,
            indices,
            rows,
        } => vec![value, indices, rows],
    }
}

fn body(closure: &Closure) -> &Expr {
    &closure.body
}
