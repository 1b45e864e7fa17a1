//! The `.coh` frontend: text to a typed, monomorphic [`program::Program`].
//!
//! ```text
//! text --syntax--> AST --check--> typed, symbolic (hir) --bind--> numbers for dims
//!      --mono--> flat, monomorphic --stage--> Program, with host and tensor scalars told apart
//! ```
//!
//! [`check()`] does the first half, which needs no numbers; [`Checked::bind`] does the second for the
//! shapes of one weights file. Nothing here knows of batching: a program means what its reading for
//! one instance means.

mod bind;
mod check;
pub mod diagnostic;
mod dims;
mod dump_program;
mod excerpt;
mod hir;
mod import;
mod loss;
mod mono;
mod places;
pub mod program;
pub mod source;
mod stack;
mod stage;
mod stored;
mod suggest;
mod syntax;
mod types;

pub use check::{Checked, DimDecl, DimExpr, MAIN, ParamDecl, check, check_with_entry};
pub use diagnostic::{Diagnostic, Label, Severity, render};
pub use dump_program::dump_program;
pub use loss::{check_loss, metrics};
pub use places::{Meaning, Name, NameKind, names_of_the_language, word_at};
pub use source::Sources;

/// The syntax tree of a file as text that parses to the same tree.
///
/// # Errors
///
/// The mistakes of syntax; nothing is checked beyond it.
pub fn dump_ast(sources: &Sources, file: usize) -> Result<String, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let Some(source) = sources.get(file) else {
        return Err(vec![Diagnostic::error(
            "E0001",
            format!("there is no source file {file}"),
        )]);
    };
    stack::with_deep_stack(|| {
        let module = syntax::parse(file, &source.text, &mut diagnostics);
        if diagnostics.is_empty() {
            Ok(syntax::dump::dump(&module))
        } else {
            Err(check::in_order(diagnostics))
        }
    })
}
