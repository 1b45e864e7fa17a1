//! The time of an instance.
//!
//! No clock is looked at in the way of a call. An instance is given its calls and steps in small parts; when one is
//! used up it is asked whether it is late or interrupted, and given the next.

use std::time::{Duration, Instant};

use cohort_abi::Failure;

use super::{Recorder, State, Stopped};
use crate::failure::{Stop, StoppedAt};
use crate::late::Interrupt;

/// Calls and steps of a part: a millisecond or less.
const CALLS: u64 = 1 << 13;
const STEPS: u64 = 1 << 16;

/// What an instance may use after the parts at hand, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    pub calls: u64,
    pub steps: u64,
    pub end: Option<Instant>,
}

/// The moment when a time is over that begins now, if that will ever be.
pub(super) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl State {
    /// When the instance must be done.
    pub fn end_of_time(&self) -> Option<Instant> {
        self.time.end
    }
}

impl Recorder {
    /// Gives the instance that begins its first parts.
    pub(super) fn begin_time(&mut self) {
        let limits = &self.limits;
        let end = limits.max_time.and_then(after);
        let (calls, steps) = (limits.max_nodes, limits.max_steps);
        self.begin_parts(Time { calls, steps, end });
    }

    /// Gives what has no limits but an end its first parts.
    pub(super) fn begin_time_until(&mut self, end: Option<Instant>) {
        let (calls, steps) = (u64::MAX, u64::MAX);
        self.begin_parts(Time { calls, steps, end });
    }

    fn begin_parts(&mut self, time: Time) {
        let state = &mut self.state;
        state.time = time;
        (state.nodes_left, state.context.steps_left) = (0, 0);
        self.next_calls();
        self.next_steps();
    }

    /// Whether the running instance has no time left.
    pub fn is_late(&self) -> bool {
        (self.state.time.end).is_some_and(|end| Instant::now() >= end)
    }

    /// Calls that the instance has not made.
    pub(super) fn calls_left(&self) -> u64 {
        self.state.nodes_left + self.state.time.calls
    }

    /// Counts calls against the limit of the instance, which makes no others.
    pub(super) fn take_calls(&mut self, calls: u64) {
        self.state.nodes_left = self.calls_left().saturating_sub(calls);
        self.state.time.calls = 0;
    }

    fn next_calls(&mut self) {
        let time = &mut self.state.time;
        let part = time.calls.min(CALLS);
        time.calls -= part;
        self.state.nodes_left += part;
    }

    fn next_steps(&mut self) {
        let time = &mut self.state.time;
        let part = time.steps.min(STEPS);
        time.steps -= part;
        self.state.context.steps_left += part;
    }

    /// The calls at hand are used up.
    #[cold]
    #[inline(never)]
    pub(super) fn more_calls(&mut self, kernel: u32) {
        if self.state.time.calls == 0 {
            self.stop_because(Failure::NodeLimit, StoppedAt::Kernel(kernel));
        }
        self.stop_if_late();
        self.next_calls();
    }

    /// The steps at hand are fewer than the instance needs now.
    #[cold]
    #[inline(never)]
    pub(super) fn more_steps(&mut self, steps: u64) {
        let state = &mut self.state;
        let all = state.context.steps_left + state.time.steps;
        let Some(left) = all.checked_sub(steps) else {
            self.stop_because(Failure::StepLimit, StoppedAt::Unknown);
        };
        (state.context.steps_left, state.time.steps) = (0, left);
        self.stop_if_late();
        self.next_steps();
    }

    /// From now on instances stop when this is set.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// What stops instances.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    fn stop_if_late(&mut self) {
        if self.interrupt.is_set() {
            self.stop(Stopped::Interrupted);
        }
        if self.is_late() {
            self.stop(Stopped::Failure(Stop::LATE));
        }
    }
}
