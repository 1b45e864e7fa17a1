//! `ragged-lower-loops`: loops over dims become loops of `scf`.
//!
//! A loop reads its length where it stands, from a table or by the dim's rule, and rounds the number
//! of its iterations up to its padding. A loop over a list reads its index from it. A `ragged.hfuse` of
//! one loop a part is one loop over the iterations of all of them, of which each does what its part
//! says; other parts run one after another.
//!
//! ```mlir
//! ragged.forall %b in @batch rows %list : tensor<?xi32> {
//!   ragged.for %s in @seq(%b) to %n : tensor<?xindex> pad 4 {
//!     …
//!   }
//! }
//! // becomes
//! %size = tensor.dim %list, %c0 : tensor<?xi32>
//! scf.for %i = %c0 to %size step %c1 {
//!   %row = tensor.extract %list[%i] : tensor<?xi32>
//!   %b = arith.index_cast %row : i32 to index
//!   %length = tensor.extract %n[%b] : tensor<?xindex>
//!   …                                              // rounded up to 4
//!   scf.for %s = %c0 to %iterations step %c1 {
//!     …
//!   }
//! }
//! ```
//!
//! Requires: nothing; requests that no pass has granted get a remark and are dropped. Leaves: no
//! `ragged.for`, `ragged.forall`, `ragged.hfuse`; a table over ragged dims is read by the same indices,
//! which `ragged-lower-storage` makes a place in its storage. Limits: one thread; a rule declared in
//! another symbol table is an error at the loop.

use cohort_dialects::builder::{
    Builder, Op, Val, extend_block, extend_op, operands_of, operations_of, results_of,
};
use melior::{
    Context,
    ir::{OperationRef, RegionLike, TypeLike, ValueLike, operation::OperationLike},
};

use super::index::Indices;
use super::launches::{self, Part};
use super::nest::Loop;
use super::rules::{apply_rule, declaration_of};
use crate::pass::{Failed, Outcome, PassInfo, error, remark};
use crate::support::ir::{
    blocks_of, defining_op, erase, move_before, nested_ops, op_key, replace_uses,
    replace_uses_except, take_region,
};

pub const PASS: PassInfo = PassInfo {
    name: "ragged-lower-loops",
    summary: "Make loops over dims loops of scf",
    description: include_str!("ragged_lower_loops.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Chosen first: what ends a loop is erased with it.
    let is_lowered = |op: &OperationRef<'c, 'c>| {
        let kind = Op::of(*op);
        matches!(
            kind,
            Some(Op::RaggedFor | Op::RaggedForall | Op::RaggedHfuse)
        )
    };
    let chosen: Vec<_> = nested_ops(module).into_iter().filter(is_lowered).collect();
    let mut joined = Vec::new();
    for op in chosen {
        if Op::RaggedHfuse.is(op) {
            dissolve(context, module, op, &mut joined)?;
        } else if joined.contains(&op_key(op)) {
            // It is part of a launch.
            erase(op);
        } else if let Some(ragged) = Loop::of(op) {
            lower(context, module, &ragged)?;
        }
    }
    Ok(())
}

/// Makes parts one loop where each has one, and puts what is in them in the operation's place. The loops
/// that are left without a body are added to `joined`.
fn dissolve<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    op: OperationRef<'c, 'c>,
    joined: &mut Vec<usize>,
) -> Outcome {
    let parts = blocks_of(op).into_iter().map(operations_of);
    let parts: Vec<Vec<_>> = parts.collect();
    let loops: Vec<Vec<_>> = parts
        .iter()
        .map(|part| part.iter().copied().filter_map(Loop::of).collect())
        .collect();
    for part in parts.into_iter().flatten() {
        move_before(part, op);
    }
    if loops.iter().all(|part| part.len() == 1) {
        let e = Indices::new(Builder::before(context, op).ok_or(Failed)?);
        let mut launch = Vec::new();
        for ragged in loops.into_iter().flatten() {
            report_requests(ragged.op);
            let (from, to) = bounds(&e, module, &ragged)?;
            let count = e.max(e.sub(to, from), e.constant(0));
            joined.push(op_key(ragged.op));
            launch.push(Part {
                ragged,
                from,
                count,
            });
        }
        launches::emit(&e, &launch);
    }
    erase(op);
    Ok(())
}

fn report_requests(op: OperationRef<'_, '_>) {
    for request in ["fuse", "split", "remap", "hfuse"] {
        if op.has_attribute(request) {
            remark(
                op,
                &format!("the request `{request}` was granted by no pass"),
            );
        }
    }
}

fn lower<'c>(context: &'c Context, module: OperationRef<'c, 'c>, ragged: &Loop<'c>) -> Outcome {
    let op = ragged.op;
    report_requests(op);
    let Some(builder) = Builder::before(context, op) else {
        return Err(Failed);
    };
    let emitter = Indices::new(builder);
    let (from, to) = bounds(&emitter, module, ragged)?;
    let index = ragged.index();
    let Some(terminator) = ragged.terminator() else {
        return Err(Failed);
    };

    // The body stays as it is: the arguments of both loops are the index and what is carried.
    let body = take_region(op, 0);
    if let Some(end) = Builder::before(context, terminator) {
        end.scf_yield(&operands_of(terminator));
    }
    erase(terminator);
    if let (Some(list), Some(block)) = (ragged.rows, body.first_block()) {
        let first = operations_of(extend_block(block)).first().copied();
        if let Some(start) = first.and_then(|first| Builder::before(context, first)) {
            read_index(&Indices::new(start), list, index);
        }
    }
    let bounds = [from, to, emitter.constant(1)];
    let lowered = builder.scf_for(bounds, &ragged.inits, body);
    for (result, value) in results_of(op).into_iter().zip(results_of(lowered)) {
        replace_uses(result, value);
    }
    erase(op);
    Ok(())
}

/// Makes the index of a loop over a list what the list says.
fn read_index<'c>(emitter: &Indices<'c>, list: Val<'c>, position: Val<'c>) {
    let row = emitter.get(list, &[position]);
    // The entry itself is read at the position, be it converted or not.
    let mut reader = defining_op(row);
    while let Some(op) = reader.filter(|op| !Op::TensorExtract.is(*op)) {
        reader = defining_op(operands_of(op)[0]);
    }
    if let Some(reader) = reader {
        replace_uses_except(position, row, &[extend_op(reader)]);
    }
}

/// Where the loop begins and ends, padding included.
fn bounds<'c>(
    emitter: &Indices<'c>,
    module: OperationRef<'c, 'c>,
    ragged: &Loop<'c>,
) -> Result<(Val<'c>, Val<'c>), Failed> {
    let op = ragged.op;
    let zero = emitter.constant(0);
    let at_row = |bound: Val<'c>| {
        if bound.r#type().is_index() {
            return bound;
        }
        emitter.get(bound, &ragged.outer)
    };
    let from = ragged.from.map_or(zero, at_row);
    let to = match (ragged.rows, ragged.to) {
        (Some(list), _) => emitter.size(list),
        (None, Some(to)) => at_row(to),
        (None, None) => declaration_of(module, &ragged.dim)
            .and_then(|dim| apply_rule(emitter, dim, &ragged.outer, &[]))
            .ok_or_else(|| {
                let message = "the rule of a dim in another symbol table is not supported yet";
                error(op, message)
            })?,
    };
    if ragged.pad == 1 {
        return Ok((from, to));
    }
    let iterations = emitter.max(emitter.sub(to, from), zero);
    let padded = emitter.round_up(iterations, ragged.pad);
    Ok((from, emitter.add(from, padded)))
}
