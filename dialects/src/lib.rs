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
pub mod enums;
pub mod equal;
mod ffi;
mod generated;
pub mod keys;
pub mod location;
pub mod marks;
pub mod memory;
mod op;
mod register;
pub mod rewrites;
pub mod shape;
mod tensors;
pub mod translate;
pub mod types;

pub use generated::{cfb, linalg, ml_program, nvvm, ragged};
pub use register::{load, new_context, register};
