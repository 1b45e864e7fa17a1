//! Checks one function's body and elaborates it to [`hir`].

use super::MAIN;
use super::infer::{Infer, MAX_TYPE_SIZE};
use super::items::{Items, Signature, Variable};
use super::lengths::{Counted, Lengths};
use super::resolve::{Rule, TypeResolver, lookup_dim};
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, LocalId, Op};
use crate::program::{Elem, Literal, Span};
use crate::suggest::{nearest, value_elsewhere};
use crate::syntax::ast;
use crate::types::{Dim, F32, I32, Ty};

/// Why a type is expected, for the second label of a mismatch.
pub struct Why<'s> {
    pub span: Option<&'s Span>,
    pub text: &'s str,
}

impl Why<'_> {
    pub const NONE: Why<'static> = Why {
        span: None,
        text: "",
    };
}

pub struct Body<'a> {
    pub items: &'a Items,
    pub file: usize,
    pub signature: &'a Signature,
    pub infer: Infer,
    pub locals: Vec<hir::Local>,
    /// Names in scope, the innermost last.
    pub scope: Vec<(String, LocalId)>,
    pub diagnostics: Vec<Diagnostic>,
    pub lengths: Lengths,
    /// The body of `main` or of the entry, where a phase can begin.
    pub phases: Option<Span>,
}

/// Checks a function; `None` when it has mistakes, which are reported.
pub fn check_function(
    items: &Items,
    signature: &Signature,
    item: &ast::FunctionItem,
    entry: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<hir::Function> {
    let may_have_phases = [MAIN, entry].contains(&item.name.name.as_str());
    let mut body = Body {
        items,
        file: item.name.span.file,
        signature,
        infer: Infer::default(),
        locals: Vec::new(),
        scope: Vec::new(),
        diagnostics: Vec::new(),
        lengths: Lengths::default(),
        phases: may_have_phases.then(|| item.body.span.clone()),
    };
    let mut params = Vec::new();
    for (name, ty) in &signature.params {
        params.push(body.declare(name, ty.clone()));
    }
    // A dim that only the result names is whatever the body makes it.
    let free: Vec<Option<Poly>> = signature
        .variables
        .iter()
        .map(|variable| (!variable.bound).then(|| body.infer.fresh_dim()))
        .collect();
    let result = substitute_variables(&signature.result, &|index| free.get(index)?.clone());
    let why = Why {
        span: Some(&signature.result_span),
        text: "because of the declared result",
    };
    let checked = body.expect(&item.body, &result, &why);
    let function = body.finish(params, checked, &item.body.span);
    let fine = body.diagnostics.is_empty();
    diagnostics.append(&mut body.diagnostics);
    fine.then_some(function)
}

/// Replaces dim variables of a signature; those without a replacement stay.
pub fn substitute_variables(ty: &Ty, replace: &dyn Fn(usize) -> Option<Poly>) -> Ty {
    let replace = |atom| match atom {
        Atom::Variable(index) => replace(index),
        _ => None,
    };
    ty.map(
        &mut |dim| match dim {
            Dim::Poly(poly) => poly.substitute(&replace).map_or(Dim::Any, Dim::Poly),
            Dim::Any => Dim::Any,
        },
        &mut Ty::clone,
    )
}

impl Body<'_> {
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub fn declare(&mut self, name: &ast::Ident, ty: Ty) -> LocalId {
        self.locals.push(hir::Local {
            name: name.name.clone(),
            ty,
            span: name.span.clone(),
        });
        self.lengths.levels.push(self.infer.level());
        let id = self.locals.len() - 1;
        self.scope.push((name.name.clone(), id));
        id
    }

    /// A local that the source does not name.
    pub fn temporary(&mut self, name: &str, ty: Ty, span: &Span) -> LocalId {
        self.locals.push(hir::Local {
            name: name.to_owned(),
            ty,
            span: span.clone(),
        });
        self.lengths.levels.push(self.infer.level());
        self.locals.len() - 1
    }

    pub fn lookup(&self, name: &str) -> Option<LocalId> {
        self.scope
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, id)| *id)
    }

    pub fn show(&self, ty: &Ty) -> String {
        let ty = self.infer.resolve(ty);
        self.items
            .show(&self.signature.variables, &self.signature.generics, &ty)
    }

    pub fn show_dim(&self, dim: &Poly) -> String {
        let dim = self.infer.dim(dim);
        dim.display(&|atom| self.items.atom_name(&self.signature.variables, atom))
    }

    pub fn make(&mut self, kind: Kind, ty: Ty, span: &Span) -> hir::Expr {
        let ty = if self.infer.is_small(&ty) {
            ty
        } else {
            self.report(
                Diagnostic::error("E0306", "the type of this is too large")
                    .at(span, format!("more than {MAX_TYPE_SIZE} parts"))
                    .note("declare a `type` for parts of it"),
            );
            Ty::Error
        };
        hir::Expr {
            kind,
            ty,
            span: span.clone(),
        }
    }

    pub fn error(&self, span: &Span) -> hir::Expr {
        hir::Expr {
            kind: Kind::Error,
            ty: Ty::Error,
            span: span.clone(),
        }
    }

    /// Checks that an expression has a type.
    pub fn expect(&mut self, expr: &ast::Expr, ty: &Ty, why: &Why<'_>) -> hir::Expr {
        let checked = self.expr(expr, Some(ty));
        self.coerce(checked, ty, why)
    }

    /// Reports where an expression's type is not the expected one.
    pub fn coerce(&mut self, expr: hir::Expr, expected: &Ty, why: &Why<'_>) -> hir::Expr {
        if self.infer.unify(&expr.ty, expected).is_err() {
            let diagnostic = self.mismatch(&expr, expected, why);
            self.report(diagnostic);
            return self.error(&expr.span);
        }
        expr
    }

    /// Reads a type that is written in the body. Integers may stand in its shapes, which are given with
    /// it.
    pub fn annotation(&mut self, ty: &ast::TypeExpr) -> (Ty, Vec<Counted>) {
        let mut variables = self.signature.variables.clone();
        let own = variables.len();
        let integers = self.named_integers(&ty.span);
        variables.extend(integers.iter().map(|(name, ..)| Variable {
            name: name.clone(),
            span: ty.span.clone(),
            bound: true,
        }));
        let mut resolver = TypeResolver {
            items: self.items,
            file: self.file,
            generics: &self.signature.generics,
            variables: &mut variables,
            diagnostics: &mut self.diagnostics,
            rule: Rule::Fixed,
        };
        let written = resolver.ty(ty);
        let mut counted = Vec::new();
        let mut used = Vec::new();
        written.visit_dims(&mut |dim| used.extend(dim.atoms()));
        for (index, (_, integer, read)) in integers.iter().enumerate() {
            if used.contains(&Atom::Variable(own + index)) {
                counted.push((integer.clone(), read.clone()));
            }
        }
        let integer = |index: usize| Some(integers.get(index.checked_sub(own)?)?.1.clone());
        (substitute_variables(&written, &integer), counted)
    }

    /// Elaborates an expression. `hint` guides literals and empty arrays; it is not enforced.
    pub fn expr(&mut self, expr: &ast::Expr, hint: Option<&Ty>) -> hir::Expr {
        let span = &expr.span;
        match &expr.kind {
            ast::ExprKind::Error => self.error(span),
            ast::ExprKind::Int(value) => self.int(*value, false, span, hint),
            ast::ExprKind::Float(value) => {
                self.make(Kind::Literal(Literal::F32(*value)), F32, span)
            }
            ast::ExprKind::Bool(value) => self.make(
                Kind::Literal(Literal::Bool(*value)),
                Ty::scalar(Elem::Bool),
                span,
            ),
            ast::ExprKind::Text(text) => {
                let kind = Kind::Op(Op::Text(text.clone()), Vec::new());
                self.make(kind, Ty::Str, span)
            }
            ast::ExprKind::Name(name) => self.name(name, hint),
            ast::ExprKind::Call { name, args } => self.call(name, args, span, hint),
            ast::ExprKind::Index { value, indices } => self.index(value, indices, span),
            ast::ExprKind::Field { value, name } => self.field(value, name, span),
            ast::ExprKind::Unary { op, value } => self.unary(*op, value, span, hint),
            ast::ExprKind::Binary {
                op,
                op_span,
                lhs,
                rhs,
            } => self.binary(*op, op_span, lhs, rhs, span, hint),
            ast::ExprKind::Tuple(elements) => self.tuple(elements, span, hint),
            ast::ExprKind::Array(elements) => self.array(elements, span, hint),
            ast::ExprKind::Block { statements, result } => {
                self.block(statements, result, span, hint)
            }
            ast::ExprKind::If {
                cond,
                then,
                otherwise,
            } => self.if_else(cond, then, otherwise, span, hint),
            ast::ExprKind::Match { scrutinee, arms } => {
                self.match_arms(scrutinee, arms, span, hint)
            }
            ast::ExprKind::While { cond, vars, body } => {
                self.while_loop(cond, vars, body, span, hint)
            }
            ast::ExprKind::For {
                pattern,
                array,
                vars,
                body,
            } => self.for_loop(pattern, array, vars, body, span, hint),
        }
    }

    /// An integer literal, which is an f32 where one is expected.
    pub fn int(&mut self, value: u64, negative: bool, span: &Span, hint: Option<&Ty>) -> hir::Expr {
        let wanted = hint
            .map(|hint| self.infer.shallow(hint))
            .and_then(|ty| ty.elem());
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let value = if negative {
            value.saturating_neg()
        } else {
            value
        };
        if wanted == Some(Elem::F32) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a literal is rounded to the nearest f32"
            )]
            let value = value as f64;
            return self.make(Kind::Literal(Literal::F32(value)), F32, span);
        }
        match i32::try_from(value) {
            Ok(value) => self.make(Kind::Literal(Literal::I32(value)), I32, span),
            Err(_) => {
                self.report(
                    Diagnostic::error("E0103", format!("the number `{value}` is too large"))
                        .at(span, "does not fit an i32")
                        .note("integers are 32 bits wide: -2147483648 to 2147483647"),
                );
                self.error(span)
            }
        }
    }

    fn name(&mut self, name: &ast::Ident, hint: Option<&Ty>) -> hir::Expr {
        let span = &name.span;
        if let Some(local) = self.lookup(&name.name) {
            let ty = self
                .locals
                .get(local)
                .map_or(Ty::Error, |local| local.ty.clone());
            return self.make(Kind::Local(local), ty, span);
        }
        if let Some(constant) = self.items.constant(self.file, &name.name) {
            let elem = match constant.value {
                Literal::F32(_) => Elem::F32,
                Literal::I32(_) => Elem::I32,
                Literal::Bool(_) => Elem::Bool,
            };
            return self.make(Kind::Literal(constant.value), Ty::scalar(elem), span);
        }
        if let Some(dim) = lookup_dim(self.items, self.file, &self.signature.variables, &name.name)
        {
            return self.make(Kind::Dim(dim), I32, span);
        }
        if let Some(index) = self.items.param(self.file, &name.name)
            && let Some(param) = self.items.params.get(index)
        {
            let ty = Ty::tensor(param.elem, param.shape.clone());
            return self.make(Kind::Param(index), ty, span);
        }
        if self.items.constructor(self.file, &name.name).is_some() {
            return self.construct(name, &[], span, hint);
        }
        let diagnostic = self.unknown_name(name);
        self.report(diagnostic);
        self.error(span)
    }

    fn unknown_name(&self, name: &ast::Ident) -> Diagnostic {
        let diagnostic = Diagnostic::error("E0201", format!("there is no `{}` here", name.name));
        if self.is_function(&name.name) {
            return Diagnostic::error(
                "E0305",
                format!("the function `{}` is not a value", name.name),
            )
            .at(&name.span, "not called")
            .note(format!(
                "call it, `{}(…)`, or hand it to `map` or `fold`",
                name.name
            ));
        }
        let locals = self.scope.iter().map(|(known, _)| known.as_str());
        let variables = self.signature.variables.iter().map(|v| v.name.as_str());
        let known = locals
            .chain(variables)
            .chain(self.items.value_names(self.file))
            .chain(self.items.constructor_names(self.file));
        let diagnostic = diagnostic.at(&name.span, "not found");
        if let Some(hint) = value_elsewhere(&name.name) {
            return diagnostic.note(hint);
        }
        match nearest(&name.name, known) {
            Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
            None if name.name.starts_with(|c: char| c.is_ascii_uppercase()) => diagnostic.note(
                format!("declare it in a `type`: `type T = {} | …`", name.name),
            ),
            None => diagnostic.note("declare it with `let`, as an argument or as a `param`"),
        }
    }

    fn tuple(&mut self, elements: &[ast::Expr], span: &Span, hint: Option<&Ty>) -> hir::Expr {
        let hints = match hint.map(|hint| self.infer.shallow(hint)) {
            Some(Ty::Tuple(hints)) if hints.len() == elements.len() => hints,
            _ => Vec::new(),
        };
        let elements: Vec<hir::Expr> = elements
            .iter()
            .enumerate()
            .map(|(index, element)| self.expr(element, hints.get(index)))
            .collect();
        let ty = Ty::Tuple(elements.iter().map(|element| element.ty.clone()).collect());
        self.make(Kind::Tuple(elements), ty, span)
    }

    fn array(&mut self, elements: &[ast::Expr], span: &Span, hint: Option<&Ty>) -> hir::Expr {
        let element = match hint.map(|hint| self.infer.shallow(hint)) {
            Some(Ty::Array(element)) => *element,
            _ => self.infer.fresh_type(),
        };
        let mut checked: Vec<hir::Expr> = Vec::new();
        for expr in elements {
            let first = checked.first().map(|first| first.span.clone());
            let why = Why {
                span: first.as_ref(),
                text: "like the first element",
            };
            checked.push(self.expect(expr, &element, &why));
        }
        self.make(Kind::Array(checked), Ty::array(element), span)
    }
}
