//! NVIDIA's driver interface, by `cudarc`, which loads the driver's library when it is first used.
//!
//! Whether there is one is asked before anything else: without it every other call would panic.

mod clock;
mod code;
mod cooperative;
mod driver;
mod gather;
mod graphs;
mod memory;
mod pinned;
mod streams;

use std::ops::Range;
use std::sync::Arc;

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::gpu::{GpuClusters, GpuFlush, GpuFunction};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute};

use super::queue::Queue;
use super::{Beside, Clusters, Device, FlushGrid, Options, Piece, Problem, Work};
use crate::error::Error;
use crate::memory::SLACK;
use crate::program::artifact::DeviceCode;
use clock::{Clock, Seconds, Span};
use cooperative::Cooperative;
use driver::{Function, attribute, first_device, function, function_if_there, load_first, problem};
use gather::Gather;
use graphs::Graphs;
use memory::Memory;
use pinned::Staging;
use streams::Streams;

/// Of what is uploaded, as much as is sent at once.
const PIECE_BYTES: usize = 4 << 20;

/// A card's primary context, retained until this is dropped.
struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Context, Problem> {
        // SAFETY: the device is one that the driver gave; the context is released when this is dropped.
        let raw = unsafe { result::primary_ctx::retain(device) }.map_err(problem)?;
        Ok(Context { device, raw })
    }

    /// Makes it the calling thread's.
    fn set_current(&self) -> Result<(), Problem> {
        // SAFETY: it is retained.
        unsafe { result::ctx::set_current(self.raw) }.map_err(problem)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nobody works in it any more.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A module on a card, which all have that work with it beside each other.
struct Loaded {
    module: sys::CUmodule,
    context: Context,
    /// Multiprocessors of the card.
    processors: u32,
}

// SAFETY: the driver's handles of a device, its context and a module are for any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above, and nothing is written there.
unsafe impl Sync for Loaded {}

/// A graphics card.
pub struct Cuda {
    name: String,
    loaded: Arc<Loaded>,
    options: Options,
    streams: Streams,
    clock: Clock,
    functions: Vec<Function>,
    /// What runs a whole flush, where the card can.
    flush: Option<Cooperative>,
    /// The same with clusters.
    clusters: Option<Cooperative>,
    memory: Memory,
    staging: Staging,
    gather: Gather,
    graphs: Graphs,
    /// But for times and graphs.
    work: Work,
}

fn capability_of(device: sys::CUdevice) -> Result<(u32, u32), Problem> {
    use CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let asked = |wanted| Ok(attribute(device, wanted)? as u32);
    Ok((asked(MAJOR)?, asked(MINOR)?))
}

/// Multiprocessors of a card.
fn processors_of(device: sys::CUdevice) -> Result<u32, Problem> {
    let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    Ok(attribute(device, count)?.unsigned_abs())
}

impl Cuda {
    /// Whether there is a driver that is new enough, and a device.
    pub fn probe() -> Result<(), Error> {
        first_device().map(drop)
    }

    /// The compute capability of the first device that the driver shows; nothing where there is none.
    pub fn capability() -> Option<(u32, u32)> {
        let (device, _) = first_device().ok()?;
        capability_of(device).ok()
    }

    /// The first device that the driver shows (`CUDA_VISIBLE_DEVICES`), with the best of these codes
    /// for it.
    pub fn open(codes: &[DeviceCode], options: Options) -> Result<Cuda, Error> {
        let (device, name) = first_device()?;
        let on_device = |problem: Problem| problem.on(&name);
        let capability = capability_of(device).map_err(on_device)?;
        let codes = code::choose(codes, capability).map_err(on_device)?;
        Cuda::prepare(device, name.clone(), &codes, options).map_err(on_device)
    }

    fn prepare(
        device: sys::CUdevice,
        name: String,
        codes: &[&DeviceCode],
        options: Options,
    ) -> Result<Cuda, Problem> {
        let context = Context::retain(device)?;
        context.set_current()?;
        let loaded = Arc::new(Loaded {
            module: load_first(codes)?,
            context,
            processors: processors_of(device)?,
        });
        Cuda::with(loaded, name, options)
    }

    /// With streams and memory of its own, for the thread whose context is the module's.
    fn with(loaded: Arc<Loaded>, name: String, options: Options) -> Result<Cuda, Problem> {
        let streams = Streams::new().map_err(problem)?;
        Ok(Cuda {
            name,
            options,
            clock: Clock::default(),
            functions: Vec::new(),
            flush: None,
            clusters: None,
            memory: Memory::new(loaded.context.device, streams.first()),
            loaded,
            streams,
            staging: Staging::new().map_err(problem)?,
            gather: Gather::new(),
            graphs: Graphs::default(),
            work: Work::default(),
        })
    }

    /// Makes the device that of this thread.
    fn enter(&self) -> Result<(), Problem> {
        self.loaded.context.set_current()
    }

    fn wait(&mut self) -> Result<(), Problem> {
        self.streams.wait().map_err(problem)?;
        self.clock.read().map_err(problem)
    }
}

impl Device for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn processors(&self) -> u32 {
        self.loaded.processors
    }

    fn beside(&mut self, constants: &[Piece]) -> Result<Option<Beside>, Problem> {
        self.enter()?;
        // The constants are there before another stream reads them.
        self.wait()?;
        let mut beside = Cuda::with(self.loaded.clone(), self.name.clone(), self.options)?;
        beside.functions.clone_from(&self.functions);
        beside.flush = self.flush;
        beside.clusters = self.clusters;
        let addresses = constants.iter().map(|piece| piece.address);
        Ok(Some((Box::new(beside), addresses.collect())))
    }

    fn free_memory(&mut self) -> Result<u64, Problem> {
        self.enter()?;
        Ok(result::mem_get_info().map_err(problem)?.0 as u64)
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, Problem> {
        self.enter()?;
        let length = (bytes as usize).saturating_add(SLACK);
        // SAFETY: the memory is written before it is read, but for the slack, which may be read and
        // holds anything. All that uses it is queued behind this.
        let found = unsafe { self.memory.allocate(length, self.streams.first()) };
        match found.map_err(problem)? {
            Some(address) => Ok(address),
            None => {
                let room = self.free_memory()?;
                Err(Problem::OutOfMemory { bytes, room })
            }
        }
    }

    unsafe fn free(&mut self, address: u64) {
        if self.enter().is_ok() {
            // SAFETY: the caller's promise.
            unsafe { self.memory.free(address, self.streams.first()) };
        }
    }

    fn function(&mut self, wanted: &GpuFunction) -> Result<usize, Problem> {
        self.enter()?;
        let found = function(self.loaded.module, &wanted.symbol, wanted.shared_bytes)?;
        self.functions.push(found);
        Ok(self.functions.len() - 1)
    }

    fn function_if_there(&mut self, wanted: &GpuFunction) -> Result<Option<usize>, Problem> {
        self.enter()?;
        let found = function_if_there(self.loaded.module, &wanted.symbol, wanted.shared_bytes)?;
        Ok(found.map(|found| {
            self.functions.push(found);
            self.functions.len() - 1
        }))
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], Problem> {
        self.enter()?;
        self.staging.room(bytes).map_err(problem)
    }

    unsafe fn send(&mut self, to: u64, part: Range<usize>) -> Result<(), Problem> {
        self.work.copies.sent(part.len());
        // SAFETY: the caller's promise.
        unsafe { self.staging.send(to, part, self.streams.first()) }.map_err(problem)
    }

    unsafe fn upload(&mut self, to: u64, bytes: &[u8]) -> Result<(), Problem> {
        // While a piece is sent, the next is copied to the other block of the staging memory.
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            self.staging(piece.len())?.copy_from_slice(piece);
            let to = to + (number * PIECE_BYTES) as u64;
            // SAFETY: the caller's promise.
            unsafe { self.send(to, 0..piece.len())? };
        }
        Ok(())
    }

    unsafe fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), Problem> {
        self.enter()?;
        // SAFETY: the caller's promise.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.streams.first()) }
            .map_err(problem)
    }

    fn begin(&mut self) -> Result<(), Problem> {
        self.enter()?;
        self.clock.begin(self.streams.first()).map_err(problem)
    }

    unsafe fn run(&mut self, queue: &Queue) -> Result<(), Problem> {
        self.enter()?;
        let (functions, stream) = (&self.functions[..], self.streams.first());
        self.work.launches += queue.launch_count() as u64;
        // SAFETY: the caller's promise.
        unsafe {
            if self.options.times {
                let clock = &mut self.clock;
                self.streams
                    .launch_timed(queue, functions, clock)
                    .map_err(problem)?;
            } else {
                let in_graph = self.options.graphs
                    && (self.graphs.launch(queue, functions, stream)).map_err(problem)?;
                if !in_graph {
                    self.streams.launch(queue, functions).map_err(problem)?;
                }
            }
        }
        self.clock.end(Span::Flush, stream).map_err(problem)
    }

    fn prepare_flush(&mut self, flush: &GpuFlush) -> Result<Option<u32>, Problem> {
        self.enter()?;
        if !self.options.times {
            let device = (self.loaded.context.device, self.loaded.processors);
            self.flush = Cooperative::new(device, self.loaded.module, flush)?;
        }
        Ok(self.flush.as_ref().map(|flush| flush.blocks))
    }

    fn prepare_clusters(
        &mut self,
        clusters: &GpuClusters,
        threads: u32,
    ) -> Result<Option<Clusters>, Problem> {
        self.enter()?;
        let (device, module) = (self.loaded.context.device, self.loaded.module);
        if !self.options.times {
            self.clusters = Cooperative::of_clusters(device, module, (clusters, threads))?;
        }
        Ok(self.clusters.as_ref().map(|found| {
            let count = found.blocks / CLUSTER_BLOCKS;
            let parts = count;
            Clusters { count, parts }
        }))
    }

    unsafe fn run_flush(
        &mut self,
        schedule: u64,
        grid: FlushGrid,
        queue: &Queue,
        _: Piece,
    ) -> Result<(), Problem> {
        self.enter()?;
        let stream = self.streams.first();
        let (flush, blocks) = match grid {
            FlushGrid::Blocks(blocks) => (&mut self.flush, blocks),
            FlushGrid::Clusters(count) => (&mut self.clusters, count * CLUSTER_BLOCKS),
        };
        let launched = match flush {
            // SAFETY: the caller's promise.
            Some(found) => unsafe { found.launch(schedule, blocks, stream) }.map_err(problem)?,
            None => false,
        };
        if !launched {
            *flush = None;
            // SAFETY: the caller's promise.
            return unsafe { self.run(queue) };
        }
        self.work.launches += 1;
        self.clock.end(Span::Flush, stream).map_err(problem)
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.enter()?;
        self.wait()
    }

    unsafe fn gather(&mut self, pieces: &[Piece]) -> Result<&[u8], Problem> {
        self.enter()?;
        let stream = self.streams.first();
        self.clock.begin(stream).map_err(problem)?;
        // SAFETY: the caller's promise. What was gathered before was waited for.
        let copies = unsafe { self.gather.queue(pieces, &mut self.memory, stream) };
        let copies = copies.map_err(problem)?;
        self.clock.end(Span::Fetch, stream).map_err(problem)?;
        self.wait()?;
        let brought = self.gather.brought(pieces);
        self.work.copies.to_host += copies;
        self.work.copies.bytes_to_host += brought.len() as u64;
        Ok(brought)
    }

    fn call_seconds(&mut self) -> Result<&[f64], Problem> {
        if self.options.times {
            self.finish()?;
        }
        Ok(&self.clock.calls)
    }

    fn work(&self) -> Work {
        let Seconds {
            flushes,
            lists,
            fetches,
        } = self.clock.seconds;
        Work {
            seconds: flushes,
            list_seconds: lists,
            fetch_seconds: fetches,
            graphs: self.graphs.stats,
            ..self.work
        }
    }

    fn clear_work(&mut self) {
        self.work = Work::default();
        self.clock.seconds = Seconds::default();
        self.graphs.stats = Default::default();
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // A device that has died takes nothing back, and there is nothing to be done about it.
        if self.enter().is_err() {
            return;
        }
        // SAFETY: everything is this one's, was waited for, and is not used after this.
        unsafe {
            let _ = result::ctx::synchronize();
            self.graphs.destroy();
            self.gather.destroy();
            self.memory.destroy(self.streams.first());
            self.staging.destroy();
            self.clock.destroy();
            self.streams.destroy();
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.set_current().is_ok() {
            // SAFETY: nobody works with the module any more.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
