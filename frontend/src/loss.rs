//! What a program must give so that it can be differentiated without being told by what to weigh it.

use crate::diagnostic::Diagnostic;
use crate::program::{Elem, Program, Type};

/// Checks that the entry gives a loss: one f32, or a tuple whose first part is one.
///
/// # Errors
///
/// Says what the entry gives instead.
pub fn check_loss(program: &Program) -> Result<(), Box<Diagnostic>> {
    let Some(entry) = program.functions.get(program.entry.0) else {
        return Ok(());
    };
    let first = match &entry.result {
        Type::Tuple(parts) => parts.first().unwrap_or(&entry.result),
        other => other,
    };
    let is_number = match first {
        Type::Scalar(elem) => *elem == Elem::F32,
        Type::Tensor { elem, shape } => *elem == Elem::F32 && shape.is_empty(),
        Type::Tuple(_) | Type::Array(_) | Type::Adt(_) | Type::Str => false,
    };
    if is_number {
        return Ok(());
    }
    let name = &entry.name;
    Err(Box::new(
        Diagnostic::error("E0211", format!("`{name}` does not give a loss"))
            .at(&entry.span, "its result has no gradient by itself")
            .note(format!(
                "a loss is one f32: `fn {name}(…) -> f32`, or with metrics `-> (f32, …)`"
            )),
    ))
}
