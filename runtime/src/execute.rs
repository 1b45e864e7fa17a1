//! A flush: every recorded call is computed.
//!
//! 1. The scheduler puts calls together into launches, and these in order; by depth a launch is a
//!    bucket.
//! 2. In that order each result of each launch gets consecutive rows in its space, so that all
//!    writes of a launch are dense.
//! 3. One pass over the log turns handles into rows. The index lists of a launch lie one after
//!    another, one list an operand; the rows that list operands name lie behind those ([`lists`]).
//! 4. Each launch runs its kernel, split over the threads ([`launch`]).
//!
//! What a flush computed is a [`Generation`]. Its rows stay until it is released, so that later
//! flushes, and decisions, can read them ([`bucket_rows`]).

mod bucket_rows;
mod kept;
mod launch;
mod lists;
mod on_device;
mod ragged;

use std::ffi::c_void;
use std::time::Instant;

use cohort_abi::manifest::{Manifest, Operand, Unit};
use cohort_abi::{Handle, KernelFn};

use crate::arena::{Arena, InputRows, Region, SpaceBase};
use crate::call_form::CallForm;
use crate::code::Program;
use crate::computed::ComputedWeights;
use crate::device::Device;
use crate::device::runner::Runner;
use crate::error::Error;
use crate::explain::Survey;
use crate::memory::AlignedBuffer;
use crate::numbering::Numbering;
use crate::pack::{Constants, fill_sources, pack_constants};
use crate::recorder::Recorder;
use crate::schedule::groups::Groups;
use crate::schedule::{Order, Ready, Recorded, Scheduler};
use crate::stats::Launches;
use crate::workers::Workers;
use bucket_rows::{BucketRows, NO_ROW};
use kept::KeptRows;
use launch::{Flush, Placed, copies_bytes};
use lists::Lists;
pub use on_device::Wanted;
use ragged::RaggedLaunches;

/// A kernel with everything about it that does not change.
struct Kernel {
    function: KernelFn,
    operands: Vec<Operand>,
    lists: usize,
    results: Vec<usize>,
    constants: Vec<*const c_void>,
    row_tile: u64,
    row_work: u64,
    flops_per_row: u64,
    form: CallForm,
}

/// Where the calls of a bucket go.
#[derive(Clone, Copy, Default)]
struct Plan {
    /// Behind the last: a bucket of ghosts.
    kernel: u32,
    /// The launch, if the bucket is one.
    placed: usize,
    /// Calls already converted, and their rows.
    next: u32,
    next_row: u32,
}

/// Where a call is in its launch.
#[derive(Clone, Copy)]
struct Spot {
    launch: usize,
    /// How many calls are before it, and how many rows they make.
    call: usize,
    row: usize,
}

/// What one flush computed. Nobody holds a handle into it when it is released.
#[derive(Debug, Default)]
pub struct Generation {
    /// All its buckets, to be recycled after the release.
    pub buckets: Vec<u32>,
    regions: Vec<Region>,
}

/// Memory, weights and threads of a program that runs on the CPU.
pub struct Executor {
    kernels: Vec<Kernel>,
    _constants: Constants,
    arena: Arena,
    workers: Workers,
    scheduler: Box<dyn Scheduler>,
    source_rows: Vec<u32>,
    kept: KeptRows,
    numbering: Numbering,
    /// For each chunk of inputs, its rows.
    chunks: Vec<Vec<Region>>,
    /// Of the flush at hand: rows of each space, then the next one.
    next_rows: Vec<u64>,
    forms: Vec<CallForm>,
    has_ragged: bool,
    rows: BucketRows,
    /// By bucket.
    plans: Vec<Plan>,
    /// The buckets of the flush, and those of its ghosts.
    order: Vec<Ready>,
    ghosts: Vec<Ready>,
    groups: Groups,
    placed: Vec<Placed>,
    /// First rows of the results of the launches.
    result_rows: Vec<u32>,
    index: AlignedBuffer,
    lists: Lists,
    ragged: RaggedLaunches,
    /// 0, 1, 2, …
    identity: AlignedBuffer,
    identity_length: usize,
    /// Copies of operands, without gather fusion.
    copies: AlignedBuffer,
    gather_fusion: bool,
    /// Spent before kernels are launched.
    schedule_nanoseconds: u64,
    /// Of these, on rows and indices, if some kernel is ragged.
    prelude_nanoseconds: u64,
    bases: Vec<SpaceBase>,
    /// For each kernel.
    launches: Vec<Launches>,
    survey: Option<Box<Survey>>,
    /// Where the kernels run, if not here.
    device: Option<Box<Runner>>,
    /// The spaces of rows that decide, if kernels run on a device.
    deciding: Vec<usize>,
}

impl Executor {
    /// `params` holds the bytes of each parameter; they are packed here and not needed later.
    /// At most `kept` calls of each kernel are kept. Without gather fusion, kernels read copies of their rows. With a device, and perhaps a limit
    /// of the bytes of its memory, kernels run there.
    pub fn new(
        program: &Program,
        params: &[&[u8]],
        threads: usize,
        scheduler: Box<dyn Scheduler>,
        gather_fusion: bool,
        kept: &[u32],
        device: Option<(Box<dyn Device>, Option<u64>)>,
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let computed = ComputedWeights::new(program, params)?;
        let params = &computed.behind(params)[..];
        let constants = pack_constants(manifest, params)?;
        let kernels = manifest
            .kernels
            .iter()
            .zip(&program.kernels)
            .enumerate()
            .map(|(index, (kernel, function))| Kernel {
                function: *function,
                operands: kernel.operands.clone(),
                lists: kernel.lists(),
                results: kernel.results.clone(),
                constants: constants.addresses(index),
                row_tile: kernel.row_tile,
                row_work: row_work(manifest, kernel),
                flops_per_row: kernel.flops_per_row,
                form: CallForm::of(kernel),
            })
            .collect();
        let forms: Vec<CallForm> = manifest.kernels.iter().map(CallForm::of).collect();
        let scratch_bytes = manifest.kernels.iter().map(|kernel| kernel.scratch_bytes);
        let workers = Workers::new(threads, scratch_bytes.max().unwrap_or(0) as usize)?;
        let mut arena = Arena::new(manifest);
        let source_rows = fill_sources(manifest, params, &mut arena)?;
        let kept = KeptRows::new(manifest, kept, &mut arena)?;
        let most_results = manifest.kernels.iter().map(|kernel| kernel.results.len());
        let launches = manifest
            .kernels
            .iter()
            .map(|kernel| Launches::new(kernel.operands.len()))
            .collect();
        let mut executor = Executor {
            has_ragged: forms.iter().any(|form| form.is_ragged),
            forms,
            kernels,
            _constants: constants,
            arena,
            workers,
            scheduler,
            source_rows,
            kept,
            numbering: Numbering::of(manifest),
            chunks: Vec::new(),
            next_rows: Vec::new(),
            rows: BucketRows::new(most_results.max().unwrap_or(0)),
            plans: Vec::new(),
            order: Vec::new(),
            ghosts: Vec::new(),
            groups: Groups::default(),
            placed: Vec::new(),
            result_rows: Vec::new(),
            index: AlignedBuffer::default(),
            lists: Lists::default(),
            ragged: RaggedLaunches::default(),
            identity: AlignedBuffer::default(),
            identity_length: 0,
            copies: AlignedBuffer::default(),
            gather_fusion,
            schedule_nanoseconds: 0,
            prelude_nanoseconds: 0,
            bases: Vec::new(),
            launches,
            survey: None,
            device: None,
            deciding: Vec::new(),
        };
        if let Some((device, limit)) = device {
            executor.move_to(device, manifest, params, limit)?;
        }
        Ok(executor)
    }

    /// Drops all inputs and all results but those that are kept, and makes place for that many chunks of inputs.
    pub fn reset(&mut self, chunks: usize) {
        self.arena.reset();
        self.rows.reset();
        self.chunks.clear();
        self.chunks.resize_with(chunks, Vec::new);
        self.make_room(self.numbering.first_call(chunks));
        for (source, row) in self.source_rows.iter().enumerate() {
            self.rows.set_first(source, 0, *row);
        }
        self.show_kept();
    }

    /// Takes the rows of a chunk of inputs; drops those that it had.
    pub fn put_inputs(&mut self, chunk: usize, inputs: &InputRows) -> Result<(), Error> {
        self.drop_inputs(chunk);
        self.arena.put_inputs(inputs, &mut self.chunks[chunk])?;
        if let Some(runner) = &mut self.device {
            self.chunks[chunk]
                .iter()
                .for_each(|region| runner.put(*region));
        }
        for region in &self.chunks[chunk] {
            let bucket = self.numbering.input(chunk, region.space);
            self.rows.set_first(bucket, 0, region.first);
        }
        Ok(())
    }

    /// No instance of the chunk is left.
    pub fn drop_inputs(&mut self, chunk: usize) {
        for region in self.chunks[chunk].drain(..) {
            self.arena.give(region);
            let bucket = self.numbering.input(chunk, region.space);
            self.rows.set_first(bucket, 0, NO_ROW);
        }
    }

    /// The rows of inputs and results.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// What was launched since the last [`Executor::clear_launches`], a kernel.
    pub fn launches(&self) -> &[Launches] {
        &self.launches
    }

    /// Time that flushes spent before their kernels ran: on order, rows, indices.
    pub fn schedule_nanoseconds(&self) -> u64 {
        self.schedule_nanoseconds
    }

    /// Of these, on where rows are and which lengths calls have, in a program with ragged kernels.
    pub fn prelude_nanoseconds(&self) -> u64 {
        self.prelude_nanoseconds
    }

    /// From now on every flush is looked at for an explanation.
    pub fn set_survey(&mut self, survey: Survey) {
        self.survey = Some(Box::new(survey));
    }

    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_deref()
    }

    /// What watches, to be told who waits.
    pub(crate) fn survey_mut(&mut self) -> Option<&mut Survey> {
        self.survey.as_deref_mut()
    }

    pub fn clear_launches(&mut self) {
        self.launches.iter_mut().for_each(Launches::clear);
        if let Some(survey) = &mut self.survey {
            survey.clear();
        }
        self.schedule_nanoseconds = 0;
        self.prelude_nanoseconds = 0;
        if let Some(runner) = &mut self.device {
            runner.clear_stats();
        }
    }

    /// Gives the rows of a generation back.
    pub fn release(&mut self, generation: &mut Generation) {
        for region in generation.regions.drain(..) {
            self.arena.give(region);
        }
        for bucket in &generation.buckets {
            self.rows.forget(*bucket as usize);
        }
    }

    /// Computes everything that was recorded since the last flush; fills an empty generation.
    pub fn flush(&mut self, recorder: &Recorder, generation: &mut Generation) -> Result<(), Error> {
        let mut begin = Instant::now();
        generation
            .buckets
            .extend_from_slice(recorder.buckets().pending());
        self.collect(recorder);
        let recorded = Recorded {
            log: recorder.log(),
            forms: &self.forms,
            ghosts: &self.ghosts,
            segments: recorder.segments(),
        };
        if let Some(survey) = &mut self.survey {
            // Looking costs nothing that counts.
            let before = begin.elapsed();
            survey.flush(recorded, &self.order);
            begin = Instant::now() - before;
        }
        let order = self
            .scheduler
            .schedule(recorded, &mut self.order, &mut self.groups);
        let ordered = begin.elapsed();
        self.take_rows(&mut generation.regions)?;
        let mut index_length = match order {
            Order::Buckets => self.place_buckets(),
            Order::Groups => self.place_groups(recorder.log())?,
        };
        self.place_kept(recorder, &mut index_length);
        self.place_lists(recorder.log(), order, &mut index_length)?;
        self.arena.commit()?;
        self.arena.bases(&mut self.bases);
        self.index.ensure(
            index_length * size_of::<u32>(),
            "the index lists of a batch",
        )?;
        self.make_lists()?;
        match order {
            Order::Buckets if self.has_ragged => self.write_indices::<true>(recorder.log())?,
            Order::Buckets => self.write_indices::<false>(recorder.log())?,
            Order::Groups => self.write_grouped_indices(recorder.log())?,
        }
        all_inside(!self.write_kept_indices(recorder))?;
        let elapsed = begin.elapsed();
        self.schedule_nanoseconds += elapsed.as_nanos() as u64;
        if self.has_ragged {
            self.prelude_nanoseconds += elapsed.saturating_sub(ordered).as_nanos() as u64;
        }
        if let Some(survey) = &mut self.survey {
            (self.kept.placed.iter()).for_each(|placed| survey.keeps(placed.kernel));
            survey.launched(self.kept.placed.len() + self.placed.len());
        }
        match self.device {
            Some(_) => {
                self.launch_on_device(order, index_length)?;
                self.fetch_deciding(&generation.regions)?;
            }
            None => self.launch(),
        }
        Ok(())
    }

    /// The row that a handle stands for, after the flush that computed it.
    pub fn row(&self, handle: Handle, space: usize) -> Option<&[u8]> {
        self.rows(handle, space, 1)
    }

    /// That many rows from the one on that a handle stands for, after the flush that computed them.
    pub fn rows(&self, handle: Handle, space: usize, rows: u64) -> Option<&[u8]> {
        if rows == 0 {
            // The row behind the last may be none.
            return Some(&[]);
        }
        let first = self.rows.find(handle.0, self.arena.rows(space))?;
        self.arena.row_range(space, first, rows)
    }

    /// The bits of the one element of each of the rows, given by handle and space, in the same
    /// order; a `bool` is 0 or 1.
    ///
    /// Where rows are in the memory of a device, those that can decide were brought by the flush.
    pub fn decisions(
        &self,
        rows: &[(Handle, usize)],
        decisions: &mut Vec<u32>,
    ) -> Result<(), Error> {
        decisions.clear();
        for (handle, space) in rows {
            decisions.push(self.decision(*handle, *space)?);
        }
        Ok(())
    }

    /// One of [`Executor::decisions`], by a row that was computed before.
    pub fn decision(&self, handle: Handle, space: usize) -> Result<u32, Error> {
        match self.row(handle, space) {
            Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
            Some(&[truth]) => Ok(u32::from(truth != 0)),
            Some(_) | None => Err(Error::Internal(
                "a decision by a handle of no row".to_owned(),
            )),
        }
    }

    /// Room for that many buckets, none of which has rows so far but the sources and inputs.
    fn make_room(&mut self, buckets: usize) {
        self.rows.make_room(buckets);
        if self.plans.len() < buckets {
            self.plans.resize(buckets, Plan::default());
        }
    }

    /// Lists the buckets of the flush.
    fn collect(&mut self, recorder: &Recorder) {
        self.order.clear();
        self.ghosts.clear();
        let buckets = recorder.buckets();
        self.make_room(buckets.count());
        for bucket in buckets.pending() {
            let number = *bucket as usize;
            let ready = Ready {
                bucket: *bucket,
                kernel: buckets.kernel(number),
                phase: buckets.phase(number),
                depth: buckets.depth(number),
                calls: recorder.bucket_calls(number),
                rows: buckets.rows(number),
            };
            self.plans[number] = Plan {
                kernel: ready.kernel,
                ..Plan::default()
            };
            if ready.kernel as usize == self.kernels.len() {
                self.ghosts.push(ready);
            } else if ready.calls > 0 {
                self.order.push(ready);
            }
        }
        self.placed.clear();
        self.result_rows.clear();
        self.lists.clear();
        self.ragged.clear();
    }

    /// Takes rows for all results, one region a space: as many as calls of the buckets make, however
    /// these are launched.
    fn take_rows(&mut self, regions: &mut Vec<Region>) -> Result<(), Error> {
        self.next_rows.clear();
        self.next_rows.resize(self.arena.spaces(), 0);
        for ready in &self.order {
            for space in &self.kernels[ready.kernel as usize].results {
                self.next_rows[*space] += u64::from(ready.rows);
            }
        }
        for (space, next) in self.next_rows.iter_mut().enumerate() {
            if *next > 0 {
                let region = self.arena.take(space, *next)?;
                regions.push(region);
                *next = u64::from(region.first);
            }
        }
        Ok(())
    }

    /// Makes each bucket a launch; returns the length of the index.
    fn place_buckets(&mut self) -> usize {
        let mut index_length = 0;
        for index in 0..self.order.len() {
            let ready = self.order[index];
            let bucket = ready.bucket as usize;
            let first_result = self.result_rows.len();
            self.plans[bucket].placed = self.placed.len();
            self.place(ready.kernel, ready.calls, ready.rows, &mut index_length);
            for (result, row) in self.result_rows[first_result..].iter().enumerate() {
                self.rows.set_first(bucket, result, *row);
            }
        }
        index_length
    }

    /// Takes the launches from the groups; returns the length of the index.
    fn place_groups(&mut self, log: &[u64]) -> Result<usize, Error> {
        if self.has_ragged {
            self.measure_groups(log)?;
        }
        let mut index_length = 0;
        for index in 0..self.groups.launches.len() {
            let (kernel, calls) = self.groups.launches[index];
            let rows = match self.forms[kernel as usize].is_ragged {
                true => self.ragged.place_group(index, calls),
                false => calls,
            };
            self.place(kernel, calls, rows, &mut index_length);
        }
        Ok(index_length)
    }

    /// Finds how many rows each call of a group makes.
    fn measure_groups(&mut self, log: &[u64]) -> Result<(), Error> {
        let launches = self.groups.launches.iter();
        self.ragged.begin_groups(launches.map(|(_, calls)| *calls));
        let mut places = self.groups.places.iter();
        let mut at = 0;
        while let Some(bucket) = log.get(at) {
            let Some(form) = (self.forms).get(self.plans[*bucket as usize].kernel as usize) else {
                at += 2;
                continue;
            };
            let Some((launch, call)) = places.next() else {
                return all_inside(true);
            };
            let entry = &log[at + 1..];
            if form.is_ragged {
                self.ragged.set_rows(*launch, *call, form.rows(entry));
            }
            at += 1 + form.entry_length(entry);
        }
        Ok(())
    }

    /// Gives a launch rows for its results and a place for its index lists.
    fn place(&mut self, kernel: u32, calls: u32, rows: u32, index_length: &mut usize) {
        let of_kernel = &self.kernels[kernel as usize];
        let form = &of_kernel.form;
        let entries = match form.unit {
            Unit::Rows => rows,
            Unit::Calls => calls,
        };
        self.placed.push(Placed {
            kernel,
            calls,
            rows,
            entries,
            index_start: *index_length,
            result_start: self.result_rows.len(),
            list_start: self.lists.add(of_kernel.lists, entries),
            ragged: match form.is_ragged {
                true => Some(self.ragged.add(form, calls)),
                false => None,
            },
        });
        for space in &of_kernel.results {
            let next = &mut self.next_rows[*space];
            self.result_rows.push(*next as u32);
            *next += u64::from(rows);
        }
        // Where the unit is the call, one list more may tell where results begin.
        let lists = of_kernel.operands.len() + usize::from(form.unit == Unit::Calls);
        *index_length += lists * entries as usize;
    }

    /// Reads the lengths of all lists, and gives them a place in the index behind everything else.
    fn place_lists(
        &mut self,
        log: &[u64],
        order: Order,
        index_length: &mut usize,
    ) -> Result<(), Error> {
        if self.lists.operands.is_empty() {
            return Ok(());
        }
        let mut places = self.groups.places.iter();
        let mut at = 0;
        while let Some(bucket) = log.get(at) {
            let plan = &mut self.plans[*bucket as usize];
            let Some(kernel) = self.kernels.get(plan.kernel as usize) else {
                at += 2;
                continue;
            };
            let (form, entry) = (&kernel.form, &log[at + 1..]);
            let rows = form.rows(entry);
            let spot = match order {
                Order::Buckets => plan.take(rows),
                Order::Groups => match places.next() {
                    Some(place) => spot_in_group(*place, form, &self.ragged),
                    None => return all_inside(true),
                },
            };
            let lists = kernel.operands.iter().zip(entry);
            let lists = lists.filter(|(operand, _)| matches!(operand, Operand::Rows { .. }));
            for ((_, length), list) in lists.zip(self.placed[spot.launch].list_start..) {
                match form.unit {
                    // Every row of a call has the list.
                    Unit::Rows => {
                        for row in spot.row..spot.row + rows as usize {
                            self.lists.set_length(list, row, *length);
                        }
                    }
                    Unit::Calls => self.lists.set_length(list, spot.call, *length),
                }
            }
            at += 1 + form.entry_length(entry);
        }
        for ready in &self.order {
            let plan = &mut self.plans[ready.bucket as usize];
            (plan.next, plan.next_row) = (0, 0);
        }
        self.lists.place(index_length)
    }

    /// Makes the list 0, 1, 2, … as long as the longest launch, and room for copies.
    fn make_lists(&mut self) -> Result<(), Error> {
        let longest = self.all_placed().map(|placed| placed.entries).max();
        let longest = longest.unwrap_or(0) as usize;
        if self.identity_length < longest {
            let length = longest.next_power_of_two();
            self.identity
                .ensure(length * size_of::<u32>(), "the index lists of a batch")?;
            let list = &mut self.identity.words_mut()[..length];
            for (entry, row) in list.iter_mut().zip(0..) {
                *entry = row;
            }
            self.identity_length = length;
        }
        if !self.gather_fusion {
            let bytes = self.all_placed().map(|placed| {
                let kernel = &self.kernels[placed.kernel as usize];
                copies_bytes(kernel, placed.entries, &self.bases)
            });
            let bytes = bytes.max().unwrap_or(0);
            self.copies.ensure(bytes, "copies of operands")?;
        }
        Ok(())
    }

    /// Turns the log into the index lists of buckets. Every row is checked against its space, so that
    /// whatever compiled code recorded, no kernel reads outside of an arena.
    fn write_indices<const HAS_RAGGED: bool>(&mut self, log: &[u64]) -> Result<(), Error> {
        let index = self.index.words_mut();
        let mut outside = false;
        let mut at = 0;
        while let Some(bucket) = log.get(at) {
            let plan = &mut self.plans[*bucket as usize];
            let Some(kernel) = self.kernels.get(plan.kernel as usize) else {
                outside |= !write_ghost(&mut self.rows, *bucket as usize, log[at + 1]);
                at += 2;
                continue;
            };
            let mut writer = Writer {
                rows: &self.rows,
                arena: &self.arena,
                lists: &self.lists,
                ragged: &mut self.ragged,
                index,
                outside: &mut outside,
            };
            let placed = &self.placed[plan.placed];
            let entry = &log[at + 1..];
            at += 1 + if HAS_RAGGED && placed.ragged.is_some() {
                let spot = plan.take(kernel.form.rows(entry));
                writer.ragged_call(kernel, placed, spot, entry)
            } else {
                plan.next += 1;
                writer.call(kernel, placed, plan.next as usize - 1, entry)
            };
        }
        all_inside(outside)
    }

    /// Turns the log into the index lists of groups, and notes the rows of every call.
    fn write_grouped_indices(&mut self, log: &[u64]) -> Result<(), Error> {
        let index = self.index.words_mut();
        let mut outside = false;
        let mut places = self.groups.places.iter();
        let mut at = 0;
        while let Some(bucket) = log.get(at) {
            let bucket = *bucket as usize;
            let Some(kernel) = self.kernels.get(self.plans[bucket].kernel as usize) else {
                outside |= !write_ghost(&mut self.rows, bucket, log[at + 1]);
                at += 2;
                continue;
            };
            let Some(place) = places.next() else {
                return all_inside(true);
            };
            let spot = spot_in_group(*place, &kernel.form, &self.ragged);
            let placed = &self.placed[spot.launch];
            let mut writer = Writer {
                rows: &self.rows,
                arena: &self.arena,
                lists: &self.lists,
                ragged: &mut self.ragged,
                index,
                outside: &mut outside,
            };
            let entry = &log[at + 1..];
            let rows = kernel.form.rows(entry) as u32;
            at += 1 + match kernel.form.is_ragged {
                true => writer.ragged_call(kernel, placed, spot, entry),
                false => writer.call(kernel, placed, spot.row, entry),
            };
            for result in 0..kernel.results.len() {
                let first = self.result_rows[placed.result_start + result] + spot.row as u32;
                for row in 0..rows {
                    self.rows.push(bucket, result, first + row);
                }
            }
        }
        all_inside(outside)
    }

    /// The launches of the flush, in order.
    fn all_placed(&self) -> impl Iterator<Item = &Placed> {
        self.kept.placed.iter().chain(&self.placed)
    }

    fn launch(&mut self) {
        let flush = Flush {
            kernels: &self.kernels,
            kept: &self.kept.placed,
            placed: &self.placed,
            result_rows: &self.result_rows,
            index: self.index.words_mut(),
            lists: &self.lists,
            ragged: &self.ragged,
            identity: self.identity.words_mut(),
            bases: &self.bases,
            workers: &self.workers,
            copies: (!self.gather_fusion).then(|| self.copies.bytes_mut().as_mut_ptr()),
        };
        let launches = &mut self.launches;
        self.workers.enter(move || flush.run(launches));
    }
}

impl Plan {
    /// The place of the bucket's next call, which makes so many rows.
    #[inline]
    fn take(&mut self, rows: u64) -> Spot {
        let spot = Spot {
            launch: self.placed,
            call: self.next as usize,
            row: self.next_row as usize,
        };
        self.next += 1;
        self.next_row += rows as u32;
        spot
    }
}

/// The place of a call, given as its launch and its number in it.
#[inline]
fn spot_in_group((launch, call): (u32, u32), form: &CallForm, ragged: &RaggedLaunches) -> Spot {
    let row = match form.is_ragged {
        true => ragged.start(launch, call),
        false => call,
    };
    Spot {
        launch: launch as usize,
        call: call as usize,
        row: row as usize,
    }
}

/// Writes the index lists of launches.
struct Writer<'a> {
    rows: &'a BucketRows,
    arena: &'a Arena,
    lists: &'a Lists,
    ragged: &'a mut RaggedLaunches,
    index: &'a mut [u32],
    /// Whether some handle has no row.
    outside: &'a mut bool,
}

impl Writer<'_> {
    /// Writes row `row` of a launch from the entry that begins with a call's slots; returns the
    /// length of the entry.
    #[inline(always)]
    fn call(&mut self, kernel: &Kernel, placed: &Placed, row: usize, entry: &[u64]) -> usize {
        let (operands, mut handles) = entry.split_at(kernel.operands.len());
        let mut slot = placed.index_start + row;
        let mut list = placed.list_start;
        for (operand, value) in kernel.operands.iter().zip(operands) {
            match operand {
                Operand::Scalar(_) | Operand::Length => self.index[slot] = *value as u32,
                Operand::Row { space } | Operand::Ragged { space, .. } => {
                    self.index[slot] = self.row(*value, *space)
                }
                Operand::Rows { space } | Operand::Stacked { space, .. } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    let start = self.lists.start(list, row);
                    for (at, handle) in listed.iter().enumerate() {
                        self.index[start + at] = self.row(*handle, *space);
                    }
                    list += 1;
                }
            }
            slot += placed.calls as usize;
        }
        entry.len() - handles.len()
    }

    /// As [`Writer::call`], for a call of a ragged kernel.
    #[inline(never)]
    fn ragged_call(
        &mut self,
        kernel: &Kernel,
        placed: &Placed,
        spot: Spot,
        entry: &[u64],
    ) -> usize {
        let form = &kernel.form;
        let length = form.entry_length(entry);
        let rows = form.rows(entry);
        self.count(kernel, placed, spot, entry);
        let (operands, mut handles) = entry[..length].split_at(kernel.operands.len());
        // The lists' entries that are this call's.
        let (first, count) = match form.unit {
            Unit::Rows => (spot.row, rows as usize),
            Unit::Calls => (spot.call, 1),
        };
        let entries = placed.entries as usize;
        let mut list = placed.list_start;
        for (position, (operand, value)) in kernel.operands.iter().zip(operands).enumerate() {
            let start = placed.index_start + position * entries;
            let own = start + first..start + first + count;
            match operand {
                Operand::Scalar(_) | Operand::Length => self.index[own].fill(*value as u32),
                Operand::Row { space } => {
                    let row = self.row(*value, *space);
                    self.index[own].fill(row);
                }
                Operand::Rows { space } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    for row in first..first + count {
                        let start = self.lists.start(list, row);
                        for (at, handle) in listed.iter().enumerate() {
                            self.index[start + at] = self.row(*handle, *space);
                        }
                    }
                    list += 1;
                }
                Operand::Stacked { space, .. } => {
                    let (listed, rest) = handles.split_at(*value as usize);
                    handles = rest;
                    for (at, handle) in own.zip(listed) {
                        self.index[at] = self.row(*handle, *space);
                    }
                }
                Operand::Ragged { space, extent } => {
                    let of_operand = form.extent(*extent, entry);
                    let row = self.first_row(*value, *space, of_operand);
                    match (form.unit, placed.ragged) {
                        (Unit::Rows, Some(launch)) => {
                            let run = self.ragged.launches[launch].run_start + position;
                            let index = &mut self.index[start..start + entries];
                            self.ragged.runs[run].add(index, first, count, row);
                        }
                        _ => self.index[own].fill(row),
                    }
                }
            }
        }
        if form.unit == Unit::Calls {
            let start = placed.index_start + kernel.operands.len() * entries;
            self.index[start + spot.call] = spot.row as u32;
        }
        length
    }

    /// Notes how much work a call is.
    fn count(&mut self, kernel: &Kernel, placed: &Placed, spot: Spot, entry: &[u64]) {
        let Some(number) = placed.ragged else {
            return;
        };
        let form = &kernel.form;
        self.ragged.note_lengths(number, form, entry);
        let flops = form.flops(|operand| entry[operand]);
        let row_bytes = |space: usize| self.arena.row_bytes(space);
        let bytes = ragged_bytes(kernel, row_bytes, |operand| entry[operand]);
        let launch = &mut self.ragged.launches[number];
        launch.flops = launch.flops.saturating_add(flops);
        launch.bytes = launch.bytes.saturating_add(bytes);
        let of_call = launch.work_start + spot.call;
        self.ragged.works[of_call] = flops.saturating_add(bytes);
        self.ragged.spans[of_call] = (spot.row as u32, form.rows(entry) as u32);
    }

    /// The first of `rows` rows from a handle on.
    fn first_row(&mut self, handle: u64, space: usize, rows: u64) -> u32 {
        if rows == 0 {
            // It may be behind the last, and nobody reads it.
            return 0;
        }
        let all = self.arena.rows(space);
        let row = self.rows.find(handle, all);
        let row = row.filter(|row| row + rows <= all);
        *self.outside |= row.is_none();
        row.unwrap_or(0) as u32
    }

    #[inline]
    fn row(&mut self, handle: u64, space: usize) -> u32 {
        let row = self.rows.find(handle, self.arena.rows(space));
        *self.outside |= row.is_none();
        row.unwrap_or(0) as u32
    }
}

/// Bytes of the ragged operands and of the results of a call with these lengths.
fn ragged_bytes(
    kernel: &Kernel,
    row_bytes: impl Fn(usize) -> u64,
    length: impl Fn(usize) -> u64,
) -> u64 {
    let bytes = |rows: u64, space: usize| rows.saturating_mul(row_bytes(space));
    let operands = kernel.operands.iter().map(|operand| match operand {
        Operand::Ragged { space, extent } | Operand::Stacked { space, extent } => {
            bytes(kernel.form.extent_of(*extent, &length), *space)
        }
        _ => 0,
    });
    let rows = kernel.form.rows_of(&length);
    let results = kernel.results.iter().map(|space| bytes(rows, *space));
    operands.chain(results).fold(0, u64::saturating_add)
}

/// Gives a ghost the row that it stands for. Of what space it is, is checked where it is read.
fn write_ghost(rows: &mut BucketRows, bucket: usize, of: u64) -> bool {
    let row = rows.find(of, u64::from(NO_ROW));
    rows.push(bucket, 0, row.unwrap_or(u64::from(NO_ROW)) as u32);
    row.is_some()
}

fn all_inside(outside: bool) -> Result<(), Error> {
    if outside {
        return Err(Error::Internal(
            "a call was recorded with a handle of no row".to_owned(),
        ));
    }
    Ok(())
}

/// Operations a row: those of products, and one for each element that is read or written.
fn row_work(manifest: &Manifest, kernel: &cohort_abi::manifest::Kernel) -> u64 {
    let elements = |space: usize| manifest.spaces[space].row_elements();
    let read: u64 = kernel
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Row { space } | Operand::Ragged { space, .. } => elements(*space),
            // Their lengths are known only when they are recorded.
            Operand::Rows { .. } | Operand::Stacked { .. } => 0,
            Operand::Scalar(_) | Operand::Length => 1,
        })
        .sum();
    let written: u64 = kernel.results.iter().map(|space| elements(*space)).sum();
    kernel.flops_per_row + 4 * (read + written)
}
