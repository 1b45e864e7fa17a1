//! One instance of a function: its variables, and how its types and dims get their values.

use rustc_hash::FxHashMap;

use super::{Mono, Request};
use crate::bind::{MAX_DIM, MAX_ELEMENTS};
use crate::check::items::Signature;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, LocalId};
use crate::program::{Dim, Elem, Expr, ExprKind, Function, Literal, Span, Type, Var, VarId};
use crate::types::{self, Ty};

pub struct Instance<'m, 'a> {
    pub mono: &'m mut Mono<'a>,
    pub request: &'m Request,
    pub signature: &'a Signature,
    pub source: &'a hir::Function,
    pub vars: Vec<Var>,
    /// Variables that some expression reads.
    pub used: Vec<bool>,
    /// Where each local of the source lives at the moment.
    pub locals: FxHashMap<LocalId, VarId>,
}

impl<'m, 'a> Instance<'m, 'a> {
    pub fn lower(mono: &'m mut Mono<'a>, request: &'m Request) -> Function {
        let checked = mono.checked;
        let found = checked
            .items
            .functions
            .get(request.function)
            .zip(checked.functions.get(request.function));
        let Some((signature, source)) = found else {
            mono.diagnostics
                .push(Diagnostic::error("E0999", "a checked function is missing"));
            return empty_function();
        };
        let mut instance = Instance {
            mono,
            request,
            signature,
            source,
            vars: Vec::new(),
            used: Vec::new(),
            locals: FxHashMap::default(),
        };
        let params: Vec<VarId> = source
            .params
            .iter()
            .map(|param| instance.declare(*param))
            .collect();
        if request.function == checked.entry {
            instance.check_inputs(&params);
        }
        let result = instance.ty(&signature.result, &signature.result_span);
        let body = instance.expr(&source.body);
        let name = instance.mono.unique_name(&signature.name.name);
        let span = signature.name.span.clone();
        Function {
            name,
            params,
            result,
            body,
            vars: instance.vars,
            span,
        }
    }

    /// Reports lengths of an instance's tensors that are computed: each is read off its tensor.
    fn check_inputs(&mut self, params: &[VarId]) {
        for param in params {
            let Some(var) = self.vars.get(param.0).cloned() else {
                continue;
            };
            let Some(name) = computed_dim(&var.ty) else {
                continue;
            };
            let message = match name.as_str() {
                "0" => "an instance's tensor has a length of 0".to_owned(),
                _ => format!("the length `{name}` of an instance's tensor is computed"),
            };
            self.report(
                Diagnostic::error("E0209", message)
                    .at(
                        &var.span,
                        format!(
                            "a length in an argument of `{}` is a name or a number",
                            self.signature.name.name
                        ),
                    )
                    .note(format!(
                        "give it a name, as in `{}: f32[k]`, and say what it is: `let y: f32[{name}] = {};`",
                        var.name, var.name
                    )),
            );
        }
    }

    /// A new variable.
    pub fn var(&mut self, name: &str, ty: Type, span: &Span) -> VarId {
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            span: span.clone(),
        });
        self.used.push(false);
        VarId(self.vars.len() - 1)
    }

    /// A new variable for a local of the source.
    pub fn declare(&mut self, local: LocalId) -> VarId {
        let Some(declared) = self.source.locals.get(local) else {
            return VarId(0);
        };
        let ty = self.ty(&declared.ty, &declared.span);
        // A function's name that stands for a closure has parameters without names.
        let var = self.var(&declared.name.replace('#', "x"), ty, &declared.span);
        self.locals.insert(local, var);
        var
    }

    /// An expression that reads a variable.
    pub fn read(&mut self, var: VarId, span: &Span) -> Expr {
        if let Some(used) = self.used.get_mut(var.0) {
            *used = true;
        }
        let ty = self
            .vars
            .get(var.0)
            .map_or(Type::Scalar(Elem::I32), |var| var.ty.clone());
        Expr {
            kind: ExprKind::Var(var),
            ty,
            span: span.clone(),
        }
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        // The same line of several instances is one mistake.
        if !self.mono.diagnostics.contains(&diagnostic) {
            self.mono.diagnostics.push(diagnostic);
        }
    }

    /// Stands for what cannot be compiled; the diagnostic keeps it from getting out.
    pub fn placeholder(&self, ty: Type, span: &Span) -> Expr {
        Expr {
            kind: ExprKind::Literal(Literal::I32(0)),
            ty,
            span: span.clone(),
        }
    }

    pub fn ty(&mut self, ty: &Ty, span: &Span) -> Type {
        let (types, dims) = (&self.request.types, &self.request.dims);
        convert(self.mono, ty, types, dims, Some(self.signature), span)
    }

    pub fn dim(&mut self, dim: &Poly, span: &Span) -> Dim {
        convert_dim(
            self.mono,
            dim,
            &self.request.dims,
            Some(self.signature),
            span,
        )
    }

    /// Whether a dim is some number when compiling, whole or not.
    pub fn is_number(&self, dim: &Poly) -> bool {
        substitute(self.mono.values, dim, &self.request.dims)
            .is_some_and(|dim| dim.as_constant().is_some())
    }

    /// The number of a dim, where it is known when compiling and whole.
    pub fn number_of(&self, dim: &Poly) -> Option<u64> {
        let substituted = substitute(self.mono.values, dim, &self.request.dims)?;
        let number = substituted.as_constant().and_then(|ratio| ratio.whole());
        number.and_then(|number| u64::try_from(number).ok())
    }
}

/// The name of a dim that is 0 in all instances.
pub const NO_LENGTH: &str = "0";

/// A length in a type that is neither a number nor a name alone.
fn computed_dim(ty: &Type) -> Option<String> {
    match ty {
        Type::Tensor { shape, .. } => shape.iter().find_map(|dim| match dim {
            Dim::Instance(name) => {
                let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
                let is_name = name != NO_LENGTH && name.chars().all(is_letter);
                (!is_name).then(|| name.clone())
            }
            Dim::Known(_) => None,
        }),
        Type::Tuple(parts) => parts.iter().find_map(computed_dim),
        Type::Array(element) => computed_dim(element),
        Type::Scalar(_) | Type::Adt(_) | Type::Str => None,
    }
}

fn empty_function() -> Function {
    let ty = Type::Scalar(Elem::I32);
    let span = Span::default();
    Function {
        name: String::new(),
        params: Vec::new(),
        result: ty.clone(),
        body: Expr {
            kind: ExprKind::Literal(Literal::I32(0)),
            ty,
            span: span.clone(),
        },
        vars: Vec::new(),
        span,
    }
}

/// A tensor's known dims make no more elements than can be gone through in minutes, whether they are
/// stored or only computed; `what` makes them.
pub fn check_elements(mono: &mut Mono<'_>, shape: &[Dim], span: &Span, what: &str) {
    let known = shape.iter().filter_map(|dim| match dim {
        Dim::Known(size) => Some(*size),
        Dim::Instance(_) => None,
    });
    let mut elements = 1_u128;
    for size in known {
        elements = elements.saturating_mul(u128::from(size));
    }
    if elements <= MAX_ELEMENTS {
        return;
    }
    let diagnostic = Diagnostic::error("E0706", "a tensor of too many elements")
        .at(span, format!("{what} {elements}"))
        .note(format!("a tensor has at most {MAX_ELEMENTS} elements"));
    if !mono.diagnostics.contains(&diagnostic) {
        mono.too_large(diagnostic);
    }
}

/// A symbolic type with its type arguments and dims in place.
pub fn convert(
    mono: &mut Mono<'_>,
    ty: &Ty,
    types: &[Type],
    dims: &[Dim],
    signature: Option<&Signature>,
    span: &Span,
) -> Type {
    match ty {
        Ty::Tensor { elem, shape } if shape.is_empty() => Type::Scalar(*elem),
        Ty::Tensor { elem, shape } => {
            let shape: Vec<Dim> = shape
                .iter()
                .map(|dim| match dim {
                    types::Dim::Poly(poly) => convert_dim(mono, poly, dims, signature, span),
                    types::Dim::Any => Dim::Instance("_".to_owned()),
                })
                .collect();
            check_elements(mono, &shape, span, "the dims that are known make");
            Type::Tensor { elem: *elem, shape }
        }
        Ty::Tuple(parts) => Type::Tuple(
            parts
                .iter()
                .map(|part| convert(mono, part, types, dims, signature, span))
                .collect(),
        ),
        Ty::Array(element) => Type::Array(Box::new(convert(
            mono, element, types, dims, signature, span,
        ))),
        Ty::Str => Type::Str,
        Ty::Adt(adt, args) => {
            let args = args
                .iter()
                .map(|arg| convert(mono, arg, types, dims, signature, span))
                .collect();
            Type::Adt(mono.adt(*adt, args))
        }
        Ty::Generic(index) => types
            .get(*index)
            .cloned()
            .unwrap_or(Type::Scalar(Elem::I32)),
        // The checker lets none of these through.
        Ty::Unknown(_) | Ty::Error => Type::Scalar(Elem::I32),
    }
}

fn substitute(values: &[u64], dim: &Poly, dims: &[Dim]) -> Option<Poly> {
    dim.substitute(&|atom| match atom {
        Atom::Program(index) => values.get(index).map(|value| Poly::constant(*value)),
        Atom::Variable(index) => match dims.get(index)? {
            Dim::Known(size) => Some(Poly::constant(*size)),
            Dim::Instance(_) => None,
        },
        Atom::Opened(_) | Atom::Unknown(_) => None,
    })
}

fn convert_dim(
    mono: &mut Mono<'_>,
    dim: &Poly,
    dims: &[Dim],
    signature: Option<&Signature>,
    span: &Span,
) -> Dim {
    let Some(substituted) = substitute(mono.values, dim, dims) else {
        let shown = show_dim(mono, dim, signature);
        mono.too_large(
            Diagnostic::error("E0706", format!("`{shown}` is too large")).at(span, "in this"),
        );
        return Dim::Known(1);
    };
    let Some(number) = substituted.as_constant() else {
        return Dim::Instance(show_dim(mono, &substituted, signature));
    };
    let size = number.whole().and_then(|number| u64::try_from(number).ok());
    match size {
        // Nothing is ever as long as that, so it is like a length that turned out to be 0.
        Some(0) => return Dim::Instance(NO_LENGTH.to_owned()),
        Some(size) if size <= MAX_DIM => return Dim::Known(size),
        _ => {}
    }
    let shown = show_dim(mono, dim, signature);
    let value = substituted.display(&|_| String::new());
    let problem = match shown == value {
        true => format!("`{value}` is not a length"),
        false => format!("the dim `{shown}` is {value}, which is not a length"),
    };
    let mut diagnostic = Diagnostic::error("E0706", problem).at(
        span,
        format!("a length is a whole number from 0 to {MAX_DIM}"),
    );
    for atom in dim.atoms() {
        if let Atom::Program(index) = atom
            && let Some((dim, value)) = mono
                .checked
                .items
                .dims
                .get(index)
                .zip(mono.values.get(index))
        {
            diagnostic = diagnostic.note(format!("{} = {value}", dim.name));
        }
    }
    // The dim comes up with every value that has it; its first place is enough.
    let is_known = |known: &Diagnostic| known.message == diagnostic.message;
    if !mono.diagnostics.iter().any(is_known) {
        match size {
            Some(_) => mono.too_large(diagnostic),
            None => mono.diagnostics.push(diagnostic),
        }
    }
    Dim::Known(1)
}

/// A dim as the name of an instance dim: equal dims get equal names.
fn show_dim(mono: &Mono<'_>, dim: &Poly, signature: Option<&Signature>) -> String {
    let variables = signature.map_or(&[][..], |signature| signature.variables.as_slice());
    dim.display(&|atom| match atom {
        Atom::Opened(index) => format!("len.{}", index + 1),
        Atom::Variable(index) => match variables.get(index) {
            Some(variable) if variable.name != "_" => variable.name.clone(),
            _ => format!("any.{}", index + 1),
        },
        other => mono.checked.items.atom_name(variables, other),
    })
}
