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
//! on with it, one that needs none begins another, and one that needs an earlier strand, or several, ends the
//! fork. What costs and risks nothing and needs no strand, such as a record, is moved before the fork. Where
//! strands would be nothing but forces, there is no fork: with their records before them the first to wait
//! has waited for all.
//!
//! Left alone: what `cfb.debug` shows stays in the order of the program, and so does what a `cfb.phase` parts.
//!
//! Requires: level 2. Leaves: level 2. No result changes: a program that does not force is left as it is.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Val, name_of, operations_of, region_with_block, results_of,
};
use melior::{
    Context,
    ir::{Attribute, BlockRef, OperationRef, Region, Type, ValueLike, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    blocks_of, defining_op, functions_of, is_within, key, move_before, name_attribute, nested_ops,
    op_key, replace_uses_except, set_attribute, top_level, users_of,
};
use crate::support::levels::{used_values, waits};

pub const PASS: PassInfo = PassInfo {
    name: "fork-join",
    summary: "Let what may wait and does not need each other wait side by side (level 2)",
    description: include_str!("fork_join.rs"),
    run,
};

/// The attribute of a `cfb.map` whose elements are strands.
pub const STRANDS: &str = "cfb.fork";

/// A basic block with more operations that wait or fail is left alone: which of them need each other takes
/// the square of their number.
const MOST_OPERATIONS: usize = 1 << 12;

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
            .filter(|op| name_of(*op) == "cfb.kernel" && op.has_attribute("lengths"))
            .filter_map(|op| name_attribute(op, "sym_name"))
            .collect();
        let functions = functions_of(module);
        Effects {
            waiting: reaching(&functions, waits),
            ordered: reaching(&functions, |op| {
                matches!(name_of(op).as_str(), "cfb.debug" | "cfb.phase")
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
        let name = name_of(operation);
        let is_checked = operation.has_attribute("cfb.checked");
        match name.as_str() {
            "cfb.force" => Effect::Forces,
            "cfb.debug" | "cfb.phase" => Effect::Ordered,
            "func.call" => match name_attribute(operation, "callee") {
                Some(callee) if self.ordered.contains(&callee) => Effect::Ordered,
                Some(callee) if self.waiting.contains(&callee) => Effect::Waits,
                _ => Effect::Fails,
            },
            "cfb.record" => match name_attribute(operation, "kernel") {
                Some(kernel) if !self.ragged.contains(&kernel) => Effect::None,
                _ => Effect::Fails,
            },
            "cfb.param" | "cfb.constant" | "cfb.dim" | "cfb.ghost" | "cfb.same"
            | "cfb.construct" | "cfb.array_create" | "cfb.array_len" | "cfb.array_push"
            | "cfb.array_reverse" | "cfb.array_range" | "cfb.stack" | "cfb.str_constant"
            | "cfb.str_equal" | "cfb.instance_key" | "cfb.match" | "cfb.yield" | "cfb.join"
            | "scf.if" | "scf.yield" => Effect::None,
            _ => match name.split('.').next() {
                Some("arith" | "math" | "index") if !is_checked => Effect::None,
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
        let name = name_attribute(*function, "sym_name").unwrap_or_default();
        for operation in nested_ops(*function) {
            if name_of(operation) == "func.call"
                && let Some(callee) = name_attribute(operation, "callee")
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
        if matches!(name_of(operation).as_str(), "cfb.kernel" | "cfb.block") {
            continue;
        }
        for body in blocks_of(operation) {
            visit(context, effects, body);
        }
        let effect = effects.effect(operation);
        if name_of(operation) == "cfb.map" && effect == Effect::Waits {
            set_attribute(operation, STRANDS, Attribute::unit(context));
        }
    }
    let operations = Operations::of(effects, block);
    for strands in operations.forks() {
        operations.fork(context, &strands);
    }
}

/// The operations of a basic block, but for its terminator.
struct Operations<'c> {
    all: Vec<OperationRef<'c, 'c>>,
    effects: Vec<Effect>,
    /// Of each operation those that it needs, directly or not, and that have an effect.
    needs: Vec<Set>,
}

/// Numbers of operations.
#[derive(Clone, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn join(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own |= other;
        }
    }

    fn meets(&self, numbers: &[usize]) -> bool {
        numbers.iter().any(|number| {
            let word = self.0.get(number / 64).copied().unwrap_or(0);
            word >> (number % 64) & 1 == 1
        })
    }
}

/// Operations with an effect, by number: strand by strand, in the order of the block.
type Strands = Vec<Vec<usize>>;

impl<'c> Operations<'c> {
    fn of(effects: &Effects, block: BlockRef<'c, 'c>) -> Operations<'c> {
        let mut all = operations_of(block);
        all.pop();
        let effects: Vec<Effect> = all.iter().map(|op| effects.effect(*op)).collect();
        let waiting = effects.iter().filter(|effect| is_waiting(**effect)).count();
        let with_effect = effects.iter().filter(|effect| **effect != Effect::None);
        if waiting < 2 || with_effect.count() > MOST_OPERATIONS {
            return Operations {
                all: Vec::new(),
                effects: Vec::new(),
                needs: Vec::new(),
            };
        }
        let numbers: HashMap<usize, usize> = all.iter().map(|op| op_key(*op)).zip(0..).collect();
        let mut needs: Vec<Set> = Vec::with_capacity(all.len());
        for operation in &all {
            let mut own = Set::default();
            for value in used_values(*operation) {
                let Some(&number) =
                    defining_op(value).and_then(|maker| numbers.get(&op_key(maker)))
                else {
                    continue;
                };
                if effects[number] != Effect::None {
                    own.insert(number);
                }
                if let Some(of_maker) = needs.get(number) {
                    own.join(of_maker);
                }
            }
            needs.push(own);
        }
        Operations {
            all,
            effects,
            needs,
        }
    }

    /// The forks that the block can have, one after another.
    fn forks(&self) -> Vec<Strands> {
        let mut forks = Vec::new();
        let mut strands: Strands = Vec::new();
        // What may fail since the last strand's end.
        let mut pending: Vec<usize> = Vec::new();
        for (number, effect) in self.effects.iter().enumerate() {
            match effect {
                Effect::None => {}
                Effect::Fails => pending.push(number),
                Effect::Ordered => {
                    forks.push(std::mem::take(&mut strands));
                    pending.clear();
                }
                Effect::Forces | Effect::Waits => {
                    let mut group = std::mem::take(&mut pending);
                    group.push(number);
                    let Some((last, earlier)) = strands.split_last_mut() else {
                        // What comes before it may serve the others too.
                        strands.push(vec![number]);
                        continue;
                    };
                    let needs_earlier = |number: &usize| {
                        earlier
                            .iter()
                            .any(|strand| self.needs[*number].meets(strand))
                    };
                    if group.iter().any(needs_earlier) {
                        forks.push(std::mem::take(&mut strands));
                        strands.push(vec![number]);
                        continue;
                    }
                    // From where on nothing needs the last strand, nor what goes on with it.
                    let mut split = 0;
                    for (index, number) in group.iter().enumerate() {
                        let needs = &self.needs[*number];
                        if needs.meets(last) || needs.meets(&group[..split]) {
                            split = index + 1;
                        }
                    }
                    let own = group.split_off(split);
                    last.append(&mut group);
                    if !own.is_empty() {
                        strands.push(own);
                    }
                }
            }
        }
        forks.push(strands);
        forks.retain(|strands| strands.len() > 1);
        forks
    }

    /// Moves strands into a `cfb.fork`, and what they do not need behind it.
    fn fork(&self, context: &'c Context, strands: &Strands) {
        let (Some(&first), Some(&last)) = (
            strands.first().and_then(|strand| strand.first()),
            strands.last().and_then(|strand| strand.last()),
        ) else {
            return;
        };
        let all: Vec<usize> = strands.concat();
        let rest = || (first..last).filter(|number| self.effects[*number] == Effect::None);
        // What needs no strand goes before all of them.
        for number in rest().filter(|number| !self.needs[*number].meets(&all)) {
            move_before(self.all[number], self.all[first]);
        }
        if all
            .iter()
            .all(|number| self.effects[*number] != Effect::Waits)
        {
            return;
        }
        // What a strand needs of what it made goes with it.
        let needed = self.needed(
            strands,
            rest().filter(|number| self.needs[*number].meets(&all)),
        );
        let mut regions = Vec::new();
        let mut handed: Vec<(Val<'c>, Vec<OperationRef<'c, 'c>>)> = Vec::new();
        let mut moves = Vec::new();
        for strand in strands {
            let mut members: Vec<usize> = strand.clone();
            members.extend(
                needed
                    .iter()
                    .filter(|number| self.needs[**number].meets(strand)),
            );
            members.sort_unstable();
            let inside: HashSet<usize> = members.iter().map(|n| op_key(self.all[*n])).collect();
            let (region, block) = region_with_block(&[], self.all[strand[0]].location());
            let mut joined = Vec::new();
            for value in members
                .iter()
                .flat_map(|number| results_of(self.all[*number]))
            {
                let users = users_of(value).into_iter();
                let (own, others): (Vec<_>, Vec<_>) =
                    users.partition(|user| is_within(*user, &inside));
                if !others.is_empty() {
                    joined.push(value);
                    handed.push((value, own));
                }
            }
            let end = self.all[strand[strand.len() - 1]].location();
            let b = Builder::at_end(context, block, end);
            let join = b.op("cfb.join", &joined, &[], &[], vec![]);
            let from = handed.len() - joined.len();
            for (_, own) in &mut handed[from..] {
                own.push(join);
            }
            moves.push((members, join));
            regions.push(region);
        }
        self.replace(context, first, regions, &handed);
        for (members, join) in moves {
            for number in members {
                move_before(self.all[number], join);
            }
        }
    }

    /// Which of the operations without effects some strand needs.
    fn needed(&self, strands: &Strands, rest: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut needed = Vec::new();
        let mut inside: HashSet<usize> = (strands.iter().flatten())
            .map(|number| op_key(self.all[*number]))
            .collect();
        // Users come after what they use.
        let rest: Vec<usize> = rest.collect();
        for number in rest.into_iter().rev() {
            let mut users = results_of(self.all[number]).into_iter().flat_map(users_of);
            if users.any(|user| is_within(user, &inside)) {
                inside.insert(op_key(self.all[number]));
                needed.push(number);
            }
        }
        needed
    }

    /// Adds the fork before the first strand's operations; who uses what they hand over uses its results, but
    /// for the strand itself.
    fn replace(
        &self,
        context: &'c Context,
        first: usize,
        regions: Vec<Region<'c>>,
        handed: &[(Val<'c>, Vec<OperationRef<'c, 'c>>)],
    ) {
        let Some(b) = Builder::before(context, self.all[first]) else {
            return;
        };
        let b = b.at(self.all[first].location());
        let types: Vec<Type<'c>> = handed.iter().map(|(value, _)| value.r#type()).collect();
        let fork = b.op("cfb.fork", &[], &types, &[], regions);
        for ((value, own), result) in handed.iter().zip(results_of(fork)) {
            debug_assert_ne!(key(*value), key(result));
            replace_uses_except(*value, result, own);
        }
    }
}

fn is_waiting(effect: Effect) -> bool {
    matches!(effect, Effect::Forces | Effect::Waits)
}
