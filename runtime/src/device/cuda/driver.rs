//! The driver as a whole: whether it is there, its first device, loading code, and its errors in words.

use std::ffi::{CStr, CString, c_void};
use std::fmt;

use cohort_abi::gpu::dynamic_shared_bytes;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult};

use crate::device::Problem;
use crate::error::Error;
use crate::program::artifact::{DeviceCode, DeviceFormat};

/// The oldest driver: CUDA 12.0, as the driver counts.
const OLDEST_DRIVER: i32 = 12_000;

/// Of what the driver says of a code that it loads, as much as is read.
const LOG_BYTES: usize = 4 << 10;

/// The driver's first device and its name.
pub fn first_device() -> Result<(sys::CUdevice, String), Error> {
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

/// An attribute of a device.
pub fn attribute(
    device: sys::CUdevice,
    attribute: sys::CUdevice_attribute,
) -> Result<i32, Problem> {
    // SAFETY: the device is one that the driver gave.
    unsafe { result::device::get_attribute(device, attribute) }.map_err(problem)
}

/// Loads the first of the codes that the driver takes. A driver may refuse a CUBIN that is newer than
/// itself, or PTX where it has no compiler; the other one helps then.
pub fn load_first(codes: &[&DeviceCode]) -> Result<sys::CUmodule, Problem> {
    let mut refusals = Vec::new();
    for code in codes {
        match load(&code.bytes) {
            Ok(module) => return Ok(module),
            Err(refused) if refused.error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(Problem::Full("the program's code does not fit".to_owned()));
            }
            Err(refused) => refusals.push(format!(
                "the {} for {} cannot be loaded: {refused}",
                match code.format {
                    DeviceFormat::Cubin => "machine code",
                    DeviceFormat::Ptx => "PTX",
                },
                code.target
            )),
        }
    }
    Err(Problem::NoCode(refusals.join("; ")))
}

/// Why the driver does not load a code.
pub struct Refused {
    error: DriverError,
    /// What its compiler and its linker say of it; empty where they do not come to it.
    log: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&say(self.error))?;
        match self.log.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.log),
        }
    }
}

/// Loads a CUBIN, or compiles PTX.
pub fn load(code: &[u8]) -> Result<sys::CUmodule, Refused> {
    use sys::CUjit_option::{
        CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
    };
    // The driver wants a NUL behind PTX.
    let image = [code, &[0]].concat();
    let (mut errors, mut notes) = ([0_u8; LOG_BYTES], [0_u8; LOG_BYTES]);
    let mut options = [
        CU_JIT_ERROR_LOG_BUFFER,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
    ];
    // A number is in the place of a pointer.
    let mut values: [*mut c_void; 4] = [
        errors.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(LOG_BYTES),
        notes.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(LOG_BYTES),
    ];
    let mut module = std::ptr::null_mut();
    // SAFETY: the image and the logs are alive during the call, and as long as it says.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match loaded.result() {
        Ok(()) => Ok(module),
        Err(error) => Err(Refused {
            error,
            log: [text_of(&errors), text_of(&notes)]
                .join(" ")
                .trim()
                .to_owned(),
        }),
    }
}

/// The text before a log's first NUL, its lines one behind another.
fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A function that can be launched.
#[derive(Clone, Copy)]
pub struct Function {
    pub handle: sys::CUfunction,
    /// Bytes of a block's shared memory that its launches give.
    pub shared: u32,
}

/// Finds a function, and sets the bytes of shared memory that its blocks have.
pub fn function(
    module: sys::CUmodule,
    symbol: &str,
    shared_bytes: u32,
) -> Result<Function, Problem> {
    let missing =
        |why: String| Problem::NoCode(format!("its code has no function `{symbol}`: {why}"));
    let name = CString::new(symbol).map_err(|error| missing(error.to_string()))?;
    // SAFETY: the module is loaded.
    let handle = unsafe { result::module::get_function(module, name) };
    let handle = handle.map_err(|error| missing(say(error)))?;
    with_shared_memory(handle, symbol, shared_bytes)
}

/// The same of one that is in code for some devices only.
pub fn function_if_there(
    module: sys::CUmodule,
    symbol: &str,
    shared_bytes: u32,
) -> Result<Option<Function>, Problem> {
    let Ok(name) = CString::new(symbol) else {
        return Ok(None);
    };
    // SAFETY: the module is loaded.
    match unsafe { result::module::get_function(module, name) } {
        Ok(handle) => with_shared_memory(handle, symbol, shared_bytes).map(Some),
        Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => Ok(None),
        Err(error) => Err(problem(error)),
    }
}

/// A function, whose launches may give its blocks their shared memory from now on.
fn with_shared_memory(
    handle: sys::CUfunction,
    symbol: &str,
    shared_bytes: u32,
) -> Result<Function, Problem> {
    use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;
    let shared = dynamic_shared_bytes(shared_bytes);
    if shared > 0 {
        // SAFETY: the function is the module's.
        let asked = unsafe {
            result::function::set_function_attribute(handle, SHARED, shared.cast_signed())
        };
        asked.map_err(|error| {
            let why = say(error);
            Problem::NoCode(format!(
                "`{symbol}` wants {shared} bytes of shared memory a block: {why}"
            ))
        })?;
    }
    Ok(Function { handle, shared })
}

/// What an error of a call means that is not expected to fail.
pub fn problem(error: DriverError) -> Problem {
    use CUresult::*;
    let hint = match error.0 {
        CUDA_ERROR_OUT_OF_MEMORY => {
            let why = "for the driver's own use (try a smaller --batch or --device-memory)";
            return Problem::Full(format!("{}, {why}", say(error)));
        }
        CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_MISALIGNED_ADDRESS
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_LAUNCH_FAILED => {
            "; a kernel is wrong: `--device gpu-sim` or NVIDIA's compute-sanitizer can tell where"
        }
        CUDA_ERROR_ECC_UNCORRECTABLE => "; the card's memory is faulty until it is reset",
        CUDA_ERROR_LAUNCH_TIMEOUT => {
            "; the system ends what holds a display's card too long: try a smaller --batch"
        }
        CUDA_ERROR_DEVICE_UNAVAILABLE => "; another program may have it for itself",
        _ => "",
    };
    Problem::Lost(format!("{}{hint}", say(error)))
}

/// An error in the driver's words.
pub fn say(error: DriverError) -> String {
    let text = |text: Result<&CStr, DriverError>| {
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
