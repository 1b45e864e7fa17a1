//! The typed program as text for a person: `batch-opt --emit=ast` shows it after the syntax.

use std::fmt::Write;

use crate::program::{Adt, Dim, Program, Type};
use crate::types::elem_name;

mod expr;

/// Host scalars are plain, `i32`; scalars that tensors made have an empty shape, `i32[]`.
pub fn show_type(ty: &Type, adts: &[Adt]) -> String {
    let list = |types: &[Type]| {
        types
            .iter()
            .map(|ty| show_type(ty, adts))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match ty {
        Type::Scalar(elem) => elem_name(*elem).to_owned(),
        Type::Tensor { elem, shape } => {
            let dims: Vec<String> = shape.iter().map(show_dim).collect();
            format!("{}[{}]", elem_name(*elem), dims.join(", "))
        }
        Type::Tuple(parts) => format!("({})", list(parts)),
        Type::Array(element) => format!("[{}]", show_type(element, adts)),
        Type::Str => "str".to_owned(),
        Type::Adt(id) => adts
            .get(id.0)
            .map_or_else(|| "?".to_owned(), |adt| adt.name.clone()),
    }
}

fn show_dim(dim: &Dim) -> String {
    match dim {
        Dim::Known(size) => size.to_string(),
        Dim::Instance(name) => name.clone(),
    }
}

/// The whole program, one item a line and function bodies indented.
pub fn dump_program(program: &Program) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for dim in &program.dims {
        let _ = writeln!(text, "dim {} = {}", dim.name, dim.size);
    }
    for param in &program.params {
        let dims: Vec<String> = param.shape.iter().map(u64::to_string).collect();
        let _ = writeln!(
            text,
            "param {}: {}[{}]{}",
            param.name,
            elem_name(param.elem),
            dims.join(", "),
            (param.stored.as_ref()).map_or_else(String::new, |stored| format!(" from {stored}"))
        );
    }
    for adt in &program.adts {
        let constructors: Vec<String> = adt
            .constructors
            .iter()
            .map(|constructor| {
                let fields: Vec<String> = constructor
                    .fields
                    .iter()
                    .enumerate()
                    .map(|(place, ty)| {
                        let ty = show_type(ty, &program.adts);
                        match constructor.names.get(place) {
                            Some(name) => format!("{name}: {ty}"),
                            None => ty,
                        }
                    })
                    .collect();
                if fields.is_empty() {
                    constructor.name.clone()
                } else {
                    format!("{}({})", constructor.name, fields.join(", "))
                }
            })
            .collect();
        let _ = writeln!(text, "type {} = {}", adt.name, constructors.join(" | "));
    }
    for (index, function) in program.functions.iter().enumerate() {
        let entry = if index == program.entry.0 {
            "entry "
        } else {
            ""
        };
        let params: Vec<String> = function
            .params
            .iter()
            .map(|param| {
                let var = &function.vars[param.0];
                format!(
                    "{}%{}: {}",
                    var.name,
                    param.0,
                    show_type(&var.ty, &program.adts)
                )
            })
            .collect();
        let result = show_type(&function.result, &program.adts);
        let _ = writeln!(
            text,
            "\n{entry}fn {}({}) -> {result} =",
            function.name,
            params.join(", ")
        );
        expr::body(&mut text, program, function);
    }
    text
}
