//! What belongs to one instance while it runs or waits.

use cohort_abi::Context;

use super::time::Time;
use crate::memory::bump::{Bump, Mark};

/// Where what an instance recorded since the last flush begins, to cut it off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub log: usize,
    /// In [`super::Recorder`]'s list of new cached calls.
    pub cached: usize,
    pub memory_left: u64,
    pub memory: Mark,
}

/// In a tape, in place of a kernel: the calls of a strand, whose number follows.
pub const STRAND: u64 = u64::MAX;

/// What belongs to one strand of an instance while another one runs.
#[derive(Debug, Default)]
pub struct StrandState {
    /// How deep its calls of functions are nested.
    pub depth: u64,
    /// The address below which its stack must not grow.
    pub stack_limit: u64,
    /// Its calls, where gradients are wanted.
    pub tape: Option<Vec<u64>>,
}

/// What belongs to one instance while it runs or waits.
#[repr(C)]
#[derive(Debug)]
pub struct State {
    /// Must come first, see [`super::Recorder`].
    pub(super) context: Context,
    pub(super) nodes_left: u64,
    /// Of those that calls of ragged kernels make beyond one each.
    pub(super) rows_left: i64,
    pub(super) memory_left: u64,
    pub(super) time: Time,
    /// Which segment of the log it recorded last.
    pub(super) segment: usize,
    /// The order key from which its calls count.
    pub(super) floor: u64,
    /// Whether its strands run beside each other; see [`crate::instance::strands`].
    pub(super) may_fork: bool,
    /// The epoch in which it began; see [`crate::call_cache::sharing`].
    pub(super) first_epoch: u64,
    /// Rows of calls that were recorded before the last flush.
    pub(super) computed_rows: u64,
    pub(super) memory: Bump,
    /// Its calls, where gradients are wanted: of each the kernel, the handle, the length of its entry
    /// in the log without the bucket, and that.
    pub(super) tape: Option<Vec<u64>>,
    pub(super) start: Start,
}

impl State {
    /// For an instance on the fiber with that limit. The memory must be empty.
    pub fn new(stack_limit: u64, memory: Bump) -> State {
        State {
            context: Context {
                stack_limit,
                ..Context::default()
            },
            nodes_left: 0,
            rows_left: 0,
            memory_left: 0,
            time: Time::default(),
            segment: 0,
            floor: 0,
            may_fork: false,
            first_epoch: 0,
            computed_rows: 0,
            start: Start {
                log: 0,
                cached: 0,
                memory_left: 0,
                memory: memory.mark(),
            },
            memory,
            tape: None,
        }
    }

    /// Takes what belongs to another instance, which runs from now on. What it owns, memory and tape, and
    /// the limit of its stack are exchanged; of the rest `from` keeps a copy, for one way is half of two. That copy
    /// means nothing: an instance that begins sets all of it, and one that goes on enters with its own.
    pub(super) fn enter(&mut self, from: &mut State) {
        let State {
            context,
            nodes_left,
            rows_left,
            memory_left,
            time,
            segment,
            floor,
            may_fork,
            first_epoch,
            computed_rows,
            memory,
            tape,
            start,
        } = from;
        let stack_limit = self.context.stack_limit;
        self.context = *context;
        context.stack_limit = stack_limit;
        self.nodes_left = *nodes_left;
        self.rows_left = *rows_left;
        self.memory_left = *memory_left;
        self.time = *time;
        self.segment = *segment;
        self.floor = *floor;
        self.may_fork = *may_fork;
        self.first_epoch = *first_epoch;
        self.computed_rows = *computed_rows;
        self.start = *start;
        std::mem::swap(&mut self.memory, memory);
        std::mem::swap(&mut self.tape, tape);
    }

    /// Takes back the memory of an instance that is done, and forgets what it computed and when it had to be done.
    pub fn clear(&mut self) {
        self.memory.reset();
        self.memory.shrink();
        self.computed_rows = 0;
        self.time.end = None;
    }

    /// What was recorded of the instance, where gradients are wanted.
    pub fn take_tape(&mut self) -> Vec<u64> {
        self.tape.take().unwrap_or_default()
    }

    /// Whether its calls are kept, for gradients.
    pub fn keeps_tape(&self) -> bool {
        self.tape.is_some()
    }

    /// Exchanges what belongs to the strand that runs.
    pub fn swap_strand(&mut self, of: &mut StrandState) {
        let context = &mut self.context;
        std::mem::swap(&mut context.depth, &mut of.depth);
        std::mem::swap(&mut context.stack_limit, &mut of.stack_limit);
        std::mem::swap(&mut self.tape, &mut of.tape);
    }

    /// The state of a strand that begins where the instance is, on a stack with that limit. Where calls
    /// are kept for gradients, its own stand in its caller's place of that number.
    pub fn fork(&mut self, stack_limit: u64, tape: u64) -> StrandState {
        if let Some(own) = &mut self.tape {
            own.extend([STRAND, tape, 0]);
        }
        StrandState {
            depth: self.context.depth,
            stack_limit,
            tape: self.tape.is_some().then(Vec::new),
        }
    }

    /// The number of the segment with the calls that it recorded last.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Steps that the instance may still take.
    pub fn steps_left(&self) -> u64 {
        self.context.steps_left + self.time.steps
    }

    /// Rows of calls that cannot be taken back any more, equal calls counted each.
    pub fn computed_rows(&self) -> u64 {
        self.computed_rows
    }

    /// Bytes that the instance allocated, roughly.
    pub fn held_bytes(&self) -> u64 {
        self.memory.bytes() + 8 * self.tape.as_ref().map_or(0, Vec::len) as u64
    }
}
