//! `resolve-dims`: level 0. Reads each length where its tensor comes into being.
//!
//! A function that was inlined reads the lengths of its arguments, whatever they were computed by. Here
//! such a `tensor.dim` becomes the length that the tensor was made with: that of what a function, a
//! loop or a match was given, which is known before any tensor is computed. So tensor code never
//! waits for a length, and equal dims have equal lengths in the IR: so have those of a function's
//! arguments that go by one name.
//!
//! ```mlir
//! %y = arith.addf %x, %b : tensor<?x8xf32>
//! %n = tensor.dim %y, %c0 : tensor<?x8xf32>
//! // becomes
//! %n = tensor.dim %x, %c0 : tensor<?x8xf32>
//! %y = arith.addf %x, %b : tensor<?x8xf32>
//! ```
//!
//! Requires: level 0. Leaves: `tensor.dim` only of arguments of functions and regions, of results of
//! control operations, and of dims that an operation joins from several (a concatenation). After
//! CoRa's dimension identity: equal lengths are one value.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Op, Val, is_arithmetic, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, ValueLike, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::dim_equality::{argument_dims, loops_of, reassociation};
use crate::support::ir::{
    TensorType, argument_of, defining_op, erase, functions_of, integer_attribute, is_tensor, key,
    nested_ops, replace_uses,
};
use crate::support::waves::{Role, role};

/// The pass `resolve-dims`.
pub const PASS: PassInfo = PassInfo {
    name: "resolve-dims",
    summary: "Read lengths of tensors where these come into being (level 0)",
    description: include_str!("resolve_dims.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        let mut roots = HashMap::new();
        // Of the arguments' dims of one name the first is read.
        let named: HashMap<_, _> = argument_dims(function)
            .into_values()
            .flat_map(|dims| {
                let first = dims[0];
                let keys = dims.into_iter().map(|(value, axis)| (key(value), axis));
                keys.map(move |dim| (dim, first)).collect::<Vec<_>>()
            })
            .collect();
        let dims: Vec<_> = nested_ops(function)
            .into_iter()
            .filter(|op| Op::TensorDim.is(*op))
            .collect();
        for dim in dims {
            let operands = operands_of(dim);
            let Some(axis) =
                defining_op(operands[1]).and_then(|op| integer_attribute(op, keys::VALUE))
            else {
                continue;
            };
            let length = match origin(operands[0], axis as usize) {
                Origin::Length(length) => length,
                Origin::Known(length) => {
                    let Some(builder) = Builder::before(context, dim) else {
                        continue;
                    };
                    builder.index(length as i64)
                }
                Origin::Root(root, axis) => {
                    let same = named.get(&(key(root), axis)).copied();
                    let (root, axis) = same.unwrap_or((root, axis));
                    let known = roots.get(&(key(root), axis)).copied();
                    let Some(length) = known.or_else(|| read_at_root(context, root, axis)) else {
                        continue;
                    };
                    roots.insert((key(root), axis), length);
                    length
                }
            };
            replace_uses(result_of(dim, 0), length);
            erase(dim);
        }
    }
    Ok(())
}

/// Where a length comes from.
enum Origin<'c> {
    Length(Val<'c>),
    Known(u64),
    /// The axis of a tensor that no tensor operation made, or that joins several dims.
    Root(Val<'c>, usize),
}

fn origin<'c>(mut value: Val<'c>, mut axis: usize) -> Origin<'c> {
    loop {
        let ty = TensorType::of_value(value);
        if let Some(Some(size)) = ty.as_ref().and_then(|ty| ty.shape.get(axis)) {
            return Origin::Known(*size);
        }
        let root = Origin::Root(value, axis);
        let Some(producer) = defining_op(value).filter(|op| role(*op) == Role::Tensor) else {
            return root;
        };
        let operands = operands_of(producer);
        // The dynamic dims that come before, each an operand.
        let before = ty.map_or(0, |ty| {
            let dims = ty.shape.iter().take(axis);
            dims.filter(|size| size.is_none()).count()
        });
        let next = match Op::of(producer) {
            Some(Op::TensorEmpty) => return Origin::Length(operands[before]),
            Some(Op::TensorExtractSlice | Op::TensorExpandShape | Op::CfbWiden) => {
                return Origin::Length(operands[1 + before]);
            }
            Some(Op::TensorCast) => Some((operands[0], axis)),
            Some(Op::TensorConcat)
                if integer_attribute(producer, keys::DIM) != Some(axis as i64) =>
            {
                Some((operands[0], axis))
            }
            Some(Op::TensorCollapseShape) => {
                let source = TensorType::of_value(operands[0]);
                let group = reassociation(producer).into_iter().nth(axis);
                let others: Vec<_> = group
                    .into_iter()
                    .flatten()
                    .filter(|axis| {
                        let size = source.as_ref().and_then(|ty| ty.shape.get(*axis));
                        size != Some(&Some(1))
                    })
                    .collect();
                match others[..] {
                    [only] => Some((operands[0], only)),
                    _ => None,
                }
            }
            _ if loops_of(producer).is_some() => {
                let results = results_of(producer);
                let number = results.iter().position(|own| key(*own) == key(value));
                let inits = &operands[operands.len() - results.len()..];
                number.map(|number| (inits[number], axis))
            }
            _ if is_arithmetic(producer) => {
                let mut operands = operands.iter();
                let like = operands.find(|operand| is_tensor(operand.r#type()));
                like.map(|operand| (*operand, axis))
            }
            _ => None,
        };
        match next {
            Some(next) => (value, axis) = next,
            None => return root,
        }
    }
}

/// The length of an axis of a tensor, for code at `b`, where the tensor is known.
pub fn length_of<'c>(b: &Builder<'c>, value: Val<'c>, axis: usize) -> Val<'c> {
    let (root, axis) = match origin(value, axis) {
        Origin::Length(length) => return length,
        Origin::Known(length) => return b.index(length as i64),
        Origin::Root(root, axis) => (root, axis),
    };
    let producer = defining_op(root);
    let joined = producer.and_then(|producer| match Op::of(producer) {
        Some(Op::TensorConcat) => {
            let parts = operands_of(producer);
            let lengths = parts.into_iter().map(|part| length_of(b, part, axis));
            lengths.reduce(|sum, length| b.addi(sum, length))
        }
        Some(Op::TensorCollapseShape) => {
            let group = reassociation(producer).into_iter().nth(axis)?;
            let source = operands_of(producer)[0];
            let lengths = group.into_iter().map(|axis| length_of(b, source, axis));
            lengths.reduce(|product, length| b.muli(product, length))
        }
        _ => None,
    });
    joined.unwrap_or_else(|| {
        let axis = b.index(axis as i64);
        b.tensor_dim(root, axis)
    })
}

/// A `tensor.dim` right where a value is defined.
fn read_at_root<'c>(context: &'c Context, root: Val<'c>, axis: usize) -> Option<Val<'c>> {
    let next = match (defining_op(root), argument_of(root)) {
        (Some(producer), _) => producer
            .next_in_block()
            .map(cohort_dialects::builder::extend_op),
        (None, Some((block, _))) => operations_of(block).first().copied(),
        (None, None) => None,
    };
    let builder = Builder::before(context, next?)?;
    let axis = builder.index(axis as i64);
    Some(builder.tensor_dim(root, axis))
}
