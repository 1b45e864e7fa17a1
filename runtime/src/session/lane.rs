//! What runs batches by itself: a recorder, the stack of its control program, and an executor; and an engine,
//! where tensors decide.

use cohort_abi::EntryFn;
use cohort_abi::manifest::Manifest;

use crate::device::DeviceKind;
use crate::engine::Engine;
use crate::error::Error;
use crate::execute::{Executor, Generation};
use crate::failure::InstanceError;
use crate::instance::Machine;
use crate::program::code::Program;
use crate::program::slot::slot_count;
use crate::recorder::{Grouping, Recorder};
use crate::reuse::Reuse;
use crate::schedule::Scheduler;
use crate::speculation::Predictor;
use crate::threads::fiber::Fiber;

use super::{Batch, Config};

pub(super) struct Lane {
    pub recorder: Box<Recorder>,
    pub fiber: Fiber,
    pub executor: Executor,
    /// Of a program whose path depends on tensors.
    pub engine: Option<Engine>,
    /// Of a program whose schedules follow from structures, where they are kept.
    pub reuse: Option<Reuse>,
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
// tied to a thread: where instances are left on fibers in the middle, the frames there are of compiled code
// and of the recorder, which have nothing of a thread's.
unsafe impl Send for Lane {}

impl Lane {
    pub fn new(
        recorder: Box<Recorder>,
        fiber: Fiber,
        executor: Executor,
        engine: Option<Engine>,
        reuse: Option<Reuse>,
    ) -> Lane {
        Lane {
            engine,
            reuse,
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
        &mut self,
        program: &Program,
        config: &Config,
        (scheduler, grouping): (Box<dyn Scheduler>, Grouping),
        most_cached: &[u32],
    ) -> Result<Lane, Error> {
        let mut executor = self.executor.beside(program, scheduler, most_cached)?;
        let fiber = Fiber::new(config.limits.stack_bytes())?;
        let mut recorder = recorder(program, config, grouping, most_cached, &fiber);
        executor.set_interrupt(self.recorder.interrupt().clone());
        recorder.set_interrupt(self.recorder.interrupt().clone());
        let engine = self.engine.as_ref().map(|_| engine(program, config));
        let is_on_device = executor.is_on_device();
        let reuse =
            (self.reuse.as_ref()).and_then(|_| reuse(program, config, &fiber, is_on_device));
        Ok(Lane::new(recorder, fiber, executor, engine, reuse))
    }

    /// The engine, and what its instances run on; nothing where no tensor decides.
    pub fn engine<'m>(
        &'m mut self,
        entry: EntryFn,
        manifest: &'m Manifest,
        shows: bool,
    ) -> Option<(&'m mut Engine, Machine<'m>)> {
        let machine = Machine {
            entry,
            manifest,
            recorder: &mut self.recorder,
            executor: &mut self.executor,
            shows,
        };
        Some((self.engine.as_mut()?, machine))
    }
}

/// An engine for instances of the program, one for each thread and one for all.
pub(super) fn engine(program: &Program, config: &Config) -> Engine {
    let result_slots = slot_count(&program.manifest().result);
    let engines = match config.threads {
        0 | 1 => 1,
        threads => threads + 1,
    };
    let predictor = match config.device {
        DeviceKind::Cpu => None,
        _ if !config.device_options.speculation => None,
        _ => Predictor::new(program.manifest()),
    };
    Engine::new(
        config.limits.stack_bytes(),
        result_slots,
        engines,
        predictor,
    )
}

/// A recorder of calls that are put together like that.
pub(super) fn recorder(
    program: &Program,
    config: &Config,
    grouping: Grouping,
    most_cached: &[u32],
    fiber: &Fiber,
) -> Box<Recorder> {
    let mut recorder = Recorder::new(
        program.manifest(),
        config.limits,
        config.max_buckets,
        grouping,
        fiber.stack_limit(),
    );
    recorder.cache(most_cached);
    recorder.set_draw(config.draw);
    recorder
}

/// What keeps schedules, where that is wanted and they follow from structures.
pub(super) fn reuse(
    program: &Program,
    config: &Config,
    fiber: &Fiber,
    is_on_device: bool,
) -> Option<Reuse> {
    if config.schedule_memory == 0 || config.batch == Batch::Unbatched {
        return None;
    }
    let grouping = Grouping::ByDepth { share: false };
    let scout = recorder(program, config, grouping, &[], fiber);
    let bytes = config.schedule_memory / config.most_lanes(is_on_device);
    Reuse::new(program.entry, program.manifest(), scout, bytes)
}
