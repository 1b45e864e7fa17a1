//! A program's parameters: those of floats, which are trained, and the others, which stay.

use safetensors::tensor::{Dtype, TensorView, serialize};
use zerocopy::IntoBytes;

/// The elements of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Numbers, which are trained.
    F32(Vec<f32>),
    /// Integers, which stay.
    I32(Vec<i32>),
    /// Truth values, which stay.
    Bool(Vec<bool>),
}

/// A parameter of the program, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// As the program calls it.
    pub name: String,
    /// The lengths of its dims, the outermost first.
    pub shape: Vec<usize>,
    /// Its elements, row-major.
    pub data: Data,
    /// It is read row by row and in no other way, so that a step may say which rows it touched.
    pub is_table: bool,
}

impl Parameter {
    /// The elements that training changes.
    pub fn floats(&self) -> Option<&[f32]> {
        match &self.data {
            Data::F32(values) => Some(values),
            Data::I32(_) | Data::Bool(_) => None,
        }
    }

    /// How many elements a row of the first axis has.
    pub fn width(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// `f32[28, 140]`, as programs write it.
    pub fn describe(&self) -> String {
        let elem = match self.data {
            Data::F32(_) => "f32",
            Data::I32(_) => "i32",
            Data::Bool(_) => "bool",
        };
        describe(elem, &self.shape)
    }

    /// As a file of weights has them, which is how processors that Cohort is for keep numbers.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::F32(values) => values.as_bytes(),
            Data::I32(values) => values.as_bytes(),
            Data::Bool(values) => values.as_bytes(),
        }
    }

    /// The type of its elements in a weights file.
    pub fn dtype(&self) -> Dtype {
        match self.data {
            Data::F32(_) => Dtype::F32,
            Data::I32(_) => Dtype::I32,
            Data::Bool(_) => Dtype::BOOL,
        }
    }
}

/// A type as the language writes it, `f32[2, 3]`.
pub fn describe(elem: &str, shape: &[usize]) -> String {
    if shape.is_empty() {
        return elem.to_owned();
    }
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("{elem}[{}]", dims.join(", "))
}

/// What a step changed of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// Nothing is different.
    Nothing,
    /// Only these rows, ascending.
    Rows(Vec<u32>),
    /// Any of it may be different.
    Whole,
}

/// All of them, in the order of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// In the order of the program.
    pub list: Vec<Parameter>,
}

impl Parameters {
    /// The file of weights that `batch-run` reads.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, safetensors::SafeTensorError> {
        let views = self.list.iter().map(|parameter| {
            let (dtype, shape) = (parameter.dtype(), parameter.shape.clone());
            let view = TensorView::new(dtype, shape, parameter.bytes())?;
            Ok((parameter.name.as_str(), view))
        });
        let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        serialize(views, None)
    }

    /// Of parameters that were not seen before.
    pub fn all_changed(&self) -> Vec<Changed> {
        vec![Changed::Whole; self.list.len()]
    }

    /// Those that training changes, with their places in the list.
    pub fn trained(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        let places = self.list.iter().enumerate();
        places.filter(|(_, parameter)| parameter.floats().is_some())
    }
}
