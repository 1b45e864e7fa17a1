//! A flush on a device: everything that it takes in the device's memory, and the launches.
//!
//! 1. The spaces grow to the rows that the executor's arena has; the rows of new inputs are sent.
//! 2. All index lists and the offsets of lists go over in one copy.
//! 3. The launches are queued, those of one depth on several streams; then all are waited for.
//!
//! Rows come back when they are asked for, all that are asked for together in one copy.

use cohort_abi::gpu::{ALIGNMENT, GpuFunction, GpuKernel};
use cohort_abi::manifest::{Constant, Manifest, Operand, Unit};

use super::pool::{Block, Pool};
use super::{Device, Launch, Piece, Problem, STREAMS};
use crate::arena::{Arena, Region};
use crate::error::Error;
use crate::pack::pack_constant;

/// Of the memory that is free on a device, what may be used unless the user says otherwise.
const SHARE: (u64, u64) = (9, 10);
/// Blocks in the first dim of a grid, and in the second.
const MOST_BLOCKS: (u64, u32) = ((1 << 31) - 1, 65_535);

/// Everything of a program that is on a device.
pub struct Runner {
    device: Box<dyn Device>,
    pool: Pool,
    /// By number; `None` for what is never recorded.
    kernels: Vec<Option<Kernel>>,
    spaces: Vec<Space>,
    index: Block,
    scratch: Block,
    arguments: Vec<u64>,
    pieces: Vec<Piece>,
    fetched: Vec<u8>,
    seconds: f64,
}

struct Kernel {
    gpu: GpuKernel,
    operands: Vec<Operand>,
    results: Vec<usize>,
    /// Addresses.
    constants: Vec<u64>,
    /// Of each launch, the numbers of its functions.
    functions: Vec<Vec<usize>>,
}

struct Space {
    block: Block,
    row_bytes: u64,
    /// Rows that may hold something.
    rows: u64,
    /// Rows that the host has and the device has not.
    stale: Vec<Region>,
}

/// What a flush launches, in order.
pub struct Work<'a> {
    pub launches: &'a [Placed],
    /// First rows of the results of the launches.
    pub result_rows: &'a [u32],
    pub index: &'a [u32],
    /// The offsets of the lists of all list operands.
    pub offsets: &'a [u32],
    /// For each list operand of the launches: where its offsets begin, and where its rows do in the
    /// index.
    pub lists: &'a [(usize, usize)],
}

/// A launch of a flush.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub kernel: u32,
    pub rows: u32,
    /// Of the first operand's list in the index; the others follow, each as long as there are rows.
    pub index_start: usize,
    /// Of the first result's first row in the list of them; the others follow.
    pub result_start: usize,
    /// The first list operand; the others follow.
    pub list_start: usize,
    /// Launches next to each other of the same level need nothing of each other.
    pub level: u32,
}

impl Runner {
    /// Finds the functions and sends the constants. `weights` is as for
    /// [`crate::pack::pack_constants`]; `limit` is in bytes.
    pub fn new(
        mut device: Box<dyn Device>,
        manifest: &Manifest,
        weights: &[&[u8]],
        limit: Option<u64>,
    ) -> Result<Runner, Error> {
        let name = device.name().to_owned();
        let on = |problem: Problem| problem.on(&name);
        let free = device.free_memory().map_err(on)?;
        let pool = Pool::new(limit.unwrap_or(free / SHARE.1 * SHARE.0));
        let mut runner = Runner {
            device,
            pool,
            kernels: Vec::new(),
            spaces: manifest
                .spaces
                .iter()
                .map(|space| Space {
                    block: Block::default(),
                    row_bytes: space.row_bytes(),
                    rows: 0,
                    stale: Vec::new(),
                })
                .collect(),
            index: Block::default(),
            scratch: Block::default(),
            arguments: Vec::new(),
            pieces: Vec::new(),
            fetched: Vec::new(),
            seconds: 0.0,
        };
        let mut constants = Vec::new();
        for (number, kernel) in manifest.kernels.iter().enumerate() {
            let kernel = match manifest.is_load_time(number) {
                true => None,
                false => Some(runner.kernel(manifest, kernel, weights, &mut constants)?),
            };
            runner.kernels.push(kernel);
        }
        Ok(runner)
    }

    fn kernel<'m>(
        &mut self,
        manifest: &Manifest,
        kernel: &'m cohort_abi::manifest::Kernel,
        weights: &[&[u8]],
        sent: &mut Vec<(&'m Constant, u64)>,
    ) -> Result<Kernel, Error> {
        let no_code = |why: &str| {
            Problem::NoCode(format!(
                "the kernel `{}` ({}) {why}",
                kernel.name, kernel.location
            ))
        };
        let Some(gpu) = &kernel.gpu else {
            return Err(self.error(no_code(
                "has no code for GPUs: the program was not compiled for one, or the kernel cannot \
                 run there",
            )));
        };
        if kernel.call.unit == Unit::Calls {
            return Err(self.error(no_code("computes whole calls, not supported on GPUs yet")));
        }
        let mut constants = Vec::with_capacity(gpu.constants.len());
        for constant in &gpu.constants {
            let known = sent.iter().find(|(known, _)| *known == constant);
            constants.push(match known {
                Some((_, address)) => *address,
                None => {
                    let address = self.constant(manifest, weights, constant)?;
                    sent.push((constant, address));
                    address
                }
            });
        }
        let mut functions = Vec::with_capacity(gpu.launches.len());
        for launch in &gpu.launches {
            let found: Result<Vec<usize>, Problem> = launch
                .functions
                .iter()
                .map(|function| self.device.function(function))
                .collect();
            functions.push(found.map_err(|problem| self.error(problem))?);
        }
        Ok(Kernel {
            gpu: gpu.clone(),
            operands: kernel.operands.clone(),
            results: kernel.results.clone(),
            constants,
            functions,
        })
    }

    fn constant(
        &mut self,
        manifest: &Manifest,
        weights: &[&[u8]],
        constant: &Constant,
    ) -> Result<u64, Error> {
        let packed = pack_constant(manifest, weights, constant)?;
        let bytes = packed.bytes();
        let taken = self.pool.take(&mut *self.device, bytes.len() as u64);
        let block = taken.map_err(|problem| self.error(problem))?;
        // SAFETY: the block was taken for these bytes; the zeros behind the constant are theirs.
        let uploaded = unsafe { self.device.upload(block.address, bytes) };
        uploaded.map_err(|problem| self.error(problem))?;
        Ok(block.address)
    }

    pub fn device_name(&self) -> &str {
        self.device.name()
    }

    /// The most bytes of the device that were in use.
    pub fn most_used_bytes(&self) -> u64 {
        self.pool.most_used()
    }

    /// Time on the device that flushes took since the last [`Runner::clear_seconds`].
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    pub fn clear_seconds(&mut self) {
        self.seconds = 0.0;
    }

    fn error(&self, problem: Problem) -> Error {
        problem.on(self.device.name())
    }

    /// These rows are on the host: they are sent before the next launch.
    pub fn put(&mut self, region: Region) {
        self.spaces[region.space].stale.push(region);
    }

    /// Computes a flush, whose rows the arena has places for already.
    pub fn flush(&mut self, arena: &Arena, work: &Work<'_>) -> Result<(), Error> {
        self.try_flush(arena, work)
            .map_err(|problem| self.error(problem))
    }

    fn try_flush(&mut self, arena: &Arena, work: &Work<'_>) -> Result<(), Problem> {
        self.send_rows(arena)?;
        self.make_scratch(work)?;
        self.device.start_clock()?;
        self.send_lists(work)?;
        let mut begin = 0;
        while let Some(first) = work.launches.get(begin) {
            let same = |placed: &&Placed| placed.level == first.level;
            let end = begin + work.launches[begin..].iter().take_while(same).count();
            self.launch_level(&work.launches[begin..end], work)?;
            begin = end;
        }
        self.seconds += self.device.stop_clock()?;
        Ok(())
    }

    /// Gives the spaces as many rows as the arena has, and brings what the host wrote over.
    fn send_rows(&mut self, arena: &Arena) -> Result<(), Problem> {
        let device = &mut *self.device;
        for (number, space) in self.spaces.iter_mut().enumerate() {
            let rows = arena.rows(number);
            let bytes = rows * space.row_bytes;
            let kept = space.rows * space.row_bytes;
            self.pool.grow(device, &mut space.block, bytes, kept)?;
            space.rows = space.rows.max(rows);
            for stale in space.stale.drain(..) {
                // Rows that were given back since then may be beyond the last.
                let first = u64::from(stale.first);
                let count = u64::from(stale.rows).min(rows.saturating_sub(first));
                let Some(bytes) = arena.row_range(number, first, count) else {
                    continue;
                };
                if bytes.is_empty() {
                    continue;
                }
                let to = space.block.address + first * space.row_bytes;
                // SAFETY: the space has these rows.
                unsafe { device.upload(to, bytes)? };
            }
        }
        Ok(())
    }

    /// Brings all index lists over in one copy.
    fn send_lists(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        let words = work.index.len() + work.offsets.len();
        if words == 0 {
            return Ok(());
        }
        let bytes = words * size_of::<u32>();
        let device = &mut *self.device;
        self.pool.grow(device, &mut self.index, bytes as u64, 0)?;
        let staging = device.staging(bytes)?;
        let all = work.index.iter().chain(work.offsets);
        for (place, word) in staging.chunks_exact_mut(size_of::<u32>()).zip(all) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        // SAFETY: the block has room for them.
        unsafe { device.send(self.index.address, bytes) }
    }

    /// Launches of one level run at the same time, so each has scratch of its own.
    fn make_scratch(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        let (mut most, mut level, mut bytes) = (0, None, 0);
        for placed in work.launches {
            if level != Some(placed.level) {
                (level, bytes) = (Some(placed.level), 0);
            }
            bytes += self.scratch_bytes(placed)?;
            most = bytes.max(most);
        }
        self.pool
            .grow(&mut *self.device, &mut self.scratch, most, 0)
    }

    fn scratch_bytes(&self, placed: &Placed) -> Result<u64, Problem> {
        let kernel = self.kernel_of(placed)?;
        let bytes = kernel.gpu.scratch(u64::from(placed.rows));
        Ok(bytes.next_multiple_of(ALIGNMENT))
    }

    fn kernel_of(&self, placed: &Placed) -> Result<&Kernel, Problem> {
        let kernel = self.kernels.get(placed.kernel as usize);
        kernel
            .and_then(Option::as_ref)
            .ok_or_else(|| Problem::NoCode("a kernel of load time was recorded".to_owned()))
    }

    fn launch_level(&mut self, level: &[Placed], work: &Work<'_>) -> Result<(), Problem> {
        let streams = level.len().min(STREAMS);
        if streams > 1 {
            self.device.fork(streams)?;
        }
        let mut scratch = self.scratch.address;
        for (number, placed) in level.iter().enumerate() {
            self.launch(placed, work, scratch, number % streams)?;
            scratch += self.scratch_bytes(placed)?;
        }
        if streams > 1 {
            self.device.join(streams)?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        placed: &Placed,
        work: &Work<'_>,
        scratch: u64,
        stream: usize,
    ) -> Result<(), Problem> {
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        let scratch_bytes = self.scratch_bytes(placed)?;
        let kernel = self.kernel_of(placed)?;
        self.fill_arguments(kernel, placed, work, scratch, &mut arguments);
        let rows = u64::from(placed.rows);
        let mut queue: Vec<(usize, (u32, u32), u32)> = Vec::with_capacity(kernel.functions.len());
        for (launch, functions) in kernel.gpu.launches.iter().zip(&kernel.functions) {
            let mut pairs = launch.functions.iter().zip(functions).rev();
            let chosen = pairs.find(|(function, _)| function.from_rows <= rows);
            let Some((function, number)) = chosen else {
                return Err(Problem::NoCode(format!("no function for {rows} rows")));
            };
            queue.push((*number, grid(function, rows)?, function.threads));
        }
        // SAFETY: the arguments are those that the ABI lists: spaces of the manifest, whose rows
        // were checked when the index was written, the constants, and scratch that no other launch
        // of the level has.
        unsafe {
            self.device.forget(scratch, scratch_bytes);
            for (function, grid, threads) in queue {
                self.device.launch(&Launch {
                    function,
                    grid,
                    threads,
                    arguments: &arguments,
                    stream,
                })?;
            }
        }
        self.arguments = arguments;
        Ok(())
    }

    fn fill_arguments(
        &self,
        kernel: &Kernel,
        placed: &Placed,
        work: &Work<'_>,
        scratch: u64,
        arguments: &mut Vec<u64>,
    ) {
        let word = |at: usize| self.index.address + (at * size_of::<u32>()) as u64;
        let mut lists = work.lists[placed.list_start..].iter();
        arguments.push(u64::from(placed.rows));
        for (position, operand) in kernel.operands.iter().enumerate() {
            let index = placed.index_start + position * placed.rows as usize;
            let (base, index, offsets) = match operand {
                Operand::Scalar(_) | Operand::Length => (0, word(index), 0),
                Operand::Row { space }
                | Operand::Ragged { space, .. }
                | Operand::Stacked { space, .. } => {
                    (self.spaces[*space].block.address, word(index), 0)
                }
                Operand::Rows { space } => {
                    let (offsets, rows) = lists.next().copied().unwrap_or_default();
                    let offsets = word(work.index.len() + offsets);
                    (self.spaces[*space].block.address, word(rows), offsets)
                }
            };
            arguments.extend([base, index, offsets]);
        }
        for (result, space) in kernel.results.iter().enumerate() {
            let first = u64::from(work.result_rows[placed.result_start + result]);
            let space = &self.spaces[*space];
            arguments.push(space.block.address + first * space.row_bytes);
        }
        arguments.extend(&kernel.constants);
        arguments.push(scratch);
    }

    /// Brings rows of spaces to the arena, in one copy. Each row was computed, or sent, before.
    pub fn fetch(&mut self, arena: &mut Arena, rows: &mut Vec<Region>) -> Result<(), Error> {
        rows.sort_unstable_by_key(|rows| (rows.space, rows.first, rows.rows));
        rows.dedup();
        self.pieces.clear();
        let mut length = 0;
        for region in rows.iter() {
            let space = &self.spaces[region.space];
            let (first, count) = (u64::from(region.first), u64::from(region.rows));
            if first + count > space.rows {
                return Err(Error::Internal("a row that the device has not".to_owned()));
            }
            let address = space.block.address + first * space.row_bytes;
            let bytes = count * space.row_bytes;
            if bytes == 0 {
                continue;
            }
            length += bytes as usize;
            match self.pieces.last_mut() {
                Some(last) if last.address + last.bytes == address => last.bytes += bytes,
                _ => self.pieces.push(Piece { address, bytes }),
            }
        }
        if length == 0 {
            return Ok(());
        }
        self.fetched.resize(length, 0);
        // SAFETY: the pieces are of rows that the spaces have, and as long as the room for them.
        let gathered = unsafe { self.device.gather(&self.pieces, &mut self.fetched) };
        gathered.map_err(|problem| problem.on(self.device.name()))?;
        let mut fetched = &self.fetched[..];
        for region in rows.iter() {
            let row_bytes = self.spaces[region.space].row_bytes as usize;
            let (found, rest) = fetched.split_at(row_bytes * region.rows as usize);
            if let Some(place) = arena.rows_mut(*region) {
                place.copy_from_slice(found);
            }
            fetched = rest;
        }
        Ok(())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Nothing may be in use when the device goes; whether it answers does not matter any more.
        let _ = self.device.finish();
    }
}

fn grid(function: &GpuFunction, rows: u64) -> Result<(u32, u32), Problem> {
    let (blocks, columns) = function.grid(rows);
    if blocks > MOST_BLOCKS.0 || columns > MOST_BLOCKS.1 {
        return Err(Problem::NoCode(format!(
            "{rows} rows need {blocks} blocks, more than a grid has (try a smaller --batch)"
        )));
    }
    Ok((blocks as u32, columns))
}
