//! What stands in the cells of Arrow's arrays: numbers of any width, lists of any kind.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::DataType;
use cohort_abi::manifest::Elem;

use crate::io::input::narrow;

/// What a list has: the values of all lists, and where its own begin and end.
pub fn range(array: &dyn Array, row: usize) -> Option<(&ArrayRef, usize, usize)> {
    Some(match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let ends = list.value_offsets();
            (list.values(), ends[row] as usize, ends[row + 1] as usize)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let ends = list.value_offsets();
            (list.values(), ends[row] as usize, ends[row + 1] as usize)
        }
        DataType::FixedSizeList(_, _) => {
            let list = array.as_fixed_size_list();
            let size = list.value_length() as usize;
            (list.values(), row * size, (row + 1) * size)
        }
        _ => return None,
    })
}

/// Rows of numbers as they lie in memory.
#[derive(Default)]
pub struct Dense {
    /// Of a row.
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl Dense {
    /// Reads rows that are numbers, or lists of equal lengths; whether they are.
    pub fn rows(&mut self, array: &dyn Array, begin: usize, end: usize, elem: Elem) -> bool {
        self.shape.clear();
        self.bytes.clear();
        let (mut array, mut begin, mut end) = (array, begin, end);
        loop {
            if array.null_count() > 0 && (begin..end).any(|row| array.is_null(row)) {
                return false;
            }
            let length = match array.data_type() {
                DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
                    let mut lengths = (begin..end).filter_map(|row| {
                        let (_, begin, end) = range(array, row)?;
                        Some(end - begin)
                    });
                    let first = lengths.next();
                    if lengths.any(|length| Some(length) != first) {
                        return false;
                    }
                    first
                }
                _ => return self.numbers(array, begin, end, elem),
            };
            let Some(length) = length else {
                // No row tells how many numbers it has.
                return true;
            };
            let (Some((values, first, _)), Some((_, _, last))) =
                (range(array, begin), range(array, end - 1))
            else {
                return false;
            };
            self.shape.push(length as u64);
            (array, begin, end) = (values, first, last);
        }
    }

    fn numbers(&mut self, array: &dyn Array, begin: usize, end: usize, elem: Elem) -> bool {
        self.bytes.reserve((end - begin) * elem.bytes());
        for row in begin..end {
            let Some(bits) = number(array, row, elem) else {
                return false;
            };
            match elem {
                Elem::Bool => self.bytes.push(bits as u8),
                Elem::F32 | Elem::I32 => self.bytes.extend_from_slice(&bits.to_le_bytes()),
            }
        }
        true
    }
}

/// An integer of any width.
pub fn integer(array: &dyn Array, row: usize) -> Option<i128> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<i128>
    where
        T::Native: Into<i128>,
    {
        Some(array.as_primitive::<T>().value(row).into())
    }
    match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array, row),
        DataType::Int16 => of::<Int16Type>(array, row),
        DataType::Int32 => of::<Int32Type>(array, row),
        DataType::Int64 => of::<Int64Type>(array, row),
        DataType::UInt8 => of::<UInt8Type>(array, row),
        DataType::UInt16 => of::<UInt16Type>(array, row),
        DataType::UInt32 => of::<UInt32Type>(array, row),
        DataType::UInt64 => of::<UInt64Type>(array, row),
        _ => None,
    }
}

/// The bits of a number or a truth value that is not null, if the type has it.
#[inline]
pub fn number(array: &dyn Array, row: usize, elem: Elem) -> Option<u32> {
    match (elem, array.data_type()) {
        (Elem::F32, DataType::Float32) => {
            Some(array.as_primitive::<Float32Type>().value(row).to_bits())
        }
        (Elem::F32, DataType::Float64) => narrow(array.as_primitive::<Float64Type>().value(row)),
        (Elem::F32, DataType::Float16) => Some(
            array
                .as_primitive::<Float16Type>()
                .value(row)
                .to_f32()
                .to_bits(),
        ),
        (Elem::F32, _) => narrow(integer(array, row)? as f64),
        (Elem::I32, _) => i32::try_from(integer(array, row)?)
            .ok()
            .map(|value| value as u32),
        (Elem::Bool, DataType::Boolean) => Some(u32::from(array.as_boolean().value(row))),
        (Elem::Bool, _) => None,
    }
}

pub fn found(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match (integer(array, row), array.data_type()) {
        (Some(number), _) => number.to_string(),
        (None, DataType::Float64) => {
            format!("{:?}", array.as_primitive::<Float64Type>().value(row))
        }
        (None, ty) => format!("a value of {ty}"),
    }
}
