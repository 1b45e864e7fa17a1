//! The interpreter from outside: a program with its weights, run for one instance after another.

use std::collections::BTreeMap;

use cohort_frontend::program::Program;
use serde_json::Value as Json;

use crate::decode;
use crate::encode;
use crate::error::{ErrorKind, InstanceError, WeightsError};
use crate::eval::{Evaluator, Key};
use crate::limits::Limits;
use crate::stack::on_large_stack;
use crate::stream::id_text;
use crate::tensor::Tensor;
use crate::value::Value;
use crate::weights;

/// A program that can be run.
#[derive(Debug)]
pub struct Oracle<'p> {
    pub(crate) program: &'p Program,
    pub(crate) params: Vec<Value>,
    draw: u64,
}

impl<'p> Oracle<'p> {
    /// Takes from `weights` what the program declares, by name; others are left unused, see
    /// [`crate::unused_weights`].
    pub fn new(
        program: &'p Program,
        weights: BTreeMap<String, Tensor>,
    ) -> Result<Oracle<'p>, WeightsError> {
        let params = weights::bind(program, weights)?;
        Ok(Oracle {
            program,
            params,
            draw: 0,
        })
    }

    /// With the random numbers of some draw: any number but 0 gives others.
    pub fn with_draw(self, draw: u64) -> Oracle<'p> {
        Oracle { draw, ..self }
    }

    /// What evaluates the instance of an id.
    pub(crate) fn evaluator<'a>(&'a self, id: &'a Json, limits: Limits) -> Evaluator<'a> {
        let key = Key::new(&id_text(id), self.draw);
        Evaluator::new(self.program, &self.params, id, key, limits)
    }

    /// The output of one instance, whose arguments are the members of `args`, but for an `id`.
    pub fn run(&self, id: &str, args: &Json, limits: Limits) -> Result<Json, InstanceError> {
        self.run_as(&Json::from(id), args, limits)
    }

    /// The same where an id may also be a number.
    pub(crate) fn run_as(
        &self,
        id: &Json,
        args: &Json,
        limits: Limits,
    ) -> Result<Json, InstanceError> {
        on_large_stack(|| {
            let values = decode::arguments(self.program, args)?;
            let output = self
                .evaluator(id, limits)
                .call(self.program.entry, values)?;
            let result_type = &self.program.functions[self.program.entry.0].result;
            encode::value(self.program, result_type, &output, limits.max_nesting())
        })
        .unwrap_or_else(|error| {
            let message = format!("no stack to run the instance on: {error}");
            Err(InstanceError::new(ErrorKind::Internal, message))
        })
    }
}
