//! The symbolic check: every function is typed once, for all numbers its dims may get.
//!
//! `items` holds what is declared, `collect` and `resolve` read declarations, `body` and its
//! neighbours check one function each, with `infer` for what is not written down.

mod aliases;
mod arrays;
mod body;
pub(crate) mod builtins;
mod calls;
mod collect;
mod control;
mod einsum;
mod elements;
mod explain;
mod fields;
mod finish;
mod index;
mod infer;
pub mod items;
mod lengths;
mod loops;
mod maps;
mod operators;
mod ordering;
mod patterns;
mod resolve;
mod shapes;
mod tensors;
mod unused;
mod usefulness;
mod written;

use std::collections::BTreeSet;

use self::items::{Items, TypeDecl};
pub(crate) use self::resolve::plural;
use crate::diagnostic::Diagnostic;
use crate::hir;
use crate::program::{Elem, Span, Stored};
use crate::source::{PRELUDE_FILE, Sources};
use crate::stack::with_deep_stack;
use crate::suggest::nearest;
use crate::syntax;
use crate::syntax::ast::Item;
use crate::types::Ty;

/// A program whose types are right, before its dims have numbers.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) items: Items,
    /// By function, in the order of [`Items::functions`].
    pub(crate) functions: Vec<hir::Function>,
    /// What runs for each instance.
    pub(crate) entry: usize,
    params: Vec<ParamDecl>,
    warnings: Vec<Diagnostic>,
}

/// A dim written as in the source, `3*H`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimExpr(String);

impl std::fmt::Display for DimExpr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// `param wx: f32[D, 3*H]`
#[derive(Clone, Debug)]
pub struct ParamDecl {
    /// What it is called here, and in weights files unless `stored` says otherwise.
    pub name: String,
    /// The type of its elements.
    pub elem: Elem,
    /// From the outermost axis to the innermost; empty for a scalar.
    pub shape: Vec<DimExpr>,
    /// Where weights files have it, if not under its own name.
    pub stored: Option<Stored>,
    /// Where the name is declared.
    pub span: Span,
}

impl ParamDecl {
    /// Whether it is read from a tensor of that name, if that is there.
    pub fn reads(&self, tensor: &str) -> bool {
        let stored = self.stored.as_ref();
        self.name == tensor || stored.is_some_and(|stored| stored.index_of(tensor).is_some())
    }
}

/// `dim H`
#[derive(Clone, Debug)]
pub struct DimDecl {
    /// The name that [`Checked::bind`] takes a number under.
    pub name: String,
    /// Where the name is declared.
    pub span: Span,
}

impl Checked {
    /// The program dims in the order of the source; [`Checked::bind`] gives them numbers.
    pub fn dims(&self) -> Vec<DimDecl> {
        let decl = |dim: &syntax::ast::Ident| DimDecl {
            name: dim.name.clone(),
            span: dim.span.clone(),
        };
        self.items.dims.iter().map(decl).collect()
    }

    /// The parameters in the order of the source.
    pub fn params(&self) -> &[ParamDecl] {
        &self.params
    }

    /// What may not be what was meant, in the order of the source.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
}

/// The function that runs for each instance, unless another is asked for.
pub const MAIN: &str = "main";

/// Parses and checks a file together with the prelude and what it imports.
///
/// # Errors
///
/// Every mistake found, in the order of the source.
pub fn check(sources: &Sources, file: usize) -> Result<Checked, Vec<Diagnostic>> {
    check_with_entry(sources, file, MAIN)
}

/// [`check`] of a program in which the function `entry` runs in place of `main`.
///
/// # Errors
///
/// As those of [`check`].
pub fn check_with_entry(
    sources: &Sources,
    file: usize,
    entry: &str,
) -> Result<Checked, Vec<Diagnostic>> {
    with_deep_stack(|| check_here(sources, file, entry))
}

fn check_here(sources: &Sources, file: usize, entry: &str) -> Result<Checked, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let Some(source) = sources.get(file) else {
        return Err(vec![Diagnostic::error(
            "E0001",
            format!("there is no source file {file}"),
        )]);
    };
    let mut items = Items::default();
    let prelude = match sources.get(PRELUDE_FILE).filter(|_| file != PRELUDE_FILE) {
        Some(prelude) => syntax::parse(PRELUDE_FILE, &prelude.text, &mut diagnostics),
        None => syntax::ast::Module::default(),
    };
    let mut module = syntax::parse(file, &source.text, &mut diagnostics);
    add_imports(sources, file, &mut module, &mut diagnostics);
    let syntax_is_right = diagnostics.is_empty();
    let mut functions = collect::collect(&mut items, PRELUDE_FILE, &prelude, &mut diagnostics);
    functions.extend(collect::collect(
        &mut items,
        file,
        &module,
        &mut diagnostics,
    ));
    check_types(&items, &mut diagnostics);
    let declarations_are_right = diagnostics.is_empty();

    let mut checked = Vec::new();
    for (signature, item) in items.functions.iter().zip(functions) {
        let function = body::check_function(&items, signature, item, entry, &mut diagnostics);
        checked.extend(function);
    }
    if !syntax_is_right {
        // What did not parse declares nothing; names that seem unknown may be in there.
        diagnostics.retain(|diagnostic| !is_about_names(diagnostic));
    }
    let complain = syntax_is_right && declarations_are_right;
    match find_entry(&items, file, entry, complain) {
        Ok(entry) if diagnostics.is_empty() => {
            let params = param_decls(&items);
            let warnings = in_order(unused::warnings(&items, &checked));
            Ok(Checked {
                warnings,
                items,
                functions: checked,
                entry,
                params,
            })
        }
        Ok(_) => Err(in_order(diagnostics)),
        Err(missing) => {
            diagnostics.extend(missing);
            Err(in_order(diagnostics))
        }
    }
}

/// Parses the files that a file imports, and adds their items to its own.
fn add_imports(
    sources: &Sources,
    file: usize,
    module: &mut syntax::ast::Module,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut seen = BTreeSet::from([file]);
    let mut place = 0;
    while let Some(item) = module.items.get(place) {
        place += 1;
        let Item::Import(import) = item else { continue };
        let to = sources.imported(import.span.file, &import.path);
        let to = match to.map(|import| &import.to) {
            Some(Ok(to)) => *to,
            other => {
                let why = match other {
                    Some(Err(why)) => why.as_str(),
                    _ => "files are not read here",
                };
                diagnostics.push(
                    Diagnostic::error("E0111", format!("cannot import `{}`", import.path))
                        .at(&import.span, why),
                );
                continue;
            }
        };
        if let Some(source) = sources.get(to).filter(|_| seen.insert(to)) {
            let imported = syntax::parse(to, &source.text, diagnostics);
            // A program may be imported too; what runs is the one `main` that was asked for.
            let is_main = |item: &Item| matches!(item, Item::Function(f) if f.name.name == MAIN);
            let items = imported.items.into_iter().filter(|item| !is_main(item));
            module.items.extend(items);
        }
    }
}

fn is_about_names(diagnostic: &Diagnostic) -> bool {
    matches!(
        diagnostic.code,
        "E0201" | "E0204" | "E0205" | "E0206" | "E0207"
    )
}

fn param_decls(items: &Items) -> Vec<ParamDecl> {
    let decl = |param: &items::Param| ParamDecl {
        name: param.name.name.clone(),
        elem: param.elem,
        shape: param
            .shape
            .iter()
            .map(|dim| DimExpr(dim.display(&|atom| items.atom_name(&[], atom))))
            .collect(),
        stored: param.stored.clone(),
        span: param.name.span.clone(),
    };
    items.params.iter().map(decl).collect()
}

/// Sorts by place in the source and drops what was found twice.
pub(crate) fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let place = |diagnostic: &Diagnostic| {
        let primary = diagnostic.labels.iter().find(|label| label.primary);
        primary.map(|label| {
            (
                label.span.file,
                label.span.range.start,
                label.span.range.end,
            )
        })
    };
    diagnostics.sort_by_key(place);
    diagnostics.dedup();
    diagnostics
}

/// The member of an instance that is its name, and not an argument.
const ID: &str = "id";

fn find_entry(
    items: &Items,
    file: usize,
    entry: &str,
    complain: bool,
) -> Result<usize, Option<Diagnostic>> {
    match items.functions_named(file, entry) {
        [] if complain => {
            let missing = Diagnostic::error("E0208", format!("the program has no `{entry}`"));
            let near = nearest(entry, items.function_names(file));
            Err(Some(match near {
                Some(near) if entry != MAIN => missing.note(format!("did you mean `{near}`?")),
                _ => missing.note(format!(
                    "the function `{entry}` is what runs for each instance: `fn {entry}(…) -> … {{ … }}`"
                )),
            }))
        }
        [] => Err(None),
        [found, others @ ..] => {
            if let Some(other) = others.first().and_then(|other| items.functions.get(*other)) {
                return Err(Some(
                    Diagnostic::error("E0209", format!("there are two functions `{entry}`"))
                        .at(&other.name.span, "only one can run"),
                ));
            }
            let generic = items
                .functions
                .get(*found)
                .filter(|found| !found.generics.is_empty());
            if let Some(signature) = generic {
                return Err(Some(
                    Diagnostic::error("E0209", format!("`{entry}` cannot be generic"))
                        .at(&signature.name.span, "its types come from the input")
                        .note("write the types of its arguments"),
                ));
            }
            let mut params = items.functions[*found].params.iter();
            if let Some((name, _)) = params.find(|(name, _)| name.name == ID) {
                return Err(Some(
                    Diagnostic::error("E0209", format!("`{entry}` has an argument called `{ID}`"))
                        .at(&name.span, "choose another name")
                        .note(format!("`{ID}` is the name of the instance in the input")),
                ));
            }
            Ok(*found)
        }
    }
}

/// Reports types that no finite value can have.
fn check_types(items: &Items, diagnostics: &mut Vec<Diagnostic>) {
    let mut inhabited: BTreeSet<usize> = BTreeSet::new();
    let mut grew = true;
    while grew {
        grew = false;
        for (index, decl) in items.types.iter().enumerate() {
            if !inhabited.contains(&index) && has_value(decl, &inhabited) {
                grew = inhabited.insert(index);
            }
        }
    }
    for (index, decl) in items.types.iter().enumerate() {
        // A type whose constructors could not be read has none; that was reported.
        if !inhabited.contains(&index) && !decl.constructors.is_empty() {
            diagnostics.push(
                Diagnostic::error(
                    "E0601",
                    format!("no value of `{}` can be built", decl.name.name),
                )
                .at(
                    &decl.name.span,
                    "every constructor needs such a value already",
                )
                .note("add a constructor to end with, such as `Leaf` or `Nil`"),
            );
        }
    }
}

fn has_value(decl: &TypeDecl, inhabited: &BTreeSet<usize>) -> bool {
    decl.constructors.iter().any(|constructor| {
        constructor
            .fields
            .iter()
            .all(|field| type_has_value(field, inhabited))
    })
}

fn type_has_value(ty: &Ty, inhabited: &BTreeSet<usize>) -> bool {
    match ty {
        Ty::Tuple(parts) => parts.iter().all(|part| type_has_value(part, inhabited)),
        Ty::Adt(adt, _) => inhabited.contains(adt),
        // An array may be empty.
        Ty::Array(_)
        | Ty::Tensor { .. }
        | Ty::Str
        | Ty::Generic(_)
        | Ty::Unknown(_)
        | Ty::Error => true,
    }
}
