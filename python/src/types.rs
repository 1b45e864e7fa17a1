//! The program's types, as names and classes of Python.

use cohort_runtime::abi::manifest::{Adt, Elem, LeadingDim, Manifest, Type};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyType};

/// How Python names what a program has.
pub struct Types {
    /// One a data type, one a constructor.
    pub adts: Vec<Vec<Constructor>>,
    pub arguments: Vec<Py<PyString>>,
    pub id: Py<PyString>,
    /// By data type: whether it is made of scalars and itself.
    is_plain: Vec<bool>,
}

pub struct Constructor {
    pub name: Py<PyString>,
    pub text: String,
    pub class: Py<PyType>,
    /// Attributes of its class.
    pub fields: Vec<Py<PyString>>,
    pub kinds: Vec<Field>,
    /// The fields that are of the type itself.
    pub parts: Vec<usize>,
    /// Where an object of the class has its fields, if that could be found.
    pub offsets: Vec<usize>,
}

/// What a field is.
#[derive(Clone, Copy, PartialEq)]
pub enum Field {
    /// A value of the type itself.
    Part,
    Scalar(Elem),
    Other,
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
        for (number, (adt, classes)) in manifest.adts.iter().zip(classes).enumerate() {
            let mut constructors = Vec::new();
            for (constructor, class) in adt.constructors.iter().zip(classes) {
                let fields: Vec<String> = class.bind(py).getattr("__match_args__")?.extract()?;
                let kinds = constructor.fields.iter().map(|ty| match ty {
                    Type::Adt(own) if *own == number => Field::Part,
                    Type::Scalar(elem) => Field::Scalar(*elem),
                    _ => Field::Other,
                });
                let kinds: Vec<Field> = kinds.collect();
                let is_part = |place: &usize| kinds[*place] == Field::Part;
                constructors.push(Constructor {
                    name: intern(&constructor.name),
                    text: constructor.name.clone(),
                    parts: (0..kinds.len()).filter(is_part).collect(),
                    kinds,
                    offsets: offsets(class.bind(py), &fields)?.unwrap_or_default(),
                    class: class.clone_ref(py),
                    fields: fields.iter().map(|field| intern(field)).collect(),
                });
            }
            adts.push(constructors);
        }
        let arguments = manifest.arguments.iter();
        let is_plain = adts.iter().map(|constructors: &Vec<Constructor>| {
            let mut kinds = constructors.iter().flat_map(|one| &one.kinds);
            constructors.len() <= 1 << 8 && kinds.all(|kind| *kind != Field::Other)
        });
        Ok(Types {
            is_plain: is_plain.collect(),
            adts,
            arguments: arguments.map(|argument| intern(&argument.name)).collect(),
            id: intern("id"),
        })
    }

    /// The constructors of a data type that is made of scalars and itself.
    pub fn plain(&self, adt: usize) -> Option<&[Constructor]> {
        self.is_plain[adt].then_some(&self.adts[adt])
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

/// What a program takes, in words that are equal where any instance of one is an instance of the other: its arguments,
/// and the data types that are part of them.
pub fn form(manifest: &Manifest) -> String {
    let mut adts = Vec::new();
    let arguments = manifest.arguments.iter().map(|argument| {
        let ty = type_text(manifest, &argument.ty, &mut adts);
        format!("{}: {ty}", argument.name)
    });
    let mut text = format!("({})", arguments.collect::<Vec<_>>().join(", "));
    let mut next = 0;
    while let Some(adt) = adts.get(next) {
        let Adt { name, constructors } = &manifest.adts[*adt];
        next += 1;
        let constructors = constructors.iter().map(|constructor| {
            let fields = constructor.fields.iter();
            let fields: Vec<_> = fields
                .map(|ty| type_text(manifest, ty, &mut adts))
                .collect();
            match fields.is_empty() {
                true => constructor.name.clone(),
                false => format!("{}({})", constructor.name, fields.join(", ")),
            }
        });
        let constructors: Vec<String> = constructors.collect();
        text.push_str(&format!("; {name} = {}", constructors.join(" | ")));
    }
    text
}

/// A type as programs write it; the data types in it are added to those that are known.
fn type_text(manifest: &Manifest, ty: &Type, adts: &mut Vec<usize>) -> String {
    let rows = |pool: usize, leading: Vec<String>| {
        let pool = &manifest.row_pools[pool];
        let shape = leading
            .into_iter()
            .chain(pool.shape.iter().map(u64::to_string));
        let shape: Vec<String> = shape.collect();
        match shape.is_empty() {
            true => crate::objects::name(pool.elem).to_owned(),
            false => format!("{}[{}]", crate::objects::name(pool.elem), shape.join(", ")),
        }
    };
    match ty {
        Type::Scalar(elem) => crate::objects::name(*elem).to_owned(),
        Type::Tensor { pool } => rows(*pool, Vec::new()),
        Type::Ragged { pool, dims } => {
            let leading = dims.iter().map(|dim| match dim {
                LeadingDim::Known(length) => length.to_string(),
                LeadingDim::Named(dim) => manifest.dims[*dim].clone(),
                LeadingDim::Any => "_".to_owned(),
            });
            rows(*pool, leading.collect())
        }
        Type::Stacked { pool } => format!("[{}]", rows(*pool, Vec::new())),
        Type::Tuple(types) => {
            let types: Vec<_> = (types.iter())
                .map(|ty| type_text(manifest, ty, adts))
                .collect();
            format!("({})", types.join(", "))
        }
        Type::Array(element) => format!("[{}]", type_text(manifest, element, adts)),
        Type::Str => "str".to_owned(),
        Type::Adt(adt) => {
            if !adts.contains(adt) {
                adts.push(*adt);
            }
            manifest.adts[*adt].name.clone()
        }
    }
}

/// Where an object of the class has its fields, if it has slots for them: found by looking for what was put
/// there.
fn offsets(class: &Bound<'_, PyType>, fields: &[String]) -> PyResult<Option<Vec<usize>>> {
    const WORD: usize = size_of::<usize>();
    let py = class.py();
    let object = py.import("builtins")?.getattr("object")?;
    let probe = object.call_method1("__new__", (class,))?;
    let size: usize = class.getattr("__basicsize__")?.extract()?;
    let mut offsets = Vec::with_capacity(fields.len());
    for field in fields {
        let mark = PyList::empty(py);
        object.call_method1("__setattr__", (&probe, field, &mark))?;
        // Behind the count of references and the type.
        let places = (2 * WORD..size.saturating_sub(WORD - 1)).step_by(WORD);
        let mut found = places.filter(|place| {
            // SAFETY: an object of the class has as many bytes, all of them initialised.
            let word = unsafe { probe.as_ptr().byte_add(*place).cast::<usize>().read() };
            word == mark.as_ptr() as usize
        });
        match (found.next(), found.next()) {
            (Some(place), None) => offsets.push(place),
            _ => return Ok(None),
        }
    }
    Ok(Some(offsets))
}
