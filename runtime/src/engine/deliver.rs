//! What happens to instances that are done: their results are fetched and written, their gradients computed, and
//! the rows of what they were computed from are taken back.

use std::time::Instant;

use super::{Engine, Report};
use crate::backward::Taped;
use crate::error::Error;
use crate::failure::InstanceError;
use crate::instance::{Instance, Machine, Status};
use crate::io::feed::Feed;
use crate::io::output::{Places, Walk};
use crate::report::Progress;
use crate::report::profile::Span;

impl Engine {
    /// Writes the lines of the instances that are done.
    pub fn deliver(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        // Others may have had their turn since the last part.
        self.lap = Instant::now();
        self.write(machine, feed, report)
    }

    /// The same right after another part of the run.
    pub(super) fn write(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        for (number, error) in feed.given_up() {
            let is_it = |instance: &&mut Box<Instance>| instance.ticket.number == number;
            if let Some(instance) = self.alive.iter_mut().find(is_it)
                && matches!(instance.status, Status::Waits | Status::Crowded(_))
            {
                instance.status = Status::Failed(error);
            }
        }
        self.fetch_results(machine, report)?;
        self.held_bytes = 0;
        let mut waiting = 0;
        for index in 0..self.alive.len() {
            let instance = &self.alive[index];
            let ticket = instance.ticket;
            let without_gradient;
            let mut seeds = Vec::new();
            let result = match &instance.status {
                Status::Waits => {
                    self.held_bytes += instance.held_bytes();
                    self.alive.swap(waiting, index);
                    waiting += 1;
                    continue;
                }
                Status::Crowded(again) => {
                    self.wasted_rows += instance.computed_rows();
                    let crowd = again.crowd.unwrap_or_else(|| {
                        self.next_crowd += 1;
                        self.next_crowd - 1
                    });
                    self.crowded
                        .entry(crowd)
                        .or_default()
                        .push((ticket, *again));
                    if instance.shown.max(instance.shown_before) > 0 {
                        let shown = instance.shown.max(instance.shown_before);
                        self.shown.insert(ticket.number, shown);
                    }
                    continue;
                }
                Status::Finished => match &mut self.backward {
                    None => Ok(instance.results()),
                    Some(backward) => {
                        let own = (ticket.number, feed.inputs(ticket.chunk)?.id(ticket.index));
                        let (manifest, results) = (machine.manifest, instance.results());
                        // SAFETY: the entry wrote the results, and what was recorded is flushed; what
                        // they point to is memory of the instance and of its inputs.
                        match unsafe { backward.seeds(manifest, machine.executor, own, results)? } {
                            Ok(own) => {
                                seeds = own;
                                Ok(results)
                            }
                            Err(error) => {
                                without_gradient = error;
                                Err(&without_gradient)
                            }
                        }
                    }
                },
                Status::Failed(error) => {
                    self.wasted_rows += instance.computed_rows();
                    Err(error)
                }
            };
            report.stats.instances += 1;
            report.stats.failed += u64::from(result.is_err());
            if let (Some(profile), Some(begin)) = (machine.executor.profile(), instance.admitted) {
                profile.instance(ticket.number, begin, result.is_err());
            }
            let id = feed.inputs(ticket.chunk)?.id(ticket.index);
            let mut is_written = true;
            if let Some(sink) = report.sink {
                // SAFETY: the entry wrote the results, and what was recorded is flushed; what they
                // point to is memory of the instance and of its inputs.
                is_written = unsafe { sink.put(ticket.number, id, result, machine.executor)? };
                report.stats.failed += u64::from(!is_written);
            }
            let Some(backward) = &mut self.backward else {
                feed.done(ticket.chunk, machine)?;
                continue;
            };
            let too_long;
            let error = match (result, is_written) {
                (Err(error), _) => error,
                (Ok(_), false) => {
                    let most = machine.recorder.limits().max_memory;
                    too_long = InstanceError::memory_limit("the result", most);
                    &too_long
                }
                // Its inputs are needed until then.
                (Ok(_), true) => {
                    let tape = self.alive[index].take_tape();
                    self.taped_bytes += 8 * tape.len() as u64;
                    self.taped.push(Taped {
                        ticket,
                        tape,
                        seeds,
                    });
                    continue;
                }
            };
            backward.put_error(ticket.number, id, error)?;
            feed.done(ticket.chunk, machine)?;
        }
        if waiting < self.alive.len() {
            for mut instance in self.alive.drain(waiting..) {
                instance.clear(&mut self.common);
                self.idle.push(instance);
            }
            (report.progress)(Progress {
                instances: report.stats.instances,
                failed: report.stats.failed,
                bytes_read: feed.bytes_read(),
            });
        }
        let (begin, took) = self.end_lap();
        report.times.write += took;
        machine.executor.span(Span::Write, begin, self.lap);
        Ok(())
    }

    /// Computes the gradients of the instances that are done, when none is alive beside them.
    pub(super) fn go_back(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        let Some(backward) = &mut self.backward else {
            return Ok(());
        };
        if self.taped.is_empty() || !self.alive.is_empty() {
            return Ok(());
        }
        let mut generation = self.spare.pop().unwrap_or_default();
        backward.run(machine, feed, &mut self.taped, &mut generation)?;
        self.spare.push(generation);
        self.taped_bytes = 0;
        report.stats.flushes += 1;
        for instance in self.taped.drain(..) {
            feed.done(instance.ticket.chunk, machine)?;
        }
        let (begin, took) = self.end_lap();
        report.times.execute += took;
        machine.executor.span(Span::Backward, begin, self.lap);
        Ok(())
    }

    /// Brings the rows of all instances that are done to the host at once, if they are on a device.
    fn fetch_results(
        &mut self,
        machine: &mut Machine<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        if !machine.executor.is_on_device() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for instance in &self.alive {
            let Status::Finished = instance.status else {
                continue;
            };
            let results = instance.results();
            // SAFETY: the entry wrote the results, and what was recorded is flushed; what they point to is
            // memory of the instance and of its inputs.
            unsafe {
                if let Some(sink) = report.sink {
                    sink.wanted(results, machine.executor, &mut wanted);
                } else if self.backward.is_some() {
                    // Gradients begin with them, also where nobody takes the results.
                    let most = machine.recorder.limits().max_memory;
                    let mut places = Places::new(&mut wanted, most);
                    let (manifest, executor) = (machine.manifest, &*machine.executor);
                    // Errors are reported when the results are read.
                    let _ =
                        Walk::new(manifest).value(&manifest.result, results, executor, &mut places);
                }
            }
        }
        machine.executor.fetch(&wanted)
    }

    /// Takes back what was computed before the oldest of those that are alive was admitted.
    pub(super) fn release(&mut self, machine: &mut Machine<'_>) {
        if !self.taped.is_empty() {
            return;
        }
        let held = self.alive.first().into_iter().chain(&self.done);
        let oldest = held.map(|instance| instance.generation).min();
        let oldest = oldest.unwrap_or(u64::MAX);
        while self.first_generation < oldest
            && let Some(mut generation) = self.generations.pop_front()
        {
            machine.executor.release(&mut generation);
            machine.recorder.recycle(&mut generation.buckets);
            self.spare.push(generation);
            self.first_generation += 1;
        }
    }
}
