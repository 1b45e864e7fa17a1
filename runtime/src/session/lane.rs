//! What runs batches by itself: a recorder, the stack of its control program, and an executor.

use crate::code::Program;
use crate::error::Error;
use crate::execute::{Executor, Generation};
use crate::failure::InstanceError;
use crate::fiber::Fiber;
use crate::recorder::{Grouping, Recorder};
use crate::schedule::Scheduler;

use super::Config;

pub(super) struct Lane {
    pub recorder: Box<Recorder>,
    pub fiber: Fiber,
    pub executor: Executor,
    /// What the last flush of a batch computed.
    pub batch: Generation,
    /// Of the instances recorded since the last flush: the slots of their results, and whether
    /// they have one.
    pub results: Vec<u64>,
    pub outcomes: Vec<Result<(), InstanceError>>,
    /// Batches that ended before they had all instances that they might have had, as rows were enough.
    pub ended_early: u64,
}

// SAFETY: what it points to is its own, or constants that nobody writes while a run goes on. None of it is
// tied to a thread: an instance is never left on the fiber in the middle.
unsafe impl Send for Lane {}

impl Lane {
    pub fn new(recorder: Box<Recorder>, fiber: Fiber, executor: Executor) -> Lane {
        Lane {
            recorder,
            fiber,
            executor,
            batch: Generation::default(),
            results: Vec::new(),
            outcomes: Vec::new(),
            ended_early: 0,
        }
    }

    /// Another one of the same program, which reads the same packed constants: until weights are replaced.
    pub fn beside(
        &self,
        program: &Program,
        config: &Config,
        (scheduler, grouping): (Box<dyn Scheduler>, Grouping),
        most_kept: &[u32],
    ) -> Result<Lane, Error> {
        let executor = self.executor.beside(program, scheduler, most_kept)?;
        let fiber = Fiber::new(config.limits.stack_bytes())?;
        let recorder = recorder(program, config, grouping, most_kept, &fiber);
        Ok(Lane::new(recorder, fiber, executor))
    }
}

/// A recorder of calls that are put together like that.
pub(super) fn recorder(
    program: &Program,
    config: &Config,
    grouping: Grouping,
    most_kept: &[u32],
    fiber: &Fiber,
) -> Box<Recorder> {
    let mut recorder = Recorder::new(
        program.manifest(),
        config.limits,
        config.max_buckets,
        grouping,
        fiber.stack_limit(),
    );
    recorder.keep(most_kept);
    recorder.set_draw(config.draw);
    recorder
}
