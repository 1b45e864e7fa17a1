//! What blocks and kernels say of calls on tensors whose lengths differ: of `cfb.block`, `cfb.kernel` and
//! `ragged.kernel`, whose declarations have these attributes.

use cohort_abi::manifest::Unit;
use cohort_dialects::keys;
use melior::ir::{
    Attribute, OperationRef,
    attribute::{FlatSymbolRefAttribute, StringAttribute},
    operation::OperationLike,
};

use crate::support::ir::{elements_of, name_attribute};

/// Whether its tensors have lengths of their own in each call.
pub fn has_lengths(op: OperationRef<'_, '_>) -> bool {
    op.has_attribute(&keys::LENGTHS)
}

/// What it is about; none where lengths do not differ.
pub fn unit(op: OperationRef<'_, '_>) -> Option<Unit> {
    match name_attribute(op, keys::UNIT)?.as_str() {
        "rows" => Some(Unit::Rows),
        "calls" => Some(Unit::Calls),
        _ => None,
    }
}

/// The names of the dims that are its lengths.
pub fn lengths<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::LENGTHS).map_or(vec![], elements_of)
}

/// The same as texts, without `@`.
pub fn length_names(op: OperationRef<'_, '_>) -> Vec<String> {
    let names = lengths(op).into_iter();
    let names = names.filter_map(|name| FlatSymbolRefAttribute::try_from(name).ok());
    names.map(|name| name.value().to_owned()).collect()
}

/// The dims and numbers of which the rows of a call are the product.
pub fn rows<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::ROWS).map_or(vec![], elements_of)
}

/// How a kernel takes each operand after the lengths.
pub fn operands(op: OperationRef<'_, '_>) -> Vec<String> {
    let kinds = op.attribute(&keys::OPERANDS).map_or(vec![], elements_of);
    let kinds = kinds.into_iter();
    let kinds = kinds.filter_map(|kind| StringAttribute::try_from(kind).ok());
    kinds.map(|kind| kind.value().to_owned()).collect()
}
