//! One instance that is alive: a fiber, what the recorder knows of it, and where it stands.
//!
//! What an instance leaves behind when it is done, stack and memory, serves the next one.

use std::time::Instant;

use cohort_abi::manifest::{Elem, Manifest};
use cohort_abi::{EntryFn, Failure, Handle};

use crate::align::Alignment;
use crate::bump::Bump;
use crate::error::Error;
use crate::execute::Executor;
use crate::failure::{InstanceError, Place, Stop};
use crate::fiber::{Event, Fiber, Job};
use crate::recorder::{Recorder, State, Stopped};
use crate::shown::Shown;

/// Which instance of the input it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// From 0 on, in the order of the input.
    pub number: u64,
    /// Where its arguments are: a chunk of inputs, and the instance in it.
    pub chunk: usize,
    pub index: usize,
}

/// What stands between an instance and its line.
#[derive(Debug)]
pub enum Status {
    /// It waits for the element of a row.
    Forced {
        handle: Handle,
        force: u32,
    },
    /// It shows a value that waits to be computed.
    Shown(Shown),
    /// Its results are written; their rows wait for the next flush.
    Finished,
    Failed(InstanceError),
    /// It found no bucket left because of the others, and must run again without them.
    Crowded,
}

/// What instances run on.
pub struct Machine<'a> {
    pub entry: EntryFn,
    pub manifest: &'a Manifest,
    pub recorder: &'a mut Recorder,
    pub executor: &'a mut Executor,
    /// Whether values that instances show are written.
    pub shows: bool,
}

/// A place for an instance, used for one after another.
pub struct Instance {
    pub ticket: Ticket,
    pub status: Status,
    /// Whether nobody else was alive since it began.
    pub is_alone: bool,
    /// Whether it made no decision yet.
    is_new: bool,
    /// The number of the first flush after it began.
    pub generation: u64,
    /// Its id as JSON text, where values are shown.
    pub id: String,
    /// How many values were shown, and how many of them before it began again.
    pub shown: u64,
    pub shown_before: u64,
    fiber: Fiber,
    state: State,
    results: Box<[u64]>,
}

impl Instance {
    pub fn new(stack_bytes: u64, result_slots: usize) -> Result<Box<Instance>, Error> {
        let fiber = Fiber::new(stack_bytes)?;
        Ok(Box::new(Instance {
            ticket: Ticket::default(),
            status: Status::Crowded,
            is_alone: false,
            is_new: true,
            generation: 0,
            id: String::new(),
            shown: 0,
            shown_before: 0,
            state: State::new(fiber.stack_limit(), Bump::default()),
            fiber,
            results: vec![0; result_slots].into(),
        }))
    }

    /// The slots of the results of an instance that finished.
    pub fn results(&self) -> *const u64 {
        self.results.as_ptr()
    }

    /// Whether it waits for what it has recorded.
    pub fn waits(&self) -> bool {
        matches!(self.status, Status::Forced { .. } | Status::Shown(_))
    }

    /// What was recorded of it, where gradients are wanted.
    pub fn take_tape(&mut self) -> Vec<u64> {
        self.state.take_tape()
    }

    /// Bytes that the control program allocated.
    pub fn held_bytes(&self) -> u64 {
        self.state.held_bytes()
    }

    /// Rows that were computed for nothing, if it has no result.
    pub fn computed_rows(&self) -> u64 {
        self.state.computed_rows()
    }

    /// When it must be done.
    pub fn end(&self) -> Option<Instant> {
        self.state.end_of_time()
    }

    /// It cannot be computed beside the others; alone, it has failed.
    pub fn give_up(&mut self, machine: &Machine<'_>, error: &Error, is_alone: bool) {
        let is_late = self.end().is_some_and(|end| Instant::now() >= end);
        self.status = match (&self.status, error) {
            (Status::Failed(_) | Status::Crowded, _) => return,
            (_, Error::Late) if is_late => Status::Failed(machine.describe(&Stop::LATE, 0)),
            _ if is_alone => Status::Failed(InstanceError::no_memory()),
            _ => Status::Crowded,
        };
    }

    /// Takes back what an instance that is done used.
    pub fn clear(&mut self) {
        self.fiber.abandon();
        self.fiber.trim();
        self.state.clear();
    }

    /// Runs an instance from its beginning until it waits or is done.
    ///
    /// # Safety
    ///
    /// The arguments are those of the machine's entry, and stay where they are until the instance
    /// is done.
    pub unsafe fn start(
        &mut self,
        machine: &mut Machine<'_>,
        key: u64,
        arguments: &[u64],
        input_bytes: u64,
        alignment: &mut Alignment,
    ) -> Result<(), Error> {
        self.results.fill(0);
        self.is_new = true;
        self.shown = 0;
        machine.recorder.swap_state(&mut self.state);
        machine.recorder.begin_instance(key, input_bytes);
        machine.recorder.set_floor(alignment.floor(self.is_new));
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.begin(self.ticket.number);
        }
        let job = Job {
            entry: machine.entry,
            recorder: machine.recorder,
            arguments: arguments.as_ptr(),
            results: self.results.as_mut_ptr(),
        };
        // SAFETY: the recorder is not touched before the fiber gives control back; the caller
        // promises the arguments; the results have a slot for each of the program's.
        let event = unsafe { self.fiber.run(job) }?;
        self.settle(machine, event, alignment)
    }

    /// Gives the instance what it waits for, and runs it until it waits again or is done.
    ///
    /// # Safety
    ///
    /// As [`Instance::start`], whose machine this is.
    pub unsafe fn decide(
        &mut self,
        machine: &mut Machine<'_>,
        bits: u32,
        alignment: &mut Alignment,
    ) -> Result<(), Error> {
        let shown = match self.status {
            Status::Forced { .. } => None,
            Status::Shown(shown) => Some(shown),
            _ => return Err(Error::Internal("a decision for nobody".to_owned())),
        };
        machine.recorder.swap_state(&mut self.state);
        self.is_new = false;
        machine.recorder.continue_instance();
        machine.recorder.set_floor(alignment.floor(self.is_new));
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.enter(self.ticket.number);
        }
        // SAFETY: the caller's promise; what an instance shows is computed by the flush that it
        // waited for.
        let event = unsafe {
            match (shown, &self.status) {
                (Some(shown), _) => self.show(machine, shown),
                (None, Status::Forced { force, .. }) => self.give(machine, *force, bits),
                (None, _) => Err(Error::Internal("a decision for nobody".to_owned())),
            }
        }?;
        self.settle(machine, event, alignment)
    }

    /// Shows a value, if it was not shown before the instance began again, and goes on.
    ///
    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's, and the value is computed.
    unsafe fn show(&mut self, machine: &mut Machine<'_>, shown: Shown) -> Result<Event, Error> {
        self.shown += 1;
        if self.shown > self.shown_before && machine.shows && machine.recorder.tracer().is_none() {
            let most_bytes = machine.recorder.limits().max_memory;
            // SAFETY: the caller's promise.
            unsafe { shown.write(&self.id, machine.manifest, machine.executor, most_bytes)? };
        }
        if machine.recorder.is_late() {
            self.fiber.abandon();
            machine.recorder.stop_waiting(Stop::LATE);
            return Ok(Event::Stopped);
        }
        // SAFETY: the caller's promise.
        unsafe { self.fiber.resume(0) }
    }

    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's.
    unsafe fn give(
        &mut self,
        machine: &mut Machine<'_>,
        force: u32,
        bits: u32,
    ) -> Result<Event, Error> {
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.decision(force, bits);
        }
        if machine.recorder.is_late() {
            self.fiber.abandon();
            machine.recorder.stop_waiting(Stop::LATE);
            return Ok(Event::Stopped);
        }
        let elem = machine.force_elem(force)?;
        if elem == Elem::F32 && f32::from_bits(bits).is_nan() {
            self.fiber.abandon();
            machine.recorder.stop_waiting(Stop {
                failure: Failure::NanDecision,
                a: 0,
                b: 0,
                place: Place::Force(force),
            });
            return Ok(Event::Stopped);
        }
        // SAFETY: the caller's promise.
        unsafe { self.fiber.resume(bits) }
    }

    /// Goes on until the instance needs what is not computed; then takes its state back.
    fn settle(
        &mut self,
        machine: &mut Machine<'_>,
        mut event: Event,
        alignment: &mut Alignment,
    ) -> Result<(), Error> {
        self.status = loop {
            match event {
                Event::Forced { handle, force } => {
                    let bucket = handle.bucket() as usize;
                    match machine.recorder.is_computed(handle) {
                        Some(false) => {
                            if let Some(levels) = machine.recorder.levels(bucket) {
                                alignment.learn(self.is_new, levels);
                            }
                            break Status::Forced { handle, force };
                        }
                        Some(true) => {
                            let bits = machine.decision(handle, force)?;
                            // SAFETY: it is this instance that runs.
                            event = unsafe { self.give(machine, force, bits) }?;
                        }
                        None => return Err(Error::Internal("a decision by no row".to_owned())),
                    }
                }
                Event::Shown { debug, slots } => {
                    let shown = Shown { debug, slots };
                    // SAFETY: the instance gave them just now, and is alive.
                    let is_computed = unsafe {
                        shown.is_computed(machine.manifest, machine.recorder, machine.executor)?
                    };
                    if !is_computed {
                        break Status::Shown(shown);
                    }
                    // SAFETY: it is this instance that runs.
                    event = unsafe { self.show(machine, shown) }?;
                }
                Event::Finished => break Status::Finished,
                Event::Stopped => match machine.recorder.abandon_instance() {
                    (Stopped::Failure(stop), depth) => {
                        break Status::Failed(machine.describe(&stop, depth));
                    }
                    (Stopped::BatchFull, depth) if self.is_alone => {
                        break Status::Failed(machine.describe(&Stop::NO_BUCKET, depth));
                    }
                    (Stopped::OutOfMemory, _) if self.is_alone => {
                        break Status::Failed(InstanceError::no_memory());
                    }
                    (Stopped::BatchFull | Stopped::OutOfMemory, _) => break Status::Crowded,
                    (Stopped::Broken(problem), _) => return Err(Error::Internal(problem)),
                },
            }
        };
        machine.recorder.pause_instance();
        machine.recorder.swap_state(&mut self.state);
        Ok(())
    }
}

impl Machine<'_> {
    fn force_elem(&self, force: u32) -> Result<Elem, Error> {
        Ok(self.manifest.spaces[self.force_space(force)?].elem)
    }

    /// The space of the rows that decide there.
    pub fn force_space(&self, force: u32) -> Result<usize, Error> {
        let force = self.manifest.forces.get(force as usize);
        let force = force.ok_or_else(|| Error::Internal("a decision of no place".to_owned()))?;
        Ok(force.space)
    }

    fn decision(&self, handle: Handle, force: u32) -> Result<u32, Error> {
        let space = self.force_space(force)?;
        self.executor.decision(handle, space)
    }

    fn describe(&self, stop: &Stop, depth: u64) -> InstanceError {
        stop.describe(self.manifest, self.recorder.limits(), depth)
    }
}
