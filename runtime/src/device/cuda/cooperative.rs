//! A flush as one cooperative launch: all its blocks are on the card together and may wait for each other.
//!
//! This was not run on a card yet; what the function does, the simulator runs.

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::gpu::{GpuClusters, GpuFlush};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use super::driver::{Function, attribute, function, problem};
use super::graphs::pointers_to;
use crate::device::Problem;

/// A function that runs flushes.
#[derive(Clone, Copy)]
pub struct Cooperative {
    function: Function,
    threads: u32,
    /// As many as are on the card together.
    pub blocks: u32,
    has_clusters: bool,
}

impl Cooperative {
    /// Of a loaded module, on a device with `processors` multiprocessors; `None` where the card has no cooperative launches.
    pub fn new(
        (device, processors): (sys::CUdevice, u32),
        module: sys::CUmodule,
        flush: &GpuFlush,
    ) -> Result<Option<Cooperative>, Problem> {
        use CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as COOPERATIVE;
        if attribute(device, COOPERATIVE)? == 0 {
            return Ok(None);
        }
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
            has_clusters: false,
        }))
    }

    /// The same of the function whose blocks form clusters; none where the card has no clusters, the module no such function, or
    /// the card no room for a cluster.
    pub fn of_clusters(
        device: sys::CUdevice,
        module: sys::CUmodule,
        (clusters, threads): (&GpuClusters, u32),
    ) -> Result<Option<Cooperative>, Problem> {
        use CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH as CLUSTERS;
        use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as LARGE;
        if attribute(device, CLUSTERS)? == 0 {
            return Ok(None);
        }
        // PTX for older cards has none.
        let Ok(function) = function(module, &clusters.symbol, clusters.shared_bytes) else {
            return Ok(None);
        };
        // SAFETY: the function is of a module that is loaded.
        let allowed =
            unsafe { result::function::set_function_attribute(function.handle, LARGE, 1) };
        allowed.map_err(problem)?;
        let mut attributes = attributes();
        let (blocks, stream) = (CLUSTER_BLOCKS, std::ptr::null_mut());
        // How many clusters there is room for does not depend on the rest.
        let config = config(&function, threads, blocks, stream, &mut attributes[..1]);
        let mut count = 0;
        // SAFETY: the function is of a module that is loaded; the attributes and the place for the answer are valid.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveClusters(&raw mut count, function.handle, &raw const config)
        };
        asked.result().map_err(problem)?;
        let blocks = u32::try_from(count).unwrap_or(0) * CLUSTER_BLOCKS;
        Ok((blocks > 0).then_some(Cooperative {
            function,
            threads,
            blocks,
            has_clusters: true,
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
        let (handle, arguments) = (self.function.handle, pointers.as_mut_ptr());
        let launched = match self.has_clusters {
            // SAFETY: the caller's promise; the driver copies the argument before it returns.
            false => unsafe {
                sys::cuLaunchCooperativeKernel(
                    handle,
                    blocks,
                    1,
                    1,
                    self.threads,
                    1,
                    1,
                    self.function.shared,
                    stream,
                    arguments,
                )
            },
            true => {
                let mut attributes = attributes();
                let config = config(
                    &self.function,
                    self.threads,
                    blocks,
                    stream,
                    &mut attributes,
                );
                // SAFETY: as above, and it copies the attributes.
                unsafe {
                    sys::cuLaunchKernelEx(
                        &raw const config,
                        handle,
                        arguments,
                        std::ptr::null_mut(),
                    )
                }
            }
        };
        match launched {
            CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => Ok(false),
            launched => launched.result().map(|()| true),
        }
    }
}

/// That blocks form clusters, and all of them are on the card together.
fn attributes() -> [sys::CUlaunchAttribute; 2] {
    use sys::CUlaunchAttributeID::{
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as CLUSTER,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE as TOGETHER,
    };
    // SAFETY: an attribute is a number and a union of numbers and addresses, for all of which zeros are values.
    let mut all: [sys::CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
    all[0].id = CLUSTER;
    all[0].value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 {
        x: CLUSTER_BLOCKS,
        y: 1,
        z: 1,
    };
    all[1].id = TOGETHER;
    all[1].value.cooperative = 1;
    all
}

fn config(
    function: &Function,
    threads: u32,
    blocks: u32,
    stream: sys::CUstream,
    attributes: &mut [sys::CUlaunchAttribute],
) -> sys::CUlaunchConfig {
    sys::CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: function.shared,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}
