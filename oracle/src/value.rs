//! What an interpreted expression evaluates to.

use std::mem;
use std::sync::Arc;

use cohort_frontend::program::AdtId;

use crate::error::InstanceError;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Everything but scalars is shared, so that reading a variable costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number or truth value of the host.
    Scalar(Scalar),
    /// A host float that gradients flow through; of rank 0.
    Traced(Arc<Tensor>),
    /// A tensor, also of rank 0.
    Tensor(Arc<Tensor>),
    /// The parts of a tuple.
    Tuple(Arc<Vec<Value>>),
    /// The elements of an array.
    Array(Arc<Vec<Value>>),
    /// A value of a declared type.
    Adt(Arc<AdtValue>),
    /// A text, which only passes through.
    Text(Arc<str>),
}

#[derive(Debug, PartialEq)]
pub struct AdtValue {
    pub adt: AdtId,
    pub constructor: usize,
    pub fields: Vec<Value>,
}

impl Value {
    /// An integer of the host.
    pub fn i32(value: i32) -> Value {
        Value::Scalar(Scalar::I32(value))
    }

    /// A tensor.
    pub fn tensor(tensor: Tensor) -> Value {
        Value::Tensor(Arc::new(tensor))
    }

    /// A tuple of these parts.
    pub fn tuple(elements: Vec<Value>) -> Value {
        Value::Tuple(Arc::new(elements))
    }

    /// An array of these elements.
    pub fn array(elements: Vec<Value>) -> Value {
        Value::Array(Arc::new(elements))
    }

    /// A value of a declared type, by the number of its constructor.
    pub fn adt(adt: AdtId, constructor: usize, fields: Vec<Value>) -> Value {
        Value::Adt(Arc::new(AdtValue {
            adt,
            constructor,
            fields,
        }))
    }

    pub(crate) fn into_scalar(self) -> Result<Scalar, InstanceError> {
        match self {
            Value::Scalar(scalar) => Ok(scalar),
            Value::Traced(tensor) => tensor.only_element(),
            other => Err(other.is_not("a host scalar")),
        }
    }

    pub(crate) fn into_i32(self) -> Result<i32, InstanceError> {
        match self {
            Value::Scalar(Scalar::I32(value)) => Ok(value),
            other => Err(other.is_not("a host i32")),
        }
    }

    pub(crate) fn into_bool(self) -> Result<bool, InstanceError> {
        match self {
            Value::Scalar(Scalar::Bool(value)) => Ok(value),
            other => Err(other.is_not("a host bool")),
        }
    }

    pub(crate) fn into_text(self) -> Result<Arc<str>, InstanceError> {
        match self {
            Value::Text(text) => Ok(text),
            other => Err(other.is_not("a text")),
        }
    }

    pub(crate) fn into_tensor(self) -> Result<Arc<Tensor>, InstanceError> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("a tensor")),
        }
    }

    pub(crate) fn into_tuple(self) -> Result<Arc<Vec<Value>>, InstanceError> {
        match self {
            Value::Tuple(elements) => Ok(elements),
            other => Err(other.is_not("a tuple")),
        }
    }

    pub(crate) fn into_array(self) -> Result<Arc<Vec<Value>>, InstanceError> {
        match self {
            Value::Array(elements) => Ok(elements),
            other => Err(other.is_not("an array")),
        }
    }

    pub(crate) fn into_adt(self) -> Result<Arc<AdtValue>, InstanceError> {
        match self {
            Value::Adt(value) => Ok(value),
            other => Err(other.is_not("an algebraic data type")),
        }
    }

    /// Names the sort of value, without its content: it may be very large.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Scalar(scalar) => format!("the host {}", scalar.elem_name()),
            Value::Traced(_) => "the host f32".to_owned(),
            Value::Tensor(tensor) => format!("the tensor {}", tensor.describe()),
            Value::Tuple(elements) => format!("a tuple of {}", elements.len()),
            Value::Text(text) => format!("a text of {} bytes", text.len()),
            Value::Array(elements) => format!("an array of {}", elements.len()),
            Value::Adt(value) => format!("constructor {} of a data type", value.constructor),
        }
    }

    fn is_not(&self, expected: &str) -> InstanceError {
        InstanceError::internal(format!("expected {expected}, found {}", self.describe()))
    }
}

/// A list or tree can be far deeper than the stack, so what it owns is dropped in a loop.
impl Drop for AdtValue {
    fn drop(&mut self) {
        let mut pending = mem::take(&mut self.fields);
        while let Some(value) = pending.pop() {
            match value {
                Value::Adt(node) => {
                    if let Some(mut node) = Arc::into_inner(node) {
                        pending.append(&mut node.fields);
                    }
                }
                Value::Array(elements) | Value::Tuple(elements) => {
                    if let Some(mut elements) = Arc::into_inner(elements) {
                        pending.append(&mut elements);
                    }
                }
                Value::Scalar(_) | Value::Traced(_) | Value::Tensor(_) | Value::Text(_) => {}
            }
        }
    }
}
