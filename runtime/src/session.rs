//! A program with its weights, running instances.
//!
//! A run is a loop: read a batch of instances, *record* them all, *flush* (compute every recorded
//! call), write the results. How instances fall into batches never shows in the results, so a
//! batch also ends early when it has used the memory that it may.

mod batches;
mod beside;
mod config;
mod counts;
mod crew;
mod deciding;
mod engines;
mod lane;
mod pace;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_abi::gpu::Precision;

use crate::backward::{Backward, Question, Sums};
use crate::call_cache::most_cached;
use crate::device::{self, Device};
use crate::engine::Engine;
use crate::error::Error;
use crate::execute::{Executor, Inspector, Settings};
use crate::io::feed::{Chunks, Feed, Supply};
use crate::io::input::{InputStream, Inputs, Patience, Reader};
use crate::io::sink::{JsonLines, Sink};
use crate::late::Interrupt;
use crate::limits::Limits;
use crate::program::code::Program;
use crate::program::pack::Changed;
use crate::program::weights::Weights;
use crate::recorder::Grouping;
use crate::recorder::enough::Enough;
use crate::report::Progress;
use crate::report::explain::{Explanation, Survey};
use crate::report::profile::Profile;
use crate::report::stats::{Repetition, Stats, Times};
use crate::report::trace::{Trace, Tracer};
use crate::schedule::{Policy, RecordedOrder, Scheduler};
use crate::threads::fiber::Fiber;

use beside::{Decoded, Supplying, Told};
pub use config::{Batch, Config};
use crew::Crew;
use lane::Lane;

/// A program that is loaded with its weights; it runs any number of inputs, one after another.
pub struct Session {
    program: Program,
    config: Config,
    /// The scheduler that was asked for.
    asked: Policy,
    /// Runs one batch after another, with all threads.
    lane: Lane,
    /// Others, which run batches beside it; made when there are batches for them.
    beside: Vec<Lane>,
    /// Their threads.
    crew: Crew,
    load_seconds: f64,
    /// When a batch ends early.
    enough: Enough,
    /// How many calls of each kernel are kept.
    most_cached: Vec<u32>,
    /// Whether the last chunk that all threads ran was too short to be worth handing to another thread, and whether it
    /// was long enough to be worth dividing.
    is_quick: bool,
    is_long: bool,
    /// Whether batches had no room beside each other on a device.
    is_short_of_memory: bool,
}

/// Of a device's memory, what may be kept at most: the rest is for batches.
const KEPT_SHARE: u64 = 16;
/// Instances decoded at once when they are all kept: enough to share what a group costs.
const GROUP: usize = 1024;

impl Session {
    /// Checks and packs the weights.
    pub fn new(program: Program, weights: &Weights, config: Config) -> Result<Session, Error> {
        let device = device::open(config.device, &program, config.device_options)?;
        Session::on(device, program, weights, config)
    }

    /// On this device, whatever the configuration says.
    pub fn on(
        mut device: Option<Box<dyn Device>>,
        program: Program,
        weights: &Weights,
        mut config: Config,
    ) -> Result<Session, Error> {
        let begin = Instant::now();
        let precision = program.manifest().precision();
        if device.is_none() && precision != Precision::F32 {
            return Err(Error::Usage(format!(
                "the program was compiled with `--precision {precision}`, which is of GPUs, and the \
                 processor computes in f32: run it with `--device cuda` or `--device gpu-sim`"
            )));
        }
        if matches!(config.batch, Batch::Count(0) | Batch::InFlight(0)) {
            return Err(Error::Usage("a batch of 0 instances".to_owned()));
        }
        let params = weights.params(program.manifest(), config.allow_unused_weights)?;
        let params: Vec<&[u8]> = params.iter().map(|bytes| &**bytes).collect();
        let unbatched = config.batch == Batch::Unbatched;
        let asked = config.scheduler;
        if asked == Policy::Auto && device.is_some() {
            // Launches are queued there, so that no flush has a time of its own to choose by.
            config.scheduler = Policy::Depth;
        }
        let (scheduler, grouping) = how(&config);
        let keep_memory = match grouping {
            Grouping::ByDepth { share: true } => keep_memory(&config, device.as_deref_mut())?,
            _ => 0,
        };
        let waits = program.manifest().waits() || config.gradients;
        // Each lane keeps calls of its own.
        let lanes = match config.gradients {
            true => 1,
            false => config.most_lanes(device.is_some()),
        };
        let most_cached = most_cached(program.manifest(), keep_memory / lanes);
        let executor = Executor::new(
            &program,
            &params,
            Settings {
                threads: config.threads,
                gather_fusion: config.gather_fusion,
                remapping: config.remapping,
                ragged_storage: config.ragged_storage,
                shared_prelude: config.shared_prelude,
                lends_from: config.lends_from,
                is_timed: config.limits.max_time.is_some(),
            },
            scheduler,
            &most_cached,
            device.map(|device| (device, config.device_memory)),
        )?;
        let fiber = Fiber::new(config.limits.stack_bytes())?;
        let mut recorder = lane::recorder(&program, &config, grouping, &most_cached, &fiber);
        let mut engine = waits.then(|| lane::engine(&program, &config));
        if let (true, Some(engine)) = (config.gradients, &mut engine) {
            let policy = (!unbatched).then_some(config.scheduler);
            let stack = config.limits.stack_bytes();
            engine.differentiate(Backward::new(&program, stack, policy)?);
            recorder.keep_tapes();
        }
        let reuse = match waits {
            true => None,
            false => lane::reuse(&program, &config, &fiber, executor.is_on_device()),
        };
        // On a device rows are in no cache of the processor, and a launch takes long to begin.
        let enough = match config.may_end_early && !config.gradients && !executor.is_on_device() {
            true => Enough::with(executor.constants()),
            false => Enough::never(),
        };
        Ok(Session {
            program,
            config,
            asked,
            lane: Lane::new(recorder, fiber, executor, engine, reuse),
            beside: Vec::new(),
            crew: Crew::default(),
            load_seconds: begin.elapsed().as_secs_f64(),
            enough,
            most_cached,
            is_quick: false,
            is_long: false,
            is_short_of_memory: false,
        })
    }

    /// The program that it runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What one instance may use.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Replaces the weights, all of them: from now on runs give what they would after a load with these, to
    /// the bit. Where there is an error, the weights are those from before.
    pub fn set_weights(&mut self, weights: &Weights) -> Result<(), Error> {
        let manifest = self.program.manifest();
        let params = weights.params(manifest, self.config.allow_unused_weights)?;
        let params: Vec<&[u8]> = params.iter().map(|bytes| &**bytes).collect();
        let changed = vec![Changed::Whole; params.len()];
        self.replace_params(&params, &changed)
    }

    /// As [`Session::set_weights`], where the caller knows what is different: only that is read. `params`
    /// has the bytes of each parameter of the manifest, row-major, and `changed` what of them is not as it
    /// was.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where a parameter has another size or no such row; the weights are then those from
    /// before.
    pub fn update_weights(
        &mut self,
        params: &[&[u8]],
        changed: &[Changed<'_>],
    ) -> Result<(), Error> {
        let described = &self.program.manifest().params;
        if params.len() != described.len() || changed.len() != described.len() {
            return Err(Error::Usage(format!(
                "{} parameters were given, and {} changes: the program has {}",
                params.len(),
                changed.len(),
                described.len()
            )));
        }
        for ((param, bytes), changed) in described.iter().zip(params).zip(changed) {
            let count = param.shape.iter().product::<u64>();
            let expected = count.saturating_mul(param.elem.bytes() as u64);
            if bytes.len() as u64 != expected {
                let found = bytes.len();
                return Err(Error::Usage(format!(
                    "`{}`: expected {expected} bytes, found {found}",
                    param.name
                )));
            }
            let rows = param.shape.first().copied().unwrap_or(1);
            if let Changed::Rows(changed) = changed
                && let Some(row) = changed.iter().find(|row| u64::from(**row) >= rows)
            {
                return Err(Error::Usage(format!(
                    "`{}`: there is no row {row}, there are {rows}",
                    param.name
                )));
            }
        }
        self.replace_params(params, changed)
    }

    fn replace_params(&mut self, params: &[&[u8]], changed: &[Changed<'_>]) -> Result<(), Error> {
        // They have rows of the old ones.
        self.beside.clear();
        (self.lane.executor).set_params(&self.program, params, changed)?;
        self.lane.recorder.forget_cached();
        Ok(())
    }

    fn forget_cached(&mut self) {
        for lane in self.lanes_mut() {
            lane.recorder.forget_cached();
            if let Some(reuse) = &mut lane.reuse {
                reuse.forget();
            }
        }
    }

    /// From now on instances have the random numbers of this draw.
    pub fn set_draw(&mut self, draw: u64) {
        self.config.draw = draw;
        for lane in self.lanes_mut() {
            lane.recorder.set_draw(draw);
        }
    }

    /// From now on runs end with [`Error::Interrupted`] when this is set, and what runs then is as good as ever.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        for lane in self.lanes_mut() {
            lane.recorder.set_interrupt(interrupt.clone());
            lane.executor.set_interrupt(interrupt.clone());
        }
    }

    /// From now on this is asked of runs whose gradients are computed.
    pub fn ask(&mut self, question: Question) -> Result<(), Error> {
        match self.lane.engine.as_mut().and_then(Engine::backward_mut) {
            Some(backward) => {
                backward.ask(question);
                Ok(())
            }
            None => Err(Error::Usage("no gradients are computed".to_owned())),
        }
    }

    /// The gradients of the instances since [`Session::clear_gradients`], if they are computed.
    pub fn gradients(&self) -> Option<&Sums> {
        let backward = self.lane.engine.as_ref()?.backward()?;
        Some(backward.sums())
    }

    /// The gradients of all instances to come begin at zero.
    pub fn clear_gradients(&mut self) {
        if let Some(backward) = self.lane.engine.as_mut().and_then(Engine::backward_mut) {
            backward.clear();
        }
    }

    /// From now on runs have such batches; the unbatched reading is chosen when the session is made.
    pub fn set_batch(&mut self, batch: Batch) -> Result<(), Error> {
        if matches!(batch, Batch::Count(0) | Batch::InFlight(0)) {
            return Err(Error::Usage("a batch of 0 instances".to_owned()));
        }
        if (batch == Batch::Unbatched) != (self.config.batch == Batch::Unbatched) {
            return Err(Error::Usage(
                "a session cannot change between batches and none".to_owned(),
            ));
        }
        self.config.batch = batch;
        Ok(())
    }

    /// From now on kernels are computed by `threads` threads.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), Error> {
        self.lane.executor.set_threads(threads)?;
        self.config.threads = threads;
        Ok(())
    }

    /// Runs every instance of the input; writes one line for each, in the same order.
    pub fn run_stream(
        &mut self,
        input: impl InputStream,
        output: impl Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, Error> {
        let manifest = self.program.manifest.clone();
        let limits = self.config.limits;
        let reader = Reader::new(
            &manifest,
            input,
            limits.max_memory,
            self.config.max_line_bytes,
        );
        let mut lines = Chunks::new(reader, self.chunks().0, self.config.batch_memory);
        let mut sink = JsonLines::new(&manifest, &limits, output);
        self.run(&mut lines, &mut sink, progress)
    }

    /// Runs every instance of the supply; the sink gets what comes of each.
    pub fn run(
        &mut self,
        supply: &mut dyn Supply,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, Error> {
        let begin = Instant::now();
        let mut sink = Some(sink);
        let mut stats = self.new_stats();
        let mut times = Times::default();
        self.clear_counts();
        let mut told = Told {
            sink: &mut sink,
            times: &mut times,
            stats: &mut stats,
            progress,
        };
        let read = if self.lane.engine.is_some() {
            self.run_deciding(supply, &mut told)?
        } else {
            let mut source = Supplying {
                supply,
                read: Duration::ZERO,
            };
            self.run_batches(&mut source, &mut told)?;
            source.read
        };
        self.finish_stats(&mut stats, read, times, begin);
        Ok(stats)
    }

    /// From now on a profile is told what runs do when; it has the last of them, as statistics do.
    pub fn set_profile(&mut self, profile: Arc<Profile>) {
        self.lane.executor.set_profile(profile);
    }

    /// From now on runs are surveyed, for [`Session::explain`]; that takes time.
    pub fn survey(&mut self) {
        let survey = Survey::new(self.program.manifest());
        self.lane.executor.set_survey(survey);
    }

    /// From now on somebody sees each launch when it is over. Launches on a device are not seen.
    pub fn inspect(&mut self, inspector: Box<dyn Inspector>) {
        self.lane.executor.set_inspector(inspector);
    }

    /// Explains the last run, whose statistics these are; `None` if it was not surveyed.
    pub fn explain(&self, stats: &Stats) -> Option<Explanation> {
        let survey = self.lane.executor.survey()?;
        let launches = self.lane.executor.launches();
        Some(Explanation::new(
            self.program.manifest(),
            stats,
            survey,
            launches,
        ))
    }

    /// Runs every instance and gives what the one of this number, from 0, computed.
    pub fn run_traced(&mut self, input: impl InputStream, instance: u64) -> Result<Trace, Error> {
        self.lane
            .recorder
            .set_tracer(Some(Box::new(Tracer::new(instance))));
        let run = self.run_stream(input, std::io::sink(), &mut |_| {});
        let trace = self.lane.recorder.tracer().take();
        run.map(|_| trace.map_or_else(Trace::default, |tracer| tracer.finish()))
    }

    /// Reads and decodes all instances, runs them once to warm up, and once more where threads then share what is long,
    /// and then `repetitions` times, and writes the results of the last time. But for their list, the statistics are those of
    /// the last repetition. Each begins with nothing kept, unless `is_warm`: then it begins with what
    /// those before it kept.
    pub fn benchmark(
        &mut self,
        input: impl InputStream,
        output: impl Write,
        repetitions: usize,
        is_warm: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, Error> {
        let begin = Instant::now();
        if repetitions == 0 {
            return Err(Error::Usage("a benchmark of 0 repetitions".to_owned()));
        }
        let manifest = self.program.manifest.clone();
        let config = self.config;
        let mut reader = Reader::new(
            &manifest,
            input,
            config.limits.max_memory,
            config.max_line_bytes,
        );
        // Groups hold whole batches, so that batches are as in a plain run. Instances that begin
        // as others end are in one group, unless lanes share them.
        let count = self.config.batch_count();
        let engines = self.make_engines();
        let (chunk, slots) = self.chunks();
        let (group, bytes) = match &self.lane.engine {
            Some(_) if engines > 1 => (chunk, config.batch_memory),
            Some(_) => (usize::MAX, u64::MAX),
            None => (
                match config.side_by_side(self.lane.executor.is_on_device()) {
                    1 => count.saturating_mul(GROUP.div_ceil(count)),
                    // So that they can be run side by side.
                    _ => count,
                },
                config.batch_memory,
            ),
        };
        let mut groups = Vec::new();
        loop {
            let mut inputs = Inputs::default();
            let slot = match engines > 1 {
                true => groups.len() % slots,
                false => 0,
            };
            reader.read_batch(&mut inputs, slot, group, bytes, Patience::Full)?;
            if inputs.is_empty() {
                break;
            }
            groups.push(inputs);
        }
        let read = begin.elapsed();

        let mut output = output;
        let mut list = Vec::new();
        let mut stats = self.new_stats();
        let mut times = Times::default();
        // What threads have for themselves has its memory when they have had it once.
        let warm_ups = 1 + usize::from(self.lane.engine.is_none() && self.most_lanes() > 1);
        let all = warm_ups + repetitions;
        for pass in 0..all {
            self.clear_counts();
            self.clear_gradients();
            if !is_warm {
                self.forget_cached();
            }
            stats = self.new_stats();
            times = Times::default();
            let mut lines =
                (pass + 1 == all).then(|| JsonLines::new(&manifest, &config.limits, &mut output));
            let mut sink = lines.as_mut().map(|lines| lines as &mut dyn Sink);
            let mut told = Told {
                sink: &mut sink,
                times: &mut times,
                stats: &mut stats,
                progress: &mut |_| {},
            };
            let mut source = Decoded(groups.iter());
            match (&self.lane.engine, &groups[..]) {
                (None, _) => self.run_batches(&mut source, &mut told)?,
                (Some(_), [group]) => self.run_engine(&mut Feed::decoded(group), &mut told)?,
                (Some(_), []) => {}
                (Some(_), _) => self.run_engines(engines, &mut source, &mut told)?,
            }
            if pass >= warm_ups {
                list.push(Repetition {
                    record_seconds: times.record.as_secs_f64(),
                    execute_seconds: times.execute.as_secs_f64(),
                    backward_seconds: self.gradient_stats().map(|stats| stats.seconds),
                });
            }
            progress(Progress {
                instances: stats.instances,
                failed: stats.failed,
                bytes_read: reader.bytes_read(),
            });
        }
        self.finish_stats(&mut stats, read, times, begin);
        stats.repetitions = list;
        Ok(stats)
    }
}

/// How calls become launches.
fn how(config: &Config) -> (Box<dyn Scheduler>, Grouping) {
    if config.batch == Batch::Unbatched {
        return (Box::new(RecordedOrder), Grouping::Unbatched);
    }
    // A call that is shared would tie instances together.
    let share = config.share_calls && !config.gradients && config.scheduler != Policy::Instances;
    (config.scheduler.scheduler(), Grouping::ByDepth { share })
}

/// Bytes that may be kept.
fn keep_memory(config: &Config, device: Option<&mut (dyn Device + 'static)>) -> Result<u64, Error> {
    let Some(device) = device else {
        return Ok(config.keep_memory);
    };
    let memory = match config.device_memory {
        Some(limit) => limit,
        None => {
            let free = device.free_memory();
            free.map_err(|problem| problem.on(device.name()))?
        }
    };
    Ok(config.keep_memory.min(memory / KEPT_SHARE))
}
