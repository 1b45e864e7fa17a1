//! Arrays that a fold pushes to, turn after turn: they grow in place, in one buffer that is large
//! enough from the start, where nobody can tell.
//!
//! A carried array may grow in place when in each turn it only becomes the next turn's by pushes,
//! through choices of `scf.if` and `cfb.match`, and everything else that looks at it or at what it
//! became only reads it, before any later push. It never leaves the turn otherwise, so no older
//! version of it is ever seen again. Copying instead would cost the square of the length.

use std::collections::HashSet;

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of};
use cohort_dialects::keys;
use cohort_dialects::types::array_element;
use cohort_passes::support::ir::{blocks_of, defining_op, integers, key, op_key, users_of};
use melior::ir::{OperationRef, ValueLike, operation::OperationLike};

/// How a carried array grows.
pub struct Growth<'c> {
    /// Pushes a turn, at most.
    pub pushes_a_turn: usize,
    pub pushes: Vec<OperationRef<'c, 'c>>,
}

/// How the carried value `index` of a `cfb.fold` grows, where it may in place.
pub fn growth<'c>(fold: OperationRef<'c, 'c>, index: usize) -> Option<Growth<'c>> {
    let &body = blocks_of(fold).first()?;
    let carried = *arguments_of(body).get(index)?;
    array_element(carried.r#type())?;
    let end = operations_of(body).pop()?;
    let mut chain = Chain {
        carried,
        links: HashSet::new(),
        versions: vec![],
        pushes: vec![],
    };
    let pushes_a_turn = chain.follow(end, index)?;
    let only_read = chain
        .versions
        .iter()
        .all(|version| chain.is_only_read(*version));
    (pushes_a_turn > 0 && only_read).then_some(Growth {
        pushes_a_turn,
        pushes: chain.pushes,
    })
}

/// The way of an array through one turn.
struct Chain<'c> {
    carried: Val<'c>,
    /// Uses (operation, operand) that hand the array on.
    links: HashSet<(usize, usize)>,
    /// The array and what it becomes.
    versions: Vec<Val<'c>>,
    pushes: Vec<OperationRef<'c, 'c>>,
}

impl<'c> Chain<'c> {
    /// Follows the operand of a link back to the carried array; counts the pushes on the way.
    fn follow(&mut self, link: OperationRef<'c, 'c>, operand: usize) -> Option<usize> {
        let version = *operands_of(link).get(operand)?;
        self.links.insert((op_key(link), operand));
        if !self
            .versions
            .iter()
            .any(|known| key(*known) == key(version))
        {
            self.versions.push(version);
        }
        if key(version) == key(self.carried) {
            return Some(0);
        }
        let maker = defining_op(version)?;
        match Op::of(maker) {
            Some(Op::CfbArrayPush) => {
                if !self
                    .pushes
                    .iter()
                    .any(|known| op_key(*known) == op_key(maker))
                {
                    self.pushes.push(maker);
                }
                Some(self.follow(maker, 0)? + 1)
            }
            Some(Op::CfbFork) => {
                // The strands' values stand one behind another.
                let results = cohort_dialects::builder::results_of(maker);
                let mut number = results
                    .iter()
                    .position(|result| key(*result) == key(version))?;
                // Another strand may do anything with it.
                if integers(maker, keys::NEEDS).contains(&(number as i64)) {
                    return None;
                }
                for strand in blocks_of(maker) {
                    let join = operations_of(strand).pop()?;
                    match number.checked_sub(join.operand_count()) {
                        Some(rest) => number = rest,
                        None => return self.follow(join, number),
                    }
                }
                None
            }
            _ if is_choice(maker) => {
                let results = cohort_dialects::builder::results_of(maker);
                let number = results
                    .iter()
                    .position(|result| key(*result) == key(version))?;
                let mut most = 0;
                for case in blocks_of(maker) {
                    most = most.max(self.follow(operations_of(case).pop()?, number)?);
                }
                Some(most)
            }
            _ => None,
        }
    }

    /// Whether a version is only handed on, or read while it is the latest.
    fn is_only_read(&self, version: Val<'c>) -> bool {
        users_of(version).into_iter().all(|user| {
            let uses: Vec<usize> = operands_of(user)
                .into_iter()
                .enumerate()
                .filter(|(_, operand)| key(*operand) == key(version))
                .map(|(number, _)| number)
                .collect();
            let handed_on = |number: &usize| self.links.contains(&(op_key(user), *number));
            uses.iter()
                .all(|number| handed_on(number) || reads(user, *number))
                && (uses.iter().all(handed_on) || self.is_before_later_pushes(user, version))
        })
    }

    fn is_before_later_pushes(&self, reader: OperationRef<'c, 'c>, version: Val<'c>) -> bool {
        self.pushes.iter().all(|push| {
            let is_earlier =
                defining_op(version).is_some_and(|maker| order(*push, maker) != Order::After);
            is_earlier || matches!(order(reader, *push), Order::Before | Order::Exclusive)
        })
    }
}

fn is_choice(operation: OperationRef<'_, '_>) -> bool {
    matches!(Op::of(operation), Some(Op::ScfIf | Op::CfbMatch))
}

/// Whether an operation does nothing with an operand but look at its length and elements.
fn reads(user: OperationRef<'_, '_>, operand: usize) -> bool {
    match Op::of(user) {
        // A record reads the lists it gets before it returns.
        Some(Op::CfbArrayLen | Op::CfbMap | Op::CfbRecord) => true,
        Some(Op::CfbArrayGet | Op::CfbFold) => operand == 0,
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Before,
    After,
    /// One is the other, or in a region of it.
    Around,
    /// In different cases of one choice.
    Exclusive,
}

/// When `first` runs, seen from `second`, within one turn.
fn order<'c>(first: OperationRef<'c, 'c>, second: OperationRef<'c, 'c>) -> Order {
    let (outer_first, outer_second) = (with_ancestors(first), with_ancestors(second));
    for a in &outer_first {
        for b in &outer_second {
            if op_key(*a) == op_key(*b) {
                let nested = op_key(*a) != op_key(first) && op_key(*b) != op_key(second);
                return match nested && is_choice(*a) {
                    true => Order::Exclusive,
                    false => Order::Around,
                };
            }
            if a.block() == b.block() {
                return match a.is_before_in_block(*b) {
                    true => Order::Before,
                    false => Order::After,
                };
            }
        }
    }
    Order::Around
}

/// An operation and those around it, innermost first.
fn with_ancestors<'c>(operation: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut all = vec![operation];
    while let Some(parent) = all.last().and_then(|last| last.parent_operation()) {
        all.push(cohort_dialects::builder::extend_op(parent));
    }
    all
}
