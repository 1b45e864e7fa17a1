//! Arrays of numbers, of tensors, and of arrays of them: one run of numbers, and lengths.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Int32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Field};
use cohort_abi::manifest::{Elem, LeadingDim};

use super::growing::{Left, lists};

pub struct Rows {
    elem: Elem,
    dims: Vec<LeadingDim>,
    count: usize,
    /// The dims of each value.
    lengths: Vec<u64>,
    bytes: Vec<u8>,
}

fn known(dim: &LeadingDim) -> Option<u64> {
    match dim {
        LeadingDim::Known(length) => Some(*length),
        LeadingDim::Named(_) | LeadingDim::Any => None,
    }
}

impl Rows {
    pub fn new(elem: Elem, dims: impl IntoIterator<Item = LeadingDim>) -> Rows {
        Rows {
            elem,
            dims: dims.into_iter().collect(),
            count: 0,
            lengths: Vec::new(),
            bytes: Vec::new(),
        }
    }

    pub fn append(&mut self, left: &mut Left<'_>) -> Result<(), ArrowError> {
        let begin = self.lengths.len();
        for dim in &self.dims {
            self.lengths
                .push(known(dim).map_or_else(|| left.word(), Ok)?);
        }
        let size = size(&self.lengths[begin..], self.elem);
        self.bytes.extend_from_slice(left.bytes(size)?);
        self.count += 1;
        Ok(())
    }

    /// Appends a number.
    pub fn push(&mut self, number: i32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.count += 1;
    }

    /// A value of known size has place all the same, and others are of length 0.
    pub fn append_nothing(&mut self) {
        let begin = self.lengths.len();
        self.lengths
            .extend(self.dims.iter().map(|dim| known(dim).unwrap_or(0)));
        let size = size(&self.lengths[begin..], self.elem);
        self.bytes.resize(self.bytes.len() + size, 0);
        self.count += 1;
    }

    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let rank = self.dims.len();
        let of_values = |level: usize| nulls.clone().filter(|_| level == 0);
        let mut array = numbers(self.elem, &self.bytes, of_values(rank));
        for level in (0..rank).rev() {
            // How many lists there are does not follow from values of length 0.
            let of_value = |lengths: &[u64]| lengths[..level].iter().product::<u64>() as usize;
            let values = self.lengths.chunks_exact(rank);
            array = match known(&self.dims[level]) {
                Some(length) => {
                    let field = Arc::new(Field::new_list_field(array.data_type().clone(), false));
                    let size = i32::try_from(length);
                    let size =
                        size.map_err(|_| ArrowError::OffsetOverflowError(length as usize))?;
                    let count = values.map(of_value).sum();
                    let nulls = of_values(level);
                    let lists =
                        FixedSizeListArray::try_new_with_length(field, size, array, nulls, count)?;
                    Arc::new(lists)
                }
                None => {
                    let each = values.flat_map(|lengths| {
                        std::iter::repeat_n(lengths[level] as usize, of_value(lengths))
                    });
                    lists(each, array, of_values(level))?
                }
            };
        }
        Ok(array)
    }
}

/// Bytes of a value.
fn size(lengths: &[u64], elem: Elem) -> usize {
    let count = match lengths.contains(&0) {
        true => 0,
        false => lengths.iter().copied().fold(1, u64::saturating_mul),
    };
    usize::try_from(count)
        .unwrap_or(usize::MAX)
        .saturating_mul(elem.bytes())
}

fn numbers(elem: Elem, bytes: &[u8], nulls: Option<NullBuffer>) -> ArrayRef {
    let words = || {
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|word| u32::from_le_bytes(*word))
    };
    match elem {
        Elem::F32 => {
            let values: Vec<f32> = words().map(f32::from_bits).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        Elem::I32 => {
            let values: Vec<i32> = words().map(|word| word as i32).collect();
            Arc::new(Int32Array::new(values.into(), nulls))
        }
        Elem::Bool => {
            let values: Vec<bool> = bytes.iter().map(|byte| *byte != 0).collect();
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
    }
}
