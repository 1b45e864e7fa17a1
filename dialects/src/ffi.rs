//! Every foreign function of this crate; the definitions are in `lib/Glue.cpp`, for attributes in
//! `lib/Attributes.cpp` and for shapes in `lib/RaggedDialect.cpp`.

use mlir_sys::{
    MlirAttribute, MlirContext, MlirDialectHandle, MlirLocation, MlirOperation, MlirStringCallback,
    MlirStringRef, MlirType, MlirValue,
};
use std::ffi::{c_int, c_uint, c_void};

/// What [`cohortRaggedShapeGet`] takes of a dim.
#[repr(C)]
pub(crate) struct RaggedDim {
    pub is_named: bool,
    pub name: MlirStringRef,
    /// `max` (0 for none), `pad` and `bulk`.
    pub sizes: [i64; 3],
    pub outer_count: isize,
    pub outer: *const MlirStringRef,
}

unsafe extern "C" {
    pub(crate) fn cohortConfigureLlvm();
    pub(crate) fn mlirGetDialectHandle__cfb__() -> MlirDialectHandle;
    pub(crate) fn mlirGetDialectHandle__ragged__() -> MlirDialectHandle;

    pub(crate) fn cohortRaggedShapeGet(
        context: MlirContext,
        count: isize,
        dims: *const RaggedDim,
    ) -> MlirAttribute;
    pub(crate) fn cohortTypeGetRaggedShape(ty: MlirType) -> MlirAttribute;
    pub(crate) fn cohortAttributeIsRaggedShape(attribute: MlirAttribute) -> bool;
    pub(crate) fn cohortRaggedShapeGetRank(shape: MlirAttribute) -> isize;
    pub(crate) fn cohortRaggedShapeGetName(shape: MlirAttribute, index: isize) -> MlirStringRef;
    pub(crate) fn cohortRaggedShapeGetSizes(shape: MlirAttribute, index: isize, sizes: *mut i64);
    pub(crate) fn cohortRaggedShapeGetOuterCount(shape: MlirAttribute, index: isize) -> isize;
    pub(crate) fn cohortRaggedShapeGetOuter(
        shape: MlirAttribute,
        index: isize,
        outer: isize,
    ) -> MlirStringRef;

    pub(crate) fn cohortEnumAttrGet(
        context: MlirContext,
        which: c_uint,
        value: c_uint,
    ) -> MlirAttribute;
    pub(crate) fn cohortEnumAttrGetValue(attribute: MlirAttribute, which: c_uint) -> i64;
    pub(crate) fn cohortPartAttrGet(
        context: MlirContext,
        kind: c_uint,
        number: i64,
    ) -> MlirAttribute;
    pub(crate) fn cohortPartAttrGetKind(attribute: MlirAttribute, number: *mut i64) -> i64;
    pub(crate) fn cohortGpuDimensionAttrGet(
        context: MlirContext,
        dimension: c_uint,
    ) -> MlirAttribute;
    pub(crate) fn cohortGpuDimensionAttrGetValue(attribute: MlirAttribute) -> i64;
    pub(crate) fn cohortShuffleXorAttrGet(context: MlirContext) -> MlirAttribute;
    pub(crate) fn cohortIteratorTypeAttrGet(context: MlirContext, folds: bool) -> MlirAttribute;
    pub(crate) fn cohortExternAttrGet(ty: MlirType) -> MlirAttribute;
    pub(crate) fn cohortAttributeIsExtern(attribute: MlirAttribute) -> bool;
    pub(crate) fn cohortRolledLoopAttrGet(context: MlirContext) -> MlirAttribute;
    pub(crate) fn cohortMmaShapeAttrGet(
        context: MlirContext,
        m: c_int,
        n: c_int,
        k: c_int,
    ) -> MlirAttribute;
    pub(crate) fn cohortMmaTypeAttrGet(context: MlirContext, is_bf16: bool) -> MlirAttribute;
    pub(crate) fn cohortMmaLayoutAttrGet(
        context: MlirContext,
        is_column_major: bool,
    ) -> MlirAttribute;
    pub(crate) fn cohortWarpgroupTypeAttrGet(context: MlirContext, is_bf16: bool) -> MlirAttribute;
    pub(crate) fn cohortWarpgroupScaleAttrGet(
        context: MlirContext,
        is_of_sums: bool,
    ) -> MlirAttribute;
    pub(crate) fn cohortAsyncSharedProxyAttrGet(context: MlirContext) -> MlirAttribute;
    pub(crate) fn cohortSharedSpaceAttrGet(context: MlirContext) -> MlirAttribute;
    pub(crate) fn cohortLoadCacheAttrGet(context: MlirContext, is_global: bool) -> MlirAttribute;
    pub(crate) fn cohortRoundingModeAttrGet(context: MlirContext, is_away: bool) -> MlirAttribute;
    pub(crate) fn cohortNoSaturationAttrGet(context: MlirContext) -> MlirAttribute;

    pub(crate) fn cohortTypeIsAdt(ty: MlirType) -> bool;
    pub(crate) fn cohortTypeIsArray(ty: MlirType) -> bool;
    pub(crate) fn cohortTypeIsRows(ty: MlirType) -> bool;
    pub(crate) fn cohortTypeIsLazy(ty: MlirType) -> bool;
    pub(crate) fn cohortStrTypeGet(context: MlirContext) -> MlirType;
    pub(crate) fn cohortTypeIsStr(ty: MlirType) -> bool;
    pub(crate) fn cohortAdtTypeGet(context: MlirContext, symbol: MlirStringRef) -> MlirType;
    pub(crate) fn cohortAdtTypeGetSymbol(ty: MlirType) -> MlirStringRef;
    pub(crate) fn cohortArrayTypeGet(element: MlirType) -> MlirType;
    pub(crate) fn cohortArrayTypeGetElement(ty: MlirType) -> MlirType;
    pub(crate) fn cohortRowsTypeGet(tensor: MlirType) -> MlirType;
    pub(crate) fn cohortRowsTypeGetTensor(ty: MlirType) -> MlirType;
    pub(crate) fn cohortLazyTypeGet(tensor: MlirType) -> MlirType;
    pub(crate) fn cohortLazyTypeGetTensor(ty: MlirType) -> MlirType;
    pub(crate) fn cohortTypeFlatten(
        ty: MlirType,
        callback: unsafe extern "C" fn(MlirType, *mut c_void),
        data: *mut c_void,
    );

    pub(crate) fn cohortForEachMemory(
        operation: MlirOperation,
        callback: unsafe extern "C" fn(MlirValue, bool, *mut c_void),
        data: *mut c_void,
    );

    pub(crate) fn cohortEmitDiagnostic(
        location: MlirLocation,
        severity: c_int,
        message: MlirStringRef,
        note_count: isize,
        note_locations: *const MlirLocation,
        note_messages: *const MlirStringRef,
    );

    pub(crate) fn cohortLocationGetFileLineColumn(
        location: MlirLocation,
        file: *mut MlirStringRef,
        line: *mut c_uint,
        column: *mut c_uint,
    ) -> bool;

    pub(crate) fn cohortOperationDeclares(
        context: MlirContext,
        operation: MlirStringRef,
        attribute: MlirStringRef,
    ) -> bool;

    pub(crate) fn cohortOperationHash(operation: MlirOperation) -> usize;
    pub(crate) fn cohortOperationsAreEqual(left: MlirOperation, right: MlirOperation) -> bool;

    pub(crate) fn cohortExpandMath(
        operation: MlirOperation,
        count: isize,
        names: *const MlirStringRef,
    ) -> bool;

    pub(crate) fn cohortTranslateToLlvmIr(
        module: MlirOperation,
        callback: MlirStringCallback,
        data: *mut c_void,
    ) -> bool;
}

/// The text of a string that MLIR owns; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `text` must point at memory that is valid during the call.
pub(crate) unsafe fn string_from(text: MlirStringRef) -> String {
    if text.length == 0 {
        return String::new();
    }
    // SAFETY: the caller vouches for the memory.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A view of a Rust string, valid as long as the string is.
pub(crate) fn view(text: &str) -> MlirStringRef {
    MlirStringRef {
        data: text.as_ptr().cast(),
        length: text.len(),
    }
}
