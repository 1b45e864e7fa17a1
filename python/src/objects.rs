//! Objects of Python as a source of instances.
//!
//! | a value | may be |
//! |---|---|
//! | of a data type | an object of its constructor's class, `("Node", l, r)`, `{"Node": [l, r]}`, `{"Node": {"left": l, "right": r}}`, `"Empty"` |
//! | a tuple, an array | a list or a tuple; an array of numbers also whatever has a buffer |
//! | a tensor | whatever has a buffer or becomes an array of NumPy; lists of numbers |
//! | a number | an int or a float, NumPy's too; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//!
//! Open lists are on a stack of their own, so the depth of an object does not matter. An object that
//! contains itself would be walked for ever: on the way down it comes again and again, which
//! [`Watch`] sees. Values of data types go the short way of [`Nodes`] where that is one.

use std::borrow::Cow;

use cohort_runtime::InstanceError;
use cohort_runtime::abi::manifest::{Adt, Constructor, Elem, Type};
use cohort_runtime::io::input::{Builder, Inputs, Problem, Source, Tag, narrow};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::arrays::{self, Array, Outcome};
use crate::nodes::Nodes;
use crate::types::Types;
use crate::watch::Watch;

/// Characters of a value that a message shows.
const SHOWN: usize = 40;
/// Characters of an exception that a message shows.
const REASON: usize = 200;
/// What a node takes at least, about.
const NODE_BYTES: u64 = 8;

/// A list whose elements are taken, with the number of the next one.
enum Open<'py> {
    List(Bound<'py, PyList>, usize),
    /// With its length, which never changes.
    Tuple(Bound<'py, PyTuple>, usize, usize),
    Object {
        object: Bound<'py, PyAny>,
        adt: usize,
        tag: usize,
        next: usize,
    },
    /// Fields by name, and their names.
    Members(Bound<'py, PyDict>, Bound<'py, PyList>, usize),
    /// Rows of an array.
    Rows(Bound<'py, PyAny>, usize),
}

pub struct Objects<'t, 'py> {
    types: &'t Types,
    at_hand: Bound<'py, PyAny>,
    open: Vec<Open<'py>>,
    watch: Watch,
    array: Array,
    nodes: Nodes,
    /// Of one instance.
    most_nodes: u64,
    /// What the instance is not to blame for, such as Ctrl-C.
    stop: Option<PyErr>,
}

impl<'t, 'py> Objects<'t, 'py> {
    /// An instance may take `max_memory` bytes at most.
    pub fn new(py: Python<'py>, types: &'t Types, max_memory: u64) -> Self {
        Objects {
            types,
            at_hand: py.None().into_bound(py),
            open: Vec::new(),
            watch: Watch::default(),
            array: Array::default(),
            nodes: Nodes::default(),
            most_nodes: max_memory / NODE_BYTES,
            stop: None,
        }
    }

    /// Appends the instance to the inputs, or its error; without an id of its own it has that number.
    pub fn instance(
        &mut self,
        builder: &mut Builder<'_>,
        instance: &Bound<'py, PyAny>,
        number: u64,
        inputs: &mut Inputs,
    ) -> PyResult<()> {
        let mut id = None;
        let outcome = match instance.downcast::<PyDict>() {
            Ok(members) => builder.instance(inputs, |builder, inputs| {
                self.members(builder, members, &mut id, inputs)
            }),
            Err(_) => Err(InstanceError::bad_input(format!(
                "expected a dict with an instance, found {}",
                describe(instance)
            ))),
        };
        self.open.clear();
        self.array.release();
        self.at_hand = instance.py().None().into_bound(instance.py());
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        if id.is_none()
            && outcome.is_err()
            && let Ok(members) = instance.downcast::<PyDict>()
            && let Ok(Some(given)) = members.get_item(self.types.id.bind(instance.py()))
        {
            id = id_text(&given).ok();
        }
        let id = id.unwrap_or_else(|| number.to_string());
        inputs.push(&id, outcome);
        Ok(())
    }

    fn members(
        &mut self,
        builder: &mut Builder<'_>,
        members: &Bound<'py, PyDict>,
        id: &mut Option<String>,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        let py = members.py();
        let mut found = 0;
        for (number, name) in self.types.arguments.iter().enumerate() {
            let value = members.get_item(name.bind(py));
            let Some(value) = value.map_err(|error| self.raised(py, error))? else {
                continue;
            };
            found += 1;
            if let Type::Adt(adt) = builder.manifest().arguments[number].ty
                && (self.nodes).read(self.types, adt, &value, self.most_nodes)
            {
                builder.postorder(number, &self.nodes.postorder(), inputs)?;
                continue;
            }
            self.open.clear();
            self.watch.reset();
            self.at_hand = value;
            let name = || name.bind(py).to_string();
            builder.argument(number, name, self, inputs)?;
        }
        let given = members.get_item(self.types.id.bind(py));
        if let Some(given) = given.map_err(|error| self.raised(py, error))? {
            found += 1;
            *id = Some(id_text(&given)?);
        }
        if found < members.len() {
            for key in members.keys() {
                let is_known = key.downcast::<PyString>().is_ok_and(|key| {
                    let names = self.types.arguments.iter().chain([&self.types.id]);
                    let mut names = names.map(|name| name.bind(py).as_any().eq(key));
                    names.any(|is_equal| is_equal.unwrap_or(false))
                });
                if !is_known {
                    return Err(builder.unknown_key(&describe(&key)));
                }
            }
        }
        Ok(())
    }

    /// An exception within the instance.
    fn raised(&mut self, py: Python<'py>, error: PyErr) -> Problem {
        let problem = Problem::Line(format!("reading it raised {}", reason(py, &error)));
        if !error.is_instance_of::<PyException>(py) {
            self.stop = Some(error);
        }
        problem
    }

    /// Enters a list.
    fn enter(&mut self, open: Open<'py>) -> Result<(), Problem> {
        let object = match &open {
            Open::List(list, _) => list.as_ptr(),
            Open::Tuple(tuple, ..) => tuple.as_ptr(),
            Open::Members(members, ..) => members.as_ptr(),
            Open::Object { object, .. } | Open::Rows(object, _) => object.as_ptr(),
        } as usize;
        self.open.push(open);
        match self.watch.enter(object, self.open.len()) {
            true => Ok(()),
            false => Err(Problem::Line(
                "an object that contains itself has no end".to_owned(),
            )),
        }
    }

    fn leave(&mut self) {
        self.open.pop();
        self.watch.leave(self.open.len());
    }
}

impl Source for Objects<'_, '_> {
    fn begin_list(&mut self) -> Result<bool, Problem> {
        let open = if let Ok(list) = self.at_hand.downcast::<PyList>() {
            Open::List(list.clone(), 0)
        } else if let Ok(tuple) = self.at_hand.downcast::<PyTuple>() {
            Open::Tuple(tuple.clone(), 0, tuple.len())
        } else if !self.at_hand.is_instance_of::<PyBytes>()
            && self.at_hand.len().is_ok()
            && self.becomes_array()?
        {
            Open::Rows(self.at_hand.clone(), 0)
        } else {
            return Ok(false);
        };
        self.enter(open)?;
        Ok(true)
    }

    #[inline]
    fn next(&mut self, _is_first: bool) -> Result<bool, Problem> {
        let Some(open) = self.open.last_mut() else {
            return Ok(false);
        };
        let py = self.at_hand.py();
        let element = match open {
            Open::List(list, next) if *next < list.len() => {
                *next += 1;
                list.get_item(*next - 1)
            }
            Open::Tuple(tuple, next, length) if *next < *length => {
                *next += 1;
                tuple.get_item(*next - 1)
            }
            Open::Object {
                object,
                adt,
                tag,
                next,
            } if *next < self.types.adts[*adt][*tag].fields.len() => {
                *next += 1;
                object.getattr(self.types.adts[*adt][*tag].fields[*next - 1].bind(py))
            }
            Open::Rows(rows, next) if rows.len().is_ok_and(|length| *next < length) => {
                *next += 1;
                rows.get_item(*next - 1)
            }
            _ => {
                self.leave();
                return Ok(false);
            }
        };
        self.at_hand = element.map_err(|error| self.raised(py, error))?;
        Ok(true)
    }

    fn skip_rest(&mut self) -> Result<u64, Problem> {
        let rest = match self.open.last() {
            Some(Open::List(list, next)) => list.len().saturating_sub(*next),
            Some(Open::Tuple(_, next, length)) => length.saturating_sub(*next),
            Some(Open::Rows(rows, next)) => rows.len().unwrap_or(0).saturating_sub(*next),
            Some(Open::Object { .. } | Open::Members(..)) | None => 0,
        };
        self.leave();
        Ok(1 + rest as u64)
    }

    #[inline]
    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        let value = &self.at_hand;
        let bits = match elem {
            Elem::F32 if value.is_instance_of::<PyFloat>() => {
                value.extract::<f64>().ok().and_then(narrow)
            }
            Elem::F32 if value.is_instance_of::<PyString>() => not_finite(value),
            Elem::Bool => match value.downcast::<PyBool>() {
                Ok(value) => Some(u32::from(value.is_true())),
                Err(_) => self.of_array(elem)?,
            },
            _ if value.is_instance_of::<PyBool>() => None,
            Elem::F32 if value.is_instance_of::<PyInt>() => {
                value.extract::<f64>().ok().and_then(narrow)
            }
            Elem::I32 if value.is_instance_of::<PyInt>() => {
                value.extract::<i32>().ok().map(|value| value as u32)
            }
            _ => self.of_array(elem)?,
        };
        Ok(bits)
    }

    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem> {
        let text = self.at_hand.downcast::<PyString>().ok();
        // Half of a surrogate pair is not text.
        Ok(text.and_then(|text| text.to_str().ok()).map(Cow::Borrowed))
    }

    fn constructor(&mut self, number: usize, adt: &Adt) -> Result<Tag, Problem> {
        let misused = |tag, value: &Bound<'_, PyAny>| {
            let found = describe(value);
            Ok(Tag::Misused { tag, found })
        };
        if !self.at_hand.is_exact_instance_of::<PyTuple>()
            && let Some(tag) = self.types.of_class(number, &self.at_hand)
        {
            if !adt.constructors[tag].fields.is_empty() {
                self.enter(Open::Object {
                    object: self.at_hand.clone(),
                    adt: number,
                    tag,
                    next: 0,
                })?;
            }
            return Ok(Tag::Of(tag));
        }
        if let Ok(tuple) = self.at_hand.downcast::<PyTuple>() {
            let tuple = tuple.clone();
            let name = tuple.get_borrowed_item(0);
            let name = (name.as_ref().ok()).and_then(|name| name.downcast::<PyString>().ok());
            let tag = name.and_then(|name| self.types.find(number, name));
            let Some(tag) = tag else {
                return Ok(Tag::Other(describe(&self.at_hand)));
            };
            if !adt.constructors[tag].fields.is_empty() {
                let length = tuple.len();
                self.enter(Open::Tuple(tuple, 1, length))?;
            } else if tuple.len() > 1 {
                return misused(tag, &self.at_hand);
            }
            return Ok(Tag::Of(tag));
        }
        if let Ok(name) = self.at_hand.downcast::<PyString>() {
            return match self.types.find(number, name) {
                None => Ok(Tag::Other(describe(&self.at_hand))),
                Some(tag) if adt.constructors[tag].fields.is_empty() => Ok(Tag::Of(tag)),
                Some(tag) => misused(tag, &self.at_hand),
            };
        }
        let Ok(members) = self.at_hand.downcast::<PyDict>() else {
            return Ok(Tag::Other(describe(&self.at_hand)));
        };
        let Some((name, fields)) = members.iter().next().filter(|_| members.len() == 1) else {
            return Ok(Tag::Other(format!("a dict of {}", members.len())));
        };
        let tag = match name.downcast::<PyString>() {
            Ok(name) => self.types.find(number, name),
            Err(_) => None,
        };
        let Some(tag) = tag else {
            return Ok(Tag::Other(describe(&name)));
        };
        if adt.constructors[tag].fields.is_empty() {
            return misused(tag, &self.at_hand);
        }
        if let Ok(by_name) = fields.downcast::<PyDict>()
            && !adt.constructors[tag].names.is_empty()
        {
            let (members, keys) = (by_name.clone(), by_name.keys());
            self.enter(Open::Members(members, keys, 0))?;
            return Ok(Tag::ByName(tag));
        }
        self.at_hand = fields;
        if !self.begin_list()? {
            return Err(Problem::Value {
                expected: format!("a list of the fields of {}", adt.constructors[tag].name),
                found: describe(&self.at_hand),
            });
        }
        Ok(Tag::Of(tag))
    }

    fn field(
        &mut self,
        _is_first: bool,
        constructor: &Constructor,
    ) -> Result<Option<usize>, Problem> {
        let py = self.at_hand.py();
        let key = match self.open.last_mut() {
            Some(Open::Members(members, keys, next)) if *next < keys.len() => {
                *next += 1;
                let key = keys.get_item(*next - 1);
                key.and_then(|key| Ok((members.get_item(&key)?, key)))
            }
            _ => {
                self.leave();
                return Ok(None);
            }
        };
        let (value, key) = key.map_err(|error| self.raised(py, error))?;
        let is_it = |name: &String| matches!(key.eq(name.as_str()), Ok(true));
        let place = constructor.names.iter().position(is_it);
        let (Some(value), Some(_)) = (value, place) else {
            let names = constructor.names.join(", ");
            return Err(Problem::Value {
                expected: format!("a field of {} ({names})", constructor.name),
                found: describe(&key),
            });
        };
        self.at_hand = value;
        Ok(place)
    }

    fn end_fields(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn tensor(&mut self, elem: Elem) -> Result<Option<&[u64]>, Problem> {
        let value = &self.at_hand;
        if value.is_exact_instance_of::<PyList>()
            || value.is_exact_instance_of::<PyFloat>()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyTuple>()
            || value.is_instance_of::<PyBytes>()
            || !self.becomes_array()?
        {
            return Ok(None);
        }
        let py = self.at_hand.py();
        match self.array.begin(&self.at_hand, elem) {
            Ok(true) => return Ok(Some(&self.array.shape)),
            Err(error) if !error.is_instance_of::<PyException>(py) => {
                return Err(self.raised(py, error));
            }
            // Or it has a buffer, but of things.
            Ok(false) | Err(_) => {}
        }
        Err(Problem::Value {
            expected: format!("an array of {}", name(elem)),
            found: describe(&self.at_hand),
        })
    }

    fn elements(&mut self, elem: Elem) -> Result<&[u8], Problem> {
        match self.array.elements(elem) {
            Outcome::Read => Ok(&self.array.bytes),
            Outcome::NoMemory => Err(Problem::Memory),
            Outcome::DoesNotFit => Err(Problem::Value {
                expected: format!("an array of {}", name(elem)),
                found: format!(
                    "{} with a number that does not fit",
                    describe(&self.at_hand)
                ),
            }),
        }
    }

    fn found(&mut self) -> String {
        describe(&self.at_hand)
    }
}

impl Objects<'_, '_> {
    /// Whether what is at hand has a buffer; from now on it has, where it can be made an array, such as a tensor of PyTorch.
    fn becomes_array(&mut self) -> Result<bool, Problem> {
        let py = self.at_hand.py();
        match arrays::plain(&self.at_hand) {
            Ok(Some(array)) => {
                self.at_hand = array;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) if error.is_instance_of::<PyException>(py) => Err(Problem::Value {
                expected: "an array".to_owned(),
                found: format!(
                    "{}, which raised {}",
                    describe(&self.at_hand),
                    reason(py, &error)
                ),
            }),
            Err(error) => Err(self.raised(py, error)),
        }
    }

    /// A number that is an array of no dims, such as a scalar of NumPy.
    fn of_array(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        if self.at_hand.is_none() || self.at_hand.is_instance_of::<PyString>() {
            return Ok(None);
        }
        if self.at_hand.is_instance_of::<PyList>() || self.at_hand.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        if self.tensor(elem)?.is_none_or(|shape| !shape.is_empty()) {
            return Ok(None);
        }
        let mut bits = [0; 4];
        bits[..elem.bytes()].copy_from_slice(self.elements(elem)?);
        Ok(Some(u32::from_le_bytes(bits)))
    }
}

/// The number that a name stands for.
fn not_finite(value: &Bound<'_, PyAny>) -> Option<u32> {
    let name = value.downcast::<PyString>().ok()?;
    let value = match name.to_str().ok()? {
        "NaN" => f32::NAN,
        "Infinity" => f32::INFINITY,
        "-Infinity" => f32::NEG_INFINITY,
        _ => return None,
    };
    Some(value.to_bits())
}

/// The id as JSON text.
fn id_text(id: &Bound<'_, PyAny>) -> Result<String, Problem> {
    if let Ok(text) = id.downcast::<PyString>()
        && let Ok(text) = text.to_str()
        && let Ok(text) = serde_json::to_string(text)
    {
        return Ok(text);
    }
    let py = id.py();
    let is_other = id.is_instance_of::<PyBool>() || id.is_instance_of::<PyFloat>();
    if !is_other
        && matches!(id.hasattr(intern!(py, "__index__")), Ok(true))
        && let Ok(number) = id.call_method0(intern!(py, "__index__"))
        && let Ok(text) = number.str()
        && let Ok(text) = text.to_str()
    {
        return Ok(text.to_owned());
    }
    Err(Problem::Line(format!(
        "id: expected a str or an int, found {}",
        describe(id)
    )))
}

pub fn name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

/// What a value is, for a message; calls nothing of the user's.
pub fn describe(value: &Bound<'_, PyAny>) -> String {
    let is_plain = value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyString>();
    if is_plain && let Ok(text) = value.repr() {
        return shown(&text.to_string_lossy());
    }
    // Of NumPy, for one.
    if let Ok(number) = value.downcast::<PyFloat>() {
        return format!("{:?}", number.value());
    }
    if value.is_instance_of::<PyList>() {
        return "a list".to_owned();
    }
    if value.is_instance_of::<PyTuple>() {
        return "a tuple".to_owned();
    }
    if value.is_instance_of::<PyDict>() {
        return "a dict".to_owned();
    }
    let class = value.get_type();
    let is_constructor = class.module().is_ok_and(|module| module == "cohort.types");
    let class = class.name();
    let class = class.map_or("?".to_owned(), |name| name.to_string_lossy().into_owned());
    if is_constructor {
        return format!("a {} of another data type", shown(&class));
    }
    if arrays::is_array(value)
        && let Ok(dtype) = value.getattr("dtype").and_then(|dtype| dtype.str())
        && let Ok(shape) = value.getattr("shape").and_then(|shape| shape.repr())
    {
        return shown(&format!(
            "an array of {} {}",
            dtype.to_string_lossy(),
            shape.to_string_lossy()
        ));
    }
    format!("an object of {}", shown(&class))
}

/// Why something could not be read, for a message: an exception's first line.
pub fn reason(py: Python<'_>, error: &PyErr) -> String {
    let class = error.get_type(py).name();
    let class = class.map_or("?".to_owned(), |name| name.to_string_lossy().into_owned());
    let text = error.value(py).str();
    let text = text.map_or(String::new(), |text| text.to_string_lossy().into_owned());
    let line = text.lines().next().unwrap_or_default();
    match line.is_empty() {
        true => class,
        false => format!("{class}: {}", cut(line, REASON)),
    }
}

fn shown(text: &str) -> String {
    cut(text, SHOWN)
}

/// The first characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
