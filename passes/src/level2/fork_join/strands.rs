//! Which operations of a basic block become strands, and the fork that they are moved into.

use std::collections::{BTreeMap, HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend_op, operands_of, operations_of, region_with_block,
    results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::array_element;
use melior::{
    Context,
    ir::{
        BlockRef, OperationRef, Region, Type, ValueLike, attribute::DenseI64ArrayAttribute,
        operation::OperationLike,
    },
};

use super::{Effect, Effects};
use crate::level1::find_phases::AFTER_DECISION;
use crate::support::ir::{
    defining_op, key, move_before, op_key, replace_uses_except, set_operand, users_of,
};
use crate::support::waves::used_values;

/// A basic block with more operations that wait or fail is left alone: which of them need each other takes
/// the square of their number.
const MOST_OPERATIONS: usize = 1 << 12;

/// The operations of a basic block, but for its terminator.
pub struct Operations<'c> {
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

    fn has(&self, number: usize) -> bool {
        let word = self.0.get(number / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    fn meets(&self, numbers: &[usize]) -> bool {
        numbers.iter().any(|number| self.has(*number))
    }
}

/// Some operations one after another, by number, those with an effect.
pub struct Strand {
    members: Vec<usize>,
    /// Those of the fork that have ended when it begins: which it needs, and which these need.
    awaited: Set,
}

impl<'c> Operations<'c> {
    pub fn of(effects: &Effects, block: BlockRef<'c, 'c>) -> Operations<'c> {
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

    /// The phases between what waits and other things that wait and do not need it, but for those that stay.
    pub fn parting_phases(&self) -> Vec<OperationRef<'c, 'c>> {
        let is_droppable = |number: usize| self.all[number].has_attribute(&AFTER_DECISION);
        let is_border =
            |number: &usize| self.effects[*number] == Effect::Ordered && !is_droppable(*number);
        let is_waiting = |number: &usize| is_waiting(self.effects[*number]);
        let parts = |phase: usize| {
            let before = (0..phase).rev().take_while(|number| !is_border(number));
            let behind = (phase + 1..self.all.len()).take_while(|number| !is_border(number));
            let before: Vec<usize> = before.filter(is_waiting).collect();
            let mut behind = behind.filter(is_waiting);
            behind.any(|number| !before.iter().all(|other| self.needs[number].has(*other)))
        };
        let phases = (0..self.all.len()).filter(|number| is_droppable(*number) && parts(*number));
        phases.map(|number| self.all[number]).collect()
    }

    /// The forks that the block can have, one after another: their strands in the order of the block.
    pub fn forks(&self) -> Vec<Vec<Strand>> {
        let mut forks = Vec::new();
        let mut strands: Vec<Strand> = Vec::new();
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
                    let group = std::mem::take(&mut pending);
                    if !self.add(&mut strands, group, number) {
                        forks.push(std::mem::take(&mut strands));
                        strands.push(Strand {
                            members: vec![number],
                            awaited: Set::default(),
                        });
                    }
                }
            }
        }
        forks.push(strands);
        forks.retain(|strands| strands.len() > 1);
        forks
    }

    /// Adds an operation that waits to the strands of a fork, behind those that may fail before it; whether it can
    /// be, and is worth it.
    fn add(&self, strands: &mut Vec<Strand>, mut group: Vec<usize>, number: usize) -> bool {
        group.push(number);
        let Some((last, earlier)) = strands.split_last_mut() else {
            // What comes before the first may serve the others too.
            return false;
        };
        // From where on nothing needs the last strand, nor what goes on with it.
        let mut split = 0;
        for (index, number) in group.iter().enumerate() {
            let needs = &self.needs[*number];
            if needs.meets(&last.members) || needs.meets(&group[..split]) {
                split = index + 1;
            }
        }
        let goes_on = (group[..split].iter()).all(|number| {
            let mut others = (0..).zip(&*earlier);
            others.all(|(strand, other)| {
                last.awaited.has(strand) || !self.needs[*number].meets(&other.members)
            })
        });
        if goes_on {
            let own = group.split_off(split);
            last.members.append(&mut group);
            group = own;
        }
        if group.is_empty() {
            return true;
        }
        let mut awaited = Set::default();
        for (strand, other) in strands.iter().enumerate() {
            if group
                .iter()
                .any(|number| self.needs[*number].meets(&other.members))
            {
                awaited.insert(strand);
                awaited.join(&other.awaited);
            }
        }
        let needs_all = (0..strands.len()).all(|strand| awaited.has(strand));
        if (needs_all && !self.has_others(strands, &group, number)) || self.grows(strands, &group) {
            return false;
        }
        strands.push(Strand {
            members: group,
            awaited,
        });
        true
    }

    /// Whether something behind an operation waits, up to where the order counts, and needs neither the group nor all
    /// strands.
    fn has_others(&self, strands: &[Strand], group: &[usize], number: usize) -> bool {
        let behind =
            (number + 1..self.all.len()).take_while(|n| self.effects[*n] != Effect::Ordered);
        let mut waiting = behind.filter(|n| is_waiting(self.effects[*n]));
        waiting.any(|other| {
            let needs = &self.needs[other];
            let needs_all = || strands.iter().all(|strand| needs.meets(&strand.members));
            !needs.meets(group) && !needs_all()
        })
    }

    /// Whether the group needs an array that a strand may push to in place, which nobody knows of an argument.
    fn grows(&self, strands: &[Strand], group: &[usize]) -> bool {
        let first = strands.first().and_then(|strand| strand.members.first());
        let first = first.copied().unwrap_or(0);
        let here: HashMap<usize, usize> = (first..group[0])
            .map(|number| (op_key(self.all[number]), number))
            .collect();
        let mut open: Vec<OperationRef<'c, 'c>> = group.iter().map(|n| self.all[*n]).collect();
        let mut seen = HashSet::new();
        while let Some(operation) = open.pop() {
            for value in used_values(operation) {
                let Some(maker) = defining_op(value) else {
                    continue;
                };
                let Some(number) = here.get(&op_key(maker)) else {
                    continue;
                };
                let name = Op::of(maker);
                let pushes = matches!(name, Some(Op::CfbArrayPush | Op::ScfIf | Op::CfbMatch));
                if pushes && array_element(value.r#type()).is_some() {
                    return true;
                }
                if self.effects[*number] == Effect::None && seen.insert(*number) {
                    open.push(maker);
                }
            }
        }
        false
    }

    /// Moves strands into a `cfb.fork`, and what they do not need behind it.
    pub fn fork(&self, context: &'c Context, strands: &[Strand]) {
        let members = || strands.iter().flat_map(|strand| &strand.members);
        let (Some(&first), Some(&last)) = (members().min(), members().max()) else {
            return;
        };
        let all: Vec<usize> = members().copied().collect();
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
        let dependent = rest().filter(|number| self.needs[*number].meets(&all));
        let members = self.with_needed(strands, dependent.collect());
        let homes: HashMap<usize, usize> = (members.iter().enumerate())
            .flat_map(|(strand, members)| members.iter().map(move |number| (*number, strand)))
            .map(|(number, strand)| (op_key(self.all[number]), strand))
            .collect();
        let joined: Vec<Vec<Joined<'c>>> = members
            .iter()
            .enumerate()
            .map(|(strand, members)| self.joined(members, strand, &homes))
            .collect();
        let (mut needs, mut regions, mut joins) = (Vec::new(), Vec::new(), Vec::new());
        for (strand, members) in members.iter().enumerate() {
            let needed: Vec<&Joined<'c>> = (joined[..strand].iter().flatten())
                .filter(|value| value.strands.contains_key(&strand))
                .collect();
            let types = needed.iter().map(|value| value.value.r#type());
            let at = self.all[members[0]].location();
            let (region, block) = region_with_block(&types.collect::<Vec<_>>(), at);
            for (argument, needed) in arguments_of(block).into_iter().zip(&needed) {
                for user in needed.strands.get(&strand).into_iter().flatten() {
                    replace_operand(*user, needed.value, argument);
                }
            }
            let numbers = joined.iter().flatten().enumerate();
            let own = numbers.filter(|(_, value)| value.strands.contains_key(&strand));
            needs.extend(own.map(|(number, _)| number as i64));
            let end =
                self.all[strands[strand].members[strands[strand].members.len() - 1]].location();
            let b = Builder::at_end(context, block, end);
            let values: Vec<Val<'c>> = joined[strand].iter().map(|value| value.value).collect();
            joins.push(b.op(Op::CfbJoin, &values, &[], &[], vec![]));
            regions.push(region);
        }
        self.replace(context, first, regions, &needs, &joined, &joins);
        for (members, join) in members.into_iter().zip(joins) {
            for number in members {
                move_before(self.all[number], join);
            }
        }
    }

    /// The operations of each strand, with those of the others, without effects, that some strand needs.
    ///
    /// They go with the strand that they need, so that it hands their values over; where they need several that do not
    /// wait for each other, with the first strand that needs them.
    fn with_needed(&self, strands: &[Strand], rest: Vec<usize>) -> Vec<Vec<usize>> {
        let mut members: Vec<Vec<usize>> = strands
            .iter()
            .map(|strand| strand.members.clone())
            .collect();
        let mut users: HashMap<usize, usize> = HashMap::new();
        for (strand, members) in members.iter().enumerate() {
            users.extend(
                members
                    .iter()
                    .map(|number| (op_key(self.all[*number]), strand)),
            );
        }
        // Users come after what they use.
        for number in rest.into_iter().rev() {
            let users_here = results_of(self.all[number]).into_iter().flat_map(users_of);
            let Some(user) = users_here.filter_map(|user| home(user, &users)).min() else {
                continue;
            };
            let needed = (0..strands.len()).rev();
            let mut needed =
                needed.filter(|strand| self.needs[number].meets(&strands[*strand].members));
            let own = match needed.next() {
                Some(last) if needed.all(|strand| strands[last].awaited.has(strand)) => last,
                _ => user,
            };
            users.insert(op_key(self.all[number]), own);
            members[own].push(number);
        }
        members
            .iter_mut()
            .for_each(|members| members.sort_unstable());
        members
    }

    /// What a strand hands over: to what comes behind the fork, and to other strands.
    fn joined(
        &self,
        members: &[usize],
        strand: usize,
        homes: &HashMap<usize, usize>,
    ) -> Vec<Joined<'c>> {
        let mut joined = Vec::new();
        for value in members
            .iter()
            .flat_map(|number| results_of(self.all[*number]))
        {
            let mut value = Joined {
                value,
                own: Vec::new(),
                strands: BTreeMap::new(),
            };
            let mut is_handed = false;
            for user in users_of(value.value) {
                match home(user, homes) {
                    Some(home) if home == strand => value.own.push(user),
                    Some(home) => value.strands.entry(home).or_default().push(user),
                    None => is_handed = true,
                }
            }
            if is_handed || !value.strands.is_empty() {
                joined.push(value);
            }
        }
        joined
    }

    /// Adds the fork before the first strand's operations. Uses of what strands hand over become uses of its results,
    /// except within the strand itself.
    fn replace(
        &self,
        context: &'c Context,
        first: usize,
        regions: Vec<Region<'c>>,
        needs: &[i64],
        joined: &[Vec<Joined<'c>>],
        joins: &[OperationRef<'c, 'c>],
    ) {
        let Some(b) = Builder::before(context, self.all[first]) else {
            return;
        };
        let b = b.at(self.all[first].location());
        let types: Vec<Type<'c>> = (joined.iter().flatten())
            .map(|value| value.value.r#type())
            .collect();
        let needs = match needs {
            [] => vec![],
            needs => vec![(
                keys::NEEDS,
                DenseI64ArrayAttribute::new(context, needs).into(),
            )],
        };
        let fork = b.op(Op::CfbFork, &[], &types, &needs, regions);
        let handed = joined
            .iter()
            .zip(joins)
            .flat_map(|(values, join)| values.iter().map(move |value| (value, join)));
        for ((value, join), result) in handed.zip(results_of(fork)) {
            debug_assert_ne!(key(value.value), key(result));
            let own = [&value.own[..], &[*join]].concat();
            replace_uses_except(value.value, result, &own);
        }
    }
}

/// A value that a strand hands over.
struct Joined<'c> {
    value: Val<'c>,
    /// Its users in the strand.
    own: Vec<OperationRef<'c, 'c>>,
    /// Its users in others, by strand.
    strands: BTreeMap<usize, Vec<OperationRef<'c, 'c>>>,
}

/// The strand of an operation, or of one around it.
fn home(operation: OperationRef<'_, '_>, homes: &HashMap<usize, usize>) -> Option<usize> {
    let mut current = Some(extend_op(operation));
    while let Some(operation) = current {
        if let Some(strand) = homes.get(&op_key(operation)) {
            return Some(*strand);
        }
        current = operation.parent_operation().map(extend_op);
    }
    None
}

fn replace_operand<'c>(of: OperationRef<'c, 'c>, value: Val<'c>, with: Val<'c>) {
    for (number, operand) in operands_of(of).into_iter().enumerate() {
        if key(operand) == key(value) {
            set_operand(of, number, with);
        }
    }
}

fn is_waiting(effect: Effect) -> bool {
    matches!(effect, Effect::Forces | Effect::Waits)
}
