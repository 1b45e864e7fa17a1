//! A loss for any program: the sum of the squares of all floats that its entry gives.

use cohort_frontend::program::{Elem, Function, Type};

/// The text of a program with a function `loss` of the entry's arguments; `None` where the entry gives no
/// floats that a function can get at.
pub fn with_loss(text: &str, entry: &Function) -> Option<String> {
    let (_, after) = text.rsplit_once("fn main(")?;
    let (parameters, _) = after.split_once(") ->")?;
    let mut names = Vec::new();
    let mut depth = 0;
    let mut rest = parameters;
    // A name stands before each `:` that is in no bracket.
    for (at, character) in parameters.char_indices() {
        match character {
            '[' | '(' | '<' => depth += 1,
            ']' | ')' | '>' => depth -= 1,
            ',' if depth == 0 => rest = &parameters[at + 1..],
            ':' if depth == 0 => {
                let before = &rest[..rest.len() - (parameters.len() - at)];
                names.push(before.trim());
            }
            _ => {}
        }
    }
    let mut names_of_parts = 0;
    let sum = squares(&entry.result, "result", &mut names_of_parts)?;
    Some(format!(
        "{text}\nfn loss({parameters}) -> f32 {{\n  let result = main({});\n  {sum}\n}}\n",
        names.join(", ")
    ))
}

/// The sum of the squares of the floats in a value.
fn squares(ty: &Type, value: &str, count: &mut usize) -> Option<String> {
    *count += 1;
    let name = format!("part{count}");
    match ty {
        Type::Tensor {
            elem: Elem::F32,
            shape,
        } if shape.is_empty() => Some(format!("{value} * {value}")),
        Type::Tensor {
            elem: Elem::F32, ..
        } => Some(format!("sum({value} * {value})")),
        Type::Array(element) => {
            let squares = squares(element, &name, count)?;
            Some(format!("sum(map({value}, |{name}| {squares}))"))
        }
        Type::Tuple(parts) => {
            let mut pattern = Vec::new();
            let (mut lets, mut sums) = (Vec::new(), Vec::new());
            for (place, part) in parts.iter().enumerate() {
                let name = format!("{name}_{place}");
                match squares(part, &name, count) {
                    Some(sum) => {
                        lets.push(format!("let {name}_sum = {{ {sum} }};"));
                        sums.push(format!("{name}_sum"));
                        pattern.push(name);
                    }
                    None => pattern.push("_".to_owned()),
                }
            }
            let is_any = !sums.is_empty();
            is_any.then(|| {
                let (pattern, lets) = (pattern.join(", "), lets.join(" "));
                format!("let ({pattern}) = {value}; {lets} {}", sums.join(" + "))
            })
        }
        Type::Tensor { .. } | Type::Scalar(_) | Type::Adt(_) | Type::Str => None,
    }
}
