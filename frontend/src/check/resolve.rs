//! From written types and dims to [`Ty`] and [`Poly`].

use super::infer::MAX_TYPE_SIZE;
use super::items::{Items, Variable};
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::program::{Elem, Literal, Span};
use crate::suggest::{capitalised, nearest, type_elsewhere};
use crate::syntax::ast::{DimExpr, DimKind, DimOp, Ident, TypeExpr, TypeKind};
use crate::types::{Dim, Ty};

/// What an unknown dim name means where a type is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A mistake: constructors' fields, annotations in bodies.
    Fixed,
    /// A mistake where `_` is one too: the program's parameters.
    Parameter,
    /// A new dim variable that the argument binds; `_` is one without a name.
    Argument,
    /// A new dim variable that nothing binds.
    Result,
}

pub struct TypeResolver<'a> {
    pub items: &'a Items,
    pub file: usize,
    pub generics: &'a [String],
    pub variables: &'a mut Vec<Variable>,
    pub diagnostics: &'a mut Vec<Diagnostic>,
    pub rule: Rule,
}

impl TypeResolver<'_> {
    pub fn ty(&mut self, ty: &TypeExpr) -> Ty {
        self.nested(ty, true)
    }

    fn nested(&mut self, ty: &TypeExpr, top: bool) -> Ty {
        match &ty.kind {
            TypeKind::Error => Ty::Error,
            TypeKind::Array(element) => Ty::array(self.nested(element, false)),
            TypeKind::Tuple(elements) => match elements.as_slice() {
                [] => {
                    self.diagnostics.push(
                        Diagnostic::error("E0602", "the empty tuple is not a type")
                            .at(&ty.span, "a tuple has two parts or more")
                            .note("leave it out"),
                    );
                    Ty::Error
                }
                [only] => self.nested(only, top),
                many => Ty::Tuple(many.iter().map(|t| self.nested(t, top)).collect()),
            },
            TypeKind::Tensor { elem, shape } => match elem_named(&elem.name) {
                Some(elem) => {
                    let shape = shape.iter().map(|dim| self.shape_dim(dim, top)).collect();
                    Ty::Tensor { elem, shape }
                }
                None => {
                    let diagnostic =
                        Diagnostic::error("E0602", format!("`{}` has no dims", elem.name))
                            .at(&elem.span, "only f32, i32 and bool make tensors");
                    self.diagnostics.push(match type_elsewhere(&elem.name) {
                        Some(hint) => diagnostic.note(hint),
                        None if self.is_type(&elem.name) => {
                            diagnostic.note(format!("an array is written `[{}]`", elem.name))
                        }
                        None => diagnostic.note("a tensor is written `f32[n, D]`"),
                    });
                    Ty::Error
                }
            },
            TypeKind::Name { name, args } => self.named(name, args, top),
        }
    }

    fn named(&mut self, name: &Ident, args: &[TypeExpr], top: bool) -> Ty {
        let args: Vec<Ty> = args.iter().map(|arg| self.nested(arg, false)).collect();
        let plain = if let Some(elem) = elem_named(&name.name) {
            Ty::scalar(elem)
        } else if name.name == "str" {
            Ty::Str
        } else if let Some(index) = self.generics.iter().position(|g| *g == name.name) {
            Ty::Generic(index)
        } else if let Some(adt) = self.items.type_named(self.file, &name.name) {
            return self.adt(name, adt, args);
        } else if let Some(alias) = self.items.alias(self.file, &name.name) {
            return self.alias(name, alias, &args, top);
        } else {
            let mut diagnostic =
                Diagnostic::error("E0205", format!("there is no type `{}`", name.name))
                    .at(&name.span, "not found");
            let known = self.items.type_names(self.file);
            let known = known.into_iter().chain(["f32", "i32", "bool", "str"]);
            let known = known.chain(self.generics.iter().map(String::as_str));
            diagnostic = match (type_elsewhere(&name.name), nearest(&name.name, known)) {
                (Some(hint), _) => diagnostic.note(hint),
                (None, Some(near)) => diagnostic.note(format!("did you mean `{near}`?")),
                (None, None) => match capitalised(&name.name) {
                    Some(name) => diagnostic.note(format!("declare it: `type {name} = …`")),
                    None => {
                        diagnostic.note("declare it with `type`; its name begins with a capital")
                    }
                },
            };
            self.diagnostics.push(diagnostic);
            return Ty::Error;
        };
        if !args.is_empty() {
            self.diagnostics.push(
                Diagnostic::error("E0602", format!("`{}` takes no type arguments", name.name))
                    .at(&name.span, "not generic"),
            );
        }
        plain
    }

    fn adt(&mut self, name: &Ident, adt: usize, args: Vec<Ty>) -> Ty {
        let Some(decl) = self.items.types.get(adt) else {
            return Ty::Error;
        };
        if self.takes(name, &decl.name, decl.generics.len(), args.len()) {
            Ty::Adt(adt, args)
        } else {
            Ty::Error
        }
    }

    fn is_type(&self, name: &str) -> bool {
        self.items.type_named(self.file, name).is_some()
            || self.items.alias(self.file, name).is_some()
            || self.generics.iter().any(|generic| generic == name)
    }

    /// What an alias stands for.
    fn alias(&mut self, name: &Ident, alias: usize, args: &[Ty], top: bool) -> Ty {
        let Some(alias) = self.items.aliases.get(alias) else {
            return Ty::Error;
        };
        // One that stands for itself was reported.
        let Some(ty) = &alias.ty else {
            return Ty::Error;
        };
        if !self.takes(name, &alias.name, alias.generics.len(), args.len()) {
            return Ty::Error;
        }
        let ty = ty.instantiate(args);
        if !ty.is_within(MAX_TYPE_SIZE) {
            self.diagnostics.push(
                Diagnostic::error("E0306", format!("the type `{}` is too large", name.name))
                    .at(&name.span, format!("more than {MAX_TYPE_SIZE} parts"))
                    .note("declare constructors for parts of it"),
            );
            return Ty::Error;
        }
        if top && self.rule == Rule::Argument {
            return self.name_lengths(&ty, &name.span);
        }
        ty
    }

    /// An argument's `_` that an alias holds, as one that is written there.
    fn name_lengths(&mut self, ty: &Ty, span: &Span) -> Ty {
        match ty {
            Ty::Tensor { elem, shape } => {
                let mut named = Vec::new();
                for dim in shape {
                    named.push(match dim {
                        Dim::Any => self.some_length(span),
                        known @ Dim::Poly(_) => known.clone(),
                    });
                }
                Ty::Tensor {
                    elem: *elem,
                    shape: named,
                }
            }
            Ty::Tuple(parts) => {
                Ty::Tuple(parts.iter().map(|p| self.name_lengths(p, span)).collect())
            }
            other => other.clone(),
        }
    }

    /// Whether a type takes as many type arguments; reports where it does not.
    fn takes(&mut self, name: &Ident, declared: &Ident, wanted: usize, given: usize) -> bool {
        if wanted == given {
            return true;
        }
        self.diagnostics.push(
            Diagnostic::error(
                "E0602",
                format!(
                    "`{}` takes {}, not {}",
                    name.name,
                    plural(wanted, "type"),
                    given
                ),
            )
            .at(
                &name.span,
                format!("expected {}", plural(wanted, "type argument")),
            )
            .see(&declared.span, "declared here"),
        );
        false
    }

    /// A dim variable without a name.
    fn some_length(&mut self, span: &Span) -> Dim {
        self.variables.push(Variable {
            name: "_".to_owned(),
            span: span.clone(),
            bound: true,
        });
        Dim::Poly(Poly::atom(Atom::Variable(self.variables.len() - 1)))
    }

    fn shape_dim(&mut self, dim: &DimExpr, top: bool) -> Dim {
        if matches!(dim.kind, DimKind::Any) {
            if !(top && self.rule == Rule::Argument) {
                return Dim::Any;
            }
            // Within the function the length is the same wherever the argument is used.
            return self.some_length(&dim.span);
        }
        let rule = self.rule;
        if !top && rule == Rule::Result {
            // One name would stand for the lengths of many values.
            self.rule = Rule::Fixed;
        }
        let resolved = self.dim(dim);
        self.rule = rule;
        // A dim that could not be read was reported; `_` agrees with whatever is there.
        resolved.map_or(Dim::Any, Dim::Poly)
    }

    pub fn dim(&mut self, dim: &DimExpr) -> Option<Poly> {
        match &dim.kind {
            DimKind::Error => None,
            DimKind::Number(value) => Some(Poly::constant(*value)),
            DimKind::Name(name) => self.dim_named(name),
            DimKind::Any => {
                self.diagnostics.push(
                    Diagnostic::error("E0207", "`_` has no place in a computed dim")
                        .at(&dim.span, "which length is meant?")
                        .note("give it a name, such as `n`"),
                );
                None
            }
            DimKind::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (self.dim(lhs)?, self.dim(rhs)?);
                let result = combine(*op, &lhs, &rhs);
                if result.is_none() {
                    self.diagnostics.push(unusable_dim(&dim.span, *op));
                }
                result
            }
        }
    }

    fn dim_named(&mut self, name: &Ident) -> Option<Poly> {
        if let Some(poly) = lookup_dim(self.items, self.file, self.variables, &name.name) {
            return Some(poly);
        }
        if matches!(self.rule, Rule::Fixed | Rule::Parameter) {
            if let Some(constant) = self.items.constant(self.file, &name.name) {
                let message = format!("`{}` is no dim", name.name);
                self.diagnostics.push(
                    Diagnostic::error("E0207", message)
                        .at(&name.span, "expected a whole number")
                        .see(&constant.name.span, "declared here")
                        .note("a constant that is a dim is written without a point, `let n = 2`"),
                );
                return None;
            }
            let known = self.items.dim_names(self.file);
            let known = known
                .into_iter()
                .chain(self.variables.iter().map(|v| v.name.as_str()));
            let mut diagnostic =
                Diagnostic::error("E0207", format!("there is no dim `{}`", name.name))
                    .at(&name.span, "not found");
            diagnostic = match nearest(&name.name, known) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None if self.rule == Rule::Parameter => {
                    diagnostic.note(format!("declare it with `dim {}`", name.name))
                }
                None => diagnostic.note(format!(
                    "declare it with `dim {}`, or write `_` for a length that differs by value",
                    name.name
                )),
            };
            self.diagnostics.push(diagnostic);
            return None;
        }
        self.variables.push(Variable {
            name: name.name.clone(),
            span: name.span.clone(),
            bound: self.rule == Rule::Argument,
        });
        Some(Poly::atom(Atom::Variable(self.variables.len() - 1)))
    }
}

/// A dim of the program, a constant or a variable of the function.
pub fn lookup_dim(items: &Items, file: usize, variables: &[Variable], name: &str) -> Option<Poly> {
    if let Some(index) = items.dim(file, name) {
        return Some(Poly::atom(Atom::Program(index)));
    }
    if let Some(constant) = items.constant(file, name)
        && let Literal::I32(value) = constant.value
    {
        return Some(Poly::integer(value));
    }
    let index = variables
        .iter()
        .position(|v| v.name == name && name != "_")?;
    Some(Poly::atom(Atom::Variable(index)))
}

pub fn combine(op: DimOp, lhs: &Poly, rhs: &Poly) -> Option<Poly> {
    match op {
        DimOp::Add => lhs.add(rhs),
        DimOp::Sub => lhs.subtract(rhs),
        DimOp::Mul => lhs.multiply(rhs),
        DimOp::Div => lhs.divide(rhs),
    }
}

pub fn unusable_dim(span: &Span, op: DimOp) -> Diagnostic {
    let diagnostic = Diagnostic::error("E0207", "this dim cannot be computed");
    if op == DimOp::Div {
        diagnostic
            .at(span, "divides by a sum or by zero")
            .note("a dim divides only by numbers, dims and their products")
    } else {
        diagnostic.at(span, "too large")
    }
}

pub fn elem_named(name: &str) -> Option<Elem> {
    match name {
        "f32" => Some(Elem::F32),
        "i32" => Some(Elem::I32),
        "bool" => Some(Elem::Bool),
        _ => None,
    }
}

/// "1 argument", "2 arguments".
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
