//! What every pass of ours has in common: a name, a summary, a function over the module.
//!
//! A pass runs on the whole module, with the context's threads off. It reports problems as
//! diagnostics at operations ([`error`], [`remark`]) and fails; a panic inside one is a bug, is
//! caught at the boundary and becomes such a failure, because it must not unwind through MLIR.

use cohort_dialects::builder::Op;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use melior::{
    Context, ContextRef,
    ir::{OperationRef, operation::OperationLike, r#type::TypeId},
    pass::{ExternalPass, Pass, RunExternalPass, create_external},
};

/// The pass found a problem and has reported it.
#[derive(Debug)]
pub struct Failed;

/// How a pass ends: with its work done, or with a problem reported.
pub type Outcome = Result<(), Failed>;

/// A pass of ours, as `batch-opt` lists it and the documentation shows it.
#[derive(Clone, Copy)]
pub struct PassInfo {
    /// The flag: `form-blocks`.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// The module page of the pass's file: purpose, before and after, requirements, limits.
    pub description: &'static str,
    /// The work, on the module.
    pub run: for<'c> fn(&'c Context, OperationRef<'c, 'c>) -> Outcome,
}

#[derive(Clone)]
struct Runner {
    info: PassInfo,
}

impl<'c> RunExternalPass<'c> for Runner {
    fn construct(&mut self) {}
    fn destruct(&mut self) {}
    fn initialize(&mut self, _context: ContextRef<'c>) {}

    fn run(&mut self, operation: OperationRef<'c, '_>, pass: ExternalPass<'_>) {
        // `to_ref` borrows the reference itself, so that must live as long as the pass runs.
        let context_reference = operation.context();
        // SAFETY: passes keep nothing beyond `run`, during which `context_reference` is alive.
        let context: &'c Context =
            unsafe { std::mem::transmute::<&Context, &'c Context>(context_reference.to_ref()) };
        let module = cohort_dialects::builder::extend_op(operation);
        let run = self.info.run;
        match catch_unwind(AssertUnwindSafe(|| run(context, module))) {
            Ok(Ok(())) => {}
            Ok(Err(Failed)) => pass.signal_failure(),
            Err(_) => {
                let _ = error(module, &format!("internal error in `{}`", self.info.name));
                pass.signal_failure();
            }
        }
    }
}

/// MLIR tells passes apart by the address of some 8-byte aligned datum.
#[repr(align(8))]
struct Identity(#[allow(dead_code)] u64);

/// A fresh instance of the pass for a pass manager.
pub fn create(info: PassInfo) -> Pass {
    // One small leak a pass object: MLIR keeps the identity for as long as the process lives.
    let identity: &'static Identity = Box::leak(Box::new(Identity(0)));
    let id = TypeId::create(identity);
    create_external(
        Runner { info },
        id,
        info.name,
        info.name,
        info.summary,
        Op::BuiltinModule.name(),
        &[],
    )
}

/// Reports an error at an operation's location.
pub fn error(operation: OperationRef<'_, '_>, message: &str) -> Failed {
    emit(operation, message, mlir_sys::mlirEmitError);
    Failed
}

/// Says at an operation's location what a pass left as it was, and why.
pub fn remark(operation: OperationRef<'_, '_>, message: &str) {
    // MLIR's C API emits remarks only through its diagnostic engine's severity; see the glue.
    cohort_dialects::diagnostics::emit_remark(operation, message);
}

fn emit(
    operation: OperationRef<'_, '_>,
    message: &str,
    emitter: unsafe extern "C" fn(mlir_sys::MlirLocation, *const std::ffi::c_char),
) {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the location is valid and the string is NUL-terminated for the call.
    unsafe { emitter(operation.location().to_raw(), message.as_ptr()) }
}
