//! Instances begin, wait, go on, and end.

use std::time::{Duration, Instant};

use super::buckets::{MAX_PHASE, PHASE_SHIFT};
use super::costs::KernelCalls;
use super::state::{Start, State};
use super::time::after;
use super::{Grouping, Recorder, Stopped};
use crate::failure::Stop;
use crate::program::log::Entries;
use crate::recorder::draw;

impl Recorder {
    /// From now on instances have the random numbers of this draw.
    pub fn set_draw(&mut self, draw: u64) {
        self.draw = draw;
    }

    /// From now on instances keep tapes, for gradients.
    pub fn keep_tapes(&mut self) {
        self.keeps_tapes = true;
    }

    /// The backward of an instance begins, on the fiber with that limit. It is one of the runtime's own
    /// and has no limits but those of numbers and memory, and perhaps an end.
    pub fn begin_backward(&mut self, stack_limit: u64, end: Option<Instant>) {
        self.begin_instance(0, 0);
        let state = &mut self.state;
        state.context.stack_limit = stack_limit;
        state.context.max_depth = u64::MAX;
        state.memory_left = u64::MAX;
        state.tape = None;
        self.begin_time_until(end);
    }

    /// `key` is that of its id; `input_bytes` are those that the instance's arguments occupy.
    pub fn begin_instance(&mut self, key: u64, input_bytes: u64) {
        let state = &mut self.state;
        state.context.depth = 0;
        state.context.phase = 0;
        state.context.key = draw::key(key, self.draw);
        state.context.max_depth = self.limits.max_depth;
        state.rows_left = self.max_calls as i64;
        state.memory_left = self.limits.max_memory.saturating_sub(input_bytes);
        state.floor = 0;
        state.may_fork = false;
        state.first_epoch = self.epoch;
        state.computed_rows = 0;
        state.tape = self.keeps_tapes.then(|| {
            let mut tape = state.tape.take().unwrap_or_default();
            tape.clear();
            tape
        });
        state.start = Start {
            log: self.log.len(),
            cached: self.new_cached.len(),
            memory_left: state.memory_left,
            memory: state.memory.mark(),
        };
        self.begin_time();
        self.begin_segment();
        self.stopped = None;
    }

    /// An instance that does not begin, for what its arguments are, has its segment too.
    pub fn skip_instance(&mut self) {
        self.segments.push(self.log.len());
    }

    /// The instance that has just begun must be done within `time`.
    pub fn end_after(&mut self, time: Duration) {
        self.state.time.end = after(time);
    }

    /// The strands of the running instance may run beside each other. Alone, no call gains by that.
    pub fn let_fork(&mut self) {
        self.state.may_fork = self.grouping != Grouping::Unbatched && self.tracer.is_none();
    }

    /// What belongs to the running instance.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The running instance begins again, as if it had not begun: its calls since the last flush were
    /// taken back. Its time goes on.
    pub fn begin_again(&mut self, key: u64, input_bytes: u64) {
        let end = self.state.end_of_time();
        self.state.memory.reset();
        self.begin_instance(key, input_bytes);
        self.state.time.end = end;
    }

    /// The instance whose state was just entered begins or goes on; its calls count from that
    /// depth, which shifts them against those of other instances and changes nothing else.
    pub fn set_floor(&mut self, depth: u32) {
        self.state.floor = self.phase_key() + u64::from(depth);
        self.has_gaps |= depth > 0;
    }

    /// How many levels above the floor the bucket is, if it is pending and in the phase in which
    /// the instance went on.
    pub fn levels(&self, bucket: usize) -> Option<u32> {
        let (key, floor) = (self.buckets.key(bucket), self.state.floor);
        (key >> PHASE_SHIFT == floor >> PHASE_SHIFT && key > 0)
            .then(|| (key as u32).saturating_sub(floor as u32))
    }

    /// The first key of the instance's phase.
    #[inline]
    pub(super) fn phase_key(&self) -> u64 {
        self.state.context.phase.min(MAX_PHASE) << PHASE_SHIFT
    }

    /// The instance whose state was just entered goes on.
    pub fn continue_instance(&mut self) {
        self.state.start.log = self.log.len();
        self.state.start.cached = self.new_cached.len();
        self.state.start.memory_left = self.state.memory_left;
        self.state.computed_rows = self.instance_rows();
        self.begin_segment();
        self.stopped = None;
    }

    fn begin_segment(&mut self) {
        self.state.segment = self.segments.len();
        self.segments.push(self.log.len());
    }

    /// The running instance waits, or is done and its calls stay.
    pub fn pause_instance(&mut self) {
        self.pending_bytes += self.state.start.memory_left - self.state.memory_left;
        let rows = self
            .instance_rows()
            .saturating_sub(self.state.computed_rows);
        self.pending_rows += rows.saturating_mul(self.max_results);
    }

    /// The running instance waited, and is given up without going on.
    pub fn stop_waiting(&mut self, stop: Stop) {
        self.stopped = Some(Stopped::Failure(stop));
    }

    /// From now on the instance runs whose state this is, which [`Recorder::leave`] gives back.
    #[inline]
    pub fn enter(&mut self, state: &mut State) {
        self.state.enter(state);
    }

    /// The instance whose state this is does not run any more.
    #[inline]
    pub fn leave(&mut self, state: &mut State) {
        state.enter(&mut self.state);
    }

    /// The instance's calls stay.
    pub fn finish_instance(&mut self) {
        self.used_rows += self.instance_rows();
        self.used_bytes += self
            .limits
            .max_memory
            .saturating_sub(self.state.memory_left);
    }

    /// Rows that the calls of the running instance make, equal calls counted each.
    fn instance_rows(&self) -> u64 {
        let calls = self.limits.max_nodes.saturating_sub(self.calls_left());
        calls.saturating_add_signed(self.max_calls as i64 - self.state.rows_left)
    }

    /// The instance's calls since the last flush and its memory are taken back; says why it was
    /// stopped, and at what depth.
    pub fn abandon_instance(&mut self) -> (Stopped, u64) {
        let mut entries = Entries::of(&self.log[self.state.start.log..]);
        while let Some(entry) =
            entries.next(|bucket| self.kernels.get(self.buckets.kernel(bucket) as usize))
        {
            // Ghosts are of no instance.
            let Some(KernelCalls { form, .. }) = entry.kernel else {
                continue;
            };
            let rows = form.rows(entry.slots) as u32;
            (self.buckets).take_back(entry.bucket, rows, form.is_ragged);
        }
        self.log.truncate(self.state.start.log);
        self.take_back_cached(self.state.start.cached);
        self.forget_shared_calls();
        self.state.memory.rollback(self.state.start.memory);
        let stopped = self
            .stopped
            .take()
            .unwrap_or_else(|| Stopped::Broken("an instance stopped without a reason".to_owned()));
        (stopped, self.state.context.depth)
    }
}
