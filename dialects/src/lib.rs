//! The dialects of the compiler, and what of MLIR the other crates need beyond melior.
//!
//! The operations are declared in `include/*.td`; their verifiers are in `lib/`. This crate makes
//! them known to a context, gives typed builders for them ([`cfb`], [`ragged`]), and wraps the few functions of
//! MLIR that have no C interface. No pass lives here.

mod arithmetic;
pub mod attributes;
pub mod builder;
pub mod builtin;
mod control;
pub mod diagnostics;
pub mod equal;
mod ffi;
pub mod keys;
pub mod location;
pub mod marks;
pub mod math;
mod op;
mod register;
pub mod shape;
mod tensors;
pub mod translate;
pub mod types;

pub use register::{load_all, new_context, register};

melior::dialect! {
    name: "cfb",
    files: ["cfb/CfbOps.td"],
    include_directories: ["./dialects/include", "./include"],
}

melior::dialect! {
    name: "ragged",
    files: ["ragged/RaggedOps.td"],
    include_directories: ["./dialects/include", "./include"],
}

// Those of upstream that melior has no builders for.
melior::dialect! {
    name: "linalg",
    files: ["mlir/Dialect/Linalg/IR/LinalgStructuredOps.td"],
}

melior::dialect! {
    name: "ml_program",
    files: ["mlir/Dialect/MLProgram/IR/MLProgramOps.td"],
}

melior::dialect! {
    name: "nvvm",
    files: ["mlir/Dialect/LLVMIR/NVVMOps.td"],
}
