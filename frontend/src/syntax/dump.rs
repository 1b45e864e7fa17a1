//! The syntax tree as text: the program again, laid out in one way, every operator in parentheses.

use super::ast::{
    DimExpr, DimKind, DimOp, FieldItem, Item, Module, Pattern, PatternKind, StoredItem, TypeExpr,
    TypeKind,
};
use super::dump_expr;

/// All items, one paragraph each. The text parses to the same tree.
pub fn dump(module: &Module) -> String {
    let mut text = String::new();
    for item in &module.items {
        text.push_str(&dump_item(item));
        text.push('\n');
    }
    text
}

fn dump_item(item: &Item) -> String {
    match item {
        Item::Import(item) => format!("import \"{}\"", item.path),
        Item::Dims(names) => {
            let names: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
            format!("dim {}", names.join(", "))
        }
        Item::Param(param) => {
            let from = |item: &StoredItem| format!(" from {}", item.stored);
            let from = param.stored.as_ref().map(from).unwrap_or_default();
            format!("param {}: {}{from}", param.name.name, dump_type(&param.ty))
        }
        Item::Const(item) => {
            format!(
                "let {} = {}",
                item.name.name,
                dump_expr::inline(&item.value)
            )
        }
        Item::Type(item) => {
            let constructors: Vec<String> = item
                .constructors
                .iter()
                .map(|constructor| {
                    if constructor.fields.is_empty() {
                        return constructor.name.name.clone();
                    }
                    let field = |field: &FieldItem| match &field.name {
                        Some(name) => format!("{}: {}", name.name, dump_type(&field.ty)),
                        None => dump_type(&field.ty),
                    };
                    let fields: Vec<String> = constructor.fields.iter().map(field).collect();
                    format!("{}({})", constructor.name.name, fields.join(", "))
                })
                .collect();
            let generics = dump_generics(item.generics.iter().map(|g| g.name.as_str()));
            format!(
                "type {}{generics} = {}",
                item.name.name,
                constructors.join(" | ")
            )
        }
        Item::Alias(item) => {
            let generics = dump_generics(item.generics.iter().map(|g| g.name.as_str()));
            format!(
                "type {}{generics} = {}",
                item.name.name,
                dump_type(&item.ty)
            )
        }
        Item::Function(item) => {
            let params: Vec<String> = item
                .params
                .iter()
                .map(|(name, ty)| format!("{}: {}", name.name, dump_type(ty)))
                .collect();
            let generics = dump_generics(item.generics.iter().map(|g| g.name.as_str()));
            let mut text = format!(
                "fn {}{generics}({}) -> {} ",
                item.name.name,
                params.join(", "),
                dump_type(&item.result)
            );
            dump_expr::braced(&mut text, 0, &item.body);
            text
        }
    }
}

fn dump_generics<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("<{}>", names.join(", "))
    }
}

pub fn dump_type(ty: &TypeExpr) -> String {
    let list = |types: &[TypeExpr]| types.iter().map(dump_type).collect::<Vec<_>>().join(", ");
    match &ty.kind {
        TypeKind::Name { name, args } if args.is_empty() => name.name.clone(),
        TypeKind::Name { name, args } => format!("{}<{}>", name.name, list(args)),
        TypeKind::Tensor { elem, shape } => {
            let dims: Vec<String> = shape.iter().map(|dim| dump_dim(dim, 0)).collect();
            format!("{}[{}]", elem.name, dims.join(", "))
        }
        TypeKind::Array(element) => format!("[{}]", dump_type(element)),
        TypeKind::Tuple(parts) => format!("({})", list(parts)),
        TypeKind::Error => "?".to_owned(),
    }
}

/// `tightness`: 0 at the outside, 1 as an operand of `+`, 2 as the right operand of `*`.
fn dump_dim(dim: &DimExpr, tightness: u8) -> String {
    match &dim.kind {
        DimKind::Name(name) => name.name.clone(),
        DimKind::Number(value) => value.to_string(),
        DimKind::Any => "_".to_owned(),
        DimKind::Error => "?".to_owned(),
        DimKind::Binary { op, lhs, rhs } => {
            let (symbol, left, right, own) = match op {
                DimOp::Add => (" + ", 0, 1, 0),
                DimOp::Sub => (" - ", 0, 1, 0),
                DimOp::Mul => ("*", 1, 2, 1),
                DimOp::Div => ("/", 1, 2, 1),
            };
            let text = format!("{}{symbol}{}", dump_dim(lhs, left), dump_dim(rhs, right));
            if own < tightness {
                format!("({text})")
            } else {
                text
            }
        }
    }
}

pub fn dump_pattern(pattern: &Pattern) -> String {
    let list = |parts: &[Pattern]| {
        parts
            .iter()
            .map(dump_pattern)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &pattern.kind {
        PatternKind::Wildcard => "_".to_owned(),
        PatternKind::Name(name) => name.name.clone(),
        PatternKind::Constructor { name, fields } => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| match &field.name {
                    Some(name) => format!("{} = {}", name.name, dump_pattern(&field.pattern)),
                    None => dump_pattern(&field.pattern),
                })
                .collect();
            format!("{}({})", name.name, fields.join(", "))
        }
        PatternKind::AnyFields(name) => format!("{}(..)", name.name),
        PatternKind::Or(parts) => {
            let parts: Vec<String> = parts.iter().map(dump_pattern).collect();
            format!("({})", parts.join(" | "))
        }
        PatternKind::Tuple(parts) => format!("({})", list(parts)),
        PatternKind::Int(value) => value.to_string(),
        PatternKind::Bool(value) => value.to_string(),
        PatternKind::Error => "?".to_owned(),
    }
}
