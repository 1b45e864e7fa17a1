//! `hoist-invariants`: what is the same in every step of a loop is computed once, before it (level 0).
//!
//! A product, a reduction, or the transposition of a matrix for a product, in the body of a `cfb.map`,
//! `cfb.fold`, `scf.for` or `scf.while`, whose operands all come from outside is moved before the loop, out
//! of as many loops as it does not depend on. What it needs and is cheap (constants, parameter loads, slices, elementwise
//! operations) is copied along. Cheap operations themselves stay: their results would have to be
//! stored and read. Upstream's loop-invariant code motion moves those too, which tears a bias from
//! its product, so this pass has its own rule.
//!
//! ```mlir
//! %r = cfb.map %a : (!cfb.array<tensor<8xf32>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%h: tensor<8xf32>):
//!   %p = linalg.vecmat ins(%x, %w : …) outs(%zero : …) -> tensor<8xf32>
//!   %s = arith.addf %p, %h : tensor<8xf32>
//!   cfb.yield %s : tensor<8xf32>
//! }
//! // becomes
//! %p = linalg.vecmat ins(%x, %w : …) outs(%zero : …) -> tensor<8xf32>
//! %r = cfb.map %a : (!cfb.array<tensor<8xf32>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%h: tensor<8xf32>):
//!   %s = arith.addf %p, %h : tensor<8xf32>
//!   cfb.yield %s : tensor<8xf32>
//! }
//! ```
//!
//! Tensor operations cannot fail, so one that a loop of no steps would not have run changes no
//! result. Requires: level 0 after inlining. Leaves: level 0; what became unused is left to the
//! canonicaliser. Not moved: what runs in some steps only (in an `scf.if`, or a match of several
//! constructors). After ACRoBat, "operator hoisting".

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Builder, Op, Val, extend_op, operations_of, results_of};
use melior::{
    Context,
    ir::{BlockRef, OperationRef, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::copies::copy_op;
use crate::support::ir::{
    argument_of, blocks_of, defining_op, key, nested_ops, op_key, replace_uses, users_of,
};
use crate::support::waves::{Role, is_expensive, role, used_values};

/// The pass `hoist-invariants`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-invariants",
    summary: "Compute what is the same in every step of a loop once, before it (level 0)",
    description: include_str!("hoist_invariants.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let loops: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| is_loop(*op))
        .collect();
    // Innermost first: what leaves an inner loop may leave the outer one as well.
    for the_loop in loops.into_iter().rev() {
        let moved: Vec<_> = every_step(the_loop)
            .into_iter()
            .filter(|op| role(*op) == Role::Tensor && (is_expensive(*op) || is_rearranged(*op)))
            .collect();
        let mut copies = HashMap::new();
        for operation in moved {
            hoist(context, the_loop, operation, &mut copies);
        }
    }
    Ok(())
}

/// Whether an operation turns a matrix for a product: cheap for one row, and for a product a copy.
fn is_rearranged(operation: OperationRef<'_, '_>) -> bool {
    let mut users = results_of(operation).into_iter().flat_map(users_of);
    Op::LinalgTranspose.is(operation)
        && users.any(|user| {
            matches!(
                Op::of(user),
                Some(
                    Op::LinalgMatmul | Op::LinalgBatchMatmul | Op::LinalgVecmat | Op::LinalgMatvec
                )
            )
        })
}

fn is_loop(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(operation),
        Some(Op::CfbMap | Op::CfbFold | Op::ScfFor | Op::ScfWhile)
    )
}

/// The operations that run in every step of a loop, in order.
fn every_step<'c>(control: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut found = Vec::new();
    for operation in blocks_of(control).into_iter().flat_map(operations_of) {
        found.push(operation);
        if Op::CfbMatch.is(operation) && operation.region_count() == 1 {
            found.extend(every_step(operation));
        }
    }
    found
}

/// Puts a copy of an operation before a loop, if all that it needs is known there.
fn hoist<'c>(
    context: &'c Context,
    the_loop: OperationRef<'c, 'c>,
    operation: OperationRef<'c, 'c>,
    copies: &mut HashMap<usize, Val<'c>>,
) {
    let mut needed = Vec::new();
    if !collect(
        the_loop,
        operation,
        copies,
        &mut HashSet::new(),
        &mut needed,
    ) {
        return;
    }
    let Some(before) = Builder::before(context, the_loop) else {
        return;
    };
    for original in needed {
        copy_op(&before, original, copies);
    }
    for result in results_of(operation) {
        if let Some(copy) = copies.get(&key(result)) {
            replace_uses(result, *copy);
        }
    }
}

/// Adds an operation of a loop to `needed`, behind those it needs; says whether all of them can run
/// before the loop.
fn collect<'c>(
    the_loop: OperationRef<'c, 'c>,
    operation: OperationRef<'c, 'c>,
    copies: &HashMap<usize, Val<'c>>,
    seen: &mut HashSet<usize>,
    needed: &mut Vec<OperationRef<'c, 'c>>,
) -> bool {
    if !seen.insert(op_key(operation)) {
        return true;
    }
    if role(operation) == Role::Control {
        return false;
    }
    for value in used_values(operation) {
        if copies.contains_key(&key(value)) || is_in(value, operation) || !is_in(value, the_loop) {
            continue;
        }
        let Some(producer) = defining_op(value) else {
            return false;
        };
        if !collect(the_loop, producer, copies, seen, needed) {
            return false;
        }
    }
    needed.push(operation);
    true
}

/// Whether a value is defined in a region of an operation.
fn is_in<'c>(value: Val<'c>, operation: OperationRef<'c, 'c>) -> bool {
    let block: Option<BlockRef<'c, 'c>> = match defining_op(value) {
        Some(producer) => producer.block().map(cohort_dialects::builder::extend_block),
        None => argument_of(value).map(|(block, _)| block),
    };
    let mut parent = block
        .and_then(|block| melior::ir::BlockLike::parent_operation(&block))
        .map(extend_op);
    while let Some(current) = parent {
        if op_key(current) == op_key(operation) {
            return true;
        }
        parent = current.parent_operation().map(extend_op);
    }
    false
}
