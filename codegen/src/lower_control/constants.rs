//! Constant tensors as sources.

use cohort_abi::manifest::{Elem, Source};
use cohort_passes::support::ir::{TensorType, elem_of};
use melior::ir::{Attribute, Type, attribute::AttributeLike};
use mlir_sys::MlirAttribute;

use super::manifest::ManifestBuilder;

/// The source of a `dense<…>` attribute's row.
pub fn read(manifest: &mut ManifestBuilder, value: Attribute<'_>) -> Result<Source, String> {
    let raw = value.to_raw();
    // SAFETY: the attribute is alive; it is asked for its kind before it is read.
    unsafe {
        if !mlir_sys::mlirAttributeIsADenseElements(raw) {
            return Err(format!(
                "not supported yet: a constant tensor written as {value}"
            ));
        }
        let ty = Type::from_raw(mlir_sys::mlirAttributeGetType(raw));
        let described = TensorType::of(ty).and_then(|tensor| {
            let shape: Option<Vec<u64>> = tensor.shape.into_iter().collect();
            Some((elem_of(tensor.element)?, shape?))
        });
        let Some((elem, shape)) = described else {
            return Err(format!("not supported yet: a constant tensor of type {ty}"));
        };
        let pool = manifest.pool(elem, &shape);
        if mlir_sys::mlirDenseElementsAttrIsSplat(raw) {
            return Ok(Source::Splat {
                bits: splat_bits(raw, elem),
                pool,
            });
        }
        let count = mlir_sys::mlirElementsAttrGetNumElements(raw);
        let bits = (0..count as isize)
            .map(|index| element_bits(raw, elem, index))
            .collect();
        Ok(Source::Dense { bits, pool })
    }
}

/// # Safety
///
/// `raw` is a splat of `elem`.
unsafe fn splat_bits(raw: MlirAttribute, elem: Elem) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        match elem {
            Elem::F32 => mlir_sys::mlirDenseElementsAttrGetFloatSplatValue(raw).to_bits(),
            Elem::I32 => mlir_sys::mlirDenseElementsAttrGetInt32SplatValue(raw).cast_unsigned(),
            Elem::Bool => u32::from(mlir_sys::mlirDenseElementsAttrGetBoolSplatValue(raw) != 0),
        }
    }
}

/// # Safety
///
/// `raw` is a dense attribute of `elem` with more than `index` elements.
unsafe fn element_bits(raw: MlirAttribute, elem: Elem, index: isize) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        match elem {
            Elem::F32 => mlir_sys::mlirDenseElementsAttrGetFloatValue(raw, index).to_bits(),
            Elem::I32 => mlir_sys::mlirDenseElementsAttrGetInt32Value(raw, index).cast_unsigned(),
            Elem::Bool => u32::from(mlir_sys::mlirDenseElementsAttrGetBoolValue(raw, index)),
        }
    }
}
