//! Lengths of an array's elements, for what needs them also where there are no elements: sums and stacks.
//!
//! A tensor in scope tells its lengths wherever they occur. An array in scope tells the number of its elements, and an
//! integer with a name itself, which are counted here.

use super::body::Body;
use super::control::let_in;
use super::lengths::Counted;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Kind, LocalId, Op, PatternKind};
use crate::program::Span;
use crate::types::{Dim, I32, Ty};

impl Body<'_> {
    /// An operation on an array of tensors, where the lengths of its elements are told that numbers in scope tell.
    pub fn of_elements(&mut self, op: Op, array: hir::Expr, ty: Ty, span: &Span) -> hir::Expr {
        let element = match self.infer.shallow(&array.ty) {
            Ty::Array(element) => self.infer.shallow(&element),
            other => other,
        };
        let Ty::Tensor { shape, .. } = &element else {
            return self.op(op, vec![array], ty, span);
        };
        let local = self.temporary("elements", array.ty.clone(), span);
        let read = self.make(Kind::Local(local), array.ty.clone(), span);
        let mut counted: Vec<Counted> = Vec::new();
        for dim in shape {
            if let Dim::Poly(dim) = dim {
                counted.extend(self.lengths_in_scope(dim, span));
            }
        }
        if counted.is_empty() {
            return self.op(op, vec![array], ty, span);
        }
        let pattern = hir::Pattern {
            kind: PatternKind::Bind(local),
            ty: array.ty.clone(),
            span: span.clone(),
        };
        let value = self.op(op, vec![read], ty, span);
        let_in(vec![(pattern, array)], self.with_sizes(counted, value))
    }

    /// What must be counted so that a dim is known, as far as numbers in scope tell.
    fn lengths_in_scope(&mut self, dim: &Poly, span: &Span) -> Vec<Counted> {
        let untold = self.untold(dim).into_iter();
        untold
            .filter_map(|atom| Some((Poly::atom(atom), self.number_in_scope(atom, span)?)))
            .collect()
    }

    /// The lengths in a dim that no tensor in scope has.
    fn untold(&self, dim: &Poly) -> Vec<Atom> {
        let mut untold: Vec<Atom> = Vec::new();
        for atom in self.infer.dim(dim).atoms() {
            let differs = matches!(atom, Atom::Variable(_) | Atom::Opened(_));
            if differs
                && !untold.contains(&atom)
                && !self.locals_in_scope().any(|(_, ty)| self.tells(&ty, atom))
            {
                untold.push(atom);
            }
        }
        untold
    }

    /// What can be read where the expression at hand stands, with its type.
    fn locals_in_scope(&self) -> impl Iterator<Item = (LocalId, Ty)> + '_ {
        self.scope.iter().filter_map(|(_, local)| {
            let declared = self.locals.get(*local)?;
            Some((*local, self.infer.shallow(&declared.ty)))
        })
    }

    /// Whether a value of the type has a dim that is the atom alone.
    fn tells(&self, ty: &Ty, atom: Atom) -> bool {
        match self.infer.shallow(ty) {
            Ty::Tensor { shape, .. } => self.axis_with(&shape, atom).is_some(),
            Ty::Tuple(parts) => parts.iter().any(|part| self.tells(part, atom)),
            _ => false,
        }
    }

    fn axis_with(&self, shape: &[Dim], atom: Atom) -> Option<usize> {
        shape.iter().position(|dim| match dim {
            Dim::Poly(dim) => self.infer.dim(dim).as_atom() == Some(atom),
            Dim::Any => false,
        })
    }

    /// A length that is the number of elements of an array in scope, or an integer there.
    fn number_in_scope(&mut self, atom: Atom, span: &Span) -> Option<hir::Expr> {
        let is_it = |number: Option<&Poly>| number.and_then(Poly::as_atom) == Some(atom);
        let locals: Vec<(LocalId, Ty)> = self.locals_in_scope().collect();
        let (local, ty) = locals.into_iter().rev().find(|(local, ty)| match ty {
            Ty::Array(_) => is_it(self.lengths.arrays.get(local)),
            ty => *ty == I32 && is_it(self.lengths.integers.get(local)),
        })?;
        let read = self.make(Kind::Local(local), ty.clone(), span);
        Some(match ty {
            Ty::Array(_) => self.op(Op::Len, vec![read], I32, span),
            _ => read,
        })
    }
}
