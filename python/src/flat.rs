//! Instances as flat arrays: nothing of Python is looked at an instance.
//!
//! | an argument's type | its arrays |
//! |---|---|
//! | a data type | a dict: `tags` and `ends`, nodes in postorder; a list of arrays for each constructor, one a field that is not of the type itself |
//! | a scalar or a tensor of known shape | one array with a first axis for the instances |
//! | a tensor with one instance dim, an array of numbers | the rows of all instances, and where each begins and the last ends |

use std::borrow::Cow;

use cohort_runtime::abi::manifest::{Adt, Elem, LeadingDim, Manifest, Type};
use cohort_runtime::io::input::{
    Builder, FlatFields, Inputs, Postorder, Problem, Source, Tag, TensorBytes,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Array, Outcome};
use crate::arrow::Table;

/// Instances that are built without a look at an object.
pub trait Instances: Send + Sync {
    fn count(&self) -> usize;

    /// Appends an instance to the inputs.
    fn build(&self, builder: &mut Builder<'_>, instance: usize, inputs: &mut Inputs);
}

/// Instances of one program as arrays.
#[pyclass(frozen, module = "cohort._cohort")]
pub struct Flat(Box<dyn Instances>);

struct Arrays {
    count: usize,
    arguments: Vec<Argument>,
}

enum Argument {
    Nodes {
        tags: Vec<u8>,
        /// Where the nodes of each instance end.
        ends: Vec<usize>,
        /// By tag and field.
        fields: Vec<Vec<Option<Vec<u8>>>>,
        /// By instance and tag: how many nodes all instances before it have.
        first: Vec<usize>,
    },
    Rows {
        elem: Elem,
        bytes: Vec<u8>,
        /// Of a row.
        shape: Vec<u64>,
        size: usize,
        /// Where each instance begins; without, each has one row.
        offsets: Option<Vec<usize>>,
    },
}

#[pymethods]
impl Flat {
    fn __len__(&self) -> usize {
        self.0.count()
    }
}

impl Flat {
    pub fn of_table(manifest: &Manifest, table: &Bound<'_, PyAny>) -> PyResult<Flat> {
        Ok(Flat(Box::new(Table::read(manifest, table)?)))
    }

    pub fn instances(&self) -> &dyn Instances {
        &*self.0
    }

    pub fn new(manifest: &Manifest, given: &Bound<'_, PyDict>) -> PyResult<Flat> {
        let builder = Builder::new(manifest, u64::MAX);
        let mut arguments = Vec::new();
        let mut count = None;
        for argument in &manifest.arguments {
            let name = &argument.name;
            let Some(value) = given.get_item(name)? else {
                return Err(PyTypeError::new_err(format!(
                    "the argument {name} is missing"
                )));
            };
            let (read, instances) = read_argument(manifest, &builder, name, &argument.ty, &value)?;
            if count.is_some_and(|count| count != instances) {
                return Err(PyValueError::new_err(format!(
                    "{name} is of {instances} instances, another argument of {}",
                    count.unwrap_or(0)
                )));
            }
            count = Some(instances);
            arguments.push(read);
        }
        if given.len() > arguments.len() {
            let names: Vec<&str> = (manifest.arguments.iter())
                .map(|argument| argument.name.as_str())
                .collect();
            return Err(PyTypeError::new_err(format!(
                "an argument that the program does not have; it has {}",
                names.join(", ")
            )));
        }
        Ok(Flat(Box::new(Arrays {
            count: count.unwrap_or(0),
            arguments,
        })))
    }
}

impl Instances for Arrays {
    fn count(&self) -> usize {
        self.count
    }

    fn build(&self, builder: &mut Builder<'_>, instance: usize, inputs: &mut Inputs) {
        let outcome = builder.instance(inputs, |builder, inputs| {
            for (number, argument) in self.arguments.iter().enumerate() {
                argument.read(builder, number, instance, inputs)?;
            }
            Ok(())
        });
        // An id is counted from 1, as the lines of a file are.
        inputs.push(&(instance + 1).to_string(), outcome);
    }
}

impl Argument {
    fn read(
        &self,
        builder: &mut Builder<'_>,
        number: usize,
        instance: usize,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        match self {
            Argument::Nodes {
                tags,
                ends,
                fields,
                first,
            } => {
                let begin = instance.checked_sub(1).map_or(0, |before| ends[before]);
                let nodes = Postorder {
                    tags: &tags[begin..ends[instance]],
                    fields,
                    first: &first[instance * fields.len()..][..fields.len()],
                };
                builder.postorder(number, &nodes, inputs)
            }
            Argument::Rows {
                elem,
                bytes,
                shape,
                size,
                offsets,
            } => {
                let mut full = Vec::new();
                let (begin, end) = match offsets {
                    Some(offsets) => {
                        let (begin, end) = (offsets[instance], offsets[instance + 1]);
                        full.push((end - begin) as u64);
                        (begin, end)
                    }
                    None => (instance, instance + 1),
                };
                full.extend_from_slice(shape);
                let mut rows = Rows {
                    elem: *elem,
                    shape: &full,
                    bytes: &bytes[begin * size..end * size],
                };
                builder.argument(number, String::new, &mut rows, inputs)
            }
        }
    }
}

fn read_argument(
    manifest: &Manifest,
    builder: &Builder<'_>,
    name: &str,
    ty: &Type,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Argument, usize)> {
    let no_form = || PyTypeError::new_err(format!("{name}: its type has no flat form"));
    let pool = |pool: &usize| {
        (
            manifest.row_pools[*pool].elem,
            manifest.row_pools[*pool].shape.clone(),
        )
    };
    let (elem, shape, is_ragged) = match ty {
        Type::Adt(adt) => {
            let fields = builder.flat_fields(*adt).ok_or_else(no_form)?;
            return read_nodes(&manifest.adts[*adt], name, fields, value);
        }
        Type::Scalar(elem) => (*elem, Vec::new(), false),
        Type::Tensor { pool: of } => (pool(of).0, pool(of).1, false),
        Type::Ragged { pool: of, dims } => match dims.as_slice() {
            [LeadingDim::Named(_) | LeadingDim::Any] => (pool(of).0, pool(of).1, true),
            _ => return Err(no_form()),
        },
        Type::Array(element) => match **element {
            Type::Scalar(elem) => (elem, Vec::new(), true),
            _ => return Err(no_form()),
        },
        _ => return Err(no_form()),
    };
    let (values, offsets) = match is_ragged {
        false => (value.clone(), None),
        true => {
            let pair = "the rows of all instances and their offsets";
            let (values, offsets): (Bound<'_, PyAny>, Bound<'_, PyAny>) = value
                .extract()
                .map_err(|_| PyTypeError::new_err(format!("{name}: expected {pair}")))?;
            (
                values,
                Some(read_counts(&format!("{name}: offsets"), &offsets)?),
            )
        }
    };
    let array = read_array(name, &values, elem)?;
    if array.shape.is_empty() || array.shape[1..] != shape[..] {
        return Err(PyValueError::new_err(format!(
            "{name}: expected rows of shape {shape:?}, found an array of shape {:?}",
            array.shape
        )));
    }
    let rows = array.shape[0] as usize;
    if let Some(offsets) = &offsets
        && offsets.windows(2).any(|two| two[0] > two[1])
    {
        return Err(PyValueError::new_err(format!("{name}: offsets rise")));
    }
    let count = match &offsets {
        None => rows,
        Some(offsets) => match (offsets.first(), offsets.last()) {
            (Some(0), Some(last)) if *last == rows => offsets.len() - 1,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "{name}: offsets begin with 0 and end with the number of rows, {rows}"
                )));
            }
        },
    };
    let size = elem.bytes() * shape.iter().product::<u64>() as usize;
    let read = Argument::Rows {
        elem,
        bytes: array.bytes,
        shape,
        size,
        offsets,
    };
    Ok((read, count))
}

fn read_nodes(
    adt: &Adt,
    name: &str,
    fields: FlatFields,
    value: &Bound<'_, PyAny>,
) -> PyResult<(Argument, usize)> {
    let members = value.downcast::<PyDict>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{name}: expected a dict with `tags`, `ends` and fields"
        ))
    })?;
    let member = |key: &str| {
        members
            .get_item(key)?
            .ok_or_else(|| PyTypeError::new_err(format!("{name}: `{key}` is missing")))
    };
    let tags = read_tags(adt, name, &member("tags")?)?;
    let ends = read_counts(&format!("{name}: ends"), &member("ends")?)?;
    if ends.last().copied().unwrap_or(0) != tags.len() || ends.windows(2).any(|two| two[0] > two[1])
    {
        return Err(PyValueError::new_err(format!(
            "{name}: ends rise up to the number of nodes, {}",
            tags.len()
        )));
    }
    let mut columns = Vec::new();
    for (constructor, fields) in adt.constructors.iter().zip(fields) {
        let own = fields.iter().flatten().count();
        let arrays: Vec<Bound<'_, PyAny>> = match members.get_item(&constructor.name)? {
            Some(arrays) => arrays.extract()?,
            None => Vec::new(),
        };
        if arrays.len() != own {
            return Err(PyTypeError::new_err(format!(
                "{name}: expected a list of {own} arrays for {}, found {}",
                constructor.name,
                arrays.len()
            )));
        }
        let mut arrays = arrays.into_iter();
        let mut read = Vec::new();
        for field in fields {
            read.push(match (field, &mut arrays) {
                (None, _) => None,
                (Some((elem, shape)), arrays) => {
                    let Some(array) = arrays.next() else { break };
                    let place = format!("{name}: {}", constructor.name);
                    let array = read_array(&place, &array, elem)?;
                    if array.shape.is_empty() || array.shape[1..] != shape[..] {
                        return Err(PyValueError::new_err(format!(
                            "{place}: expected rows of shape {shape:?}, found an array of shape {:?}",
                            array.shape
                        )));
                    }
                    Some(array.bytes)
                }
            });
        }
        columns.push(read);
    }
    let mut counts = vec![0; columns.len()];
    let mut first = Vec::with_capacity(ends.len() * columns.len());
    let mut begin = 0;
    for end in &ends {
        first.extend_from_slice(&counts);
        for tag in &tags[begin..*end] {
            counts[usize::from(*tag)] += 1;
        }
        begin = *end;
    }
    let count = ends.len();
    let read = Argument::Nodes {
        tags,
        ends,
        fields: columns,
        first,
    };
    Ok((read, count))
}

/// Numbers of constructors.
fn read_tags(adt: &Adt, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let place = format!("{name}: tags");
    let array = read_array(&place, value, Elem::I32)?;
    let is_tag = |number: &i32| (0..adt.constructors.len() as i32).contains(number);
    match counts(&place, &array)?.find(|number| !is_tag(number)) {
        None => Ok(counts(&place, &array)?.map(|tag| tag as u8).collect()),
        Some(number) if number < 0 => Err(not_counts(&place)),
        Some(tag) => Err(PyValueError::new_err(format!(
            "{name}: the tag {tag}, which no constructor of {} has",
            adt.name
        ))),
    }
}

fn read_array(name: &str, value: &Bound<'_, PyAny>, elem: Elem) -> PyResult<Array> {
    let mut array = Array::default();
    match crate::arrays::is_array(value)
        .then(|| array.read(value, elem))
        .transpose()?
    {
        Some(Outcome::Read) => Ok(array),
        Some(Outcome::DoesNotFit) => Err(PyValueError::new_err(format!(
            "{name}: a number that does not fit {}",
            crate::objects::name(elem)
        ))),
        Some(Outcome::OtherType) | None => Err(PyTypeError::new_err(format!(
            "{name}: expected an array of {}",
            crate::objects::name(elem)
        ))),
    }
}

/// An array of whole numbers that are not negative and less than 2³¹.
fn read_counts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let array = read_array(name, value, Elem::I32)?;
    let numbers = counts(name, &array)?.map(usize::try_from);
    let numbers: Result<_, _> = numbers.collect();
    numbers.map_err(|_| not_counts(name))
}

/// The numbers of an array of one axis.
fn counts<'a>(name: &str, array: &'a Array) -> PyResult<impl Iterator<Item = i32> + 'a> {
    if array.shape.len() != 1 {
        return Err(not_counts(name));
    }
    let (words, _) = array.bytes.as_chunks();
    Ok(words.iter().map(|word| i32::from_le_bytes(*word)))
}

fn not_counts(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name}: expected one axis of numbers that are not negative"
    ))
}

/// The rows of one instance as a source.
struct Rows<'a> {
    elem: Elem,
    shape: &'a [u64],
    bytes: &'a [u8],
}

impl Source for Rows<'_> {
    fn begin_list(&mut self) -> Result<bool, Problem> {
        Ok(false)
    }

    fn next(&mut self, _is_first: bool) -> Result<bool, Problem> {
        Ok(false)
    }

    fn skip_rest(&mut self) -> Result<u64, Problem> {
        Ok(0)
    }

    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        let mut bits = [0; 4];
        if elem != self.elem || self.bytes.len() != elem.bytes() {
            return Ok(None);
        }
        bits[..elem.bytes()].copy_from_slice(self.bytes);
        Ok(Some(u32::from_le_bytes(bits)))
    }

    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem> {
        Ok(None)
    }

    fn constructor(&mut self, _number: usize, _adt: &Adt) -> Result<Tag, Problem> {
        Ok(Tag::Other(self.found()))
    }

    fn end_fields(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn tensor(&mut self, elem: Elem) -> Result<Option<TensorBytes<'_>>, Problem> {
        Ok((elem == self.elem).then_some(TensorBytes {
            shape: self.shape,
            bytes: self.bytes,
        }))
    }

    fn found(&mut self) -> String {
        "an array".to_owned()
    }
}
