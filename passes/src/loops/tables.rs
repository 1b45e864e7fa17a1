//! Tables over several dims as lists of their entries, in order of storage, and back.

use cohort_dialects::builder::{Op, Val, extend_op, operands_of, results_of};
use cohort_dialects::shape::Shape;
use melior::ir::{BlockLike, OperationRef, Type, ValueLike};

use super::index::Indices;
use super::nest::Loop;
use crate::support::ir::{TensorType, argument_of, defining_op};

/// The type of a table's list.
pub fn flat_type(ty: Type<'_>) -> Type<'_> {
    let Some(table) = TensorType::of(ty) else {
        return ty;
    };
    let entries = table.shape.iter().copied();
    let entries = entries.reduce(|a, b| a.zip(b).and_then(|(a, b)| a.checked_mul(b)));
    let list = TensorType {
        shape: vec![entries.unwrap_or(Some(1))],
        element: table.element,
    };
    list.to_type()
}

fn is_encoded(ty: Type<'_>) -> bool {
    Shape::of_type(ty).is_some()
}

/// The entries of a table in order of storage.
pub fn flatten<'c>(e: &Indices<'c>, table: Val<'c>) -> Val<'c> {
    let ty = table.r#type();
    let Some(tensor) = TensorType::of(ty) else {
        return table;
    };
    let flat = flat_type(ty);
    if flat == ty {
        return table;
    }
    let is_ragged = Shape::of_type(ty).and_then(|shape| last_ragged(&shape));
    let (dense, tensor) = match is_ragged {
        Some(last) => {
            let mut shape = vec![None];
            shape.extend(&tensor.shape[last + 1..]);
            let storage = TensorType { shape, ..tensor };
            let ty = storage.to_type();
            (e.b.value(Op::RaggedToStorage, &[table], ty), storage)
        }
        None if is_encoded(ty) => (e.b.tensor_cast(table, tensor.to_type()), tensor),
        None => (table, tensor),
    };
    match tensor.rank() {
        0 => {
            let entry = e.extract(dense, &[]);
            e.b.from_elements(&[entry], flat)
        }
        1 => dense,
        rank => {
            let groups = e.b.reassociation(&[(0..rank).collect()]);
            e.b.collapse(dense, groups, flat)
        }
    }
}

fn last_ragged(shape: &Shape) -> Option<usize> {
    shape.dims.iter().rposition(|dim| dim.is_ragged())
}

/// A list of entries as a table of a type, which has the rows of `like`. `None` where these are not
/// known.
pub fn unflatten<'c>(
    e: &Indices<'c>,
    list: Val<'c>,
    ty: Type<'c>,
    like: Val<'c>,
) -> Option<Val<'c>> {
    let (Some(tensor), false) = (TensorType::of(ty), list.r#type() == ty) else {
        return Some(list);
    };
    let is_ragged = Shape::of_type(ty).is_some_and(|shape| last_ragged(&shape).is_some());
    if is_ragged {
        let given = operands_of(root(like)?);
        let (storage, tables) = given.split_first()?;
        let entries = expand(e, list, &TensorType::of_value(*storage)?, *storage);
        return Some(e.b.value(Op::RaggedFromStorage, &[&[entries], tables].concat(), ty));
    }
    let dense = expand(e, list, &tensor, like);
    Some(match dense.r#type() == ty {
        true => dense,
        false => e.b.tensor_cast(dense, ty),
    })
}

/// A list as a dense tensor, whose dynamic dims are those of `like`.
fn expand<'c>(e: &Indices<'c>, list: Val<'c>, to: &TensorType<'c>, like: Val<'c>) -> Val<'c> {
    match to.rank() {
        0 => {
            let entry = e.extract(list, &[e.constant(0)]);
            e.b.from_elements(&[entry], to.to_type())
        }
        1 => list,
        rank => {
            let dynamic = (0..rank).filter(|axis| to.shape[*axis].is_none());
            let sizes = dynamic.map(|axis| e.size_of(like, axis));
            let operands: Vec<_> = std::iter::once(list).chain(sizes).collect();
            let sizes = to.shape.iter().map(|size| match size {
                Some(size) => *size as i64,
                // MLIR's mark of a dynamic dim.
                None => i64::MIN,
            });
            let sizes: Vec<_> = sizes.collect();
            let attributes = [
                ("reassociation", e.b.reassociation(&[(0..rank).collect()])),
                ("static_output_shape", e.b.i64s(&sizes)),
            ];
            e.b.value_with(Op::TensorExpandShape, &operands, to.to_type(), &attributes)
        }
    }
}

/// The `ragged.from_storage` that says where the rows of a ragged tensor lie.
fn root(value: Val<'_>) -> Option<OperationRef<'_, '_>> {
    let mut value = value;
    loop {
        let (carrier, at) = match (defining_op(value), argument_of(value)) {
            (Some(op), _) => match Op::of(op) {
                Some(Op::RaggedFromStorage) => return Some(op),
                Some(Op::TensorInsert) => {
                    value = *operands_of(op).get(1)?;
                    continue;
                }
                Some(Op::RaggedPack) => {
                    value = *operands_of(op).last()?;
                    continue;
                }
                _ => (
                    op,
                    results_of(op).iter().position(|result| *result == value)?,
                ),
            },
            (None, Some((block, at))) => (block.parent_operation()?, at.checked_sub(1)?),
            (None, None) => return None,
        };
        let inits = match Op::of(carrier) {
            Some(Op::ScfFor) => operands_of(carrier).split_off(3),
            _ => Loop::of(extend_op(carrier))?.inits,
        };
        value = *inits.get(at)?;
    }
}
