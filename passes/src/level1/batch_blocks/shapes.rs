//! The shapes of kernels whose unit is the call, as encodings of their types.
//!
//! The rules of [`rules`](super::rules) give every tensor the batch as its first dim. Where other dims
//! differ by call, the type says so: `#ragged.shape<@dim.batch, @dim.0(@dim.batch), _>`. Which dim
//! is which follows from the operands, by what the operations demand to be equal.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Val, arguments_of, operands_of, operations_of, results_of,
};
use cohort_dialects::shape::{Dim, Shape};
use melior::{
    Context,
    ir::{Attribute, BlockRef, OperationRef, operation::OperationLike},
};

use crate::pass::{Failed, error};
use crate::support::dim_equality::{DimEquality, Length};
use crate::support::dims;
use crate::support::ir::{TensorType, key, set_type};

/// The dim of the batch.
const BATCH: &str = "dim.batch";

/// Gives the values of a kernel's body their shapes. `lengths` are the dims of the first arguments
/// after the number of rows; `arguments` has the leading dims of each argument after that number.
pub fn encode<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    body: BlockRef<'c, 'c>,
    lengths: &[Attribute<'c>],
    arguments: &[Vec<Attribute<'c>>],
) -> Result<(), Failed> {
    let operations = operations_of(body);
    let mut equality = DimEquality::new(operations.iter().copied());
    let mut names: HashMap<usize, String> = HashMap::new();
    let values: Vec<Val<'c>> = arguments_of(body).into_iter().skip(1).collect();
    for (table, name) in values.iter().zip(lengths) {
        if let (Some(Length::Dim(number)), Some(name)) =
            (equality.shape(*table).first(), dims::name(*name))
        {
            names.insert(*number, name);
        }
    }
    for (value, leading) in values.iter().zip(arguments) {
        let shape = equality.shape(*value);
        for (length, name) in shape.iter().skip(1).zip(leading) {
            if let (Length::Dim(number), Some(name)) = (length, dims::name(*name)) {
                names.insert(*number, name);
            }
        }
    }
    // A length that only the results have, as what is used as a tensor of any length.
    let rows = dims::rows(kernel);
    for result in operations.last().map_or(vec![], |last| operands_of(*last)) {
        let shape = equality.shape(result);
        for (length, name) in shape.iter().skip(1).zip(&rows) {
            if let (Length::Dim(number), Some(name)) = (length, dims::name(*name)) {
                names.entry(*number).or_insert(name);
            }
        }
    }
    let inner = operations.iter().flat_map(|op| results_of(*op));
    for value in values.into_iter().chain(inner) {
        let Some(ty) = TensorType::of_value(value) else {
            continue;
        };
        // A table of lengths, what is shared, and what a call has once.
        if !ty.shape.iter().skip(1).any(Option::is_none) {
            continue;
        }
        let shape = equality.shape(value);
        let dims: Option<Vec<Dim>> = shape
            .iter()
            .enumerate()
            .map(|(axis, length)| match length {
                _ if axis == 0 => Some(Dim::named(BATCH)),
                Length::Known(_) => Some(Dim::unnamed()),
                Length::Dim(number) => {
                    let name = names.get(number)?;
                    Some(Dim::ragged(name, &[BATCH]))
                }
            })
            .collect();
        let Some(dims) = dims else {
            let message = "not supported yet: a length that no operand of the kernel has";
            return Err(error(kernel, message));
        };
        let shape = Shape { dims }.to_attribute(context);
        let encoded = shape.and_then(|shape| ty.encoded(shape, kernel.location()));
        let Some(encoded) = encoded else {
            return Err(error(
                kernel,
                &format!("not supported yet: the type {}", ty.to_type()),
            ));
        };
        set_type(value, encoded);
    }
    Ok(())
}

/// The lengths of the instance dims of a block's values while it is batched: bounds, each a size of
/// an argument that has the dim. Where none has it, as for positions, which are made of a length
/// alone, the size of the dim's table stands for it: loops run along the dim that the type names.
pub struct Bounds<'c> {
    equality: DimEquality,
    bounds: HashMap<usize, Val<'c>>,
}

impl<'c> Bounds<'c> {
    /// Of the block with this body, whose first arguments are the lengths of dims by these names; the
    /// others have such leading dims. The arguments have become `batched`.
    pub fn new(
        inner: Builder<'c>,
        body: BlockRef<'c, 'c>,
        names: &[Attribute<'c>],
        leading: &[Vec<Attribute<'c>>],
        batched: &HashMap<usize, Val<'c>>,
    ) -> Bounds<'c> {
        let mut equality = DimEquality::new(operations_of(body));
        let arguments = arguments_of(body);
        for (argument, dims) in arguments.iter().skip(names.len()).zip(leading) {
            for (axis, dim) in dims.iter().enumerate() {
                if let Some(length) = names.iter().position(|name| name == dim) {
                    equality.join_length(*argument, axis, arguments[length]);
                }
            }
        }
        let mut bounds = HashMap::new();
        let size = |value: Val<'c>, axis: usize| {
            let axis = inner.index(axis as i64);
            inner.tensor_dim(value, axis)
        };
        for argument in arguments_of(body) {
            let Some(value) = batched.get(&key(argument)) else {
                continue;
            };
            for (axis, length) in equality.shape(argument).into_iter().enumerate() {
                if let Length::Dim(number) = length {
                    bounds
                        .entry(number)
                        .or_insert_with(|| size(*value, axis + 1));
                }
            }
        }
        for length in arguments.iter().take(names.len()) {
            let number = equality.dim_of_length(*length);
            if let Some(table) = batched.get(&key(*length)) {
                bounds.entry(number).or_insert_with(|| size(*table, 0));
            }
        }
        Bounds { equality, bounds }
    }

    /// The sizes of a value's instance dims, in order.
    pub fn of(&mut self, value: Val<'c>) -> Option<Vec<Val<'c>>> {
        let shape = self.equality.shape(value);
        let dims = shape.into_iter().filter_map(|length| match length {
            Length::Known(_) => None,
            Length::Dim(number) => Some(number),
        });
        dims.map(|number| self.bounds.get(&number).copied())
            .collect()
    }
}
