//! Lengths that a body's own values have: integers of the host that stand in shapes, and arrays.
//!
//! Two lengths are equal where they are by construction: the same name is the same integer, `map`
//! and `reverse` keep the number of elements, `push` adds one. Each integer and each array whose number
//! of elements nothing tells has an atom of its own, as old as its name.

use rustc_hash::{FxHashMap, FxHashSet};

use super::body::Body;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, LocalId, Op, PatternKind};
use crate::program::{Binary, Literal, Span};
use crate::syntax::ast;
use crate::types::{Dim, I32, Ty};

#[derive(Default)]
pub struct Lengths {
    /// How deep in loops each local is declared.
    pub levels: Vec<u32>,
    pub integers: FxHashMap<LocalId, Poly>,
    pub arrays: FxHashMap<LocalId, Poly>,
    /// Atoms of integers that may be negative.
    signed: FxHashSet<Atom>,
    /// The numbers of elements of `range`s, which are 0 where the integer is negative.
    ranges: Vec<(Poly, Poly)>,
}

/// A dim that the host computes, with its number.
pub type Counted = (Poly, hir::Expr);

impl Body<'_> {
    /// A variable that is nothing but a value has the value's lengths.
    pub fn bind_lengths(&mut self, pattern: &hir::Pattern, value: &hir::Expr) {
        let PatternKind::Bind(local) = pattern.kind else {
            return;
        };
        match self.infer.shallow(&value.ty) {
            ty if ty == I32 => {
                if let Some(integer) = self.integer_of(value) {
                    self.lengths.integers.insert(local, integer);
                }
            }
            Ty::Array(_) => {
                if let Some(count) = self.count_of(value) {
                    self.lengths.arrays.insert(local, count);
                }
            }
            _ => {}
        }
    }

    /// An integer as arithmetic of lengths and of integers that have names.
    pub fn integer_of(&mut self, expr: &hir::Expr) -> Option<Poly> {
        match &expr.kind {
            Kind::Literal(Literal::I32(value)) => Some(Poly::integer(*value)),
            Kind::Dim(dim) => Some(dim.clone()),
            Kind::Local(local) if self.infer.shallow(&expr.ty) == I32 => {
                if let Some(known) = self.lengths.integers.get(local) {
                    return Some(known.clone());
                }
                let own = self.atom_of(*local);
                self.lengths.signed.extend(own.as_atom());
                self.lengths.integers.insert(*local, own.clone());
                Some(own)
            }
            Kind::Op(Op::DimSize(axis), args) => match self.infer.shallow(&args.first()?.ty) {
                Ty::Tensor { shape, .. } => match shape.get(*axis)? {
                    Dim::Poly(dim) => Some(self.infer.dim(dim)),
                    Dim::Any => None,
                },
                _ => None,
            },
            Kind::Op(Op::Len, args) => self.count_of(args.first()?),
            Kind::Op(Op::Binary(op), args) => {
                let [left, right] = args.as_slice() else {
                    return None;
                };
                let (left, right) = (self.integer_of(left)?, self.integer_of(right)?);
                match op {
                    Binary::Add => left.add(&right),
                    Binary::Sub => left.subtract(&right),
                    Binary::Mul => left.multiply(&right),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The number of an array's elements.
    pub fn count_of(&mut self, array: &hir::Expr) -> Option<Poly> {
        match &array.kind {
            Kind::Array(elements) => Some(Poly::constant(u64::try_from(elements.len()).ok()?)),
            Kind::Local(local) => {
                if let Some(known) = self.lengths.arrays.get(local) {
                    return Some(known.clone());
                }
                let own = self.atom_of(*local);
                self.lengths.arrays.insert(*local, own.clone());
                Some(own)
            }
            // Arrays that are walked together are equally long.
            Kind::Map { arrays, .. } => self.count_of(arrays.first()?),
            Kind::Op(Op::Reverse, args) => self.count_of(args.first()?),
            Kind::Op(Op::Push, args) => self.count_of(args.first()?)?.add(&Poly::constant(1)),
            Kind::Op(Op::Range, args) => {
                let count = self.integer_of(args.first()?)?;
                let negative = |atom: Atom| self.lengths.signed.contains(&atom);
                if count.is_sum() && !count.atoms().any(negative) {
                    return Some(count);
                }
                let known = self.lengths.ranges.iter().find(|(own, _)| *own == count);
                if let Some((_, length)) = known {
                    return Some(length.clone());
                }
                let length = self.infer.opened_with(&count);
                self.lengths.ranges.push((count, length.clone()));
                Some(length)
            }
            _ => None,
        }
    }

    /// A length that is the local's own.
    fn atom_of(&mut self, local: LocalId) -> Poly {
        let level = self.lengths.levels.get(local).copied();
        self.infer.opened_at(level.unwrap_or_default())
    }

    /// A list of dims, `[n, D/4, k + 1]`, or a single one. Those that are not arithmetic of dims are
    /// numbers of the host.
    pub fn sizes(&mut self, expr: &ast::Expr) -> Option<(Vec<Poly>, Vec<Counted>)> {
        let dims = match &expr.kind {
            ast::ExprKind::Array(dims) => dims.as_slice(),
            _ => std::slice::from_ref(expr),
        };
        let mut counted = Vec::new();
        let mut shape = Vec::new();
        for dim in dims {
            if self.is_dim(dim) || self.is_no_number(dim) {
                shape.push(self.written_dim(dim)?);
                continue;
            }
            let before = self.diagnostics.len();
            let number = self.index_value(dim);
            if let Kind::Literal(Literal::I32(below @ ..0)) = number.kind {
                self.report(
                    Diagnostic::error("E0706", format!("`{below}` is not a length"))
                        .at(&dim.span, "below zero")
                        .note("each length is written, also one that follows from the others: `reshape(x, [n, 2, D/2])`"),
                );
            }
            if self.diagnostics.len() > before {
                return None;
            }
            let size = self.integer_of(&number);
            let size = size.unwrap_or_else(|| self.infer.opened_dim());
            counted.push((size.clone(), number));
            shape.push(size);
        }
        Some((shape, counted))
    }

    /// One dim, which may be a number of the host.
    pub fn size(&mut self, expr: &ast::Expr) -> Option<(Poly, Vec<Counted>)> {
        if let ast::ExprKind::Array(_) = expr.kind {
            return Some((self.written_dim(expr)?, Vec::new()));
        }
        let (mut shape, counted) = self.sizes(expr)?;
        Some((shape.pop()?, counted))
    }

    /// What could only be a dim that does not exist, or no dim at all.
    fn is_no_number(&self, expr: &ast::Expr) -> bool {
        match &expr.kind {
            ast::ExprKind::Name(name) => {
                self.lookup(&name.name).is_none()
                    && self.items.constant(self.file, &name.name).is_none()
            }
            ast::ExprKind::Float(_) | ast::ExprKind::Bool(_) | ast::ExprKind::Array(_) => true,
            _ => false,
        }
    }

    /// An expression whose shape has dims that the host computes.
    pub fn with_sizes(&mut self, counted: Vec<Counted>, body: hir::Expr) -> hir::Expr {
        counted.into_iter().rev().fold(body, |body, (dim, count)| {
            let (ty, span) = (body.ty.clone(), body.span.clone());
            let kind = Kind::Length {
                dim,
                count: Box::new(count),
                body: Box::new(body),
            };
            hir::Expr { kind, ty, span }
        })
    }

    /// A tensor where lengths are expected that may be its own, which is asked when the program runs;
    /// `None` where they are equal anyway or cannot be.
    pub fn same_lengths(
        &mut self,
        value: &hir::Expr,
        expected: &Ty,
        counted: Vec<Counted>,
    ) -> Option<hir::Expr> {
        let (found, wanted) = (self.infer.shallow(&value.ty), self.infer.shallow(expected));
        let (
            Ty::Tensor { elem, shape },
            Ty::Tensor {
                elem: other,
                shape: lengths,
            },
        ) = (&found, &wanted)
        else {
            return None;
        };
        if elem != other || shape.len() != lengths.len() {
            return None;
        }
        let mut differ = false;
        for (own, length) in shape.iter().zip(lengths) {
            let (Dim::Poly(own), Dim::Poly(length)) = (own, length) else {
                return None;
            };
            let (own, length) = (self.infer.dim(own), self.infer.dim(length));
            let difference = own.subtract(&length)?;
            if difference.is_constant(0) {
                continue;
            }
            let differs = |atom| matches!(atom, Atom::Variable(_) | Atom::Opened(_));
            let unknown = |atom| matches!(atom, Atom::Unknown(_));
            let asked = difference.atoms().any(differs) && !difference.atoms().any(unknown);
            if !asked || !length.is_whole_in(&differs) {
                return None;
            }
            differ = true;
        }
        let same = self.op(Op::CheckShape, vec![value.clone()], wanted, &value.span);
        differ.then(|| self.with_sizes(counted, same))
    }

    /// The integers in scope, by their names, with what reads them.
    pub fn named_integers(&mut self, span: &Span) -> Vec<(String, Poly, hir::Expr)> {
        let mut found: Vec<(String, Poly, hir::Expr)> = Vec::new();
        for (name, local) in self.scope.clone().into_iter().rev() {
            let is_integer = self
                .locals
                .get(local)
                .is_some_and(|declared| self.infer.shallow(&declared.ty) == I32);
            if found.iter().any(|(known, ..)| *known == name) || !is_integer {
                continue;
            }
            let read = self.make(Kind::Local(local), I32, span);
            if let Some(integer) = self.integer_of(&read) {
                found.push((name, integer, read));
            }
        }
        found
    }
}
