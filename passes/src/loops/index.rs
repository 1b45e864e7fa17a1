//! Writes arithmetic on indices, and loops that fill tables.
//!
//! Values are of type `index`; what is read from or written to a table of other integers is
//! converted on the way.

use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block, results_of};
use melior::ir::{Type, ValueLike};

use crate::support::ir::TensorType;

#[derive(Clone, Copy)]
pub struct Indices<'c> {
    pub b: Builder<'c>,
    pub index: Type<'c>,
}

impl<'c> Indices<'c> {
    pub fn new(b: Builder<'c>) -> Self {
        Indices {
            b,
            index: Type::index(b.context()),
        }
    }

    pub fn constant(&self, value: i64) -> Val<'c> {
        self.b.index(value)
    }

    pub fn add(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.addi(a, b)
    }

    pub fn sub(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.subi(a, b)
    }

    pub fn mul(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.muli(a, b)
    }

    pub fn max(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.maxsi(a, b)
    }

    /// The quotient rounded down, or up; the divisor is positive.
    pub fn floor_div(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.floordivsi(a, b)
    }

    pub fn ceil_div(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.ceildivsi(a, b)
    }

    pub fn round_down(&self, value: Val<'c>, multiple: i64) -> Val<'c> {
        let multiple = self.constant(multiple);
        self.mul(self.floor_div(value, multiple), multiple)
    }

    pub fn round_up(&self, value: Val<'c>, multiple: i64) -> Val<'c> {
        if multiple == 1 {
            return value;
        }
        let multiple = self.constant(multiple);
        self.mul(self.ceil_div(value, multiple), multiple)
    }

    /// One more where the condition holds.
    fn add_if(&self, value: Val<'c>, condition: Val<'c>) -> Val<'c> {
        let more = self.add(value, self.constant(1));
        self.b.select(condition, more, value)
    }

    fn cast(&self, value: Val<'c>, to: Type<'c>) -> Val<'c> {
        if value.r#type() == to {
            value
        } else {
            self.b.index_cast(value, to)
        }
    }

    /// How many entries a table of one dim has.
    pub fn size(&self, table: Val<'c>) -> Val<'c> {
        self.size_of(table, 0)
    }

    /// The size of one dim of a tensor.
    pub fn size_of(&self, tensor: Val<'c>, axis: usize) -> Val<'c> {
        let axis = self.constant(axis as i64);
        self.b.tensor_dim(tensor, axis)
    }

    /// A table's entry.
    pub fn get(&self, table: Val<'c>, at: &[Val<'c>]) -> Val<'c> {
        self.cast(self.extract(table, at), self.index)
    }

    /// The table with another entry.
    pub fn put(&self, table: Val<'c>, at: Val<'c>, value: Val<'c>) -> Val<'c> {
        let element = TensorType::of_value(table).map_or(self.index, |ty| ty.element);
        self.insert(self.cast(value, element), table, &[at])
    }

    /// A tensor's element, of its own type.
    pub fn extract(&self, tensor: Val<'c>, at: &[Val<'c>]) -> Val<'c> {
        self.b.extract(tensor, at)
    }

    /// The tensor with another element.
    pub fn insert(&self, element: Val<'c>, tensor: Val<'c>, at: &[Val<'c>]) -> Val<'c> {
        self.b.insert_element(element, tensor, at)
    }

    /// A table of so many entries, to be filled.
    pub fn empty(&self, entries: Val<'c>, ty: Type<'c>) -> Val<'c> {
        let dynamic = TensorType::of(ty).is_some_and(|ty| ty.shape == [None]);
        let sizes = if dynamic { vec![entries] } else { vec![] };
        self.b.tensor_empty(&sizes, ty)
    }

    /// `for i in from..to`, carrying values.
    pub fn for_loop(
        &self,
        from: Val<'c>,
        to: Val<'c>,
        carried: &[Val<'c>],
        body: impl FnOnce(&Indices<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let mut arguments = vec![self.index];
        arguments.extend(&types);
        let (region, block) = region_with_block(&arguments, self.b.location);
        let inner = Indices::new(Builder::at_end(self.b.context(), block, self.b.location));
        let arguments = arguments_of(block);
        let yielded = body(&inner, arguments[0], &arguments[1..]);
        inner.b.scf_yield(&yielded);
        results_of(
            self.b
                .scf_for([from, to, self.constant(1)], carried, region),
        )
    }

    /// A loop over the entries of a table.
    pub fn for_each(
        &self,
        table: Val<'c>,
        carried: &[Val<'c>],
        body: impl FnOnce(&Indices<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        self.for_loop(self.constant(0), self.size(table), carried, body)
    }

    /// In how many entries of a table the condition, of entry and position, holds.
    pub fn count(
        &self,
        table: Val<'c>,
        condition: impl FnOnce(&Indices<'c>, Val<'c>, Val<'c>) -> Val<'c>,
    ) -> Val<'c> {
        let zero = self.constant(0);
        self.for_each(table, &[zero], |inner, at, carried| {
            let entry = inner.get(table, &[at]);
            let holds = condition(inner, entry, at);
            vec![inner.add_if(carried[0], holds)]
        })[0]
    }

    /// Other values where the condition holds.
    pub fn if_holds(
        &self,
        condition: Val<'c>,
        carried: &[Val<'c>],
        body: impl FnOnce(&Indices<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let branch = || {
            let (region, block) = region_with_block(&[], self.b.location);
            let inner = Indices::new(Builder::at_end(self.b.context(), block, self.b.location));
            (region, inner)
        };
        let (then, inner) = branch();
        let yielded = body(&inner, carried);
        inner.b.scf_yield(&yielded);
        let (otherwise, inner) = branch();
        inner.b.scf_yield(carried);
        results_of(self.b.scf_if(condition, &types, [then, otherwise]))
    }
}
