//! Programs whose path depends on tensors: many instances alive, each waiting for its decision.
//!
//! A *round* is: admit new instances as far as there is room and run each until it waits for a
//! decision, returns or fails; flush; deliver those that are done; read all decisions at once and
//! give each waiting instance its own, in the order of the input. So all instances reach their next
//! decision before anything is computed, and one flush serves them all.
//!
//! What decides is a row of the instance itself, and a row never depends on the others in its
//! launch. So neither does the path of an instance depend on who is alive with it.
//!
//! # Memory
//!
//! An instance can hold handles of what was computed since it was admitted, and of its inputs. So
//! the rows and buckets of a flush, its [`Generation`], are released when no instance is alive that
//! was admitted before the flush. When that is too little, no instance is admitted until others
//! are done; so what is in use is at most what a batch may use, and what those few need that are
//! alive then, each of which has limits of its own.

mod admit;
pub(crate) mod blame;
mod deliver;
mod late;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use cohort_abi::Handle;

use crate::backward::{Backward, Taped};
use crate::error::Error;
use crate::execute::Generation;
use crate::instance::alignment::Alignment;
use crate::instance::strands::StackPool;
use crate::instance::{Again, Common, Instance, Machine, Ticket};
use crate::io::feed::Feed;
use crate::io::sink::Sink;
use crate::recorder::enough::Enough;
use crate::report::Progress;
use crate::report::profile::Span;
use crate::report::stats::{Stats, Times};
use crate::report::trace::trace_flush;
use crate::speculation::{Predictor, Work};
pub use admit::MOST_ALIVE;

/// In how many parts a window in flight is delivered where another thread does that.
const PARTS: usize = 8;
/// Which instances are alive at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many.
    pub count: usize,
    /// Bytes that they may use together before no other is admitted.
    pub memory: u64,
    /// Whether new ones are admitted while others are alive.
    pub is_in_flight: bool,
    /// When those that wait have recorded enough, though there might be more of them.
    pub enough: Enough,
}

/// What is counted, and where lines go.
pub struct Report<'a, 's> {
    /// Takes the results; where there is none, they are dropped.
    pub sink: &'a mut Option<&'s mut dyn Sink>,
    /// Where the time goes, added up.
    pub times: &'a mut Times,
    /// What is counted, added up.
    pub stats: &'a mut Stats,
    /// Is told how far the run is, again and again.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// Instances that are alive, and places for others. They are boxed because they are big and change
/// their place in the lists often.
#[expect(clippy::vec_box)]
pub struct Engine {
    stack_bytes: u64,
    result_slots: usize,
    /// In the order of the input.
    alive: Vec<Box<Instance>>,
    idle: Vec<Box<Instance>>,
    /// Those that are done, while others go on before they are delivered.
    done: Vec<Box<Instance>>,
    /// Those that must run again, those of one number together without others, and the next number.
    crowded: BTreeMap<u64, Vec<(Ticket, Again)>>,
    next_crowd: u64,
    /// Gradients, where they are wanted, and the instances that they are still to be computed of.
    backward: Option<Backward>,
    taped: Vec<Taped>,
    /// Of their tapes.
    taped_bytes: u64,
    /// What was computed, oldest first, and the number of the first of them.
    generations: VecDeque<Generation>,
    first_generation: u64,
    spare: Vec<Generation>,
    /// How many were alive when others were admitted last.
    admitted: usize,
    /// Bytes of the control programs of those that are alive.
    held_bytes: u64,
    /// Rows of instances without a result, and of those that ran again.
    wasted_rows: u64,
    /// How often no other instance was admitted, as those that waited had recorded enough.
    ended_early: u64,
    /// Of those that must run again: how many values they have shown, by the number of the instance.
    shown: HashMap<u64, u64>,
    requests: Vec<(Handle, usize)>,
    decisions: Vec<u32>,
    common: Common,
    /// When the part of the run that is counted next began.
    lap: Instant,
}

impl Engine {
    /// An engine whose instances have stacks of `stack_bytes` bytes and `result_slots` slots for results, one
    /// of `engines` at the same time; decisions are guessed, if there is something to guess them by.
    pub fn new(
        stack_bytes: u64,
        result_slots: usize,
        engines: usize,
        predictor: Option<Predictor>,
    ) -> Engine {
        Engine {
            stack_bytes,
            result_slots,
            alive: Vec::new(),
            idle: Vec::new(),
            done: Vec::new(),
            crowded: BTreeMap::new(),
            next_crowd: 0,
            backward: None,
            taped: Vec::new(),
            taped_bytes: 0,
            generations: VecDeque::new(),
            first_generation: 0,
            spare: Vec::new(),
            admitted: 0,
            held_bytes: 0,
            wasted_rows: 0,
            ended_early: 0,
            shown: HashMap::new(),
            requests: Vec::new(),
            decisions: Vec::new(),
            common: Common {
                alignment: Alignment::default(),
                pool: StackPool::new(stack_bytes, engines),
                predictor,
                alive: 0,
            },
            lap: Instant::now(),
        }
    }

    /// From now on gradients are computed.
    pub fn differentiate(&mut self, backward: Backward) {
        self.backward = Some(backward);
    }

    /// What goes back over the calls, if gradients are computed.
    pub fn backward(&self) -> Option<&Backward> {
        self.backward.as_ref()
    }

    /// What goes back over the calls, to be changed.
    pub fn backward_mut(&mut self) -> Option<&mut Backward> {
        self.backward.as_mut()
    }

    /// Runs all instances of the feed.
    pub fn run(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        window: &Window,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        self.begin(machine, feed.slots())?;
        while self.compute(machine, feed, window, report)? {
            self.write(machine, feed, report)?;
            self.go_back(machine, feed, report)?;
            self.go_on(machine, report)?;
        }
        match &mut self.backward {
            Some(backward) => backward.flush(),
            None => Ok(()),
        }
    }

    /// Goes on after [`Engine::begin`] or [`Engine::deliver`], until a batch is to be delivered, or, of a window in
    /// flight, a part of it. Whether there is any; if not, all that the feed had is done.
    pub fn run_to_delivery(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        window: &Window,
        report: &mut Report<'_, '_>,
    ) -> Result<bool, Error> {
        let most_done = match window.is_in_flight {
            true => (window.count / PARTS).max(1),
            false => usize::MAX,
        };
        self.lap = Instant::now();
        loop {
            self.go_on(machine, report)?;
            if !self.compute(machine, feed, window, report)? {
                return Ok(false);
            }
            let done = self.alive.extract_if(.., |instance| !instance.waits());
            self.done.extend(done);
            if self.alive.is_empty() || self.done.len() >= most_done {
                self.alive.append(&mut self.done);
                return Ok(true);
            }
        }
    }

    /// Instances that are alive.
    pub fn alive(&self) -> usize {
        self.alive.len()
    }

    /// Rows that were computed for instances without a result, for those that then ran again, or behind wrong guesses, since
    /// [`Engine::clear_counts`].
    pub fn wasted_rows(&self) -> u64 {
        let guessed = self.common.predictor.as_ref();
        self.wasted_rows + guessed.map_or(0, |predictor| predictor.wasted_rows)
    }

    /// What decisions are guessed by, where they are.
    pub fn predictor(&self) -> Option<&Predictor> {
        self.common.predictor.as_ref()
    }

    /// How often no other instance was admitted, as those that waited had recorded enough, since
    /// [`Engine::clear_counts`].
    pub fn ended_early(&self) -> u64 {
        self.ended_early
    }

    /// Forgets what was counted.
    pub fn clear_counts(&mut self) {
        self.wasted_rows = 0;
        self.ended_early = 0;
        if let Some(predictor) = &mut self.common.predictor {
            predictor.clear_counts();
        }
    }

    /// Ends a part of the run; when it began, and how long it took. The next one begins, so that the clock is read once
    /// for both.
    fn end_lap(&mut self) -> (Instant, Duration) {
        self.end_lap_at(Instant::now())
    }

    /// The same, where the clock was looked at already.
    fn end_lap_at(&mut self, end: Instant) -> (Instant, Duration) {
        let begin = std::mem::replace(&mut self.lap, end);
        (begin, end.saturating_duration_since(begin))
    }

    /// Lets all run to their next decision and computes that; whether any instance is alive.
    fn compute(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &mut Feed<'_>,
        window: &Window,
        report: &mut Report<'_, '_>,
    ) -> Result<bool, Error> {
        machine.recorder.interrupt().check()?;
        self.admit_all(machine, feed, window, report)?;
        if self.alive.is_empty() {
            return Ok(false);
        }
        self.flush(machine, feed, report)?;
        Ok(true)
    }

    /// After those that are done were delivered: gives the others their decisions.
    fn go_on(
        &mut self,
        machine: &mut Machine<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        self.release(machine);
        self.decide(machine, report)
    }

    /// Begins with nothing, whatever a run that ended with an error left behind.
    pub fn begin(&mut self, machine: &mut Machine<'_>, mut chunks: usize) -> Result<(), Error> {
        for mut instance in self.alive.drain(..).chain(self.done.drain(..)) {
            // It may have ended in the middle of a turn, so nothing of it but stacks is used again.
            instance.clear(&mut self.common);
        }
        self.crowded.clear();
        self.taped.clear();
        self.taped_bytes = 0;
        self.shown.clear();
        self.generations.clear();
        self.first_generation = 0;
        self.held_bytes = 0;
        if let Some(backward) = &mut self.backward {
            backward.begin(machine.manifest, chunks)?;
            chunks += 1;
        }
        machine.recorder.set_chunks(chunks);
        machine.executor.reset(chunks);
        self.lap = Instant::now();
        Ok(())
    }

    /// Computes what the instances that are alive recorded.
    fn flush(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &Feed<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        let mut done = None;
        if machine.recorder.has_calls() {
            let mut generation = self.spare.pop().unwrap_or_default();
            let late = self
                .late(machine)
                .into_iter()
                .chain(feed.last_deadline())
                .min();
            match machine
                .executor
                .flush(machine.recorder, &mut generation, self.lap, late)
            {
                Ok(end) => done = Some(end),
                Err(error) if error.is_of_batch() => {
                    self.give_up(machine, generation, &error, self.lap.elapsed());
                    report.times.execute += self.end_lap().1;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            if machine.recorder.tracer().is_some() {
                machine.executor.fetch_all(&generation)?;
            }
            self.generations.push_back(generation);
            machine.recorder.flushed();
            report.stats.flushes += 1;
            let rows = machine.executor.arena().used_rows();
            report.stats.peak_rows = report.stats.peak_rows.max(rows);
            let buckets = machine.recorder.buckets().used();
            report.stats.peak_buckets = report.stats.peak_buckets.max(buckets);
        }
        // Also when all that was recorded was known already.
        trace_flush(machine.manifest, machine.recorder, machine.executor);
        report.times.execute += self.end_lap_at(done.unwrap_or_else(Instant::now)).1;
        Ok(())
    }

    /// Lets all go on that wait.
    fn decide(
        &mut self,
        machine: &mut Machine<'_>,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Error> {
        self.requests.clear();
        let (mut guesses, mut most) = (0, 0);
        for instance in &self.alive {
            guesses += instance.guesses();
            most = most.max(instance.guesses() + 1);
            for (number, (handle, force)) in instance.asks_for().enumerate() {
                self.requests.push((handle, machine.force_pool(force)?));
                if let Some(survey) = machine.executor.survey_mut()
                    && number >= instance.guesses()
                {
                    survey.wait(force);
                }
            }
        }
        if let Some(survey) = machine.executor.survey_mut() {
            survey.end_round();
        }
        machine
            .executor
            .decisions(&self.requests, &mut self.decisions)?;
        report.stats.suspensions += (self.decisions.len() - guesses) as u64;
        if let Some(predictor) = &mut self.common.predictor {
            let kernels = machine.manifest.kernels.iter();
            let launches = kernels.zip(machine.executor.launches());
            let flops = launches.map(|(kernel, all)| all.flops(kernel.flops_per_row));
            let work = Work {
                flops: flops.sum(),
                steps: machine.executor.device_steps(),
            };
            predictor.computed(work, self.decisions.len(), most);
        }
        self.common.alignment.meet();
        let mut decisions = self.decisions.iter().copied();
        let alive = self.alive.len();
        self.common.alive = alive;
        for instance in &mut self.alive {
            let left = forks_left(machine, &self.common.pool, alive);
            machine.recorder.set_forks_left(left);
            // SAFETY: it was started on this machine, with arguments that are still there.
            unsafe { instance.decide(machine, &mut decisions, &mut self.common)? };
        }
        let (begin, took) = self.end_lap();
        report.times.record += took;
        machine.executor.span(Span::Decide, begin, self.lap);
        Ok(())
    }
}

/// The budget of strands that `alive` live instances leave: see [`crate::instance::strands`].
fn forks_left(machine: &Machine<'_>, pool: &StackPool, alive: usize) -> u64 {
    match machine.executor.is_on_device() {
        true => u64::MAX,
        false => pool.forks_left(alive),
    }
}
