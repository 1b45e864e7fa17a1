//! `share-slices`: a product with a part of a parameter that the host chooses gets a branch for each
//! part (level 0).
//!
//! `h @ w[k]`, where `k` counts the turns of a `while` or is the expert that an `argmax` chose, has one
//! matrix a row: each row of a batch reads a whole matrix for itself. Written out as a choice between
//! the products with each part, the rows that chose the same part are one dense product with a matrix
//! that they share, and each part is packed once at load, as if the program had a `match` with an arm a
//! part.
//!
//! ```mlir
//! %m = cfb.lookup %w[%k] : tensor<2x64x64xf32> -> tensor<64x64xf32>
//! %p = linalg.vecmat ins(%h, %m : …) outs(%z : …) -> tensor<64xf32>
//! %r = math.tanh %p : tensor<64xf32>
//! // becomes
//! %i = cfb.within %k of %c2
//! %first = arith.cmpi slt, %i, %c1_i32 : i32
//! %r = scf.if %first -> (tensor<64xf32>) {
//!   %s = tensor.extract_slice %w[0, 0, 0] [1, 64, 64] [1, 1, 1] : …
//!   %m = tensor.collapse_shape %s [[0, 1], [2]] : …
//!   %p = linalg.vecmat ins(%h, %m : …) outs(%z : …) -> tensor<64xf32>
//!   %t = math.tanh %p : tensor<64xf32>
//!   scf.yield %t : tensor<64xf32>
//! } else {
//!   … the same with the second matrix
//! }
//! ```
//!
//! A branch holds the products with parts at one index of the same basic block, what lies between them,
//! and what is computed of their results up to the next product, loop, call or decision. What each part
//! makes of other parameters at that index, such as a bias, is the branch's own too. More than two
//! parts are a tree of choices.
//!
//! Requires: level 0, after `resolve-dims`. Leaves: level 0. A product stays as it is where the parts
//! are too small for it to pay (less than 4,096 elements), where there are more than 64 of them, or
//! where all branches together would have more than 4,096 operations; a remark then says so. After
//! ACRoBat, section 4 (parameter reuse), which knows such parts apart while the program runs.

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, operands_of, operations_of, region_with_block, result_of,
    results_of,
};
use std::collections::{HashMap, HashSet};

use melior::{
    Context,
    ir::{BlockRef, OperationRef, Type, ValueLike, operation::OperationLike},
};

use crate::level0::unroll_loops::{is_parameter, known_row};
use crate::pass::{Outcome, PassInfo, remark};
use crate::support::copies::copy_op;
use crate::support::ir::{
    TensorType, blocks_of, defining_op, erase, functions_of, is_local, is_within, key, move_before,
    nested_ops, op_key, replace_uses, users_of,
};
use crate::support::waves::{Role, is_expensive, role, used_values};

/// The pass `share-slices`.
pub const PASS: PassInfo = PassInfo {
    name: "share-slices",
    summary: "Branch on the part of a parameter that a product takes, so that rows share it (level 0)",
    description: include_str!("share_slices.rs"),
    run,
};

/// Elements of a part below which one launch for all rows is better than one for each part.
const FEWEST_ELEMENTS: u64 = 4096;
/// Parts that there may be branches for.
const MOST_PARTS: u64 = 64;
/// Operations that all branches of a choice may have together.
const MOST_OPERATIONS: u64 = 4096;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        let blocks: Vec<_> = std::iter::once(function)
            .chain(nested_ops(function))
            .filter(|op| role(*op) == Role::Control)
            .flat_map(blocks_of)
            .collect();
        for block in blocks {
            share_in(context, block);
        }
    }
    Ok(())
}

/// Each choice leaves fewer products with chosen parts, or none is made.
fn share_in<'c>(context: &'c Context, block: BlockRef<'c, 'c>) {
    let mut refused = HashSet::new();
    loop {
        let operations = operations_of(block);
        let product = operations.iter().find_map(|op| {
            let lookup = chosen_matrix(*op).filter(|_| !refused.contains(&op_key(*op)))?;
            Some((*op, lookup))
        });
        let Some((product, lookup)) = product else {
            return;
        };
        let group = Group::from(&operations, product, operands_of(lookup)[1]);
        match group.refusal(lookup) {
            Some(why) => {
                if !why.is_empty() {
                    remark(product, &format!("takes one matrix a row: {why}"));
                }
                refused.extend(group.operations.iter().map(|op| op_key(*op)));
            }
            None => group.branch(context, block),
        }
    }
}

/// The lookup of the matrix of a product, where that is a part of a parameter, or a rearrangement of one.
fn chosen_matrix<'c>(product: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    if !matches!(Op::of(product), Some(Op::LinalgVecmat | Op::LinalgMatmul)) {
        return None;
    }
    let mut producer = defining_op(operands_of(product)[1])?;
    while is_rearranged(producer) {
        producer = defining_op(operands_of(producer)[0])?;
    }
    is_part(producer).then_some(producer)
}

fn is_rearranged(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(operation),
        Some(
            Op::LinalgTranspose
                | Op::TensorExtractSlice
                | Op::TensorExpandShape
                | Op::TensorCollapseShape
        )
    )
}

/// Whether an operation looks a part of a parameter up that has a dim at least.
fn is_part(operation: OperationRef<'_, '_>) -> bool {
    Op::CfbLookup.is(operation)
        && is_parameter(operands_of(operation)[0])
        && TensorType::of_value(operands_of(operation)[0]).is_some_and(|ty| ty.rank() > 1)
}

fn is_product(operation: OperationRef<'_, '_>) -> bool {
    is_expensive(operation) && !Op::LinalgReduce.is(operation)
}

/// Operations of a basic block that are computed with parts at one index.
struct Group<'c> {
    index: Val<'c>,
    /// In order. Nothing outside of them lies between two of them.
    operations: Vec<OperationRef<'c, 'c>>,
    /// What stands among them and needs their results.
    behind: Vec<OperationRef<'c, 'c>>,
    /// What they need that each branch makes for itself, parts at the index among them.
    copied: HashMap<usize, OperationRef<'c, 'c>>,
}

impl<'c> Group<'c> {
    /// From the first product on.
    fn from(
        operations: &[OperationRef<'c, 'c>],
        first: OperationRef<'c, 'c>,
        index: Val<'c>,
    ) -> Group<'c> {
        let mut group = Group {
            index,
            operations: vec![],
            behind: vec![],
            copied: HashMap::new(),
        };
        let mut inside = HashSet::new();
        let mut behind = HashSet::new();
        let mut waiting = Vec::new();
        for operation in operations {
            let uses = |set: &HashSet<usize>| {
                used_values(*operation)
                    .into_iter()
                    .filter_map(defining_op)
                    .any(|producer| set.contains(&op_key(producer)))
            };
            let is_first = op_key(*operation) == op_key(first);
            if inside.is_empty() && !is_first {
                continue;
            }
            let at_index = chosen_matrix(*operation)
                .is_some_and(|lookup| key(operands_of(lookup)[1]) == key(index));
            let follows = uses(&inside) && !is_product(*operation);
            let is_tensor = role(*operation) == Role::Tensor;
            match uses(&behind) {
                false if is_first || is_tensor && (at_index || follows) => {
                    inside.insert(op_key(*operation));
                    group.operations.push(*operation);
                    group.behind.append(&mut waiting);
                }
                false if !uses(&inside) => {
                    if Op::CfbPhase.is(*operation) {
                        break;
                    }
                }
                // Nor does what comes behind a decision, a call or a loop join those before it.
                _ if !is_tensor => break,
                _ => {
                    behind.insert(op_key(*operation));
                    waiting.push(*operation);
                }
            }
        }
        let mut copied = HashMap::new();
        for operation in &group.operations {
            let own = HashSet::from([op_key(*operation)]);
            let used = used_values(*operation).into_iter();
            for value in used.filter(|value| !is_local(*value, &own)) {
                group.copies(value, &inside, &mut copied);
            }
        }
        group.copied = copied;
        group
    }

    /// Whether a value from outside is one that each branch makes for itself: a part at the index, a
    /// constant, or what is made of nothing else and is cheap. Adds what makes it to `copied`.
    fn copies(
        &self,
        value: Val<'c>,
        inside: &HashSet<usize>,
        copied: &mut HashMap<usize, OperationRef<'c, 'c>>,
    ) -> bool {
        let Some(producer) = defining_op(value).filter(|op| !inside.contains(&op_key(*op))) else {
            return false;
        };
        if copied.contains_key(&op_key(producer)) {
            return true;
        }
        let can_be = match role(producer) {
            Role::Constant => true,
            Role::Tensor if !is_expensive(producer) => operands_of(producer)
                .into_iter()
                .filter(|operand| TensorType::of_value(*operand).is_some())
                .all(|operand| self.copies(operand, inside, copied)),
            _ => is_part(producer) && key(operands_of(producer)[1]) == key(self.index),
        };
        if can_be {
            copied.insert(op_key(producer), producer);
        }
        can_be
    }

    /// The parts that every parameter has.
    fn parts(&self) -> u64 {
        let parts = self.copied.values().filter(|op| is_part(**op));
        let counts = parts.filter_map(|part| TensorType::of_value(operands_of(*part)[0])?.shape[0]);
        counts.min().unwrap_or(0)
    }

    /// Why there are to be no branches; nothing, if that is as it should be.
    fn refusal(&self, lookup: OperationRef<'c, 'c>) -> Option<String> {
        let part = TensorType::of_value(result_of(lookup, 0));
        let elements = part.map_or(0, |part| part.shape.into_iter().flatten().product());
        let parts = self.parts();
        let operations = (self.operations.len() + self.copied.len()) as u64 * parts;
        if parts == 0 || elements < FEWEST_ELEMENTS {
            Some(String::new())
        } else if parts > MOST_PARTS {
            let why = format!(
                "the host chooses it of {parts}, and at most {MOST_PARTS} get code of their own"
            );
            Some(why)
        } else if operations > MOST_OPERATIONS {
            let why = format!(
                "code for each of the {parts} that the host chooses from would have {operations} operations, \
                 more than {MOST_OPERATIONS}"
            );
            Some(why)
        } else {
            None
        }
    }

    /// Puts the branches in the place of the operations.
    fn branch(self, context: &'c Context, block: BlockRef<'c, 'c>) {
        let Some(last) = self.operations.last() else {
            return;
        };
        let place = operations_of(block)
            .into_iter()
            .skip_while(|op| op_key(*op) != op_key(*last))
            .nth(1);
        let Some(place) = place else {
            return;
        };
        let Some(before) = Builder::before(context, place) else {
            return;
        };
        let before = before.at(self.operations[0].location());
        let inside: HashSet<usize> = self.operations.iter().map(|op| op_key(*op)).collect();
        let results: Vec<Val<'c>> = (self.operations.iter())
            .flat_map(|op| results_of(*op))
            .filter(|result| {
                let mut users = users_of(*result).into_iter();
                users.any(|user| !is_within(user, &inside))
            })
            .collect();
        let parts = self.parts();
        let count = before.index(parts as i64);
        let index = before.value(Op::CfbWithin, &[self.index, count], self.index.r#type());
        let chosen = self.choose(&before, index, &results, 0, parts);
        for operation in &self.behind {
            move_before(*operation, place);
        }
        for (old, new) in results.into_iter().zip(chosen) {
            replace_uses(old, new);
        }
        for operation in self.operations.into_iter().rev() {
            erase(operation);
        }
    }

    /// The results for the parts from `first` to before `end`, by the index.
    fn choose(
        &self,
        b: &Builder<'c>,
        index: Val<'c>,
        results: &[Val<'c>],
        first: u64,
        end: u64,
    ) -> Vec<Val<'c>> {
        if end - first == 1 {
            return self.copy(b, results, first);
        }
        let middle = first.midpoint(end);
        let bound = b.integer(middle as i64, index.r#type());
        let is_less = b.cmpi(CmpiPredicate::Slt, index, bound);
        let regions = [(first, middle), (middle, end)].map(|(first, end)| {
            let (region, block) = region_with_block(&[], b.location);
            let inner = Builder::at_end(b.context(), block, b.location);
            let values = self.choose(&inner, index, results, first, end);
            inner.scf_yield(&values);
            region
        });
        let types: Vec<Type<'c>> = results.iter().map(|result| result.r#type()).collect();
        results_of(b.scf_if(is_less, &types, regions))
    }

    /// What the operations compute with one part.
    fn copy(&self, b: &Builder<'c>, results: &[Val<'c>], part: u64) -> Vec<Val<'c>> {
        let mut copies = HashMap::new();
        for operation in &self.operations {
            self.copy_one(b, *operation, part, &mut copies);
        }
        results.iter().map(|result| copies[&key(*result)]).collect()
    }

    fn copy_one(
        &self,
        b: &Builder<'c>,
        operation: OperationRef<'c, 'c>,
        part: u64,
        copies: &mut HashMap<usize, Val<'c>>,
    ) {
        if is_part(operation) {
            let row = result_of(operation, 0);
            let b = b.at(operation.location());
            let known = known_row(&b, operands_of(operation)[0], part, row.r#type());
            copies.insert(key(row), known);
            return;
        }
        for producer in used_values(operation).into_iter().filter_map(defining_op) {
            let made = results_of(producer);
            let is_made = made
                .first()
                .is_some_and(|made| copies.contains_key(&key(*made)));
            if self.copied.contains_key(&op_key(producer)) && !is_made {
                self.copy_one(b, producer, part, copies);
            }
        }
        copy_op(b, operation, copies);
    }
}
