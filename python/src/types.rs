//! The program's types, as names and classes of Python.

use cohort_runtime::abi::manifest::Manifest;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// How Python names what a program has.
pub struct Types {
    /// One a data type, one a constructor.
    pub adts: Vec<Vec<Constructor>>,
    pub arguments: Vec<Py<PyString>>,
    pub id: Py<PyString>,
}

pub struct Constructor {
    pub name: Py<PyString>,
    class: Py<PyType>,
    /// Attributes of its class.
    pub fields: Vec<Py<PyString>>,
}

impl Types {
    /// `classes` has a class for each constructor, by data type.
    pub fn new(
        py: Python<'_>,
        manifest: &Manifest,
        classes: &[Vec<Py<PyType>>],
    ) -> PyResult<Types> {
        let intern = |text: &str| PyString::intern(py, text).unbind();
        let mut adts = Vec::new();
        for (adt, classes) in manifest.adts.iter().zip(classes) {
            let mut constructors = Vec::new();
            for (constructor, class) in adt.constructors.iter().zip(classes) {
                let fields: Vec<String> = class.bind(py).getattr("__match_args__")?.extract()?;
                constructors.push(Constructor {
                    name: intern(&constructor.name),
                    class: class.clone_ref(py),
                    fields: fields.iter().map(|field| intern(field)).collect(),
                });
            }
            adts.push(constructors);
        }
        let arguments = manifest.arguments.iter();
        Ok(Types {
            adts,
            arguments: arguments.map(|argument| intern(&argument.name)).collect(),
            id: intern("id"),
        })
    }

    /// The constructor that a value's class stands for.
    #[inline]
    pub fn of_class(&self, adt: usize, value: &Bound<'_, PyAny>) -> Option<usize> {
        let class = value.get_type_ptr().cast();
        let constructors = self.adts[adt].iter();
        let mut tags = constructors.map(|constructor| constructor.class.as_ptr());
        tags.position(|address| address == class)
    }

    /// The constructor of that name.
    pub fn find(&self, adt: usize, name: &Bound<'_, PyString>) -> Option<usize> {
        let constructors = &self.adts[adt];
        let is_same = |constructor: &Constructor| constructor.name.as_ptr() == name.as_ptr();
        constructors.iter().position(is_same).or_else(|| {
            let is_equal = |constructor: &Constructor| {
                matches!(constructor.name.bind(name.py()).as_any().eq(name), Ok(true))
            };
            constructors.iter().position(is_equal)
        })
    }
}
