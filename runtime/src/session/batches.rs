//! Batches of a program whose paths are known from the inputs alone: recorded, flushed, written.
//!
//! A batch that cannot be flushed is cut and tried again: in half, if there is too little memory for it, and
//! by its work if there is too little time ([`Blame`]). So an instance fails alone, and those beside it do
//! not.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::Session;
use crate::blame::Blame;
use crate::error::Error;
use crate::execute::Generation;
use crate::failure::{InstanceError, Stop};
use crate::fiber::{Event, Job};
use crate::input::Inputs;
use crate::profile::Span;
use crate::recorder::Stopped;
use crate::sink::Sink;
use crate::stats::{Stats, Times};
use crate::trace::trace_flush;

impl Session {
    /// Runs decoded instances of a program whose paths are known from the inputs alone; nobody waits for
    /// them any more after `deadline`.
    pub(super) fn run_batches(
        &mut self,
        inputs: &Inputs,
        deadline: Option<Instant>,
        sink: &mut Option<&mut dyn Sink>,
        times: &mut Times,
        stats: &mut Stats,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        self.batch = Generation::default();
        self.executor.reset(1);
        self.executor.put_inputs(0, inputs.rows())?;
        times.execute += begin.elapsed();
        let mut next = 0;
        // Instances of the next batch, but where batches that are run again end, the next one last.
        let mut most = self.batch_count();
        let mut ends: Vec<usize> = Vec::new();
        // Time that instances which run again had before.
        let mut charged = HashMap::new();
        while next < inputs.len() {
            let begin = Instant::now();
            let count = ends.last().map_or(most, |end| end - next);
            let end = self.record(inputs, next, stats.instances, count)?;
            let recorded = Instant::now();
            self.executor.spent(Span::Record, begin);
            self.executor.release(&mut self.batch);
            self.batch.buckets.clear();
            if let Some(survey) = self.executor.survey_mut() {
                survey.begin_batch();
            }
            let time = self.time_left(next..end, &charged);
            let late = time.map(|time| begin + time);
            match self.flush(late.into_iter().chain(deadline).min()) {
                // Twice as many take twice as long.
                Ok(()) if time.is_none_or(|time| begin.elapsed() < time / 4) => {
                    most = most.saturating_mul(2).min(self.batch_count());
                }
                Ok(()) => {}
                Err(error) if !error.is_of_batch() => return Err(error),
                Err(error) => {
                    let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    let is_given_up = is_over || end - next == 1;
                    if !is_given_up {
                        // With fewer it may well go, and alone it is clear whose fault it is.
                        most = (end - next) / 2;
                        match error {
                            Error::Late => {
                                self.cut(next..end, begin.elapsed(), &mut ends, &mut charged);
                            }
                            _ => ends.push(next + most),
                        }
                    }
                    self.recorder.give_up_calls();
                    self.executor.release(&mut self.batch);
                    self.batch.buckets.clear();
                    if !is_given_up {
                        continue;
                    }
                    let error = match error {
                        Error::Late => self.describe(&Stop::LATE, 0),
                        error => InstanceError::no_memory(Some(&error)),
                    };
                    self.outcomes.fill(Err(error));
                }
            }
            let executed = Instant::now();
            stats.flushes += 1;
            let failed = self.outcomes.iter().filter(|outcome| outcome.is_err());
            stats.failed += failed.count() as u64;
            if let Some(sink) = sink {
                stats.failed += self.write(inputs, next, stats.instances, &mut **sink)?;
            }
            stats.instances += (end - next) as u64;
            times.record += recorded - begin;
            times.execute += executed - recorded;
            times.write += executed.elapsed();
            self.executor.spent(Span::Write, executed);
            next = end;
            ends.retain(|end| *end > next);
        }
        match sink {
            Some(sink) => sink.flush(),
            None => Ok(()),
        }
    }

    /// What a batch of these may take, by the instance that had most of its time already.
    fn time_left(
        &self,
        instances: Range<usize>,
        charged: &HashMap<usize, Duration>,
    ) -> Option<Duration> {
        let before = instances.filter_map(|instance| charged.get(&instance));
        let before = before.max().copied().unwrap_or_default();
        (self.config.limits.max_time).map(|time| time.saturating_sub(before))
    }

    /// The batch at hand took that long and is not done: each of its instances is charged its part, and
    /// it is cut where its work is.
    fn cut(
        &self,
        instances: Range<usize>,
        took: Duration,
        ends: &mut Vec<usize>,
        charged: &mut HashMap<usize, Duration>,
    ) {
        let mut works = self.executor.works(&self.recorder);
        works.resize(instances.len(), 0);
        let blame = Blame::of(works);
        for (place, instance) in instances.clone().enumerate() {
            *charged.entry(instance).or_default() += blame.charge(place, took);
        }
        let places: Vec<usize> = (0..instances.len()).collect();
        let mut next = instances.end;
        for length in blame.batches(&places).into_iter().rev() {
            ends.push(next);
            next -= length;
        }
    }

    /// Records instances from `first` on, as many as one batch takes; returns the one after them.
    /// `number` is that of the first in the run.
    fn record(
        &mut self,
        inputs: &Inputs,
        first: usize,
        number: u64,
        most: usize,
    ) -> Result<usize, Error> {
        let begin = Instant::now();
        let half_time = self.config.limits.max_time.map(|time| time / 2);
        self.recorder.begin_batch();
        self.outcomes.clear();
        self.results.clear();
        let last = inputs.len().min(first.saturating_add(most));
        for instance in first..last {
            let is_full = || {
                // The other half is for computing.
                self.recorder.is_full(self.config.batch_memory)
                    || half_time.is_some_and(|time| begin.elapsed() > time)
            };
            if instance > first && is_full() {
                return Ok(instance);
            }
            let (arguments, bytes) = match inputs.arguments(instance) {
                Ok(arguments) => arguments,
                Err(error) => {
                    self.recorder.skip_instance();
                    self.outcomes.push(Err(error.clone()));
                    continue;
                }
            };
            self.recorder.begin_instance(inputs.key(instance), bytes);
            if let Some(tracer) = self.recorder.tracer() {
                tracer.begin(number + (instance - first) as u64);
            }
            let first_slot = (instance - first) * self.result_slots;
            self.results.resize(first_slot + self.result_slots, 0);
            let results = &mut self.results[first_slot..];
            let job = Job {
                entry: self.program.entry,
                recorder: &raw mut *self.recorder,
                arguments: arguments.as_ptr(),
                results: results.as_mut_ptr(),
            };
            // SAFETY: the recorder is not touched before the fiber gives control back; the
            // arguments were decoded for this program, and the results have a slot for each of its
            // result's.
            match unsafe { self.fiber.run(job) }? {
                Event::Finished => {
                    self.recorder.finish_instance();
                    self.outcomes.push(Ok(()));
                }
                Event::Forced { .. }
                | Event::Shown { .. }
                | Event::Forked(_)
                | Event::Joined { .. } => {
                    let problem = "a decision in a program that has none";
                    return Err(Error::Internal(problem.to_owned()));
                }
                Event::Stopped => match self.recorder.abandon_instance() {
                    (Stopped::Failure(stop), depth) => {
                        let error = self.describe(&stop, depth);
                        self.outcomes.push(Err(error));
                    }
                    // The others of the batch are at fault, so it gets a batch of its own.
                    (Stopped::BatchFull | Stopped::OutOfMemory, _) if instance > first => {
                        return Ok(instance);
                    }
                    (Stopped::BatchFull, depth) => {
                        let error = self.describe(&Stop::NO_BUCKET, depth);
                        self.outcomes.push(Err(error));
                    }
                    (Stopped::OutOfMemory, _) => {
                        self.outcomes.push(Err(InstanceError::no_memory(None)));
                    }
                    (Stopped::Broken(problem), _) => return Err(Error::Internal(problem)),
                },
            }
        }
        Ok(last)
    }

    /// Computes what was recorded, before it is too late.
    fn flush(&mut self, late: Option<Instant>) -> Result<(), Error> {
        self.executor.flush(&self.recorder, &mut self.batch, late)?;
        if self.recorder.tracer().is_some() {
            self.executor.fetch_all(&self.batch)?;
        }
        trace_flush(&self.program.manifest, &mut self.recorder, &self.executor);
        self.recorder.flushed();
        Ok(())
    }

    fn describe(&self, stop: &Stop, depth: u64) -> InstanceError {
        stop.describe(self.program.manifest(), self.recorder.limits(), depth)
    }

    /// Writes the lines of the last batch, which begins with that instance of the inputs and of the
    /// run; returns how many results could not be written.
    fn write(
        &mut self,
        inputs: &Inputs,
        first: usize,
        number: u64,
        sink: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let mut failed = 0;
        self.fetch_results(sink)?;
        for (index, outcome) in self.outcomes.iter().enumerate() {
            let id = inputs.id(first + index);
            let result = match outcome {
                Ok(()) => Ok(self.results[index * self.result_slots..].as_ptr()),
                Err(error) => Err(error),
            };
            let number = number + index as u64;
            // SAFETY: the entry wrote these slots in the batch that was just flushed; what they
            // point to is memory of the inputs and of the recorder, both untouched since.
            let is_written = unsafe { sink.put(number, id, result, &self.executor)? };
            failed += u64::from(!is_written);
        }
        Ok(failed)
    }

    /// Brings the rows of all results of the last batch to the host at once, if they are on a device.
    fn fetch_results(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        if !self.executor.is_on_device() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for (index, outcome) in self.outcomes.iter().enumerate() {
            if outcome.is_ok() {
                let slots = self.results[index * self.result_slots..].as_ptr();
                // SAFETY: as in `write`.
                unsafe { sink.wanted(slots, &self.executor, &mut wanted) };
            }
        }
        self.executor.fetch(&wanted)
    }
}
