//! The gradient of an instance's loss, or of its whole output as cotangents weigh it.

use std::sync::Arc;

use cohort_frontend::program::{Elem, Program};
use serde_json::{Map, Value as Json};

use crate::decode;
use crate::encode::{self, Encoder};
use crate::error::{ErrorKind, InstanceError};
use crate::limits::Limits;
use crate::oracle::Oracle;
use crate::reverse::{Cotangents, Tape};
use crate::scalar::Scalar;
use crate::seeds::Seeds;
use crate::stack::on_large_stack;
use crate::tensor::Tensor;
use crate::value::{AdtValue, Value};

/// What is asked of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// In the form of the output, a number for each f32 of it, and `null` for what does not count;
    /// without, the output is the loss, or a tuple whose first part is it.
    pub cotangent: Option<&'a Json>,
    /// Whether the inputs' gradients are wanted.
    pub of_inputs: bool,
}

/// The answer.
#[derive(Debug)]
pub struct Gradient {
    /// What the entry gave, as an output record has it.
    pub output: Json,
    /// By parameter, in the order of the program; `None` where nothing flows.
    pub params: Vec<Option<Vec<f64>>>,
    /// An object with the arguments in their form; what is not an f32 is `null`.
    pub inputs: Option<Json>,
}

impl Oracle<'_> {
    /// The output of one instance, as [`Oracle::run`] gives it, and its gradient.
    pub fn differentiate(
        &self,
        id: &str,
        args: &Json,
        question: Question<'_>,
        limits: Limits,
    ) -> Result<Gradient, InstanceError> {
        self.differentiate_as(&Json::from(id), args, question, limits)
    }

    /// The same where an id may also be a number.
    pub(crate) fn differentiate_as(
        &self,
        id: &Json,
        args: &Json,
        question: Question<'_>,
        limits: Limits,
    ) -> Result<Gradient, InstanceError> {
        on_large_stack(|| self.differentiate_here(id, args, question, limits)).unwrap_or_else(
            |error| {
                let message = format!("no stack to run the instance on: {error}");
                Err(InstanceError::new(ErrorKind::Internal, message))
            },
        )
    }

    fn differentiate_here(
        &self,
        id: &Json,
        args: &Json,
        question: Question<'_>,
        limits: Limits,
    ) -> Result<Gradient, InstanceError> {
        let program = self.program;
        let mut tape = Tape::default();
        for param in &self.params {
            if let Value::Tensor(tensor) = param {
                tape.watch(tensor);
            }
        }
        let mut args = decode::arguments(program, args)?;
        if question.of_inputs {
            args = args.into_iter().map(|arg| traced(&mut tape, arg)).collect();
        }
        let inputs = args.clone();
        let mut evaluator = self.evaluator(id, limits);
        evaluator.record(tape);
        let output = evaluator.call(program.entry, args)?;
        let tape = evaluator.recorded();

        let result_type = &program.functions[program.entry.0].result;
        let mut seeds = Seeds::default();
        match question.cotangent {
            Some(cotangent) => {
                seeds.add(program, result_type, &output, cotangent)?;
                seeds.check_total("the output, weighed by its cotangents,")?;
            }
            None => {
                let loss = loss_of(&output);
                seeds.leaf(loss, &Json::from(1.0))?;
                seeds.check_total("the loss")?;
            }
        }
        let cotangents = tape.pull_back(seeds.of)?;
        let of_param = |param: &Value| match param {
            Value::Tensor(tensor) => cotangents.of(tensor).map(<[f64]>::to_vec),
            _ => None,
        };
        let max_nesting = limits.max_nesting();
        let inputs = question
            .of_inputs
            .then(|| of_inputs(program, &inputs, &cotangents, max_nesting))
            .transpose()?;
        Ok(Gradient {
            output: encode::value(program, result_type, &output, max_nesting)?,
            params: self.params.iter().map(of_param).collect(),
            inputs,
        })
    }
}

/// The value in which gradients flow to every float.
fn traced(tape: &mut Tape<'_>, value: Value) -> Value {
    let all = |tape: &mut Tape<'_>, values: &[Value]| -> Vec<Value> {
        let values = values.iter().cloned();
        values.map(|value| traced(tape, value)).collect()
    };
    match value {
        Value::Scalar(Scalar::F32(number)) => {
            let number = Arc::new(Tensor::f32(&[], vec![number]));
            tape.watch(&number);
            Value::Traced(number)
        }
        Value::Tensor(tensor) => {
            tape.watch(&tensor);
            Value::Tensor(tensor)
        }
        Value::Tuple(values) => Value::tuple(all(tape, &values)),
        Value::Array(values) => Value::array(all(tape, &values)),
        Value::Adt(value) => {
            let AdtValue {
                adt,
                constructor,
                fields,
            } = &*value;
            Value::adt(*adt, *constructor, all(tape, fields))
        }
        other => other,
    }
}

/// The loss is the output, or the first part of it.
fn loss_of(output: &Value) -> &Value {
    match output {
        Value::Tuple(parts) => parts.first().unwrap_or(output),
        other => other,
    }
}

/// The gradients of the arguments in their form.
fn of_inputs(
    program: &Program,
    inputs: &[Value],
    cotangents: &Cotangents<'_>,
    max_nesting: u64,
) -> Result<Json, InstanceError> {
    let leaf = |value: &Value| match value {
        Value::Tensor(tensor) | Value::Traced(tensor) if tensor.elem() == Elem::F32 => {
            let cotangent = cotangents.of(tensor).map(<[f64]>::to_vec);
            let cotangent = cotangent.unwrap_or_else(|| vec![0.0; tensor.count()]);
            encode::tensor_json(&Tensor::f32(&tensor.shape, cotangent))
        }
        _ => Json::Null,
    };
    let encoder = Encoder {
        program,
        leaf: &leaf,
    };
    let entry = &program.functions[program.entry.0];
    let params = entry.params.iter().map(|param| &entry.vars[param.0]);
    params
        .zip(inputs)
        .map(|(param, value)| {
            let gradient = encoder.value(&param.ty, value, max_nesting)?;
            Ok((param.name.clone(), gradient))
        })
        .collect::<Result<Map<_, _>, _>>()
        .map(Json::Object)
}
