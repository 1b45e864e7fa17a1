//! Which instances are alive: new ones are admitted as far as there is room, and those that run again when it is their
//! turn.

use std::time::Instant;

use super::{Engine, Report, Window, forks_left};
use crate::error::Error;
use crate::instance::{Again, Instance, Machine, Status, Ticket};
use crate::io::feed::{Feed, Next};
use crate::report::profile::{Gauge, Span};

/// More instances at once fill no kernel better, and each needs a stack.
pub const MOST_ALIVE: usize = 1 << 14;
impl Engine {
    /// Admits those of which it is the turn, and runs each until it waits or is done.
    pub(super) fn admit_all(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        window: &Window,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        let read = feed.read();
        let alive_before = self.alive.len();
        let is_crowd = (self.alive.first()).is_some_and(|instance| instance.again.is_some());
        let is_batch = !window.is_in_flight && !self.alive.is_empty();
        if self.alive.is_empty()
            && let Some(survey) = machine.executor.survey_mut()
        {
            survey.begin_batch();
        }
        if is_crowd || is_batch || !self.crowded.is_empty() {
            if self.alive.is_empty()
                && let Some((_, crowd)) = self.crowded.pop_first()
            {
                for (ticket, again) in crowd {
                    let instance = match self.idle.pop() {
                        Some(instance) => instance,
                        None => Instance::new(self.stack_bytes, self.result_slots)?,
                    };
                    self.admit(machine, feed, instance, ticket, Some(again))?;
                }
            }
        } else {
            let most = window.count.min(MOST_ALIVE);
            // Instances that never wait would otherwise go on for ever without a flush.
            let mut left = most;
            let mut waiting = self
                .alive
                .iter()
                .filter(|instance| instance.waits())
                .count();
            while left > 0 && waiting < most && self.has_room(machine, window, report) {
                if waiting > 0 && has_enough(machine, window) {
                    self.ended_early += 1;
                    break;
                }
                let Some(instance) = self.place()? else {
                    break;
                };
                if feed.must_read()
                    && let Some(sink) = report.sink
                {
                    sink.flush()?;
                }
                let may_wait = self.alive.is_empty();
                let asked = machine
                    .executor
                    .profile()
                    .map(|_| (Instant::now(), feed.read()));
                let next = feed.next(machine, may_wait)?;
                if let Some((asked, read)) = asked
                    && feed.read() > read
                {
                    machine.executor.spent(Span::Read, asked);
                }
                let Next::Instance(ticket) = next else {
                    self.idle.push(instance);
                    break;
                };
                self.admit(machine, feed, instance, ticket, None)?;
                waiting += usize::from(self.alive.last().is_some_and(|last| last.waits()));
                left -= 1;
            }
        }
        if alive_before < self.alive.len() {
            self.admitted = self.alive.len();
        }
        let (begin, took) = self.end_lap();
        report.times.record += took.saturating_sub(feed.read() - read);
        machine.executor.span(Span::Record, begin, self.lap);
        if let Some(profile) = machine.executor.profile() {
            profile.gauge(Gauge::Alive(self.alive.len() as u64));
            profile.gauge(Gauge::ControlBytes(self.held_bytes));
        }
        Ok(())
    }

    /// Whether another instance may be admitted.
    fn has_room(&self, machine: &Machine<'_>, window: &Window, report: &Report<'_, '_>) -> bool {
        if self.alive.is_empty() {
            return true;
        }
        let arena = machine.executor.arena();
        let sink_is_full = (report.sink.as_ref()).is_some_and(|sink| sink.is_full());
        let bytes = arena.used_bytes() + self.held_bytes + self.taped_bytes;
        !sink_is_full
            && machine
                .recorder
                .has_room(bytes, arena.used_rows(), window.memory)
    }

    /// A place for one more instance. There is none when the system gives no other stack, as long
    /// as there are some.
    fn place(&mut self) -> Result<Option<Box<Instance>>, Error> {
        if let Some(instance) = self.idle.pop() {
            return Ok(Some(instance));
        }
        match Instance::new(self.stack_bytes, self.result_slots) {
            Ok(instance) => Ok(Some(instance)),
            Err(_) if !self.alive.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn admit(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &Feed<'_>,
        mut instance: Box<Instance>,
        ticket: Ticket,
        again: Option<Again>,
    ) -> Result<(), Error> {
        instance.ticket = ticket;
        instance.again = again;
        instance.admitted = machine.executor.profile().map(|_| Instant::now());
        instance.generation = self.first_generation + self.generations.len() as u64;
        let inputs = feed.inputs(ticket.chunk)?;
        if !machine.manifest.debugs.is_empty() {
            instance.id.clear();
            instance.id.push_str(inputs.id(ticket.index));
            instance.shown_before = self.shown.remove(&ticket.number).unwrap_or(0);
        }
        match inputs.arguments(ticket.index) {
            // SAFETY: the arguments were decoded for this program, and the feed keeps the chunk
            // until this instance is done.
            Ok((arguments, bytes)) => unsafe {
                let key = inputs.key(ticket.index);
                let left = forks_left(machine, &self.common.pool, self.alive.len() + 1);
                self.common.alive = self.admitted.max(self.alive.len() + 1);
                machine.recorder.set_forks_left(left);
                instance.start(machine, key, arguments, bytes, &mut self.common)?;
            },
            Err(error) => instance.status = Status::Failed(error.clone()),
        }
        self.alive.push(instance);
        Ok(())
    }
}

/// Whether what instances have recorded that wait is enough.
fn has_enough(machine: &Machine<'_>, window: &Window) -> bool {
    let recorder = &machine.recorder;
    (window.enough).has(machine.manifest, recorder, recorder.pending_bytes())
}
