//! Where an instance stands, to come back to when it has run ahead and should not have: see [`crate::speculation`].
//!
//! Calls that were computed meanwhile stay what they are; nobody has their handles any more. All that an instance owns
//! is on its stack, in its memory and in its [`State`](super::State). Memory is handed out in order and written before it
//! is read ([`cohort_abi::manifest::Manifest::grows_in_place`] says where that is not so), so it is enough to hand it out again.

use cohort_abi::Context;

use super::Recorder;
use super::time::Time;
use crate::memory::bump::Mark;

/// Where an instance stood.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    context: Context,
    nodes_left: u64,
    rows_left: i64,
    memory_left: u64,
    time: Time,
    floor: u64,
    memory: Mark,
    /// How long its tape was.
    tape: usize,
    /// Where its calls from then on begin, in the log and in the list of new cached calls.
    log: usize,
    cached: usize,
    may_fork: bool,
}

impl Recorder {
    /// Where the running instance stands.
    pub fn save(&self) -> Saved {
        let state = &self.state;
        Saved {
            context: state.context,
            nodes_left: state.nodes_left,
            rows_left: state.rows_left,
            memory_left: state.memory_left,
            time: state.time,
            floor: state.floor,
            memory: state.memory.mark(),
            tape: state.tape.as_ref().map_or(0, Vec::len),
            log: self.log.len(),
            cached: self.new_cached.len(),
            may_fork: state.may_fork,
        }
    }

    /// The running instance stands where it stood. What it recorded meanwhile is computed, or was taken back.
    pub fn restore(&mut self, saved: &Saved) {
        let state = &mut self.state;
        state.context = saved.context;
        state.nodes_left = saved.nodes_left;
        state.rows_left = saved.rows_left;
        state.memory_left = saved.memory_left;
        state.time = saved.time;
        state.floor = saved.floor;
        state.may_fork = saved.may_fork;
        state.memory.rollback(saved.memory);
        if let Some(tape) = &mut state.tape {
            tape.truncate(saved.tape);
        }
    }

    /// Rows that the calls of the running instance have made since then.
    pub fn rows_since(&self, saved: &Saved) -> u64 {
        let calls = saved.nodes_left + saved.time.calls - self.calls_left();
        calls.saturating_add_signed(saved.rows_left - self.state.rows_left)
    }

    /// Whether the running instance has made calls since then.
    pub fn has_called_since(&self, saved: &Saved) -> bool {
        (self.log.len(), self.new_cached.len()) != (saved.log, saved.cached)
    }

    /// The running instance takes back what it recorded since then, before any of it was computed, and stands where it
    /// stood; why it stopped is forgotten.
    pub fn take_back_since(&mut self, saved: &Saved) {
        let start = self.state.start;
        self.state.start.log = saved.log;
        self.state.start.cached = saved.cached;
        self.state.start.memory = saved.memory;
        self.abandon_instance();
        self.state.start = start;
        self.restore(saved);
    }

    /// From now on the strands of the running instance run in their turn.
    pub fn run_in_turn(&mut self) {
        self.state.may_fork = false;
    }

    /// The instance has run ahead of nothing any more: its strands may do what they did there.
    pub fn let_fork_as(&mut self, saved: &Saved) {
        self.state.may_fork = saved.may_fork;
    }

    /// Where the running instance waits: see [`Gate::waiting_frame`](crate::threads::fiber::Gate::waiting_frame).
    pub fn waiting_frame(&self) -> usize {
        self.gate.waiting_frame()
    }
}
