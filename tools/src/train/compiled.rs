//! Gradients by compiled code: the instances of a mini-batch together, forward and backward.

use cohort_runtime::{Batch, Config, Limits, Session, Weights, backward::Sums};
use cohort_train::{
    Changed, Evaluate, Gradient, Gradients, Instance, Interrupt, Outcome, Parameters, Step,
    StepError,
};
use serde::Deserialize;
use serde_json::Value as Json;

use super::args::Arguments;
use super::begin::Given;
use crate::exit::Stop;

/// A session for a mini-batch after the other.
pub struct CompiledStep {
    session: Session,
    interrupt: Interrupt,
    /// The places of the metrics in an output.
    metrics: Vec<usize>,
    /// For each parameter of the program, in its order: its number for the session.
    numbers: Vec<Option<usize>>,
}

/// A line of a session's output.
#[derive(Deserialize)]
struct Line {
    output: Option<Json>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    kind: String,
    message: String,
}

impl CompiledStep {
    /// Compiles the function `entry`, with its backward if it is trained.
    pub fn new(
        arguments: &Arguments,
        entry: &str,
        metrics: Vec<usize>,
        given: &Given,
        parameters: &Parameters,
        is_trained: bool,
        interrupt: Interrupt,
    ) -> Result<CompiledStep, Stop> {
        let bytes = crate::text::read(&arguments.model)?;
        let mut pipeline = cohort_codegen::pipeline::Options::default();
        pipeline.gradients = is_trained;
        pipeline.parameters_only = is_trained;
        let program = crate::model::compile_source(
            &arguments.model,
            &bytes,
            entry,
            &given.dims,
            &pipeline,
            arguments.no_cache,
        )?;
        let limits = arguments.limits();
        let config = Config {
            batch: Batch::All,
            threads: usize::from(arguments.threads),
            limits: Limits {
                max_depth: limits.max_depth,
                max_steps: limits.max_steps,
                ..Limits::default()
            },
            // What the parameters were read from was looked through already.
            allow_unused_weights: true,
            gradients: is_trained,
            ..Config::default()
        };
        let weights = weights(parameters).map_err(|error| Stop::usage(error.to_string()))?;
        let session = Session::new(program, &weights, config);
        let session = session.map_err(|error| Stop::usage(error.to_string()))?;
        let params = &session.program().manifest().params;
        let number = |name: &String| params.iter().position(|param| param.name == *name);
        let numbers = parameters.list.iter().map(|own| number(&own.name));
        Ok(CompiledStep {
            numbers: numbers.collect(),
            session,
            interrupt,
            metrics,
        })
    }

    fn set(&mut self, parameters: &Parameters, changed: &[Changed]) -> Result<(), StepError> {
        let count = self.session.program().manifest().params.len();
        let mut bytes: Vec<&[u8]> = vec![&[]; count];
        let mut changes = vec![cohort_runtime::Changed::Nothing; count];
        let given = parameters.list.iter().zip(changed).zip(&self.numbers);
        for ((parameter, changed), number) in given {
            if let Some(number) = number {
                bytes[*number] = parameter.bytes();
                changes[*number] = match changed {
                    Changed::Nothing => cohort_runtime::Changed::Nothing,
                    Changed::Rows(rows) => cohort_runtime::Changed::Rows(rows),
                    Changed::Whole => cohort_runtime::Changed::Whole,
                };
            }
        }
        self.session
            .update_weights(&bytes, &changes)
            .map_err(failed)
    }

    fn run(&mut self, instances: &[&Instance], draw: u64) -> Result<Vec<Outcome>, StepError> {
        if self.interrupt.signal().is_some() {
            return Err(StepError::Interrupted);
        }
        self.session.set_draw(draw);
        let mut input = String::new();
        for instance in instances {
            input.push_str(&instance.line);
            input.push('\n');
        }
        let mut output = Vec::new();
        let run = self
            .session
            .run_stream(input.as_bytes(), &mut output, &mut |_| {});
        run.map_err(failed)?;
        let lines = serde_json::Deserializer::from_slice(&output).into_iter::<Line>();
        let outcomes: Vec<Outcome> = lines
            .map(|line| {
                let line = line.map_err(failed)?;
                Ok(match (line.output, line.error) {
                    (_, Some(Failure { kind, message })) => Outcome::Failed { kind, message },
                    (output, None) => Outcome::of(&output.unwrap_or(Json::Null), &self.metrics),
                })
            })
            .collect::<Result<_, StepError>>()?;
        match outcomes.len() == instances.len() {
            true => Ok(outcomes),
            false => Err(StepError::Failed(format!(
                "{} instances gave {} outcomes",
                instances.len(),
                outcomes.len()
            ))),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> StepError {
    StepError::Failed(error.to_string())
}

fn weights(parameters: &Parameters) -> Result<Weights, StepError> {
    let bytes = parameters.to_safetensors().map_err(failed)?;
    Weights::from_bytes(bytes.into()).map_err(failed)
}

/// The gradient of a parameter that the session knows by a number, into the memory of the one before.
fn read_gradient(sums: &Sums, number: usize, gradient: &mut Gradient) {
    if let Some((rows, values)) = sums.rows(number) {
        let rows = rows.into_iter().map(|row| row as usize).collect();
        *gradient = Gradient::Rows { rows, values };
        return;
    }
    let mut values = match std::mem::take(gradient) {
        Gradient::Dense(values) => values,
        Gradient::None | Gradient::Rows { .. } => Vec::new(),
    };
    let is_there = sums.is_reached(number) && sums.write_gradient(number, &mut values).is_some();
    if is_there {
        *gradient = Gradient::Dense(values);
    }
}

impl Step for CompiledStep {
    fn set_parameters(
        &mut self,
        parameters: &Parameters,
        changed: &[Changed],
    ) -> Result<(), StepError> {
        self.set(parameters, changed)
    }

    fn step(
        &mut self,
        instances: &[&Instance],
        draw: u64,
        gradients: &mut Gradients,
    ) -> Result<Vec<Outcome>, StepError> {
        self.session.clear_gradients();
        let outcomes = self.run(instances, draw)?;
        let sums = self.session.gradients();
        gradients
            .of
            .resize_with(self.numbers.len(), Gradient::default);
        for (gradient, number) in gradients.of.iter_mut().zip(&self.numbers) {
            match (sums, number) {
                (Some(sums), Some(number)) => read_gradient(sums, *number, gradient),
                _ => *gradient = Gradient::None,
            }
        }
        Ok(outcomes)
    }
}

impl Evaluate for CompiledStep {
    fn set_parameters(&mut self, parameters: &Parameters) -> Result<(), StepError> {
        self.set(parameters, &parameters.all_changed())
    }

    fn evaluate(&mut self, instances: &[&Instance], draw: u64) -> Result<Vec<Outcome>, StepError> {
        self.run(instances, draw)
    }
}
