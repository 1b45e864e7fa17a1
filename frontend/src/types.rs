//! Symbolic types, as the checker sees them: dims are polynomials, scalars are tensors of rank 0.
//!
//! Whether a scalar lives on the host or in a tensor is not decided by types here; `stage` answers
//! it once the program is monomorphic.

use crate::dims::{Atom, Poly};
use crate::program::Elem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    Poly(Poly),
    /// `_` below an array or a constructor: each value has a length of its own.
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A scalar when the shape is empty.
    Tensor {
        elem: Elem,
        shape: Vec<Dim>,
    },
    Tuple(Vec<Ty>),
    Array(Box<Ty>),
    /// A text, which only passes through.
    Str,
    /// By its place among the types, with its arguments.
    Adt(usize, Vec<Ty>),
    /// A type parameter of the function or type at hand.
    Generic(usize),
    /// Not yet known, to be found by unification.
    Unknown(usize),
    /// A mistake was reported here; it agrees with everything.
    Error,
}

pub const F32: Ty = Ty::Tensor {
    elem: Elem::F32,
    shape: Vec::new(),
};
pub const I32: Ty = Ty::Tensor {
    elem: Elem::I32,
    shape: Vec::new(),
};
pub const BOOL: Ty = Ty::Tensor {
    elem: Elem::Bool,
    shape: Vec::new(),
};

impl Ty {
    pub fn scalar(elem: Elem) -> Ty {
        Ty::Tensor {
            elem,
            shape: Vec::new(),
        }
    }

    pub fn tensor(elem: Elem, shape: Vec<Poly>) -> Ty {
        Ty::Tensor {
            elem,
            shape: shape.into_iter().map(Dim::Poly).collect(),
        }
    }

    pub fn array(element: Ty) -> Ty {
        Ty::Array(Box::new(element))
    }

    pub fn elem(&self) -> Option<Elem> {
        match self {
            Ty::Tensor { elem, .. } => Some(*elem),
            _ => None,
        }
    }

    pub fn is_scalar(&self) -> bool {
        matches!(self, Ty::Tensor { shape, .. } if shape.is_empty())
    }

    /// Rebuilds the type with its leaves mapped: dims by `dim`, parameters and unknowns by `leaf`.
    pub fn map(&self, dim: &mut dyn FnMut(&Dim) -> Dim, leaf: &mut dyn FnMut(&Ty) -> Ty) -> Ty {
        match self {
            Ty::Tensor { elem, shape } => Ty::Tensor {
                elem: *elem,
                shape: shape.iter().map(dim).collect(),
            },
            Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(|t| t.map(dim, leaf)).collect()),
            Ty::Array(element) => Ty::array(element.map(dim, leaf)),
            Ty::Adt(id, args) => Ty::Adt(*id, args.iter().map(|t| t.map(dim, leaf)).collect()),
            Ty::Str => Ty::Str,
            Ty::Generic(_) | Ty::Unknown(_) | Ty::Error => leaf(self),
        }
    }

    /// Whether the type has at most the given number of parts.
    pub fn is_within(&self, parts: usize) -> bool {
        fn spend(ty: &Ty, left: &mut usize) -> bool {
            let Some(rest) = left.checked_sub(1) else {
                return false;
            };
            *left = rest;
            match ty {
                Ty::Tuple(parts) | Ty::Adt(_, parts) => parts.iter().all(|part| spend(part, left)),
                Ty::Array(element) => spend(element, left),
                _ => true,
            }
        }
        spend(self, &mut { parts })
    }

    /// Replaces type parameters by `args`.
    pub fn instantiate(&self, args: &[Ty]) -> Ty {
        self.map(&mut Dim::clone, &mut |leaf| match leaf {
            Ty::Generic(index) => args.get(*index).cloned().unwrap_or(Ty::Error),
            other => other.clone(),
        })
    }

    /// Visits every dim that is not `_`.
    pub fn visit_dims(&self, visit: &mut dyn FnMut(&Poly)) {
        match self {
            Ty::Tensor { shape, .. } => {
                for dim in shape {
                    if let Dim::Poly(poly) = dim {
                        visit(poly);
                    }
                }
            }
            Ty::Tuple(elements) | Ty::Adt(_, elements) => {
                for element in elements {
                    element.visit_dims(visit);
                }
            }
            Ty::Array(element) => element.visit_dims(visit),
            Ty::Str | Ty::Generic(_) | Ty::Unknown(_) | Ty::Error => {}
        }
    }
}

pub fn elem_name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

/// How the parts of a type that are only numbers here are called in the source.
pub struct Names<'a> {
    pub atom: &'a dyn Fn(Atom) -> String,
    pub adt: &'a dyn Fn(usize) -> String,
    pub generic: &'a dyn Fn(usize) -> String,
}

impl Names<'_> {
    pub fn dim(&self, dim: &Dim) -> String {
        match dim {
            Dim::Poly(poly) => poly.display(self.atom),
            Dim::Any => "_".to_owned(),
        }
    }

    pub fn ty(&self, ty: &Ty) -> String {
        let list = |types: &[Ty]| {
            types
                .iter()
                .map(|ty| self.ty(ty))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match ty {
            Ty::Tensor { elem, shape } if shape.is_empty() => elem_name(*elem).to_owned(),
            Ty::Tensor { elem, shape } => {
                let dims: Vec<String> = shape.iter().map(|dim| self.dim(dim)).collect();
                format!("{}[{}]", elem_name(*elem), dims.join(", "))
            }
            Ty::Tuple(elements) => format!("({})", list(elements)),
            Ty::Array(element) => format!("[{}]", self.ty(element)),
            Ty::Str => "str".to_owned(),
            Ty::Adt(id, args) if args.is_empty() => (self.adt)(*id),
            Ty::Adt(id, args) => format!("{}<{}>", (self.adt)(*id), list(args)),
            Ty::Generic(index) => (self.generic)(*index),
            Ty::Unknown(_) | Ty::Error => "_".to_owned(),
        }
    }
}
