//! One loop over the iterations of several.

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Val, arguments_of, operations_of, region_with_block,
};
use melior::ir::OperationRef;

use super::index::Indices;
use super::nest::Loop;
use crate::support::ir::{move_before, replace_uses};

/// The iterations of one loop.
pub struct Part<'c> {
    pub ragged: Loop<'c>,
    pub from: Val<'c>,
    /// How many there are.
    pub count: Val<'c>,
}

/// `for i in 0..the counts together`, in which the body of the part that `i` falls into is. The loops
/// are left without their bodies.
pub fn emit<'c>(e: &Indices<'c>, parts: &[Part<'c>]) -> OperationRef<'c, 'c> {
    let zero = e.constant(0);
    let all = parts.iter().fold(zero, |sum, part| e.add(sum, part.count));
    let (region, block) = region_with_block(&[e.index], e.b.location);
    let inner = Indices::new(Builder::at_end(e.b.context(), block, e.b.location));
    let at = arguments_of(block)[0];
    choose(&inner, parts, at);
    inner.b.scf_yield(&[]);
    e.b.scf_for([zero, all, e.constant(1)], &[], region)
}

/// The body of the part that an iteration is in, counted from the first of these parts.
fn choose<'c>(e: &Indices<'c>, parts: &[Part<'c>], at: Val<'c>) {
    let Some((first, others)) = parts.split_first() else {
        return;
    };
    let branch = |fill: &dyn Fn(&Indices<'c>)| {
        let (region, block) = region_with_block(&[], e.b.location);
        let inner = Indices::new(Builder::at_end(e.b.context(), block, e.b.location));
        fill(&inner);
        inner.b.scf_yield(&[]);
        region
    };
    if others.is_empty() {
        return take_body(e, first, at);
    }
    let is_first = e.b.cmpi(CmpiPredicate::Slt, at, first.count);
    let then = branch(&|inner| take_body(inner, first, at));
    let otherwise = branch(&|inner| choose(inner, others, inner.sub(at, first.count)));
    e.b.scf_if(is_first, &[], [then, otherwise]);
}

/// Moves a loop's body here.
fn take_body<'c>(e: &Indices<'c>, part: &Part<'c>, at: Val<'c>) {
    let index = match part.ragged.rows {
        Some(list) => e.get(list, &[at]),
        None => e.add(part.from, at),
    };
    replace_uses(part.ragged.index(), index);
    // Moved before something that is here, for the block may be empty otherwise.
    let end = e.b.scf_yield(&[]);
    let mut body = operations_of(part.ragged.block);
    body.pop();
    for op in body {
        move_before(op, end);
    }
    crate::support::ir::erase(end);
}
