//! From values to the JSON of an output.

use cohort_frontend::program::{Program, Type};
use serde_json::{Map, Number, Value as Json};

use crate::error::{ErrorKind, InstanceError};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::value::Value;

/// Encodes a value of type `ty`; one that would nest deeper than `max_nesting` is an error.
pub(crate) fn value(
    program: &Program,
    ty: &Type,
    value: &Value,
    max_nesting: u64,
) -> Result<Json, InstanceError> {
    let leaf = |value: &Value| match value {
        Value::Tensor(tensor) => tensor_json(tensor),
        Value::Text(text) => Json::from(&**text),
        other => other.clone().into_scalar().map_or(Json::Null, scalar_json),
    };
    let encoder = Encoder {
        program,
        leaf: &leaf,
    };
    encoder.value(ty, value, max_nesting)
}

/// The form of values, with something of one's own for each scalar, tensor and text in them.
pub(crate) struct Encoder<'p> {
    pub(crate) program: &'p Program,
    pub(crate) leaf: &'p dyn Fn(&Value) -> Json,
}

impl Encoder<'_> {
    pub(crate) fn value(
        &self,
        ty: &Type,
        value: &Value,
        nesting_left: u64,
    ) -> Result<Json, InstanceError> {
        let Some(nesting_left) = nesting_left.checked_sub(1) else {
            let message = "the output nests too deeply to be written";
            return Err(InstanceError::new(ErrorKind::DepthLimit, message));
        };
        match (ty, value) {
            (Type::Scalar(_), Value::Scalar(_) | Value::Traced(_))
            | (Type::Tensor { .. }, Value::Tensor(_))
            | (Type::Str, Value::Text(_)) => Ok((self.leaf)(value)),
            (Type::Tuple(types), Value::Tuple(elements)) => {
                self.values(types.iter().zip(elements.iter()), nesting_left)
            }
            (Type::Array(element), Value::Array(elements)) => {
                let types = std::iter::repeat(&**element);
                self.values(types.zip(elements.iter()), nesting_left)
            }
            (Type::Adt(_), Value::Adt(value)) => {
                let constructor = &self.program.adts[value.adt.0].constructors[value.constructor];
                let name = constructor.name.clone();
                if constructor.fields.is_empty() {
                    return Ok(Json::String(name));
                }
                let fields = constructor.fields.iter().zip(&value.fields);
                let mut fields = self.values(fields, nesting_left)?;
                if let Json::Array(values) = &mut fields
                    && !constructor.names.is_empty()
                {
                    let names = constructor.names.iter().cloned();
                    fields = Json::Object(names.zip(values.drain(..)).collect());
                }
                Ok(Json::Object(Map::from_iter([(name, fields)])))
            }
            _ => {
                let message = format!("the output {} is not of its type", value.describe());
                Err(InstanceError::internal(message))
            }
        }
    }

    fn values<'v>(
        &self,
        typed: impl Iterator<Item = (&'v Type, &'v Value)>,
        nesting_left: u64,
    ) -> Result<Json, InstanceError> {
        typed
            .map(|(ty, value)| self.value(ty, value, nesting_left))
            .collect::<Result<_, _>>()
            .map(Json::Array)
    }
}

/// Nested arrays.
pub(crate) fn tensor_json(tensor: &Tensor) -> Json {
    part_json(tensor, 0, 0)
}

/// The part of the tensor from `position` on, whose first axis is `axis`.
fn part_json(tensor: &Tensor, axis: usize, position: usize) -> Json {
    if axis == tensor.shape.len() {
        return scalar_json(tensor.at(position));
    }
    let stride: usize = tensor.shape[axis + 1..].iter().product();
    let elements =
        (0..tensor.shape[axis]).map(|index| part_json(tensor, axis + 1, position + index * stride));
    Json::Array(elements.collect())
}

/// JSON has no way to write an infinity or NaN as a number, so their names stand as text.
fn scalar_json(scalar: Scalar) -> Json {
    match scalar {
        Scalar::F32(value) if value.is_nan() => Json::from("NaN"),
        Scalar::F32(value) if value.is_infinite() => {
            Json::from(if value > 0.0 { "Infinity" } else { "-Infinity" })
        }
        Scalar::F32(value) => Number::from_f64(value).map_or(Json::Null, Json::Number),
        Scalar::I32(value) => Json::from(value),
        Scalar::Bool(value) => Json::Bool(value),
    }
}
