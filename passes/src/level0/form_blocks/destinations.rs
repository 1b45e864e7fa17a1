//! Destinations with instance dims, in the basic block that uses them.
//!
//! What an operation writes to is made of a length and perhaps a constant, and is copied into each
//! block that uses it. Upstream's CSE and loop-invariant code motion share one among regions of the
//! control program; here each region that computes with it gets its own again.

use cohort_dialects::builder::{
    Builder, Dialect, Op, extend_op, operands_of, result_of, results_of,
};
use melior::{
    Context,
    ir::{BlockLike, OperationRef, ValueLike, operation::OperationLike},
};

use crate::level0::resolve_dims::length_of;
use crate::support::ir::{
    TensorType, clone_op, defining_op, erase, key, nested_ops, set_operand, users_of,
};
use crate::support::waves::{Role, role};

/// Gives each basic block of a function destinations of its own.
pub fn bring_in<'c>(context: &'c Context, function: OperationRef<'c, 'c>) {
    for operation in nested_ops(function) {
        if Op::LinalgFill.is(operation) {
            fill_empty(context, operation);
        }
    }
    erase_unused(function);
    let mut operations = nested_ops(function);
    // What is filled comes before what it is filled into, so that the latter sees its new users.
    operations.reverse();
    for operation in operations {
        let is_destination = matches!(Op::of(operation), Some(Op::TensorEmpty | Op::LinalgFill));
        if !is_destination || !super::grows(operation) {
            continue;
        }
        let value = result_of(operation, 0);
        for user in users_of(value) {
            let place = in_basic_block(user);
            if role(user) != Role::Tensor || same_block(place, operation) {
                continue;
            }
            let Some(before) = Builder::before(context, place) else {
                continue;
            };
            let copy = result_of(before.insert(clone_op(operation)), 0);
            for (index, operand) in operands_of(user).into_iter().enumerate() {
                if key(operand) == key(value) {
                    set_operand(user, index, copy);
                }
            }
        }
        if users_of(value).is_empty() {
            erase(operation);
        }
    }
}

/// Fills an empty tensor. Upstream makes of a concatenation of filled tensors a filled concatenation
/// of empty ones, which would be computed.
fn fill_empty<'c>(context: &'c Context, fill: OperationRef<'c, 'c>) {
    let Some(&destination) = operands_of(fill).get(1) else {
        return;
    };
    let is_view = |op: OperationRef<'c, 'c>| {
        role(op) == Role::Tensor && Dialect::Tensor.has(op) && !Op::TensorEmpty.is(op)
    };
    if !defining_op(destination).is_some_and(is_view) {
        return;
    }
    let (Some(ty), Some(b)) = (
        TensorType::of_value(destination),
        Builder::before(context, fill),
    ) else {
        return;
    };
    let dynamic = (0..ty.rank()).filter(|axis| ty.shape[*axis].is_none());
    let lengths: Vec<_> = dynamic
        .map(|axis| length_of(&b, destination, axis))
        .collect();
    set_operand(fill, 1, b.tensor_empty(&lengths, destination.r#type()));
}

/// Erases rearrangements of tensors that nothing uses.
fn erase_unused(function: OperationRef<'_, '_>) {
    for operation in nested_ops(function).into_iter().rev() {
        let is_view = Dialect::Tensor.has(operation) && role(operation) == Role::Tensor;
        let mut results = results_of(operation).into_iter();
        if is_view && results.all(|result| users_of(result).is_empty()) {
            erase(operation);
        }
    }
}

/// The operation itself or the one around it that stands in a basic block of the control program.
fn in_basic_block<'c>(operation: OperationRef<'c, 'c>) -> OperationRef<'c, 'c> {
    let mut place = operation;
    while let Some(around) = place.parent_operation().map(extend_op) {
        if role(around) == Role::Control {
            break;
        }
        place = around;
    }
    place
}

fn same_block(left: OperationRef<'_, '_>, right: OperationRef<'_, '_>) -> bool {
    let raw = |op: OperationRef<'_, '_>| op.block().map(|block| block.to_raw().ptr);
    raw(left) == raw(right)
}
