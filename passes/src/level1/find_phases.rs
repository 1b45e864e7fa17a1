//! `find-phases`: work of the entry that waits for a recursion or a loop becomes a phase (level 1).
//!
//! Instances differ in how deep they recurse and how often they loop, so what comes after would run
//! at another depth for each of them, in small batches. In the entry every instance comes by once,
//! so a block, a map over blocks or another recursion that needs the result of a recursion or a
//! loop starts a new *phase*: it runs after all that was recorded before it, of all instances, and
//! so in one batch. Recursions that do not need each other stay in one phase. A phase that the
//! program sets itself stays a border. Operations are put in the order of their phases.
//!
//! ```mlir
//! %h = func.call @cell(%t) : (!cfb.adt<@Tree>) -> tensor<8xf32>
//! %o = cfb.block "main"(%h, %w) : (…) -> (tensor<3xf32>) { … }
//! // becomes
//! %h = func.call @cell(%t) : (!cfb.adt<@Tree>) -> tensor<8xf32>
//! cfb.phase 1
//! %o = cfb.block "main"(%h, %w) : (…) -> (tensor<3xf32>) { … }
//! ```
//!
//! A recursion that needs an earlier one and runs the same functions stays in its phase: the calls
//! of one instance's second recursion may then run with those of another's first.
//!
//! Behind a recursion or a loop that decides, instances come by after different flushes; a phase then
//! only puts together those that come by after the same one, and the remark says so. It has the attribute
//! `cfb.after_decision`, unless the program set it, and `fork-join` drops it where it would part what may wait side by side.
//!
//! Requires: level 1. Leaves: level 1, with the phases of the entry numbered from 1. Only the order
//! of work changes, so no result does. After ACRoBat, "program phases".

use cohort_dialects::keys;
use cohort_dialects::marks;
pub use cohort_dialects::marks::AFTER_DECISION;
use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Builder, Op, operations_of, results_of};
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, OperationRef, attribute::IntegerAttribute, operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    blocks_of, callee_of, defining_op, erase, functions_of, key, move_before, nested_ops, op_key,
    symbol_of,
};
use crate::support::waves::{Effects, close, used_values, waits};

/// The pass `find-phases`.
pub const PASS: PassInfo = PassInfo {
    name: "find-phases",
    summary: "Start a phase in the entry where work waits for recursions and loops (level 1)",
    description: include_str!("find_phases.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        if !function.has_attribute(&marks::ENTRY) {
            continue;
        }
        if let [body] = blocks_of(function)[..] {
            let mut operations = operations_of(body);
            if body.terminator().is_some() {
                operations.pop();
            }
            let phases = Phases::of(module, &operations);
            let end = body.terminator().map(cohort_dialects::builder::extend_op);
            if let Some(end) = end {
                phases.write(context, &operations, end);
            }
        }
    }
    Ok(())
}

/// The phase of each operation of the entry.
#[derive(Default)]
struct Phases {
    of_operation: HashMap<usize, usize>,
    /// From which phase on a value may be used without waiting for other instances.
    of_value: HashMap<usize, usize>,
    /// Phases in which something is recorded.
    recording: HashSet<usize>,
    /// Phases that the program set.
    written: HashSet<usize>,
    /// The functions that the recursions of a phase call.
    callees: HashMap<usize, HashSet<String>>,
    /// The functions that recurse or loop, or call one that does.
    deep_functions: HashSet<String>,
    /// The functions that wait for a tensor, or call one that does.
    deciding_functions: HashSet<String>,
}

impl Phases {
    fn of<'c>(module: OperationRef<'c, 'c>, operations: &[OperationRef<'c, 'c>]) -> Phases {
        let mut phases = Phases {
            deep_functions: functions_with(module, |name, function, reached| {
                reached.contains(name) || loops(function)
            }),
            deciding_functions: functions_with(module, |_, function, _| forces(function)),
            ..Phases::default()
        };
        let effects = Effects::new(module);
        let (mut first, mut last_failing) = (0, 0);
        for operation in operations {
            if Op::CfbPhase.is(*operation) {
                // A border before anything was recorded parts nothing.
                first = phases.recording.iter().max().map_or(first, |last| last + 1);
                phases.written.insert(first);
                continue;
            }
            // What an instance shows stays behind what stands before it, and before what stands behind.
            let shows = effects.shows(*operation);
            if shows {
                let last = phases.of_operation.values().max();
                first = last.map_or(first, |last| first.max(*last));
            }
            // Of two errors the first is told.
            let fails = effects.fails(*operation);
            let least = if fails {
                first.max(last_failing)
            } else {
                first
            };
            phases.place(*operation, least);
            let own = phases.of_operation.get(&op_key(*operation)).copied();
            if shows {
                first = own.unwrap_or(first);
            }
            if fails {
                last_failing = own.unwrap_or(last_failing);
            }
        }
        phases
    }

    fn place(&mut self, operation: OperationRef<'_, '_>, first: usize) {
        let mut phase = used_values(operation)
            .into_iter()
            .filter_map(|value| self.of_value.get(&key(value)).copied())
            .fold(first, usize::max);
        let called = callees(operation);
        let is_deep = loops(operation) || !called.is_disjoint(&self.deep_functions);
        let continues = |before: usize| {
            let earlier = self.callees.get(&before);
            earlier.is_some_and(|earlier| !called.is_disjoint(earlier))
        };
        // What is computed between two recursions is in the later phase, and so is what needs it.
        let is_made_before = |value| {
            let producer = defining_op(value).map(|op| op_key(op));
            let made = producer.and_then(|producer| self.of_operation.get(&producer));
            made.is_none_or(|made| *made < phase)
        };
        if is_deep
            && phase > first
            && continues(phase - 1)
            && used_values(operation).into_iter().all(is_made_before)
        {
            phase -= 1;
        }
        self.of_operation.insert(op_key(operation), phase);
        if records(operation) {
            self.recording.insert(phase);
        }
        if is_deep {
            self.callees.entry(phase).or_default().extend(called);
        }
        for result in results_of(operation) {
            let after = phase + usize::from(is_deep && records(operation));
            self.of_value.insert(key(result), after);
        }
    }

    fn write<'c>(
        &self,
        context: &'c Context,
        operations: &[OperationRef<'c, 'c>],
        end: OperationRef<'c, 'c>,
    ) {
        let (marks, mut ordered): (Vec<_>, Vec<_>) = operations
            .iter()
            .copied()
            .partition(|op| Op::CfbPhase.is(*op));
        ordered.sort_by_key(|op| self.of_operation.get(&op_key(*op)).copied());
        let mut begun = HashSet::new();
        let mut last = None;
        let mut decided = false;
        for operation in ordered {
            move_before(operation, end);
            let after_decision = decided;
            decided |=
                forces(operation) || !callees(operation).is_disjoint(&self.deciding_functions);
            let phase = self.of_operation.get(&op_key(operation)).copied();
            if !records(operation) || phase == last {
                continue;
            }
            last = phase;
            begun.extend(phase);
            let number = begun.len() as i64 - 1;
            if number == 0 {
                continue;
            }
            if let Some(b) = Builder::before(context, operation) {
                let number = IntegerAttribute::new(b.i64(), number).into();
                let mut attributes = vec![(keys::NUMBER, number)];
                if after_decision && phase.is_some_and(|phase| !self.written.contains(&phase)) {
                    attributes.push((AFTER_DECISION, Attribute::unit(context)));
                }
                b.op(Op::CfbPhase, &[], &[], &attributes, vec![]);
            }
            let together = match after_decision {
                false => "in all instances, and runs for all of them together",
                true => {
                    "in the instances that come here after the same flush: each goes on from its \
                     decisions by itself, and none waits for one that still decides"
                }
            };
            let message = format!(
                "phase {number} begins here: what follows waits for what comes before it {together}"
            );
            remark(operation, &message);
        }
        for mark in marks {
            erase(mark);
        }
    }
}

/// Whether calls of kernels are recorded here or in a function called here.
fn records(operation: OperationRef<'_, '_>) -> bool {
    with_nested(operation)
        .into_iter()
        .any(|op| matches!(Op::of(op), Some(Op::CfbBlock | Op::FuncCall)))
}

/// Whether the number of turns makes what is recorded here deeper.
fn loops(operation: OperationRef<'_, '_>) -> bool {
    with_nested(operation)
        .into_iter()
        .any(|op| matches!(Op::of(op), Some(Op::ScfWhile | Op::ScfFor | Op::CfbFold)))
}

/// Whether the instance waits for a tensor here.
fn forces(operation: OperationRef<'_, '_>) -> bool {
    with_nested(operation).into_iter().any(waits)
}

/// The functions of which something holds, and those that call one: it is asked of a function by its
/// name, and of the functions that it reaches.
fn functions_with<'c>(
    module: OperationRef<'c, 'c>,
    holds: impl Fn(&String, OperationRef<'c, 'c>, &HashSet<String>) -> bool,
) -> HashSet<String> {
    let functions: Vec<_> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    let mut reached: HashMap<String, HashSet<String>> = functions
        .iter()
        .map(|(name, function)| (name.clone(), callees(*function)))
        .collect();
    close(&mut reached);
    let own: HashSet<String> = functions
        .iter()
        .filter(|(name, function)| holds(name, *function, &reached[name]))
        .map(|(name, _)| name.clone())
        .collect();
    functions
        .iter()
        .map(|(name, _)| name)
        .filter(|name| own.contains(*name) || !reached[*name].is_disjoint(&own))
        .cloned()
        .collect()
}

fn callees(operation: OperationRef<'_, '_>) -> HashSet<String> {
    with_nested(operation)
        .into_iter()
        .filter(|op| Op::FuncCall.is(*op))
        .filter_map(callee_of)
        .collect()
}

fn with_nested<'c>(operation: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    let mut all = nested_ops(operation);
    all.push(cohort_dialects::builder::extend_op(operation));
    all
}
