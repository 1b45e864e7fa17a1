//! The block's own code once more, in its gradient function, as far as that needs it.

use std::collections::HashSet;

use cohort_dialects::builder::{Builder, Op, Val, operands_of, result_of, results_of};
use melior::ir::operation::OperationLike;

use super::rules::{Backward, NoRule, is_f32};
use super::signature::{KnownLength, Signature};
use super::sites::View;
use super::source::Source;
use crate::support::copies::replace_operands;
use crate::support::ir::{TensorType, clone_op, defining_op, global_of, key, op_key};
use crate::support::waves::used_values;

/// What the function knows before it goes back: each value of the block, from the arguments `taken` or computed again by
/// copies of its operations. Gives the copies, too.
pub fn recompute<'c>(
    source: &Source<'c>,
    signature: &Signature<'c>,
    taken: &[Val<'c>],
    b: Builder<'c>,
) -> Result<(Backward<'c>, HashSet<usize>), NoRule> {
    let mut backward = Backward::new(b, source.dim_equality());
    for (length, operand) in signature.lengths.iter().zip(&source.operands) {
        let length = match *length {
            KnownLength::Argument(argument) => b.index_cast(taken[argument], b.index_type()),
            KnownLength::Axis { argument, axis } => {
                let axis = b.index(axis as i64);
                b.tensor_dim(taken[argument], axis)
            }
        };
        backward.forward.insert(key(*operand), length);
    }
    for (index, operand) in source.operands.iter().enumerate() {
        if source.shared[index] {
            load_parameter(source, index, &mut backward)?;
        } else if let Some(own) = signature.operands.get(&index) {
            backward.forward.insert(key(*operand), taken[own.argument]);
        }
    }
    let copies = copy_operations(source, signature, taken, &mut backward);
    for operand in &source.operands[..source.lengths()] {
        let dim = backward.equality.dim_of_length(*operand);
        let length = backward.value(*operand);
        backward.lengths.insert(dim, length);
    }
    Ok((backward, copies))
}

/// Loads a parameter that the block was given.
fn load_parameter<'c>(
    source: &Source<'c>,
    index: usize,
    backward: &mut Backward<'c>,
) -> Result<(), NoRule> {
    let operand = source.operands[index];
    let load = defining_op(operands_of(source.block)[index]);
    let Some(load) = load.filter(|op| Op::MlProgramGlobalLoadConst.is(*op)) else {
        return Err(NoRule("a shared operand".to_owned()));
    };
    let copy = backward.b.insert(clone_op(load));
    backward.forward.insert(key(operand), result_of(copy, 0));
    let parameter = global_of(load).unwrap_or_default();
    let view = TensorType::of_value(operand)
        .and_then(|ty| View::whole(parameter, &ty))
        .filter(|_| is_f32(operand));
    if let Some(view) = view {
        backward.views.insert(key(operand), view);
    }
    Ok(())
}

/// Copies all operations of the block; those whose results the function takes are copied for nothing, and nobody reads
/// them.
fn copy_operations<'c>(
    source: &Source<'c>,
    signature: &Signature<'c>,
    taken: &[Val<'c>],
    backward: &mut Backward<'c>,
) -> HashSet<usize> {
    let mut copies = HashSet::new();
    for operation in &source.operations {
        let at = backward.b.at(operation.location());
        let copy = at.insert(clone_op(*operation));
        copies.insert(op_key(copy));
        replace_operands(copy, &backward.forward);
        for (old, new) in results_of(*operation).into_iter().zip(results_of(copy)) {
            let given = source.yielded.iter().position(|own| key(*own) == key(old));
            let new = given.map_or(new, |given| taken[signature.results[given]]);
            backward.forward.insert(key(old), new);
            let view = used_values(*operation)
                .first()
                .and_then(|from| backward.views.get(&key(*from)))
                .and_then(|view| view.through(*operation, old));
            if let Some(view) = view {
                backward.views.insert(key(old), view);
            }
        }
    }
    copies
}
