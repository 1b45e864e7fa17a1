//! Code in memory, by MLIR's execution engine (`glue/jit.cpp`).

use std::ffi::c_uint;

use cohort_runtime::CompiledCode;
use melior::{
    StringRef,
    ir::{Module, operation::OperationLike},
};
use mlir_sys::{MlirExecutionEngine, MlirModule};

use super::gpu::Effort;
use crate::exit::Stop;

/// A module's machine code.
pub struct Jit {
    engine: MlirExecutionEngine,
}

impl Jit {
    /// Compiles a module of the `llvm` dialect.
    pub fn new(module: &Module<'_>, effort: Effort) -> Result<Jit, Stop> {
        if !module.as_operation().verify() {
            return Err(Stop::usage(
                "internal error: the compiled module is not valid",
            ));
        }
        super::module::refuse_assembly(module)?;
        // SAFETY: the module is valid; the engine keeps nothing of it. A null engine is told apart.
        let engine = unsafe { cohort_jit_create(module.to_raw(), effort.level()) };
        if engine.ptr.is_null() {
            return Err(Stop::usage(
                "internal error: LLVM could not compile the module",
            ));
        }
        Ok(Jit { engine })
    }

    /// Makes functions known to the compiled code under their names.
    pub fn register(&self, symbols: &[(&'static str, *const ())]) {
        for (name, address) in symbols {
            // SAFETY: the engine is alive; the address is that of a function of this process.
            unsafe {
                mlir_sys::mlirExecutionEngineRegisterSymbol(
                    self.engine,
                    StringRef::new(name).to_raw(),
                    address.cast_mut().cast(),
                );
            }
        }
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: the engine is alive, and nothing uses it after this.
        unsafe { mlir_sys::mlirExecutionEngineDestroy(self.engine) }
    }
}

// SAFETY: the engine's code was compiled from the module whose manifest is given along with it, by
// passes that write both; it lives as long as the engine.
unsafe impl CompiledCode for Jit {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        // SAFETY: the engine is alive; a symbol that it does not have gives null.
        let address = unsafe {
            mlir_sys::mlirExecutionEngineLookup(self.engine, StringRef::new(name).to_raw())
        };
        (!address.is_null()).then_some(address.cast_const().cast())
    }
}

unsafe extern "C" {
    fn cohort_jit_create(module: MlirModule, level: c_uint) -> MlirExecutionEngine;
}
