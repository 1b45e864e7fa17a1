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
mod replayed;
mod tables;
mod work_items;
pub mod workers;
mod works;

use std::sync::Arc;
use std::time::Instant;

use cohort_abi::Handle;
use cohort_abi::manifest::{Operand, Unit};

use crate::call_cache::sharing::SharedCalls;
use crate::device::Device;
use crate::device::runner::Runner;
use crate::error::Error;
use crate::execute::workers::Workers;
use crate::late::Interrupt;
use crate::memory::AlignedBuffer;
use crate::memory::arena::{Arena, PoolBase, Region};
use crate::memory::inputs::InputRows;
use crate::program::call_form::CallForm;
use crate::program::code::Program;
use crate::program::numbering::Numbering;
use crate::program::pack::{Changed, Constants, fill_sources, update_sources};
use crate::program::parameters::Parameters;
use crate::recorder::Recorder;
use crate::report::explain::Survey;
use crate::report::profile::{Gauge, Profile, Span};
use crate::report::stats::Launches;
use crate::schedule::groups::Groups;
use crate::schedule::{Ready, Recorded, Scheduler};
use bucket_rows::{BucketRows, NO_ROW};
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
use tables::{TableRule, Tables};
use work_items::Rule;
pub use work_items::Task;

/// What one flush computed. Nobody holds a handle into it when it is released.
#[derive(Debug, Default)]
pub struct Generation {
    /// All its buckets, to be recycled after the release.
    pub buckets: Vec<u32>,
    regions: Vec<Region>,
}

/// Packed constants of up to this many bytes are copied for each further executor; several such copies fit the third-level cache
/// of most machines.
const MOST_COPIED: u64 = 8 << 20;

/// What an executor begins with: parameters, constants of its own, and an arena with the rows of sources.
type Own = (Arc<Parameters>, Option<Constants>, Arena, Vec<u32>);

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
    /// `params` holds the bytes of each parameter; they are packed here and not needed later.
    /// Of each kernel up to `cached` calls are kept for later batches. With a device, and perhaps a limit of the bytes of
    /// its memory, kernels run there.
    pub fn new(
        program: &Program,
        params: &[&[u8]],
        settings: Settings,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
        device: Option<(Box<dyn Device>, Option<u64>)>,
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let parameters = Arc::new(Parameters::new(program, params)?);
        let weights = parameters.weights(params);
        let mut arena = Arena::new(manifest);
        let source_rows = fill_sources(manifest, &weights, &mut arena)?;
        let is_on_device = device.is_some();
        let own = (parameters.clone(), None, arena, source_rows);
        let mut executor = Executor::of(program, own, settings, scheduler, cached, is_on_device)?;
        if let Some((device, limit)) = device {
            let runner = Runner::new(device, manifest, &weights, limit)?;
            executor.move_to(runner, manifest);
        }
        Ok(executor)
    }

    /// Another one, of one thread, to be dropped before parameters are replaced. Rows of parameters it has of
    /// its own, and packed constants where that is not too much: two cores that read the same ones from the
    /// third cache take them from each other. Where kernels run on a device, its kernels do so beside them.
    pub fn beside(
        &mut self,
        program: &Program,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let runner = match &mut self.device {
            Some(runner) => Some(runner.beside(manifest)?.ok_or_else(|| {
                Error::Unsupported("batches beside each other on this device".to_owned())
            })?),
            None => None,
        };
        let arena = self.arena.with_sources()?;
        let constants = self.parameters.constants();
        let constants = match constants.bytes() {
            0..=MOST_COPIED if runner.is_none() => Some(constants.copy()?),
            _ => None,
        };
        let source_rows = self.source_rows.clone();
        let own = (self.parameters.clone(), constants, arena, source_rows);
        let settings = Settings {
            threads: 1,
            ..self.settings
        };
        let is_on_device = runner.is_some();
        let mut executor = Executor::of(program, own, settings, scheduler, cached, is_on_device)?;
        if let Some(runner) = runner {
            executor.move_to(runner, manifest);
        }
        Ok(executor)
    }

    fn of(
        program: &Program,
        (parameters, constants, mut arena, source_rows): Own,
        settings: Settings,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
        is_on_device: bool,
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let read = constants.as_ref().unwrap_or(parameters.constants());
        let kernels = Kernel::all(manifest, &program.kernels, read);
        let forms: Vec<CallForm> = manifest.kernels.iter().map(CallForm::of).collect();
        let workers = Workers::new(settings.threads)?;
        let cached = CachedRows::new(manifest, cached, &mut arena)?;
        let most_results = manifest.kernels.iter().map(|kernel| kernel.results.len());
        let launches = manifest
            .kernels
            .iter()
            .map(|kernel| Launches::new(kernel.operands.len()))
            .collect();
        Ok(Executor {
            settings,
            has_ragged: forms.iter().any(|form| form.is_ragged),
            has_padding: forms.iter().any(|form| form.padding.is_some()),
            forms,
            kernels,
            parameters,
            _constants: constants,
            arena,
            workers,
            interrupt: Interrupt::default(),
            scheduler,
            source_rows,
            cached,
            numbering: Numbering::of(manifest),
            chunks: Vec::new(),
            next_rows: Vec::new(),
            rows: BucketRows::new(most_results.max().unwrap_or(0)),
            plans: Vec::new(),
            ready: Vec::new(),
            ghosts: Vec::new(),
            groups: Groups::default(),
            placed: Vec::new(),
            result_rows: Vec::new(),
            index: AlignedBuffer::default(),
            lists: Lists::default(),
            of_references: Vec::new(),
            targets: Vec::new(),
            division: Division::default(),
            may_share: (0..manifest.kernels.len())
                .map(|kernel| SharedCalls::of(manifest, kernel).is_some())
                .collect(),
            ragged: RaggedLaunches::default(),
            tables: Tables::new(TableRule {
                items: Rule {
                    threads: settings.threads,
                    remapping: settings.remapping,
                    most_work: match settings.is_timed {
                        true => launch::MOST_WORK,
                        false => u64::MAX,
                    },
                },
                is_padded: !settings.ragged_storage && !is_on_device,
                keeps_padding: !is_on_device,
                is_shared: settings.shared_prelude,
                has_pieces: settings.gather_fusion && !is_on_device,
            }),
            ragged_storage: settings.ragged_storage,
            identity: AlignedBuffer::default(),
            identity_length: 0,
            copies: AlignedBuffer::default(),
            gather_fusion: settings.gather_fusion,
            lends_from: settings.lends_from,
            schedule_nanoseconds: 0,
            prelude_nanoseconds: 0,
            bases: Vec::new(),
            buffers: launch::Buffers::default(),
            launches,
            survey: None,
            profile: None,
            inspector: None,
            device: None,
            deciding: Vec::new(),
        })
    }

    /// Replaces parameters, between two runs; `changed` says of each whether it is another one. What is
    /// kept of earlier runs is not of these.
    pub fn set_params(
        &mut self,
        program: &Program,
        params: &[&[u8]],
        changed: &[Changed<'_>],
    ) -> Result<(), Error> {
        if self.device.is_some() {
            return Err(Error::Unsupported(
                "parameters on a device are not replaced: load the program anew".to_owned(),
            ));
        }
        let Some(parameters) = Arc::get_mut(&mut self.parameters) else {
            return Err(Error::Internal("parameters that others read".to_owned()));
        };
        let changed = parameters.update(program, params, changed)?;
        let weights = self.parameters.weights(params);
        let sources = &self.source_rows;
        update_sources(
            program.manifest(),
            &weights,
            &changed,
            sources,
            &mut self.arena,
        )
    }

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

    /// Takes the rows of a chunk of inputs; drops those that it had.
    pub fn put_inputs(&mut self, chunk: usize, inputs: &InputRows) -> Result<(), Error> {
        // SAFETY: nothing is lent.
        unsafe { self.take_inputs(chunk, inputs, u64::MAX) }
    }

    /// The same, but kernels read large blocks of rows where they are ([`Settings::lends_from`]), if they can.
    ///
    /// # Safety
    ///
    /// The inputs stay as they are until they are [dropped](Executor::drop_inputs), or all are ([`Executor::reset`]).
    pub unsafe fn lend_inputs(&mut self, chunk: usize, inputs: &InputRows) -> Result<(), Error> {
        // A device has its own copy, and who looks at launches wants all rows of a pool in one place.
        let may_lend = self.device.is_none() && self.inspector.is_none();
        let lends_from = if may_lend { self.lends_from } else { u64::MAX };
        // SAFETY: the caller's promise.
        unsafe { self.take_inputs(chunk, inputs, lends_from) }
    }

    /// # Safety
    ///
    /// As of [`Executor::lend_inputs`], if a block has `lends_from` bytes.
    unsafe fn take_inputs(
        &mut self,
        chunk: usize,
        inputs: &InputRows,
        lends_from: u64,
    ) -> Result<(), Error> {
        self.drop_inputs(chunk);
        let copy = |from: &[u8], to: &mut [u8]| self.workers.copy(from, to);
        // SAFETY: the caller's promise.
        unsafe {
            (self.arena).lend_inputs(inputs, &mut self.chunks[chunk], lends_from, copy)?;
        }
        if let Some(runner) = &mut self.device {
            self.chunks[chunk]
                .iter()
                .for_each(|region| runner.put(*region));
        }
        for region in &self.chunks[chunk] {
            let bucket = self.numbering.input(chunk, region.pool);
            self.rows.set_first(bucket, 0, region.first);
        }
        Ok(())
    }

    /// No instance of the chunk is left.
    pub fn drop_inputs(&mut self, chunk: usize) {
        for region in self.chunks[chunk].drain(..) {
            self.arena.give(region);
            let bucket = self.numbering.input(chunk, region.pool);
            self.rows.set_first(bucket, 0, NO_ROW);
        }
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

    /// The row that a handle stands for, after the flush that computed it.
    pub fn row(&self, handle: Handle, pool: usize) -> Option<&[u8]> {
        self.rows(handle, pool, 1)
    }

    /// `rows` consecutive rows, the first of which the handle names, after the flush that computed them.
    pub fn rows(&self, handle: Handle, pool: usize, rows: u64) -> Option<&[u8]> {
        if rows == 0 {
            // The row behind the last may be none.
            return Some(&[]);
        }
        let first = self.rows.find(handle.0, self.arena.rows(pool))?;
        self.arena.row_range(pool, first, rows)
    }

    /// The bits of the one element of each of the rows, given by handle and row pool, in the same
    /// order; a `bool` is 0 or 1.
    ///
    /// Where rows are in the memory of a device, those that can decide were brought by the flush.
    pub fn decisions(
        &self,
        rows: &[(Handle, usize)],
        decisions: &mut Vec<u32>,
    ) -> Result<(), Error> {
        decisions.clear();
        for (handle, pool) in rows {
            decisions.push(self.decision(*handle, *pool)?);
        }
        Ok(())
    }

    /// One of [`Executor::decisions`], by a row that was computed before.
    pub fn decision(&self, handle: Handle, pool: usize) -> Result<u32, Error> {
        match self.row(handle, pool) {
            Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
            Some(&[truth]) => Ok(u32::from(truth != 0)),
            Some(_) | None => Err(Error::Internal(
                "a decision by a handle of no row".to_owned(),
            )),
        }
    }

    /// Room for `buckets` buckets, none of which has rows so far but the sources and inputs.
    fn make_room(&mut self, buckets: usize) {
        self.rows.make_room(buckets);
        if self.plans.len() < buckets {
            self.plans.resize(buckets, BucketPlan::default());
        }
    }

    /// Finds what the lengths of ragged launches make, or makes it.
    fn find_tables(&mut self) -> Result<(), Error> {
        for placed in self.placed.iter().filter(|placed| placed.rows > 0) {
            let Some(launch) = placed.ragged else {
                continue;
            };
            let kernel = &self.kernels[placed.kernel as usize];
            let row_bytes = |pool| self.arena.row_bytes(pool);
            let lengths = self.ragged.lengths(launch);
            let Some(found) = (self.tables).find(kernel, lengths, placed.rows, row_bytes) else {
                return all_inside(true);
            };
            self.ragged.launches[launch].tables = found;
            self.ragged.place_empty(launch);
            if kernel.form.unit == Unit::Rows {
                let runs = self.ragged.launches[launch].run_start;
                for (position, operand) in kernel.operands.iter().enumerate() {
                    let firsts = self.ragged.firsts(launch, position);
                    self.ragged.runs[runs + position] = match operand {
                        Operand::Row { .. } => self.tables.repeat(kernel, position, found, firsts),
                        Operand::Ragged { .. } => {
                            self.tables.expand(kernel, position, found, firsts)
                        }
                        _ => continue,
                    };
                }
            }
        }
        Ok(())
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
