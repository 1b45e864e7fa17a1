//! Arrays of Arrow as a source of instances: a column for each of `main`'s arguments, a row an instance.
//!
//! | a value | its column |
//! |---|---|
//! | a number, a truth value | numbers, booleans |
//! | a tensor, an array | lists, of fixed size or not, of lists or of numbers |
//! | a tuple | a struct |
//! | of a data type | a struct with `tags`, lists of the numbers of the constructors of the nodes in postorder, and for each constructor with fields of other types its own lists: of the field, or of structs of them |
//!
//! A column `id` has strings or integers. Nothing may be null.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, StructArray};
use arrow_schema::DataType;
use cohort_abi::manifest::{Adt, Elem, Manifest, Type};
use std::borrow::Cow;

use super::builder::Builder;
use super::message::Problem;
use super::postorder::Postorder;
use super::source::{Source, Tag, TensorBytes};
use super::{Inputs, narrow};
use crate::failure::InstanceError;
use crate::validate::ID_KEY;

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

    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends the instance of a row to the inputs, or its error; without an id of its own it has the number.
    pub fn build(&self, builder: &mut Builder<'_>, row: usize, number: u64, inputs: &mut Inputs) {
        let manifest = builder.manifest();
        let outcome = builder.instance(inputs, |builder, inputs| {
            for (argument, column) in self.columns.iter().enumerate() {
                if let Type::Adt(adt) = manifest.arguments[argument].ty {
                    postorder(
                        builder,
                        argument,
                        &manifest.adts[adt],
                        adt,
                        column,
                        row,
                        inputs,
                    )?;
                } else {
                    let mut values = Values::new(column, row);
                    builder.argument(argument, String::new, &mut values, inputs)?;
                }
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

/// Reads the nodes of a value of a data type.
fn postorder(
    builder: &mut Builder<'_>,
    argument: usize,
    adt: &Adt,
    number: usize,
    column: &ArrayRef,
    row: usize,
    inputs: &mut Inputs,
) -> Result<(), Problem> {
    let name = &builder.manifest().arguments[argument].name;
    let wrong = |what: String| Problem::Line(format!("argument {name}: {what}"));
    let forms = builder.flat_fields(number);
    let forms = forms.ok_or_else(|| wrong("its type has no flat form".to_owned()))?;
    let Some(members) = column.as_struct_opt().filter(|_| column.is_valid(row)) else {
        let found = found(column, row);
        return Err(wrong(format!(
            "expected a struct with `tags`, found {found}"
        )));
    };
    let list = |name: &str| {
        let missing = || wrong(format!("expected lists `{name}`"));
        let list = members.column_by_name(name).ok_or_else(missing)?;
        let range = range(list, row).filter(|_| list.is_valid(row));
        range.ok_or_else(missing)
    };
    let (of_tags, begin, end) = list("tags")?;
    let mut tags = Vec::with_capacity(end - begin);
    for place in begin..end {
        let tag = integer(of_tags, place).filter(|_| of_tags.is_valid(place));
        let tag = tag.and_then(|tag| u8::try_from(tag).ok());
        tags.push(tag.ok_or_else(|| wrong("a tag is the number of a constructor".to_owned()))?);
    }
    let mut fields = Vec::with_capacity(forms.len());
    for (constructor, form) in adt.constructors.iter().zip(forms) {
        let own = form.iter().flatten().count();
        let values = match own {
            0 => None,
            _ => Some(list(&constructor.name)?),
        };
        let mut place = 0;
        let mut columns = Vec::with_capacity(form.len());
        for field in form {
            let (Some((elem, shape)), Some((values, begin, end))) = (field, values) else {
                columns.push(None);
                continue;
            };
            let column = match own {
                1 => Some(values),
                _ => values
                    .as_struct_opt()
                    .and_then(|fields| fields.columns().get(place)),
            };
            place += 1;
            let mut read = Dense::default();
            let is_read = column.is_some_and(|column| read.rows(column, begin, end, elem));
            if !is_read || read.shape != shape && begin != end {
                return Err(wrong(format!(
                    "the fields of {} are not what its type has: expected {}",
                    constructor.name,
                    crate::weights::describe(crate::weights::dtype_name(elem), &shape)
                )));
            }
            columns.push(Some(read.bytes));
        }
        fields.push(columns);
    }
    let nodes = Postorder {
        tags: &tags,
        fields: &fields,
        first: &vec![0; fields.len()],
    };
    builder.postorder(argument, &nodes, inputs)
}

/// What a list has: the values of all lists, and where its own begin and end.
fn range(array: &dyn Array, row: usize) -> Option<(&ArrayRef, usize, usize)> {
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
struct Dense {
    /// Of a row.
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl Dense {
    /// Reads rows that are numbers, or lists of equal lengths; whether they are.
    fn rows(&mut self, array: &dyn Array, begin: usize, end: usize, elem: Elem) -> bool {
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
fn integer(array: &dyn Array, row: usize) -> Option<i128> {
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
fn number(array: &dyn Array, row: usize, elem: Elem) -> Option<u32> {
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

fn found(array: &dyn Array, row: usize) -> String {
    match array.is_null(row) {
        true => "null".to_owned(),
        false => format!("a value of {}", array.data_type()),
    }
}

/// A list whose elements are taken.
enum Open<'a> {
    Elements {
        values: &'a ArrayRef,
        next: usize,
        end: usize,
    },
    Fields {
        members: &'a StructArray,
        row: usize,
        next: usize,
    },
}

/// The values of one row of a column.
struct Values<'a> {
    array: &'a ArrayRef,
    row: usize,
    open: Vec<Open<'a>>,
    dense: Dense,
}

impl<'a> Values<'a> {
    fn new(array: &'a ArrayRef, row: usize) -> Values<'a> {
        Values {
            array,
            row,
            open: Vec::new(),
            dense: Dense::default(),
        }
    }
}

impl Source for Values<'_> {
    fn begin_list(&mut self) -> Result<bool, Problem> {
        if self.array.is_null(self.row) {
            return Ok(false);
        }
        self.open.push(match range(self.array, self.row) {
            Some((values, next, end)) => Open::Elements { values, next, end },
            None => match self.array.as_struct_opt() {
                Some(members) => Open::Fields {
                    members,
                    row: self.row,
                    next: 0,
                },
                None => return Ok(false),
            },
        });
        Ok(true)
    }

    fn next(&mut self, _is_first: bool) -> Result<bool, Problem> {
        match self.open.last_mut() {
            Some(Open::Elements { values, next, end }) if *next < *end => {
                (self.array, self.row) = (values, *next);
                *next += 1;
                Ok(true)
            }
            Some(Open::Fields { members, row, next }) if *next < members.num_columns() => {
                (self.array, self.row) = (members.column(*next), *row);
                *next += 1;
                Ok(true)
            }
            _ => {
                self.open.pop();
                Ok(false)
            }
        }
    }

    fn skip_rest(&mut self) -> Result<u64, Problem> {
        Ok(match self.open.pop() {
            Some(Open::Elements { next, end, .. }) => 1 + (end - next) as u64,
            Some(Open::Fields { members, next, .. }) => 1 + (members.num_columns() - next) as u64,
            None => 0,
        })
    }

    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        match self.array.is_null(self.row) {
            true => Ok(None),
            false => Ok(number(self.array, self.row, elem)),
        }
    }

    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem> {
        if self.array.is_null(self.row) {
            return Ok(None);
        }
        let short = self.array.as_string_opt::<i32>();
        let text = short.map(|texts| texts.value(self.row));
        let long = || Some(self.array.as_string_opt::<i64>()?.value(self.row));
        Ok(text.or_else(long).map(Cow::Borrowed))
    }

    fn constructor(&mut self, _number: usize, adt: &Adt) -> Result<Tag, Problem> {
        Err(Problem::Line(format!(
            "a value of {} within another one has no form in Arrow; only an argument has",
            adt.name
        )))
    }

    fn end_fields(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn tensor(&mut self, elem: Elem) -> Result<Option<TensorBytes<'_>>, Problem> {
        if self.array.is_null(self.row) {
            return Ok(None);
        }
        let Some((values, begin, end)) = range(self.array, self.row) else {
            return Ok(None);
        };
        // What tells nothing of its shape, or is not of one, is read element by element.
        if begin == end || !self.dense.rows(values, begin, end, elem) {
            return Ok(None);
        }
        self.dense.shape.insert(0, (end - begin) as u64);
        Ok(Some(TensorBytes {
            shape: &self.dense.shape,
            bytes: &self.dense.bytes,
        }))
    }

    fn found(&mut self) -> String {
        found(self.array, self.row)
    }
}
