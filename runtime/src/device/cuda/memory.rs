//! Device memory, allocated in the order of a stream where the driver has pools for that: growing a
//! block then waits for nothing.

use std::collections::HashSet;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use super::driver::attribute;

/// What was allocated and not freed.
pub struct Memory {
    pool: Option<sys::CUmemoryPool>,
    blocks: HashSet<u64>,
}

impl Memory {
    /// Of a device, which is this thread's. Uses a pool if it works: not every system that says so has
    /// them.
    pub fn new(device: sys::CUdevice, stream: sys::CUstream) -> Memory {
        let mut memory = Memory {
            pool: new_pool(device),
            blocks: HashSet::new(),
        };
        // SAFETY: nothing uses the block.
        let works = unsafe {
            let tried = memory.allocate(1, stream);
            if let Ok(Some(address)) = tried {
                memory.free(address, stream);
            }
            tried.is_ok() && result::stream::synchronize(stream).is_ok()
        };
        if let Some(pool) = memory.pool.take_if(|_| !works) {
            // SAFETY: nothing is left of it.
            let _ = unsafe { result::mem_pool::destroy(pool) };
        }
        memory
    }

    /// Memory at a multiple of 256, not initialised; `None` if there is not as much.
    ///
    /// # Safety
    ///
    /// It is written before it is read, but for what may hold anything, and used in the order of the
    /// stream.
    pub unsafe fn allocate(
        &mut self,
        bytes: usize,
        stream: sys::CUstream,
    ) -> Result<Option<u64>, DriverError> {
        let again = |found: Result<u64, DriverError>| match found {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            found => found.map(Some),
        };
        // SAFETY: the caller's promise, and the pool is this one's.
        let address = unsafe {
            match self.pool {
                Some(pool) => {
                    let take = || again(result::mem_pool::alloc_async(pool, bytes, stream));
                    match take()? {
                        Some(address) => Some(address),
                        None => {
                            // What was freed before is there once the stream got so far, in blocks of
                            // the sizes that it had: the pool keeps them.
                            result::stream::synchronize(stream)?;
                            result::mem_pool::trim_to(pool, 0)?;
                            take()?
                        }
                    }
                }
                None => again(result::malloc_sync(bytes))?,
            }
        };
        self.blocks.extend(address);
        Ok(address)
    }

    /// Gives memory back when what is queued on the stream is done.
    ///
    /// # Safety
    ///
    /// Nothing that is queued later uses it.
    pub unsafe fn free(&mut self, address: u64, stream: sys::CUstream) {
        if !self.blocks.remove(&address) {
            return;
        }
        // A device that does not take it back has died, which the next call tells.
        // SAFETY: it was allocated here, and the caller promises that nothing uses it.
        let _ = unsafe {
            match self.pool {
                Some(_) => result::free_async(address, stream),
                None => {
                    result::stream::synchronize(stream).and_then(|()| result::free_sync(address))
                }
            }
        };
    }

    /// Gives everything back.
    ///
    /// # Safety
    ///
    /// Nothing is queued that uses it.
    pub unsafe fn destroy(&mut self, stream: sys::CUstream) {
        let blocks: Vec<u64> = self.blocks.iter().copied().collect();
        // SAFETY: the caller's promise.
        unsafe {
            for address in blocks {
                self.free(address, stream);
            }
            let _ = result::stream::synchronize(stream);
            if let Some(pool) = self.pool.take() {
                let _ = result::mem_pool::destroy(pool);
            }
        }
    }
}

/// A pool, if the device and the driver have any.
fn new_pool(device: sys::CUdevice) -> Option<sys::CUmemoryPool> {
    let pools = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    if !attribute(device, pools).is_ok_and(|answer| answer != 0) {
        return None;
    }
    let properties = sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: device,
        },
        win32SecurityAttributes: std::ptr::null_mut(),
        reserved: [0; 64],
    };
    // SAFETY: the properties are valid.
    let pool = unsafe { result::mem_pool::create(&raw const properties) }.ok()?;
    // Otherwise the driver would give back to the system what is free whenever something is waited for,
    // and ask for it anew when a block grows.
    let mut kept = u64::MAX;
    let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a number of 64 bits. A pool without it gives the same memory, later.
    let _ = unsafe { result::mem_pool::set_attribute(pool, threshold, (&raw mut kept).cast()) };
    Some(pool)
}
