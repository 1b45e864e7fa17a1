//! Results as arrays of Arrow: a column for each part of the result.

mod growing;
mod nodes;
mod rows;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Field, Schema};
use cohort_abi::manifest::{Manifest, Type};

use super::columns::{Column, parts};
use growing::{Growing, Left};

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
    let mut fields = vec![("id".to_owned(), id_array(ids)?)];
    for (number, ((ty, _), column)) in parts.iter().zip(columns).enumerate() {
        if column.ends.len() != ids.len() {
            return Err("the columns are not of these instances".to_owned());
        }
        let name = match parts.len() {
            1 => "output".to_owned(),
            _ => format!("output_{number}"),
        };
        crate::io::nodes::check(manifest, ty)?;
        let array = part(manifest, ty, column, errors);
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

/// The column of a part of the result, null where an instance failed.
fn part(
    manifest: &Manifest,
    ty: &Type,
    column: &Column,
    errors: &[Option<(String, String)>],
) -> Result<ArrayRef, ArrowError> {
    let mut growing = Growing::of(manifest, ty);
    for (instance, error) in errors.iter().enumerate() {
        match error {
            None => growing.append(&mut Left::new(column.get(instance)))?,
            Some(_) => growing.append_nothing(),
        }
    }
    let is_there: Vec<bool> = errors.iter().map(Option::is_none).collect();
    let nulls = is_there
        .contains(&false)
        .then(|| NullBuffer::from(is_there));
    growing.finish(nulls)
}
