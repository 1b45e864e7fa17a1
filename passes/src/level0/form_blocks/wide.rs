//! Makes concatenations of many tensors concatenations of a few, of such as join a few each.
//!
//! A kernel takes each of its operands as arguments, of which a GPU gives it 4 KiB. Blocks are cut so that
//! they have not more ([`cut`](super::cut)), but one operation cannot be cut.

use cohort_dialects::builder::{Builder, Op, Val, operands_of, result_of};
use cohort_dialects::keys;
use melior::{Context, ir::OperationRef};

use crate::support::ir::{TensorType, erase, integer_attribute, nested_ops, replace_uses};

/// Tensors that are joined at once.
const FEW: usize = 64;

/// Splits the concatenations of a function that join too many tensors, where it is known how long each is.
pub fn split<'c>(context: &'c Context, function: OperationRef<'c, 'c>) {
    for operation in nested_ops(function) {
        let parts = operands_of(operation);
        if !Op::TensorConcat.is(operation) || parts.len() <= FEW {
            continue;
        }
        let (Some(b), Some(axis)) = (
            Builder::before(context, operation),
            integer_attribute(operation, keys::DIM),
        ) else {
            continue;
        };
        let types = parts.iter().filter_map(|part| TensorType::of_value(*part));
        let mut parts: Vec<Part<'c>> = parts.iter().copied().zip(types).collect();
        let axis = axis as usize;
        if parts.iter().any(|(_, ty)| ty.shape[axis].is_none()) {
            continue;
        }
        while parts.len() > 1 {
            let joined = parts.chunks(FEW).map(|some| join(&b, some, axis));
            parts = joined.collect();
        }
        if let Some((joined, _)) = parts.pop() {
            replace_uses(result_of(operation, 0), joined);
            erase(operation);
        }
    }
}

type Part<'c> = (Val<'c>, TensorType<'c>);

/// A few tensors joined along an axis.
fn join<'c>(b: &Builder<'c>, parts: &[Part<'c>], axis: usize) -> Part<'c> {
    let (values, types): (Vec<_>, Vec<_>) = parts.iter().cloned().unzip();
    let mut ty = types[0].clone();
    ty.shape[axis] = types.iter().map(|ty| ty.shape[axis]).sum();
    let joined = b.concat(axis, &values, ty.to_type());
    (joined, ty)
}
