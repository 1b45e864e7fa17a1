//! Cuts long blocks: a kernel of a thousand operations takes a compiler minutes, as what it does to a
//! function grows with more than its length.
//!
//! A cut is where the fewest numbers are handed over: between two layers, not within one. So the parts of
//! equal layers are equal too, and `unify-kernels` makes them one function.
//!
//! What only says how a value from outside is read, as a slice of a matrix, is not handed over: each part
//! that reads through it gets a copy. So the matrix stays an operand that all rows share.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Builder, operands_of, results_of};
use melior::{Context, ir::OperationRef};

use super::parts::Part;
use crate::support::extents::Extents;
use crate::support::ir::{
    TensorType, clone_op, defining_op, key, nested_ops, op_key, set_operand, users_of,
};
use crate::support::levels::{is_view, used_values};

/// Operations of a block.
const MOST: usize = 256;
/// The fewest operations of a block that is cut.
const LEAST: usize = MOST / 2;

/// One part, or several of the same kind in order. What only copies stand for joins `made_again`.
pub fn cut<'c>(
    context: &'c Context,
    mut part: Part<'c>,
    made_again: &mut HashSet<usize>,
    extents: &mut Extents,
) -> Vec<Part<'c>> {
    if part.operations.len() <= MOST {
        return vec![part];
    }
    let views = outer_views(&part);
    let copied: HashSet<usize> = views.iter().map(|view| op_key(*view)).collect();
    let mut parts = Vec::new();
    while part.operations.len() > MOST {
        let rest = part.operations.split_off(place(&part, &copied));
        let kind = part.kind.clone();
        let operations = std::mem::replace(&mut part.operations, rest);
        parts.push(Part { operations, kind });
    }
    parts.push(part);
    for part in &mut parts {
        copy_views(context, part, &views, extents);
    }
    // One that only other parts read is nowhere but in their copies; the last of a chain goes first.
    let mut unused = HashSet::new();
    for view in views.into_iter().rev() {
        let mut users = results_of(view).into_iter().flat_map(users_of);
        if users.all(|user| unused.contains(&op_key(user))) {
            unused.insert(op_key(view));
        }
    }
    for part in &mut parts {
        part.operations.retain(|op| !unused.contains(&op_key(*op)));
    }
    made_again.extend(unused);
    parts.retain(|part| !part.operations.is_empty());
    parts
}

/// The views of what a part does not compute, and views of those, in order.
fn outer_views<'c>(part: &Part<'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut computed: HashSet<usize> = part.operations.iter().map(|op| op_key(*op)).collect();
    let mut views = Vec::new();
    for operation in &part.operations {
        let mut producers = used_values(*operation).into_iter().filter_map(defining_op);
        if is_view(*operation) && !producers.any(|producer| computed.contains(&op_key(producer))) {
            computed.remove(&op_key(*operation));
            views.push(*operation);
        }
    }
    views
}

/// Gives a part copies of the views of other parts that it reads through.
fn copy_views<'c>(
    context: &'c Context,
    part: &mut Part<'c>,
    views: &[OperationRef<'c, 'c>],
    extents: &mut Extents,
) {
    let own: HashSet<usize> = part.operations.iter().map(|op| op_key(*op)).collect();
    let mut read: HashSet<usize> = HashSet::new();
    for operation in &part.operations {
        read.extend(used_values(*operation).into_iter().map(key));
    }
    let mut needed = Vec::new();
    for view in views
        .iter()
        .rev()
        .filter(|view| !own.contains(&op_key(**view)))
    {
        if results_of(*view)
            .iter()
            .any(|result| read.contains(&key(*result)))
        {
            read.extend(operands_of(*view).into_iter().map(key));
            needed.push(*view);
        }
    }
    let first = part.operations.first();
    let Some(start) = first.and_then(|first| Builder::before(context, *first)) else {
        return;
    };
    needed.reverse();
    let mut copies = Vec::new();
    let mut replacement = HashMap::new();
    for view in needed {
        let copy = start.insert(clone_op(view));
        for (old, new) in results_of(view).into_iter().zip(results_of(copy)) {
            extents.join_shapes(old, new);
            replacement.insert(key(old), new);
        }
        copies.push(copy);
    }
    part.operations.splice(0..0, copies);
    let operations = part.operations.iter();
    for operation in operations.flat_map(|op| [vec![*op], nested_ops(*op)].concat()) {
        for (index, operand) in operands_of(operation).into_iter().enumerate() {
            if let Some(with) = replacement.get(&key(operand)) {
                set_operand(operation, index, *with);
            }
        }
    }
}

/// The number of operations before the cut that hands the fewest numbers over, of several the last. What is
/// `copied` is not handed over.
fn place(part: &Part<'_>, copied: &HashSet<usize>) -> usize {
    // Where each operation's results are used last.
    let numbers: HashMap<usize, usize> = (part.operations.iter().map(|op| op_key(*op)))
        .zip(0..)
        .collect();
    let mut last_use: Vec<usize> = (0..part.operations.len()).collect();
    for (user, operation) in part.operations.iter().enumerate() {
        for producer in used_values(*operation).into_iter().filter_map(defining_op) {
            if let Some(number) = numbers.get(&op_key(producer)) {
                last_use[*number] = last_use[*number].max(user);
            }
        }
    }
    let sizes = part.operations.iter().map(|operation| {
        if copied.contains(&op_key(*operation)) {
            return 0;
        }
        let shapes = results_of(*operation).into_iter();
        let shapes = shapes.filter_map(TensorType::of_value);
        let elements = shapes.map(|ty| ty.shape.into_iter().flatten().product::<u64>());
        elements.fold(0, u64::saturating_add)
    });
    let sizes: Vec<u64> = sizes.collect();
    let handed_over = |place: usize| {
        let before = (0..place).filter(|number| last_use[*number] >= place);
        before
            .map(|number| sizes[number])
            .fold(0, u64::saturating_add)
    };
    (LEAST..=MOST)
        .rev()
        .min_by_key(|place| handed_over(*place))
        .unwrap_or(MOST)
}
