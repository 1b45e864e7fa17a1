//! `hoist-lookups`: what a looked-up row is multiplied with is a block of its own, which equal rows share (level 0).
//!
//! Calls that take one row of a parameter and nothing else are made once and kept. In a step of a loop, as
//! `emb[w] @ wx + h @ wh`, the product of such a row is part of a block that takes other rows as well, so it is
//! computed in each step anew. It is marked `cfb.hoisted`, and `form-blocks` makes a block of it alone.
//! `hoist-operators` does so where steps can be batched before their loop; this is for loops that tensors decide, and
//! for elements of a list that are looked up in some instances and computed in others.
//!
//! ```mlir
//! %x = cfb.lookup %emb[%w] : tensor<9x256xf32> -> tensor<256xf32>
//! %p = linalg.vecmat ins(%x, %wx : …) outs(%zero : …) -> tensor<256xf32>
//! %q = linalg.vecmat ins(%h, %wh : …) outs(%zero : …) -> tensor<256xf32>
//! %s = arith.addf %p, %q : tensor<256xf32>
//! // becomes
//! %p = linalg.vecmat {cfb.hoisted} ins(%x, %wx : …) outs(%zero : …) -> tensor<256xf32>
//! ```
//!
//! Done where it pays: a product with parameters of 32,768 multiplications or more, since with fewer the launch costs
//! what it saves. Left with its users is a product of which all of them, up to the end of the basic block, take that row
//! alone: they are one block with it, which equal rows share as it is.
//!
//! Part of the pipeline where no code for a GPU is wanted: there a launch that others wait for costs more than rows
//! do. Where gradients are wanted, equal calls are not shared, and nothing is marked.
//!
//! Requires: level 0 after `hoist-operators`. Leaves: level 0.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Op, Val, arguments_of, operands_of, operations_of, result_of, results_of,
};
use melior::{
    Context,
    ir::{Attribute, BlockRef, OperationRef, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ends::ends_below;
use crate::support::ir::{
    TensorType, blocks_of, callee_of, defining_op, functions_of, key, nested_ops, set_attribute,
    symbol_of,
};
use crate::support::known::{is_known, is_made_of_a_row, is_row};
use crate::support::products::{multiplies, size};
use crate::support::waves::{Role, role};
use cohort_dialects::marks::{GRADIENTS, GRANULARITY, HOISTED};

/// The pass `hoist-lookups`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-lookups",
    summary: "Mark products of looked-up rows to be blocks of their own, which equal rows share (level 0)",
    description: include_str!("hoist_lookups.rs"),
    run,
};

/// Multiplications from which on a product is worth a launch.
const FEWEST: u64 = 1 << 15;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Elsewhere equal calls are not shared, or products are calls of their own as it is.
    if module.has_attribute(&GRADIENTS) || module.has_attribute(&GRANULARITY) {
        return Ok(());
    }
    let functions: HashMap<String, OperationRef<'c, 'c>> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    for function in functions.values() {
        let operations = std::iter::once(*function).chain(nested_ops(*function));
        for operation in operations {
            let elements = rows_among_elements(operation, &functions);
            for block in blocks_of(operation) {
                mark_in(context, block, &elements);
            }
        }
    }
    Ok(())
}

/// Marks the products of a basic block.
fn mark_in<'c>(context: &'c Context, block: BlockRef<'c, 'c>, elements: &HashSet<usize>) {
    let operations = operations_of(block);
    let products = operations.iter().copied().filter(|operation| {
        multiplies(*operation)
            && !operation.has_attribute(&HOISTED)
            && size(*operation) >= FEWEST
            && is_static(*operation)
    });
    for product in products {
        let of = operands_of(product);
        let takes_a_row = is_made_of_a_row(of.clone()) && mixes(&operations, product);
        let takes_an_element =
            elements.contains(&key(of[0])) && of[1..].iter().all(|operand| is_known(*operand));
        if takes_a_row || takes_an_element {
            set_attribute(product, HOISTED, Attribute::unit(context));
        }
    }
}

/// Calls of differing length are not shared.
fn is_static(product: OperationRef<'_, '_>) -> bool {
    let mut values = operands_of(product)
        .into_iter()
        .chain([result_of(product, 0)]);
    values.all(|value| {
        TensorType::of_value(value).is_some_and(|ty| ty.shape.iter().all(Option::is_some))
    })
}

/// Whether some operation behind a product of a row takes what is made of it, and another row as well.
fn mixes<'c>(operations: &[OperationRef<'c, 'c>], product: OperationRef<'c, 'c>) -> bool {
    let mut made = HashSet::from([key(result_of(product, 0))]);
    operations.iter().any(|operation| {
        let used = operands_of(*operation);
        let uses = used.iter().any(|value| made.contains(&key(*value)));
        if !uses || role(*operation) != Role::Tensor {
            return false;
        }
        made.extend(results_of(*operation).into_iter().map(key));
        !is_made_of_a_row(used)
    })
}

/// Those arguments of a fold's body that are elements which some calls give as they were looked up.
fn rows_among_elements<'c>(
    fold: OperationRef<'c, 'c>,
    functions: &HashMap<String, OperationRef<'c, 'c>>,
) -> HashSet<usize> {
    let found = || {
        let list = operands_of(fold).into_iter().next()?;
        let map = defining_op(list).filter(|op| Op::CfbMap.is(*op))?;
        let elements = operands_of(end_of(map)?);
        let arguments = arguments_of(*blocks_of(fold).first()?);
        // Behind what is carried.
        let carried = arguments.len().checked_sub(elements.len())?;
        let pairs = arguments[carried..].iter().zip(elements);
        let rows = pairs.filter(|(_, element)| may_be_row(*element, functions));
        Some(rows.map(|(argument, _)| key(*argument)).collect())
    };
    Op::CfbFold
        .is(fold)
        .then(found)
        .flatten()
        .unwrap_or_default()
}

/// Whether a value is what a call gives, and some end of the function has looked that up.
fn may_be_row<'c>(value: Val<'c>, functions: &HashMap<String, OperationRef<'c, 'c>>) -> bool {
    let row = || {
        let call = defining_op(value).filter(|op| Op::FuncCall.is(*op))?;
        let mut results = results_of(call).into_iter();
        let number = results.position(|result| key(result) == key(value))?;
        let end = end_of(*functions.get(&callee_of(call)?)?)?;
        let mut ends = ends_below(end).into_iter();
        Some(ends.any(|end| {
            operands_of(end)
                .get(number)
                .is_some_and(|value| is_row(*value))
        }))
    };
    row().unwrap_or(false)
}

fn end_of<'c>(operation: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    operations_of(*blocks_of(operation).first()?)
        .last()
        .copied()
}
