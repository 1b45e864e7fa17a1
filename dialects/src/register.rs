//! Making dialects, passes and translations known to a context.

use std::sync::Once;

use crate::ffi;
use melior::{
    Context,
    dialect::{DialectHandle, DialectRegistry},
    utility::{register_all_dialects, register_all_llvm_translations, register_all_passes},
};

/// Adds every dialect of MLIR's and our own to a registry, and registers MLIR's passes.
pub fn register(registry: &DialectRegistry) {
    register_all_dialects(registry);
    // SAFETY: the handles point at hooks that live as long as the program.
    let (cfb, ragged) = unsafe {
        (
            DialectHandle::from_raw(ffi::mlirGetDialectHandle__cfb__()),
            DialectHandle::from_raw(ffi::mlirGetDialectHandle__ragged__()),
        )
    };
    cfb.insert_dialect(registry);
    ragged.insert_dialect(registry);
    register_all_passes();
}

/// The dialects whose operations our passes make. A text loads what else it has, and a pass of MLIR's what it
/// says. All that MLIR has would be five times as many operations, whose patterns each canonicalization looks through
/// first: a quarter of the time that a small program takes.
const LOADED: [&str; 19] = [
    "affine",
    "arith",
    "builtin",
    "cf",
    "cfb",
    "func",
    "gpu",
    "index",
    "linalg",
    "llvm",
    "math",
    "memref",
    "ml_program",
    "nvvm",
    "ragged",
    "scf",
    "tensor",
    "ub",
    "vector",
];

/// Makes everything a compilation may meet available in a context.
pub fn load(context: &Context) {
    let registry = DialectRegistry::new();
    register(&registry);
    context.append_dialect_registry(&registry);
    for dialect in LOADED {
        context.get_or_load_dialect(dialect);
    }
    register_all_llvm_translations(context);
}

/// A context ready to compile in. It runs one thread, which passes written in Rust need.
pub fn new_context() -> Context {
    static CONFIGURED: Once = Once::new();
    // SAFETY: nobody else sets options of LLVM's once the command line is read.
    CONFIGURED.call_once(|| unsafe { ffi::cohortConfigureLlvm() });
    let context = Context::new();
    context.enable_multi_threading(false);
    load(&context);
    context
}
