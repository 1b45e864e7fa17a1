//! Batches of a program whose paths are known from the inputs alone: recorded, flushed, written.
//!
//! A batch that cannot be flushed is cut and tried again: in half, if there is too little memory for it, and
//! by its work if there is too little time ([`Blame`]). So an instance fails alone, and those beside it do
//! not.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_abi::EntryFn;
use cohort_abi::manifest::Manifest;

use super::Config;
use super::lane::Lane;
use crate::engine::blame::Blame;
use crate::error::Error;
use crate::execute::Generation;
use crate::failure::{InstanceError, Stop};
use crate::io::feed::Held;
use crate::io::sink::Sink;
use crate::limits::Limits;
use crate::program::code::Program;
use crate::program::slot::slot_count;
use crate::recorder::Stopped;
use crate::recorder::enough::Enough;
use crate::report::profile::Span;
use crate::report::stats::{Stats, Times};
use crate::report::trace::trace_flush;
use crate::reuse::Reuse;
use crate::threads::fiber::{Event, Job};

/// What all lanes of a session do alike.
pub(super) struct Rules<'a> {
    pub entry: EntryFn,
    pub manifest: &'a Manifest,
    pub limits: &'a Limits,
    /// Instances of a batch, and the bytes that they may use.
    pub count: usize,
    pub memory: u64,
    /// When a batch has enough, though it might have more.
    pub enough: Enough,
    pub result_slots: usize,
    /// Whether an instance that has no memory beside other batches is given back, to run without them.
    pub returns: bool,
}

impl<'a> Rules<'a> {
    /// For `lanes` lanes at once, which share the memory.
    pub fn new(
        program: &'a Program,
        config: &'a Config,
        lanes: usize,
        enough: &Enough,
    ) -> Rules<'a> {
        Rules {
            entry: program.entry,
            manifest: &program.manifest,
            limits: &config.limits,
            count: config.batch_count(),
            memory: config.batch_memory / lanes as u64,
            enough: enough.clone(),
            result_slots: slot_count(&program.manifest.result),
            returns: false,
        }
    }
}

/// Decoded instances on their way through a lane: those of a chunk, or a part of them.
pub(super) struct Chunk<'a> {
    pub inputs: Arc<Held<'a>>,
    /// The number in the run of the inputs' first one.
    pub number: u64,
    /// The instance behind the last.
    end: usize,
    /// Nobody waits for them any more after that.
    pub deadline: Option<Instant>,
    pub times: Times,
    has_begun: bool,
    /// The first instance that is not done.
    next: usize,
    /// Instances of the next batch, where no batch is run again.
    most: usize,
    /// Where batches that are run again end, the next one last.
    ends: Vec<usize>,
    /// Time that instances which run again had before.
    charged: HashMap<usize, Duration>,
}

impl<'a> Chunk<'a> {
    pub fn new(inputs: Held<'a>, number: u64, deadline: Option<Instant>) -> Chunk<'a> {
        let end = inputs.len();
        Chunk::of(Arc::new(inputs), number, deadline, 0..end)
    }

    fn of(
        inputs: Arc<Held<'a>>,
        number: u64,
        deadline: Option<Instant>,
        instances: Range<usize>,
    ) -> Chunk<'a> {
        Chunk {
            inputs,
            number,
            deadline,
            times: Times::default(),
            has_begun: false,
            next: instances.start,
            end: instances.end,
            most: usize::MAX,
            ends: Vec::new(),
            charged: HashMap::new(),
        }
    }

    /// Divides one that has not begun into at most as many parts as there are shares, whose inputs are about as large as
    /// these are to each other: the first part, and the others.
    pub fn divide(mut self, shares: &[f64]) -> (Chunk<'a>, Vec<Chunk<'a>>) {
        let a_share = self.size() as f64 / shares.iter().sum::<f64>();
        let (mut size, mut wanted, mut ends) = (0, 0.0, Vec::new());
        let mut shares = shares.iter();
        for instance in self.next..self.end {
            if size as f64 >= wanted
                && let Some(share) = shares.next()
            {
                ends.push(instance);
                wanted += share * a_share;
            }
            size += self.size_of(instance);
        }
        ends.push(self.end);
        let parts = ends.windows(2).skip(1).map(|part| {
            let inputs = self.inputs.clone();
            Chunk::of(inputs, self.number, self.deadline, part[0]..part[1])
        });
        let others = parts.collect();
        self.end = ends.get(1).copied().unwrap_or(self.end);
        (self, others)
    }

    /// How large the inputs of what is not done are, in bytes and instances: what it takes is about proportional to that.
    pub fn size(&self) -> u64 {
        (self.next..self.end)
            .map(|instance| self.size_of(instance))
            .sum()
    }

    fn size_of(&self, instance: usize) -> u64 {
        1 + (self.inputs.arguments(instance)).map_or(0, |(_, bytes)| bytes)
    }

    pub fn len(&self) -> usize {
        self.end - self.next
    }

    pub fn is_done(&self) -> bool {
        self.next >= self.end
    }
}

impl Lane {
    /// Runs the next batch of a chunk, whose results are then there to be [written](Lane::write).
    pub(super) fn compute(
        &mut self,
        rules: &Rules<'_>,
        chunk: &mut Chunk<'_>,
    ) -> Result<(), Error> {
        if !chunk.has_begun {
            let begin = Instant::now();
            self.batch = Generation::default();
            self.executor.reset(1);
            // SAFETY: the chunk has its inputs until it is done, and the next one resets the executor before anything is read.
            unsafe { self.executor.lend_inputs(0, chunk.inputs.rows())? };
            chunk.times.execute += begin.elapsed();
            (chunk.has_begun, chunk.most) = (true, rules.count);
        }
        loop {
            let next = chunk.next;
            let begin = Instant::now();
            let count = chunk.ends.last().map_or(chunk.most, |end| end - next);
            let end = self.record(rules, chunk, count, begin)?;
            let recorded = Instant::now();
            self.executor.span(Span::Record, begin, recorded);
            self.executor.release(&mut self.batch);
            self.batch.buckets.clear();
            if let Some(survey) = self.executor.survey_mut() {
                survey.begin_batch();
            }
            let time = time_left(rules, next..end, &chunk.charged);
            let late = time.and_then(|time| begin.checked_add(time));
            let late = late.into_iter().chain(chunk.deadline).min();
            match self.flush(rules, recorded, late) {
                // Twice as many take twice as long.
                Ok(()) if time.is_none_or(|time| begin.elapsed() < time / 4) => {
                    chunk.most = chunk.most.saturating_mul(2).min(rules.count);
                }
                Ok(()) => {}
                Err(error) if !error.is_of_batch() => return Err(error),
                Err(error) => {
                    let is_over =
                        (chunk.deadline).is_some_and(|deadline| Instant::now() >= deadline);
                    let is_given_up = is_over || end - next == 1;
                    if !is_given_up {
                        // With fewer it may well go, and alone it is clear whose fault it is.
                        chunk.most = (end - next) / 2;
                        match error {
                            Error::Late => self.cut(next..end, begin.elapsed(), chunk),
                            _ => chunk.ends.push(next + chunk.most),
                        }
                    }
                    self.recorder.give_up_calls();
                    self.executor.release(&mut self.batch);
                    self.batch.buckets.clear();
                    if !is_given_up {
                        continue;
                    }
                    if rules.returns && !is_over {
                        // Its inputs are to be put elsewhere.
                        chunk.has_begun = false;
                        return Err(error);
                    }
                    let error = match error {
                        Error::Late => self.describe(rules, &Stop::LATE, 0),
                        error => InstanceError::no_memory(Some(&error)),
                    };
                    self.outcomes.fill(Err(error));
                }
            }
            chunk.times.record += recorded - begin;
            chunk.times.execute += recorded.elapsed();
            return Ok(());
        }
    }

    /// Writes the results of the batch that was computed last, and counts it.
    pub(super) fn write(
        &mut self,
        rules: &Rules<'_>,
        chunk: &mut Chunk<'_>,
        sink: &mut Option<&mut dyn Sink>,
        stats: &mut Stats,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        stats.flushes += 1;
        let failed = self.outcomes.iter().filter(|outcome| outcome.is_err());
        stats.failed += failed.count() as u64;
        if let Some(sink) = sink {
            stats.failed += self.put(rules, chunk, &mut **sink)?;
        }
        stats.instances += self.outcomes.len() as u64;
        chunk.times.write += begin.elapsed();
        self.executor.spent(Span::Write, begin);
        chunk.next += self.outcomes.len();
        let next = chunk.next;
        chunk.ends.retain(|end| *end > next);
        Ok(())
    }

    /// The batch at hand took that long and is not done: each of its instances is charged its part, and
    /// it is cut where its work is.
    fn cut(&mut self, instances: Range<usize>, took: Duration, chunk: &mut Chunk<'_>) {
        self.recorder.write_out();
        let mut works = self.executor.works(&self.recorder);
        works.resize(instances.len(), 0);
        let blame = Blame::of(works);
        for (place, instance) in instances.clone().enumerate() {
            *chunk.charged.entry(instance).or_default() += blame.charge(place, took);
        }
        let places: Vec<usize> = (0..instances.len()).collect();
        let mut next = instances.end;
        for length in blame.batches(&places).into_iter().rev() {
            chunk.ends.push(next);
            next -= length;
        }
    }

    /// Records instances of a chunk from `begin` on, as many as one batch takes; returns the one after them.
    fn record(
        &mut self,
        rules: &Rules<'_>,
        chunk: &Chunk<'_>,
        most: usize,
        begin: Instant,
    ) -> Result<usize, Error> {
        let (inputs, first) = (&chunk.inputs, chunk.next);
        let half_time = rules.limits.max_time.map(|time| time / 2);
        self.recorder.begin_batch();
        if let Some(reuse) = &mut self.reuse {
            reuse.begin_batch(&mut self.recorder);
        }
        self.outcomes.clear();
        self.results.clear();
        let last = chunk.end.min(first.saturating_add(most));
        for instance in first..last {
            self.recorder.interrupt().check()?;
            if let Some(reuse) = &mut self.reuse
                && (instance - first).is_multiple_of(Reuse::AHEAD)
            {
                let next = instance..last.min(instance + Reuse::AHEAD);
                let known = next.filter_map(|instance| inputs.known(instance));
                reuse.expect(known.map(|known| known.key));
            }
            let is_full = || {
                // The other half is for computing.
                self.recorder.is_full(rules.memory)
                    || half_time.is_some_and(|time| begin.elapsed() > time)
            };
            if instance > first && is_full() {
                return Ok(instance);
            }
            // The last few are not worth a batch of their own.
            let has_enough = instance > first && {
                let bytes = self.recorder.used_bytes();
                rules.enough.has(rules.manifest, &self.recorder, bytes)
            };
            if has_enough && last - instance > (instance - first) / 2 {
                self.ended_early += 1;
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
            // Where schedules follow from structures, nothing is drawn.
            let key = match self.reuse {
                Some(_) => 0,
                None => inputs.key(instance),
            };
            self.recorder.begin_instance(key, bytes);
            if let Some(tracer) = self.recorder.tracer() {
                tracer.begin(chunk.number + instance as u64);
            }
            let first_slot = (instance - first) * rules.result_slots;
            self.results.resize(first_slot + rules.result_slots, 0);
            let results = &mut self.results[first_slot..];
            if let Some(reuse) = &mut self.reuse
                && self.recorder.tracer().is_none()
                && let Some(known) = inputs.known(instance)
            {
                if let Some(next) = inputs.known(instance + 1) {
                    reuse.fetch(next.key);
                }
                let fiber = &mut self.fiber;
                // SAFETY: the inputs are of this program.
                if unsafe { reuse.replay(&mut self.recorder, fiber, known, results)? } {
                    self.recorder.finish_instance();
                    self.outcomes.push(Ok(()));
                    continue;
                }
            }
            let job = Job {
                entry: rules.entry,
                host: self.recorder.host(),
                arguments: arguments.as_ptr(),
                results: results.as_mut_ptr(),
            };
            // SAFETY: the recorder is not touched before the fiber gives control back; the
            // arguments were decoded for this program, and the results have a slot for each of its
            // result's.
            match unsafe { self.fiber.run(job) }?.event() {
                Event::Finished => {
                    self.recorder.finish_instance();
                    self.outcomes.push(Ok(()));
                }
                Event::Forced { .. }
                | Event::Shown { .. }
                | Event::Forked(_)
                | Event::Joined { .. }
                | Event::Awaited { .. } => {
                    let problem = "a decision in a program that has none";
                    return Err(Error::Internal(problem.to_owned()));
                }
                Event::Stopped => match self.recorder.abandon_instance() {
                    (Stopped::Failure(stop), depth) => {
                        let error = self.describe(rules, &stop, depth);
                        self.outcomes.push(Err(error));
                    }
                    // The others of the batch are at fault, so it gets a batch of its own.
                    (Stopped::BatchFull | Stopped::OutOfMemory, _) if instance > first => {
                        return Ok(instance);
                    }
                    (Stopped::BatchFull, depth) => {
                        let error = self.describe(rules, &Stop::NO_BUCKET, depth);
                        self.outcomes.push(Err(error));
                    }
                    (Stopped::OutOfMemory, _) => {
                        self.outcomes.push(Err(InstanceError::no_memory(None)));
                    }
                    (Stopped::Interrupted, _) => return Err(Error::Interrupted),
                    (Stopped::Broken(problem), _) => return Err(Error::Internal(problem)),
                },
            }
        }
        Ok(last)
    }

    /// Computes what was recorded, before it is too late.
    fn flush(
        &mut self,
        rules: &Rules<'_>,
        begin: Instant,
        late: Option<Instant>,
    ) -> Result<(), Error> {
        self.executor
            .flush(&mut self.recorder, &mut self.batch, begin, late)?;
        if self.recorder.tracer().is_some() {
            self.executor.fetch_all(&self.batch)?;
        }
        trace_flush(rules.manifest, &mut self.recorder, &self.executor);
        self.recorder.flushed();
        Ok(())
    }

    fn describe(&self, rules: &Rules<'_>, stop: &Stop, depth: u64) -> InstanceError {
        stop.describe(rules.manifest, self.recorder.limits(), depth)
    }

    /// Writes the results of the batch with which the chunk goes on; returns how many could not be written.
    fn put(
        &mut self,
        rules: &Rules<'_>,
        chunk: &Chunk<'_>,
        sink: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let mut failed = 0;
        self.fetch_results(rules, sink)?;
        for (index, outcome) in self.outcomes.iter().enumerate() {
            let id = chunk.inputs.id(chunk.next + index);
            let result = match outcome {
                Ok(()) => Ok(self.results[index * rules.result_slots..].as_ptr()),
                Err(error) => Err(error),
            };
            let number = chunk.number + (chunk.next + index) as u64;
            // SAFETY: the entry wrote these slots in the batch that was just flushed; what they
            // point to is memory of the inputs and of the recorder, both untouched since.
            let is_written = unsafe { sink.put(number, id, result, &self.executor)? };
            failed += u64::from(!is_written);
        }
        Ok(failed)
    }

    /// Brings the rows of all results of the last batch to the host at once, if they are on a device.
    fn fetch_results(&mut self, rules: &Rules<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if !self.executor.is_on_device() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for (index, outcome) in self.outcomes.iter().enumerate() {
            if outcome.is_ok() {
                let slots = self.results[index * rules.result_slots..].as_ptr();
                // SAFETY: as in `write`.
                unsafe { sink.wanted(slots, &self.executor, &mut wanted) };
            }
        }
        self.executor.fetch(&wanted)
    }
}

/// What a batch of these may take, by the instance that had most of its time already.
fn time_left(
    rules: &Rules<'_>,
    instances: Range<usize>,
    charged: &HashMap<usize, Duration>,
) -> Option<Duration> {
    let before = instances.filter_map(|instance| charged.get(&instance));
    let before = before.max().copied().unwrap_or_default();
    (rules.limits.max_time).map(|time| time.saturating_sub(before))
}
