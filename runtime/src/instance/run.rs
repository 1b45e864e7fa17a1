//! An instance runs, from its beginning or from a decision, until it waits or is done.

use cohort_abi::Failure;
use cohort_abi::manifest::Elem;

use super::ahead::Found;
use super::strands::Wait;
use super::{Beginning, Common, Instance, Machine, Status};
use crate::error::Error;
use crate::failure::{InstanceError, Stop, StoppedAt};
use crate::io::shown::Shown;
use crate::recorder::Stopped;
use crate::threads::fiber::{Event, Job, Signal};

/// How far an instance got.
enum Turn {
    Waits,
    /// Its status says how.
    Done,
    /// It met an error in one of its strands, and does without them from now on.
    BeginsAgain,
}

impl Instance {
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
        common: &mut Common,
    ) -> Result<(), Error> {
        self.is_new = true;
        self.status = Status::Waits;
        self.shown = 0;
        self.repeated_rows = 0;
        self.beginning = Beginning {
            key,
            arguments: arguments.as_ptr(),
            input_bytes,
        };
        machine.recorder.enter(&mut self.state);
        machine.recorder.begin_instance(key, input_bytes);
        if let Some(time) = self.again.and_then(|again| again.time) {
            machine.recorder.end_after(time);
        }
        machine.recorder.let_fork();
        self.strands.begin(machine.recorder.state_mut());
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.begin(self.ticket.number);
        }
        // SAFETY: the caller's promise.
        let turn = unsafe {
            let signal = self.run(machine, common)?;
            self.go_on(machine, signal, common)?
        };
        self.pause(machine, turn, common)
    }

    /// Gives the instance what it waits for, and runs it until it waits again or is done. The decisions
    /// are those of [`Instance::asks_for`], in that order.
    ///
    /// # Safety
    ///
    /// As [`Instance::start`], whose machine this is.
    pub unsafe fn decide(
        &mut self,
        machine: &mut Machine<'_>,
        decisions: &mut impl Iterator<Item = u32>,
        common: &mut Common,
    ) -> Result<(), Error> {
        machine.recorder.enter(&mut self.state);
        self.is_new = false;
        // SAFETY: the caller's promise.
        let found = unsafe { self.check_guesses(machine, decisions, common)? };
        machine.recorder.continue_instance();
        machine
            .recorder
            .set_floor(common.alignment.floor(self.is_new));
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.enter(self.ticket.number);
        }
        let mut turn = Turn::Waits;
        self.strands.answer();
        match found {
            Found::Right => {}
            Found::Ended => {
                self.status = Status::Finished;
                turn = Turn::Done;
            }
            // SAFETY: the caller's promise; the fiber waits for this.
            Found::Wrong { force, bits } => unsafe {
                let signal = self.give(machine, force, bits)?;
                turn = self.go_on(machine, signal, common)?;
            },
        }
        let mut index = 0;
        while let Some((strand, wait)) = self.strands.answered(index) {
            index += 1;
            let bits = match wait {
                Wait::Forced { .. } => decisions.next(),
                // What is shown was fetched to be shown, and decides nothing.
                Wait::Shown(_) => Some(0),
            };
            let bits = bits.ok_or_else(|| Error::Internal("too few decisions".to_owned()))?;
            if !matches!(turn, Turn::Waits) {
                continue;
            }
            self.strands.switch_to(strand, machine.recorder.state_mut());
            // SAFETY: the caller's promise; what an instance shows is computed by the flush that it
            // waited for.
            turn = unsafe {
                let signal = match wait {
                    Wait::Forced { force, .. } => {
                        self.decided(force, bits, common);
                        self.give(machine, force, bits)
                    }
                    Wait::Shown(shown) => self.show(machine, shown),
                }?;
                self.go_on(machine, signal, common)?
            };
        }
        self.pause(machine, turn, common)
    }

    /// Runs the entry from its beginning until it needs the runtime.
    ///
    /// # Safety
    ///
    /// The arguments of the instance are there; its state is the recorder's.
    unsafe fn run(
        &mut self,
        machine: &mut Machine<'_>,
        common: &mut Common,
    ) -> Result<Signal, Error> {
        self.results.fill(0);
        machine
            .recorder
            .set_floor(common.alignment.floor(self.is_new));
        let job = Job {
            entry: machine.entry,
            host: machine.recorder.host(),
            arguments: self.beginning.arguments,
            results: self.results.as_mut_ptr(),
        };
        // SAFETY: the recorder is not touched before the fiber gives control back; the caller
        // promises the arguments; the results have a slot for each of the program's.
        unsafe { self.strands.fiber()?.run(job) }
    }

    /// Shows a value, if it was not shown before the instance began again, and goes on.
    ///
    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's, and the value is computed.
    unsafe fn show(&mut self, machine: &mut Machine<'_>, shown: Shown) -> Result<Signal, Error> {
        self.shown += 1;
        if self.shown > self.shown_before && machine.shows && machine.recorder.tracer().is_none() {
            let most_bytes = machine.recorder.limits().max_memory;
            // SAFETY: the caller's promise.
            unsafe { shown.write(&self.id, machine.manifest, machine.executor, most_bytes)? };
        }
        if machine.recorder.is_late() {
            return self.stop(machine, Stop::LATE);
        }
        // SAFETY: the caller's promise.
        unsafe { self.strands.fiber()?.resume(0) }
    }

    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's.
    unsafe fn give(
        &mut self,
        machine: &mut Machine<'_>,
        force: u32,
        bits: u32,
    ) -> Result<Signal, Error> {
        if let Some(tracer) = machine.recorder.tracer() {
            tracer.decision(force, bits);
        }
        if machine.recorder.is_late() {
            return self.stop(machine, Stop::LATE);
        }
        let elem = machine.force_elem(force)?;
        if elem == Elem::F32 && f32::from_bits(bits).is_nan() {
            let stop = Stop {
                failure: Failure::NanDecision,
                a: 0,
                b: 0,
                place: StoppedAt::Force(force),
            };
            return self.stop(machine, stop);
        }
        // SAFETY: the caller's promise.
        unsafe { self.strands.fiber()?.resume(bits) }
    }

    /// The strand that runs waited, and is given up without going on.
    fn stop(&mut self, machine: &mut Machine<'_>, stop: Stop) -> Result<Signal, Error> {
        self.strands.fiber()?.abandon();
        machine.recorder.stop_waiting(stop);
        Ok(Event::Stopped.into())
    }

    /// Goes on until all strands need what is not computed, or the instance is done.
    ///
    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's.
    unsafe fn go_on(
        &mut self,
        machine: &mut Machine<'_>,
        mut signal: Signal,
        common: &mut Common,
    ) -> Result<Turn, Error> {
        loop {
            let next = match signal.event() {
                Event::Forced { handle, force } => match machine.recorder.is_computed(handle) {
                    // SAFETY: it is this instance that runs, and asks.
                    Some(false) => match unsafe { self.guess(machine, common, (handle, force))? } {
                        Some(signal) => Some(signal),
                        None => {
                            let bucket = handle.bucket() as usize;
                            if let Some(levels) = machine.recorder.levels(bucket) {
                                common.alignment.learn(self.is_new, levels);
                            }
                            self.strands.wait(Wait::Forced { handle, force });
                            None
                        }
                    },
                    Some(true) => {
                        let bits = machine.decision(handle, force)?;
                        // SAFETY: it is this instance that runs.
                        Some(unsafe { self.give(machine, force, bits) }?)
                    }
                    None => return Err(Error::Internal("a decision by no row".to_owned())),
                },
                Event::Shown { debug, slots } => {
                    let shown = Shown { debug, slots };
                    // SAFETY: the instance gave them just now, and is alive.
                    let is_computed = unsafe {
                        shown.is_computed(machine.manifest, machine.recorder, machine.executor)?
                    };
                    match is_computed && !self.is_ahead() {
                        // SAFETY: it is this instance that runs.
                        true => Some(unsafe { self.show(machine, shown) }?),
                        false => {
                            self.strands.wait(Wait::Shown(shown));
                            None
                        }
                    }
                }
                // SAFETY: it is this instance that runs, and asks for it.
                Event::Forked(strand) => Some(unsafe {
                    let pool = &mut common.pool;
                    self.strands.fork(machine.recorder, pool, *strand)?
                }),
                Event::Joined { scope } => {
                    // SAFETY: it is the scope of the strand that runs.
                    unsafe { self.strands.join(scope) };
                    None
                }
                Event::Awaited { scope, index } => {
                    self.strands.await_strand(scope, index);
                    None
                }
                Event::Finished if self.is_ahead() => {
                    self.end_ahead();
                    return Ok(Turn::Waits);
                }
                Event::Finished if self.strands.is_first() => {
                    self.status = Status::Finished;
                    return Ok(Turn::Done);
                }
                Event::Finished => {
                    // SAFETY: its caller joins it, so that one has not ended.
                    unsafe { self.strands.end(machine.recorder, &mut common.pool) };
                    None
                }
                Event::Stopped if self.is_ahead() => {
                    // SAFETY: it is this instance that ran, and stopped.
                    unsafe { self.wait_at_last_guess(machine, common)? };
                    None
                }
                Event::Stopped => return self.stopped(machine),
            };
            let next = match next {
                // SAFETY: it is this instance that runs.
                None => unsafe { self.strands.next(machine.recorder) }?,
                signal => signal,
            };
            signal = match next {
                Some(signal) => signal,
                None => return Ok(Turn::Waits),
            };
        }
    }

    /// What becomes of an instance that stopped.
    #[cold]
    fn stopped(&mut self, machine: &mut Machine<'_>) -> Result<Turn, Error> {
        self.status = match machine.recorder.abandon_instance() {
            // What is late is late without strands too.
            (Stopped::Failure(stop), _)
                if self.strands.has_forked() && stop.failure != Failure::TimeLimit =>
            {
                return Ok(Turn::BeginsAgain);
            }
            (Stopped::Failure(stop), depth) => Status::Failed(machine.describe(&stop, depth)),
            (Stopped::BatchFull, depth) if self.is_alone() => {
                Status::Failed(machine.describe(&Stop::NO_BUCKET, depth))
            }
            (Stopped::OutOfMemory, _) if self.is_alone() => {
                Status::Failed(InstanceError::no_memory(None))
            }
            (Stopped::BatchFull | Stopped::OutOfMemory, _) => Status::Crowded(self.run_again()),
            (Stopped::Interrupted, _) => return Err(Error::Interrupted),
            (Stopped::Broken(problem), _) => return Err(Error::Internal(problem)),
        };
        Ok(Turn::Done)
    }

    /// The instance waits or is done, but where it has to begin again; then takes its state back.
    fn pause(
        &mut self,
        machine: &mut Machine<'_>,
        mut turn: Turn,
        common: &mut Common,
    ) -> Result<(), Error> {
        if let Turn::BeginsAgain = turn {
            // The first error in the order of the program is met where strands run one by one.
            let state = machine.recorder.state_mut();
            self.repeated_rows += state.computed_rows();
            self.decide_nothing(common);
            self.strands.clear(state, &mut common.pool);
            self.strands.trim();
            self.shown_before = self.shown.max(self.shown_before);
            self.shown = 0;
            let Beginning {
                key, input_bytes, ..
            } = self.beginning;
            machine.recorder.begin_again(key, input_bytes);
            // SAFETY: it is the instance that runs, and its arguments stay until it is done.
            turn = unsafe {
                let signal = self.run(machine, common)?;
                self.go_on(machine, signal, common)?
            };
        }
        match turn {
            Turn::Waits | Turn::Done => {}
            Turn::BeginsAgain => {
                return Err(Error::Internal("an instance begins for ever".to_owned()));
            }
        }
        machine.recorder.pause_instance();
        machine.recorder.leave(&mut self.state);
        Ok(())
    }
}
