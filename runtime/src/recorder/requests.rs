//! What else compiled code asks for: memory, steps, decisions, and to be given up.

use cohort_abi::{Failure, Handle, StrandFn};

use super::{Recorder, Stopped};
use crate::failure::{Stop, StoppedAt};
use crate::threads::fiber::{Event, Gate, Strand};

impl Recorder {
    /// Memory of the instance; see [`cohort_abi::symbols::ALLOC`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[inline]
    pub(crate) unsafe fn alloc(&mut self, slots: u64) -> *mut u64 {
        match slots.checked_mul(8) {
            Some(bytes) if bytes <= self.state.memory_left => {
                self.state.memory_left -= bytes;
                let memory = self.state.memory.alloc(slots as usize);
                if memory.is_null() {
                    self.stop(Stopped::OutOfMemory);
                }
                memory
            }
            _ => self.stop_because(Failure::MemoryLimit, StoppedAt::Unknown),
        }
    }

    /// Counts iterations; see [`cohort_abi::symbols::STEP`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[inline]
    pub(crate) unsafe fn step(&mut self, steps: u64) {
        match self.state.context.steps_left.checked_sub(steps) {
            Some(left) => self.state.context.steps_left = left,
            None => self.more_steps(steps),
        }
    }

    /// Waits until a row is computed; see [`cohort_abi::symbols::FORCE`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder. While it waits, whoever owns the recorder uses it, so the
    /// caller must hold no reference to it.
    pub(crate) unsafe fn force(recorder: *mut Recorder, handle: u64, force: u32) -> u32 {
        let handle = Handle(handle);
        // SAFETY: the caller's promise.
        unsafe { Recorder::wait(recorder, Event::Forced { handle, force }) }
    }

    /// Shows a value; see [`cohort_abi::symbols::DEBUG`].
    ///
    /// # Safety
    ///
    /// As [`Recorder::force`]; the slots are a value of the type that the manifest says.
    pub(crate) unsafe fn debug(recorder: *mut Recorder, debug: u32, slots: *const u64) {
        // SAFETY: the caller's promise.
        unsafe { Recorder::wait(recorder, Event::Shown { debug, slots }) };
    }

    /// Begins a strand beside the caller; see [`cohort_abi::symbols::FORK`].
    ///
    /// # Safety
    ///
    /// As [`Recorder::force`]; the scope lives until it is joined.
    pub(crate) unsafe fn fork(
        recorder: *mut Recorder,
        function: StrandFn,
        scope: *mut u64,
        index: i64,
    ) -> u32 {
        // SAFETY: the caller's promise.
        let (state, forks) = unsafe { (&(*recorder).state, &mut (*recorder).forks) };
        if !state.may_fork {
            return 0;
        }
        if forks.left == 0 {
            forks.in_turn += 1;
            return 0;
        }
        // A place in this frame lies below all of the caller's, so there is no less left than that.
        let here = &raw const function as u64;
        let stack_left = here.saturating_sub(state.context.stack_limit);
        let strand = Strand {
            function,
            scope,
            index,
            stack_left,
        };
        // SAFETY: the caller's promise.
        unsafe { Recorder::wait(recorder, Event::Forked(&raw const strand)) }
    }

    /// Waits for all strands of a scope; see [`cohort_abi::symbols::JOIN`].
    ///
    /// # Safety
    ///
    /// As [`Recorder::force`]; the scope is one of the caller's.
    pub(crate) unsafe fn join(recorder: *mut Recorder, scope: *mut u64) {
        // SAFETY: the caller's promise.
        unsafe {
            if scope.read() != 0 {
                Recorder::wait(recorder, Event::Joined { scope });
            }
        }
    }

    /// Waits for one strand of a scope; see [`cohort_abi::symbols::AWAIT`].
    ///
    /// # Safety
    ///
    /// As [`Recorder::force`]; the scope is not joined yet.
    pub(crate) unsafe fn await_strand(recorder: *mut Recorder, scope: *mut u64, index: i64) {
        // SAFETY: the caller's promise.
        unsafe {
            if scope.read() != 0 {
                // One that no scope has stays one.
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Recorder::wait(recorder, Event::Awaited { scope, index });
            }
        }
    }

    /// Gives control back until the instance goes on, with these bits.
    ///
    /// # Safety
    ///
    /// As [`Recorder::force`].
    unsafe fn wait(recorder: *mut Recorder, event: Event) -> u32 {
        // SAFETY: the caller's promise; the gate is the one that the fiber runs with.
        unsafe { Gate::wait(&raw mut (*recorder).gate, event) as u32 }
    }

    /// Gives the instance up; see [`cohort_abi::symbols::FAIL`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[cold]
    pub(crate) unsafe fn fail(&mut self, code: u32, a: i64, b: i64, location: u32) -> ! {
        let stopped = match Failure::from_code(code) {
            Some(failure) => Stopped::Failure(Stop {
                failure,
                a,
                b,
                place: StoppedAt::Location(location),
            }),
            None => Stopped::Broken(format!("failure code {code}")),
        };
        self.stop(stopped)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn stop_because(&mut self, failure: Failure, place: StoppedAt) -> ! {
        self.stop(Stopped::Failure(Stop {
            failure,
            a: 0,
            b: 0,
            place,
        }))
    }

    /// Leaves compiled code for good.
    #[cold]
    #[inline(never)]
    pub(super) fn stop(&mut self, stopped: Stopped) -> ! {
        self.stopped = Some(stopped);
        // SAFETY: an instance runs on this recorder, so on a fiber that runs with this gate; compiled code and the
        // functions that it calls own nothing.
        unsafe { self.gate.stop() }
    }
}
