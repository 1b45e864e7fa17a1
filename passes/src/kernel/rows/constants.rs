//! Reads constants as bits.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::result_of;
use cohort_dialects::keys;
use melior::ir::{
    Attribute, OperationRef, ValueLike,
    attribute::{AttributeLike, DenseElementsAttribute, IntegerAttribute},
    operation::OperationLike,
    r#type::TypeLike,
};

use super::graph::Kind;
use super::read::{Reader, scalar_type};
use crate::pass::{Outcome, error};
use crate::support::ir::{TensorType, elem_of, is_tensor, key};

impl<'c> Reader<'c> {
    /// A constant tensor or scalar; one of type `index` is only remembered.
    pub fn constant(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let value = op
            .attribute(&keys::VALUE)
            .map_err(|_| error(op, "expected a value"))?;
        let ty = result_of(op, 0).r#type();
        if ty.is_index() || elem_of(scalar_type(ty).element).is_none() && !is_tensor(ty) {
            if let Ok(integer) = IntegerAttribute::try_from(value) {
                self.indices.insert(key(result_of(op, 0)), integer.value());
            }
            return Ok(());
        }
        let refuse = || error(op, "not supported yet: a constant of this form");
        if let Ok(dense) = DenseElementsAttribute::try_from(value) {
            let ty = TensorType::of(ty).ok_or_else(refuse)?;
            let elem = elem_of(ty.element).ok_or_else(refuse)?;
            let bits = dense_bits(&dense, elem);
            let first = bits.first().copied().unwrap_or(0);
            let kind = if bits.iter().all(|b| *b == first) {
                Kind::Splat(first)
            } else {
                Kind::Dense
            };
            return self.result(kind, 1, op);
        }
        let bits = scalar_bits(value).ok_or_else(refuse)?;
        self.result(Kind::Splat(bits), 1, op)
    }
}

/// The bits of a constant, and whether they are one element that is repeated; `None` for elements
/// of other types.
pub fn bits_of(value: Attribute<'_>) -> Option<(Vec<u32>, bool)> {
    let Ok(dense) = DenseElementsAttribute::try_from(value) else {
        return scalar_bits(value).map(|bits| (vec![bits], true));
    };
    let elem = elem_of(TensorType::of(dense.r#type())?.element)?;
    let bits = dense_bits(&dense, elem);
    let first = *bits.first()?;
    Some(match bits.iter().all(|bits| *bits == first) {
        true => (vec![first], true),
        false => (bits, false),
    })
}

/// Of all elements, or of one that stands for all.
fn dense_bits(dense: &DenseElementsAttribute<'_>, elem: Elem) -> Vec<u32> {
    let raw = dense.to_raw();
    // SAFETY: the attribute is alive, its element type is known, and positions are in range.
    unsafe {
        let count = match mlir_sys::mlirDenseElementsAttrIsSplat(raw) {
            true => 1,
            false => mlir_sys::mlirElementsAttrGetNumElements(raw),
        };
        (0..count as isize)
            .map(|index| match elem {
                Elem::F32 => mlir_sys::mlirDenseElementsAttrGetFloatValue(raw, index).to_bits(),
                Elem::I32 => mlir_sys::mlirDenseElementsAttrGetInt32Value(raw, index) as u32,
                Elem::Bool => u32::from(mlir_sys::mlirDenseElementsAttrGetBoolValue(raw, index)),
            })
            .collect()
    }
}

fn scalar_bits(value: Attribute<'_>) -> Option<u32> {
    if let Ok(integer) = IntegerAttribute::try_from(value) {
        let value = integer.value();
        let is_bool = elem_of(integer.r#type()) == Some(Elem::Bool);
        return Some(if is_bool {
            u32::from(value != 0)
        } else {
            value as u32
        });
    }
    // SAFETY: the attribute is alive and its kind is asked first.
    unsafe {
        mlir_sys::mlirAttributeIsAFloat(value.to_raw())
            .then(|| (mlir_sys::mlirFloatAttrGetValueDouble(value.to_raw()) as f32).to_bits())
    }
}
