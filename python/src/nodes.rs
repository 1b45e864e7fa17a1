//! Values of data types made of plain objects, as flat arrays.
//!
//! Most values are nothing but objects of constructors' classes, tuples, lists, dicts of one key, and
//! numbers. [`Nodes`] walks those without a call into Python and without counting references, and leaves
//! their nodes in postorder for [`Builder::postorder`](cohort_runtime::io::input::Builder::postorder). Where
//! it meets anything else it gives up, and says nothing of why: then the value is walked as any other,
//! which takes longer and knows what is wrong with it.

use std::ffi::c_int;

use cohort_runtime::abi::manifest::Elem;
use cohort_runtime::io::input::{Postorder, narrow};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::types::{Constructor, Field, Types};
use crate::watch::Watch;

/// A value that is borrowed from what is around it.
type Borrowed = *mut ffi::PyObject;

/// Where the fields of a node are.
#[derive(Clone, Copy)]
enum Fields {
    /// In slots of its own.
    Slots(Borrowed),
    /// From the second place on.
    Tuple(Borrowed),
    TupleOf(Borrowed),
    ListOf(Borrowed),
    Missing,
}

/// A node some of whose parts are still to come.
struct Open {
    fields: Fields,
    tag: usize,
    next: usize,
}

/// The nodes of the value that was read last.
#[derive(Default)]
pub struct Nodes {
    open: Vec<Open>,
    tags: Vec<u8>,
    /// By tag and field.
    columns: Vec<Vec<Option<Vec<u8>>>>,
    first: Vec<usize>,
    watch: Watch,
}

impl Nodes {
    /// Reads a value of a data type that is made of scalars and itself; whether it could, with at most so
    /// many nodes.
    pub fn read(&mut self, types: &Types, adt: usize, value: &Bound<'_, PyAny>, most: u64) -> bool {
        let Some(constructors) = types.plain(adt) else {
            return false;
        };
        self.tags.clear();
        self.open.clear();
        self.watch.reset();
        self.first.clear();
        self.first.resize(constructors.len(), 0);
        self.columns.resize_with(constructors.len(), Vec::new);
        for (columns, constructor) in self.columns.iter_mut().zip(constructors) {
            columns.resize_with(constructor.kinds.len(), || None);
            columns.truncate(constructor.kinds.len());
            for (column, kind) in columns.iter_mut().zip(&constructor.kinds) {
                match (kind, &mut *column) {
                    (Field::Part, column) => *column = None,
                    (_, Some(column)) => column.clear(),
                    (_, column) => *column = Some(Vec::new()),
                }
            }
        }
        // SAFETY: the value is alive, and so is all that it is made of: nothing below runs code of Python,
        // so that nobody can change or free a part before the walk is over.
        let is_plain = unsafe { self.walk(constructors, value.as_ptr(), most) };
        is_plain == Some(())
    }

    /// What was read.
    pub fn postorder(&self) -> Postorder<'_> {
        Postorder {
            tags: &self.tags,
            fields: &self.columns,
            first: &self.first,
        }
    }

    /// # Safety
    ///
    /// The root is alive, and the caller is attached to the interpreter.
    unsafe fn walk(
        &mut self,
        constructors: &[Constructor],
        root: Borrowed,
        most: u64,
    ) -> Option<()> {
        // SAFETY: the caller's promise holds for all parts of the root.
        unsafe {
            self.enter(constructors, root)?;
            while let Some(open) = self.open.last_mut() {
                let constructor = &constructors[open.tag];
                let parts = &constructor.parts;
                if let Some(place) = parts.get(open.next) {
                    open.next += 1;
                    let part = open.fields.get(constructor, *place)?;
                    self.enter(constructors, part)?;
                    continue;
                }
                let (fields, tag) = (open.fields, open.tag);
                self.open.pop();
                self.watch.leave(self.open.len());
                self.close(constructor, fields, tag)?;
                if self.tags.len() as u64 > most {
                    return None;
                }
            }
            Some(())
        }
    }

    /// Begins with a node; with one that has no parts, it ends too.
    ///
    /// # Safety
    ///
    /// As [`Nodes::walk`].
    #[inline]
    unsafe fn enter(&mut self, constructors: &[Constructor], value: Borrowed) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let (tag, fields) = node(constructors, value)?;
            let constructor = &constructors[tag];
            if constructor.parts.is_empty() {
                return self.close(constructor, fields, tag);
            }
            self.open.push(Open {
                fields,
                tag,
                next: 0,
            });
            self.watch
                .enter(value as usize, self.open.len())
                .then_some(())
        }
    }

    /// Ends a node whose parts are there.
    ///
    /// # Safety
    ///
    /// As [`Nodes::walk`].
    #[inline]
    unsafe fn close(
        &mut self,
        constructor: &Constructor,
        fields: Fields,
        tag: usize,
    ) -> Option<()> {
        let columns = self.columns[tag].iter_mut().zip(&constructor.kinds);
        for (place, (column, kind)) in columns.enumerate() {
            let (Field::Scalar(elem), Some(column)) = (kind, column) else {
                continue;
            };
            // SAFETY: the caller's promise.
            let bits = unsafe { scalar(fields.get(constructor, place)?, *elem)? };
            match elem {
                Elem::Bool => column.push(bits as u8),
                Elem::F32 | Elem::I32 => column.extend_from_slice(&bits.to_le_bytes()),
            }
        }
        self.tags.push(tag as u8);
        Some(())
    }
}

impl Fields {
    /// # Safety
    ///
    /// As [`Nodes::walk`]; there are as many fields as the constructor has.
    #[inline]
    unsafe fn get(self, constructor: &Constructor, place: usize) -> Option<Borrowed> {
        // SAFETY: the caller's promise; a slot's offset was found in an object of the class.
        let field = unsafe {
            match self {
                Fields::Slots(object) => {
                    let slot = object.byte_add(*constructor.offsets.get(place)?);
                    slot.cast::<Borrowed>().read()
                }
                Fields::Tuple(tuple) => ffi::PyTuple_GetItem(tuple, place as isize + 1),
                Fields::TupleOf(tuple) => ffi::PyTuple_GetItem(tuple, place as isize),
                Fields::ListOf(list) => ffi::PyList_GetItem(list, place as isize),
                Fields::Missing => return None,
            }
        };
        (!field.is_null()).then_some(field)
    }
}

/// The constructor that a value is of, and where its fields are.
///
/// # Safety
///
/// As [`Nodes::walk`].
#[inline]
unsafe fn node(constructors: &[Constructor], value: Borrowed) -> Option<(usize, Fields)> {
    // SAFETY: the caller's promise; each object is of the type that was looked at.
    unsafe {
        let class = ffi::Py_TYPE(value);
        if class == &raw mut ffi::PyTuple_Type {
            let length = ffi::PyTuple_Size(value);
            if length == 0 {
                return None;
            }
            let tag = named(constructors, ffi::PyTuple_GetItem(value, 0))?;
            let has_all = length == constructors[tag].kinds.len() as isize + 1;
            return has_all.then_some((tag, Fields::Tuple(value)));
        }
        let is_class = |constructor: &Constructor| constructor.class.as_ptr() == class.cast();
        if let Some(tag) = constructors.iter().position(is_class) {
            let has_all = constructors[tag].offsets.len() == constructors[tag].kinds.len();
            return has_all.then_some((tag, Fields::Slots(value)));
        }
        if class == &raw mut ffi::PyUnicode_Type {
            let tag = named(constructors, value)?;
            return (constructors[tag].kinds.is_empty()).then_some((tag, Fields::Missing));
        }
        if class == &raw mut ffi::PyDict_Type && ffi::PyDict_Size(value) == 1 {
            let (mut place, mut name, mut list) = (0, std::ptr::null_mut(), std::ptr::null_mut());
            if ffi::PyDict_Next(value, &mut place, &mut name, &mut list) == 0 {
                return None;
            }
            let tag = named(constructors, name)?;
            let arity = constructors[tag].kinds.len() as isize;
            let class = ffi::Py_TYPE(list);
            let (length, fields) = if class == &raw mut ffi::PyList_Type {
                (ffi::PyList_Size(list), Fields::ListOf(list))
            } else if class == &raw mut ffi::PyTuple_Type {
                (ffi::PyTuple_Size(list), Fields::TupleOf(list))
            } else {
                return None;
            };
            return (length == arity && arity > 0).then_some((tag, fields));
        }
        None
    }
}

/// The constructor of that name.
///
/// # Safety
///
/// As [`Nodes::walk`].
#[inline]
unsafe fn named(constructors: &[Constructor], name: Borrowed) -> Option<usize> {
    let is_same = |constructor: &Constructor| constructor.name.as_ptr() == name;
    constructors.iter().position(is_same).or_else(|| {
        // SAFETY: the caller's promise; the text lives as long as the object.
        let text = unsafe {
            if ffi::Py_TYPE(name) != &raw mut ffi::PyUnicode_Type {
                return None;
            }
            let mut length = 0;
            let text = ffi::PyUnicode_AsUTF8AndSize(name, &mut length);
            if text.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            std::slice::from_raw_parts(text.cast::<u8>(), length as usize)
        };
        let is_equal = |constructor: &Constructor| constructor.text.as_bytes() == text;
        constructors.iter().position(is_equal)
    })
}

/// The bits of a number.
///
/// # Safety
///
/// As [`Nodes::walk`].
#[inline]
unsafe fn scalar(value: Borrowed, elem: Elem) -> Option<u32> {
    // SAFETY: the caller's promise; each object is of the type that was looked at.
    unsafe {
        let class = ffi::Py_TYPE(value);
        match elem {
            Elem::F32 if class == &raw mut ffi::PyFloat_Type => {
                narrow(ffi::PyFloat_AsDouble(value))
            }
            Elem::F32 if class == &raw mut ffi::PyLong_Type => {
                let value = ffi::PyLong_AsDouble(value);
                if value == -1.0 && !ffi::PyErr_Occurred().is_null() {
                    ffi::PyErr_Clear();
                    return None;
                }
                narrow(value)
            }
            Elem::I32 if class == &raw mut ffi::PyLong_Type => {
                let mut overflow: c_int = 0;
                let value = ffi::PyLong_AsLongAndOverflow(value, &mut overflow);
                let value = i32::try_from(value).ok().filter(|_| overflow == 0);
                value.map(|value| value as u32)
            }
            Elem::Bool if value == ffi::Py_True() => Some(1),
            Elem::Bool if value == ffi::Py_False() => Some(0),
            _ => None,
        }
    }
}
