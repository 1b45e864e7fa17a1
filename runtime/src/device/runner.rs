//! A flush on a device: everything that it takes in the device's memory, and the launches.
//!
//! 1. The row pools grow to the rows that the executor's arena has; the rows of new inputs are sent.
//! 2. The launches are listed, those of one depth side by side ([`Queue`]), and where one launch is to run
//!    all of them, their [`Schedule`] is written. Where blocks form clusters, they are listed for each part of the
//!    instances as well ([`divide`]).
//! 3. All index lists, the offsets of lists and the schedule go over in one copy.
//! 4. The launches are queued.
//!
//! Nothing is waited for until rows are asked for, which come back in one copy, or until
//! [`Runner::fetch`] of nothing.

mod divide;
mod load;
mod row_pools;

use std::ops::Range;

use cohort_abi::gpu::{ALIGNMENT, GpuFunction, GpuKernel, Precision};
use cohort_abi::manifest::{Manifest, Operand, Unit};

use super::blocks::Blocks;
use super::persistent::Persistent;
use super::pool::{Block, MemoryPool};
use super::queue::{Launch, Queue};
use super::schedule::Schedule;
use super::{Device, Piece, Problem};
use crate::error::Error;
use crate::memory::arena::{Arena, Region};
use crate::report::stats::DeviceStats;
use divide::Divided;
use row_pools::RowPools;

/// Of the memory that is free on a device, what may be used unless the user says otherwise.
const SHARE: (u64, u64) = (9, 10);
/// So many times what a batch has in use is to be free for others beside it: two more as large, and each has another
/// copy of its rows while these grow.
const ROOM_BESIDE: u64 = 6;
/// Blocks in the first dim of a grid, and in the second.
const MOST_BLOCKS: (u64, u32) = ((1 << 31) - 1, 65_535);

/// Everything of a program that is on a device.
pub struct Runner {
    device: Box<dyn Device>,
    pool: MemoryPool,
    /// By number; `None` for what is never recorded.
    kernels: Vec<Option<Kernel>>,
    names: Vec<String>,
    /// The constants of all of them.
    constants: Vec<Piece>,
    row_pools: RowPools,
    index: Block,
    scratch: Block,
    /// Of kernels over calls; and for each launch of the flush the number of its first list.
    blocks: Blocks,
    first_lists: Vec<usize>,
    queue: Queue,
    divided: Divided,
    /// Where flushes can be one launch.
    persistent: Option<Persistent>,
    schedule: Schedule,
    /// Steps of all flushes since the last [`Runner::clear_stats`].
    steps: u64,
}

#[derive(Clone)]
struct Kernel {
    gpu: GpuKernel,
    unit: Unit,
    operands: Vec<Operand>,
    results: Vec<usize>,
    /// Addresses.
    constants: Vec<u64>,
    /// Of each launch, the numbers of its functions.
    functions: Vec<Vec<usize>>,
    /// Of each launch, the number of the function for warpgroups, where the device has it.
    grouped: Vec<Option<usize>>,
}

impl Kernel {
    /// The function that a launch of `rows` rows runs, and its number.
    fn function(&self, launch: usize, rows: u64) -> Option<(&GpuFunction, usize)> {
        let of_launch = &self.gpu.launches[launch];
        let numbers = self.functions[launch].iter().copied();
        let functions = of_launch.functions.iter().zip(numbers);
        let grouped = of_launch.grouped.as_ref().zip(self.grouped[launch]);
        let mut from_last = functions.chain(grouped).rev();
        from_last.find(|(function, _)| function.from_rows <= rows)
    }

    /// How many arguments a call has.
    fn arguments(&self) -> usize {
        let of_calls = match self.unit {
            Unit::Rows => 0,
            Unit::Calls => 1 + self.gpu.launches.len(),
        };
        2 + 3 * self.operands.len() + self.results.len() + self.constants.len() + of_calls
    }
}

/// What a flush launches, in order.
pub struct Work<'a> {
    /// The launches.
    pub launches: &'a [Placed],
    /// First rows of the results of the launches.
    pub result_rows: &'a [u32],
    /// The index lists of all operands, one behind another.
    pub index: &'a [u32],
    /// The offsets of the lists of all list operands.
    pub offsets: &'a [u32],
    /// For each list operand of the launches: where its offsets begin, and where its rows do in the
    /// index.
    pub lists: &'a [(usize, usize)],
    /// Into how many parts the instances are divided; 0 if they are not.
    pub parts: usize,
    /// Of each launch that is divided, behind which of its rows each part ends.
    pub part_ends: &'a [u32],
}

/// A launch of a flush.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The kernel's number in the manifest.
    pub kernel: u32,
    /// Of the results.
    pub rows: u32,
    /// What the kernel counts: rows, or calls.
    pub entries: u32,
    /// Of the first operand's list in the index; the others follow, each as long as there are entries.
    /// Behind them, where the unit is the call, is the list of the rows at which its results begin.
    pub index_start: usize,
    /// Of the first result's first row in the list of them; the others follow.
    pub result_start: usize,
    /// The first list operand; the others follow.
    pub list_start: usize,
    /// Launches next to each other of the same wave need nothing of each other.
    pub wave: u32,
    /// Where the ends of its parts begin among them all, if it is divided; otherwise it reads nothing that one of these makes.
    pub part_ends: Option<usize>,
}

/// Some rows of a launch.
#[derive(Clone, Copy, Debug)]
struct Rows {
    first: u32,
    count: u32,
}

impl Runner {
    /// Finds the functions and sends the constants. `weights` is as for
    /// [`crate::program::pack::pack_constants`]; `limit` is in bytes.
    pub fn new(
        mut device: Box<dyn Device>,
        manifest: &Manifest,
        weights: &[&[u8]],
        limit: Option<u64>,
    ) -> Result<Runner, Error> {
        let name = device.name().to_owned();
        let on = |problem: Problem| problem.on(&name);
        let free = device.free_memory().map_err(on)?;
        let pool = MemoryPool::new(limit.unwrap_or(free / SHARE.1 * SHARE.0));
        let mut runner = Runner::empty(device, pool, manifest);
        let mut constants = Vec::new();
        for (number, kernel) in manifest.kernels.iter().enumerate() {
            let kernel = match manifest.is_load_time(number) {
                true => None,
                false => Some(runner.kernel(manifest, kernel, weights, &mut constants)?),
            };
            runner.kernels.push(kernel);
        }
        if let Some(flush) = &manifest.gpu_flush {
            let prepared = runner.device.prepare_flush(flush);
            let blocks = prepared.map_err(|problem| runner.error(problem))?;
            let clusters = match &flush.clusters {
                Some(clusters) => runner.device.prepare_clusters(clusters, flush.threads),
                None => Ok(None),
            };
            let clusters = clusters.map_err(|problem| runner.error(problem))?;
            runner.persistent = blocks.map(|blocks| {
                let mut persistent = Persistent::new(flush, blocks, clusters);
                for kernel in runner.kernels.iter().flatten() {
                    persistent.add(flush, &kernel.gpu, &kernel.functions);
                }
                persistent
            });
        }
        Ok(runner)
    }

    /// Without functions and constants.
    fn empty(device: Box<dyn Device>, pool: MemoryPool, manifest: &Manifest) -> Runner {
        Runner {
            device,
            pool,
            kernels: Vec::new(),
            names: (manifest.kernels.iter().map(|kernel| kernel.name.clone())).collect(),
            constants: Vec::new(),
            row_pools: RowPools::new(manifest),
            index: Block::default(),
            scratch: Block::default(),
            blocks: Blocks::default(),
            first_lists: Vec::new(),
            queue: Queue::default(),
            divided: Divided::default(),
            persistent: None,
            schedule: Schedule::default(),
            steps: 0,
        }
    }

    /// Whether there is memory for batches beside those of this one, as far as it knows by the batches it had.
    pub fn has_room_beside(&self) -> bool {
        self.index.bytes > 0 && self.pool.has_room_for(ROOM_BESIDE)
    }

    /// Another one on the same device, for batches beside those of this one; nothing where the device has no other.
    pub fn beside(&mut self, manifest: &Manifest) -> Result<Option<Runner>, Error> {
        let beside = self.device.beside(&self.constants);
        let Some((device, addresses)) = beside.map_err(|problem| self.error(problem))? else {
            return Ok(None);
        };
        let of_pieces = self.constants.iter().zip(&addresses);
        let constants: Vec<Piece> = of_pieces
            .map(|(piece, address)| Piece {
                address: *address,
                ..*piece
            })
            .collect();
        let moved = |address: &u64| {
            let mut pieces = self.constants.iter().zip(&addresses);
            let found = pieces.find(|(piece, _)| piece.address == *address);
            found.map_or(*address, |(_, moved)| *moved)
        };
        let kernels = self.kernels.iter().map(|kernel| {
            kernel.as_ref().map(|kernel| Kernel {
                constants: kernel.constants.iter().map(moved).collect(),
                ..kernel.clone()
            })
        });
        let kernels = kernels.collect();
        let mut runner = Runner::empty(device, self.pool.beside(), manifest);
        runner.kernels = kernels;
        runner.constants = constants;
        runner.persistent = self.persistent.clone();
        Ok(Some(runner))
    }

    /// Into how many parts the instances of a flush can be divided; 0 without clusters.
    pub fn parts(&self) -> usize {
        self.persistent.as_ref().map_or(0, Persistent::parts)
    }

    /// The lowest of the kernels' products.
    fn precision(&self) -> Precision {
        let kernels = self.kernels.iter().flatten();
        let precisions = kernels.map(|kernel| kernel.gpu.precision);
        precisions.max().unwrap_or_default()
    }

    /// What the device did since the last [`Runner::clear_stats`].
    pub fn stats(&self) -> DeviceStats {
        let work = self.device.work();
        DeviceStats {
            name: self.device.name().to_owned(),
            precision: self.precision(),
            seconds: work.seconds,
            list_seconds: (work.list_seconds > 0.0).then_some(work.list_seconds),
            fetch_seconds: work.fetch_seconds,
            peak_memory_bytes: self.pool.most_used(),
            launches: work.launches,
            steps: self.steps,
            copies: work.copies,
            graphs: work.graphs,
            clusters: self.divided.stats(&self.names),
        }
    }

    /// As of [`DeviceStats::steps`].
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Sets the counts and times of the device to zero.
    pub fn clear_stats(&mut self) {
        self.device.clear_work();
        self.divided.clear_stats();
        self.steps = 0;
    }

    /// How long each call of the last flush took, in order; empty unless the device times calls.
    pub fn call_seconds(&mut self) -> Result<&[f64], Error> {
        let name = self.device.name().to_owned();
        let seconds = self.device.call_seconds();
        seconds.map_err(|problem| problem.on(&name))
    }

    fn error(&self, problem: Problem) -> Error {
        problem.on(self.device.name())
    }

    /// These rows are on the host: they are sent before the next launch.
    pub fn put(&mut self, region: Region) {
        self.row_pools.put(region);
    }

    /// Queues a flush, whose rows the arena has places for already.
    pub fn flush(&mut self, arena: &Arena, work: &Work<'_>) -> Result<(), Error> {
        self.try_flush(arena, work)
            .map_err(|problem| self.error(problem))
    }

    fn try_flush(&mut self, arena: &Arena, work: &Work<'_>) -> Result<(), Problem> {
        self.row_pools
            .grow(&mut *self.device, &mut self.pool, arena)?;
        self.make_scratch(work)?;
        self.list_blocks(work)?;
        self.grow_lists(work)?;
        self.queue.clear();
        let mut begin = 0;
        while let Some(first) = work.launches.get(begin) {
            let same = |placed: &&Placed| placed.wave == first.wave;
            let end = begin + work.launches[begin..].iter().take_while(same).count();
            self.queue_level(begin..end, work)?;
            begin = end;
        }
        let steps = self.queue.steps();
        self.steps += steps;
        self.divide(work)?;
        self.schedule.clear();
        let persistent = self.persistent.as_ref();
        let divided = self.divided.queues();
        let scheduled = persistent.and_then(|all| self.schedule.write(&self.queue, divided, all));
        match scheduled {
            None => self.schedule.clear(),
            Some(scheduled) if self.parts() > 0 => {
                self.divided.count(scheduled.longest, steps, work);
            }
            Some(_) => {}
        }
        self.send(arena, work)?;
        // SAFETY: the arguments are those that the ABI lists: row pools of the manifest, whose rows
        // were checked when the index was written, the constants, and scratch that no other call of
        // the wave has. The schedule is the queue's and was sent.
        unsafe {
            match scheduled {
                Some(scheduled) => {
                    let schedule = self.word(self.schedule_start(work));
                    let Block { address, bytes, .. } = self.scratch;
                    let scratch = Piece { address, bytes };
                    let grid = scheduled.grid;
                    self.device.run_flush(schedule, grid, &self.queue, scratch)
                }
                None => self.device.run(&self.queue),
            }
        }
    }

    /// Makes the lists of what the blocks of kernels over calls compute.
    fn list_blocks(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        self.blocks.clear();
        self.first_lists.clear();
        for placed in work.launches {
            self.first_lists.push(self.blocks.next());
            let kernel = self.kernels.get(placed.kernel as usize);
            let Some(kernel) = kernel.and_then(Option::as_ref) else {
                continue;
            };
            if kernel.unit == Unit::Rows {
                continue;
            }
            let length = |operand: usize, call: u32| {
                let at = placed.index_start + operand * placed.entries as usize + call as usize;
                work.index.get(at).copied().map_or(0, u64::from)
            };
            self.blocks.add(&kernel.gpu, placed.entries, &length)?;
        }
        Ok(())
    }

    /// Words of all index lists.
    fn list_words(&self, work: &Work<'_>) -> usize {
        work.index.len() + work.offsets.len() + self.blocks.words.len()
    }

    /// Behind which word of the lists the schedule begins: at a multiple of 8 bytes.
    fn schedule_start(&self, work: &Work<'_>) -> usize {
        self.list_words(work).next_multiple_of(2)
    }

    /// Makes room for the index lists and the schedule: its arguments have the addresses of the lists, so
    /// it is written when these have their place.
    fn grow_lists(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        let mut words = self.list_words(work);
        if let Some(persistent) = &self.persistent {
            let (mut launches, mut arguments) = (0, 0);
            for placed in work.launches {
                let kernel = self.kernel_of(placed)?;
                launches += kernel.gpu.launches.len();
                arguments += kernel.arguments();
            }
            words = self.schedule_start(work)
                + Schedule::room(persistent, launches, arguments, work.parts);
        }
        let bytes = (words * size_of::<u32>()) as u64;
        self.pool.grow(&mut *self.device, &mut self.index, bytes, 0)
    }

    /// Sends new rows, and all index lists with the schedule in one copy.
    fn send(&mut self, arena: &Arena, work: &Work<'_>) -> Result<(), Problem> {
        let padding = match self.schedule.words.is_empty() {
            true => 0,
            false => self.schedule_start(work) - self.list_words(work),
        };
        let device = &mut *self.device;
        device.begin()?;
        let lists = [
            work.index,
            work.offsets,
            &self.blocks.words,
            &[0; 1][..padding],
            &self.schedule.words,
        ];
        let lists = self.row_pools.send(device, arena, &lists)?;
        if lists.is_empty() {
            return Ok(());
        }
        // SAFETY: the block has room for them.
        unsafe { device.send(self.index.address, lists) }
    }

    /// Launches of one wave run at the same time, so each has scratch of its own.
    fn make_scratch(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        let (mut most, mut wave, mut bytes) = (0, None, 0);
        for placed in work.launches {
            if wave != Some(placed.wave) {
                (wave, bytes) = (Some(placed.wave), 0);
            }
            bytes = self.scratch_bytes(placed)?.saturating_add(bytes);
            most = bytes.max(most);
        }
        most = most.max(self.scratch_of_parts(work)?);
        self.pool
            .grow(&mut *self.device, &mut self.scratch, most, 0)
    }

    fn scratch_bytes(&self, placed: &Placed) -> Result<u64, Problem> {
        self.scratch_of_rows(placed, placed.entries)
    }

    fn scratch_of_rows(&self, placed: &Placed, rows: u32) -> Result<u64, Problem> {
        let kernel = self.kernel_of(placed)?;
        let bytes = kernel.gpu.scratch(u64::from(rows));
        Ok(bytes.next_multiple_of(ALIGNMENT))
    }

    fn kernel_of(&self, placed: &Placed) -> Result<&Kernel, Problem> {
        let kernel = self.kernels.get(placed.kernel as usize);
        kernel
            .and_then(Option::as_ref)
            .ok_or_else(|| Problem::NoCode("a kernel of load time was recorded".to_owned()))
    }

    /// Queues the launches of these numbers, which are of one wave.
    fn queue_level(&mut self, numbers: Range<usize>, work: &Work<'_>) -> Result<(), Problem> {
        let mut queue = std::mem::take(&mut self.queue);
        let mut scratch = self.scratch.address;
        for number in numbers {
            let placed = &work.launches[number];
            let bytes = self.scratch_bytes(placed)?;
            let piece = Piece {
                address: scratch,
                bytes,
            };
            let rows = Rows {
                first: 0,
                count: placed.entries,
            };
            self.queue_call((number, rows), work, piece, &mut queue)?;
            scratch += bytes;
        }
        queue.end_level();
        self.queue = queue;
        Ok(())
    }

    /// Queues some rows of a launch; all of them if its unit is the call.
    fn queue_call(
        &self,
        (number, of_call): (usize, Rows),
        work: &Work<'_>,
        scratch: Piece,
        queue: &mut Queue,
    ) -> Result<(), Problem> {
        let placed = &work.launches[number];
        let kernel = self.kernel_of(placed)?;
        let lists = match kernel.unit {
            Unit::Rows => &[],
            Unit::Calls => self.blocks.of(self.first_lists[number], &kernel.gpu),
        };
        let arguments = queue.call(scratch);
        self.fill_arguments(kernel, (placed, of_call), work, arguments);
        arguments.push(scratch.address);
        let blocks = work.index.len() + work.offsets.len();
        arguments.extend(lists.iter().map(|list| self.word(blocks + list.start)));
        let rows = u64::from(of_call.count);
        let launches = kernel.gpu.launches.iter().zip(&kernel.functions);
        // A launch of calls without tiles is left out; what is beside it is beside those that are left.
        let mut is_first_of_wave = true;
        for (at, (launch, functions)) in launches.enumerate() {
            is_first_of_wave |= !launch.beside;
            let (function, number, grid) = match lists.get(at) {
                Some(list) if list.blocks == 0 => continue,
                Some(list) => {
                    let function = &launch.functions[list.function];
                    (function, functions[list.function], (list.blocks, 1))
                }
                None => {
                    let Some((function, number)) = kernel.function(at, rows) else {
                        return Err(Problem::NoCode(format!("no function for {rows} rows")));
                    };
                    let at_once = self.blocks_at_once(kernel, at, rows);
                    (function, number, self::grid(function, rows, at_once)?)
                }
            };
            queue.launch(Launch {
                function: number,
                grid,
                threads: function.threads,
                beside: !is_first_of_wave,
            });
            is_first_of_wave = false;
        }
        Ok(())
    }

    /// How many blocks of a launch the device has at once, where they go on from rows to rows: each is on a processor by itself,
    /// and what is in the same wave shares these by its columns.
    fn blocks_at_once(&self, kernel: &Kernel, at: usize, rows: u64) -> u64 {
        let launches = &kernel.gpu.launches;
        let columns = |at: usize| {
            let function = kernel.function(at, rows).map(|(function, _)| function);
            let goes_on = function.filter(|function| function.grid_stride);
            goes_on.map_or(0, |function| u64::from(function.column_blocks))
        };
        let first = (0..=at).rev().find(|at| !launches[*at].beside);
        let first = first.unwrap_or(0);
        let others = (first + 1..launches.len()).take_while(|at| launches[*at].beside);
        let all: u64 = columns(first) + others.map(columns).sum::<u64>();
        u64::from(self.device.processors()) * columns(at) / all.max(1)
    }

    /// The address of a word of the lists.
    fn word(&self, at: usize) -> u64 {
        self.index.address + (at * size_of::<u32>()) as u64
    }

    /// The arguments before the scratch.
    fn fill_arguments(
        &self,
        kernel: &Kernel,
        (placed, rows): (&Placed, Rows),
        work: &Work<'_>,
        arguments: &mut Vec<u64>,
    ) {
        let word = |at: usize| self.word(at);
        let mut lists = work.lists[placed.list_start..].iter();
        let skipped = rows.first as usize;
        arguments.push(u64::from(rows.count));
        for (position, operand) in kernel.operands.iter().enumerate() {
            let index = placed.index_start + position * placed.entries as usize + skipped;
            let (base, index, offsets) = match operand {
                Operand::Scalar(_) | Operand::Length => (0, word(index), 0),
                Operand::Row { pool }
                | Operand::Ragged { pool, .. }
                | Operand::Stacked { pool, .. } => (self.row_pools.place(*pool).0, word(index), 0),
                Operand::Rows { pool } => {
                    let (offsets, listed) = lists.next().copied().unwrap_or_default();
                    let offsets = word(work.index.len() + offsets + skipped);
                    (self.row_pools.place(*pool).0, word(listed), offsets)
                }
            };
            arguments.extend([base, index, offsets]);
        }
        if kernel.unit == Unit::Calls {
            let firsts = kernel.operands.len() * placed.entries as usize;
            arguments.push(word(placed.index_start + firsts));
        }
        for (result, pool) in kernel.results.iter().enumerate() {
            let first = work.result_rows[placed.result_start + result] + rows.first;
            let (address, row_bytes) = self.row_pools.place(*pool);
            arguments.push(address + u64::from(first) * row_bytes);
        }
        arguments.extend(&kernel.constants);
    }

    /// Brings rows of row pools to the arena, in one copy; all that is queued is done then. Each row was
    /// computed, or sent, before.
    pub fn fetch(&mut self, arena: &mut Arena, rows: &mut Vec<Region>) -> Result<(), Error> {
        self.row_pools.fetch(&mut *self.device, arena, rows)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Nothing may be in use when the device goes; whether it answers does not matter any more.
        let _ = self.device.finish();
    }
}

/// The grid of a function for some rows, of which the device has `at_once` blocks at once.
fn grid(function: &GpuFunction, rows: u64, at_once: u64) -> Result<(u32, u32), Problem> {
    let (blocks, columns) = function.grid_within(rows, at_once);
    if blocks > MOST_BLOCKS.0 || columns > MOST_BLOCKS.1 {
        return Err(Problem::NoCode(format!(
            "{rows} rows need {blocks} blocks, more than a grid has (try a smaller --batch)"
        )));
    }
    Ok((blocks as u32, columns))
}
