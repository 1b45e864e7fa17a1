//! `ragged-fuse-loops`: grants the request `fuse` of loops over ragged dims.
//!
//! A loop over the rows and the loop over a row within it become one loop over all entries of all
//! rows, whatever their lengths, so that its iterations can be dealt out evenly. Maps give back row
//! and index; they are as long as there really are entries.
//!
//! ```mlir
//! ragged.forall %b in @batch to %rows : index attributes {fuse} {
//!   ragged.forall %s in @seq(%b) to %n : tensor<?xindex> { … }
//! }
//! // becomes
//! ragged.dim @batch_seq
//! %row, %index = ragged.prelude(%n) : (tensor<?xindex>) -> (tensor<?xindex>, tensor<?xindex>) {
//!   …                                    // ragged.offsets and ragged.fuse
//! }
//! %total = tensor.dim %row, %c0 : tensor<?xindex>
//! ragged.forall %f in @batch_seq to %total : index {
//!   %b = tensor.extract %row[%f] : tensor<?xindex>
//!   %s = tensor.extract %index[%f] : tensor<?xindex>
//!   …
//! }
//! ```
//!
//! Where the inner loop's lengths follow a rule, as a triangle's do, the prelude computes them from the
//! number of rows. The inner loop's padding becomes that of the offsets, so every row is padded as
//! before. Loops that carry values are fused when the inner takes and gives just what the outer carries.
//! Loops over the same dims with the same padding are loops over one fused dim.
//!
//! Requires: the table of lengths has an entry for each row of the outer loop. Leaves: no request
//! `fuse`; requests `split` of the inner loop and `hfuse` of the outer are the fused loop's. Limits:
//! an outer loop over a ragged dim, over a list, over a part or with padding, and an inner loop over
//! a part or over several dims, stay and get a remark. After Fegade et al., "The CoRa Tensor Compiler"
//! (MLSys 2022), vloop fusion.

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend_block, operands_of, operations_of, region_with_block,
    result_of, results_of,
};
use cohort_dialects::marks::FUSED_FROM as ORIGIN;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, RegionLike, ValueLike,
        attribute::{
            DenseI32ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute, StringAttribute,
        },
        operation::OperationLike,
    },
};

use super::index::Indices;
use super::nest::{Loop, copy_attributes, is_within};
use super::rules::declaration_of;
use crate::pass::{Failed, Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, erase, key, name_attribute, nested_ops, remove_attribute, replace_uses,
    replace_uses_except, symbol_of, take_region, top_level, users_of,
};
use crate::support::symbols::Symbols;

pub const PASS: PassInfo = PassInfo {
    name: "ragged-fuse-loops",
    summary: "Fuse loops over rows with the loops over a row, where requested",
    description: include_str!("ragged_fuse_loops.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Innermost first: what is fused is erased together with what is in it.
    for op in nested_ops(module).into_iter().rev() {
        let Some(outer) = Loop::of(op).filter(|_| op.has_attribute("fuse")) else {
            continue;
        };
        remove_attribute(op, "fuse");
        let body = operations_of(outer.block);
        let inner = body.first().and_then(|first| Loop::of(*first));
        match inner {
            Some(inner) => match refusal(module, &outer, &inner) {
                None => fuse(context, module, &outer, &inner)?,
                Some(why) => remark(op, &format!("the loops were not fused: {why}")),
            },
            None => remark(op, "the loops were not fused: the body is not one loop"),
        }
    }
    Ok(())
}

/// Why two loops cannot be fused, if they cannot.
fn refusal<'c>(
    module: OperationRef<'c, 'c>,
    outer: &Loop<'c>,
    inner: &Loop<'c>,
) -> Option<&'static str> {
    // Without a table there is a rule, of the row alone.
    let one_table = match inner.to {
        Some(to) => TensorType::of_value(to).is_some_and(|table| table.rank() == 1),
        None => inner.outer.len() == 1 && outer.to.is_some(),
    };
    if !outer.outer.is_empty() || outer.rows.is_some() || outer.from.is_some() || outer.pad != 1 {
        Some("the outer loop is not over all rows, each once")
    } else if !one_table || inner.from.is_some() {
        Some("the inner loop is not over whole rows with a table of lengths")
    } else if inner.to.is_some_and(|table| is_within(table, outer)) {
        Some("the lengths are computed in the outer loop")
    } else if !passes_through(outer, inner) {
        Some("the inner loop does not take and give just what the outer carries")
    } else if declaration_of(module, &outer.dim).is_none() {
        Some("the dim is declared in another symbol table")
    } else {
        None
    }
}

/// Whether a row starts from what the row before it has left, and nothing else sees it.
fn passes_through<'c>(outer: &Loop<'c>, inner: &Loop<'c>) -> bool {
    let same = |left: &[Val<'c>], right: &[Val<'c>]| {
        left.len() == right.len() && left.iter().zip(right).all(|(a, b)| key(*a) == key(*b))
    };
    let carried = &arguments_of(outer.block)[1..];
    let Some(end) = outer.terminator() else {
        return false;
    };
    same(carried, &inner.inits)
        && same(&operands_of(end), &results_of(inner.op))
        && carried.iter().all(|value| users_of(*value).len() == 1)
}

fn fuse<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    outer: &Loop<'c>,
    inner: &Loop<'c>,
) -> Outcome {
    let builder = Builder::before(context, outer.op).ok_or(Failed)?;
    let lengths = inner.to.or(outer.to).ok_or(Failed)?;
    let dim = fused_dim(context, module, outer, inner).ok_or(Failed)?;
    let maps = maps(&builder, inner, lengths);
    let emitter = Indices::new(builder);
    let total = emitter.size(maps[0]);

    let body = take_region(inner.op, 0);
    let first = body
        .first_block()
        .and_then(|block| operations_of(extend_block(block)).first().copied());
    let Some(start) = first.and_then(|first| Builder::before(context, first)) else {
        return Err(Failed);
    };
    let position = inner.index();
    let (row, index) = (
        read(&start, maps[0], position),
        read(&start, maps[1], position),
    );
    let readers: Vec<_> = users_of(position)
        .into_iter()
        .filter(|user| {
            operands_of(*user)
                .first()
                .is_some_and(|table| maps.contains(table))
        })
        .collect();
    replace_uses_except(position, index, &readers);
    replace_uses(outer.index(), row);

    let mut operands = vec![total];
    operands.extend(&outer.inits);
    let mut segments = vec![0, 0, 1, 0];
    if outer.carries() {
        segments.push(outer.inits.len() as i32);
    }
    let mut attributes = vec![
        (
            "operandSegmentSizes",
            DenseI32ArrayAttribute::new(context, &segments).into(),
        ),
        ("dim", FlatSymbolRefAttribute::new(context, &dim).into()),
    ];
    copy_attributes(inner.op, &["split"], &mut attributes);
    copy_attributes(outer.op, &["hfuse"], &mut attributes);
    let types: Vec<_> = results_of(outer.op)
        .iter()
        .map(|value| value.r#type())
        .collect();
    let fused = builder.op(outer.kind(), &operands, &types, &attributes, vec![body]);
    for (result, value) in results_of(outer.op).into_iter().zip(results_of(fused)) {
        replace_uses(result, value);
    }
    erase(outer.op);
    Ok(())
}

/// An entry of a map, as an index.
fn read<'c>(builder: &Builder<'c>, map: Val<'c>, at: Val<'c>) -> Val<'c> {
    Indices::new(*builder).get(map, &[at])
}

/// The prelude that gives row and index of every iteration, of the inner loop's table of lengths, or of
/// the number of rows where a rule gives them.
fn maps<'c>(builder: &Builder<'c>, inner: &Loop<'c>, lengths: Val<'c>) -> Vec<Val<'c>> {
    let context = builder.context();
    let (region, block) = region_with_block(&[lengths.r#type()], builder.location);
    let within = Builder::at_end(context, block, builder.location);
    let dim = FlatSymbolRefAttribute::new(context, &inner.dim).into();
    let pad = IntegerAttribute::new(builder.ty("i64"), inner.pad).into();
    let given = arguments_of(block)[0];
    let table = match inner.to {
        Some(_) => given,
        None => by_rule(&within, dim, given),
    };
    let ty = TensorType::of_value(table).unwrap_or_else(|| unreachable!("a table is a tensor"));
    let list = |entries| {
        let shape = vec![entries];
        TensorType {
            shape,
            ..ty.clone()
        }
        .to_type()
    };
    let offsets = within.value_with(
        Op::RaggedOffsets,
        &[table],
        list(ty.shape[0].map(|rows| rows + 1)),
        &[("dim", dim), ("pad", pad)],
    );
    let types = [list(None), list(None)];
    let fused = within.op(Op::RaggedFuse, &[offsets], &types, &[("dim", dim)], vec![]);
    let yielded = [result_of(fused, 0), result_of(fused, 1)];
    within.ragged_yield(&yielded);
    results_of(builder.op(Op::RaggedPrelude, &[lengths], &types, &[], vec![region]))
}

/// The table of the lengths that a rule gives each of so many rows.
fn by_rule<'c>(within: &Builder<'c>, dim: Attribute<'c>, rows: Val<'c>) -> Val<'c> {
    let e = Indices::new(*within);
    let ty = within.ty("tensor<?xindex>");
    let count = |inner: &Indices<'c>, row: Val<'c>, carried: &[Val<'c>]| {
        vec![inner.put(carried[0], row, row)]
    };
    let numbers = e.for_loop(e.constant(0), rows, &[e.empty(rows, ty)], count);
    let segments = DenseI32ArrayAttribute::new(within.context(), &[1, 0]).into();
    let attributes = [("dim", dim), ("operandSegmentSizes", segments)];
    within.value_with(Op::RaggedLengths, &numbers, ty, &attributes)
}

/// The name of the dim that two loops are fused over; declared if it is not yet.
fn fused_dim<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    outer: &Loop<'c>,
    inner: &Loop<'c>,
) -> Option<String> {
    let origin = format!("{}, {}, pad {}", outer.dim, inner.dim, inner.pad);
    let known = top_level(module).into_iter().find(|op| {
        Op::RaggedDim.is(*op) && name_attribute(*op, ORIGIN).as_deref() == Some(&origin)
    });
    if let Some(known) = known {
        return symbol_of(known);
    }
    let name = Symbols::of(module).free_like(&format!("{}_{}", outer.dim, inner.dim));
    let text = |text: &str| StringAttribute::new(context, text).into();
    let attributes = [("sym_name", text(&name)), (ORIGIN, text(&origin))];
    let builder = Builder::before(context, declaration_of(module, &outer.dim)?)?;
    builder.op(Op::RaggedDim, &[], &[], &attributes, vec![]);
    Some(name)
}
