//! What blocks and kernels say of calls on tensors whose lengths differ: of `cfb.block`, `cfb.kernel` and
//! `ragged.kernel`, whose declarations have these attributes.

use cohort_abi::manifest::Unit;
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef,
        attribute::{ArrayAttribute, FlatSymbolRefAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use crate::support::ir::{array, elements_of, name_attribute, text_of};

/// The words of `Cfb_Unit`.
const UNITS: [(Unit, &str); 2] = [(Unit::Rows, "rows"), (Unit::Calls, "calls")];

/// How a kernel over rows takes an operand: the words of `Cfb_Takes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// As many rows as the call has.
    Ragged,
    /// One row, which all rows of a call share.
    Row,
    /// A number that the host passes.
    Scalar,
    /// Any number of rows for each row.
    List,
    /// An array of handles, one for each row of the call.
    Stacked,
}

impl Takes {
    const ALL: [Takes; 5] = [
        Takes::Ragged,
        Takes::Row,
        Takes::Scalar,
        Takes::List,
        Takes::Stacked,
    ];

    fn word(self) -> &'static str {
        match self {
            Takes::Ragged => "ragged",
            Takes::Row => "row",
            Takes::Scalar => "scalar",
            Takes::List => "list",
            Takes::Stacked => "stacked",
        }
    }

    fn of(word: &str) -> Option<Takes> {
        Takes::ALL.into_iter().find(|takes| takes.word() == word)
    }
}

/// Whether its tensors have lengths of their own in each call.
pub fn has_lengths(op: OperationRef<'_, '_>) -> bool {
    op.has_attribute(&keys::LENGTHS)
}

/// What it is about; none where lengths do not differ.
pub fn unit(op: OperationRef<'_, '_>) -> Option<Unit> {
    let word = name_attribute(op, keys::UNIT)?;
    UNITS
        .iter()
        .find(|(_, own)| *own == word)
        .map(|(unit, _)| *unit)
}

/// The attribute that [`unit()`] reads.
pub fn unit_attribute<'c>(context: &'c Context, unit: Unit) -> Attribute<'c> {
    let own = UNITS.iter().find(|(own, _)| *own == unit);
    StringAttribute::new(context, own.map_or("", |(_, word)| *word)).into()
}

/// The attribute that [`takes`] reads.
pub fn takes_attribute<'c>(context: &'c Context, takes: &[Takes]) -> Attribute<'c> {
    let words = takes
        .iter()
        .map(|takes| StringAttribute::new(context, takes.word()).into());
    ArrayAttribute::new(context, &words.collect::<Vec<_>>()).into()
}

/// The names of the dims that are its lengths.
pub fn lengths<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::LENGTHS).map_or(vec![], elements_of)
}

/// The same as texts, without `@`.
pub fn length_names(op: OperationRef<'_, '_>) -> Vec<String> {
    let names = lengths(op).into_iter();
    names
        .filter_map(name)
        .map(|name| name.value().to_owned())
        .collect()
}

/// The name of a dim in such a list as [`rows`]; none of a number.
pub fn name(listed: Attribute<'_>) -> Option<FlatSymbolRefAttribute<'_>> {
    FlatSymbolRefAttribute::try_from(listed).ok()
}

/// The dims and numbers of which the rows of a call are the product.
pub fn rows<'c>(op: OperationRef<'c, '_>) -> Vec<Attribute<'c>> {
    op.attribute(&keys::ROWS).map_or(vec![], elements_of)
}

/// How a kernel takes each operand after the lengths.
pub fn takes(op: OperationRef<'_, '_>) -> Vec<Takes> {
    let words = array(op, keys::TAKES).into_iter().filter_map(text_of);
    words.filter_map(|word| Takes::of(&word)).collect()
}
