//! Devices that kernels can run on beside the processor: the graphics card, and a simulator of one.
//!
//! ```text
//! Executor ──► Runner      row pools, constants and index lists in the device's memory; one flush
//!                ├ MemoryPool  what is allocated, within a limit
//!                ├ Queue   what a flush launches
//!                ├ Schedule  the same for one launch, where that is worth while
//!                └ Device  copies and launches
//!                    ├ Cuda   the driver, loaded when it is asked for
//!                    └ Sim    host memory; kernels that are compiled for the host, or the text of a card's
//! ```
//!
//! The control program, the schedule and the numbers of all rows stay on the host: the executor's
//! arena is a mirror of the device's, of which inputs are sent and results brought back.
//! [`cohort_abi::gpu`] says what a launch is given.

mod blocks;
mod cuda;
mod persistent;
mod pool;
pub mod queue;
pub mod runner;
mod schedule;
pub mod sim;

use std::fmt;
use std::ops::Range;

use cohort_abi::gpu::{GpuClusters, GpuFlush, GpuFunction};

pub use cohort_ptx::TensorCores;
pub use cuda::Cuda;
pub use sim::{Faults, Sim};

use crate::error::Error;
use crate::program::code::Program;
use crate::report::stats::{Copies, GraphStats};
use queue::Queue;

/// Where kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// On the processor.
    #[default]
    Cpu,
    /// On the first graphics card that NVIDIA's driver shows.
    Cuda,
    /// On the simulator of a graphics card, in the host's memory.
    GpuSim,
    /// There, but the text for a card is interpreted.
    PtxSim,
}

/// Whether there is a device of that kind, before anything is done for it.
pub fn probe(kind: DeviceKind) -> Result<(), Error> {
    match kind {
        DeviceKind::Cpu | DeviceKind::GpuSim | DeviceKind::PtxSim => Ok(()),
        DeviceKind::Cuda => Cuda::probe(),
    }
}

/// How a device works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether a flush of a form that came before is launched as a graph, where there are graphs.
    pub graphs: bool,
    /// Whether each call is timed; they run one after another then.
    pub times: bool,
    /// Whether a batch is recorded while the one before it is computed.
    pub overlap: bool,
    /// Whether decisions are guessed: see [`crate::speculation`].
    pub speculation: bool,
    /// How tensor cores add, where PTX is interpreted.
    pub tensor_cores: TensorCores,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            graphs: true,
            times: false,
            overlap: true,
            speculation: true,
            tensor_cores: TensorCores::default(),
        }
    }
}

/// The device of a kind for a program; none for the processor.
pub fn open(
    kind: DeviceKind,
    program: &Program,
    options: Options,
) -> Result<Option<Box<dyn Device>>, Error> {
    Ok(match kind {
        DeviceKind::Cpu => None,
        DeviceKind::Cuda => Some(Box::new(Cuda::open(&program.device_code, options)?)),
        DeviceKind::GpuSim => Some(Box::new(
            Sim::new(program, Faults::default()).timed(options.times),
        )),
        DeviceKind::PtxSim => {
            let sim = Sim::of_text(&program.device_code, options.tensor_cores);
            let sim = sim.map_err(|problem| problem.on(sim::OF_TEXT))?;
            Some(Box::new(sim.timed(options.times)))
        }
    })
}

/// Clusters of blocks that a device has together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// How many.
    pub count: u32,
    /// Into how many parts instances are divided for them: a cluster that has several computes one after another.
    pub parts: u32,
}

/// What is launched for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushGrid {
    /// So many blocks of the function without clusters.
    Blocks(u32),
    /// So many clusters.
    Clusters(u32),
}

/// What a device did and how long it took, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// From [`Device::begin`] to the end of the launches, over all flushes.
    pub seconds: f64,
    /// Of these, until the first launch began; only where calls are timed.
    pub list_seconds: f64,
    /// Bringing rows together and to the host.
    pub fetch_seconds: f64,
    /// Functions that were launched, those in graphs included.
    pub launches: u64,
    /// Copies between host and device.
    pub copies: Copies,
    /// Flushes that were launched as a graph.
    pub graphs: GraphStats,
}

/// What a device can do. Addresses are of its memory; whatever is queued is done in that order.
///
/// # Safety
///
/// Of every unsafe method: ranges that are read or written lie in memory that was allocated and not
/// freed, and a launch is one of a program's kernel with arguments as [`cohort_abi::gpu`] lists them.
pub trait Device {
    /// For messages: `NVIDIA H200 (cuda:0)`.
    fn name(&self) -> &str;

    /// How many blocks it runs at the least at the same time: its multiprocessors.
    fn processors(&self) -> u32;

    /// Another one of the same device, which works at the same time as this one and whose functions have the same numbers.
    /// These constants, which nobody writes any more, lie there at the addresses that it gives. Nothing where there is
    /// no other.
    fn beside(&mut self, constants: &[Piece]) -> Result<Option<Beside>, Problem>;

    /// Bytes that may be allocated at present.
    fn free_memory(&mut self) -> Result<u64, Problem>;

    /// Memory at a multiple of 256, not initialised, with [`crate::memory::SLACK`] readable bytes
    /// behind it.
    fn allocate(&mut self, bytes: u64) -> Result<u64, Problem>;

    /// Gives memory back when what is queued is done.
    ///
    /// # Safety
    ///
    /// Nothing that is queued after this uses the memory.
    unsafe fn free(&mut self, address: u64);

    /// The number of a function, for [`queue::Launch::function`].
    fn function(&mut self, function: &GpuFunction) -> Result<usize, Problem>;

    /// The same of one that is in code for some devices only; none where the device's code has no such function.
    fn function_if_there(&mut self, function: &GpuFunction) -> Result<Option<usize>, Problem>;

    /// Host memory that [`Device::send`] copies from. What was sent from it before has arrived.
    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], Problem>;

    /// Queues a copy of a part of the staging memory that was asked for last.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn send(&mut self, to: u64, part: Range<usize>) -> Result<(), Problem>;

    /// Copies from the host, any number of bytes; they are not needed any more when this returns, and what
    /// the staging memory held is lost.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn upload(&mut self, to: u64, bytes: &[u8]) -> Result<(), Problem>;

    /// Queues a copy within the device's memory; the ranges do not overlap.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), Problem>;

    /// A flush begins: its time on the device counts from here to the end of its launches.
    fn begin(&mut self) -> Result<(), Problem>;

    /// Queues all launches of a flush. What is in a call's scratch nobody needs any more.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn run(&mut self, queue: &Queue) -> Result<(), Problem>;

    /// Gets ready to run flushes by one launch each. As many blocks are on the device together as it
    /// says; none where launches have to be one by one.
    fn prepare_flush(&mut self, flush: &GpuFlush) -> Result<Option<u32>, Problem>;

    /// The same of the function whose blocks form clusters; nothing where the device has no clusters, or no such function.
    fn prepare_clusters(
        &mut self,
        clusters: &GpuClusters,
        threads: u32,
    ) -> Result<Option<Clusters>, Problem>;

    /// Queues all launches of a flush as one, no larger than [`Device::prepare_flush`] or [`Device::prepare_clusters`] said.
    /// What is in the calls' scratch nobody needs any more.
    ///
    /// # Safety
    ///
    /// See [`Device`]; at the address is a schedule of the queue, as [`cohort_abi::gpu::flush`] has it.
    unsafe fn run_flush(
        &mut self,
        schedule: u64,
        grid: FlushGrid,
        queue: &Queue,
        scratch: Piece,
    ) -> Result<(), Problem>;

    /// Waits for all that is queued.
    fn finish(&mut self) -> Result<(), Problem>;

    /// Brings pieces of memory to the host, one after another, in one copy; they stay until the next
    /// time.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn gather(&mut self, pieces: &[Piece]) -> Result<&[u8], Problem>;

    /// How long each call of the last [`Device::run`] took, in its order; empty unless calls are timed.
    /// Waits for all that is queued.
    fn call_seconds(&mut self) -> Result<&[f64], Problem>;

    /// What was done since the last [`Device::clear_work`]; times are of what was waited for.
    fn work(&self) -> Work;

    /// Sets what [`Device::work`] tells to zero.
    fn clear_work(&mut self);
}

/// A device beside another one, and where constants of that one are.
pub type Beside = (Box<dyn Device>, Vec<u64>);

/// A piece of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub address: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
}

/// What a device says no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is none, or none that can be used.
    Absent(String),
    /// It has no kernels for this program, or not all.
    NoCode(String),
    /// `bytes` bytes were wanted and `room` are left.
    OutOfMemory {
        /// Bytes that were wanted.
        bytes: u64,
        /// Bytes that are left within the limit.
        room: u64,
    },
    /// Nor for what was wanted, whose size it does not tell.
    Full(String),
    /// A copy or a launch went wrong; nothing on the device can be relied on after it.
    Lost(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Absent(why) | Problem::NoCode(why) => f.write_str(why),
            Problem::OutOfMemory { bytes, room } => write!(
                f,
                "it has no memory left: {bytes} bytes are needed and {room} are free (try a smaller \
                 --batch, or a larger --device-memory)"
            ),
            Problem::Full(why) => write!(f, "it has no memory left: {why}"),
            Problem::Lost(why) => write!(f, "it stopped working: {why}"),
        }
    }
}

impl Problem {
    /// As an error of the run, on the device of this name.
    pub fn on(self, device: &str) -> Error {
        Error::Device {
            device: device.to_owned(),
            problem: self,
        }
    }
}
