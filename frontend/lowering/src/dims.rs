//! Instance dims while a function is lowered: the `index` values of lengths, by their names.
//!
//! A dim is named by the first value in scope that has it. Names mean the same length within one
//! function, so that value tells the length wherever the name occurs.

use cohort_dialects::builder::{Builder, Val};
use cohort_frontend::program::{Dim, Type};
use rustc_hash::FxHashMap;
use std::{cell::Cell, rc::Rc};

use crate::numbers;
use crate::types::width;

/// The name that says nothing; see [`Dim::Instance`].
const ANY_LENGTH: &str = "_";

#[derive(Clone, Default)]
pub struct Dims<'c> {
    lengths: FxHashMap<String, Val<'c>>,
    /// Whether a length was asked for that nothing in scope tells.
    missed: Rc<Cell<bool>>,
}

impl<'c> Dims<'c> {
    /// Learns the dims of the SSA values that make up a value of type `ty`. Of arrays and data
    /// types nothing is learnt: they may be empty.
    pub fn learn(&mut self, at: Builder<'c>, ty: &Type, values: &[Val<'c>]) {
        match ty {
            Type::Tensor { shape, .. } => {
                for (axis, dim) in shape.iter().enumerate() {
                    let Dim::Instance(name) = dim else { continue };
                    if name != ANY_LENGTH && !self.lengths.contains_key(name) {
                        let length = numbers::length(at, values[0], axis);
                        self.lengths.insert(name.clone(), length);
                    }
                }
            }
            Type::Tuple(elements) => {
                let mut rest = values;
                for element in elements {
                    let (own, after) = rest.split_at(width(element));
                    self.learn(at, element, own);
                    rest = after;
                }
            }
            Type::Scalar(_) | Type::Array(_) | Type::Adt(_) => {}
        }
    }

    /// Whether a length was asked for, since this was asked last, that nothing in scope tells.
    pub fn take_missed(&self) -> bool {
        self.missed.replace(false)
    }

    /// The length of a dim, an `index`; 0 where nothing in scope has the dim.
    pub fn size(&self, at: Builder<'c>, dim: &Dim) -> Val<'c> {
        match dim {
            Dim::Known(length) => at.index(*length as i64),
            Dim::Instance(name) => match self.lengths.get(name) {
                Some(length) => *length,
                None => {
                    self.missed.set(true);
                    at.index(0)
                }
            },
        }
    }

    /// The lengths of a shape that `tensor.empty` and its like take as operands.
    pub fn sizes(&self, at: Builder<'c>, shape: &[Dim]) -> Vec<Val<'c>> {
        shape
            .iter()
            .filter(|dim| matches!(dim, Dim::Instance(_)))
            .map(|dim| self.size(at, dim))
            .collect()
    }
}
