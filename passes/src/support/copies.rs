//! Copies of operations, wired to each other as the originals are.

use std::collections::HashMap;

use cohort_dialects::builder::{Builder, Val, operands_of, results_of};
use melior::ir::{OperationRef, operation::OperationLike};

use crate::support::ir::{clone_op, key, nested_ops, op_key, set_operand};

/// Operations and values with what stands for them in a copy of their block.
#[derive(Default)]
pub struct Copies<'c> {
    /// The copy of each value, by the value's key.
    pub values: HashMap<usize, Val<'c>>,
    /// The copy of each operation, by the operation's key.
    pub operations: HashMap<usize, OperationRef<'c, 'c>>,
}

impl<'c> Copies<'c> {
    /// What stands for a value, itself if nothing does.
    pub fn of(&self, value: Val<'c>) -> Val<'c> {
        self.values.get(&key(value)).copied().unwrap_or(value)
    }

    /// Copies an operation, and lets the copy use what stands for its operands.
    pub fn copy(&mut self, before: &Builder<'c>, operation: OperationRef<'c, 'c>) {
        let copy = copy_op(before, operation, &mut self.values);
        self.operations.insert(op_key(operation), copy);
    }

    /// Lets an operation, and all within it, use what stands for its operands.
    pub fn replace_in(&self, operation: OperationRef<'c, 'c>) {
        replace_operands(operation, &self.values);
    }
}

/// Copies an operation, lets the copy use what stands for its operands, and notes its results as what stands for the original's.
pub fn copy_op<'c>(
    before: &Builder<'c>,
    operation: OperationRef<'c, 'c>,
    values: &mut HashMap<usize, Val<'c>>,
) -> OperationRef<'c, 'c> {
    let copy = before.at(operation.location()).insert(clone_op(operation));
    replace_operands(copy, values);
    for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
        values.insert(key(old), new);
    }
    copy
}

/// Lets an operation, and all within it, use what stands for its operands, by the key of each.
pub fn replace_operands<'c>(operation: OperationRef<'c, 'c>, values: &HashMap<usize, Val<'c>>) {
    for operation in std::iter::once(operation).chain(nested_ops(operation)) {
        for (index, operand) in operands_of(operation).into_iter().enumerate() {
            if let Some(with) = values.get(&key(operand)) {
                set_operand(operation, index, *with);
            }
        }
    }
}
