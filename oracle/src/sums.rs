//! The gradients of a stream of instances: those of the parameters added up, those of the inputs one by
//! one.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use cohort_frontend::program::{Elem, Program};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::Value as Json;

use crate::error::{ErrorKind, InstanceError};
use crate::gradient::Question;
use crate::limits::Limits;
use crate::oracle::Oracle;
use crate::stream::{Instance, Record, StreamSummary, each_instance, id_text, parse};

/// By what the outputs of instances are weighed, by the instances' ids.
#[derive(Debug)]
pub struct Cotangents {
    /// As text: a value may be too deep for the stack of who holds it.
    lines: BTreeMap<String, String>,
}

impl Cotangents {
    /// Reads lines of the form `{"id": …, "cotangent": …}`; a missing id is the line's number, from 1.
    ///
    /// # Errors
    ///
    /// What cannot be read, has no cotangent, or one for the second time.
    pub fn read(reader: impl BufRead + Send, limits: Limits) -> io::Result<Cotangents> {
        let mut lines = BTreeMap::new();
        each_instance(reader, limits, |Instance { id, members }| {
            let text = id_text(&id);
            let wrong = |what: &str| {
                let message = format!("the cotangent of {text:?}: {what}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            };
            match members {
                Err(error) => return wrong(&error.message),
                Ok(members) if members.get(MEMBER).is_none() => {
                    return wrong("the line has no member `cotangent`");
                }
                Ok(_) if lines.contains_key(&text) => return wrong("there are two"),
                Ok(members) => lines.insert(text, members[MEMBER].to_string()),
            };
            Ok(true)
        })?;
        Ok(Cotangents { lines })
    }

    /// Of an instance by its id.
    fn of(&self, id: &str, limits: Limits) -> Result<Json, InstanceError> {
        match self.lines.get(id) {
            Some(text) => parse(text, limits),
            None => {
                let message = format!("no cotangent was given for the instance {id:?}");
                Err(InstanceError::new(ErrorKind::BadInput, message))
            }
        }
    }
}

const MEMBER: &str = "cotangent";

/// The gradients of a program's parameters, summed over instances in the order of the input.
#[derive(Debug)]
pub struct GradientSum {
    /// By the name of each parameter of floats, its shape and its gradient.
    params: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
}

impl GradientSum {
    fn zero(program: &Program) -> GradientSum {
        let floats = program
            .params
            .iter()
            .filter(|param| param.elem == Elem::F32);
        let zeros = floats.map(|param| {
            let shape: Vec<usize> = param.shape.iter().map(|&length| length as usize).collect();
            let zeros = vec![0.0; shape.iter().product()];
            (param.name.clone(), (shape, zeros))
        });
        GradientSum {
            params: zeros.collect(),
        }
    }

    fn add(&mut self, program: &Program, gradients: &[Option<Vec<f64>>]) {
        for (param, gradient) in program.params.iter().zip(gradients) {
            if let (Some(gradient), Some((_, sum))) = (gradient, self.params.get_mut(&param.name)) {
                for (sum, part) in sum.iter_mut().zip(gradient) {
                    *sum += part;
                }
            }
        }
    }

    /// The gradient of a parameter by its name.
    pub fn of(&self, name: &str) -> Option<&[f64]> {
        self.params.get(name).map(|(_, sum)| sum.as_slice())
    }

    /// A safetensors file with a tensor for each parameter of floats, of its name and shape, rounded to
    /// f32.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, safetensors::SafeTensorError> {
        let bytes = self.params.iter().map(|(name, (shape, sum))| {
            let numbers = sum.iter().flat_map(|number| (*number as f32).to_le_bytes());
            (name, shape, numbers.collect::<Vec<u8>>())
        });
        let bytes: Vec<_> = bytes.collect();
        let views = bytes
            .iter()
            .map(|(name, shape, bytes)| {
                let view = TensorView::new(Dtype::F32, (*shape).clone(), bytes)?;
                Ok((name.as_str(), view))
            })
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        serialize(views, None)
    }
}

impl Oracle<'_> {
    /// Runs every line of `reader` as [`Oracle::run_stream`] does, and differentiates each. An instance
    /// that fails, or whose loss is not finite, adds nothing, and its record is an error. The gradients
    /// of an instance's inputs go to `inputs`, a record each.
    pub fn differentiate_stream(
        &self,
        reader: impl BufRead + Send,
        mut writer: impl Write + Send,
        limits: Limits,
        cotangents: Option<&Cotangents>,
        mut inputs: Option<impl Write + Send>,
    ) -> io::Result<(StreamSummary, GradientSum)> {
        let mut sum = GradientSum::zero(self.program);
        let summary = each_instance(reader, limits, |Instance { id, members }| {
            let text = id_text(&id);
            let answer = members.and_then(|members| {
                let of_instance = |all: &Cotangents| all.of(&text, limits);
                let cotangent = cotangents.map(of_instance).transpose()?;
                let question = Question {
                    cotangent: cotangent.as_ref(),
                    of_inputs: inputs.is_some(),
                };
                self.differentiate_as(&id, &members, question, limits)
            });
            let (output, of_inputs) = match answer {
                Ok(gradient) => {
                    sum.add(self.program, &gradient.params);
                    (Ok(gradient.output), Ok(gradient.inputs.unwrap_or_default()))
                }
                Err(error) => (Err(error.clone()), Err(error)),
            };
            if let Some(inputs) = &mut inputs {
                let id = id.clone();
                let result = of_inputs;
                Record { id, result }.write_as("gradient", inputs)?;
            }
            let record = Record { id, result: output };
            record.write(&mut writer)?;
            Ok(record.result.is_ok())
        })?;
        writer.flush()?;
        Ok((summary, sum))
    }
}
