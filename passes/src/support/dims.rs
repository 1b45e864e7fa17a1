//! What blocks and kernels say of calls on tensors whose lengths differ: of `cfb.block`, `cfb.kernel` and
//! `ragged.kernel`, whose declarations have these attributes.

use cohort_abi::manifest::Unit;
pub use cohort_dialects::enums::Takes;
use cohort_dialects::enums::{DialectEnum, KernelUnit};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef,
        attribute::{ArrayAttribute, FlatSymbolRefAttribute},
        operation::OperationLike,
    },
};

use crate::support::ir::{array, elements_of, enum_attribute, text_of};

/// Whether its tensors have lengths of their own in each call.
pub fn has_lengths(op: OperationRef<'_, '_>) -> bool {
    op.has_attribute(&keys::LENGTHS)
}

/// What it is about; none where lengths do not differ.
pub fn unit(op: OperationRef<'_, '_>) -> Option<Unit> {
    enum_attribute(op, keys::UNIT).map(|unit| match unit {
        KernelUnit::Rows => Unit::Rows,
        KernelUnit::Calls => Unit::Calls,
    })
}

/// The attribute that [`unit()`] reads.
pub fn unit_attribute(context: &Context, unit: Unit) -> Attribute<'_> {
    let unit = match unit {
        Unit::Rows => KernelUnit::Rows,
        Unit::Calls => KernelUnit::Calls,
    };
    unit.attribute(context)
}

/// The attribute that [`takes`] reads.
pub fn takes_attribute<'c>(context: &'c Context, takes: &[Takes]) -> Attribute<'c> {
    let takes = takes.iter().map(|takes| takes.attribute(context));
    ArrayAttribute::new(context, &takes.collect::<Vec<_>>()).into()
}

/// The names of the dims that are its lengths.
pub fn lengths<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::LENGTHS).map_or(vec![], elements_of)
}

/// The same as texts, without `@`.
pub fn length_names(op: OperationRef<'_, '_>) -> Vec<String> {
    let names = lengths(op).into_iter();
    names.filter_map(name).collect()
}

/// The name of a dim in such a list as [`rows`]; none of a number.
pub fn name(listed: Attribute<'_>) -> Option<String> {
    let symbol = FlatSymbolRefAttribute::try_from(listed).ok()?;
    text_of(symbol.into())
}

/// The dims and numbers of which the rows of a call are the product.
pub fn rows<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::ROWS).map_or(vec![], elements_of)
}

/// How a kernel takes each operand after the lengths.
pub fn takes(op: OperationRef<'_, '_>) -> Vec<Takes> {
    let takes = array(op, keys::TAKES).into_iter();
    takes.filter_map(Takes::of).collect()
}
