//! `ragged-remap-loops`: grants the request `remap` of loops over rows.
//!
//! The loop runs over a list of all rows, by their lengths: where its iterations are dealt out to
//! threads one after another, the longest first leave little to wait for at the end.
//!
//! ```mlir
//! ragged.forall %b in @batch to %rows : index attributes {remap = #ragged.order<longest_first>} {
//!   ragged.forall %s in @seq(%b) to %n : tensor<?xindex> { … }
//! }
//! // becomes
//! %order = ragged.prelude(%n) : (tensor<?xindex>) -> tensor<?xindex> {
//!   …                                                  // ragged.remap
//! }
//! ragged.forall %b in @batch rows %order : tensor<?xindex> {
//!   ragged.forall %s in @seq(%b) to %n : tensor<?xindex> { … }
//! }
//! ```
//!
//! The lengths are those of the first loop within that runs over a row and has a table.
//!
//! Requires: that table has an entry for each row of the loop; requests `fuse` were granted before, and
//! `split` and `hfuse` are yet to be. Leaves: no request `remap`. Limits: a loop in order, over a list, a
//! part, padded, or over a ragged dim stays, and so does one within which no such table is read: with a
//! remark. After Fegade et al., "The CoRa Tensor Compiler" (MLSys 2022), §4.1: thread remapping.

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operations_of, region_with_block, result_of,
};
use melior::{
    Context,
    ir::{OperationRef, ValueLike, attribute::DenseI32ArrayAttribute, operation::OperationLike},
};

use super::nest::{Loop, copy_attributes, is_within};
use crate::pass::{Failed, Outcome, PassInfo, remark};
use crate::support::ir::{TensorType, erase, key, nested_ops, remove_attribute, take_region};

pub const PASS: PassInfo = PassInfo {
    name: "ragged-remap-loops",
    summary: "Let loops run over rows by their lengths, where requested",
    description: include_str!("ragged_remap_loops.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Innermost first: a remapped loop is a new operation with the old one's body.
    for op in nested_ops(module).into_iter().rev() {
        if let (Some(ragged), true) = (Loop::of(op), op.has_attribute("remap")) {
            match table_of_rows(&ragged) {
                Ok(table) => remap(context, &ragged, table)?,
                Err(why) => {
                    remove_attribute(op, "remap");
                    remark(op, &format!("the loop was not remapped: {why}"));
                }
            }
        }
    }
    Ok(())
}

/// The lengths that order a loop's rows, or why there is no such order.
fn table_of_rows<'c>(ragged: &Loop<'c>) -> Result<Val<'c>, &'static str> {
    if ragged.carries() {
        return Err("it runs in order");
    }
    let is_part = ragged.from.is_some() || ragged.rows.is_some() || ragged.pad != 1;
    if is_part || !ragged.outer.is_empty() {
        return Err("it is not over all rows, each once");
    }
    let over_row =
        |inner: &Loop<'c>| inner.outer.len() == 1 && key(inner.outer[0]) == key(ragged.index());
    let loops = operations_of(ragged.block).into_iter().filter_map(Loop::of);
    let mut tables = loops.filter(over_row).filter_map(|inner| inner.to);
    let table = tables
        .find(|table| TensorType::of_value(*table).is_some_and(|table| table.rank() == 1))
        .ok_or("no loop within it has a table of its rows' lengths")?;
    match is_within(table, ragged) {
        true => Err("the lengths are computed in the loop"),
        false => Ok(table),
    }
}

fn remap<'c>(context: &'c Context, ragged: &Loop<'c>, table: Val<'c>) -> Outcome {
    let op = ragged.op;
    let builder = Builder::before(context, op).ok_or(Failed)?;
    let ty = table.r#type();
    let (region, block) = region_with_block(&[ty], builder.location);
    let within = Builder::at_end(context, block, builder.location);
    let lengths = arguments_of(block)[0];
    let order = op.attribute("remap").map_err(|_| Failed)?;
    let rows = within.value_with(Op::RaggedRemap, &[lengths], ty, &[("order", order)]);
    within.ragged_yield(&[rows]);
    let list = result_of(
        builder.op(Op::RaggedPrelude, &[table], &[ty], &[], vec![region]),
        0,
    );

    let body = take_region(op, 0);
    let segments = DenseI32ArrayAttribute::new(context, &[0, 0, 0, 1]).into();
    let mut attributes = vec![("operandSegmentSizes", segments)];
    copy_attributes(op, &["dim", "split", "hfuse"], &mut attributes);
    builder.op(ragged.kind(), &[list], &[], &attributes, vec![body]);
    erase(op);
    Ok(())
}
