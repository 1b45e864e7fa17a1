//! Integers of the host that are known, and branches that they decide.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val, operands_of, operations_of, result_of, results_of};
use cohort_dialects::keys;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, ValueLike, attribute::IntegerAttribute};

use crate::support::ir::{
    blocks_of, elem_of, erase, integer_attribute, key, move_before, nested_ops, replace_uses,
};

/// Values with the numbers that they are.
#[derive(Default)]
pub struct Known(HashMap<usize, i64>);

impl Known {
    /// What is known in a function of which nothing is known from outside.
    pub fn in_function<'c>(function: OperationRef<'c, 'c>) -> Known {
        let mut known = Known::default();
        for operation in nested_ops(function) {
            known.learn(operation);
        }
        known
    }

    pub fn get(&self, value: Val<'_>) -> Option<i64> {
        self.0.get(&key(value)).copied()
    }

    pub fn insert(&mut self, value: Val<'_>, number: i64) {
        self.0.insert(key(value), number);
    }

    /// Puts what known conditions choose in the place of their branches, in a block and all within it.
    pub fn fold<'c>(&mut self, block: BlockRef<'c, 'c>) {
        for operation in operations_of(block) {
            self.learn(operation);
            match self.chosen(operation) {
                Some(branch) => {
                    self.fold(branch);
                    put_in_place(branch, operation);
                }
                None => {
                    for inner in blocks_of(operation) {
                        self.fold(inner);
                    }
                }
            }
        }
    }

    /// The branch of an `scf.if` that a known condition chooses.
    fn chosen<'c>(&self, operation: OperationRef<'c, 'c>) -> Option<BlockRef<'c, 'c>> {
        if !Op::ScfIf.is(operation) {
            return None;
        }
        let condition = self.get(*operands_of(operation).first()?)?;
        let branch = operation.region(usize::from(condition == 0)).ok()?;
        let branch =
            cohort_dialects::builder::extend_block(melior::ir::RegionLike::first_block(&branch)?);
        Some(branch)
    }

    /// Computes an operation's result where that is an integer of known operands.
    fn learn(&mut self, operation: OperationRef<'_, '_>) {
        if operation.result_count() == 1
            && let Some(number) = self.result(operation)
        {
            self.insert(result_of(operation, 0), number);
        }
    }

    /// Integers wrap as those of the language do; a condition is 0 or 1.
    fn result(&self, operation: OperationRef<'_, '_>) -> Option<i64> {
        let ty = result_of(operation, 0).r#type();
        let wrap: fn(i64) -> i64 = match elem_of(ty) {
            Some(Elem::Bool) => |number| number & 1,
            Some(Elem::I32) => |number| i64::from(number as i32),
            _ => return None,
        };
        let kind = Op::of(operation);
        if kind == Some(Op::ArithConstant) {
            let value = operation.attribute(&keys::VALUE).ok()?;
            return Some(wrap(IntegerAttribute::try_from(value).ok()?.value()));
        }
        let operands = operands_of(operation);
        let of = |index: usize| self.get(*operands.get(index)?);
        let number = match kind {
            Some(Op::ArithSelect) => of(if of(0)? == 0 { 2 } else { 1 })?,
            Some(Op::ArithAddi) => of(0)?.wrapping_add(of(1)?),
            Some(Op::ArithSubi) => of(0)?.wrapping_sub(of(1)?),
            Some(Op::ArithMuli) => of(0)?.wrapping_mul(of(1)?),
            Some(Op::ArithAndi) => of(0)? & of(1)?,
            Some(Op::ArithOri) => of(0)? | of(1)?,
            Some(Op::ArithXori) => of(0)? ^ of(1)?,
            Some(Op::ArithMinsi) => of(0)?.min(of(1)?),
            Some(Op::ArithMaxsi) => of(0)?.max(of(1)?),
            Some(Op::ArithCmpi) => i64::from(compare(
                integer_attribute(operation, keys::PREDICATE)?,
                of(0)?,
                of(1)?,
            )?),
            _ => return None,
        };
        Some(wrap(number))
    }
}

/// A predicate of `arith.cmpi`, by its number; those of numbers without sign do not occur.
fn compare(predicate: i64, left: i64, right: i64) -> Option<bool> {
    Some(match predicate {
        0 => left == right,
        1 => left != right,
        2 => left < right,
        3 => left <= right,
        4 => left > right,
        5 => left >= right,
        _ => return None,
    })
}

/// Moves the operations of a branch before what chooses it, and erases that.
fn put_in_place<'c>(branch: BlockRef<'c, 'c>, choice: OperationRef<'c, 'c>) {
    for operation in operations_of(branch) {
        if Op::ScfYield.is(operation) {
            for (result, value) in results_of(choice).into_iter().zip(operands_of(operation)) {
                replace_uses(result, value);
            }
        } else {
            move_before(operation, choice);
        }
    }
    erase(choice);
}
