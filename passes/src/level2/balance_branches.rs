//! `balance-branches`: branches of unequal length take equally long (level 2).
//!
//! Where the host chooses between branches that record chains of different length, what reads the
//! result runs at different depths for different instances, in two batches instead of one. The
//! result of the shorter branch is delayed by a `cfb.ghost` of the difference, which computes
//! nothing, and what follows is one batch again.
//!
//! ```mlir
//! %g = scf.if %c -> (!cfb.lazy<tensor<8xf32>>) {
//!   scf.yield %h : !cfb.lazy<tensor<8xf32>>
//! } else {
//!   %k = cfb.record @f_0(%h) : (!cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>>
//!   scf.yield %k : !cfb.lazy<tensor<8xf32>>
//! }
//! %o = cfb.record @f_1(%g) : (!cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>>
//! // becomes, in the first branch
//!   %d = cfb.ghost %h {levels = 1} : !cfb.lazy<tensor<8xf32>>
//!   scf.yield %d : !cfb.lazy<tensor<8xf32>>
//! ```
//!
//! Done where it pays: a `cfb.record` right after the choice reads the result, its kernel is none of
//! the branches' (those would rather be joined with each other), and both lengths count from the
//! same values: what the shorter chain starts from, the longer one starts from too. Left alone, since
//! the length is not known, are branches with calls, loops or decisions of tensors.
//!
//! Requires: level 2. Leaves: level 2. Only the order of work changes. After ACRoBat, "ghost
//! operators".

use std::collections::{BTreeSet, HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Op, Val, extend_op, operands_of, operations_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::lazy_tensor;
use melior::{
    Context,
    ir::{
        BlockRef, OperationRef, ValueLike, attribute::IntegerAttribute, operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    TensorType, blocks_of, functions_of, integer_attribute, kernel_of, key, nested_ops,
    set_operand, users_of,
};
use crate::support::waves::used_values;

/// The pass `balance-branches`.
pub const PASS: PassInfo = PassInfo {
    name: "balance-branches",
    summary: "Delay the results of the shorter branch of a choice by ghosts (level 2)",
    description: include_str!("balance_branches.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        let mut choices: Vec<_> = nested_ops(function)
            .into_iter()
            .filter(|op| is_choice(*op))
            .collect();
        // Inner choices first: they are of one length then.
        choices.reverse();
        for choice in choices {
            balance(context, choice);
        }
    }
    Ok(())
}

fn is_choice(operation: OperationRef<'_, '_>) -> bool {
    matches!(Op::of(operation), Some(Op::ScfIf | Op::CfbMatch))
}

fn balance<'c>(context: &'c Context, choice: OperationRef<'c, 'c>) {
    // What is nested in choices is looked through for each of them; most results are read by nobody who would wait.
    let results: Vec<_> = results_of(choice)
        .into_iter()
        .enumerate()
        .filter(|(_, result)| is_row(*result) && !records_beside(choice, *result).is_empty())
        .collect();
    if results.is_empty() {
        return;
    }
    let branches = blocks_of(choice);
    let ends: Vec<_> = branches
        .iter()
        .filter_map(|branch| operations_of(*branch).pop())
        .collect();
    let has_open_length = nested_ops(choice).into_iter().any(|op| {
        matches!(
            Op::of(op),
            Some(
                Op::FuncCall
                    | Op::ScfWhile
                    | Op::ScfFor
                    | Op::CfbFold
                    | Op::CfbMap
                    | Op::CfbForce
                    | Op::CfbDebug
            )
        )
    });
    if has_open_length || ends.len() != branches.len() || ends.len() < 2 {
        return;
    }
    let chains: Vec<Chains> = branches.iter().map(|branch| Chains::of(*branch)).collect();
    let kernels = recorded(choice);
    for (index, result) in results {
        if !is_read_elsewhere(choice, result, &kernels) {
            continue;
        }
        let yielded: Vec<Val<'c>> = ends.iter().map(|end| operands_of(*end)[index]).collect();
        let lengths: Vec<Chain> = chains
            .iter()
            .zip(&yielded)
            .map(|(chains, value)| chains.get(*value))
            .collect();
        let Some(longest) = lengths.iter().max_by_key(|chain| chain.length) else {
            continue;
        };
        for ((chain, value), end) in lengths.iter().zip(&yielded).zip(&ends) {
            let missing = longest.length - chain.length;
            if missing > 0 && chain.starts.is_subset(&longest.starts) {
                delay(context, *end, index, *value, missing);
            }
        }
    }
}

fn delay<'c>(
    context: &'c Context,
    end: OperationRef<'c, 'c>,
    index: usize,
    value: Val<'c>,
    levels: i64,
) {
    if let Some(b) = Builder::before(context, end) {
        let levels = IntegerAttribute::new(b.i64(), levels).into();
        let ghost = b.value_with(
            Op::CfbGhost,
            &[value],
            value.r#type(),
            &[(keys::LEVELS, levels)],
        );
        set_operand(end, index, ghost);
    }
}

/// Whether a value is the handle of one row.
fn is_row(value: Val<'_>) -> bool {
    lazy_tensor(value.r#type())
        .and_then(TensorType::of)
        .is_some_and(|tensor| !tensor.shape.contains(&None))
}

/// The records beside a choice that read one of its results.
fn records_beside<'c>(choice: OperationRef<'c, 'c>, result: Val<'c>) -> Vec<OperationRef<'c, 'c>> {
    let is_beside =
        |user: &OperationRef<'c, 'c>| Op::CfbRecord.is(*user) && user.block() == choice.block();
    users_of(result).into_iter().filter(is_beside).collect()
}

/// Whether a record beside the choice, of none of its kernels, reads a result.
fn is_read_elsewhere<'c>(
    choice: OperationRef<'c, 'c>,
    result: Val<'c>,
    kernels: &HashSet<String>,
) -> bool {
    records_beside(choice, result)
        .into_iter()
        .any(|user| kernel_of(user).is_some_and(|kernel| !kernels.contains(&kernel)))
}

fn recorded(choice: OperationRef<'_, '_>) -> HashSet<String> {
    nested_ops(choice)
        .into_iter()
        .filter(|op| Op::CfbRecord.is(*op))
        .filter_map(kernel_of)
        .collect()
}

/// How a value comes about in a branch.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// Records, one after the other.
    length: i64,
    /// The handles from outside of the branch that it is made of.
    starts: BTreeSet<usize>,
}

impl Chain {
    fn join(&mut self, other: Chain) {
        self.length = self.length.max(other.length);
        self.starts.extend(other.starts);
    }
}

/// The chains of the values of a branch.
struct Chains(HashMap<usize, Chain>);

impl Chains {
    fn of(branch: BlockRef<'_, '_>) -> Chains {
        let mut chains = Chains(HashMap::new());
        chains.follow(branch);
        chains
    }

    fn follow(&mut self, branch: BlockRef<'_, '_>) {
        for operation in operations_of(branch) {
            for block in blocks_of(operation) {
                self.follow(block);
            }
            let mut chain = Chain::default();
            for operand in used_values(operation) {
                chain.join(self.get(operand));
            }
            chain.length += match Op::of(operation) {
                Some(Op::CfbRecord) => 1,
                Some(Op::CfbGhost) => {
                    integer_attribute(extend_op(operation), keys::LEVELS).unwrap_or(0)
                }
                _ => 0,
            };
            for result in results_of(operation) {
                self.0.insert(key(result), chain.clone());
            }
        }
    }

    /// What is not made in the branch starts a chain, if it is a handle.
    fn get(&self, value: Val<'_>) -> Chain {
        match self.0.get(&key(value)) {
            Some(chain) => chain.clone(),
            None => Chain {
                length: 0,
                starts: is_row(value).then(|| key(value)).into_iter().collect(),
            },
        }
    }
}
