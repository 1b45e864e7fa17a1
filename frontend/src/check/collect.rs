//! Gathers the declarations of a program's files: names first, so that their order is free, then types.

use super::aliases;
use super::builtins::is_builtin;
use super::items::{Const, ConstructorDecl, Items, Param, Signature, TypeDecl};
use super::resolve::{Rule, TypeResolver, elem_named, plural};
use crate::diagnostic::Diagnostic;
use crate::program::{Literal, Span, Stored};
use crate::source::PRELUDE_FILE;
use crate::syntax::ast::{
    ConstItem, ConstructorItem, ExprKind, FunctionItem, Ident, Item, Module, ParamItem, StoredItem,
    TypeItem, UnaryOp,
};
use crate::types::{Dim, Ty};

/// Adds declarations to `items` and gives its functions in the order of the signatures
/// that were added for them.
pub fn collect<'m>(
    items: &mut Items,
    file: usize,
    module: &'m Module,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<&'m FunctionItem> {
    let renamed = aliases::of_names(items, file, module);
    for item in &module.items {
        match item {
            Item::Dims(names) => names
                .iter()
                .for_each(|n| declare_dim(items, file, n, diagnostics)),
            Item::Const(item) => declare_const(items, file, item, diagnostics),
            Item::Type(item) if !renamed.contains_key(&aliases::place(item)) => {
                declare_type(items, file, item, diagnostics);
            }
            Item::Import(_)
            | Item::Type(_)
            | Item::Alias(_)
            | Item::Param(_)
            | Item::Function(_) => {}
        }
    }
    let written = module.items.iter().filter_map(|item| match item {
        Item::Alias(item) => Some(item),
        Item::Type(item) => renamed.get(&aliases::place(item)),
        _ => None,
    });
    aliases::declare(items, file, &written.collect::<Vec<_>>(), diagnostics);
    // Every dim and type has its place now, so what is written with them can be read.
    let mut functions = Vec::new();
    for item in &module.items {
        match item {
            Item::Param(item) => declare_param(items, file, item, diagnostics),
            Item::Type(item) => resolve_constructors(items, file, item, diagnostics),
            Item::Function(item) => {
                declare_function(items, file, item, diagnostics);
                functions.push(item);
            }
            Item::Import(_) | Item::Dims(_) | Item::Const(_) | Item::Alias(_) => {}
        }
    }
    functions
}

/// All files of a program share their names; the prelude's may be declared anew.
fn in_one_scope(declared: &Span, file: usize) -> bool {
    (declared.file == PRELUDE_FILE) == (file == PRELUDE_FILE)
}

fn duplicate(what: &str, name: &Ident, first: &Span) -> Diagnostic {
    Diagnostic::error("E0202", format!("{what} `{}` is declared twice", name.name))
        .at(&name.span, "declared again")
        .see(first, "first declared here")
        .note("remove one, or rename it")
}

/// Reports a name that already stands for a dim, a parameter or a constant of the file.
fn value_taken(
    items: &Items,
    file: usize,
    name: &Ident,
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    let first = items
        .dim(file, &name.name)
        .and_then(|index| items.dims.get(index))
        .or_else(|| {
            items
                .constant(file, &name.name)
                .map(|constant| &constant.name)
        })
        .or_else(|| {
            let index = items.param(file, &name.name)?;
            items.params.get(index).map(|param| &param.name)
        });
    match first {
        // What the prelude declares may be declared anew.
        Some(first) if in_one_scope(&first.span, file) => {
            diagnostics.push(duplicate("the name", name, &first.span));
            true
        }
        _ => false,
    }
}

fn declare_dim(items: &mut Items, file: usize, name: &Ident, diagnostics: &mut Vec<Diagnostic>) {
    if value_taken(items, file, name, diagnostics) {
        return;
    }
    let index = items.dims.len();
    items.dims.push(name.clone());
    items.scope_mut(file).dims.insert(name.name.clone(), index);
}

fn declare_const(
    items: &mut Items,
    file: usize,
    item: &ConstItem,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if value_taken(items, file, &item.name, diagnostics) {
        return;
    }
    let (negative, kind) = match &item.value.kind {
        ExprKind::Unary {
            op: UnaryOp::Neg,
            value,
        } => (true, &value.kind),
        kind => (false, kind),
    };
    let value = match kind {
        ExprKind::Int(value) => {
            let value = i64::try_from(*value).unwrap_or(i64::MAX);
            i32::try_from(if negative { -value } else { value })
                .ok()
                .map(Literal::I32)
        }
        ExprKind::Float(value) => Some(Literal::F32(if negative { -value } else { *value })),
        ExprKind::Bool(value) if !negative => Some(Literal::Bool(*value)),
        ExprKind::Error => return,
        _ => None,
    };
    let Some(value) = value else {
        diagnostics.push(
            Diagnostic::error("E0309", format!("`{}` is not a constant", item.name.name))
                .at(&item.value.span, "expected a number, `true` or `false`")
                .note("outside functions `let` gives names to numbers; compute within a function"),
        );
        return;
    };
    let index = items.consts.len();
    items.consts.push(Const {
        name: item.name.clone(),
        value,
    });
    items
        .scope_mut(file)
        .consts
        .insert(item.name.name.clone(), index);
}

fn declare_type(
    items: &mut Items,
    file: usize,
    item: &TypeItem,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let name = &item.name;
    if !names_a_type(items, file, name, &item.generics, diagnostics) {
        return;
    }
    let index = items.types.len();
    items.types.push(TypeDecl {
        name: name.clone(),
        generics: item.generics.iter().map(|g| g.name.clone()).collect(),
        constructors: Vec::new(),
    });
    items.scope_mut(file).types.insert(name.name.clone(), index);
    for (place, constructor) in item.constructors.iter().enumerate() {
        let name = &constructor.name;
        if !name.name.starts_with(|c: char| c.is_ascii_uppercase()) {
            diagnostics.push(lower_case("constructor", name));
        }
        let first = item
            .constructors
            .iter()
            .take(place)
            .find(|c| c.name.name == name.name);
        let earlier = items
            .constructor(file, &name.name)
            .filter(|(adt, _)| *adt != index);
        let earlier = earlier
            .and_then(|(adt, _)| items.types.get(adt))
            .map(|decl| &decl.name);
        let earlier = earlier.filter(|name| in_one_scope(&name.span, file));
        if let Some(first) = first.map(|c| &c.name).or(earlier) {
            diagnostics.push(duplicate("the constructor", name, &first.span));
            continue;
        }
        items
            .scope_mut(file)
            .constructors
            .insert(name.name.clone(), (index, place));
    }
}

/// Whether a type may be declared by this name; what is wrong with it is reported.
pub fn names_a_type(
    items: &Items,
    file: usize,
    name: &Ident,
    generics: &[Ident],
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    if elem_named(&name.name).is_some() {
        diagnostics.push(
            Diagnostic::error("E0203", format!("`{}` is built in", name.name))
                .at(&name.span, "cannot be declared")
                .note("choose another name"),
        );
        return false;
    }
    let declared = items.type_named(file, &name.name);
    let declared = declared.and_then(|t| items.types.get(t)).map(|t| &t.name);
    let alias = items.alias(file, &name.name);
    let alias = alias.and_then(|t| items.aliases.get(t)).map(|t| &t.name);
    if let Some(first) = declared.or(alias)
        && in_one_scope(&first.span, file)
    {
        diagnostics.push(duplicate("the type", name, &first.span));
        return false;
    }
    report_duplicates("the type parameter", generics, diagnostics);
    if !name.name.starts_with(|c: char| c.is_ascii_uppercase()) {
        diagnostics.push(lower_case("type", name));
    }
    true
}

/// The names of a constructor's fields: all have one, or none has.
fn field_names(item: &ConstructorItem, diagnostics: &mut Vec<Diagnostic>) -> Vec<Ident> {
    let names: Vec<Ident> = item.fields.iter().filter_map(|f| f.name.clone()).collect();
    report_duplicates("the field", &names, diagnostics);
    if names.is_empty() || names.len() == item.fields.len() {
        return names;
    }
    let nameless = item.fields.iter().find(|field| field.name.is_none());
    if let Some(field) = nameless {
        diagnostics.push(
            Diagnostic::error(
                "E0602",
                format!("`{}` names some fields and not others", item.name.name),
            )
            .at(&field.ty.span, "this field has no name")
            .note("name all fields or none: `Node(left: Tree, right: Tree)`"),
        );
    }
    Vec::new()
}

fn lower_case(what: &str, name: &Ident) -> Diagnostic {
    Diagnostic::error(
        "E0210",
        format!("the {what} `{}` needs a capital", name.name),
    )
    .at(&name.span, "begins in lower case")
    .note("types and constructors begin with a capital, so that patterns can tell them apart")
}

fn report_duplicates(what: &str, names: &[Ident], diagnostics: &mut Vec<Diagnostic>) {
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names
            .iter()
            .take(index)
            .find(|first| first.name == name.name)
        {
            diagnostics.push(duplicate(what, name, &first.span));
        }
    }
}

fn resolve_constructors(
    items: &mut Items,
    file: usize,
    item: &TypeItem,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let Some(index) = items.type_named(file, &item.name.name) else {
        return;
    };
    // A second declaration of the type was reported; its constructors go nowhere.
    if items
        .types
        .get(index)
        .is_none_or(|decl| decl.name.span != item.name.span)
    {
        return;
    }
    let generics: Vec<String> = item.generics.iter().map(|g| g.name.clone()).collect();
    let mut constructors = Vec::new();
    for constructor in &item.constructors {
        let mut resolver = TypeResolver {
            items,
            file,
            generics: &generics,
            variables: &mut Vec::new(),
            diagnostics,
            rule: Rule::Fixed,
        };
        let fields = constructor
            .fields
            .iter()
            .map(|field| resolver.ty(&field.ty))
            .collect();
        constructors.push(ConstructorDecl {
            name: constructor.name.clone(),
            fields,
            names: field_names(constructor, diagnostics),
        });
    }
    if let Some(decl) = items.types.get_mut(index) {
        decl.constructors = constructors;
    }
}

fn declare_param(
    items: &mut Items,
    file: usize,
    item: &ParamItem,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if value_taken(items, file, &item.name, diagnostics) {
        return;
    }
    let mut resolver = TypeResolver {
        items,
        file,
        generics: &[],
        variables: &mut Vec::new(),
        diagnostics,
        rule: Rule::Parameter,
    };
    let before = resolver.diagnostics.len();
    let ty = resolver.ty(&item.ty);
    let fine = resolver.diagnostics.len() == before;
    let (elem, dims) = match ty {
        Ty::Tensor { elem, shape } => (elem, shape),
        Ty::Error => (crate::program::Elem::F32, vec![Dim::Any]),
        _ => {
            diagnostics.push(
                Diagnostic::error(
                    "E0602",
                    format!("the parameter `{}` is not a tensor", item.name.name),
                )
                .at(&item.ty.span, "expected a type such as f32[D, H]")
                .note("parameters are the tensors of the weights file"),
            );
            return;
        }
    };
    let shape: Option<Vec<_>> = dims
        .into_iter()
        .map(|dim| match dim {
            Dim::Poly(poly) => Some(poly),
            Dim::Any => None,
        })
        .collect();
    if shape.is_none() && fine {
        diagnostics.push(
            Diagnostic::error("E0207", "a parameter's dims all have names")
                .at(&item.ty.span, "`_` says nothing about the weights")
                .note("declare the dim: `dim H`"),
        );
    }
    if let (Some(stored), Some(shape), true) = (&item.stored, &shape, fine) {
        check_stored(item, stored, shape.len(), diagnostics);
    }
    let index = items.params.len();
    items.params.push(Param {
        name: item.name.clone(),
        elem,
        shape: shape.unwrap_or_default(),
        stored: item.stored.as_ref().map(|item| item.stored.clone()),
    });
    items
        .scope_mut(file)
        .params
        .insert(item.name.name.clone(), index);
}

/// That the type has an axis for each number of the names, and two that can be swapped.
fn check_stored(
    param: &ParamItem,
    item: &StoredItem,
    dims: usize,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let Stored { name, transposed } = &item.stored;
    if *transposed && *name == param.name.name {
        diagnostics.push(
            Diagnostic::error("E0710", "a transposed tensor has another name than the parameter")
                .at(&param.name.span, "choose another name")
                .see(&item.span, "stored by this one")
                .note("a file with the program's own names, as `batch-train` writes it, has it as declared"),
        );
    }
    if name.is_empty() {
        diagnostics.push(
            Diagnostic::error("E0710", "a tensor of the weights has a name")
                .at(&item.span, "empty")
                .note("without `from` it is the parameter's own"),
        );
    }
    let axes = item.stored.axes();
    let needed = axes + if *transposed { 2 } else { 0 };
    if dims < needed {
        let mut why = Vec::new();
        if axes > 0 {
            why.push(format!("{} for `{{}}`", plural(axes, "dim")));
        }
        if *transposed {
            why.push("2 dims that `.T` swaps".to_owned());
        }
        let expected = why.join(" and ");
        let diagnostic =
            Diagnostic::error("E0710", "the parameter has too few dims for its `from`")
                .at(&item.span, format!("expected {expected}"))
                .see(&param.ty.span, format!("found {}", plural(dims, "dim")));
        diagnostics.push(diagnostic);
    }
}

fn declare_function(
    items: &mut Items,
    file: usize,
    item: &FunctionItem,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let name = &item.name;
    if is_builtin(&name.name) {
        diagnostics.push(
            Diagnostic::error("E0203", format!("`{}` is built in", name.name))
                .at(&name.span, "cannot be defined")
                .note("choose another name"),
        );
    }
    report_duplicates("the type parameter", &item.generics, diagnostics);
    let names: Vec<Ident> = item.params.iter().map(|(name, _)| name.clone()).collect();
    report_duplicates("the argument", &names, diagnostics);
    let generics: Vec<String> = item.generics.iter().map(|g| g.name.clone()).collect();
    let mut variables = Vec::new();
    let mut resolver = TypeResolver {
        items,
        file,
        generics: &generics,
        variables: &mut variables,
        diagnostics,
        rule: Rule::Argument,
    };
    let mut params = Vec::new();
    for (name, ty) in &item.params {
        params.push((name.clone(), resolver.ty(ty)));
    }
    resolver.rule = Rule::Result;
    let result = resolver.ty(&item.result);
    let signature = Signature {
        name: name.clone(),
        generics,
        variables,
        params,
        result,
        result_span: item.result.span.clone(),
    };
    let siblings = items
        .scope_mut(file)
        .functions
        .get(&name.name)
        .cloned()
        .unwrap_or_default();
    let same = siblings
        .iter()
        .filter_map(|index| items.functions.get(*index))
        .find(|other| !told_apart(other, &signature));
    let is_called = same.is_none();
    if let Some(first) = same {
        diagnostics.push(duplicate("the function", name, &first.name.span).note(
            "functions may share a name when the number or the ranks of their arguments differ",
        ));
    }
    let index = items.functions.len();
    items.functions.push(signature);
    // Of two that calls cannot tell apart they mean the first, so that this is one mistake.
    if is_called {
        let functions = &mut items.scope_mut(file).functions;
        functions.entry(name.name.clone()).or_default().push(index);
    }
}

/// Whether a call can tell two functions of one name apart by their arguments.
fn told_apart(left: &Signature, right: &Signature) -> bool {
    left.params.len() != right.params.len()
        || left
            .params
            .iter()
            .zip(&right.params)
            .any(|((_, l), (_, r))| !may_agree(l, r))
}

/// Whether values of one type could be taken for the other's, by their outermost form alone.
pub fn may_agree(left: &Ty, right: &Ty) -> bool {
    match (left, right) {
        (
            Ty::Tensor {
                elem: e1,
                shape: s1,
            },
            Ty::Tensor {
                elem: e2,
                shape: s2,
            },
        ) => e1 == e2 && s1.len() == s2.len(),
        (Ty::Tuple(l), Ty::Tuple(r)) => l.len() == r.len(),
        (Ty::Array(_), Ty::Array(_)) | (Ty::Str, Ty::Str) => true,
        (Ty::Adt(l, _), Ty::Adt(r, _)) => l == r,
        (Ty::Generic(_) | Ty::Unknown(_) | Ty::Error, _)
        | (_, Ty::Generic(_) | Ty::Unknown(_) | Ty::Error) => true,
        _ => false,
    }
}
