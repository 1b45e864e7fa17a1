//! Named fields of constructors, and the alternatives of patterns.

use super::body::Body;
use super::items::ConstructorDecl;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind, LocalId, PatternKind};
use crate::program::Span;
use crate::suggest::{known_elsewhere, nearest};
use crate::syntax::ast::{self, Arg};
use crate::types::Ty;

impl Body<'_> {
    /// The arguments of a constructor in the order of its fields.
    pub fn fields<'e>(
        &mut self,
        name: &ast::Ident,
        args: &'e [Arg],
        span: &Span,
    ) -> Option<Vec<&'e ast::Expr>> {
        if !args.iter().any(|arg| matches!(arg, Arg::Named(..))) {
            return self.plain_arguments(name, args);
        }
        let items = self.items;
        let (adt, constructor) = items.constructor(self.file, &name.name)?;
        let decl = items.types.get(adt)?.constructors.get(constructor)?;
        let mut given: Vec<Option<&'e ast::Expr>> = vec![None; decl.fields.len()];
        for arg in args {
            match arg {
                Arg::Named(label, value) => {
                    let place = self.field_place(decl, label)?;
                    let slot = given.get_mut(place)?;
                    if slot.replace(value).is_some() {
                        self.report(twice(label));
                        return None;
                    }
                }
                Arg::Value(value) => {
                    self.report(nameless(decl, &value.span));
                    return None;
                }
                Arg::Closure(closure) => {
                    self.report(nameless(decl, &closure.span));
                    return None;
                }
            }
        }
        let missing = decl
            .names
            .iter()
            .zip(&given)
            .find(|(_, value)| value.is_none());
        if let Some((missing, _)) = missing {
            self.report(
                Diagnostic::error(
                    "E0302",
                    format!("`{}` is not given its field `{}`", name.name, missing.name),
                )
                .at(span, format!("`{} = …` is missing", missing.name))
                .see(&missing.span, "declared here"),
            );
            return None;
        }
        given.into_iter().collect()
    }

    /// The place of a field by its name; one that there is not is reported.
    fn field_place(&mut self, decl: &ConstructorDecl, label: &ast::Ident) -> Option<usize> {
        let place = decl.field(&label.name);
        if place.is_none() {
            let what = format!("`{}` has no field `{}`", decl.name.name, label.name);
            let diagnostic = Diagnostic::error("E0302", what)
                .at(&label.span, "not found")
                .see(&decl.name.span, "declared here");
            let known = decl.names.iter().map(|name| name.name.as_str());
            self.report(match nearest(&label.name, known) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None if decl.names.is_empty() => {
                    diagnostic.note("its fields have no names: write them in their order")
                }
                None => diagnostic.note(format!("its fields are {}", listed(decl))),
            });
        }
        place
    }

    /// The patterns of a constructor's fields by name; a field that is not named may be anything.
    pub fn named_patterns(
        &mut self,
        name: &ast::Ident,
        decl: &ConstructorDecl,
        fields: &[ast::FieldPattern],
        types: &[Ty],
        span: &Span,
    ) -> Vec<hir::Pattern> {
        let wildcard = |ty: &Ty| hir::Pattern {
            kind: PatternKind::Wildcard,
            ty: ty.instantiate(types),
            span: span.clone(),
        };
        let mut checked: Vec<hir::Pattern> = decl.fields.iter().map(wildcard).collect();
        let mut seen = vec![false; checked.len()];
        for field in fields {
            let place = match &field.name {
                Some(label) => self.field_place(decl, label).filter(|place| {
                    let again = std::mem::replace(&mut seen[*place], true);
                    if again {
                        self.report(twice(label));
                    }
                    !again
                }),
                None => {
                    self.report(nameless(decl, &field.pattern.span).note(format!(
                        "fields that are not looked at may be left out, `{}({} = p)`",
                        name.name,
                        decl.names.first().map_or("field", |first| first.name.as_str())
                    )));
                    None
                }
            };
            let ty = place.and_then(|place| decl.fields.get(place));
            let ty = ty.map_or(Ty::Error, |ty| ty.instantiate(types));
            let pattern = self.pattern_in(&field.pattern, &ty);
            if let Some(slot) = place.and_then(|place| checked.get_mut(place)) {
                *slot = pattern;
            }
        }
        checked
    }

    /// `t.left`: a field that every constructor of the type has.
    pub fn field(&mut self, value: &ast::Expr, name: &ast::Ident, span: &Span) -> hir::Expr {
        let value = self.expr(value, None);
        let items = self.items;
        let (adt, types) = match self.infer.shallow(&value.ty) {
            Ty::Adt(adt, types) => (adt, types),
            Ty::Error => return self.error(span),
            other => {
                let shown = self.show(&other);
                let diagnostic = Diagnostic::error("E0304", format!("`{shown}` has no fields"))
                    .at(&name.span, "not a field")
                    .see(&value.span, format!("this is `{shown}`"));
                self.report(match other {
                    Ty::Tuple(_) => diagnostic.note("take it apart with `let (a, b) = …`"),
                    _ if self.is_function(&name.name) => diagnostic.note(format!(
                        "functions are called with their values, `{}(x)`",
                        name.name
                    )),
                    Ty::Array(_) | Ty::Tensor { .. }
                        if let Some(hint) = known_elsewhere(&name.name) =>
                    {
                        diagnostic.note(hint)
                    }
                    Ty::Array(_) => diagnostic.note("an element is `xs[i]`, the length `len(xs)`"),
                    Ty::Tensor { .. } => diagnostic.note("a row is `x[i]`, the length `len(x)`"),
                    _ => diagnostic.note("only values of declared types have fields"),
                });
                return self.error(span);
            }
        };
        let Some(decl) = items.types.get(adt) else {
            return self.error(span);
        };
        let mut arms: Vec<hir::Arm> = Vec::new();
        let mut ty: Option<&Ty> = None;
        for (constructor, shape) in decl.constructors.iter().enumerate() {
            let Some(place) = shape.field(&name.name) else {
                self.report(self.no_such_field(decl, shape, name));
                return self.error(span);
            };
            let own = &shape.fields[place];
            if ty.replace(own).is_some_and(|ty| ty != own) {
                self.report(
                    Diagnostic::error(
                        "E0304",
                        format!(
                            "the fields `{}` of `{}` differ in type",
                            name.name, decl.name.name
                        ),
                    )
                    .at(&name.span, "which is meant?")
                    .see(&shape.name.span, "another type here")
                    .note("take the value apart with `match`"),
                );
                return self.error(span);
            }
            let own = own.instantiate(&types);
            let opened = self.infer.open(&own);
            let local = self.temporary("field", opened.clone(), &name.span);
            let pattern = |kind, ty: Ty| hir::Pattern {
                kind,
                ty,
                span: name.span.clone(),
            };
            let mut fields: Vec<hir::Pattern> = shape
                .fields
                .iter()
                .map(|ty| pattern(PatternKind::Wildcard, ty.instantiate(&types)))
                .collect();
            fields[place] = pattern(PatternKind::Bind(local), own);
            let kind = PatternKind::Construct {
                adt,
                constructor,
                fields,
            };
            let body = self.make(Kind::Local(local), opened, span);
            arms.push(hir::Arm {
                pattern: pattern(kind, value.ty.clone()),
                guard: None,
                body,
            });
        }
        let ty = match (ty, arms.as_slice()) {
            (_, [only]) => only.body.ty.clone(),
            (Some(ty), _) => self.infer.open(&ty.instantiate(&types)),
            (None, _) => return self.error(span),
        };
        let scrutinee = Box::new(value);
        self.make(Kind::Match { scrutinee, arms }, ty, span)
    }

    fn no_such_field(
        &self,
        decl: &super::items::TypeDecl,
        shape: &ConstructorDecl,
        name: &ast::Ident,
    ) -> Diagnostic {
        let elsewhere = decl
            .constructors
            .iter()
            .any(|c| c.field(&name.name).is_some());
        let what = if elsewhere {
            format!("not every `{}` has a field `{}`", decl.name.name, name.name)
        } else {
            format!("`{}` has no field `{}`", decl.name.name, name.name)
        };
        let diagnostic = Diagnostic::error("E0304", what)
            .at(&name.span, "not found")
            .see(&shape.name.span, format!("`{}` has none", shape.name.name));
        if elsewhere {
            return diagnostic.note("take the value apart with `match`");
        }
        let known = decl.constructors.iter().flat_map(|c| &c.names);
        match nearest(&name.name, known.map(|name| name.name.as_str())) {
            Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
            None if shape.names.is_empty() => {
                diagnostic.note("its fields have no names: take the value apart with `match`")
            }
            None => diagnostic.note(format!("its fields are {}", listed(shape))),
        }
    }

    /// Alternatives bind the same names to values of the same types.
    pub fn or_pattern(&mut self, parts: &[ast::Pattern], ty: &Ty) -> PatternKind {
        let mut checked: Vec<hir::Pattern> = Vec::new();
        let depth = self.scope.len();
        for part in parts {
            let start = self.scope.len();
            let mut pattern = self.pattern_in(part, ty);
            let Some(first) = checked.first() else {
                checked.push(pattern);
                continue;
            };
            let bound = self.scope.split_off(start);
            self.report_bound_twice(&bound);
            let wanted = self.scope.get(depth..).unwrap_or(&[]).to_vec();
            let first = first.clone();
            for (name, _) in &wanted {
                if bound.iter().all(|(own, _)| own != name) {
                    self.report(unequal(name, &first.span, &part.span));
                }
            }
            for (name, own) in &bound {
                let Some((_, local)) = wanted.iter().find(|(known, _)| known == name) else {
                    self.report(unequal(name, &part.span, &first.span));
                    continue;
                };
                let types = binding(&first, *local).zip(binding(&pattern, *own));
                if let Some((left, right)) = types.map(|(l, r)| (l.clone(), r.clone()))
                    && self.infer.unify(&right.ty, &left.ty).is_err()
                {
                    let (l, r) = (self.show(&left.ty), self.show(&right.ty));
                    self.report(
                        Diagnostic::error("E0301", format!("`{name}` is `{l}` and `{r}`"))
                            .at(&right.span, format!("this is `{r}`"))
                            .see(&left.span, format!("this is `{l}`"))
                            .note("write an arm for each"),
                    );
                }
                rebind(&mut pattern, *own, *local);
            }
            checked.push(pattern);
        }
        PatternKind::Or(checked)
    }
}

fn listed(decl: &ConstructorDecl) -> String {
    let names: Vec<String> = decl.names.iter().map(|n| format!("`{}`", n.name)).collect();
    names.join(", ")
}

fn twice(label: &ast::Ident) -> Diagnostic {
    Diagnostic::error(
        "E0302",
        format!("the field `{}` is given twice", label.name),
    )
    .at(&label.span, "given again")
    .note("remove one")
}

fn nameless(decl: &ConstructorDecl, span: &Span) -> Diagnostic {
    let diagnostic = Diagnostic::error("E0302", "some fields are named here and others are not")
        .at(span, "which field is this?");
    if decl.names.is_empty() {
        diagnostic.note("its fields have no names: write all in their order")
    } else {
        diagnostic.note(format!("its fields are {}", listed(decl)))
    }
}

fn unequal(name: &str, here: &Span, missing: &Span) -> Diagnostic {
    Diagnostic::error("E0505", format!("not every alternative binds `{name}`"))
        .at(missing, format!("`{name}` would have no value"))
        .see(here, format!("`{name}` is bound here"))
        .note("bind the same names in all, or write an arm for each")
}

/// The pattern that binds a local.
fn binding(pattern: &hir::Pattern, local: LocalId) -> Option<&hir::Pattern> {
    match &pattern.kind {
        PatternKind::Bind(own) if *own == local => Some(pattern),
        PatternKind::Construct { fields: parts, .. }
        | PatternKind::Tuple(parts)
        | PatternKind::Or(parts) => parts.iter().find_map(|part| binding(part, local)),
        _ => None,
    }
}

/// Lets a pattern bind another local in one's place.
fn rebind(pattern: &mut hir::Pattern, from: LocalId, to: LocalId) {
    match &mut pattern.kind {
        PatternKind::Bind(own) if *own == from => *own = to,
        PatternKind::Construct { fields: parts, .. }
        | PatternKind::Tuple(parts)
        | PatternKind::Or(parts) => parts.iter_mut().for_each(|part| rebind(part, from, to)),
        _ => {}
    }
}
