//! Where gradients begin: the cotangents of an output.

use std::sync::Arc;

use cohort_frontend::program::{Program, Type};
use serde_json::Value as Json;

use crate::error::{ErrorKind, InstanceError};
use crate::tensor::{Data, Tensor};
use crate::value::Value;

#[derive(Default)]
pub(crate) struct Seeds {
    pub(crate) of: Vec<(Arc<Tensor>, Vec<f64>)>,
    /// The sum of what is differentiated.
    total: f64,
}

impl Seeds {
    pub(crate) fn check_total(&self, what: &str) -> Result<(), InstanceError> {
        if self.total.is_finite() {
            return Ok(());
        }
        let message = format!("{what} is {}, so it has no gradient", self.total);
        Err(InstanceError::new(ErrorKind::LossNotFinite, message))
    }

    pub(crate) fn add(
        &mut self,
        program: &Program,
        ty: &Type,
        value: &Value,
        cotangent: &Json,
    ) -> Result<(), InstanceError> {
        if cotangent.is_null() {
            return Ok(());
        }
        match (ty, value) {
            (Type::Tuple(types), Value::Tuple(values)) => {
                self.all(program, types.iter().zip(values.iter()), cotangent)
            }
            (Type::Array(element), Value::Array(values)) => {
                let typed = values.iter().map(|value| (&**element, value));
                self.all(program, typed, cotangent)
            }
            (Type::Adt(adt), Value::Adt(value)) => {
                let constructor = &program.adts[adt.0].constructors[value.constructor];
                let fields = constructor.fields.iter().zip(&value.fields);
                match cotangent {
                    Json::String(name) if *name == constructor.name && fields.len() == 0 => Ok(()),
                    Json::Object(members) if members.len() == 1 => {
                        match members.get(&constructor.name) {
                            Some(Json::Object(named)) if !constructor.names.is_empty() => {
                                for (name, (ty, value)) in constructor.names.iter().zip(fields) {
                                    let lacking = || unlike(format!("a value with `{name}`"));
                                    let cotangent = named.get(name).ok_or_else(lacking)?;
                                    self.add(program, ty, value, cotangent)?;
                                }
                                Ok(())
                            }
                            Some(cotangents) => self.all(program, fields, cotangents),
                            None => Err(unlike(format!("a `{}`", constructor.name))),
                        }
                    }
                    _ => Err(unlike(format!("a `{}`", constructor.name))),
                }
            }
            // A text has none, but may stand where the output has it.
            (Type::Str, _) if cotangent.is_string() => Ok(()),
            (Type::Str, _) => Err(unlike("`null` for a text".to_owned())),
            _ => self.leaf(value, cotangent),
        }
    }

    fn all<'v>(
        &mut self,
        program: &Program,
        typed: impl ExactSizeIterator<Item = (&'v Type, &'v Value)>,
        cotangents: &Json,
    ) -> Result<(), InstanceError> {
        match cotangents.as_array() {
            Some(cotangents) if cotangents.len() == typed.len() => typed
                .zip(cotangents)
                .try_for_each(|((ty, value), cotangent)| self.add(program, ty, value, cotangent)),
            _ => Err(unlike(format!("a list of {}", typed.len()))),
        }
    }

    /// The cotangent of a scalar or a tensor.
    pub(crate) fn leaf(&mut self, value: &Value, cotangent: &Json) -> Result<(), InstanceError> {
        let constant;
        let tensor = match value {
            Value::Tensor(tensor) | Value::Traced(tensor) => tensor,
            other => {
                let scalar = other.clone().into_scalar()?;
                constant = Arc::new(Tensor::full(Vec::new(), scalar)?);
                &constant
            }
        };
        let Data::F32(numbers) = &tensor.data else {
            return match is_null(cotangent) {
                true => Ok(()),
                false => Err(unlike(format!("`null` for {}", tensor.describe()))),
            };
        };
        let mut seed = Vec::new();
        flatten(&tensor.shape, cotangent, &mut seed)
            .ok_or_else(|| unlike(format!("numbers for {}", tensor.describe())))?;
        // What does not count may be anything.
        let counting = numbers
            .iter()
            .zip(&seed)
            .filter(|(_, weight)| **weight != 0.0);
        self.total += counting
            .map(|(number, weight)| number * weight)
            .sum::<f64>();
        self.of.push((Arc::clone(tensor), seed));
        Ok(())
    }
}

/// Appends the numbers of nested lists; `None` where they are not of the shape.
fn flatten(shape: &[usize], json: &Json, numbers: &mut Vec<f64>) -> Option<()> {
    match shape.split_first() {
        None => numbers.push(json.as_f64()?),
        Some((length, inner)) => {
            let elements = json.as_array().filter(|list| list.len() == *length)?;
            for element in elements {
                flatten(inner, element, numbers)?;
            }
        }
    }
    Some(())
}

/// Whether nothing is said, of one thing or of each in a list.
fn is_null(json: &Json) -> bool {
    match json {
        Json::Array(elements) => elements.iter().all(is_null),
        other => other.is_null(),
    }
}

fn unlike(expected: String) -> InstanceError {
    let message = format!("the cotangent is not of the output's form: it should be {expected}");
    InstanceError::new(ErrorKind::BadInput, message)
}
