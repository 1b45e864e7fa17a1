//! Arrays of Arrow as a source of instances: a column for each of `main`'s arguments, a row an instance.
//!
//! | a value | its column |
//! |---|---|
//! | a number, a truth value, a text | numbers, booleans, strings |
//! | a tensor, an array | lists, of fixed size or not, of lists or of numbers |
//! | a tuple | a struct |
//! | of a data type | a struct with `tags`, lists of the numbers of the constructors of the nodes in postorder, and for each constructor that has columns ([`crate::io::nodes`]) its own lists: of the column, or of structs of several |
//!
//! A column `id` has strings or integers. Nothing may be null.

mod cells;
mod nodes;
mod values;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use cohort_abi::manifest::Manifest;

use super::Inputs;
use super::builder::Builder;
use crate::failure::InstanceError;
use crate::program::validate::ID_KEY;
use cells::integer;
use values::Values;

/// The rows of a batch as instances of a program.
pub struct ArrowInstances {
    /// By argument.
    columns: Vec<ArrayRef>,
    ids: Option<ArrayRef>,
    count: usize,
}

impl ArrowInstances {
    /// Checks that the columns are the arguments; what is in them is checked row by row.
    pub fn new(manifest: &Manifest, batch: &RecordBatch) -> Result<ArrowInstances, String> {
        for argument in &manifest.arguments {
            let has_form = crate::io::nodes::check(manifest, &argument.ty);
            has_form.map_err(|problem| format!("the argument {}: {problem}", argument.name))?;
        }
        let schema = batch.schema();
        let names: Vec<&str> = (manifest.arguments.iter())
            .map(|argument| argument.name.as_str())
            .collect();
        let expected = format!("expected columns {} and perhaps {ID_KEY}", names.join(", "));
        for (place, field) in schema.fields().iter().enumerate() {
            let name = field.name().as_str();
            if !names.contains(&name) && name != ID_KEY {
                return Err(format!("a column {name:?}: {expected}"));
            }
            if schema.fields()[..place]
                .iter()
                .any(|other| other.name() == name)
            {
                return Err(format!("two columns {name:?}"));
            }
        }
        let column = |name: &&str| {
            let missing = || format!("no column {name:?}: {expected}");
            batch.column_by_name(name).cloned().ok_or_else(missing)
        };
        let ids = batch.column_by_name(ID_KEY).cloned();
        if let Some(ids) = &ids
            && !(ids.data_type().is_integer() || is_text(ids.data_type()))
        {
            return Err(format!(
                "the column {ID_KEY:?}: expected strings or integers, found {}",
                ids.data_type()
            ));
        }
        Ok(ArrowInstances {
            columns: names.iter().map(column).collect::<Result<_, _>>()?,
            ids,
            count: batch.num_rows(),
        })
    }

    /// How many rows the batch has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends the instance of a row to the inputs, or its error; without an id of its own it has the number.
    pub fn build(&self, builder: &mut Builder<'_>, row: usize, number: u64, inputs: &mut Inputs) {
        let outcome = builder.instance(inputs, |builder, inputs| {
            for (argument, column) in self.columns.iter().enumerate() {
                let mut values = Values::new(column, row);
                builder.argument(argument, String::new, &mut values, inputs)?;
            }
            Ok(())
        });
        match self.id(row) {
            Ok(id) => inputs.push(&id.unwrap_or_else(|| number.to_string()), outcome),
            Err(problem) => inputs.push(&number.to_string(), outcome.and(Err(problem))),
        }
    }

    /// The id as JSON text.
    fn id(&self, row: usize) -> Result<Option<String>, InstanceError> {
        let Some(ids) = &self.ids else {
            return Ok(None);
        };
        if ids.is_null(row) {
            return Err(InstanceError::bad_input(
                "id: expected a string or an integer, found null",
            ));
        }
        let text = match ids.data_type() {
            DataType::Utf8 => Some(ids.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Some(ids.as_string::<i64>().value(row)),
            DataType::Utf8View => Some(ids.as_string_view().value(row)),
            _ => None,
        };
        Ok(match text {
            Some(text) => serde_json::to_string(text).ok(),
            None => integer(ids, row).map(|id| id.to_string()),
        })
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}
