//! Calls of functions and constructors, and the arguments that are closures.

use std::borrow::Cow;

use super::body::{Body, Why, substitute_variables};
use super::builtins::{BUILTINS, is_builtin};
use super::collect::may_agree;
use super::items::Signature;
use super::operators::is_flexible;
use super::resolve::plural;
use crate::diagnostic::Diagnostic;
use crate::dims::Poly;
use crate::hir::{self, Kind};
use crate::program::Span;
use crate::suggest::{known_elsewhere, nearest};
use crate::syntax::ast::{self, Arg};
use crate::types::{F32, Ty};

/// The arguments of a built-in, with `axis = …` set apart.
pub struct Args<'a> {
    pub name: &'a ast::Ident,
    pub span: &'a Span,
    pub usage: &'static str,
    pub given: Vec<&'a Arg>,
    pub axis: Option<&'a ast::Expr>,
}

impl Body<'_> {
    pub fn is_function(&self, name: &str) -> bool {
        is_builtin(name) || !self.items.functions_named(self.file, name).is_empty()
    }

    pub fn call(
        &mut self,
        name: &ast::Ident,
        args: &[Arg],
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        if self.items.constructor(self.file, &name.name).is_some() {
            return match self.fields(name, args, span) {
                Some(args) => self.construct(name, &args, span, hint),
                None => self.error(span),
            };
        }
        let candidates = self.items.functions_named(self.file, &name.name).to_vec();
        let builtin = BUILTINS.iter().find(|(known, _)| *known == name.name);
        // A function that takes a built-in's name was reported, and is what its calls mean.
        if let (Some((_, usage)), true) = (builtin, candidates.is_empty()) {
            return self.builtin(name, usage, args, span, hint);
        }
        match candidates.as_slice() {
            [] => {
                let diagnostic = self.unknown_function(name);
                self.report(diagnostic);
                // What the arguments get wrong is worth saying too.
                for arg in args {
                    if let Arg::Value(value) = arg {
                        self.expr(value, None);
                    }
                }
                self.error(span)
            }
            [only] => match self.plain_arguments(name, args) {
                Some(args) => self.call_function(*only, name, &args, span),
                None => self.error(span),
            },
            several => self.call_overloaded(several, name, args, span),
        }
    }

    fn unknown_function(&self, name: &ast::Ident) -> Diagnostic {
        if self.lookup(&name.name).is_some() {
            let diagnostic =
                Diagnostic::error("E0305", format!("`{}` is not a function", name.name))
                    .at(&name.span, "a value cannot be called");
            let local = self
                .lookup(&name.name)
                .and_then(|local| self.locals.get(local));
            return match local.map(|local| self.infer.shallow(&local.ty)) {
                Some(Ty::Array(_)) => diagnostic.note("an element of an array is `xs[i]`"),
                Some(ty @ Ty::Tensor { .. }) if !ty.is_scalar() => {
                    diagnostic.note("a row of a tensor is `x[i]`")
                }
                Some(Ty::Tensor { .. }) => diagnostic.note("a product is written `a * (b + c)`"),
                _ => diagnostic.note("only functions, built-ins and constructors are called"),
            };
        }
        let capital = name.name.starts_with(|c: char| c.is_ascii_uppercase());
        let what = if capital { "constructor" } else { "function" };
        let known = self.items.function_names(self.file).into_iter();
        let known = known.chain(self.items.constructor_names(self.file));
        let known = known.chain(BUILTINS.iter().map(|(name, _)| *name));
        let code = if capital { "E0206" } else { "E0204" };
        let diagnostic = Diagnostic::error(code, format!("there is no {what} `{}`", name.name))
            .at(&name.span, "not found");
        if let Some(hint) = known_elsewhere(&name.name) {
            return diagnostic.note(hint);
        }
        match nearest(&name.name, known) {
            Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
            None if capital => diagnostic.note("declare it in a `type`"),
            None => diagnostic.note(format!("define it: `fn {}(…) -> … {{ … }}`", name.name)),
        }
    }

    /// Arguments of what takes neither closures nor names.
    pub fn plain_arguments<'e>(
        &mut self,
        name: &ast::Ident,
        args: &'e [Arg],
    ) -> Option<Vec<&'e ast::Expr>> {
        let mut values = Vec::new();
        for arg in args {
            match arg {
                Arg::Value(value) => values.push(value),
                Arg::Named(label, _) => {
                    self.report(
                        Diagnostic::error(
                            "E0302",
                            format!("`{}` has no argument by name `{}`", name.name, label.name),
                        )
                        .at(&label.span, "not expected here")
                        .note("only some built-ins take a named argument, `axis = …`"),
                    );
                    return None;
                }
                Arg::Closure(closure) => {
                    self.report(closure_misplaced(&closure.span));
                    return None;
                }
            }
        }
        Some(values)
    }

    fn call_function(
        &mut self,
        function: usize,
        name: &ast::Ident,
        args: &[&ast::Expr],
        span: &Span,
    ) -> hir::Expr {
        let items = self.items;
        let Some(signature) = items.functions.get(function) else {
            return self.error(span);
        };
        if signature.params.len() != args.len() {
            self.report(
                Diagnostic::error(
                    "E0302",
                    format!(
                        "`{}` takes {}, not {}",
                        name.name,
                        plural(signature.params.len(), "argument"),
                        args.len()
                    ),
                )
                .at(span, format!("{} given", plural(args.len(), "argument")))
                .see(&signature.name.span, "defined here")
                .note(format!("it is `{}`", items.show_signature(signature))),
            );
            return self.error(span);
        }
        let call = self.instantiate(signature);
        let mut checked = Vec::new();
        for (arg, ((param, _), ty)) in args.iter().zip(signature.params.iter().zip(&call.params)) {
            let why = Why {
                span: Some(&param.span),
                text: "for this argument",
            };
            checked.push(self.expect(arg, ty, &why));
        }
        self.finish_call(function, call, checked, span)
    }

    fn call_overloaded(
        &mut self,
        candidates: &[usize],
        name: &ast::Ident,
        args: &[Arg],
        span: &Span,
    ) -> hir::Expr {
        let Some(values) = self.plain_arguments(name, args) else {
            return self.error(span);
        };
        let checked: Vec<hir::Expr> = values.iter().map(|value| self.expr(value, None)).collect();
        let types: Vec<Ty> = checked
            .iter()
            .map(|arg| self.infer.shallow(&arg.ty))
            .collect();
        let items = self.items;
        let fitting = |fits: &dyn Fn(&Ty, usize) -> bool| -> Vec<usize> {
            let fits = |candidate: &usize| {
                items.functions.get(*candidate).is_some_and(|signature| {
                    let mut params = signature.params.iter().zip(0..);
                    signature.params.len() == types.len()
                        && params.all(|((_, param), index)| fits(param, index))
                })
            };
            candidates.iter().copied().filter(fits).collect()
        };
        let agrees = |param: &Ty, index: usize| may_agree(param, &types[index]);
        let exact = fitting(&agrees);
        // An integer literal is an f32 where nothing takes an i32.
        let fitting = match exact.is_empty() {
            true => fitting(&|param, index| {
                agrees(param, index) || is_flexible(values[index]) && may_agree(param, &F32)
            }),
            false => exact,
        };
        let [function] = fitting.as_slice() else {
            if types.iter().any(|ty| matches!(ty, Ty::Error)) {
                return self.error(span);
            }
            let shown: Vec<String> = types.iter().map(|ty| self.show(ty)).collect();
            let mut diagnostic = Diagnostic::error(
                "E0308",
                format!("no `{}` takes ({})", name.name, shown.join(", ")),
            )
            .at(span, "none of them fits");
            for candidate in candidates {
                if let Some(signature) = items.functions.get(*candidate) {
                    diagnostic =
                        diagnostic.note(format!("there is `{}`", items.show_signature(signature)));
                }
            }
            self.report(diagnostic);
            return self.error(span);
        };
        let Some(signature) = items.functions.get(*function) else {
            return self.error(span);
        };
        let call = self.instantiate(signature);
        let mut coerced = Vec::new();
        for ((arg, written), ((param, _), ty)) in checked
            .into_iter()
            .zip(values)
            .zip(signature.params.iter().zip(&call.params))
        {
            let why = Why {
                span: Some(&param.span),
                text: "for this argument",
            };
            let is_literal = is_flexible(written) && !matches!(arg.ty, Ty::Error);
            coerced.push(match is_literal {
                true => self.expect(written, ty, &why),
                false => self.coerce(arg, ty, &why),
            });
        }
        self.finish_call(*function, call, coerced, span)
    }

    fn instantiate(&mut self, signature: &Signature) -> Instance {
        let types: Vec<Ty> = signature
            .generics
            .iter()
            .map(|_| self.infer.fresh_type())
            .collect();
        let dims: Vec<Poly> = signature
            .variables
            .iter()
            .map(|variable| {
                if variable.bound {
                    self.infer.fresh_dim()
                } else {
                    self.infer.opened_dim()
                }
            })
            .collect();
        let instance = |ty: &Ty| {
            substitute_variables(ty, &|index| dims.get(index).cloned()).instantiate(&types)
        };
        let params = signature
            .params
            .iter()
            .map(|(_, ty)| instance(ty))
            .collect();
        let result = instance(&signature.result);
        Instance {
            params,
            result,
            types,
            dims,
        }
    }

    fn finish_call(
        &mut self,
        function: usize,
        call: Instance,
        args: Vec<hir::Expr>,
        span: &Span,
    ) -> hir::Expr {
        if let Err((left, right)) = self.infer.settle() {
            let (left, right) = (self.show_dim(&left), self.show_dim(&right));
            self.report(
                Diagnostic::error(
                    "E0401",
                    format!("the arguments do not fit: {left} is not {right}"),
                )
                .at(span, "no dims fit all arguments"),
            );
            return self.error(span);
        }
        let result = self.infer.open(&call.result);
        let kind = Kind::Call {
            function,
            types: call.types,
            dims: call.dims,
            args,
        };
        self.make(kind, result, span)
    }

    pub fn construct(
        &mut self,
        name: &ast::Ident,
        args: &[&ast::Expr],
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let items = self.items;
        let Some((adt, constructor)) = items.constructor(self.file, &name.name) else {
            return self.error(span);
        };
        let Some(decl) = items.types.get(adt) else {
            return self.error(span);
        };
        let Some(shape) = decl.constructors.get(constructor) else {
            return self.error(span);
        };
        if shape.fields.len() != args.len() {
            self.report(
                Diagnostic::error(
                    "E0302",
                    format!(
                        "`{}` takes {}, not {}",
                        name.name,
                        plural(shape.fields.len(), "field"),
                        args.len()
                    ),
                )
                .at(span, format!("{} given", plural(args.len(), "field")))
                .see(&shape.name.span, "declared here"),
            );
            return self.error(span);
        }
        let types: Vec<Ty> = match hint.map(|hint| self.infer.shallow(hint)) {
            Some(Ty::Adt(wanted, types)) if wanted == adt => types,
            _ => decl
                .generics
                .iter()
                .map(|_| self.infer.fresh_type())
                .collect(),
        };
        let mut fields = Vec::new();
        for (arg, field) in args.iter().zip(&shape.fields) {
            let why = Why {
                span: Some(&shape.name.span),
                text: "for this constructor",
            };
            fields.push(self.expect(arg, &field.instantiate(&types), &why));
        }
        self.make(
            Kind::Construct {
                constructor,
                fields,
            },
            Ty::Adt(adt, types),
            span,
        )
    }

    /// The closure of a built-in's argument; a function's name stands for one that calls it.
    pub fn closure<'e>(
        &mut self,
        arg: &'e Arg,
        params: usize,
        usage: &str,
    ) -> Option<Cow<'e, ast::Closure>> {
        match arg {
            Arg::Closure(closure) => {
                if closure.params.len() == params {
                    return Some(Cow::Borrowed(closure));
                }
                self.report(
                    Diagnostic::error(
                        "E0302",
                        format!(
                            "this closure takes {}, but it is given {params}",
                            plural(closure.params.len(), "argument"),
                        ),
                    )
                    .at(
                        &closure.span,
                        format!("expected {}", plural(params, "argument")),
                    )
                    .note(format!("it is used as `{usage}`")),
                );
                None
            }
            Arg::Value(ast::Expr {
                kind: ast::ExprKind::Name(name),
                span,
                ..
            }) if self.lookup(&name.name).is_none()
                && (self.is_function(&name.name)
                    || self.items.constructor(self.file, &name.name).is_some()) =>
            {
                Some(Cow::Owned(calling(name, params, span)))
            }
            Arg::Value(ast::Expr { span, .. }) | Arg::Named(ast::Ident { span, .. }, _) => {
                self.report(
                    Diagnostic::error("E0305", "expected a closure or a function's name")
                        .at(span, "this is a value")
                        .note(format!("write `|x| …`; it is used as `{usage}`")),
                );
                None
            }
        }
    }
}

/// A signature with its variables replaced for one call.
struct Instance {
    params: Vec<Ty>,
    result: Ty,
    types: Vec<Ty>,
    dims: Vec<Poly>,
}

pub fn closure_misplaced(span: &Span) -> Diagnostic {
    Diagnostic::error("E0305", "a closure cannot stand here")
        .at(span, "not expected here")
        .note(
            "only `map`, `fold`, `filter`, `any` and `all` take closures; \
             define a function with `fn` instead",
        )
}

/// `|x1, x2| name(x1, x2)`
fn calling(name: &ast::Ident, params: usize, span: &Span) -> ast::Closure {
    // No source can hold these names, so they hide nothing.
    let idents: Vec<ast::Ident> = (1..=params)
        .map(|number| ast::Ident {
            name: format!("#{number}"),
            span: span.clone(),
        })
        .collect();
    let value = |ident: &ast::Ident| ast::Expr {
        kind: ast::ExprKind::Name(ident.clone()),
        span: span.clone(),
        depth: 1,
    };
    let args = idents
        .iter()
        .map(|ident| Arg::Value(value(ident)))
        .collect();
    ast::Closure {
        params: idents
            .iter()
            .map(|ident| ast::Pattern {
                kind: ast::PatternKind::Name(ident.clone()),
                span: span.clone(),
                depth: 1,
            })
            .collect(),
        body: ast::Expr {
            kind: ast::ExprKind::Call {
                name: name.clone(),
                args,
            },
            span: span.clone(),
            depth: 2,
        },
        span: span.clone(),
    }
}
