//! Dims and axes that are written where values are: `zeros([n, D/4])`, `sum(x, axis = -1)`.

use super::body::Body;
use super::calls::Args;
use super::resolve::{combine, lookup_dim, unusable_dim};
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir;
use crate::program::{Literal, Span};
use crate::syntax::ast;

impl Body<'_> {
    /// An integer that is written down, `-1` or a constant of the program.
    pub fn integer(&mut self, expr: &ast::Expr, what: &str) -> Option<i64> {
        let value = match &expr.kind {
            ast::ExprKind::Int(value) => i64::try_from(*value).ok(),
            ast::ExprKind::Unary {
                op: ast::UnaryOp::Neg,
                value,
            } => match &value.kind {
                ast::ExprKind::Int(value) => i64::try_from(*value).ok().map(|value| -value),
                _ => None,
            },
            ast::ExprKind::Name(name) if self.lookup(&name.name).is_none() => {
                match self
                    .items
                    .constant(self.file, &name.name)
                    .map(|constant| constant.value)
                {
                    Some(Literal::I32(value)) => Some(i64::from(value)),
                    _ => None,
                }
            }
            ast::ExprKind::Error => return None,
            _ => None,
        };
        if value.is_none() {
            self.report(
                Diagnostic::error(
                    "E0309",
                    format!("{what} is a number written in the program"),
                )
                .at(&expr.span, "not known before the program runs")
                .note("write a number, or a constant: `let heads = 4` outside functions"),
            );
        }
        value
    }

    /// An axis of a tensor; negative ones count from the end.
    pub fn axis(&mut self, expr: &ast::Expr, rank: usize, value: &hir::Expr) -> Option<usize> {
        let axis = self.integer(expr, "an axis")?;
        let signed = i64::try_from(rank).ok()?;
        let from_start = if axis < 0 { axis + signed } else { axis };
        if (0..signed).contains(&from_start) {
            return usize::try_from(from_start).ok();
        }
        let shown = self.show(&value.ty);
        self.report(
            Diagnostic::error("E0404", format!("`{shown}` has no axis {axis}"))
                .at(
                    &expr.span,
                    format!("expected 0 to {}", rank.saturating_sub(1)),
                )
                .see(&value.span, format!("this is `{shown}`")),
        );
        None
    }

    /// The axis of a built-in: by name, as the argument at `place`, or the default.
    pub fn axis_argument(
        &mut self,
        args: &Args<'_>,
        place: usize,
        rank: usize,
        value: &hir::Expr,
        default: usize,
    ) -> Option<usize> {
        let positional = self.values(args)?.get(place).copied();
        match args.axis.or(positional) {
            Some(axis) => self.axis(axis, rank, value),
            None => Some(default),
        }
    }

    /// Whether an expression is made of numbers and dims alone, as a dim is.
    pub fn is_dim(&self, expr: &ast::Expr) -> bool {
        match &expr.kind {
            ast::ExprKind::Int(_) | ast::ExprKind::Error => true,
            ast::ExprKind::Name(name) if self.lookup(&name.name).is_none() => {
                let variables = &self.signature.variables;
                lookup_dim(self.items, self.file, variables, &name.name).is_some()
            }
            ast::ExprKind::Binary { op, lhs, rhs, .. } => {
                use ast::BinaryOp::{Add, Div, Mul, Sub};
                matches!(op, Add | Sub | Mul | Div) && self.is_dim(lhs) && self.is_dim(rhs)
            }
            _ => false,
        }
    }

    /// A dim that is written as an expression.
    pub fn written_dim(&mut self, expr: &ast::Expr) -> Option<Poly> {
        match &expr.kind {
            ast::ExprKind::Int(value) => return Some(Poly::constant(*value)),
            ast::ExprKind::Error => return None,
            ast::ExprKind::Name(name) if self.lookup(&name.name).is_none() => {
                let variables = &self.signature.variables;
                let found = lookup_dim(self.items, self.file, variables, &name.name);
                if let Some(dim) = found {
                    return self.usable_dim(dim, &expr.span);
                }
            }
            ast::ExprKind::Binary { op, lhs, rhs, .. } => {
                let op = match op {
                    ast::BinaryOp::Add => Some(ast::DimOp::Add),
                    ast::BinaryOp::Sub => Some(ast::DimOp::Sub),
                    ast::BinaryOp::Mul => Some(ast::DimOp::Mul),
                    ast::BinaryOp::Div => Some(ast::DimOp::Div),
                    _ => None,
                };
                if let Some(op) = op {
                    let (lhs, rhs) = (self.written_dim(lhs)?, self.written_dim(rhs)?);
                    let result = combine(op, &lhs, &rhs);
                    if result.is_none() {
                        self.report(unusable_dim(&expr.span, op));
                    }
                    return result;
                }
            }
            _ => {}
        }
        self.report(
            Diagnostic::error("E0309", "expected a dim")
                .at(&expr.span, "not a number or a dim by name")
                .note("shapes are made of numbers, dims and constants with + - * /"),
        );
        None
    }

    /// A dim that only the result names has no length that a body could use.
    fn usable_dim(&mut self, dim: Poly, span: &Span) -> Option<Poly> {
        let unbound = dim.atoms().find_map(|atom| match atom {
            Atom::Variable(index) => self
                .signature
                .variables
                .get(index)
                .filter(|variable| !variable.bound),
            _ => None,
        });
        let Some(variable) = unbound else {
            return Some(dim);
        };
        let diagnostic = Diagnostic::error(
            "E0207",
            format!("no argument tells what `{}` is", variable.name),
        )
        .at(span, "its length is not known here")
        .see(&variable.span, "only the result has it")
        .note("`zeros(…)` needs a length; `stack(…)` of an array has its own");
        self.report(diagnostic);
        None
    }
}
