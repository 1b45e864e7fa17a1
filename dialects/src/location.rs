//! Reading locations.

use crate::ffi;
use melior::ir::Location;
use mlir_sys::MlirStringRef;

/// The file, line and column a location stands for, looking through names, fusions and call sites;
/// of a call site the callee, of fused locations the first that has one.
pub fn file_line_col(location: Location<'_>) -> Option<(String, u32, u32)> {
    let mut file = MlirStringRef {
        data: std::ptr::null(),
        length: 0,
    };
    let (mut line, mut column) = (0, 0);
    // SAFETY: the location is alive and the outputs are valid for writing; when the call says that
    // it found a place, the file name is owned by the context.
    unsafe {
        ffi::cohortLocationGetFileLineColumn(location.to_raw(), &mut file, &mut line, &mut column)
            .then(|| (ffi::string_from(file), line, column))
    }
}

/// Where the code of a location was called from, if that is in another file: the nearest such call among
/// those that were inlined.
pub fn caller_elsewhere(location: Location<'_>) -> Option<(String, u32, u32)> {
    let (file, ..) = file_line_col(location)?;
    nearest_caller(location, &file)
}

fn nearest_caller(location: Location<'_>, file: &str) -> Option<(String, u32, u32)> {
    // SAFETY: the location is alive, and so are its parts, which the context owns; they are only asked for
    // where it is a call site.
    let (callee, caller) = unsafe {
        let raw = location.to_raw();
        if !mlir_sys::mlirLocationIsACallSite(raw) {
            return None;
        }
        (
            Location::from_raw(mlir_sys::mlirLocationCallSiteGetCallee(raw)),
            Location::from_raw(mlir_sys::mlirLocationCallSiteGetCaller(raw)),
        )
    };
    nearest_caller(callee, file)
        .or_else(|| file_line_col(caller).filter(|(other, ..)| other != file))
}
