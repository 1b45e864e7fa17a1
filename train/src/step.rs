//! Losses and gradients, as training asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::gradients::Gradients;
use crate::instances::Instance;
use crate::parameters::{Changed, Parameters};
use crate::scores::Outcome;

/// Computes the gradient of a mini-batch.
pub trait Step {
    /// From now on the program has these parameters, which are those that it declares; `changed` tells of
    /// each what is not as it was at the last call.
    fn set_parameters(
        &mut self,
        parameters: &Parameters,
        changed: &[Changed],
    ) -> Result<(), StepError>;

    /// Runs the instances in a draw of random numbers. Their outcomes are in their order; `gradients` becomes
    /// the gradient of the *sum* of the losses of those that did not fail.
    fn step(
        &mut self,
        instances: &[&Instance],
        draw: u64,
        gradients: &mut Gradients,
    ) -> Result<Vec<Outcome>, StepError>;
}

/// Computes losses and metrics alone, for the development data.
pub trait Evaluate {
    /// As [`Step::set_parameters`], of all of them.
    fn set_parameters(&mut self, parameters: &Parameters) -> Result<(), StepError>;

    /// Runs the instances in a draw of random numbers. Their outcomes are in their order.
    fn evaluate(&mut self, instances: &[&Instance], draw: u64) -> Result<Vec<Outcome>, StepError>;
}

/// Why a step has no result. What an instance does wrong is its own outcome, and no such error.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It was asked to end early: what was computed of the step is lost.
    #[error("interrupted")]
    Interrupted,
    /// Why, in the words of the implementation.
    #[error("{0}")]
    Failed(String),
}

/// Whether training should end: the number of the signal that asked for it. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Asks for the end, by the signal of this number.
    pub fn set(&self, signal: i32) {
        self.0.store(signal, Ordering::SeqCst);
    }

    /// The signal that asked for the end, if one did.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}
