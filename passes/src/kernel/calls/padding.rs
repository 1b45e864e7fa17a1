//! How a kernel's results are padded in storage.

use cohort_abi::manifest::Padding;
use cohort_dialects::builder::{Op, operands_of, operations_of};
use cohort_dialects::shape::Shape;
use melior::ir::{OperationRef, ValueLike};

use crate::pass::{Failed, error};
use crate::support::ir::blocks_of;

/// Whether a shape has no padding but that of a call's rows, where these are of one dim:
/// `[@batch, @n(@batch) pad 4 bulk 64, _]`.
pub fn is_of_rows(shape: &Shape) -> bool {
    let with = |holds: fn(&cohort_dialects::shape::Dim) -> bool| {
        let positions = shape.dims.iter().enumerate();
        positions
            .filter(move |(_, dim)| holds(dim))
            .map(|(at, _)| at)
    };
    let mut padded = with(|dim| dim.pad > 1 || dim.bulk > 1).peekable();
    padded.peek().is_none() || (padded.eq([1]) && with(|dim| dim.is_ragged()).eq([1]))
}

/// What the types of a kernel's results say, which lie in storage alike.
pub fn of(kernel: OperationRef<'_, '_>) -> Result<Option<Padding>, Failed> {
    let operations = blocks_of(kernel).into_iter().flat_map(operations_of);
    let end = operations.filter(|op| Op::CfbYield.is(*op)).last();
    let results = end.map_or(vec![], operands_of).into_iter();
    let mut paddings = results.map(|result| {
        let shape = Shape::of_type(result.r#type())?;
        let dim = shape.dims.get(1).filter(|dim| dim.is_ragged())?;
        let number = |multiple: u64| u32::try_from(multiple).unwrap_or(u32::MAX);
        let (rows, bulk) = (number(dim.pad), number(dim.bulk));
        (rows > 1 || bulk > 1).then_some(Padding { rows, bulk })
    });
    let first = paddings.next().flatten();
    match paddings.all(|other| other == first) {
        true => Ok(first),
        false => Err(error(kernel, "expected results that are padded alike")),
    }
}
