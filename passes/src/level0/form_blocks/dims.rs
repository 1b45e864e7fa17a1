//! The instance dims of a block: their lengths as operands, their names as attributes.

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::{Builder, Val, results_of};
use cohort_dialects::keys::{self, Key};
use melior::{
    Context,
    ir::{
        Attribute, TypeLike, ValueLike,
        attribute::{ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute},
        r#type::IntegerType,
    },
};

use super::parts::Part;
use crate::pass::{Failed, error};
use crate::support::dim_equality::{DimEquality, Kind, Length};
use crate::support::dims;

/// What a block's dims are called. No name of a program has a point in it.
pub const DIM: &str = "dim.";

#[derive(Default)]
pub struct Dims<'c> {
    /// The numbers of the dims in their order in the block.
    numbers: Vec<usize>,
    /// Their lengths.
    pub lengths: Vec<Val<'c>>,
    /// Other values that are lengths of these dims, and of which.
    pub others: Vec<(Val<'c>, usize)>,
    /// Of each operand that is not a length, the leading dims.
    leading: Vec<Vec<Length>>,
    rows: Vec<Length>,
}

impl<'c> Dims<'c> {
    /// The dims of a part with these operands and results; a length that no operand is becomes one,
    /// read at `at`.
    pub fn find(
        at: Builder<'c>,
        part: &Part<'c>,
        operands: &[Val<'c>],
        results: &[Val<'c>],
        equality: &mut DimEquality,
    ) -> Result<Dims<'c>, Failed> {
        let mut dims = Dims::default();
        let (lengths, values): (Vec<Val<'c>>, Vec<Val<'c>>) =
            operands.iter().partition(|operand| is_length(**operand));
        dims.leading = values
            .iter()
            .map(|value| equality.leading(*value))
            .collect();
        let inner = part.operations.iter().flat_map(|op| results_of(*op));
        for value in values
            .iter()
            .copied()
            .chain(results.iter().copied())
            .chain(inner)
        {
            for length in equality.leading(value) {
                dims.number(length);
            }
        }
        let mut known: Vec<Option<Val<'c>>> = vec![None; dims.numbers.len()];
        for length in lengths {
            let number = Length::Dim(equality.dim_of_length(length));
            let Some(of) = dims.number(number) else {
                continue;
            };
            known.resize(dims.numbers.len(), None);
            match known[of] {
                None => known[of] = Some(length),
                Some(_) => dims.others.push((length, of)),
            }
        }
        for (number, length) in dims.numbers.iter().zip(known) {
            let wanted = Length::Dim(*number);
            let mut holders = values.iter().zip(&dims.leading);
            let read = || {
                let (value, axis) = holders.find_map(|(value, leading)| {
                    Some((*value, leading.iter().position(|length| *length == wanted)?))
                })?;
                let axis = at.index(axis as i64);
                Some(at.tensor_dim(value, axis))
            };
            let Some(length) = length.or_else(read) else {
                let message = "not supported yet: a length that no operand has";
                return Err(error(part.operations[0], message));
            };
            dims.lengths.push(length);
        }
        dims.rows = results
            .first()
            .map_or(vec![], |result| equality.leading(*result));
        Ok(dims)
    }

    fn number(&mut self, length: Length) -> Option<usize> {
        let Length::Dim(number) = length else {
            return None;
        };
        let known = self.numbers.iter().position(|known| *known == number);
        Some(known.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        }))
    }

    /// The operands of the block: the lengths, then all that are none.
    pub fn operands(&self, operands: Vec<Val<'c>>) -> Vec<Val<'c>> {
        if self.numbers.is_empty() {
            return operands;
        }
        let lengths = self.lengths.iter().copied();
        let others = operands.into_iter().filter(|operand| !is_length(*operand));
        lengths.chain(others).collect()
    }

    pub fn attributes(
        &self,
        context: &'c Context,
        kind: &Kind,
    ) -> Vec<(Key<'static>, Attribute<'c>)> {
        let unit = match kind {
            Kind::Plain => return vec![],
            Kind::Rows(_) => Unit::Rows,
            Kind::Calls => Unit::Calls,
        };
        let list = |elements: Vec<Attribute<'c>>| ArrayAttribute::new(context, &elements).into();
        let name = |place: usize| -> Attribute<'c> {
            FlatSymbolRefAttribute::new(context, &format!("{DIM}{place}")).into()
        };
        let leading = |lengths: &Vec<Length>| -> Attribute<'c> {
            list(
                lengths
                    .iter()
                    .map(|length| match length {
                        Length::Known(size) => {
                            let ty = IntegerType::new(context, 64).into();
                            IntegerAttribute::new(ty, *size as i64).into()
                        }
                        Length::Dim(number) => {
                            let place = self.numbers.iter().position(|known| known == number);
                            name(place.unwrap_or_default())
                        }
                    })
                    .collect(),
            )
        };
        vec![
            (keys::UNIT, dims::unit_attribute(context, unit)),
            (
                keys::LENGTHS,
                list((0..self.numbers.len()).map(name).collect()),
            ),
            (keys::ROWS, leading(&self.rows)),
            (
                keys::LEADING,
                list(self.leading.iter().map(leading).collect()),
            ),
        ]
    }
}

fn is_length(value: Val<'_>) -> bool {
    value.r#type().is_index()
}
