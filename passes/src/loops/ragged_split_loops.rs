//! `ragged-split-loops`: grants the request `split` of loops over ragged dims.
//!
//! The loop becomes one over the aligned part of the row, whose number of iterations is a multiple
//! of the request, and one over the rest. What is carried goes from the first to the second.
//!
//! ```mlir
//! ragged.forall %s in @seq(%b) to %n : tensor<?xindex> attributes {split = 32} { … }
//! // becomes
//! %main, %tail = ragged.split %n by 32 : tensor<?xindex>
//! ragged.forall %s in @seq(%b) to %main : tensor<?xindex> { … }
//! ragged.forall %s in @seq(%b) from %main to %n : tensor<?xindex> { … }
//! ```
//!
//! A loop over a dim of one length is split the same way, by arithmetic on that length.
//!
//! Requires: requests `fuse` were granted before. Leaves: no request `split`; `ragged.split` stands
//! before the loop, from where upstream's loop-invariant code motion takes it as far out as it goes.
//! Limits: a loop that has `from`, no length after `to`, padding that does not divide the request, or
//! is to be fused with the loop around it, keeps its form and gets a remark. After Fegade et al., "The CoRa Tensor Compiler" (MLSys 2022), operation splitting.

use cohort_dialects::builder::{Builder, Op, Val, result_of, results_of};
use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{DenseI32ArrayAttribute, IntegerAttribute},
        operation::OperationLike,
    },
};

use super::index::Indices;
use super::nest::{Loop, copy_attributes};
use crate::pass::{Failed, Outcome, PassInfo, remark};
use crate::support::ir::{
    clone_region, erase, integer_attribute, is_tensor, nested_ops, remove_attribute, replace_uses,
};

pub const PASS: PassInfo = PassInfo {
    name: "ragged-split-loops",
    summary: "Split loops over ragged dims into an aligned part and a tail, where requested",
    description: include_str!("ragged_split_loops.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Innermost first, so that an outer loop copies inner ones that are split already.
    for op in nested_ops(module).into_iter().rev() {
        let request = integer_attribute(op, "split");
        if let (Some(ragged), Some(multiple)) = (Loop::of(op), request) {
            remove_attribute(op, "split");
            split(context, &ragged, multiple)?;
        }
    }
    Ok(())
}

/// Why a loop cannot be split, if it cannot.
fn refusal(ragged: &Loop<'_>, multiple: i64) -> Option<&'static str> {
    let parent = ragged.op.parent_operation();
    if parent.is_some_and(|parent| parent.has_attribute("fuse")) {
        Some("it is to be fused with the loop around it")
    } else if ragged.from.is_some() {
        Some("it does not begin at 0")
    } else if ragged.to.is_none() {
        Some("its length is not given after `to`")
    } else if multiple % ragged.pad != 0 {
        Some("its padding does not divide the request")
    } else {
        None
    }
}

fn split<'c>(context: &'c Context, ragged: &Loop<'c>, multiple: i64) -> Outcome {
    let op = ragged.op;
    if let Some(why) = refusal(ragged, multiple) {
        remark(op, &format!("the loop was not split: {why}"));
        return Ok(());
    }
    let (Some(builder), Some(to)) = (Builder::before(context, op), ragged.to) else {
        return Err(Failed);
    };
    let main = if is_tensor(to.r#type()) {
        let attribute = IntegerAttribute::new(builder.ty("i64"), multiple).into();
        let types = [to.r#type(), to.r#type()];
        let attributes = [("multiple", attribute)];
        result_of(
            builder.op(Op::RaggedSplit, &[to], &types, &attributes, vec![]),
            0,
        )
    } else {
        Indices::new(builder).round_down(to, multiple)
    };
    // A multiple of the request is one of the padding, too.
    let first = part(&builder, ragged, None, main, &ragged.inits, 1);
    let carried = results_of(first);
    let second = part(&builder, ragged, Some(main), to, &carried, ragged.pad);
    for (result, value) in results_of(op).into_iter().zip(results_of(second)) {
        replace_uses(result, value);
    }
    erase(op);
    Ok(())
}

/// A copy of the loop over a part of the row.
fn part<'c>(
    builder: &Builder<'c>,
    ragged: &Loop<'c>,
    from: Option<Val<'c>>,
    to: Val<'c>,
    inits: &[Val<'c>],
    pad: i64,
) -> OperationRef<'c, 'c> {
    let mut operands = ragged.outer.clone();
    operands.extend(from);
    operands.push(to);
    operands.extend(inits);
    let mut segments = vec![ragged.outer.len() as i32, i32::from(from.is_some()), 1, 0];
    if ragged.carries() {
        segments.push(inits.len() as i32);
    }
    let segments = DenseI32ArrayAttribute::new(builder.context(), &segments).into();
    let pad = IntegerAttribute::new(builder.ty("i64"), pad).into();
    let mut attributes = vec![("operandSegmentSizes", segments), ("pad", pad)];
    copy_attributes(
        ragged.op,
        &["dim", "fuse", "remap", "hfuse"],
        &mut attributes,
    );
    let types: Vec<_> = results_of(ragged.op)
        .iter()
        .map(|value| value.r#type())
        .collect();
    let body = clone_region(ragged.op, 0);
    builder.op(ragged.kind(), &operands, &types, &attributes, vec![body])
}
