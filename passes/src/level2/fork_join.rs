//! `fork-join`: what may wait and does not need each other waits side by side (level 2).
//!
//! An instance waits where it *forces* a tensor. What comes after in the order of the program waits too, although
//! it may not need it: the second of two calls, the next element of a `cfb.map`. This pass makes *strands* of
//! such parts, which the runtime runs by turns, so that all decisions that are known to be needed are recorded
//! before any of them is waited for.
//!
//! ```mlir
//! %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
//! %l = scf.if %p -> (!cfb.adt<@T>) { %t = func.call @grow(%a) … } else { … }
//! %r = func.call @grow(%b) : (…) -> !cfb.adt<@T>
//! %n = cfb.construct "Node"(%l, %r) : …
//! // becomes, where @grow forces
//! %l, %r = cfb.fork -> (!cfb.adt<@T>, !cfb.adt<@T>) ({
//!   %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
//!   %l0 = scf.if %p -> (!cfb.adt<@T>) { %t = func.call @grow(%a) … } else { … }
//!   cfb.join %l0 : !cfb.adt<@T>
//! }, {
//!   %r0 = func.call @grow(%b) : (…) -> !cfb.adt<@T>
//!   cfb.join %r0 : !cfb.adt<@T>
//! })
//! %n = cfb.construct "Node"(%l, %r) : …
//! ```
//!
//! A `cfb.map` whose body waits gets the attribute `cfb.fork`: its elements are strands.
//!
//! The operations of a basic block that wait, or may end the instance with an error, stay in their order, since
//! the first error counts: a strand is some of them one after another. One that needs only the last strand goes
//! on with it, and one that needs none begins another. One that needs an earlier strand, or several, begins another
//! as well, which takes what it needs as arguments and waits for these strands alone; but if it needs all of them and so
//! does all that follows, it ends the fork.
//!
//! ```mlir
//! %a = func.call @grow(%x)
//! %b = func.call @grow(%y)
//! %c = func.call @settle(%a)     // while @grow(%y) goes on
//! // becomes
//! %a, %b, %c = cfb.fork {needs = array<i64: 0>} -> (…) ({
//!   %a0 = func.call @grow(%x)
//!   cfb.join %a0
//! }, {
//!   %b0 = func.call @grow(%y)
//!   cfb.join %b0
//! }, {
//! ^bb0(%a1: …):
//!   %c0 = func.call @settle(%a1)
//!   cfb.join %c0
//! })
//! ```
//!
//! What costs and risks nothing and needs no strand, such as a record, is moved before the fork. Where
//! strands would be nothing but forces, there is no fork: with their records before them the first to wait
//! has waited for all.
//!
//! Left alone: what `cfb.debug` shows stays in the order of the program, and so does what a `cfb.phase` parts. But a phase
//! to which instances come after different flushes (`cfb.after_decision`) puts few calls together: where something behind
//! it waits and does not need all that waits before it, it is dropped, so that both may be strands.
//!
//! Requires: level 2. Leaves: level 2. No result changes: a program that does not force is left as it is.

mod strands;

use cohort_dialects::marks;
pub use cohort_dialects::marks::STRANDS;
use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Dialect, Op, operations_of};
use melior::{
    Context,
    ir::{Attribute, BlockRef, OperationRef, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::dims;
use crate::support::ir::{
    blocks_of, callee_of, erase, functions_of, kernel_of, nested_ops, set_attribute, symbol_of,
    top_level,
};
use crate::support::waves::waits;
use strands::Operations;

/// The pass `fork-join`.
pub const PASS: PassInfo = PassInfo {
    name: "fork-join",
    summary: "Let what may wait and does not need each other wait side by side (level 2)",
    description: include_str!("fork_join.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let effects = Effects::of(module);
    if effects.waiting.is_empty() {
        return Ok(());
    }
    for function in functions_of(module) {
        for body in blocks_of(function) {
            visit(context, &effects, body);
        }
    }
    Ok(())
}

/// What an operation does beside giving its results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// It may be done earlier than its place, or for nothing.
    None,
    /// It may end the instance with an error, and does not wait.
    Fails,
    /// It is a decision, and does nothing else.
    Forces,
    Waits,
    /// It keeps its place among all others.
    Ordered,
}

/// What functions and kernels do.
struct Effects {
    /// Functions that wait, and those that show values or begin phases.
    waiting: HashSet<String>,
    ordered: HashSet<String>,
    /// Kernels of which a call may end the instance with an error: those with lengths.
    ragged: HashSet<String>,
}

impl Effects {
    fn of(module: OperationRef<'_, '_>) -> Effects {
        let ragged = top_level(module)
            .into_iter()
            .filter(|op| Op::CfbKernel.is(*op) && dims::has_lengths(*op))
            .filter_map(symbol_of)
            .collect();
        let functions = functions_of(module);
        Effects {
            waiting: reaching(&functions, waits),
            ordered: reaching(&functions, |op| {
                matches!(Op::of(op), Some(Op::CfbDebug | Op::CfbPhase))
            }),
            ragged,
        }
    }

    /// Of an operation with all that it holds.
    fn effect(&self, operation: OperationRef<'_, '_>) -> Effect {
        let inside = nested_ops(operation).into_iter();
        let most = inside.map(|op| self.own_effect(op)).max();
        let own = self.own_effect(operation);
        match most {
            // A decision below an operation is made on some ways only.
            Some(Effect::Forces) => own.max(Effect::Waits),
            Some(most) => own.max(most),
            None => own,
        }
    }

    fn own_effect(&self, operation: OperationRef<'_, '_>) -> Effect {
        let is_checked = operation.has_attribute(&marks::CHECKED);
        match Op::of(operation) {
            Some(Op::CfbForce) => Effect::Forces,
            Some(Op::CfbDebug | Op::CfbPhase) => Effect::Ordered,
            Some(Op::FuncCall) => match callee_of(operation) {
                Some(callee) if self.ordered.contains(&callee) => Effect::Ordered,
                Some(callee) if self.waiting.contains(&callee) => Effect::Waits,
                _ => Effect::Fails,
            },
            Some(Op::CfbRecord) => match kernel_of(operation) {
                Some(kernel) if !self.ragged.contains(&kernel) => Effect::None,
                _ => Effect::Fails,
            },
            Some(
                Op::CfbParam
                | Op::CfbConstant
                | Op::CfbDim
                | Op::CfbGhost
                | Op::CfbSame
                | Op::CfbConstruct
                | Op::CfbArrayCreate
                | Op::CfbArrayLen
                | Op::CfbArrayPush
                | Op::CfbArrayReverse
                | Op::CfbArrayRange
                | Op::CfbStack
                | Op::CfbStrConstant
                | Op::CfbStrEqual
                | Op::CfbInstanceKey
                | Op::CfbMatch
                | Op::CfbYield
                | Op::CfbJoin
                | Op::ScfIf
                | Op::ScfYield,
            ) => Effect::None,
            _ => match Dialect::of(operation) {
                Some(Dialect::Arith | Dialect::Math | Dialect::Index) if !is_checked => {
                    Effect::None
                }
                // Loops go on for as long as they like; all else may fail.
                _ => Effect::Fails,
            },
        }
    }
}

/// The functions that hold such an operation, or call one that does.
fn reaching(
    functions: &[OperationRef<'_, '_>],
    is_wanted: impl Fn(OperationRef<'_, '_>) -> bool,
) -> HashSet<String> {
    let mut found: HashSet<String> = HashSet::new();
    let mut callers: HashMap<String, Vec<String>> = HashMap::new();
    let mut pending = Vec::new();
    for function in functions {
        let name = symbol_of(*function).unwrap_or_default();
        for operation in nested_ops(*function) {
            if Op::FuncCall.is(operation)
                && let Some(callee) = callee_of(operation)
            {
                callers.entry(callee).or_default().push(name.clone());
            }
            if is_wanted(operation) {
                pending.push(name.clone());
            }
        }
    }
    while let Some(name) = pending.pop() {
        if let Some(callers) = callers.get(&name)
            && !found.contains(&name)
        {
            pending.extend(callers.iter().cloned());
        }
        found.insert(name);
    }
    found
}

/// Makes strands in a basic block, those inside its operations first.
fn visit<'c>(context: &'c Context, effects: &Effects, block: BlockRef<'c, 'c>) {
    for operation in operations_of(block) {
        if matches!(Op::of(operation), Some(Op::CfbKernel | Op::CfbBlock)) {
            continue;
        }
        for body in blocks_of(operation) {
            visit(context, effects, body);
        }
        let effect = effects.effect(operation);
        if Op::CfbMap.is(operation) && effect == Effect::Waits {
            set_attribute(operation, STRANDS, Attribute::unit(context));
        }
    }
    let mut operations = Operations::of(effects, block);
    let parting = operations.parting_phases();
    if !parting.is_empty() {
        parting.into_iter().for_each(erase);
        operations = Operations::of(effects, block);
    }
    for strands in operations.forks() {
        operations.fork(context, &strands);
    }
}
