//! Gradients by the oracle: computed in f64, an instance after another, and rounded to f32 when they are
//! added up.

use cohort_frontend::{metrics, program::Program};
use cohort_oracle::{
    Data as Numbers, InstanceError, Limits, Oracle, Question, Tensor, on_large_stack, parse,
};
use cohort_train::{
    Changed, Data, Evaluate, Gradient, Gradients, Instance, Interrupt, Outcome, Parameter,
    Parameters, Step, StepError,
};
use serde_json::Value as Json;

pub struct OracleStep<'p> {
    program: &'p Program,
    limits: Limits,
    interrupt: Interrupt,
    oracle: Option<Oracle<'p>>,
    parameters: Vec<Shape>,
}

/// What a gradient is like.
struct Shape {
    is_table: bool,
    width: usize,
}

impl<'p> OracleStep<'p> {
    pub fn new(program: &'p Program, limits: Limits, interrupt: Interrupt) -> OracleStep<'p> {
        OracleStep {
            program,
            limits,
            interrupt,
            oracle: None,
            parameters: Vec::new(),
        }
    }

    fn set(&mut self, parameters: &Parameters) -> Result<(), StepError> {
        let tensors = parameters
            .list
            .iter()
            .map(|parameter| (parameter.name.clone(), tensor(parameter)));
        let oracle = Oracle::new(self.program, tensors.collect());
        self.oracle = Some(oracle.map_err(|error| StepError::Failed(error.to_string()))?);
        let shape = |parameter: &Parameter| Shape {
            is_table: parameter.is_table,
            width: parameter.width(),
        };
        self.parameters = parameters.list.iter().map(shape).collect();
        Ok(())
    }

    /// With the random numbers of a draw.
    fn drawing(&mut self, draw: u64) -> Result<&Oracle<'p>, StepError> {
        let oracle = self.oracle.take();
        let none = || StepError::Failed("no parameters are set".to_owned());
        Ok(self.oracle.insert(oracle.ok_or_else(none)?.with_draw(draw)))
    }

    /// Runs `each` for every instance, where the stack is large.
    fn run(
        &mut self,
        instances: &[&Instance],
        draw: u64,
        mut each: impl FnMut(&Oracle<'p>, &str, &Json, Limits) -> Result<Json, InstanceError> + Send,
    ) -> Result<Vec<Outcome>, StepError> {
        let (limits, interrupt) = (self.limits, self.interrupt.clone());
        let metrics = metrics(self.program);
        let oracle = self.drawing(draw)?;
        let work = || {
            let mut outcomes = Vec::with_capacity(instances.len());
            for instance in instances {
                if interrupt.signal().is_some() {
                    return Err(StepError::Interrupted);
                }
                let output = parse(&instance.line, limits)
                    .and_then(|members| each(oracle, &id_of(instance), &members, limits));
                outcomes.push(match output {
                    Ok(output) => Outcome::of(&output, &metrics),
                    Err(error) => Outcome::Failed {
                        kind: error.kind.to_string(),
                        message: error.message,
                    },
                });
            }
            Ok(outcomes)
        };
        let no_stack = |error| StepError::Failed(format!("no stack to run instances on: {error}"));
        on_large_stack(work).map_err(no_stack)?
    }
}

/// The text that an id is known by: 7 and "7" are the same.
fn id_of(instance: &Instance) -> String {
    match serde_json::from_str(&instance.id) {
        Ok(Json::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => instance.id.clone(),
    }
}

fn tensor(parameter: &Parameter) -> Tensor {
    let data = match &parameter.data {
        Data::F32(values) => Numbers::F32(values.iter().map(|value| f64::from(*value)).collect()),
        Data::I32(values) => Numbers::I32(values.clone()),
        Data::Bool(values) => Numbers::Bool(values.clone()),
    };
    Tensor {
        shape: parameter.shape.clone(),
        data,
        doubtful: Vec::new(),
    }
}

impl Step for OracleStep<'_> {
    fn set_parameters(&mut self, parameters: &Parameters, _: &[Changed]) -> Result<(), StepError> {
        self.set(parameters)
    }

    fn step(
        &mut self,
        instances: &[&Instance],
        draw: u64,
        gradients: &mut Gradients,
    ) -> Result<Vec<Outcome>, StepError> {
        let mut sums: Vec<Option<Vec<f64>>> = self.parameters.iter().map(|_| None).collect();
        let question = Question {
            cotangent: None,
            of_inputs: false,
        };
        let outcomes = self.run(instances, draw, |oracle, id, members, limits| {
            let gradient = oracle.differentiate(id, members, question, limits)?;
            for (sum, part) in sums.iter_mut().zip(gradient.params) {
                match (sum, part) {
                    (Some(sum), Some(part)) => {
                        for (sum, part) in sum.iter_mut().zip(&part) {
                            *sum += part;
                        }
                    }
                    (sum @ None, Some(part)) => *sum = Some(part),
                    (_, None) => {}
                }
            }
            Ok(gradient.output)
        })?;
        let rounded = sums.into_iter().zip(&self.parameters);
        gradients.of = rounded.map(|(sum, shape)| shape.gradient(sum)).collect();
        Ok(outcomes)
    }
}

impl Shape {
    fn gradient(&self, sum: Option<Vec<f64>>) -> Gradient {
        let Some(sum) = sum else {
            return Gradient::None;
        };
        let dense = Gradient::Dense(sum.iter().map(|number| *number as f32).collect());
        if !self.is_table {
            return dense;
        }
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (row, elements) in dense.touched(self.width) {
            rows.push(row);
            values.extend_from_slice(elements);
        }
        Gradient::Rows { rows, values }
    }
}

impl Evaluate for OracleStep<'_> {
    fn set_parameters(&mut self, parameters: &Parameters) -> Result<(), StepError> {
        self.set(parameters)
    }

    fn evaluate(&mut self, instances: &[&Instance], draw: u64) -> Result<Vec<Outcome>, StepError> {
        self.run(instances, draw, |oracle, id, members, limits| {
            oracle.run(id, members, limits)
        })
    }
}
