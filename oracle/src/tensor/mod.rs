//! Dense tensors, row-major, and their operations by the definition.

pub(crate) mod doubt;
pub(crate) mod elementwise;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod product;
pub(crate) mod reduce;

use cohort_frontend::program::Elem;

use crate::error::{ErrorKind, InstanceError};
use crate::scalar::{Scalar, elem_name};

/// The elements of a tensor, all of one type. `f32` elements are held as f64.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Floating-point numbers.
    F32(Vec<f64>),
    /// Integers.
    I32(Vec<i32>),
    /// Truth values.
    Bool(Vec<bool>),
}

/// A tensor of any rank, its elements row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The lengths of its dims, the outermost first.
    pub shape: Vec<usize>,
    /// As many elements as the shape has.
    pub data: Data,
    /// Which elements were decided by comparing NaN, see [`doubt`]; empty when none was.
    pub doubtful: Vec<bool>,
}

impl Tensor {
    /// A tensor of numbers, of which there must be as many as the shape has.
    pub fn f32(shape: &[usize], data: Vec<f64>) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: Data::F32(data),
            doubtful: Vec::new(),
        }
    }

    /// A tensor of integers, of which there must be as many as the shape has.
    pub fn i32(shape: &[usize], data: Vec<i32>) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: Data::I32(data),
            doubtful: Vec::new(),
        }
    }

    /// The type of its elements.
    pub fn elem(&self) -> Elem {
        match self.data {
            Data::F32(_) => Elem::F32,
            Data::I32(_) => Elem::I32,
            Data::Bool(_) => Elem::Bool,
        }
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The element at a row-major position.
    pub fn at(&self, position: usize) -> Scalar {
        match &self.data {
            Data::F32(data) => Scalar::F32(data[position]),
            Data::I32(data) => Scalar::I32(data[position]),
            Data::Bool(data) => Scalar::Bool(data[position]),
        }
    }

    /// A tensor of `elem` whose element at each position `element` says.
    pub(crate) fn build(
        elem: Elem,
        shape: Vec<usize>,
        mut element: impl FnMut(usize) -> Result<Scalar, InstanceError>,
    ) -> Result<Tensor, InstanceError> {
        let count = shape.iter().product();
        let mut data = match elem {
            Elem::F32 => Data::F32(Vec::with_capacity(count)),
            Elem::I32 => Data::I32(Vec::with_capacity(count)),
            Elem::Bool => Data::Bool(Vec::with_capacity(count)),
        };
        for position in 0..count {
            data.push(element(position)?)?;
        }
        Ok(Tensor {
            shape,
            data,
            doubtful: Vec::new(),
        })
    }

    /// A tensor of elements of this one: `source` says which for each position.
    pub(crate) fn rearranged(
        &self,
        shape: Vec<usize>,
        source: impl Fn(usize) -> usize,
    ) -> Result<Tensor, InstanceError> {
        let moved = Tensor::build(self.elem(), shape, |position| Ok(self.at(source(position))))?;
        Ok(moved.doubted_where(|position| self.is_doubtful(source(position))))
    }

    pub(crate) fn full(shape: Vec<usize>, value: Scalar) -> Result<Tensor, InstanceError> {
        Tensor::build(value.elem(), shape, |_| Ok(value))
    }

    /// The one element of a tensor of rank 0.
    pub(crate) fn only_element(&self) -> Result<Scalar, InstanceError> {
        if !self.shape.is_empty() {
            let message = format!("expected a tensor of rank 0, found {}", self.describe());
            return Err(InstanceError::internal(message));
        }
        Ok(self.at(0))
    }

    /// The axis' part of the shape as (elements before, length, elements after).
    pub(crate) fn around(&self, axis: usize) -> Result<(usize, usize, usize), InstanceError> {
        if axis >= self.shape.len() {
            let message = format!("{} has no axis {axis}", self.describe());
            return Err(InstanceError::internal(message));
        }
        let before = self.shape[..axis].iter().product();
        let after = self.shape[axis + 1..].iter().product();
        Ok((before, self.shape[axis], after))
    }

    /// Such as `f32[3, 4]`.
    pub(crate) fn describe(&self) -> String {
        format!("{}{:?}", elem_name(self.elem()), self.shape)
    }
}

impl Data {
    pub(crate) fn push(&mut self, value: Scalar) -> Result<(), InstanceError> {
        match (self, value) {
            (Data::F32(data), Scalar::F32(value)) => data.push(value),
            (Data::I32(data), Scalar::I32(value)) => data.push(value),
            (Data::Bool(data), Scalar::Bool(value)) => data.push(value),
            (_, value) => {
                let found = value.elem_name();
                let message = format!("an element is {found}, unlike the others");
                return Err(InstanceError::internal(message));
            }
        }
        Ok(())
    }
}

pub(crate) fn length_mismatch(what: &str, lhs: &Tensor, rhs: &Tensor) -> InstanceError {
    InstanceError::new(
        ErrorKind::ShapeMismatch,
        format!(
            "{what}: {} and {} do not fit",
            lhs.describe(),
            rhs.describe()
        ),
    )
}
