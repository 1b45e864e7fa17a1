//! Instance dims while a function is lowered: the `index` values of lengths, by their names.
//!
//! A dim is named by the first value in scope that has it. Names mean the same length within one
//! function, so that value tells the length wherever the name occurs.

use cohort_dialects::builder::{Builder, Op, Val};
use cohort_frontend::program::{Dim, Type};
use melior::ir::ValueLike;
use rustc_hash::FxHashMap;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use crate::numbers;
use crate::types::width;

/// The name that says nothing; see [`Dim::Instance`].
pub const ANY_LENGTH: &str = "_";

#[derive(Clone, Default)]
pub struct Dims<'c> {
    lengths: RefCell<FxHashMap<String, Val<'c>>>,
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
                    if name != ANY_LENGTH && !self.lengths.borrow().contains_key(name) {
                        let length = numbers::length(at, values[0], axis);
                        self.lengths.borrow_mut().insert(name.clone(), length);
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
            Type::Scalar(_) | Type::Array(_) | Type::Adt(_) | Type::Str => {}
        }
    }

    /// A dim is as long as a host integer says, which must not be negative.
    pub fn count(&mut self, at: Builder<'c>, name: &str, count: Val<'c>) {
        let most = at.index(i64::from(i32::MAX) + 1);
        let count = at.value(Op::CfbWithin, &[count, most], count.r#type());
        let length = at.index_cast(count, at.index_type());
        self.lengths.borrow_mut().insert(name.to_owned(), length);
    }

    /// A dim is as long as this value says, unless something in scope tells already.
    pub fn know(&self, dim: &Dim, length: impl FnOnce() -> Val<'c>) {
        if let Dim::Instance(name) = dim
            && name != ANY_LENGTH
            && !self.lengths.borrow().contains_key(name)
        {
            let length = length();
            self.lengths.borrow_mut().insert(name.clone(), length);
        }
    }

    /// Runs what writes a region; lengths that are computed there are not known after it.
    pub fn within<R>(&self, write: impl FnOnce() -> R) -> R {
        let outside = self.lengths.borrow().clone();
        let written = write();
        *self.lengths.borrow_mut() = outside;
        written
    }

    /// Whether a length was asked for, since this was asked last, that nothing in scope tells.
    pub fn take_missed(&self) -> bool {
        self.missed.replace(false)
    }

    /// The length of a dim, an `index`; 0 where nothing in scope has the dim.
    pub fn size(&self, at: Builder<'c>, dim: &Dim) -> Val<'c> {
        match dim {
            Dim::Known(length) => at.index(*length as i64),
            Dim::Instance(name) => self.named(at, name).unwrap_or_else(|| {
                self.missed.set(true);
                at.index(0)
            }),
        }
    }

    fn named(&self, at: Builder<'c>, name: &str) -> Option<Val<'c>> {
        let known = self.lengths.borrow().get(name).copied();
        known.or_else(|| {
            let length = self.sum(at, name)?;
            self.lengths.borrow_mut().insert(name.to_owned(), length);
            Some(length)
        })
    }

    /// A dim that is written as arithmetic of others, `2*n*k/3 + m - 1`.
    fn sum(&self, at: Builder<'c>, text: &str) -> Option<Val<'c>> {
        if let Ok(number) = text.parse::<i64>() {
            return Some(self::length(at, at.index(number)));
        }
        let mut total: Option<Val<'c>> = None;
        let mut operation = Op::ArithAddi;
        for (place, word) in text.split(' ').enumerate() {
            let (word, negative) = match (place, word.strip_prefix('-')) {
                (0, Some(rest)) => (rest, true),
                _ => (word, false),
            };
            match word {
                "+" => operation = Op::ArithAddi,
                "-" | "" => operation = Op::ArithSubi,
                _ => {
                    let term = self.product(at, word, text)?;
                    total = Some(match (total, negative) {
                        (None, false) => term,
                        (None, true) => combine(at, Op::ArithSubi, at.index(0), term),
                        (Some(total), _) => combine(at, operation, total, term),
                    });
                }
            }
        }
        // A difference of equal lengths folds to a number, which no length may be.
        let is_name = |factor: &str| factor.parse::<i64>().is_err();
        let is_named = |word: &&str| {
            let word = word.trim_start_matches(['-', '+']);
            !word.is_empty() && word.split(['*', '/']).any(is_name)
        };
        match text.contains('-') && text.split(' ').filter(is_named).count() > 1 {
            true => total.map(|total| self::length(at, total)),
            false => total,
        }
    }

    /// `2*n*k/3`, a part of `whole`. Divisions come last; what they leave over is
    /// the instance's error.
    fn product(&self, at: Builder<'c>, text: &str, whole: &str) -> Option<Val<'c>> {
        let mut divisors = text.split('/');
        let mut product: Option<Val<'c>> = None;
        for factor in divisors.next()?.split('*') {
            let factor = self.factor(at, factor, whole)?;
            product = Some(match product {
                None => factor,
                Some(product) => combine(at, Op::ArithMuli, product, factor),
            });
        }
        divisors.try_fold(product?, |product, divisor| {
            let divisor = self.factor(at, divisor, whole)?;
            Some(combine(at, Op::CfbQuotient, product, divisor))
        })
    }

    fn factor(&self, at: Builder<'c>, text: &str, whole: &str) -> Option<Val<'c>> {
        match text.parse::<i64>() {
            Ok(number) => Some(at.index(number)),
            // Names of dims are not made of themselves.
            Err(_) if text == whole => None,
            Err(_) => self.lengths.borrow().get(text).copied(),
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

/// A number as a length like any other: nothing is folded to a known shape by it.
pub fn length<'c>(at: Builder<'c>, number: Val<'c>) -> Val<'c> {
    at.value(Op::CfbLength, &[number], at.index_type())
}

fn combine<'c>(at: Builder<'c>, kind: Op, left: Val<'c>, right: Val<'c>) -> Val<'c> {
    at.value(kind, &[left, right], at.index_type())
}
