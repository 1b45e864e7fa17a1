//! A graphics card as a program: the very kernels of the GPU, compiled for the host, run block by
//! block and thread by thread ([`block`]); or the text that a card's driver would be given, interpreted
//! ([`text`]).
//!
//! It is there to find mistakes, not to be fast. Memory that was not written holds bytes that no
//! number should have, allocations have guards whose bytes are looked at after every flush, and
//! threads do not run in the order of their numbers, so that what lacks a barrier computes garbage
//! and not, by luck, the right thing.

mod block;
mod calls;
mod copies;
mod text;
mod warp;
mod warpgroup;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::gpu::{
    BARRIER, CLUSTER_BARRIER, COMMIT, COPY, GRID_BARRIER, GRID_DIM, GpuClusters, GpuFlush,
    GpuFunction, MOST_CLUSTER_SHARED_BYTES, MOST_SHARED_BYTES, MULTIPLY, MULTIPLY_GROUP,
    NAMED_BARRIER, SHUFFLE, SimFn, TO_BF16_PAIR, TO_TF32, WAIT,
};

use super::queue::{Launch, Queue};
use super::{Beside, Clusters, Device, FlushGrid, Piece, Problem, TensorCores, Work};
use crate::memory::{AlignedBuffer, SLACK};
use crate::program::artifact::DeviceCode;
use crate::program::code::{CompiledCode, Program};
use calls::{
    cohort_sim_commit, cohort_sim_copy, cohort_sim_grid_dim, cohort_sim_multiply,
    cohort_sim_multiply_group, cohort_sim_named_barrier, cohort_sim_shuffle, cohort_sim_wait,
};
use text::Text;

pub use block::{Order, Threads};
pub use calls::{cohort_sim_barrier, cohort_sim_cluster_barrier, cohort_sim_grid_barrier};
pub use warp::{cohort_sim_to_bf16_pair, cohort_sim_to_tf32};

/// The functions that kernels call where they run on the simulator.
pub fn symbols() -> Vec<(&'static str, *const ())> {
    vec![
        (BARRIER, cohort_sim_barrier as *const ()),
        (NAMED_BARRIER, cohort_sim_named_barrier as *const ()),
        (GRID_DIM, cohort_sim_grid_dim as *const ()),
        (GRID_BARRIER, cohort_sim_grid_barrier as *const ()),
        (CLUSTER_BARRIER, cohort_sim_cluster_barrier as *const ()),
        (COPY, cohort_sim_copy as *const ()),
        (COMMIT, cohort_sim_commit as *const ()),
        (WAIT, cohort_sim_wait as *const ()),
        (MULTIPLY, cohort_sim_multiply as *const ()),
        (MULTIPLY_GROUP, cohort_sim_multiply_group as *const ()),
        (SHUFFLE, cohort_sim_shuffle as *const ()),
        (TO_TF32, cohort_sim_to_tf32 as *const ()),
        (TO_BF16_PAIR, cohort_sim_to_bf16_pair as *const ()),
    ]
}

/// What memory holds before it is written; as `f32`, not a number.
const POISON: u8 = 0xff;
/// Bytes before and behind each allocation, and what they hold.
const GUARD: usize = 4096;
const GUARD_BYTE: u8 = 0xa5;
/// Threads of a block, as on a real card.
const MOST_THREADS: u32 = 1024;
/// Blocks that are on the device together. So few that each computes several of a step.
const TOGETHER: u32 = 3;
/// Clusters that are there together, and parts of the instances: as many as an H200 has clusters.
const CLUSTERS: u32 = 2;
const PARTS: u32 = 8;

/// The names of both kinds, for messages.
const COMPILED: &str = "the simulated GPU";
pub(super) const OF_TEXT: &str = "the simulated GPU that interprets PTX";

/// Mishaps to simulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Bytes that the device has; any number without.
    pub memory: Option<u64>,
    /// The device dies at this launch, from 0 on.
    pub launch: Option<u64>,
}

/// The simulated device.
pub struct Sim {
    name: &'static str,
    kernels: Kernels,
    functions: Vec<Function>,
    /// What runs a whole flush, and the threads of its blocks; and the same in clusters.
    flush: Option<(Function, u32)>,
    clusters: Option<(Function, u32)>,
    together: u32,
    memory: BTreeMap<u64, Allocation>,
    used: u64,
    staging: Vec<u8>,
    gathered: Vec<u8>,
    faults: Faults,
    launches: u64,
    begun: Instant,
    is_timed: bool,
    call_seconds: Vec<f64>,
    work: Work,
}

/// What runs the functions of a program.
enum Kernels {
    Compiled(Arc<dyn CompiledCode>, Threads),
    Text(Text),
}

#[derive(Clone)]
struct Function {
    symbol: String,
    /// None where text is interpreted.
    function: Option<SimFn>,
    shared_bytes: u32,
}

struct Allocation {
    buffer: AlignedBuffer,
    bytes: usize,
}

impl Sim {
    /// For the functions of a program.
    pub fn new(program: &Program, faults: Faults) -> Sim {
        let kernels = Kernels::Compiled(program.code.clone(), Threads::default());
        Sim::with(COMPILED, kernels, faults)
    }

    /// That interprets the PTX among these codes.
    pub fn of_text(codes: &[DeviceCode], tensor_cores: TensorCores) -> Result<Sim, Problem> {
        let kernels = Kernels::Text(Text::new(codes, tensor_cores)?);
        Ok(Sim::with(OF_TEXT, kernels, Faults::default()))
    }

    fn with(name: &'static str, kernels: Kernels, faults: Faults) -> Sim {
        Sim {
            name,
            kernels,
            functions: Vec::new(),
            flush: None,
            clusters: None,
            together: TOGETHER,
            memory: BTreeMap::new(),
            used: 0,
            staging: Vec::new(),
            gathered: Vec::new(),
            faults,
            launches: 0,
            begun: Instant::now(),
            is_timed: false,
            call_seconds: Vec::new(),
            work: Work::default(),
        }
    }

    /// Whether each call is timed.
    pub fn timed(mut self, is_timed: bool) -> Sim {
        self.is_timed = is_timed;
        self
    }

    /// How many blocks are on the device together.
    pub fn with_blocks(mut self, together: u32) -> Sim {
        self.together = together.max(1);
        self
    }

    fn is_dead(&self) -> bool {
        self.faults.launch.is_some_and(|dies| self.launches > dies)
    }

    fn alive(&self) -> Result<(), Problem> {
        match self.is_dead() {
            true => Err(Problem::Lost("the simulated device died".to_owned())),
            false => Ok(()),
        }
    }

    /// Whether a range lies in one allocation.
    fn check(&self, address: u64, bytes: u64) -> Result<(), Problem> {
        let found = self.memory.range(..=address).next_back();
        let inside = found.is_some_and(|(start, allocation)| {
            address.saturating_add(bytes) <= start + (allocation.bytes + SLACK) as u64
        });
        match inside || bytes == 0 {
            true => Ok(()),
            false => Err(Problem::Lost(format!(
                "{bytes} bytes at {address:#x} are not the program's"
            ))),
        }
    }

    fn find(
        &self,
        symbol: &str,
        threads: u32,
        (shared_bytes, most): (u32, u32),
    ) -> Result<Function, Problem> {
        if threads > MOST_THREADS || shared_bytes > most {
            return Err(Problem::NoCode(format!(
                "`{symbol}` has {threads} threads and {shared_bytes} bytes of shared memory a \
                 block; a GPU has {MOST_THREADS} and {most}"
            )));
        }
        let function = match &self.kernels {
            Kernels::Text(text) => {
                text.check(symbol, shared_bytes)?;
                None
            }
            Kernels::Compiled(code, _) => {
                let Some(address) = code.symbol(symbol) else {
                    return Err(Problem::NoCode(format!(
                        "the program was compiled without `{symbol}` for the simulator"
                    )));
                };
                // SAFETY: `CompiledCode` promises that a function of the manifest's GPU kernels is a
                // `SimFn`.
                Some(unsafe { std::mem::transmute::<*const (), SimFn>(address) })
            }
        };
        Ok(Function {
            symbol: symbol.to_owned(),
            function,
            shared_bytes,
        })
    }

    /// Forgets what is in a call's scratch.
    fn clear_scratch(&self, Piece { address, bytes }: Piece) {
        if self.check(address, bytes).is_ok() && bytes > 0 {
            // SAFETY: the range is this device's, and nobody needs what is there.
            unsafe { std::ptr::write_bytes(address as *mut u8, POISON, bytes as usize) };
        }
    }

    /// # Safety
    ///
    /// As for [`Device::run`].
    unsafe fn launch(&mut self, launch: &Launch, arguments: &[u64]) -> Result<(), Problem> {
        self.launches += 1;
        self.work.launches += 1;
        self.alive()?;
        let function = &self.functions[launch.function];
        let shared = function.shared_bytes as usize;
        let run = match (&mut self.kernels, function.function) {
            (Kernels::Text(text), _) => {
                let threads = launch.threads;
                let (symbol, memory) = (&function.symbol, &mut self.memory);
                let block = (launch.grid, threads, function.shared_bytes);
                text.run(symbol, block, None, arguments, memory)
            }
            // SAFETY: the caller's promise.
            (Kernels::Compiled(_, threads), Some(found)) => unsafe {
                threads.run(found, launch, arguments, shared, POISON)
            },
            (Kernels::Compiled(..), None) => Err("it was not compiled".to_owned()),
        };
        run.map_err(|problem| Problem::Lost(format!("`{}`: {problem}", function.symbol)))
    }
}

impl Device for Sim {
    fn name(&self) -> &str {
        self.name
    }

    fn processors(&self) -> u32 {
        self.together
    }

    fn beside(&mut self, constants: &[Piece]) -> Result<Option<Beside>, Problem> {
        // Mishaps are counted of one device.
        if self.faults != Faults::default() {
            return Ok(None);
        }
        let kernels = match &self.kernels {
            Kernels::Compiled(code, _) => Kernels::Compiled(code.clone(), Threads::default()),
            Kernels::Text(text) => Kernels::Text(text.clone()),
        };
        let mut beside = Sim {
            functions: self.functions.clone(),
            flush: self.flush.clone(),
            clusters: self.clusters.clone(),
            together: self.together,
            is_timed: self.is_timed,
            ..Sim::with(self.name, kernels, self.faults)
        };
        let mut addresses = Vec::with_capacity(constants.len());
        for piece in constants {
            self.check(piece.address, piece.bytes)?;
            let to = beside.allocate(piece.bytes)?;
            // SAFETY: both ranges are of that many bytes, one of each device.
            unsafe {
                let from = piece.address as *const u8;
                std::ptr::copy_nonoverlapping(from, to as *mut u8, piece.bytes as usize);
            }
            addresses.push(to);
        }
        Ok(Some((Box::new(beside), addresses)))
    }

    fn free_memory(&mut self) -> Result<u64, Problem> {
        let all = self.faults.memory.unwrap_or(u64::MAX);
        Ok(all.saturating_sub(self.used))
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, Problem> {
        self.alive()?;
        let room = self.free_memory()?;
        let too_much = Problem::OutOfMemory { bytes, room };
        let length = usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= room)
            .and_then(|bytes| bytes.checked_add(2 * GUARD + SLACK));
        let Some(length) = length else {
            return Err(too_much);
        };
        let Ok(mut buffer) = AlignedBuffer::zeroed(length, "the simulated GPU") else {
            return Err(too_much);
        };
        let bytes = bytes as usize;
        let all = &mut buffer.bytes_mut()[..length];
        all.fill(GUARD_BYTE);
        all[GUARD..GUARD + bytes + SLACK].fill(POISON);
        let address = buffer.address() as u64 + GUARD as u64;
        self.used += bytes as u64;
        self.memory.insert(address, Allocation { buffer, bytes });
        Ok(address)
    }

    unsafe fn free(&mut self, address: u64) {
        if let Some(allocation) = self.memory.remove(&address) {
            self.used -= allocation.bytes as u64;
        }
    }

    fn function(&mut self, function: &GpuFunction) -> Result<usize, Problem> {
        let GpuFunction {
            symbol,
            threads,
            shared_bytes,
            ..
        } = function;
        let found = self.find(symbol, *threads, (*shared_bytes, MOST_SHARED_BYTES))?;
        self.functions.push(found);
        Ok(self.functions.len() - 1)
    }

    fn function_if_there(&mut self, function: &GpuFunction) -> Result<Option<usize>, Problem> {
        let is_there = match &self.kernels {
            Kernels::Text(text) => text.has(&function.symbol),
            Kernels::Compiled(code, _) => code.symbol(&function.symbol).is_some(),
        };
        if !is_there {
            return Ok(None);
        }
        let GpuFunction {
            symbol,
            threads,
            shared_bytes,
            ..
        } = function;
        let block = (*shared_bytes, MOST_CLUSTER_SHARED_BYTES);
        self.functions.push(self.find(symbol, *threads, block)?);
        Ok(Some(self.functions.len() - 1))
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], Problem> {
        self.alive()?;
        if self.staging.len() < bytes {
            self.staging.resize(bytes, 0);
        }
        Ok(&mut self.staging[..bytes])
    }

    unsafe fn send(&mut self, to: u64, part: Range<usize>) -> Result<(), Problem> {
        self.alive()?;
        let Some(bytes) = self.staging.get(part) else {
            return Err(Problem::Lost("more was sent than was staged".to_owned()));
        };
        self.check(to, bytes.len() as u64)?;
        // SAFETY: the range is this device's, and not of the staging memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        self.work.copies.sent(bytes.len());
        Ok(())
    }

    unsafe fn upload(&mut self, to: u64, bytes: &[u8]) -> Result<(), Problem> {
        self.alive()?;
        self.check(to, bytes.len() as u64)?;
        // SAFETY: the range is this device's, and not of the host's rows.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        self.work.copies.sent(bytes.len());
        Ok(())
    }

    unsafe fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), Problem> {
        self.alive()?;
        self.check(to, bytes)?;
        self.check(from, bytes)?;
        // SAFETY: both ranges are this device's; the caller promises that they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize);
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Problem> {
        self.begun = Instant::now();
        self.alive()
    }

    unsafe fn run(&mut self, queue: &Queue) -> Result<(), Problem> {
        self.call_seconds.clear();
        for (call, launches, arguments) in queue.waves().flatten() {
            let begin = Instant::now();
            self.clear_scratch(call.scratch);
            for launch in launches {
                // SAFETY: the caller's promise.
                unsafe { self.launch(launch, arguments)? };
            }
            if self.is_timed {
                self.call_seconds.push(begin.elapsed().as_secs_f64());
            }
        }
        self.work.seconds += self.begun.elapsed().as_secs_f64();
        Ok(())
    }

    fn prepare_flush(&mut self, flush: &GpuFlush) -> Result<Option<u32>, Problem> {
        if self.is_timed {
            return Ok(None);
        }
        let GpuFlush {
            symbol,
            threads,
            shared_bytes,
            ..
        } = flush;
        let found = self.find(symbol, *threads, (*shared_bytes, MOST_SHARED_BYTES))?;
        self.flush = Some((found, *threads));
        Ok(Some(self.together))
    }

    fn prepare_clusters(
        &mut self,
        clusters: &GpuClusters,
        threads: u32,
    ) -> Result<Option<Clusters>, Problem> {
        let GpuClusters {
            symbol,
            shared_bytes,
            ..
        } = clusters;
        let is_there = match &self.kernels {
            Kernels::Text(text) => text.has(symbol),
            Kernels::Compiled(..) => true,
        };
        if self.is_timed || !is_there {
            return Ok(None);
        }
        let found = self.find(symbol, threads, (*shared_bytes, MOST_CLUSTER_SHARED_BYTES))?;
        self.clusters = Some((found, threads));
        Ok(Some(Clusters {
            count: CLUSTERS,
            parts: PARTS,
        }))
    }

    unsafe fn run_flush(
        &mut self,
        schedule: u64,
        grid: FlushGrid,
        _: &Queue,
        scratch: Piece,
    ) -> Result<(), Problem> {
        self.call_seconds.clear();
        self.clear_scratch(scratch);
        self.launches += 1;
        self.work.launches += 1;
        self.alive()?;
        // The blocks that wait for each other are all, or those of a cluster.
        let (flush, blocks, team) = match grid {
            FlushGrid::Blocks(blocks) => (&self.flush, blocks, blocks),
            FlushGrid::Clusters(count) => (&self.clusters, count * CLUSTER_BLOCKS, CLUSTER_BLOCKS),
        };
        let Some((flush, threads)) = flush else {
            return Err(Problem::NoCode("no function runs a flush".to_owned()));
        };
        let shared = flush.shared_bytes as usize;
        let run = match (&mut self.kernels, flush.function) {
            (Kernels::Text(text), _) => {
                let (symbol, memory) = (&flush.symbol, &mut self.memory);
                let block = ((blocks, 1), *threads, flush.shared_bytes);
                text.run(symbol, block, Some(team), &[schedule], memory)
            }
            // SAFETY: the caller's promise.
            (Kernels::Compiled(_, running), Some(found)) => unsafe {
                let grid = (blocks, team, *threads);
                running.run_together(found, grid, &[schedule], shared, POISON)
            },
            (Kernels::Compiled(..), None) => Err("it was not compiled".to_owned()),
        };
        run.map_err(|problem| Problem::Lost(format!("`{}`: {problem}", flush.symbol)))?;
        self.work.seconds += self.begun.elapsed().as_secs_f64();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.alive()?;
        for (address, allocation) in &self.memory {
            let all = allocation.buffer.bytes();
            let behind = GUARD + allocation.bytes + SLACK;
            let intact = |guard: &[u8]| guard.iter().all(|byte| *byte == GUARD_BYTE);
            if !intact(&all[..GUARD]) || !intact(&all[behind..behind + GUARD]) {
                return Err(Problem::Lost(format!(
                    "a kernel wrote outside of the {} bytes at {address:#x}",
                    allocation.bytes
                )));
            }
        }
        Ok(())
    }

    unsafe fn gather(&mut self, pieces: &[Piece]) -> Result<&[u8], Problem> {
        self.finish()?;
        let begin = Instant::now();
        self.gathered.clear();
        for piece in pieces {
            self.check(piece.address, piece.bytes)?;
            // SAFETY: the range is this device's, and all of it was written, if only with what is no
            // number.
            let bytes = unsafe {
                std::slice::from_raw_parts(piece.address as *const u8, piece.bytes as usize)
            };
            self.gathered.extend_from_slice(bytes);
        }
        self.work.copies.fetched(self.gathered.len());
        self.work.fetch_seconds += begin.elapsed().as_secs_f64();
        Ok(&self.gathered)
    }

    fn call_seconds(&mut self) -> Result<&[f64], Problem> {
        Ok(&self.call_seconds)
    }

    fn work(&self) -> Work {
        self.work
    }

    fn clear_work(&mut self) {
        self.work = Work::default();
    }
}
