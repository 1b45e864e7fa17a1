//! Declared dims, and the rules that give their lengths.

use cohort_dialects::builder::{Op, Val};
use melior::ir::{AffineExpr, OperationRef, operation::OperationLike};

use super::index::Indices;
use crate::support::ir::{affine_map, symbol_of, top_level};

/// The declaration of a dim in a module.
pub fn declaration_of<'c>(
    module: OperationRef<'c, 'c>,
    name: &str,
) -> Option<OperationRef<'c, 'c>> {
    top_level(module)
        .into_iter()
        .find(|op| Op::RaggedDim.is(*op) && symbol_of(*op).as_deref() == Some(name))
}

/// Computes a dim's length by its rule; `None` where it has none, or one that needs more than it is
/// given.
pub fn apply_rule<'c>(
    emitter: &Indices<'c>,
    dim: OperationRef<'c, 'c>,
    indices: &[Val<'c>],
    factors: &[Val<'c>],
) -> Option<Val<'c>> {
    let rule = affine_map(dim.attribute("rule").ok()?)?;
    let only = (rule.result_count() == 1).then(|| rule.result(0).ok())?;
    expand(emitter, only?, indices, factors)
}

fn expand<'c>(
    emitter: &Indices<'c>,
    expression: AffineExpr<'_>,
    indices: &[Val<'c>],
    factors: &[Val<'c>],
) -> Option<Val<'c>> {
    if expression.is_constant() {
        return Some(emitter.constant(expression.constant_value()));
    }
    if expression.is_dim() {
        return indices.get(expression.dim_position()).copied();
    }
    if expression.is_symbol() {
        return factors.get(expression.symbol_position()).copied();
    }
    let a = expand(emitter, expression.lhs(), indices, factors)?;
    let b = expand(emitter, expression.rhs(), indices, factors)?;
    Some(match () {
        () if expression.is_add() => emitter.add(a, b),
        () if expression.is_mul() => emitter.mul(a, b),
        () if expression.is_floor_div() => emitter.floor_div(a, b),
        () if expression.is_ceil_div() => emitter.ceil_div(a, b),
        // What remains is the remainder, which is never negative.
        () => emitter.sub(a, emitter.mul(emitter.floor_div(a, b), b)),
    })
}
