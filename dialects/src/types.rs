//! The types of the `cfb` dialect: building them and taking them apart.

use crate::ffi;
use melior::{
    Context,
    ir::{Type, TypeLike},
};
use mlir_sys::MlirType;
use std::ffi::c_void;

/// `!cfb.adt<@name>`
pub fn adt<'c>(context: &'c Context, name: &str) -> Type<'c> {
    // SAFETY: the context is alive, and MLIR copies the name.
    unsafe { Type::from_raw(ffi::cohortAdtTypeGet(context.to_raw(), ffi::view(name))) }
}

/// `!cfb.array<element>`
pub fn array(element: Type<'_>) -> Type<'_> {
    // SAFETY: the type is alive, and the result lives in the same context.
    unsafe { Type::from_raw(ffi::cohortArrayTypeGet(element.to_raw())) }
}

/// `!cfb.lazy<tensor>`; `None` when the type is not a ranked tensor.
pub fn lazy(tensor: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive, and the result lives in the same context.
    unsafe { Type::from_option_raw(ffi::cohortLazyTypeGet(tensor.to_raw())) }
}

/// `!cfb.rows<tensor>`; `None` when the type is not a ranked tensor of static shape.
pub fn rows(tensor: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive, and the result lives in the same context.
    unsafe { Type::from_option_raw(ffi::cohortRowsTypeGet(tensor.to_raw())) }
}

/// The name in `!cfb.adt<@name>`.
pub fn adt_name(ty: Type<'_>) -> Option<String> {
    // SAFETY: the type is alive; its kind is checked before its symbol is asked for.
    unsafe {
        ffi::cohortTypeIsAdt(ty.to_raw())
            .then(|| ffi::string_from(ffi::cohortAdtTypeGetSymbol(ty.to_raw())))
    }
}

/// `!cfb.str`
pub fn text(context: &Context) -> Type<'_> {
    // SAFETY: the context is alive.
    unsafe { Type::from_raw(ffi::cohortStrTypeGet(context.to_raw())) }
}

/// Whether the type is `!cfb.str`.
pub fn is_str(ty: Type<'_>) -> bool {
    // SAFETY: the type is alive.
    unsafe { ffi::cohortTypeIsStr(ty.to_raw()) }
}

/// The element type of an `!cfb.array`.
pub fn array_element(ty: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive; its kind is checked before its element is asked for.
    unsafe {
        ffi::cohortTypeIsArray(ty.to_raw())
            .then(|| Type::from_raw(ffi::cohortArrayTypeGetElement(ty.to_raw())))
    }
}

/// The tensor type of an `!cfb.lazy`.
pub fn lazy_tensor(ty: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive; its kind is checked before its tensor is asked for.
    unsafe {
        ffi::cohortTypeIsLazy(ty.to_raw())
            .then(|| Type::from_raw(ffi::cohortLazyTypeGetTensor(ty.to_raw())))
    }
}

/// The tensor type of an `!cfb.rows`.
pub fn rows_tensor(ty: Type<'_>) -> Option<Type<'_>> {
    // SAFETY: the type is alive; its kind is checked before its tensor is asked for.
    unsafe {
        ffi::cohortTypeIsRows(ty.to_raw())
            .then(|| Type::from_raw(ffi::cohortRowsTypeGetTensor(ty.to_raw())))
    }
}

/// Whether a type is one of this dialect.
pub fn is_cfb(ty: Type<'_>) -> bool {
    let known = array_element(ty)
        .or_else(|| lazy_tensor(ty))
        .or_else(|| rows_tensor(ty));
    known.is_some() || is_str(ty) || adt_name(ty).is_some()
}

/// Whether a type is a pointer of LLVM, of any address space.
pub fn is_pointer(ty: Type<'_>) -> bool {
    // SAFETY: the type is alive.
    unsafe { mlir_sys::mlirTypeIsALLVMPointerType(ty.to_raw()) }
}

/// The types that remain when every `tuple` is taken apart.
pub fn flatten(ty: Type<'_>) -> Vec<Type<'_>> {
    unsafe extern "C" fn push(ty: MlirType, data: *mut c_void) {
        // SAFETY: `data` is the vector passed below, which nothing else uses during the call.
        let types = unsafe { &mut *data.cast::<Vec<MlirType>>() };
        types.push(ty);
    }
    let mut types = Vec::<MlirType>::new();
    // SAFETY: the type is alive, and `push` gets the vector it expects.
    unsafe { ffi::cohortTypeFlatten(ty.to_raw(), push, (&raw mut types).cast()) };
    // SAFETY: the parts of a type live in its context.
    types
        .into_iter()
        .map(|raw| unsafe { Type::from_raw(raw) })
        .collect()
}
