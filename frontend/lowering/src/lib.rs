//! The typed program as MLIR: level 0 of `docs/ir.md`.
//!
//! One instance, pure values, recursion as calls. Nothing here knows of batching: the module means
//! what the program means, operation by operation, and every operation carries its place in the
//! source. [`support`] refuses what no later pass can compile yet, with a diagnostic where it was
//! written; after it, lowering cannot fail.

mod arrays;
mod cfb;
mod control;
mod dims;
mod expr;
mod linalg;
mod locations;
mod module;
mod numbers;
mod pairwise;
mod products;
mod random;
mod rows;
mod scalars;
mod shapes;
mod support;
mod tensors;
mod types;
mod walk;

use cohort_frontend::program::Program;
use cohort_frontend::{Diagnostic, Sources};
use melior::{
    Context,
    ir::{Module, operation::OperationLike},
};

/// Lowers a checked program, whose spans point into `sources`, to a verified module.
///
/// # Errors
/// One diagnostic for each thing in the program that is not supported yet.
pub fn lower<'c>(
    context: &'c Context,
    program: &Program,
    sources: &Sources,
) -> Result<Module<'c>, Vec<Diagnostic>> {
    let refused = support::refusals(program);
    if !refused.is_empty() {
        return Err(refused);
    }
    let module = module::build(context, program, sources)?;
    if !module.as_operation().verify() {
        return Err(vec![support::invalid_module(program)]);
    }
    Ok(module)
}
