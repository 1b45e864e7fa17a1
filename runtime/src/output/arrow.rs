//! Results as arrays of Arrow: a column for each part of the result.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use cohort_abi::manifest::{Elem, LeadingDim, Manifest, Type};

use super::columns::{Column, parts};

/// A batch of results, one row an instance: `id`, then `output`, or `output_0` and so on where there are
/// several parts, and `error` and `message` where an instance failed. `ids` are JSON texts, `errors` the kind and
/// message of those that failed. An error says which type has no form.
pub fn batch(
    manifest: &Manifest,
    columns: &[Column],
    ids: &[String],
    errors: &[Option<(String, String)>],
) -> Result<RecordBatch, String> {
    let parts = parts(&manifest.result);
    if columns.len() != parts.len() || errors.len() != ids.len() {
        return Err("the columns are not those of the result".to_owned());
    }
    let is_there: Vec<bool> = errors.iter().map(Option::is_none).collect();
    let mut fields = vec![("id".to_owned(), id_array(ids)?)];
    for (number, ((ty, _), column)) in parts.iter().zip(columns).enumerate() {
        if column.ends.len() != ids.len() {
            return Err("the columns are not of these instances".to_owned());
        }
        let name = match parts.len() {
            1 => "output".to_owned(),
            _ => format!("output_{number}"),
        };
        let array = part(manifest, ty, column, &is_there);
        fields.push((name, array.map_err(|problem| problem.to_string())?));
    }
    let text = |of: fn(&(String, String)) -> &String| -> ArrayRef {
        let texts = errors.iter().map(|error| error.as_ref().map(of));
        Arc::new(texts.collect::<StringArray>())
    };
    fields.push(("error".to_owned(), text(|error| &error.0)));
    fields.push(("message".to_owned(), text(|error| &error.1)));
    let schema = fields
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), name != "id"));
    let schema = Schema::new(schema.collect::<Vec<_>>());
    let arrays = fields.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).map_err(|error| error.to_string())
}

/// Integers where all ids are, or their texts.
fn id_array(ids: &[String]) -> Result<ArrayRef, String> {
    let numbers: Result<Vec<i64>, _> = ids.iter().map(|id| id.parse()).collect();
    if let Ok(numbers) = numbers {
        return Ok(Arc::new(Int64Array::from(numbers)));
    }
    let texts = ids.iter().map(|id| match id.starts_with('"') {
        true => serde_json::from_str(id).map_err(|error| error.to_string()),
        false => Ok(id.clone()),
    });
    let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}

fn part(
    manifest: &Manifest,
    ty: &Type,
    column: &Column,
    is_there: &[bool],
) -> Result<ArrayRef, ArrowError> {
    let space = |space: usize| {
        let space = &manifest.spaces[space];
        let dims = space.shape.iter().map(|dim| LeadingDim::Known(*dim));
        (space.elem, dims.collect::<Vec<_>>())
    };
    let (elem, dims) = match ty {
        Type::Scalar(elem) => (*elem, Vec::new()),
        Type::Tensor { space: of } => space(*of),
        Type::Ragged { space: of, dims } => {
            let (elem, known) = space(*of);
            (elem, [dims.clone(), known].concat())
        }
        Type::Stacked { space: of } => {
            let (elem, known) = space(*of);
            (elem, [vec![LeadingDim::Any], known].concat())
        }
        Type::Array(element) => {
            let (elem, known) = match **element {
                Type::Scalar(elem) => (elem, Vec::new()),
                Type::Tensor { space: of } => space(of),
                _ => return no_form(),
            };
            (elem, [vec![LeadingDim::Any], known].concat())
        }
        Type::Adt(_) | Type::Tuple(_) | Type::Str => return no_form(),
    };
    let lengths = lengths(&dims, column, is_there)?;
    let known = |dim: &LeadingDim| match dim {
        LeadingDim::Known(length) => Some(*length),
        _ => None,
    };
    // An instance that failed has nothing, but where its size is known there is place for it.
    let size: u64 = dims.iter().filter_map(known).product::<u64>() * elem.bytes() as u64;
    let mut bytes = Vec::with_capacity(column.bytes.len());
    for (instance, is_there) in is_there.iter().enumerate() {
        match is_there {
            true => bytes.extend_from_slice(column.get(instance).0),
            false if dims.iter().all(|dim| known(dim).is_some()) => {
                bytes.resize(bytes.len() + size as usize, 0);
            }
            false => {}
        }
    }
    let nulls =
        (is_there.iter().any(|is_there| !is_there)).then(|| NullBuffer::from(is_there.to_vec()));
    let of_instances = |level: usize| nulls.clone().filter(|_| level == 0);
    let mut array = numbers(elem, &bytes, of_instances(dims.len()));
    for level in (0..dims.len()).rev() {
        let field = Arc::new(Field::new_list_field(array.data_type().clone(), false));
        let nulls = of_instances(level);
        array = match known(&dims[level]) {
            Some(length) => {
                let size = i32::try_from(length);
                let size = size.map_err(|_| ArrowError::OffsetOverflowError(length as usize))?;
                // How many lists there are does not follow from values of length 0.
                let count: u64 = lengths
                    .iter()
                    .map(|all| all[..level].iter().product::<u64>())
                    .sum();
                Arc::new(FixedSizeListArray::try_new_with_length(
                    field,
                    size,
                    array,
                    nulls,
                    count as usize,
                )?)
            }
            None => {
                let each = lengths.iter().flat_map(|all| {
                    let lists = all[..level].iter().product::<u64>();
                    (0..lists).map(|_| all[level] as usize)
                });
                let ends = OffsetBuffer::<i32>::from_lengths(each);
                Arc::new(ListArray::try_new(field, ends, array, nulls)?)
            }
        };
    }
    Ok(array)
}

fn no_form() -> Result<ArrayRef, ArrowError> {
    Err(ArrowError::NotYetImplemented(
        "results of data types, and arrays of anything but numbers and tensors, have no form in Arrow".to_owned(),
    ))
}

/// The dims that each instance has; those that are not known are 0 where it failed.
fn lengths(
    dims: &[LeadingDim],
    column: &Column,
    is_there: &[bool],
) -> Result<Vec<Vec<u64>>, ArrowError> {
    let each = is_there.iter().enumerate().map(|(instance, is_there)| {
        let (_, words) = column.get(instance);
        let mut words = words.iter();
        let dims = dims.iter().map(|dim| match dim {
            LeadingDim::Known(length) => Some(*length),
            _ if *is_there => words.next().copied(),
            _ => Some(0),
        });
        let missing = || ArrowError::InvalidArgumentError("a length is missing".to_owned());
        dims.collect::<Option<Vec<u64>>>().ok_or_else(missing)
    });
    let all: Vec<Vec<u64>> = each.collect::<Result<_, _>>()?;
    let values = all
        .iter()
        .map(|dims| dims.iter().copied().fold(1, u64::saturating_mul));
    match values.fold(0, u64::saturating_add) {
        // Offsets have 31 bits.
        most if most > i32::MAX as u64 => Err(ArrowError::OffsetOverflowError(most as usize)),
        _ => Ok(all),
    }
}

fn numbers(elem: Elem, bytes: &[u8], nulls: Option<NullBuffer>) -> ArrayRef {
    let words = || {
        bytes
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
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
