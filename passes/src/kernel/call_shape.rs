//! What a kernel's attributes say of its calls on tensors whose lengths differ.

use cohort_abi::manifest::{CallShape, Extent, Unit};
use melior::ir::{Attribute, OperationRef, attribute::IntegerAttribute};

use crate::support::dims::{self, Takes};

/// How a kernel takes an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// As its type and the record say.
    Once,
    /// A length of the call, an integer.
    Length,
    /// The rows of a tensor, as many as the call's.
    Expanded,
    /// An array of handles, as many as the call's rows.
    Stacked,
}

/// What the attributes say: the call's lengths, and how it takes each operand.
#[derive(Default)]
pub struct Shape {
    /// The lengths of a call, as the manifest has them.
    pub call: CallShape,
    lengths: usize,
    takes: Vec<Takes>,
}

impl Shape {
    /// How an operand is taken; its number counts the lengths, which come first.
    pub fn taken(&self, operand: usize) -> Taken {
        match operand.checked_sub(self.lengths) {
            None => Taken::Length,
            Some(after) => match self.takes.get(after) {
                Some(Takes::Ragged) => Taken::Expanded,
                Some(Takes::Stacked) => Taken::Stacked,
                _ => Taken::Once,
            },
        }
    }
}

/// The shape of the calls of a kernel whose unit is the row. Its one extent is that of its rows.
pub fn of(kernel: OperationRef<'_, '_>) -> Shape {
    let names = dims::lengths(kernel);
    if names.is_empty() {
        return Shape::default();
    }
    let extent = extent(&dims::rows(kernel), &names);
    Shape {
        call: CallShape {
            extents: vec![extent],
            rows: Some(0),
            unit: Unit::Rows,
            fused: false,
            flops: vec![],
            division: None,
            padding: None,
        },
        lengths: names.len(),
        takes: dims::takes(kernel),
    }
}

/// The product of dims and numbers; a dim is the operand that has its length.
fn extent(dims: &[Attribute<'_>], names: &[Attribute<'_>]) -> Extent {
    let mut extent = Extent {
        lengths: vec![],
        times: 1,
    };
    for dim in dims {
        if let Ok(number) = IntegerAttribute::try_from(*dim) {
            extent.times *= number.value() as u64;
        } else if let Some(length) = names.iter().position(|name| name == dim) {
            extent.lengths.push(length);
        }
    }
    extent
}
