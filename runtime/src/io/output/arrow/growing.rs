//! Arrays of values of any type, which grow by one value at a time.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field, Fields};
use cohort_abi::manifest::{LeadingDim, Manifest, Type};

use super::nodes::Nodes;
use super::rows::Rows;

/// An array that grows. Its type has a form ([`crate::io::nodes::check`]).
pub enum Growing<'m> {
    /// Numbers, tensors, and arrays of them.
    Rows(Rows),
    Texts {
        lengths: Vec<usize>,
        bytes: Vec<u8>,
    },
    Tuples {
        count: usize,
        parts: Vec<Growing<'m>>,
    },
    Lists {
        lengths: Vec<usize>,
        values: Box<Growing<'m>>,
    },
    Nodes(Nodes<'m>),
}

/// What is left of a result's bytes and words.
pub struct Left<'c> {
    bytes: &'c [u8],
    words: &'c [u64],
}

impl<'c> Left<'c> {
    pub fn new((bytes, words): (&'c [u8], &'c [u64])) -> Left<'c> {
        Left { bytes, words }
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'c [u8], ArrowError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn word(&mut self) -> Result<u64, ArrowError> {
        let (first, rest) = self.words.split_first().ok_or_else(short)?;
        self.words = rest;
        Ok(*first)
    }
}

fn short() -> ArrowError {
    ArrowError::InvalidArgumentError("a column that is too short".to_owned())
}

impl<'m> Growing<'m> {
    pub fn of(manifest: &'m Manifest, ty: &'m Type) -> Growing<'m> {
        let rows = |dims: &[LeadingDim], pool: usize| {
            let pool = &manifest.row_pools[pool];
            let known = pool.shape.iter().map(|dim| LeadingDim::Known(*dim));
            Growing::Rows(Rows::new(pool.elem, dims.iter().copied().chain(known)))
        };
        match ty {
            Type::Scalar(elem) => Growing::Rows(Rows::new(*elem, [])),
            Type::Tensor { pool } => rows(&[], *pool),
            Type::Ragged { pool, dims } => rows(dims, *pool),
            Type::Stacked { pool } => rows(&[LeadingDim::Any], *pool),
            Type::Array(element) => match **element {
                Type::Scalar(elem) => Growing::Rows(Rows::new(elem, [LeadingDim::Any])),
                Type::Tensor { pool } => rows(&[LeadingDim::Any], pool),
                _ => Growing::Lists {
                    lengths: Vec::new(),
                    values: Box::new(Growing::of(manifest, element)),
                },
            },
            Type::Str => Growing::Texts {
                lengths: Vec::new(),
                bytes: Vec::new(),
            },
            Type::Tuple(types) => Growing::Tuples {
                count: 0,
                parts: types.iter().map(|ty| Growing::of(manifest, ty)).collect(),
            },
            Type::Adt(adt) => Growing::Nodes(Nodes::of(manifest, *adt)),
        }
    }

    /// Appends the value that comes next.
    pub fn append(&mut self, left: &mut Left<'_>) -> Result<(), ArrowError> {
        match self {
            Growing::Rows(rows) => rows.append(left),
            Growing::Texts { lengths, bytes } => {
                let length = left.word()? as usize;
                bytes.extend_from_slice(left.bytes(length)?);
                lengths.push(length);
                Ok(())
            }
            Growing::Tuples { count, parts } => {
                *count += 1;
                parts.iter_mut().try_for_each(|part| part.append(left))
            }
            Growing::Lists { lengths, values } => {
                let length = left.word()? as usize;
                lengths.push(length);
                (0..length).try_for_each(|_| values.append(left))
            }
            Growing::Nodes(nodes) => nodes.append(left),
        }
    }

    /// Appends what stands where there is no value.
    pub fn append_nothing(&mut self) {
        match self {
            Growing::Rows(rows) => rows.append_nothing(),
            Growing::Texts { lengths, .. } | Growing::Lists { lengths, .. } => lengths.push(0),
            Growing::Tuples { count, parts } => {
                *count += 1;
                parts.iter_mut().for_each(Growing::append_nothing);
            }
            Growing::Nodes(nodes) => nodes.append_nothing(),
        }
    }

    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        match self {
            Growing::Rows(rows) => rows.finish(nulls),
            Growing::Texts { lengths, bytes } => {
                let texts = StringArray::try_new(offsets(lengths)?, bytes.into(), nulls)?;
                Ok(Arc::new(texts))
            }
            Growing::Tuples { count, parts } => {
                let members = parts.into_iter().enumerate();
                let members =
                    members.map(|(number, part)| Ok((number.to_string(), part.finish(None)?)));
                structs(members.collect::<Result<_, ArrowError>>()?, count, nulls)
            }
            Growing::Lists { lengths, values } => lists(lengths, values.finish(None)?, nulls),
            Growing::Nodes(nodes) => nodes.finish(nulls),
        }
    }
}

/// Where lists of these lengths end, behind each other.
pub fn offsets(lengths: impl IntoIterator<Item = usize>) -> Result<OffsetBuffer<i32>, ArrowError> {
    let mut end = 0_usize;
    let mut ends = vec![0];
    for length in lengths {
        end = end.saturating_add(length);
        ends.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
    }
    Ok(OffsetBuffer::new(ends.into()))
}

pub fn lists(
    lengths: impl IntoIterator<Item = usize>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    let lists = ListArray::try_new(field, offsets(lengths)?, values, nulls)?;
    Ok(Arc::new(lists))
}

/// `count` structs of these members.
pub fn structs(
    members: Vec<(String, ArrayRef)>,
    count: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let fields: Fields = (members.iter())
        .map(|(name, array)| Field::new(name, array.data_type().clone(), false))
        .collect();
    let arrays = members.into_iter().map(|(_, array)| array).collect();
    let structs = StructArray::try_new_with_length(fields, arrays, nulls, count)?;
    Ok(Arc::new(structs))
}
