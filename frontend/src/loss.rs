//! What a program must give so that it can be differentiated without being told by what to weigh it, and
//! what it gives beside.

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
    if scalar(first) == Some(Elem::F32) {
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

/// The places of the metrics among the parts of a loss: numbers, truths, and pairs of these.
pub fn metrics(program: &Program) -> Vec<usize> {
    let entry = program.functions.get(program.entry.0);
    let Some(Type::Tuple(parts)) = entry.map(|entry| &entry.result) else {
        return Vec::new();
    };
    let is_metric = |part: &Type| match part {
        Type::Tuple(pair) => pair.len() == 2 && pair.iter().all(|part| scalar(part).is_some()),
        other => scalar(other).is_some(),
    };
    let behind = parts.iter().enumerate().skip(1);
    behind
        .filter(|(_, part)| is_metric(part))
        .map(|(place, _)| place)
        .collect()
}

fn scalar(ty: &Type) -> Option<Elem> {
    match ty {
        Type::Scalar(elem) => Some(*elem),
        Type::Tensor { elem, shape } => shape.is_empty().then_some(*elem),
        Type::Tuple(_) | Type::Array(_) | Type::Adt(_) | Type::Str => None,
    }
}
