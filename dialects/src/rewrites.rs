//! Rewrites of upstream that have no C interface.

use melior::ir::OperationRef;

use crate::builder::Op;
use crate::ffi;

/// Replaces every operation of these kinds inside `operation`, on `f32` and vectors of it, by MLIR's own polynomial for it.
/// False when the rewriting did not come to an end.
pub fn expand_math(operation: OperationRef<'_, '_>, kinds: &[Op]) -> bool {
    let names: Vec<_> = kinds.iter().map(|kind| ffi::view(kind.name())).collect();
    // SAFETY: the operation is alive, and the array has as many entries as it says.
    unsafe { ffi::cohortExpandMath(operation.to_raw(), names.len() as isize, names.as_ptr()) }
}
