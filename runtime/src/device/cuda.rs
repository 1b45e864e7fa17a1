//! NVIDIA's driver interface, by `cudarc`, which loads the driver's library when it is first used.
//!
//! Whether there is one is asked before anything else: without it every other call would panic.

mod code;
mod pinned;

use std::collections::HashMap;
use std::ffi::{CString, c_void};

use cohort_abi::gpu::GpuFunction;
use cudarc::driver::result::{self, DriverError, stream::StreamKind};
use cudarc::driver::sys;

use super::{Device, Launch, Piece, Problem, STREAMS};
use crate::artifact::DeviceCode;
use crate::error::Error;
use crate::memory::SLACK;
use code::choose;
use pinned::Pinned;

/// The oldest driver: CUDA 12.0, as the driver counts.
const OLDEST_DRIVER: i32 = 12_000;
const GATHER: &str = include_str!("cuda/gather.ptx");
const GATHER_SYMBOL: &str = "cohort_gather";
const GATHER_THREADS: u32 = 128;
/// Of a piece in the table of [`GATHER`].
const TABLE_ENTRY: usize = 24;

/// A graphics card.
pub struct Cuda {
    name: String,
    device: sys::CUdevice,
    context: sys::CUcontext,
    streams: Vec<sys::CUstream>,
    /// What streams that begin wait for, then what each stream ends with.
    begun: sys::CUevent,
    ended: Vec<sys::CUevent>,
    /// With the times of the start and the stop.
    clock: [sys::CUevent; 2],
    modules: Vec<sys::CUmodule>,
    kernels: sys::CUmodule,
    functions: Vec<sys::CUfunction>,
    gather: sys::CUfunction,
    /// What was allocated and not freed: bytes by address.
    memory: HashMap<u64, u64>,
    staging: Pinned,
    /// Whether a copy out of `staging` may be under way.
    is_sending: bool,
    /// The tables of pieces on both sides, the pieces on both sides.
    table: Pinned,
    table_address: (u64, u64),
    gathered: Pinned,
    gathered_address: (u64, u64),
}

impl Cuda {
    /// Whether there is a driver that is new enough, and a device.
    pub fn probe() -> Result<(), Error> {
        first_device().map(drop)
    }

    /// The first device that the driver shows (`CUDA_VISIBLE_DEVICES`), with the best of these codes
    /// for it.
    pub fn open(codes: &[DeviceCode]) -> Result<Cuda, Error> {
        let (device, name) = first_device()?;
        let on_device = |problem: Problem| problem.on(&name);
        let attribute = |attribute| {
            // SAFETY: the device is one that the driver gave.
            unsafe { result::device::get_attribute(device, attribute) }
                .map_err(|error| on_device(lost(error)))
        };
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let capability = (attribute(MAJOR)? as u32, attribute(MINOR)? as u32);
        let code = choose(codes, capability).map_err(on_device)?;
        Cuda::prepare(device, name.clone(), code).map_err(on_device)
    }

    fn prepare(device: sys::CUdevice, name: String, code: &DeviceCode) -> Result<Cuda, Problem> {
        // SAFETY: the device is one that the driver gave; its context is released when this is
        // dropped.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(lost)?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(lost)?;
        let kernels = load(&code.bytes).map_err(|error| {
            Problem::NoCode(format!(
                "the code for {} cannot be loaded: {}",
                code.target,
                say(error)
            ))
        })?;
        let helpers = load(GATHER.as_bytes()).map_err(lost)?;
        let timed = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(lost);
        let event =
            || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(lost);
        let stream = |_| result::stream::create(StreamKind::NonBlocking).map_err(lost);
        Ok(Cuda {
            name,
            device,
            context,
            streams: (0..STREAMS).map(stream).collect::<Result<_, _>>()?,
            begun: event()?,
            ended: (0..STREAMS).map(|_| event()).collect::<Result<_, _>>()?,
            clock: [timed()?, timed()?],
            modules: vec![kernels, helpers],
            kernels,
            functions: Vec::new(),
            gather: function(helpers, GATHER_SYMBOL)?,
            memory: HashMap::new(),
            staging: Pinned::default(),
            is_sending: false,
            table: Pinned::default(),
            table_address: (0, 0),
            gathered: Pinned::default(),
            gathered_address: (0, 0),
        })
    }

    /// Makes the device that of this thread.
    fn enter(&self) -> Result<(), Problem> {
        // SAFETY: the context is retained as long as this lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(lost)
    }

    fn wait(&mut self) -> Result<(), Problem> {
        // SAFETY: the stream is this one's; whatever ran on the others was joined.
        unsafe { result::stream::synchronize(self.streams[0]) }.map_err(lost)?;
        self.is_sending = false;
        Ok(())
    }

    /// Memory beside that of the pool, grown by doubling; gives its address.
    fn helper_memory(&mut self, block: (u64, u64), bytes: u64) -> Result<(u64, u64), Problem> {
        if bytes <= block.1 {
            return Ok(block);
        }
        let bytes = bytes.next_power_of_two().max(1 << 16);
        let address = self.allocate(bytes)?;
        if block.1 > 0 {
            // SAFETY: what used it was waited for.
            unsafe { self.free(block.0, block.1) };
        }
        Ok((address, bytes))
    }
}

impl Device for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn free_memory(&mut self) -> Result<u64, Problem> {
        self.enter()?;
        Ok(result::mem_get_info().map_err(lost)?.0 as u64)
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, Problem> {
        self.enter()?;
        let length = (bytes as usize).saturating_add(SLACK);
        // SAFETY: the memory is written before it is read, but for the slack, which may be read and
        // holds anything.
        match unsafe { result::malloc_sync(length) } {
            Ok(address) => {
                self.memory.insert(address, bytes);
                Ok(address)
            }
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let room = self.free_memory()?;
                Err(Problem::OutOfMemory { bytes, room })
            }
            Err(error) => Err(lost(error)),
        }
    }

    unsafe fn free(&mut self, address: u64, _: u64) {
        if self.memory.remove(&address).is_some() && self.enter().is_ok() {
            // SAFETY: it was allocated here, and the caller promises that nothing uses it. A device
            // that does not take it back has died, which the next call tells.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn function(&mut self, wanted: &GpuFunction) -> Result<usize, Problem> {
        self.enter()?;
        self.functions.push(function(self.kernels, &wanted.symbol)?);
        Ok(self.functions.len() - 1)
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], Problem> {
        self.enter()?;
        if self.is_sending {
            self.wait()?;
        }
        self.staging.room(bytes)
    }

    unsafe fn send(&mut self, to: u64, bytes: usize) -> Result<(), Problem> {
        self.is_sending = true;
        // SAFETY: the caller's promise; the staging memory stays as it is until the copy was waited
        // for.
        unsafe {
            result::memcpy_htod_async(to, self.staging.first(bytes), self.streams[0]).map_err(lost)
        }
    }

    unsafe fn upload(&mut self, to: u64, bytes: &[u8]) -> Result<(), Problem> {
        self.enter()?;
        // In the order of the stream: a copy beside it could arrive after what is launched next.
        // SAFETY: the caller's promise; the bytes stay as they are until the copy was waited for.
        unsafe { result::memcpy_htod_async(to, bytes, self.streams[0]) }.map_err(lost)?;
        self.wait()
    }

    unsafe fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), Problem> {
        self.enter()?;
        // SAFETY: the caller's promise.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.streams[0]) }
            .map_err(lost)
    }

    fn fork(&mut self, streams: usize) -> Result<(), Problem> {
        // SAFETY: streams and events are this one's.
        unsafe {
            result::event::record(self.begun, self.streams[0]).map_err(lost)?;
            for stream in &self.streams[1..streams] {
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(*stream, self.begun, flags).map_err(lost)?;
            }
        }
        Ok(())
    }

    unsafe fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Problem> {
        let mut arguments: Vec<*mut c_void> = launch
            .arguments
            .iter()
            .map(|argument| std::ptr::from_ref(argument).cast_mut().cast())
            .collect();
        // SAFETY: the caller's promise; the driver copies the arguments before it returns.
        unsafe {
            result::launch_kernel(
                self.functions[launch.function],
                (launch.grid.0, launch.grid.1, 1),
                (launch.threads, 1, 1),
                0,
                self.streams[launch.stream],
                &mut arguments,
            )
        }
        .map_err(lost)
    }

    fn join(&mut self, streams: usize) -> Result<(), Problem> {
        for (stream, ended) in self.streams[1..streams].iter().zip(&self.ended) {
            // SAFETY: streams and events are this one's.
            unsafe {
                result::event::record(*ended, *stream).map_err(lost)?;
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(self.streams[0], *ended, flags).map_err(lost)?;
            }
        }
        Ok(())
    }

    fn start_clock(&mut self) -> Result<(), Problem> {
        self.enter()?;
        // SAFETY: streams and events are this one's.
        unsafe { result::event::record(self.clock[0], self.streams[0]) }.map_err(lost)
    }

    fn stop_clock(&mut self) -> Result<f64, Problem> {
        // SAFETY: as above.
        unsafe { result::event::record(self.clock[1], self.streams[0]) }.map_err(lost)?;
        self.wait()?;
        // SAFETY: both events were recorded and are done.
        let elapsed = unsafe { result::event::elapsed(self.clock[0], self.clock[1]) };
        Ok(f64::from(elapsed.map_err(lost)?) * 1e-3)
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.enter()?;
        self.wait()
    }

    unsafe fn gather(&mut self, pieces: &[Piece], to: &mut [u8]) -> Result<(), Problem> {
        self.enter()?;
        self.wait()?;
        let mut source = match pieces {
            [] => return Ok(()),
            [piece] => piece.address,
            _ => 0,
        };
        if pieces.len() > 1 {
            let table_bytes = pieces.len() * TABLE_ENTRY;
            let table = self.table.room(table_bytes)?;
            let mut offset = 0;
            for (entry, piece) in table.chunks_exact_mut(TABLE_ENTRY).zip(pieces) {
                for (place, word) in
                    entry
                        .chunks_exact_mut(8)
                        .zip([piece.address, piece.bytes, offset])
                {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                offset += piece.bytes;
            }
            self.table_address = self.helper_memory(self.table_address, table_bytes as u64)?;
            self.gathered_address = self.helper_memory(self.gathered_address, offset)?;
            let mut arguments = [self.table_address.0, self.gathered_address.0];
            let mut pointers = arguments.each_mut().map(|word| (&raw mut *word).cast());
            // SAFETY: table and room have the bytes of all pieces, which are the program's by the
            // caller's promise; the table in host memory stays as it is until the copy below was
            // waited for.
            unsafe {
                let table = self.table.first(table_bytes);
                result::memcpy_htod_async(self.table_address.0, table, self.streams[0])
                    .map_err(lost)?;
                result::launch_kernel(
                    self.gather,
                    (pieces.len() as u32, 1, 1),
                    (GATHER_THREADS, 1, 1),
                    0,
                    self.streams[0],
                    &mut pointers,
                )
                .map_err(lost)?;
            }
            source = self.gathered_address.0;
        }
        let stream = self.streams[0];
        let room = self.gathered.room(to.len())?;
        // SAFETY: as many bytes are there as the pieces have; nothing reads the room before the copy
        // was waited for.
        unsafe { result::memcpy_dtoh_async(room, source, stream) }.map_err(lost)?;
        self.wait()?;
        to.copy_from_slice(self.gathered.first(to.len()));
        Ok(())
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
            for address in self.memory.keys() {
                let _ = result::free_sync(*address);
            }
            for module in &self.modules {
                let _ = result::module::unload(*module);
            }
            let events = self.ended.iter().chain([&self.begun]).chain(&self.clock);
            for event in events {
                let _ = result::event::destroy(*event);
            }
            for stream in &self.streams {
                let _ = result::stream::destroy(*stream);
            }
            self.staging.free();
            self.table.free();
            self.gathered.free();
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// The driver's first device and its name.
fn first_device() -> Result<(sys::CUdevice, String), Error> {
    let absent = |why: String| Problem::Absent(why).on("an NVIDIA GPU");
    // SAFETY: it only tries to load the library, and nothing of it is used.
    if !unsafe { sys::is_culib_present() } {
        return Err(absent(
            "there is no NVIDIA driver on this machine (its library libcuda.so.1 was not found)"
                .to_owned(),
        ));
    }
    let mut version = 0;
    // SAFETY: the library is there, the function as old as the library, the number valid.
    let asked = unsafe { sys::cuDriverGetVersion(&mut version) }.result();
    asked.map_err(|error| absent(format!("the NVIDIA driver does not answer: {}", say(error))))?;
    if version < OLDEST_DRIVER {
        return Err(absent(format!(
            "the NVIDIA driver is too old: it supports CUDA {}, and {} is needed",
            cuda_version(version),
            cuda_version(OLDEST_DRIVER)
        )));
    }
    let no_device = |error| {
        absent(format!(
            "the NVIDIA driver has no usable device: {}",
            say(error)
        ))
    };
    result::init().map_err(no_device)?;
    let device = result::device::get(0).map_err(no_device)?;
    let name = result::device::get_name(device).map_err(no_device)?;
    Ok((device, format!("{} (cuda:0)", name.trim())))
}

/// Loads a CUBIN, or compiles PTX.
fn load(code: &[u8]) -> Result<sys::CUmodule, DriverError> {
    // The driver wants a NUL behind PTX.
    let image = [code, &[0]].concat();
    // SAFETY: the image is alive during the call.
    unsafe { result::module::load_data(image.as_ptr().cast()) }
}

fn function(module: sys::CUmodule, symbol: &str) -> Result<sys::CUfunction, Problem> {
    let missing =
        |why: String| Problem::NoCode(format!("its code has no function `{symbol}`: {why}"));
    let name = CString::new(symbol).map_err(|error| missing(error.to_string()))?;
    // SAFETY: the module is loaded.
    unsafe { result::module::get_function(module, name) }.map_err(|error| missing(say(error)))
}

fn lost(error: DriverError) -> Problem {
    Problem::Lost(say(error))
}

fn say(error: DriverError) -> String {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(
            |_| format!("{:?}", error.0),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    format!(
        "{} ({})",
        text(error.error_string()),
        text(error.error_name())
    )
}

fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
