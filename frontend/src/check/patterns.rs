//! Patterns: their types, their variables, and whether the arms cover every value.

use super::body::Body;
use super::resolve::plural;
use super::usefulness::{Coverage, Matrix};
use crate::diagnostic::Diagnostic;
use crate::hir::{self, LocalId, PatternKind};
use crate::program::{Elem, Span};
use crate::suggest::nearest;
use crate::syntax::ast;
use crate::types::Ty;

impl Body<'_> {
    /// Checks a pattern against the type of the values it meets and declares its variables.
    pub fn pattern(&mut self, pattern: &ast::Pattern, ty: &Ty) -> hir::Pattern {
        let depth = self.scope.len();
        let checked = self.pattern_in(pattern, ty);
        let bound = self.scope.get(depth..).unwrap_or(&[]).to_vec();
        self.report_bound_twice(&bound);
        checked
    }

    pub fn report_bound_twice(&mut self, bound: &[(String, LocalId)]) {
        for (index, (name, id)) in bound.iter().enumerate() {
            let twice = bound.iter().take(index).find(|(n, _)| n == name);
            let first = twice.and_then(|(_, first)| self.locals.get(*first));
            let Some((first, second)) = first.zip(self.locals.get(*id)) else {
                continue;
            };
            let diagnostic =
                Diagnostic::error("E0202", format!("`{name}` is bound twice in one pattern"))
                    .at(&second.span, "bound again")
                    .see(&first.span, "first bound here")
                    .note("rename one, or write `_` for what is not used");
            self.report(diagnostic);
        }
    }

    pub fn pattern_in(&mut self, pattern: &ast::Pattern, ty: &Ty) -> hir::Pattern {
        let span = &pattern.span;
        let ty = self.infer.shallow(ty);
        let kind = match &pattern.kind {
            ast::PatternKind::Wildcard | ast::PatternKind::Error => PatternKind::Wildcard,
            ast::PatternKind::Name(name) if !is_capital(name) => {
                let ty = self.infer.open(&ty);
                PatternKind::Bind(self.declare(name, ty))
            }
            ast::PatternKind::Name(name) => self.constructor_pattern(name, Some(&[]), &ty, span),
            ast::PatternKind::Constructor { name, fields } => {
                self.constructor_pattern(name, Some(fields), &ty, span)
            }
            ast::PatternKind::AnyFields(name) => self.constructor_pattern(name, None, &ty, span),
            ast::PatternKind::Tuple(parts) => return self.tuple_pattern(parts, ty, span),
            ast::PatternKind::Or(parts) => self.or_pattern(parts, &ty),
            ast::PatternKind::Int(value) => {
                self.literal_pattern(&ty, Elem::I32, span);
                PatternKind::Int(i32::try_from(*value).unwrap_or(0))
            }
            ast::PatternKind::Bool(value) => {
                self.literal_pattern(&ty, Elem::Bool, span);
                PatternKind::Bool(*value)
            }
        };
        hir::Pattern {
            kind,
            ty,
            span: span.clone(),
        }
    }

    fn literal_pattern(&mut self, ty: &Ty, elem: Elem, span: &Span) {
        let literal = Ty::scalar(elem);
        if self.infer.unify(ty, &literal).is_err() {
            let (literal, shown) = (self.show(&literal), self.show(ty));
            let mut diagnostic =
                Diagnostic::error("E0301", format!("expected a pattern for `{shown}`"))
                    .at(span, format!("this matches `{literal}`"));
            if ty.elem() == Some(Elem::F32) {
                diagnostic = diagnostic.note("f32 values are compared with `if`, not matched");
            }
            self.report(diagnostic);
        }
    }

    fn tuple_pattern(&mut self, parts: &[ast::Pattern], ty: Ty, span: &Span) -> hir::Pattern {
        if let [only] = parts {
            return self.pattern_in(only, &ty);
        }
        let types = match &ty {
            Ty::Tuple(types) if types.len() == parts.len() => types.clone(),
            Ty::Unknown(_) => {
                let types: Vec<Ty> = parts.iter().map(|_| self.infer.fresh_type()).collect();
                // An unknown agrees with any tuple.
                let _ = self.infer.unify(&ty, &Ty::Tuple(types.clone()));
                types
            }
            Ty::Error => vec![Ty::Error; parts.len()],
            other => {
                let shown = self.show(other);
                let mut diagnostic =
                    Diagnostic::error("E0301", format!("expected a pattern for `{shown}`"))
                        .at(span, format!("this matches a tuple of {}", parts.len()));
                if other.elem().is_some() && !other.is_scalar() {
                    diagnostic = diagnostic.note("cut a tensor into parts with `split(x)`");
                }
                self.report(diagnostic);
                vec![Ty::Error; parts.len()]
            }
        };
        let parts = parts
            .iter()
            .zip(&types)
            .map(|(part, ty)| self.pattern_in(part, ty))
            .collect();
        hir::Pattern {
            kind: PatternKind::Tuple(parts),
            ty,
            span: span.clone(),
        }
    }

    /// Without patterns of its fields they may be anything.
    fn constructor_pattern(
        &mut self,
        name: &ast::Ident,
        fields: Option<&[ast::FieldPattern]>,
        ty: &Ty,
        span: &Span,
    ) -> PatternKind {
        let items = self.items;
        let found = items.constructor(self.file, &name.name);
        let Some((adt, constructor)) = found else {
            let mut diagnostic =
                Diagnostic::error("E0206", format!("there is no constructor `{}`", name.name))
                    .at(&name.span, "not found");
            let known = items.constructor_names(self.file);
            diagnostic = match nearest(&name.name, known) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None => diagnostic.note("variables in patterns begin in lower case"),
            };
            self.report(diagnostic);
            // The variables still exist, so that their uses are not mistakes of their own.
            for field in fields.unwrap_or_default() {
                self.pattern_in(&field.pattern, &Ty::Error);
            }
            return PatternKind::Wildcard;
        };
        let Some(decl) = items.types.get(adt) else {
            return PatternKind::Wildcard;
        };
        let types = match ty {
            Ty::Adt(wanted, types) if *wanted == adt => types.clone(),
            Ty::Unknown(_) => {
                let types: Vec<Ty> = decl
                    .generics
                    .iter()
                    .map(|_| self.infer.fresh_type())
                    .collect();
                // An unknown agrees with any type.
                let _ = self.infer.unify(ty, &Ty::Adt(adt, types.clone()));
                types
            }
            other => {
                if !matches!(other, Ty::Error) {
                    let shown = self.show(other);
                    let message = format!("expected a pattern for `{shown}`");
                    self.report(
                        Diagnostic::error("E0301", message)
                            .at(span, format!("this matches `{}`", decl.name.name)),
                    );
                }
                vec![Ty::Error; decl.generics.len()]
            }
        };
        let Some(shape) = decl.constructors.get(constructor) else {
            return PatternKind::Wildcard;
        };
        let by_name = |fields: &&[ast::FieldPattern]| fields.iter().any(|f| f.name.is_some());
        if let Some(fields) = fields.filter(by_name) {
            let fields = self.named_patterns(name, shape, fields, &types, span);
            return PatternKind::Construct {
                adt,
                constructor,
                fields,
            };
        }
        let is_short = fields.is_some_and(|fields| fields.len() != shape.fields.len());
        let fields = fields.unwrap_or_default();
        if is_short {
            self.report(
                Diagnostic::error(
                    "E0302",
                    format!(
                        "`{}` has {}, not {}",
                        name.name,
                        plural(shape.fields.len(), "field"),
                        fields.len()
                    ),
                )
                .at(span, format!("{} here", plural(fields.len(), "field")))
                .see(&shape.name.span, "declared here")
                .note(format!(
                    "write `_` for a field that is not used, or `{}(..)` for all of them",
                    name.name
                )),
            );
        }
        let mut checked: Vec<hir::Pattern> = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let ty = shape
                .fields
                .get(index)
                .map_or(Ty::Error, |ty| ty.instantiate(&types));
            let pattern = self.pattern_in(&field.pattern, &ty);
            if index < shape.fields.len() {
                checked.push(pattern);
            }
        }
        for ty in shape.fields.iter().skip(checked.len()) {
            let ty = ty.instantiate(&types);
            checked.push(hir::Pattern {
                kind: PatternKind::Wildcard,
                ty,
                span: span.clone(),
            });
        }
        PatternKind::Construct {
            adt,
            constructor,
            fields: checked,
        }
    }

    /// A pattern that must match every value, as in `let`.
    pub fn irrefutable(&mut self, pattern: &ast::Pattern, ty: &Ty) -> hir::Pattern {
        let checked = self.pattern(pattern, ty);
        let matrix = Matrix { items: self.items };
        if let Coverage::Missing(witness) = matrix.coverage(&[&checked]) {
            self.report(
                Diagnostic::error("E0503", format!("this pattern does not match `{witness}`"))
                    .at(&checked.span, "not every value looks like this")
                    .note("take the value apart with `match`"),
            );
        }
        checked
    }

    /// Reports values that no arm covers and arms that no value reaches.
    pub fn check_arms(&mut self, arms: &[hir::Arm], scrutinee: &hir::Expr, span: &Span) {
        if matches!(self.infer.shallow(&scrutinee.ty), Ty::Error) {
            return;
        }
        if arms.is_empty() {
            let shown = self.show(&scrutinee.ty);
            self.report(
                Diagnostic::error("E0501", "this match has no arms")
                    .at(span, format!("no value of `{shown}` is matched"))
                    .note("write an arm for each constructor, or `_ => …`"),
            );
            return;
        }
        let matrix = Matrix { items: self.items };
        // What an arm with a guard matches may still reach the others.
        let mut sure: Vec<&hir::Pattern> = Vec::new();
        for arm in arms {
            let mut earlier = sure.clone();
            let alternatives = arm.pattern.alternatives();
            let reached: Vec<bool> = alternatives
                .iter()
                .map(|alternative| {
                    let useful = matrix.useful(&earlier, alternative);
                    earlier.push(alternative);
                    useful
                })
                .collect();
            let useless = Diagnostic::error("E0502", "no value reaches this arm");
            if !reached.contains(&true) {
                let text = "the arms before it match everything it does";
                let useless = useless.at(&arm.pattern.span, text);
                self.report(useless.note("remove it, or move it up"));
            } else if let Some((alternative, _)) = alternatives
                .iter()
                .zip(reached)
                .find(|(_, reached)| !reached)
            {
                self.report(
                    Diagnostic::error("E0502", "no value reaches this alternative")
                        .at(
                            &alternative.span,
                            "what stands before it matches everything it does",
                        )
                        .note("remove it"),
                );
            }
            if arm.guard.is_none() {
                sure = earlier;
            }
        }
        match matrix.coverage(&sure) {
            Coverage::Complete => {}
            Coverage::Missing(witness) => {
                let shown = self.show(&scrutinee.ty);
                let mut diagnostic =
                    Diagnostic::error("E0501", format!("no arm matches `{witness}`"))
                        .at(&scrutinee.span, format!("a `{shown}` may be `{witness}`"))
                        .note(format!("add an arm: `{witness} => …`"));
                if sure.len() < arms.len() {
                    diagnostic = diagnostic.note("an arm with a guard may not be taken");
                }
                self.report(diagnostic);
            }
            Coverage::TooLarge => self.report(
                Diagnostic::error("E0504", "this match is too large to check")
                    .at(span, "too many combinations of patterns")
                    .note("match on one value after the other"),
            ),
        }
    }
}

fn is_capital(name: &ast::Ident) -> bool {
    name.name.starts_with(|c: char| c.is_ascii_uppercase())
}
