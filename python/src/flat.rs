//! Instances as flat arrays: nothing of Python is looked at an instance.
//!
//! | an argument's type | its arrays |
//! |---|---|
//! | a data type | a dict: `tags` and `ends`, nodes in postorder; a list of arrays for each constructor, one a field that is not of the type itself |
//! | a scalar or a tensor of known shape | one array with a first axis for the instances |
//! | a tensor with one instance dim, an array of numbers | the rows of all instances, and where each begins and the last ends |

use std::borrow::Cow;

use cohort_runtime::InstanceError;
use cohort_runtime::abi::manifest::{Adt, Elem, LeadingDim, Manifest, Type};
use cohort_runtime::io::input::{Builder, FlatFields, Inputs, Postorder, Problem, Source, Tag};
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::{self, Array, Outcome};
use crate::arrow::Table;
use crate::errors::instance_exception;
use crate::types::form;

/// Instances that are built without a look at an object.
pub trait Instances: Send + Sync {
    fn count(&self) -> usize;

    /// Appends an instance to the inputs.
    fn build(&self, builder: &mut Builder<'_>, instance: usize, inputs: &mut Inputs);
}

/// Bytes that a node takes at least.
const NODE_BYTES: u64 = 8;

/// Instances as arrays, of programs that take the same arguments.
#[pyclass(frozen, module = "cohort._cohort")]
pub struct Flat {
    instances: Box<dyn Instances>,
    form: String,
}

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
        self.instances.count()
    }
}

impl Flat {
    pub fn of_table(manifest: &Manifest, table: &Bound<'_, PyAny>) -> PyResult<Flat> {
        Ok(Flat {
            instances: Box::new(Table::read(manifest, table)?),
            form: form(manifest),
        })
    }

    /// For a program with that manifest.
    pub fn instances(&self, manifest: &Manifest) -> PyResult<&dyn Instances> {
        let form = form(manifest);
        match self.form == form {
            true => Ok(&*self.instances),
            false => Err(PyTypeError::new_err(format!(
                "these instances are of another program: it takes {}, and this one takes {form}",
                self.form
            ))),
        }
    }

    /// An instance may take `max_memory` bytes at most.
    pub fn new(manifest: &Manifest, given: &Bound<'_, PyDict>, max_memory: u64) -> PyResult<Flat> {
        let names: Vec<&str> = (manifest.arguments.iter())
            .map(|argument| argument.name.as_str())
            .collect();
        for key in given.keys() {
            if !names.contains(&&*key.extract::<String>()?) {
                return Err(PyTypeError::new_err(format!(
                    "an argument {key} that the program does not have; it has {}",
                    names.join(", ")
                )));
            }
        }
        let builder = Builder::new(manifest, max_memory);
        let mut arguments = Vec::new();
        let mut count = None;
        for argument in &manifest.arguments {
            let name = &argument.name;
            let Some(value) = given.get_item(name)? else {
                return Err(PyTypeError::new_err(format!(
                    "the argument {name} is missing"
                )));
            };
            let (read, instances) =
                read_argument(manifest, (&builder, max_memory), name, &argument.ty, &value)?;
            if count.is_some_and(|count| count != instances) {
                return Err(PyValueError::new_err(format!(
                    "{name} is of {instances} instances, another argument of {}",
                    count.unwrap_or(0)
                )));
            }
            count = Some(instances);
            arguments.push(read);
        }
        Ok(Flat {
            instances: Box::new(Arrays {
                count: count.unwrap_or(0),
                arguments,
            }),
            form: form(manifest),
        })
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
    (builder, max_memory): (&Builder<'_>, u64),
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
            return read_nodes(&manifest.adts[*adt], name, fields, value, max_memory);
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
    let py = value.py();
    let mut array = begin(name, &values, elem)?;
    let rows = rows_of(name, &array, &shape)?;
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
    let row = shape
        .iter()
        .fold(elem.bytes() as u64, |bytes, dim| bytes.saturating_mul(*dim));
    let lengths = offsets.iter().flat_map(|offsets| offsets.windows(2));
    let lengths = lengths.map(|two| (two[1] - two[0]) as u64);
    // Without offsets each has one row.
    let has_one = (offsets.is_none() && count > 0).then_some(1);
    for (instance, rows) in has_one.into_iter().chain(lengths).enumerate() {
        check_memory(py, instance, rows.saturating_mul(row), max_memory)?;
    }
    read(name, &mut array, elem)?;
    let size = row as usize;
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
    max_memory: u64,
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
    for key in members.keys() {
        let is_constructor = |name: &str| adt.constructors.iter().any(|own| own.name == name);
        let known = key.extract::<String>();
        let is_known =
            |key: &String| ["tags", "ends"].contains(&key.as_str()) || is_constructor(key);
        if !known.as_ref().is_ok_and(is_known) {
            let names = adt.constructors.iter().map(|own| own.name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(PyTypeError::new_err(format!(
                "{name}: {} is neither `tags` nor `ends` nor a constructor of {} ({})",
                key.repr()?,
                adt.name,
                names.join(", ")
            )));
        }
    }
    let ends = read_counts(&format!("{name}: ends"), &member("ends")?)?;
    let mut begin_of_instance = 0;
    for (instance, end) in ends.iter().enumerate() {
        let nodes = end.saturating_sub(begin_of_instance) as u64;
        check_memory(
            value.py(),
            instance,
            nodes.saturating_mul(NODE_BYTES),
            max_memory,
        )?;
        begin_of_instance = *end;
    }
    let nodes = ends.last().copied().unwrap_or(0);
    let tags = read_tags(adt, name, &member("tags")?, nodes)?;
    if ends.windows(2).any(|two| two[0] > two[1]) {
        return Err(PyValueError::new_err(format!("{name}: ends rise")));
    }
    let mut of_tag = vec![0; adt.constructors.len()];
    tags.iter().for_each(|tag| of_tag[usize::from(*tag)] += 1);
    let mut columns = Vec::new();
    for ((constructor, fields), nodes) in adt.constructors.iter().zip(fields).zip(of_tag) {
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
        let mut columns_of = Vec::new();
        for field in fields {
            columns_of.push(match (field, &mut arrays) {
                (None, _) => None,
                (Some((elem, shape)), arrays) => {
                    let Some(array) = arrays.next() else { break };
                    let place = format!("{name}: {}", constructor.name);
                    let mut array = begin(&place, &array, elem)?;
                    let rows = rows_of(&place, &array, &shape)?;
                    if rows > nodes {
                        return Err(PyValueError::new_err(format!(
                            "{place}: {rows} rows for {nodes} nodes"
                        )));
                    }
                    read(&place, &mut array, elem)?;
                    Some(array.bytes)
                }
            });
        }
        columns.push(columns_of);
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

/// Reads the constructor number of each of `nodes` nodes.
fn read_tags(adt: &Adt, name: &str, value: &Bound<'_, PyAny>, nodes: usize) -> PyResult<Vec<u8>> {
    let place = format!("{name}: tags");
    let mut array = begin(&place, value, Elem::I32)?;
    if array.shape.len() == 1 && array.shape[0] != nodes as u64 {
        return Err(PyValueError::new_err(format!(
            "{name}: ends rise up to the number of nodes, {}",
            array.shape[0]
        )));
    }
    let numbers = counts(&place, &mut array)?;
    let is_tag = |number: &i32| (0..adt.constructors.len() as i32).contains(number);
    match numbers.iter().find(|number| !is_tag(number)) {
        None => Ok(numbers.iter().map(|tag| *tag as u8).collect()),
        Some(number) if *number < 0 => Err(not_counts(&place)),
        Some(tag) => Err(PyValueError::new_err(format!(
            "{name}: the tag {tag}, which no constructor of {} has",
            adt.name
        ))),
    }
}

/// An array of whole numbers that are not negative and less than 2³¹.
fn read_counts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut array = begin(name, value, Elem::I32)?;
    let numbers = counts(name, &mut array)?.into_iter().map(usize::try_from);
    let numbers: Result<_, _> = numbers.collect();
    numbers.map_err(|_| not_counts(name))
}

/// The numbers of an array of one axis.
fn counts(name: &str, array: &mut Array) -> PyResult<Vec<i32>> {
    if array.shape.len() != 1 {
        return Err(not_counts(name));
    }
    read(name, array, Elem::I32)?;
    let (words, _) = array.bytes.as_chunks();
    Ok(words.iter().map(|word| i32::from_le_bytes(*word)).collect())
}

/// Begins with an array, or what becomes one: a list of numbers, a tensor of PyTorch.
fn begin(name: &str, value: &Bound<'_, PyAny>, elem: Elem) -> PyResult<Array> {
    let py = value.py();
    let mut array = Array::default();
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if is_list && value.len()? == 0 {
        array.shape.push(0);
        return Ok(array);
    }
    let plain = match is_list {
        true => {
            let numpy = py.import("numpy")?;
            numpy.call_method1("asarray", (value,)).map(Some)
        }
        false => arrays::plain(value),
    };
    let expected = format!(
        "{name}: expected an array of {}",
        crate::objects::name(elem)
    );
    let plain = plain.map_err(|error| match error.is_instance_of::<PyException>(py) {
        true => PyTypeError::new_err(format!(
            "{expected}, found {}",
            crate::objects::reason(py, &error)
        )),
        false => error,
    })?;
    let found = plain.as_ref().unwrap_or(value);
    match plain.is_some() && array.begin(found, elem)? {
        true => Ok(array),
        false => Err(PyTypeError::new_err(format!(
            "{expected}, found {}",
            crate::objects::describe(found)
        ))),
    }
}

/// How many rows of that shape an array has.
fn rows_of(name: &str, array: &Array, shape: &[u64]) -> PyResult<usize> {
    match array.shape.split_first() {
        Some((rows, of_row)) if of_row == shape => Ok(*rows as usize),
        _ => Err(PyValueError::new_err(format!(
            "{name}: expected rows of shape {shape:?}, found an array of shape {:?}",
            array.shape
        ))),
    }
}

/// Reads the elements of an array whose size was checked.
fn read(name: &str, array: &mut Array, elem: Elem) -> PyResult<()> {
    match array.elements(elem) {
        Outcome::Read => Ok(()),
        Outcome::DoesNotFit => Err(PyValueError::new_err(format!(
            "{name}: a number that does not fit {}",
            crate::objects::name(elem)
        ))),
        Outcome::NoMemory => Err(PyMemoryError::new_err(format!(
            "{name}: not enough memory for the array"
        ))),
    }
}

/// An error where an instance takes more than it may.
fn check_memory(py: Python<'_>, instance: usize, bytes: u64, max_memory: u64) -> PyResult<()> {
    match bytes <= max_memory {
        true => Ok(()),
        false => {
            let error = InstanceError::memory_limit("the input", max_memory);
            Err(instance_exception(py, &error, instance))
        }
    }
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

    fn tensor(&mut self, elem: Elem) -> Result<Option<&[u64]>, Problem> {
        Ok((elem == self.elem).then_some(self.shape))
    }

    fn elements(&mut self, _elem: Elem) -> Result<&[u8], Problem> {
        Ok(self.bytes)
    }

    fn found(&mut self) -> String {
        "an array".to_owned()
    }
}
