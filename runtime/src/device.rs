//! Devices that kernels can run on beside the processor: the graphics card, and a simulator of one.
//!
//! ```text
//! Executor ──► Runner      spaces, constants and index lists in the device's memory; one flush
//!                ├ Pool    what is allocated, within a limit
//!                └ Device  copies and launches
//!                    ├ Cuda   the driver, loaded when it is asked for
//!                    └ Sim    host memory; blocks and threads as loops and coroutines
//! ```
//!
//! The control program, the schedule and the numbers of all rows stay on the host: the executor's
//! arena is a mirror of the device's, of which inputs are sent and results brought back.
//! [`cohort_abi::gpu`] says what a launch is given.

mod cuda;
mod pool;
pub mod runner;
mod sim;

use std::fmt;

use cohort_abi::gpu::GpuFunction;

pub use cuda::Cuda;
pub use sim::{Faults, Sim, cohort_sim_barrier};

use crate::code::Program;
use crate::error::Error;

/// Where kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    #[default]
    Cpu,
    Cuda,
    GpuSim,
}

/// Whether there is a device of that kind, before anything is done for it.
pub fn probe(kind: DeviceKind) -> Result<(), Error> {
    match kind {
        DeviceKind::Cpu | DeviceKind::GpuSim => Ok(()),
        DeviceKind::Cuda => Cuda::probe(),
    }
}

/// The device of a kind for a program; none for the processor.
pub fn open(kind: DeviceKind, program: &Program) -> Result<Option<Box<dyn Device>>, Error> {
    Ok(match kind {
        DeviceKind::Cpu => None,
        DeviceKind::Cuda => Some(Box::new(Cuda::open(&program.device_code)?)),
        DeviceKind::GpuSim => Some(Box::new(Sim::new(program, Faults::default()))),
    })
}

/// Streams that independent launches are spread over.
pub const STREAMS: usize = 4;

/// What a device can do. Addresses are of its memory; whatever is queued runs in order on stream 0
/// but for launches between [`Device::fork`] and [`Device::join`].
///
/// # Safety
///
/// Of every unsafe method: ranges that are read or written lie in memory that was allocated and not
/// freed, and a launch is one of a program's kernel with arguments as [`cohort_abi::gpu`] lists them.
pub trait Device {
    /// For messages: `NVIDIA H200 (cuda:0)`.
    fn name(&self) -> &str;

    /// Bytes that may be allocated at present.
    fn free_memory(&mut self) -> Result<u64, Problem>;

    /// Memory at a multiple of 256, not initialised, with [`crate::memory::SLACK`] readable bytes
    /// behind it.
    fn allocate(&mut self, bytes: u64) -> Result<u64, Problem>;

    /// # Safety
    ///
    /// See [`Device`]; nothing that is queued uses the memory.
    unsafe fn free(&mut self, address: u64, bytes: u64);

    /// The number of a function, for [`Launch::function`].
    fn function(&mut self, function: &GpuFunction) -> Result<usize, Problem>;

    /// Host memory that [`Device::send`] copies from; what was sent before has arrived.
    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], Problem>;

    /// Queues one copy of the first bytes of the staging memory.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn send(&mut self, to: u64, bytes: usize) -> Result<(), Problem>;

    /// Copies from the host; returns when it is done.
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

    /// Nobody needs what is there any more: a simulator makes it unlike anything that was.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn forget(&mut self, address: u64, bytes: u64) {
        let _ = (address, bytes);
    }

    /// Lets that many streams begin when all that is queued is done.
    fn fork(&mut self, streams: usize) -> Result<(), Problem>;

    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// See [`Device`].
    unsafe fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Problem>;

    /// Lets what is queued after this wait for the streams of the last [`Device::fork`].
    fn join(&mut self, streams: usize) -> Result<(), Problem>;

    /// Notes the time on the device when all that is queued is done.
    fn start_clock(&mut self) -> Result<(), Problem>;

    /// Waits for all that is queued; gives the seconds since the clock was started.
    fn stop_clock(&mut self) -> Result<f64, Problem>;

    /// Waits for all that is queued.
    fn finish(&mut self) -> Result<(), Problem>;

    /// Brings pieces of memory to the host, one after another, in one copy.
    ///
    /// # Safety
    ///
    /// See [`Device`]; `to` has as many bytes as the pieces.
    unsafe fn gather(&mut self, pieces: &[Piece], to: &mut [u8]) -> Result<(), Problem>;
}

/// One launch of a function.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub function: usize,
    /// Blocks in the first and the second dim.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub threads: u32,
    pub arguments: &'a [u64],
    /// Below [`STREAMS`]; 0 outside of a fork.
    pub stream: usize,
}

/// A piece of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub address: u64,
    pub bytes: u64,
}

/// What a device says no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is none, or none that can be used.
    Absent(String),
    /// It has no kernels for this program, or not all.
    NoCode(String),
    /// It has no room left for so many bytes.
    OutOfMemory { bytes: u64, room: u64 },
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
            Problem::Lost(why) => write!(f, "it stopped working: {why}"),
        }
    }
}

impl Problem {
    pub fn on(self, device: &str) -> Error {
        Error::Device {
            device: device.to_owned(),
            problem: self,
        }
    }
}
