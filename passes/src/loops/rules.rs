//! Declared dims, and the rules that give their lengths.

use cohort_dialects::builder::{Val, name_of};
use melior::ir::{OperationRef, attribute::AttributeLike, operation::OperationLike};
use mlir_sys::MlirAffineExpr;

use super::index::Indices;
use crate::support::ir::{name_attribute, top_level};

/// The declaration of a dim in a module.
pub fn declaration_of<'c>(
    module: OperationRef<'c, 'c>,
    name: &str,
) -> Option<OperationRef<'c, 'c>> {
    top_level(module).into_iter().find(|op| {
        name_of(*op) == "ragged.dim" && name_attribute(*op, "sym_name").as_deref() == Some(name)
    })
}

/// Computes a dim's length by its rule; `None` where it has none, or one that needs more than it is
/// given.
pub fn apply_rule<'c>(
    emitter: &Indices<'c>,
    dim: OperationRef<'c, 'c>,
    indices: &[Val<'c>],
    factors: &[Val<'c>],
) -> Option<Val<'c>> {
    let rule = dim.attribute("rule").ok()?;
    // SAFETY: the attribute is alive and its kind is asked before it is read.
    let expression = unsafe {
        if !mlir_sys::mlirAttributeIsAAffineMap(rule.to_raw()) {
            return None;
        }
        let map = mlir_sys::mlirAffineMapAttrGetValue(rule.to_raw());
        if mlir_sys::mlirAffineMapGetNumResults(map) != 1 {
            return None;
        }
        mlir_sys::mlirAffineMapGetResult(map, 0)
    };
    expand(emitter, expression, indices, factors)
}

fn expand<'c>(
    emitter: &Indices<'c>,
    expression: MlirAffineExpr,
    indices: &[Val<'c>],
    factors: &[Val<'c>],
) -> Option<Val<'c>> {
    // SAFETY: the expression is alive as its map is, and its kind is asked before it is read.
    unsafe {
        if mlir_sys::mlirAffineExprIsAConstant(expression) {
            let value = mlir_sys::mlirAffineConstantExprGetValue(expression);
            return Some(emitter.constant(value));
        }
        if mlir_sys::mlirAffineExprIsADim(expression) {
            let position = mlir_sys::mlirAffineDimExprGetPosition(expression);
            return indices.get(position as usize).copied();
        }
        if mlir_sys::mlirAffineExprIsASymbol(expression) {
            let position = mlir_sys::mlirAffineSymbolExprGetPosition(expression);
            return factors.get(position as usize).copied();
        }
        let left = mlir_sys::mlirAffineBinaryOpExprGetLHS(expression);
        let right = mlir_sys::mlirAffineBinaryOpExprGetRHS(expression);
        let a = expand(emitter, left, indices, factors)?;
        let b = expand(emitter, right, indices, factors)?;
        if mlir_sys::mlirAffineExprIsAAdd(expression) {
            Some(emitter.add(a, b))
        } else if mlir_sys::mlirAffineExprIsAMul(expression) {
            Some(emitter.mul(a, b))
        } else if mlir_sys::mlirAffineExprIsAFloorDiv(expression) {
            Some(emitter.floor_div(a, b))
        } else if mlir_sys::mlirAffineExprIsACeilDiv(expression) {
            Some(emitter.ceil_div(a, b))
        } else {
            // What remains is the remainder, which is never negative.
            let whole = emitter.mul(emitter.floor_div(a, b), b);
            Some(emitter.sub(a, whole))
        }
    }
}
