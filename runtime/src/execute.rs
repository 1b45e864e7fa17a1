//! A flush: every recorded call is computed.
//!
//! 1. The scheduler puts calls together into launches, and these in order: [`Groups`].
//! 2. In that order each result of each launch gets consecutive rows in its row pool, so that all
//!    writes of a launch are dense ([`place`]).
//! 3. One pass over the log turns handles into rows. The index lists of a launch lie one after
//!    another, one list an operand ([`indices`]); the rows that list operands name lie behind those
//!    ([`lists`]). What is recorded of a known structure becomes lists without a log ([`replayed`]).
//! 4. The lengths of ragged launches become tables, which launches of equal lengths share ([`tables`]);
//!    launches over calls become tasks of threads ([`work_items`]).
//! 5. Each launch runs its kernel, split over the threads ([`launch`]).
//!
//! What a flush computed is a [`Generation`]. Its rows stay until it is released, so that later
//! flushes, and decisions, can read them ([`bucket_rows`]).

mod bucket_rows;
mod cached;
mod copies;
mod counts;
mod division;
mod indices;
mod inputs;
mod kernel;
mod launch;
mod launched;
mod lent;
mod lists;
mod on_device;
mod operands;
mod padded;
mod pieces;
mod place;
mod ragged;
mod reads;
mod replayed;
mod setup;
mod tables;
mod values;
mod work_items;
pub mod workers;
mod works;

use std::sync::Arc;
use std::time::Instant;

use crate::device::runner::Runner;
use crate::error::Error;
use crate::execute::workers::Workers;
use crate::late::Interrupt;
use crate::memory::AlignedBuffer;
use crate::memory::arena::{Arena, PoolBase, Region};
use crate::program::call_form::CallForm;
use crate::program::numbering::Numbering;
use crate::program::pack::Constants;
use crate::program::parameters::Parameters;
use crate::recorder::Recorder;
use crate::report::explain::Survey;
use crate::report::profile::{Gauge, Profile, Span};
use crate::report::stats::Launches;
use crate::schedule::groups::Groups;
use crate::schedule::{Ready, Recorded, Scheduler};
use bucket_rows::BucketRows;
use cached::CachedRows;
use division::Division;
use indices::all_inside;
use kernel::Kernel;
use launch::{Flush, Placed};
pub use launched::{Given, Inspector, Launched, ListOf};
use lists::Lists;
pub use on_device::Wanted;
use place::BucketPlan;
use ragged::RaggedLaunches;
use replayed::Target;
use tables::Tables;
pub use work_items::Task;

/// What one flush computed. Nobody holds a handle into it when it is released.
#[derive(Debug, Default)]
pub struct Generation {
    /// All its buckets, to be recycled after the release.
    pub buckets: Vec<u32>,
    regions: Vec<Region>,
}

/// How an executor works, whatever it computes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Threads that compute, the calling one included.
    pub threads: usize,
    /// Without, kernels read copies of their rows.
    pub gather_fusion: bool,
    /// Without, calls are not divided between threads.
    pub remapping: bool,
    /// Without, every call of a launch has as many rows as the longest of them.
    pub ragged_storage: bool,
    /// Without, what lengths make is made for each launch.
    pub shared_prelude: bool,
    /// Minimum size in bytes for a block of inputs to be lent instead of copied.
    pub lends_from: u64,
    /// Whether flushes may have an end.
    pub is_timed: bool,
}

/// Memory, weights and threads of a program that runs on the CPU.
pub struct Executor {
    settings: Settings,
    kernels: Vec<Kernel>,
    /// Shared by those that run beside each other.
    parameters: Arc<Parameters>,
    /// Those into which the kernels point, if they are not the parameters'.
    _constants: Option<Constants>,
    arena: Arena,
    workers: Workers,
    interrupt: Interrupt,
    scheduler: Box<dyn Scheduler>,
    source_rows: Vec<u32>,
    cached: CachedRows,
    numbering: Numbering,
    /// For each chunk of inputs, its rows.
    chunks: Vec<Vec<Region>>,
    /// Of the flush at hand: rows of each row pool, then the next one.
    next_rows: Vec<u64>,
    forms: Vec<CallForm>,
    has_ragged: bool,
    /// Whether there are kernels whose results are padded in storage.
    has_padding: bool,
    ragged_storage: bool,
    rows: BucketRows,
    /// By bucket.
    plans: Vec<BucketPlan>,
    /// The buckets of the flush, and those of its ghosts.
    ready: Vec<Ready>,
    ghosts: Vec<Ready>,
    groups: Groups,
    placed: Vec<Placed>,
    /// First rows of the results of the launches.
    result_rows: Vec<u32>,
    index: AlignedBuffer,
    lists: Lists,
    /// Of the instance whose index lists are written from a recording.
    of_references: Vec<u32>,
    targets: Vec<Target>,
    division: Division,
    /// Of each kernel, whether instances may share calls.
    may_share: Vec<bool>,
    ragged: RaggedLaunches,
    tables: Tables,
    /// 0, 1, 2, …
    identity: AlignedBuffer,
    identity_length: usize,
    /// Copies of operands, without gather fusion.
    copies: AlignedBuffer,
    gather_fusion: bool,
    lends_from: u64,
    /// Spent before kernels are launched.
    schedule_nanoseconds: u64,
    /// Of these, on rows and indices, if some kernel is ragged.
    prelude_nanoseconds: u64,
    bases: Vec<PoolBase>,
    buffers: launch::Buffers,
    /// For each kernel.
    launches: Vec<Launches>,
    survey: Option<Box<Survey>>,
    profile: Option<Arc<Profile>>,
    inspector: Option<Box<dyn Inspector>>,
    /// Where the kernels run, if not here.
    device: Option<Box<Runner>>,
    /// The row pools of rows that decide, if kernels run on a device.
    deciding: Vec<usize>,
}

impl Executor {
    /// Drops all inputs and all results but those that are kept, and makes room for `chunks` chunks of inputs.
    pub fn reset(&mut self, chunks: usize) {
        self.arena.reset();
        self.rows.reset();
        self.tables.clear();
        self.chunks.clear();
        self.chunks.resize_with(chunks, Vec::new);
        self.make_room(self.numbering.first_call(chunks));
        for (source, row) in self.source_rows.iter().enumerate() {
            self.rows.set_first(source, 0, *row);
        }
        self.show_cached();
    }

    /// From now on kernels are computed by `threads` threads.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), Error> {
        if self.workers.threads() != threads.max(1) {
            self.workers = Workers::new(threads)?;
            self.workers.set_profile(self.profile.clone());
            self.tables.set_threads(threads);
        }
        Ok(())
    }

    /// From now on flushes end when this is set; those on a device before they begin.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Gives the rows of a generation back.
    pub fn release(&mut self, generation: &mut Generation) {
        for region in generation.regions.drain(..) {
            self.arena.give(region);
        }
        if let Some(survey) = &mut self.survey {
            survey.forget(&generation.buckets);
        }
        for bucket in &generation.buckets {
            self.rows.forget(*bucket as usize);
        }
    }

    /// Computes everything that was recorded since the last flush; fills an empty generation. When there
    /// is an error, that is to be released, and what was recorded is not computed.
    ///
    /// It is taken to begin at `begin`, and gives when the last kernel was over, so that the caller need not look at
    /// the clock again.
    pub fn flush(
        &mut self,
        recorder: &mut Recorder,
        generation: &mut Generation,
        begin: Instant,
        end: Option<Instant>,
    ) -> Result<Instant, Error> {
        let result = self.compute(recorder, generation, begin, end);
        if let Some(profile) = &self.profile {
            let done = result
                .as_ref()
                .map_or_else(|_| Instant::now(), |done| *done);
            profile.span(Span::Flush, begin, done);
            profile.gauge(Gauge::RowBytes(self.arena.used_bytes()));
        }
        result
    }

    fn compute(
        &mut self,
        recorder: &mut Recorder,
        generation: &mut Generation,
        mut begin: Instant,
        end: Option<Instant>,
    ) -> Result<Instant, Error> {
        generation
            .buckets
            .extend_from_slice(recorder.buckets().pending());
        self.interrupt.check()?;
        self.collect(recorder);
        if recorder.replayed().len() > 0 && self.reads_calls(recorder) {
            recorder.write_out();
        }
        let recorder = &*recorder;
        let recorded = recorded(recorder, &self.forms, &self.ghosts);
        if let Some(survey) = &mut self.survey {
            // Looking costs nothing that counts.
            let before = begin.elapsed();
            survey.flush(recorded, &self.ready);
            begin = Instant::now() - before;
        }
        self.scheduler
            .schedule(recorded, &mut self.ready, &mut self.groups);
        let ordered = self.has_ragged.then(|| begin.elapsed());
        let mut index_length = self.place_groups(recorder.log(), &mut generation.regions)?;
        self.place_cached(recorder, &mut index_length);
        self.place_lists(recorder, &mut index_length)?;
        self.arena.commit()?;
        self.arena.bases(&mut self.bases);
        self.index.ensure(
            index_length * size_of::<u32>(),
            "the index lists of a batch",
        )?;
        self.make_lists()?;
        self.write_indices(recorder)?;
        all_inside(!self.write_cached_indices(recorder))?;
        if self.has_ragged {
            self.find_tables()?;
        }
        self.copy_mixed();
        self.spent(Span::Schedule, begin);
        let scheduled = Instant::now();
        let elapsed = scheduled - begin;
        self.schedule_nanoseconds += elapsed.as_nanos() as u64;
        if let Some(ordered) = ordered {
            self.prelude_nanoseconds += elapsed.saturating_sub(ordered).as_nanos() as u64;
        }
        if let Some(survey) = &mut self.survey {
            (self.cached.placed.iter()).for_each(|placed| survey.keeps(placed.kernel));
            survey.launched(self.cached.placed.len() + self.placed.len());
        }
        match self.device {
            Some(_) => {
                self.launch_on_device(index_length)?;
                self.fetch_deciding(&generation.regions)?;
                Ok(Instant::now())
            }
            None => {
                let done = self.launch(scheduled, end)?;
                self.scheduler.took(done - begin);
                Ok(done)
            }
        }
    }

    /// Room for `buckets` buckets, none of which has rows so far but the sources and inputs.
    fn make_room(&mut self, buckets: usize) {
        self.rows.make_room(buckets);
        if self.plans.len() < buckets {
            self.plans.resize(buckets, BucketPlan::default());
        }
    }

    /// The launches of the flush, in order.
    fn all_placed(&self) -> impl Iterator<Item = &Placed> {
        self.cached.placed.iter().chain(&self.placed)
    }

    fn launch(&mut self, begin: Instant, end: Option<Instant>) -> Result<Instant, Error> {
        let flush = Flush {
            kernels: &self.kernels,
            cached: &self.cached.placed,
            placed: &self.placed,
            result_rows: &self.result_rows,
            index: self.index.words_mut(),
            lists: &self.lists,
            ragged: &self.ragged,
            tables: &self.tables,
            identity: self.identity.words_mut(),
            bases: &self.bases,
            lent: self.arena.lent(),
            workers: &self.workers,
            copies: (!self.gather_fusion).then(|| self.copies.bytes_mut().as_mut_ptr()),
            end,
            interrupt: &self.interrupt,
            profile: self.profile.as_deref(),
            inspector: self
                .inspector
                .as_deref_mut()
                .map(|inspector| inspector as _),
        };
        flush.run(begin, &mut self.buffers, &mut self.launches)
    }
}

/// What a scheduler looks at.
fn recorded<'a>(
    recorder: &'a Recorder,
    forms: &'a [CallForm],
    ghosts: &'a [Ready],
) -> Recorded<'a> {
    Recorded {
        log: recorder.log(),
        forms,
        ghosts,
        segments: recorder.segments(),
        has_gaps: recorder.has_gaps(),
        has_cached: recorder.has_cached(),
    }
}
