//! The typed program as MLIR: level 0 of `docs/ir.md`.
//!
//! One instance, pure values, recursion as calls. Nothing here knows of batching: the module means
//! what the program means, operation by operation, and every operation carries its place in the
//! source.

mod arrays;
mod cfb;
mod control;
mod dims;
mod expr;
mod integers;
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
mod tensors;
mod types;
mod views;
pub mod walk;

use cohort_frontend::program::Program;
use cohort_frontend::{Diagnostic, Sources};
use melior::{
    Context,
    ir::{Module, operation::OperationLike},
};

/// Lowers a checked program, whose spans point into `sources`, to a verified module.
///
/// # Errors
/// One diagnostic for each tensor whose length nothing tells.
pub fn lower<'c>(
    context: &'c Context,
    program: &Program,
    sources: &Sources,
) -> Result<Module<'c>, Vec<Diagnostic>> {
    let module = module::build(context, program, sources)?;
    if !module.as_operation().verify() {
        return Err(vec![invalid_module(program)]);
    }
    Ok(module)
}

/// What to say when lowering made a module that does not verify: it is never the user's mistake.
fn invalid_module(program: &Program) -> Diagnostic {
    let message = "internal error: the program was lowered to an invalid module";
    Diagnostic::error("E0999", message)
        .at(&program.functions[program.entry.0].span, "in this program")
        .note("this is a bug of the compiler; please report it with the program")
}
