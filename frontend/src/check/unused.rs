//! Warnings of values that nothing uses although computing them may end an instance with an error: they
//! are not computed, and the error is lost with them.

use rustc_hash::FxHashSet;

use super::items::Items;
use crate::diagnostic::Diagnostic;
use crate::hir::{Expr, Function, Kind, LocalId, Op, Pattern, PatternKind};
use crate::program::{Binary, Elem, Literal, Span};
use crate::source::PRELUDE_FILE;

/// The warnings of all functions that the program's files define.
pub fn warnings(items: &Items, functions: &[Function]) -> Vec<Diagnostic> {
    let failing = failing(functions);
    let mut warnings = Vec::new();
    for (signature, function) in items.functions.iter().zip(functions) {
        if signature.name.span.file != PRELUDE_FILE {
            of_function(function, &failing, &mut warnings);
        }
    }
    warnings
}

fn of_function(function: &Function, failing: &FxHashSet<usize>, warnings: &mut Vec<Diagnostic>) {
    let mut used: FxHashSet<LocalId> = FxHashSet::default();
    let mut lets: Vec<(&Pattern, &Expr)> = Vec::new();
    each(&function.body, &mut |expr| match &expr.kind {
        Kind::Local(local) => {
            used.insert(*local);
        }
        Kind::Let { pattern, value, .. } => lets.push((pattern, value)),
        _ => {}
    });
    for (pattern, value) in lets {
        let mut bound = Vec::new();
        locals(pattern, &mut bound);
        let name = |local: &LocalId| function.locals.get(*local).map(|local| local.name.as_str());
        let Some(first) = bound.first().and_then(name) else {
            continue;
        };
        let is_meant = |local| used.contains(local) || name(local).is_none_or(is_marked);
        if bound.iter().any(is_meant) || shows(value) {
            continue;
        }
        let Some(cause) = cause(value, failing) else {
            continue;
        };
        warnings.push(
            Diagnostic::warning(
                "W0002",
                format!("nothing uses `{first}`, so it is not computed"),
            )
            .at(&pattern.span, "not used")
            .see(&cause.0, format!("{} here is not an error then", cause.1))
            .note(format!(
                "use it, leave it out, or call it `_{first}` if that is meant"
            )),
        );
    }
}

/// Whether a name says that its value may be left unused.
fn is_marked(name: &str) -> bool {
    name.starts_with('_')
}

fn locals(pattern: &Pattern, bound: &mut Vec<LocalId>) {
    match &pattern.kind {
        PatternKind::Bind(local) => bound.push(*local),
        PatternKind::Construct { fields: parts, .. }
        | PatternKind::Tuple(parts)
        | PatternKind::Or(parts) => parts.iter().for_each(|part| locals(part, bound)),
        PatternKind::Wildcard | PatternKind::Int(_) | PatternKind::Bool(_) => {}
    }
}

/// Whether something of an expression is shown, which needs no other use.
fn shows(value: &Expr) -> bool {
    let mut shows = false;
    each(value, &mut |expr| {
        shows |= matches!(&expr.kind, Kind::Op(Op::Debug(_), _));
    });
    shows
}

/// The functions that may end an instance with an error.
fn failing(functions: &[Function]) -> FxHashSet<usize> {
    let mut failing = FxHashSet::default();
    loop {
        let before = failing.len();
        for (index, function) in functions.iter().enumerate() {
            if !failing.contains(&index) && cause(&function.body, &failing).is_some() {
                failing.insert(index);
            }
        }
        if failing.len() == before {
            return failing;
        }
    }
}

/// What may end an instance with an error, in words, and where.
fn cause(value: &Expr, failing: &FxHashSet<usize>) -> Option<(Span, &'static str)> {
    let mut found = None;
    each(value, &mut |expr| {
        if found.is_none() {
            found = cause_here(expr, failing).map(|what| (expr.span.clone(), what));
        }
    });
    found
}

fn cause_here(expr: &Expr, failing: &FxHashSet<usize>) -> Option<&'static str> {
    let is_literal = |expr: &Expr| matches!(expr.kind, Kind::Literal(Literal::I32(_)));
    match &expr.kind {
        Kind::Call { function, .. } if failing.contains(function) => Some("what goes wrong"),
        Kind::While { .. } => Some("an endless loop"),
        Kind::Op(op, args) => match (op, args.as_slice()) {
            (Op::Index | Op::Gather | Op::SegmentSum | Op::Scatter, _) => {
                Some("an index out of range")
            }
            (Op::Row, [_, index]) if !is_literal(index) => Some("an index out of range"),
            (Op::Slice { bounds: None, .. }, [_, _, ..]) => Some("a bound out of range"),
            (Op::CheckShape, _) => Some("another length"),
            (Op::Binary(Binary::Div | Binary::Rem), [_, by])
                if expr.ty.elem() == Some(Elem::I32) && !is_literal(by) =>
            {
                Some("a division by zero")
            }
            _ => None,
        },
        _ => None,
    }
}

/// Visits an expression and all below it, in the order of the source.
fn each<'e>(root: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    let mut pending = vec![root];
    while let Some(expr) = pending.pop() {
        visit(expr);
        let mut below: Vec<&Expr> = Vec::new();
        match &expr.kind {
            Kind::Error | Kind::Literal(_) | Kind::Local(_) | Kind::Param(_) | Kind::Dim(_) => {}
            Kind::Let { value, body, .. } => below.extend([&**value, body]),
            Kind::Phase(body) => below.push(body),
            Kind::Length { count, body, .. } => below.extend([&**count, body]),
            Kind::Tuple(parts) | Kind::Array(parts) | Kind::Construct { fields: parts, .. } => {
                below.extend(parts);
            }
            Kind::Match { scrutinee, arms } => {
                below.push(scrutinee);
                for arm in arms {
                    below.extend(arm.guard.iter().chain([&arm.body]));
                }
            }
            Kind::If {
                cond,
                then,
                otherwise,
            } => below.extend([&**cond, then, otherwise]),
            Kind::While {
                init, cond, body, ..
            } => below.extend(init.iter().chain([&**cond, &**body])),
            Kind::Map { arrays, body, .. } => below.extend(arrays.iter().chain([&**body])),
            Kind::Fold {
                array, init, body, ..
            } => below.extend([&**array, init, body]),
            Kind::Call { args, .. } | Kind::Op(_, args) => below.extend(args),
        }
        below.reverse();
        pending.append(&mut below);
    }
}
