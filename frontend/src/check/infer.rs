//! Unification of types and dims within one function.
//!
//! Types of arguments and results are declared, so what is unknown is little: the elements of an
//! empty array, the type arguments of a call, the dims that a call instantiates. A length that
//! comes to be inside a loop must not leave it under one name, since it differs from turn to turn;
//! levels count the loops around an unknown or a length to keep them apart.

use crate::dims::{Atom, Poly};
use crate::types::{Dim, Ty};

/// A type with more parts than this is refused; sharing could make it exponentially large.
pub const MAX_TYPE_SIZE: usize = 500;

#[derive(Default)]
pub struct Infer {
    types: Vec<(Option<Ty>, u32)>,
    dims: Vec<(Option<Poly>, u32)>,
    opened: Vec<u32>,
    level: u32,
    /// Equations with several unknowns, looked at again when more is known.
    pending: Vec<(Poly, Poly)>,
}

/// Two types do not agree.
#[derive(Debug)]
pub struct Mismatch;

type Unified = Result<(), Mismatch>;

impl Infer {
    pub fn fresh_type(&mut self) -> Ty {
        self.types.push((None, self.level));
        Ty::Unknown(self.types.len() - 1)
    }

    pub fn fresh_dim(&mut self) -> Poly {
        self.dims.push((None, self.level));
        Poly::atom(Atom::Unknown(self.dims.len() - 1))
    }

    /// A length that equals nothing but itself.
    pub fn opened_dim(&mut self) -> Poly {
        self.opened.push(self.level);
        Poly::atom(Atom::Opened(self.opened.len() - 1))
    }

    /// A length that comes to be at a level.
    pub fn opened_at(&mut self, level: u32) -> Poly {
        self.opened.push(level);
        Poly::atom(Atom::Opened(self.opened.len() - 1))
    }

    /// A length that comes to be where all of another's atoms are.
    pub fn opened_with(&mut self, other: &Poly) -> Poly {
        let level = |atom| match atom {
            Atom::Opened(index) => self.opened.get(index).copied().unwrap_or(0),
            _ => 0,
        };
        let level = other.atoms().map(level).max();
        self.opened_at(level.unwrap_or(0))
    }

    /// How many loops are around.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Enters the body of a loop or a closure.
    pub fn enter(&mut self) {
        self.level += 1;
    }

    pub fn leave(&mut self) {
        self.level = self.level.saturating_sub(1);
    }

    /// The type with what is known of its outermost form filled in.
    pub fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty;
        while let Ty::Unknown(index) = ty {
            match self.types.get(*index) {
                Some((Some(known), _)) => ty = known,
                _ => break,
            }
        }
        ty.clone()
    }

    pub fn dim(&self, poly: &Poly) -> Poly {
        let known = |atom| match atom {
            Atom::Unknown(index) => self.dims.get(index)?.0.as_ref().map(|poly| self.dim(poly)),
            _ => None,
        };
        poly.substitute(&known).unwrap_or_default()
    }

    /// The type with everything that is known filled in.
    pub fn resolve(&self, ty: &Ty) -> Ty {
        ty.map(
            &mut |dim| self.resolve_dim(dim),
            &mut |leaf| match self.shallow(leaf) {
                unknown @ Ty::Unknown(_) => unknown,
                Ty::Generic(index) => Ty::Generic(index),
                Ty::Error => Ty::Error,
                known => self.resolve(&known),
            },
        )
    }

    fn resolve_dim(&self, dim: &Dim) -> Dim {
        match dim {
            Dim::Poly(poly) => Dim::Poly(self.dim(poly)),
            Dim::Any => Dim::Any,
        }
    }

    /// Whether the type stays within [`MAX_TYPE_SIZE`].
    pub fn is_small(&self, ty: &Ty) -> bool {
        let mut budget = MAX_TYPE_SIZE;
        self.spend(ty, &mut budget)
    }

    fn spend(&self, ty: &Ty, budget: &mut usize) -> bool {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        match self.shallow(ty) {
            Ty::Tuple(elements) | Ty::Adt(_, elements) => {
                elements.iter().all(|element| self.spend(element, budget))
            }
            Ty::Array(element) => self.spend(&element, budget),
            _ => true,
        }
    }

    /// Gives each `_` of a value at hand a length of its own.
    pub fn open(&mut self, ty: &Ty) -> Ty {
        match self.shallow(ty) {
            Ty::Tensor { elem, shape } => {
                let shape = shape
                    .into_iter()
                    .map(|dim| match dim {
                        Dim::Any => Dim::Poly(self.opened_dim()),
                        known @ Dim::Poly(_) => known,
                    })
                    .collect();
                Ty::Tensor { elem, shape }
            }
            Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(|t| self.open(t)).collect()),
            other => other,
        }
    }

    /// The type as it is seen from outside the innermost loop: lengths that differ by turn are `_`.
    pub fn generalise(&self, ty: &Ty) -> Ty {
        self.generalise_to(ty, self.level.saturating_sub(1))
    }

    fn generalise_to(&self, ty: &Ty, level: u32) -> Ty {
        self.resolve(ty).map(
            &mut |dim| match dim {
                Dim::Poly(poly) if poly.atoms().any(|a| self.is_deeper(a, level)) => Dim::Any,
                other => other.clone(),
            },
            &mut Ty::clone,
        )
    }

    fn is_deeper(&self, atom: Atom, level: u32) -> bool {
        match atom {
            Atom::Opened(index) => self.opened.get(index).is_some_and(|own| *own > level),
            _ => false,
        }
    }

    /// Makes a value of type `found` acceptable where `expected` is wanted.
    pub fn unify(&mut self, found: &Ty, expected: &Ty) -> Unified {
        self.unify_types(found, expected, false)
    }

    /// `exact`: below a declared type's arguments, since `List<f32[3]>` is another type than
    /// `List<f32[_]>` when the program runs.
    fn unify_types(&mut self, found: &Ty, expected: &Ty, exact: bool) -> Unified {
        let (found, expected) = (self.shallow(found), self.shallow(expected));
        match (&found, &expected) {
            (Ty::Error, _) | (_, Ty::Error) => Ok(()),
            (Ty::Unknown(a), Ty::Unknown(b)) if a == b => Ok(()),
            (Ty::Unknown(unknown), other) | (other, Ty::Unknown(unknown)) => {
                self.bind(*unknown, other)
            }
            (
                Ty::Tensor {
                    elem: e1,
                    shape: s1,
                },
                Ty::Tensor {
                    elem: e2,
                    shape: s2,
                },
            ) => {
                if e1 != e2 || s1.len() != s2.len() {
                    return Err(Mismatch);
                }
                // All dims are tried, so that the others are known when one fails.
                let results: Vec<Unified> = s1
                    .iter()
                    .zip(s2)
                    .map(|(f, e)| self.unify_shape_dim(f, e, exact))
                    .collect();
                results.into_iter().collect()
            }
            (Ty::Tuple(f), Ty::Tuple(e)) if f.len() == e.len() => self.unify_all(f, e, exact),
            (Ty::Array(f), Ty::Array(e)) => self.unify_types(f, e, exact),
            (Ty::Adt(f, fs), Ty::Adt(e, es)) if f == e && fs.len() == es.len() => {
                self.unify_all(fs, es, true)
            }
            (Ty::Generic(f), Ty::Generic(e)) if f == e => Ok(()),
            (Ty::Str, Ty::Str) => Ok(()),
            _ => Err(Mismatch),
        }
    }

    fn unify_all(&mut self, found: &[Ty], expected: &[Ty], exact: bool) -> Unified {
        let results: Vec<Unified> = found
            .iter()
            .zip(expected)
            .map(|(f, e)| self.unify_types(f, e, exact))
            .collect();
        results.into_iter().collect()
    }

    fn unify_shape_dim(&mut self, found: &Dim, expected: &Dim, exact: bool) -> Unified {
        match (found, expected) {
            (Dim::Any, Dim::Any) => Ok(()),
            (Dim::Poly(_), Dim::Any) if !exact => Ok(()),
            (Dim::Poly(_), Dim::Any) => Err(Mismatch),
            (Dim::Any, Dim::Poly(_)) => Err(Mismatch),
            (Dim::Poly(f), Dim::Poly(e)) => self.unify_dims(f, e),
        }
    }

    pub fn unify_dims(&mut self, left: &Poly, right: &Poly) -> Unified {
        let (left, right) = (self.dim(left), self.dim(right));
        if left == right {
            return Ok(());
        }
        let difference = left.subtract(&right).ok_or(Mismatch)?;
        let unknown = |atom| matches!(atom, Atom::Unknown(_));
        if !difference.atoms().any(unknown) {
            return Err(Mismatch);
        }
        match difference.solve(&unknown) {
            Some((Atom::Unknown(index), solution)) if !solution.atoms().any(unknown) => {
                let Some((slot, level)) = self.dims.get(index).map(|(_, l)| (index, *l)) else {
                    return Err(Mismatch);
                };
                if solution.atoms().any(|atom| self.is_deeper(atom, level)) {
                    return Err(Mismatch);
                }
                self.dims[slot].0 = Some(solution);
                Ok(())
            }
            _ => {
                self.pending.push((left, right));
                Ok(())
            }
        }
    }

    /// Looks at postponed equations again; the first that cannot hold is given back.
    pub fn settle(&mut self) -> Result<(), (Poly, Poly)> {
        let mut before = usize::MAX;
        while self.pending.len() < before {
            before = self.pending.len();
            for (left, right) in std::mem::take(&mut self.pending) {
                if self.unify_dims(&left, &right).is_err() {
                    return Err((self.dim(&left), self.dim(&right)));
                }
            }
        }
        Ok(())
    }

    /// An equation that never became solvable.
    pub fn take_unsettled(&mut self) -> Option<(Poly, Poly)> {
        let first = self.pending.first().cloned();
        self.pending.clear();
        first
    }

    fn bind(&mut self, unknown: usize, ty: &Ty) -> Unified {
        if !self.is_small(ty) || self.occurs(unknown, ty) {
            return Err(Mismatch);
        }
        let level = self.types.get(unknown).map_or(0, |(_, level)| *level);
        let ty = self.generalise_to(ty, level);
        // What is unknown inside now lives as long as the unknown it is part of.
        self.lower_levels(&ty, level);
        self.types[unknown].0 = Some(ty);
        Ok(())
    }

    fn lower_levels(&mut self, ty: &Ty, level: u32) {
        let mut unknown_dims = Vec::new();
        ty.visit_dims(&mut |poly| unknown_dims.extend(poly.atoms()));
        for atom in unknown_dims {
            if let Atom::Unknown(index) = atom
                && let Some((_, own)) = self.dims.get_mut(index)
            {
                *own = level.min(*own);
            }
        }
        match ty {
            Ty::Unknown(index) => {
                if let Some((_, own)) = self.types.get_mut(*index) {
                    *own = level.min(*own);
                }
            }
            Ty::Tuple(parts) | Ty::Adt(_, parts) => {
                for part in parts {
                    self.lower_levels(part, level);
                }
            }
            Ty::Array(element) => self.lower_levels(element, level),
            Ty::Tensor { .. } | Ty::Str | Ty::Generic(_) | Ty::Error => {}
        }
    }

    fn occurs(&self, unknown: usize, ty: &Ty) -> bool {
        match self.shallow(ty) {
            Ty::Unknown(other) => other == unknown,
            Ty::Tuple(parts) | Ty::Adt(_, parts) => parts.iter().any(|p| self.occurs(unknown, p)),
            Ty::Array(element) => self.occurs(unknown, &element),
            Ty::Tensor { .. } | Ty::Str | Ty::Generic(_) | Ty::Error => false,
        }
    }
}
