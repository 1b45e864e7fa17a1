//! Errors, warnings and remarks at the place in the source that an operation came from.

use crate::ffi;
use melior::ir::{Location, OperationRef, operation::OperationLike};
use mlir_sys::MlirStringRef;

/// What a diagnostic means for the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// What stops the compiler.
    Error,
    /// What is likely not meant.
    Warning,
    /// What is worth to know.
    Remark,
}

/// A second place, with what it has to do with the first.
#[derive(Clone, Debug)]
pub struct Note<'c> {
    /// Where it is.
    pub location: Location<'c>,
    /// What is said of it.
    pub message: String,
}

impl<'c> Note<'c> {
    /// A note on a place in the program.
    pub fn new(location: Location<'c>, message: impl Into<String>) -> Self {
        Note {
            location,
            message: message.into(),
        }
    }

    /// A note on an operation.
    pub fn at(operation: OperationRef<'c, '_>, message: impl Into<String>) -> Self {
        Note::new(operation.location(), message)
    }
}

/// Reports an error at an operation. The caller still has to fail.
pub fn emit_error(operation: OperationRef<'_, '_>, message: &str) {
    emit(operation.location(), Severity::Error, message, &[]);
}

/// Reports a warning at an operation.
pub fn emit_warning(operation: OperationRef<'_, '_>, message: &str) {
    emit(operation.location(), Severity::Warning, message, &[]);
}

/// Tells the user what was done, or why something was not.
pub fn emit_remark(operation: OperationRef<'_, '_>, message: &str) {
    emit(operation.location(), Severity::Remark, message, &[]);
}

/// Sends a diagnostic with its notes to the handlers of the location's context.
pub fn emit(location: Location<'_>, severity: Severity, message: &str, notes: &[Note<'_>]) {
    let severity = match severity {
        Severity::Error => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError,
        Severity::Warning => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning,
        Severity::Remark => mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticRemark,
    };
    let locations: Vec<_> = notes.iter().map(|note| note.location.to_raw()).collect();
    let messages: Vec<MlirStringRef> = notes.iter().map(|note| ffi::view(&note.message)).collect();
    // SAFETY: the locations are alive, both arrays have `notes.len()` entries, and MLIR copies the
    // texts before it returns.
    unsafe {
        ffi::cohortEmitDiagnostic(
            location.to_raw(),
            severity as i32,
            ffi::view(message),
            notes.len() as isize,
            locations.as_ptr(),
            messages.as_ptr(),
        );
    }
}
