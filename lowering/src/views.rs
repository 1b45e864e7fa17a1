//! The same elements under other lengths, and values of one type where those of another are expected.
//!
//! The rows of a tensor with instance dims lie one behind another, all dims up to the last instance dim
//! being a count of them. So a shape may become another with the same rows for nothing (`cfb.view`);
//! where a known length becomes part of the count (`cfb.widen`), or leaves it (`tensor.cast`), rows of
//! another size are needed and the value is copied.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys;
use cohort_dialects::types::{array_element, flatten};
use cohort_frontend::program::{Dim, Elem, Type};
use melior::ir::{
    Attribute, Type as MlirType, TypeLike, ValueLike,
    r#type::{DimSize, RankedTensorType, ShapedTypeLike},
};

use crate::cfb;
use crate::dims;
use crate::expr::Lowering;
use crate::numbers;
use crate::types::known;

impl<'c> Lowering<'_, 'c> {
    /// The elements of a tensor in another shape with as many, of which some lengths are not those of
    /// the first.
    pub fn recounted(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        to: &[Dim],
    ) -> Val<'c> {
        // A row is what both have at the end and neither counts.
        let same = from.iter().rev().zip(to.iter().rev());
        let row = same.take_while(|(from, to)| from == to && known(from).is_some());
        let row = row.count().min(from.len() - 1).min(to.len() - 1);
        let (value, _) = self.loosened(at, elem, value, from, from.len() - row);
        self.viewed(at, elem, value, to, to.len() - row)
    }

    /// A tensor whose lengths must be those of `to`, or the instance ends with an error.
    pub fn checked(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        to: &[Dim],
    ) -> Val<'c> {
        let is_open = |axis: &usize| known(&from[*axis]).is_none() || known(&to[*axis]).is_none();
        let Some(last) = (0..from.len()).rev().find(is_open) else {
            return value;
        };
        let (value, loose) = self.loosened(at, elem, value, from, last + 1);
        let all: Vec<Dim> = [
            loose[..=last].iter().map(open).collect(),
            loose[last + 1..].to_vec(),
        ]
        .concat();
        let value = match all == loose {
            true => value,
            false => self.viewed(at, elem, value, &all, last + 1),
        };
        let lengths: Vec<_> = to[..=last]
            .iter()
            .map(|dim| self.dims.size(at, dim))
            .collect();
        let operands = [&[value], &lengths[..]].concat();
        let exact = Attribute::unit(at.context());
        let ty = self.types().tensor(elem, &all);
        let value = at.value_with(Op::CfbView, &operands, ty, &[(keys::EXACT, exact)]);
        self.cast(at, elem, value, &all, to)
    }

    /// A tensor of rows as one of these dims, of which the first `lead` count its rows.
    pub fn viewed(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        to: &[Dim],
        lead: usize,
    ) -> Val<'c> {
        let counted = counted(to, lead);
        let ty = self.types().tensor(elem, &counted);
        let operands = [vec![value], self.dims.sizes(at, &counted)].concat();
        let value = at.value(Op::CfbView, &operands, ty);
        self.cast(at, elem, value, &counted, to)
    }

    /// A tensor whose first `lead` dims count its rows, and its dims then.
    pub fn loosened(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        shape: &[Dim],
        lead: usize,
    ) -> (Val<'c>, Vec<Dim>) {
        let loose = counted(shape, lead);
        (self.cast(at, elem, value, shape, &loose), loose)
    }

    /// A value with the same dims, of which others are part of the type.
    fn cast(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        to: &[Dim],
    ) -> Val<'c> {
        let alike = |(from, to): (&Dim, &Dim)| known(from) == known(to);
        let widens = |(from, to): (&Dim, &Dim)| known(to).is_none() || known(from) == known(to);
        let ty = self.types().tensor(elem, to);
        if from.iter().zip(to).all(alike) {
            value
        } else if from.iter().zip(to).all(widens) {
            widened(at, value, ty)
        } else {
            at.tensor_cast(value, ty)
        }
    }

    /// Values of one type where those of another are expected, of which some dims differ by
    /// instance that are known here.
    pub fn fitted(&self, at: Builder<'c>, values: Vec<Val<'c>>, to: &Type) -> Vec<Val<'c>> {
        let wanted = leaves(to);
        let fit = |(value, ty): (Val<'c>, &Type)| self.fit(at, value, ty);
        values.into_iter().zip(wanted).map(fit).collect()
    }

    fn fit(&self, at: Builder<'c>, value: Val<'c>, to: &Type) -> Val<'c> {
        let ty = self.types().whole(to);
        let (Some(element), Type::Array(wanted)) = (array_element(value.r#type()), to) else {
            let differs = value.r#type() != ty && ty.is_ranked_tensor();
            return match differs {
                true => widened(at, value, ty),
                false => value,
            };
        };
        if value.r#type() == ty {
            return value;
        }
        let (region, block) = region_with_block(&flatten(element), at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let parts = self.fitted(inside, arguments_of(block), wanted);
        cfb::yield_(inside, &parts);
        cfb::map(at, &[value], ty, region)
    }
}

/// A value as one of a type that knows less of its shape. Its lengths stay such, so that all that is
/// made of it has a length where the type says so.
pub fn widened<'c>(at: Builder<'c>, value: Val<'c>, to: MlirType<'c>) -> Val<'c> {
    let (Ok(from), Ok(wide)) = (
        RankedTensorType::try_from(value.r#type()),
        RankedTensorType::try_from(to),
    ) else {
        return value;
    };
    let is_open = |axis: &usize| matches!(wide.dim_size(*axis), Ok(DimSize::Dynamic));
    let lengths = (0..wide.rank())
        .filter(is_open)
        .map(|axis| match from.dim_size(axis) {
            Ok(DimSize::Static(size)) => dims::length(at, at.index(size as i64)),
            _ => numbers::length(at, value, axis),
        });
    let operands: Vec<_> = std::iter::once(value).chain(lengths).collect();
    at.value(Op::CfbWiden, &operands, to)
}

/// The types of the SSA values that make up a value.
fn leaves(ty: &Type) -> Vec<&Type> {
    match ty {
        Type::Tuple(elements) => elements.iter().flat_map(leaves).collect(),
        _ => vec![ty],
    }
}

/// The last axis whose length differs by instance; the dims behind it are those of a row.
pub fn last_unknown(shape: &[Dim]) -> Option<usize> {
    shape.iter().rposition(|dim| known(dim).is_none())
}

/// A shape of which the first `lead` dims count rows: the last of them is not part of the type.
fn counted(shape: &[Dim], lead: usize) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    if last_unknown(&shape).is_none_or(|last| last + 1 < lead) {
        shape[lead - 1] = open(&shape[lead - 1]);
    }
    shape
}

/// A dim that is not part of the type. What is known of it is its name.
fn open(dim: &Dim) -> Dim {
    match dim {
        Dim::Known(length) => Dim::Instance(length.to_string()),
        Dim::Instance(_) => dim.clone(),
    }
}
