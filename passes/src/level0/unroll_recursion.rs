//! `unroll-recursion`: a recursive function takes its children apart itself (level 0).
//!
//! A function over a data type that calls itself for each child runs a launch for each level of it. Here
//! the call for a child is replaced by the function's own match, of the child, and what stands around
//! the call goes into each arm of it. An arm then holds what a node and its children compute, and
//! `form-blocks` makes one block of it, so that there are half as many levels.
//!
//! ```mlir
//! func.func private @f(%xs: !cfb.adt<@List>) -> tensor<8xf32> {
//!   %r = cfb.match %xs : !cfb.adt<@List> -> (tensor<8xf32>) ({ cfb.yield %h0 : tensor<8xf32> }, {
//!   ^bb0(%x: tensor<8xf32>, %rest: !cfb.adt<@List>):
//!     %h = func.call @f(%rest) : (!cfb.adt<@List>) -> tensor<8xf32>
//!     %n = … the step from %h and %x
//!     cfb.yield %n : tensor<8xf32>
//!   })
//!   return %r : tensor<8xf32>
//! }
//! // has then, for its second arm,
//! ^bb0(%x: tensor<8xf32>, %rest: !cfb.adt<@List>):
//!   %r = cfb.match %rest : !cfb.adt<@List> -> (tensor<8xf32>) ({
//!     %n = … the step from %h0 and %x
//!     cfb.yield %n : tensor<8xf32>
//!   }, {
//!   ^bb0(%y: tensor<8xf32>, %further: !cfb.adt<@List>):
//!     %g = func.call @f(%further) : (!cfb.adt<@List>) -> tensor<8xf32>
//!     %h = … the step from %g and %y
//!     %n = … the step from %h and %x
//!     cfb.yield %n : tensor<8xf32>
//!   })
//!   cfb.yield %r : tensor<8xf32>
//! ```
//!
//! The module's attribute `cfb.unroll` says how many levels of children a node takes apart, 1 without it.
//! Unrolled is a function whose body is one `cfb.match` of an argument, and in it each call of the function
//! itself that stands in an arm and is given a field of that arm. What an arm does stays in its order;
//! only the match, which can neither fail nor wait, comes before it.
//!
//! The order in which a chain's launches follow one another is halved by it, whatever its length. A tree gains less or
//! nothing: an arm with two children becomes one for each pair of what these are, and each of those is a kernel
//! with launches of its own, while a leaf, whose result might have been shared by equal calls, is computed with its parent.
//! So it is part of the pipeline where it is asked for only (`--unroll K`).
//!
//! Requires: level 0 after inlining and canonicalisation. Leaves: level 0. Left as they are, each with a
//! remark: functions that wait for tensors (`cfb.force`), since their steps run one by one, and those that would
//! have more than 4,096 operations. After Cortex, section 3.2 ("unrolling").

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, operations_of, results_of,
};
use melior::{
    Context,
    ir::{BlockRef, OperationRef, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::copies::Copies;
use crate::support::ir::{
    blocks_of, callee_of, clone_op, erase, functions_of, integer_attribute, key, nested_ops,
    op_key, set_operand, symbol_of,
};
use crate::support::waves::{Role, role};
use cohort_dialects::marks::UNROLL;

/// The pass `unroll-recursion`.
pub const PASS: PassInfo = PassInfo {
    name: "unroll-recursion",
    summary: "Let recursive functions take their children apart, so that there are fewer levels (level 0)",
    description: include_str!("unroll_recursion.rs"),
    run,
};

/// Operations that a function may have when it is unrolled.
const MOST_OPERATIONS: usize = 1 << 12;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let levels = integer_attribute(module, UNROLL).map_or(1, |levels| levels.max(0) as usize);
    for function in functions_of(module) {
        let Some(recursion) = Recursion::of(context, function) else {
            continue;
        };
        match recursion.refusal(levels) {
            Some(why) => remark(
                function,
                &format!("`{}` is not unrolled: {why}", recursion.name),
            ),
            None => {
                let before = blocks_of(recursion.the_match).len();
                let after = recursion.unroll(levels);
                let children = match levels {
                    1 => "its children".to_owned(),
                    levels => format!("{levels} levels of its children"),
                };
                remark(
                    function,
                    &format!(
                        "`{}` is unrolled: a call computes {children} as well, in {after} arms \
                         where there were {before}",
                        recursion.name
                    ),
                );
            }
        }
    }
    Ok(())
}

/// A function that takes an argument apart and calls itself with what it finds.
struct Recursion<'c> {
    context: &'c Context,
    name: String,
    function: OperationRef<'c, 'c>,
    the_match: OperationRef<'c, 'c>,
    /// Which argument is matched.
    matched: usize,
    arguments: Vec<Val<'c>>,
}

/// A call that is to be replaced, and how many levels are left to take apart, its own among them.
type Call<'c> = (OperationRef<'c, 'c>, usize);

impl<'c> Recursion<'c> {
    /// The recursion that a function is, if it has the form that can be unrolled.
    fn of(context: &'c Context, function: OperationRef<'c, 'c>) -> Option<Recursion<'c>> {
        let body = *blocks_of(function).first()?;
        let of_control = |op: &OperationRef<'c, 'c>| {
            !matches!(role(*op), Role::Constant | Role::Parameter) && !Op::ArithConstant.is(*op)
        };
        let mut operations = operations_of(body).into_iter().filter(of_control);
        let (the_match, the_return) = (operations.next()?, operations.next()?);
        let returned = operands_of(the_return);
        let results = results_of(the_match);
        let fits = Op::CfbMatch.is(the_match)
            && Op::FuncReturn.is(the_return)
            && returned.len() == results.len()
            && returned
                .iter()
                .zip(&results)
                .all(|(a, b)| key(*a) == key(*b));
        let arguments = arguments_of(body);
        let scrutinee = *operands_of(the_match).first()?;
        let matched = arguments
            .iter()
            .position(|argument| key(*argument) == key(scrutinee))?;
        let recursion = Recursion {
            context,
            name: symbol_of(function)?,
            function,
            the_match,
            matched,
            arguments,
        };
        let arms = blocks_of(the_match);
        let calls = arms.iter().any(|arm| !recursion.calls_in(*arm).is_empty());
        (fits && calls).then_some(recursion)
    }

    /// The calls of the function itself that stand in an arm and are given a field of it.
    fn calls_in(&self, arm: BlockRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
        let fields = arguments_of(arm);
        let is_field = |value: Val<'c>| fields.iter().any(|field| key(*field) == key(value));
        operations_of(arm)
            .into_iter()
            .filter(|op| {
                Op::FuncCall.is(*op)
                    && callee_of(*op).as_deref() == Some(&self.name)
                    && is_field(operands_of(*op)[self.matched])
            })
            .collect()
    }

    fn refusal(&self, levels: usize) -> Option<String> {
        let mut operations = nested_ops(self.function).into_iter();
        if operations.any(|op| Op::CfbForce.is(op)) {
            return Some("it waits for tensors, so its steps run one by one".to_owned());
        }
        let arms: Vec<(usize, usize)> = blocks_of(self.the_match)
            .into_iter()
            .map(|arm| {
                let operations = operations_of(arm).into_iter();
                let size = operations.map(|op| 1 + nested_ops(op).len()).sum();
                (size, self.calls_in(arm).len())
            })
            .collect();
        let mut size = 0;
        for (operations, calls) in &arms {
            count(&arms, *operations, &mut vec![levels; *calls], &mut size);
        }
        (size > MOST_OPERATIONS)
            .then(|| format!("it would have more than {MOST_OPERATIONS} operations"))
    }

    /// Replaces the calls of `levels` levels; gives the number of arms in which none is left.
    fn unroll(&self, levels: usize) -> usize {
        // Each child is matched as the function was before any was.
        let pristine = clone_op(self.the_match);
        // SAFETY: `pristine` is alive until the end of this function.
        let original = unsafe { OperationRef::from_raw(pristine.to_raw()) };
        let mut pending: Vec<(BlockRef<'c, 'c>, Vec<Call<'c>>)> = blocks_of(self.the_match)
            .into_iter()
            .map(|arm| (arm, self.calls_at(arm, levels)))
            .collect();
        let mut arms = 0;
        while let Some((block, calls)) = pending.pop() {
            match calls.split_first() {
                Some(((call, left), others)) => {
                    pending.extend(self.expand(original, block, *call, *left, others));
                }
                None => arms += 1,
            }
        }
        arms
    }

    fn calls_at(&self, arm: BlockRef<'c, 'c>, levels: usize) -> Vec<Call<'c>> {
        let calls = self.calls_in(arm).into_iter().filter(|_| levels > 0);
        calls.map(|call| (call, levels)).collect()
    }

    /// Makes a block the match of the child that one of its calls is given: each arm has what the block had,
    /// with what the call would have done in the call's place. Gives the arms, with the calls in each that
    /// are still to be replaced.
    fn expand(
        &self,
        original: OperationRef<'c, 'c>,
        block: BlockRef<'c, 'c>,
        call: OperationRef<'c, 'c>,
        left: usize,
        others: &[Call<'c>],
    ) -> Vec<(BlockRef<'c, 'c>, Vec<Call<'c>>)> {
        let old = operations_of(block);
        let (Some(first), Some(at)) = (
            old.first()
                .and_then(|first| Builder::before(self.context, *first)),
            old.iter().position(|op| op_key(*op) == op_key(call)),
        ) else {
            return Vec::new();
        };
        let child = operands_of(call)[self.matched];
        let matching = first.at(call.location()).insert(clone_op(original));
        set_operand(matching, 0, child);
        let mut found = Vec::new();
        for arm in blocks_of(matching) {
            let own = operations_of(arm);
            let mut calls = self.calls_at(arm, left - 1);
            let Some((end, before)) = own
                .last()
                .and_then(|end| Some((*end, Builder::before(self.context, *own.first()?)?)))
            else {
                continue;
            };
            let mut copies = Copies::default();
            for operation in &old[..at] {
                copies.copy(&before, *operation);
            }
            // What the function knew as its arguments is what the call gave.
            let mut given = Copies::default();
            for (argument, operand) in self.arguments.iter().zip(operands_of(call)) {
                given.values.insert(key(*argument), copies.of(operand));
            }
            for operation in &own {
                given.replace_in(*operation);
            }
            for (result, value) in results_of(call).into_iter().zip(operands_of(end)) {
                copies.values.insert(key(result), value);
            }
            if let Some(at_end) = Builder::before(self.context, end) {
                for operation in &old[at + 1..] {
                    copies.copy(&at_end, *operation);
                }
            }
            erase(end);
            let mapped = others
                .iter()
                .filter_map(|(call, left)| Some((*copies.operations.get(&op_key(*call))?, *left)));
            calls.extend(mapped);
            found.push((arm, calls));
        }
        for operation in old.into_iter().rev() {
            erase(operation);
        }
        let end = Builder::at_end(self.context, block, matching.location());
        end.cfb_yield(&results_of(matching));
        found
    }
}

/// Adds to `size` the operations of an arm of `operations` in which `calls` have levels left to unroll, up to
/// the limit.
fn count(arms: &[(usize, usize)], operations: usize, calls: &mut Vec<usize>, size: &mut usize) {
    if *size > MOST_OPERATIONS {
        return;
    }
    let Some(levels) = calls.pop().filter(|levels| *levels > 0) else {
        *size += operations;
        return;
    };
    for (more, further) in arms {
        let mut calls = calls.clone();
        // Those without a level left come first, so that the end of the list says whether any is left.
        if levels > 1 {
            calls.extend(std::iter::repeat_n(levels - 1, *further));
            calls.sort_unstable();
        }
        *size += 1;
        count(arms, operations + more, &mut calls, size);
    }
}
