//! `unroll-loops`: a loop whose counter picks parameters is written out, step by step (level 0).
//!
//! Layers with weights of their own are a parameter with a leading dim and a loop over it. Inside the
//! loop the matrix of a step is a row of the parameter at an index of the control program: it could
//! be another for each instance, and the product with it takes one matrix a row. Written out, each
//! step reads a part of the parameter that is known when the program is compiled and that all
//! instances share, so its products are dense, and the part is packed once at load.
//!
//! ```mlir
//! %layers = cfb.array_range %c2 : !cfb.array<i32>
//! %r = cfb.fold %layers init(%x) : (!cfb.array<i32>, tensor<4xf32>) -> tensor<4xf32> {
//! ^bb0(%h: tensor<4xf32>, %l: i32):
//!   %m = cfb.lookup %w[%l] : tensor<2x4x4xf32> -> tensor<4x4xf32>
//!   %n = linalg.vecmat ins(%h, %m : …) outs(%zero : …) -> tensor<4xf32>
//!   cfb.yield %n : tensor<4xf32>
//! }
//! // becomes
//! %s0 = tensor.extract_slice %w[0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<2x4x4xf32> to tensor<1x4x4xf32>
//! %m0 = tensor.collapse_shape %s0 [[0, 1], [2]] : tensor<1x4x4xf32> into tensor<4x4xf32>
//! %n0 = linalg.vecmat ins(%x, %m0 : …) outs(%zero : …) -> tensor<4xf32>
//! … the same with the second matrix and %n0
//! ```
//!
//! Written out is a `cfb.fold` or `cfb.map` over a `cfb.array_range` of a known count, if its body
//! looks a parameter up at the element and computes with what it finds. Inner loops come first, and
//! what they become counts for the outer ones. Then a lookup of a parameter at a known index that
//! is in bounds becomes a slice wherever tensor operations use it; one that only the control
//! program hands on stays, since it costs nothing there.
//!
//! Requires: level 0 after inlining and canonicalisation. Leaves: level 0. A loop of more than 16,384
//! operations, all steps together, stays a loop, and a remark says so. After Cortex, section 3.2
//! ("unrolling"), where it is the recursion that is unrolled, and ACRoBat, section 4
//! (parameter reuse), which knows parameters apart by the calls that pass them.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, Type, ValueLike, attribute::IntegerAttribute, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::copies::copy_op;
use crate::support::ir::{
    TensorType, blocks_of, defining_op, erase, key, nested_ops, replace_uses, set_operand, users_of,
};
use crate::support::waves::{Role, role};

/// The pass `unroll-loops`.
pub const PASS: PassInfo = PassInfo {
    name: "unroll-loops",
    summary: "Write out loops whose counter picks parameters, so that all rows share them (level 0)",
    description: include_str!("unroll_loops.rs"),
    run,
};

/// Operations that a loop may become.
const MOST_OPERATIONS: usize = 1 << 14;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let loops: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| matches!(Op::of(*op), Some(Op::CfbFold | Op::CfbMap)))
        .collect();
    // Innermost first: erasing a loop leaves those around it alive.
    for the_loop in loops.into_iter().rev() {
        if let Some(count) = known_count(the_loop).filter(|_| picks_parameters(the_loop)) {
            unroll(context, the_loop, count);
        }
    }
    let lookups: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbLookup.is(*op))
        .collect();
    for lookup in lookups {
        slice(context, lookup);
    }
    Ok(())
}

/// The steps of a loop over one range of a known count.
fn known_count(the_loop: OperationRef<'_, '_>) -> Option<usize> {
    let arrays: Vec<_> = operands_of(the_loop)
        .into_iter()
        .take(arrays_of(the_loop))
        .collect();
    let [range] = arrays[..] else {
        return None;
    };
    let range = defining_op(range).filter(|op| Op::CfbArrayRange.is(*op))?;
    constant(*operands_of(range).first()?).map(|count| count.max(0) as usize)
}

/// How many of a loop's operands are arrays that it walks: a fold's first, all of a map's.
fn arrays_of(the_loop: OperationRef<'_, '_>) -> usize {
    match Op::of(the_loop) {
        Some(Op::CfbFold) => 1,
        _ => operands_of(the_loop).len(),
    }
}

/// The value of an integer constant.
fn constant(value: Val<'_>) -> Option<i64> {
    let producer = defining_op(value).filter(|op| Op::ArithConstant.is(*op))?;
    let attribute = producer.attribute(&keys::VALUE).ok()?;
    IntegerAttribute::try_from(attribute)
        .ok()
        .map(|number| number.value())
}

/// Whether a tensor operation of the body computes with a parameter's row at the loop's element.
fn picks_parameters(the_loop: OperationRef<'_, '_>) -> bool {
    let Some(element) = element_of(the_loop) else {
        return false;
    };
    users_of(element).into_iter().any(|user| {
        Op::CfbLookup.is(user)
            && operands_of(user)
                .first()
                .is_some_and(|table| is_parameter(*table))
            && users_of(result_of(user, 0)).into_iter().any(computes)
    })
}

/// The body's argument that is the element, always the last one.
fn element_of<'c>(the_loop: OperationRef<'c, 'c>) -> Option<Val<'c>> {
    arguments_of(*blocks_of(the_loop).first()?).last().copied()
}

pub(crate) fn is_parameter(value: Val<'_>) -> bool {
    defining_op(value).is_some_and(|op| role(op) == Role::Parameter)
}

fn computes(operation: OperationRef<'_, '_>) -> bool {
    role(operation) == Role::Tensor
}

/// Puts the steps of a loop in its place.
fn unroll<'c>(context: &'c Context, the_loop: OperationRef<'c, 'c>, count: usize) {
    let operations = count.saturating_mul(nested_ops(the_loop).len());
    if operations > MOST_OPERATIONS {
        remark(
            the_loop,
            &format!(
                "left as a loop, so products with the parameters that it picks take one matrix a \
                 row: written out, it would have {operations} operations, more than \
                 {MOST_OPERATIONS}"
            ),
        );
        return;
    }
    let (Some(body), Some(before)) = (
        blocks_of(the_loop).first().copied(),
        Builder::before(context, the_loop),
    ) else {
        return;
    };
    let arguments = arguments_of(body);
    let Some((element, carried)) = arguments.split_last() else {
        return;
    };
    let is_map = Op::CfbMap.is(the_loop);
    let mut state = operands_of(the_loop)[arrays_of(the_loop)..].to_vec();
    let mut elements = Vec::new();
    for step in 0..count {
        let mut copies: HashMap<usize, Val<'c>> =
            carried.iter().map(|value| key(*value)).zip(state).collect();
        let number = before.integer(step as i64, element.r#type());
        copies.insert(key(*element), number);
        let yielded = copy_step(&before, operations_of(body), &mut copies);
        match is_map {
            true => {
                elements.extend(yielded);
                state = Vec::new();
            }
            false => state = yielded,
        }
    }
    if is_map {
        let ty = result_of(the_loop, 0).r#type();
        state = vec![before.value(Op::CfbArrayCreate, &elements, ty)];
    }
    for (result, value) in results_of(the_loop).into_iter().zip(state) {
        replace_uses(result, value);
    }
    erase(the_loop);
}

/// Copies the operations of one step; gives what it yields.
fn copy_step<'c>(
    before: &Builder<'c>,
    operations: Vec<OperationRef<'c, 'c>>,
    copies: &mut HashMap<usize, Val<'c>>,
) -> Vec<Val<'c>> {
    let copy_of = |copies: &HashMap<usize, Val<'c>>, value: Val<'c>| {
        copies.get(&key(value)).copied().unwrap_or(value)
    };
    for original in operations {
        if Op::CfbYield.is(original) {
            return operands_of(original)
                .into_iter()
                .map(|value| copy_of(copies, value))
                .collect();
        }
        copy_op(before, original, copies);
    }
    Vec::new()
}

/// Lets tensor operations read a parameter's row at a known index as a part of the parameter.
pub(crate) fn slice<'c>(context: &'c Context, lookup: OperationRef<'c, 'c>) {
    let operands = operands_of(lookup);
    let ([table, index], row) = (&operands[..], result_of(lookup, 0)) else {
        return;
    };
    let (Some(index), Some(ty)) = (constant(*index), TensorType::of_value(*table)) else {
        return;
    };
    let sizes: Option<Vec<u64>> = ty.shape.iter().copied().collect();
    let Some(sizes) = sizes.filter(|_| is_parameter(*table)) else {
        return;
    };
    let uses: Vec<_> = users_of(row)
        .into_iter()
        .filter(|op| computes(*op))
        .collect();
    let in_bounds = u64::try_from(index).is_ok_and(|index| index < sizes[0]);
    // The row of a vector is a scalar, which no product reads.
    if uses.is_empty() || !in_bounds || sizes.len() < 2 {
        return;
    }
    let Some(before) = Builder::before(context, lookup) else {
        return;
    };
    let row_of_table = known_row(&before, *table, index as u64, row.r#type());
    for user in uses {
        for (number, operand) in operands_of(user).into_iter().enumerate() {
            if key(operand) == key(row) {
                set_operand(user, number, row_of_table);
            }
        }
    }
}

/// Row `index` of a table of known shape and two dims or more.
pub(crate) fn known_row<'c>(
    before: &Builder<'c>,
    table: Val<'c>,
    index: u64,
    row: Type<'c>,
) -> Val<'c> {
    let Some(ty) = TensorType::of_value(table) else {
        return table;
    };
    let list = |numbers: Vec<u64>| {
        let numbers: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
        before.i64s(&numbers)
    };
    let mut offsets = vec![0; ty.rank()];
    offsets[0] = index;
    let mut one = ty.shape.clone();
    one[0] = Some(1);
    let sizes = list(one.iter().copied().flatten().collect());
    let part = TensorType {
        shape: one,
        element: ty.element,
    };
    let part = before.value_with(
        Op::TensorExtractSlice,
        &[table],
        part.to_type(),
        &[
            (keys::STATIC_OFFSETS, list(offsets)),
            (keys::STATIC_SIZES, sizes),
            (keys::STATIC_STRIDES, list(vec![1; ty.rank()])),
            (keys::OPERAND_SEGMENT_SIZES, before.i32s(&[1, 0, 0, 0])),
        ],
    );
    let merged: Vec<Vec<usize>> = std::iter::once(vec![0, 1])
        .chain((2..ty.rank()).map(|axis| vec![axis]))
        .collect();
    let groups = before.reassociation(&merged);
    before.collapse(part, groups, row)
}
