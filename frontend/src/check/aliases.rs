//! `type Row = f32[H]`: names that stand for types.

use rustc_hash::{FxHashMap, FxHashSet};

use super::collect::names_a_type;
use super::infer::MAX_TYPE_SIZE;
use super::items::{Alias, Items};
use super::resolve::{Rule, TypeResolver, elem_named};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{AliasItem, Item, Module, TypeExpr, TypeItem, TypeKind};
use crate::types::Ty;

/// Declarations that look like a type of one constructor, `type Id = i32`, but whose right side is
/// the name of another type; by their names' places.
pub fn of_names(
    items: &Items,
    file: usize,
    module: &Module,
) -> FxHashMap<(usize, usize), AliasItem> {
    let declared: FxHashSet<&str> = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Type(item) => Some(item.name.name.as_str()),
            Item::Alias(item) => Some(item.name.name.as_str()),
            _ => None,
        })
        .collect();
    let is_type = |item: &TypeItem, name: &str| {
        name != item.name.name
            && (elem_named(name).is_some()
                || declared.contains(name)
                || items.type_named(file, name).is_some()
                || items.alias(file, name).is_some()
                || item.generics.iter().any(|generic| generic.name == name))
    };
    let mut found = FxHashMap::default();
    for item in &module.items {
        let Item::Type(item) = item else { continue };
        let [only] = item.constructors.as_slice() else {
            continue;
        };
        if !only.fields.is_empty() || !is_type(item, &only.name.name) {
            continue;
        }
        let ty = TypeExpr {
            kind: TypeKind::Name {
                name: only.name.clone(),
                args: Vec::new(),
            },
            span: only.name.span.clone(),
            depth: 1,
        };
        let alias = AliasItem {
            name: item.name.clone(),
            generics: item.generics.clone(),
            ty,
        };
        found.insert(place(item), alias);
    }
    found
}

/// Declares aliases and resolves them, each after those that it is written with.
pub fn declare(
    items: &mut Items,
    file: usize,
    written: &[&AliasItem],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut declared: Vec<(usize, &AliasItem)> = Vec::new();
    for item in written {
        if !names_a_type(items, file, &item.name, &item.generics, diagnostics) {
            continue;
        }
        let index = items.aliases.len();
        items.aliases.push(Alias {
            name: item.name.clone(),
            generics: item.generics.iter().map(|g| g.name.clone()).collect(),
            ty: None,
        });
        let name = item.name.name.clone();
        items.scope_mut(file).aliases.insert(name, index);
        declared.push((index, item));
    }
    // How many unresolved aliases each needs, and which need it.
    let mut needs: FxHashMap<usize, usize> = FxHashMap::default();
    let mut needed_by: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (place, (index, item)) in declared.iter().enumerate() {
        let mut named = FxHashSet::default();
        names_in(&item.ty, &mut |name| {
            let hidden = item.generics.iter().any(|generic| generic.name == name);
            if let Some(other) = items.alias(file, name).filter(|_| !hidden)
                && items
                    .aliases
                    .get(other)
                    .is_some_and(|alias| alias.ty.is_none())
            {
                named.insert(other);
            }
        });
        needs.insert(*index, named.len());
        for other in named {
            needed_by.entry(other).or_default().push(place);
        }
    }
    let ready = |(place, (index, _)): (usize, &(usize, _))| (needs[index] == 0).then_some(place);
    let mut ready: Vec<usize> = declared.iter().enumerate().filter_map(ready).collect();
    while let Some(place) = ready.pop() {
        let Some((index, item)) = declared.get(place) else {
            continue;
        };
        let ty = resolve(items, file, item, diagnostics);
        if let Some(alias) = items.aliases.get_mut(*index) {
            alias.ty = Some(ty);
        }
        for other in needed_by.remove(index).unwrap_or_default() {
            if let Some((index, _)) = declared.get(other)
                && let Some(count) = needs.get_mut(index)
            {
                *count -= 1;
                if *count == 0 {
                    ready.push(other);
                }
            }
        }
    }
    if let Some(item) = in_circle(items, file, &declared) {
        diagnostics.push(
            Diagnostic::error(
                "E0602",
                format!("`{}` stands for a type that holds itself", item.name.name),
            )
            .at(&item.ty.span, "has no end")
            .note("only constructors hold their own type: `type List = Nil | Cons(i32, List)`"),
        );
    }
}

/// One of the aliases that stand for themselves; others may wait for it.
fn in_circle<'i>(
    items: &Items,
    file: usize,
    declared: &[(usize, &'i AliasItem)],
) -> Option<&'i AliasItem> {
    let is_open = |index: &usize| items.aliases.get(*index).is_some_and(|a| a.ty.is_none());
    let open: FxHashMap<usize, &AliasItem> = declared
        .iter()
        .filter(|(index, _)| is_open(index))
        .copied()
        .collect();
    let mut index = declared.iter().map(|(index, _)| *index).find(is_open)?;
    let mut seen = FxHashSet::default();
    while seen.insert(index) {
        let mut next = None;
        names_in(&open.get(&index)?.ty, &mut |name| {
            next = next.or_else(|| items.alias(file, name).filter(is_open));
        });
        index = next?;
    }
    open.get(&index).copied()
}

fn resolve(items: &Items, file: usize, item: &AliasItem, diagnostics: &mut Vec<Diagnostic>) -> Ty {
    let generics: Vec<String> = item.generics.iter().map(|g| g.name.clone()).collect();
    let mut resolver = TypeResolver {
        items,
        file,
        generics: &generics,
        variables: &mut Vec::new(),
        diagnostics,
        rule: Rule::Fixed,
    };
    let ty = resolver.ty(&item.ty);
    if ty.is_within(MAX_TYPE_SIZE) {
        return ty;
    }
    diagnostics.push(
        Diagnostic::error(
            "E0306",
            format!("the type `{}` is too large", item.name.name),
        )
        .at(&item.ty.span, format!("more than {MAX_TYPE_SIZE} parts"))
        .note("declare constructors for parts of it"),
    );
    Ty::Error
}

/// What tells an item from all others.
pub fn place(item: &TypeItem) -> (usize, usize) {
    (item.name.span.file, item.name.span.range.start)
}

fn names_in(ty: &TypeExpr, visit: &mut dyn FnMut(&str)) {
    match &ty.kind {
        TypeKind::Name { name, args } => {
            visit(&name.name);
            args.iter().for_each(|arg| names_in(arg, visit));
        }
        TypeKind::Tuple(parts) => parts.iter().for_each(|part| names_in(part, visit)),
        TypeKind::Array(element) => names_in(element, visit),
        TypeKind::Tensor { .. } | TypeKind::Error => {}
    }
}
