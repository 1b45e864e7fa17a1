//! A flush as one cooperative launch: all its blocks are on the card together and may wait for each other.
//!
//! This was not run on a card yet; what the function does, the simulator runs.

use cohort_abi::gpu::GpuFlush;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use super::driver::{Function, attribute, function, problem};
use super::graphs::pointers_to;
use crate::device::Problem;

/// The function that runs flushes.
#[derive(Clone, Copy)]
pub struct Cooperative {
    function: Function,
    threads: u32,
    /// As many as are on the card together.
    pub blocks: u32,
}

impl Cooperative {
    /// Of a module that is loaded; none where the card cannot launch it so.
    pub fn new(
        device: sys::CUdevice,
        module: sys::CUmodule,
        flush: &GpuFlush,
    ) -> Result<Option<Cooperative>, Problem> {
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as COOPERATIVE,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as PROCESSORS,
        };
        if attribute(device, COOPERATIVE)? == 0 {
            return Ok(None);
        }
        let processors = attribute(device, PROCESSORS)?;
        let function = function(module, &flush.symbol, flush.shared_bytes)?;
        let mut each = 0;
        // SAFETY: the function is of a module that is loaded, and the place for the answer is valid.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut each,
                function.handle,
                flush.threads as i32,
                function.shared as usize,
            )
        };
        asked.result().map_err(problem)?;
        let blocks = u32::try_from(i64::from(each) * i64::from(processors)).unwrap_or(0);
        Ok((blocks > 0).then_some(Cooperative {
            function,
            threads: flush.threads,
            blocks,
        }))
    }

    /// Queues a flush; says whether the driver took it. It may have less room for it than it said, where
    /// other programs use the card.
    ///
    /// # Safety
    ///
    /// As for [`crate::device::Device::run_flush`].
    pub unsafe fn launch(
        &self,
        schedule: u64,
        blocks: u32,
        stream: sys::CUstream,
    ) -> Result<bool, DriverError> {
        let arguments = [schedule];
        let mut pointers = pointers_to(&arguments);
        // SAFETY: the caller's promise; the driver copies the argument before it returns.
        let launched = unsafe {
            sys::cuLaunchCooperativeKernel(
                self.function.handle,
                blocks,
                1,
                1,
                self.threads,
                1,
                1,
                self.function.shared,
                stream,
                pointers.as_mut_ptr(),
            )
        };
        match launched {
            CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => Ok(false),
            launched => launched.result().map(|()| true),
        }
    }
}
