//! `ragged-hfuse-loops`: grants the request `hfuse` of loops that can share a launch.
//!
//! Loops of one name in a block are put into one `ragged.hfuse`, a part each: the aligned part and the
//! tail of a split loop, the short and the long rows of a batch, operators that do not need each other.
//!
//! ```mlir
//! ragged.forall %s in @seq(%b) to %main : tensor<?xindex> attributes {hfuse = "parts"} { … }
//! ragged.forall %s in @seq(%b) from %main to %n : tensor<?xindex> attributes {hfuse = "parts"} { … }
//! // becomes
//! ragged.hfuse {
//!   ragged.forall %s in @seq(%b) to %main : tensor<?xindex> { … }
//! }, {
//!   ragged.forall %s in @seq(%b) from %main to %n : tensor<?xindex> { … }
//! }
//! ```
//!
//! What is computed between the loops moves before them. `ragged-lower-loops` makes of such an operation
//! one loop over the iterations of all parts.
//!
//! Requires: who requests it knows that no loop of the name reads what another writes, as is so of the
//! parts of one `ragged.forall`; requests `fuse`, `remap` and `split` were granted before. Leaves: no
//! request `hfuse`. Limits: a loop in order, one alone, and loops between which anything may have
//! effects stay, with a remark. After Fegade et al., "The CoRa Tensor Compiler" (MLSys 2022), §4.1:
//! horizontal fusion, after Li et al. (HFuse, 2020).

use cohort_dialects::builder::{
    Builder, Dialect, Op, extend_block, is_arithmetic, operations_of, region_with_block,
};
use melior::{
    Context,
    ir::{BlockRef, OperationRef, RegionLike, operation::OperationLike},
};

use super::nest::Loop;
use crate::pass::{Failed, Outcome, PassInfo, remark};
use crate::support::ir::{blocks_of, name_attribute, nested_ops, op_key, remove_attribute};

pub const PASS: PassInfo = PassInfo {
    name: "ragged-hfuse-loops",
    summary: "Put independent loops into one launch, where requested",
    description: include_str!("ragged_hfuse_loops.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let blocks: Vec<_> = nested_ops(module).into_iter().flat_map(blocks_of).collect();
    for block in blocks {
        for (name, loops) in requests(block) {
            for op in &loops {
                remove_attribute(*op, "hfuse");
            }
            match refusal(block, &loops) {
                None => join(context, block, &loops)?,
                Some(why) => remark(
                    loops[0],
                    &format!("the loops `{name}` do not share a launch: {why}"),
                ),
            }
        }
    }
    Ok(())
}

/// The loops of a block by the name that they request, in order.
fn requests<'c>(block: BlockRef<'c, 'c>) -> Vec<(String, Vec<OperationRef<'c, 'c>>)> {
    let mut requests: Vec<(String, Vec<_>)> = Vec::new();
    for op in operations_of(block) {
        let Some(name) = Loop::of(op).and_then(|_| name_attribute(op, "hfuse")) else {
            continue;
        };
        match requests.iter_mut().find(|(known, _)| *known == name) {
            Some((_, loops)) => loops.push(op),
            None => requests.push((name, vec![op])),
        }
    }
    requests
}

/// Why loops cannot be in one launch, if they cannot.
fn refusal<'c>(block: BlockRef<'c, 'c>, loops: &[OperationRef<'c, 'c>]) -> Option<&'static str> {
    if loops.len() < 2 {
        Some("there is one of the name in the block")
    } else if loops.iter().any(|op| !Op::RaggedForall.is(*op)) {
        Some("one of them runs in order")
    } else if between(block, loops).any(|op| !only_computes(op)) {
        Some("what is between them may have effects")
    } else {
        None
    }
}

/// The other operations from the first loop to the last.
fn between<'c>(
    block: BlockRef<'c, 'c>,
    loops: &[OperationRef<'c, 'c>],
) -> impl Iterator<Item = OperationRef<'c, 'c>> {
    let keys: Vec<_> = loops.iter().map(|op| op_key(*op)).collect();
    let (first, last) = (keys[0], keys[keys.len() - 1]);
    operations_of(block)
        .into_iter()
        .skip_while(move |op| op_key(*op) != first)
        .take_while(move |op| op_key(*op) != last)
        .filter(move |op| !keys.contains(&op_key(*op)))
}

/// Whether an operation is known to have no effects.
fn only_computes(op: OperationRef<'_, '_>) -> bool {
    let is_loop = matches!(
        Op::of(op),
        Some(Op::RaggedFor | Op::RaggedForall | Op::RaggedHfuse)
    );
    match Dialect::of(op) {
        Some(Dialect::Ragged) => !is_loop,
        Some(Dialect::Tensor | Dialect::Index) => true,
        _ => is_arithmetic(op) || Op::MemrefDim.is(op),
    }
}

fn join<'c>(
    context: &'c Context,
    block: BlockRef<'c, 'c>,
    loops: &[OperationRef<'c, 'c>],
) -> Outcome {
    let others: Vec<_> = between(block, loops).collect();
    for op in others {
        crate::support::ir::move_before(op, loops[0]);
    }
    let builder = Builder::before(context, loops[0]).ok_or(Failed)?;
    let regions = loops
        .iter()
        .map(|_| region_with_block(&[], builder.location).0);
    let joined = builder.op(Op::RaggedHfuse, &[], &[], &[], regions.collect());
    for (at, op) in loops.iter().enumerate() {
        let part = joined.region(at).map_err(|_| Failed)?;
        let part = part.first_block().map(extend_block).ok_or(Failed)?;
        // SAFETY: loop and block are alive; the loop is in no block when the new one takes it.
        unsafe {
            mlir_sys::mlirOperationRemoveFromParent(op.to_raw());
            mlir_sys::mlirBlockAppendOwnedOperation(part.to_raw(), op.to_raw());
        }
    }
    Ok(())
}
