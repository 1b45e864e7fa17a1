//! From text to an abstract syntax tree.
//!
//! The text becomes tokens ([`lexer`]); the tokens are cut into one chunk an item and their
//! brackets are matched ([`chunks`]); each chunk goes through the LALRPOP grammar on its own
//! ([`parser`]). A mistake in one item therefore never hides another item.

pub mod ast;
pub mod build;
pub mod chunks;
pub mod dump;
mod dump_expr;
mod hints;
pub mod lexer;
pub mod parser;

pub use parser::{imports, parse};
