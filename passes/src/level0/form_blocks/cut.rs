//! Cuts long blocks: a kernel of a thousand operations takes a compiler minutes, as what it does to a
//! function grows with more than its length.
//!
//! A cut is where the fewest numbers are handed over: between two layers, not within one. So the parts of
//! equal layers are equal too, and `unify-kernels` makes them one function.

use std::collections::HashMap;

use cohort_dialects::builder::results_of;

use super::parts::Part;
use crate::support::ir::{TensorType, defining_op, op_key};
use crate::support::levels::used_values;

/// Operations of a block.
const MOST: usize = 256;
/// The fewest operations of a block that is cut.
const LEAST: usize = MOST / 2;

/// One part, or several of the same kind in order.
pub fn cut(mut part: Part<'_>) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while part.operations.len() > MOST {
        let rest = part.operations.split_off(place(&part));
        let kind = part.kind.clone();
        let operations = std::mem::replace(&mut part.operations, rest);
        parts.push(Part { operations, kind });
    }
    parts.push(part);
    parts
}

/// The number of operations before the cut that hands the fewest numbers over; of several the last.
fn place(part: &Part<'_>) -> usize {
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
