//! Host memory that the system does not move, so that a device copies it at full speed.

use std::ffi::c_void;

use cudarc::driver::result;

use super::{Problem, lost};

/// A block that grows; what it held is lost then.
pub struct Pinned {
    address: *mut u8,
    bytes: usize,
}

impl Default for Pinned {
    fn default() -> Pinned {
        Pinned {
            address: std::ptr::null_mut(),
            bytes: 0,
        }
    }
}

impl Pinned {
    /// That many bytes. No copy from or to the block is under way, and a device is this thread's.
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8], Problem> {
        if bytes > self.bytes {
            let larger = bytes.next_power_of_two().max(1 << 16);
            // SAFETY: the memory is this one's, is freed once, and is zeroed before it is read.
            unsafe {
                self.free();
                let address = result::malloc_host(larger, 0).map_err(lost)?;
                self.address = address.cast();
                self.bytes = larger;
                self.address.write_bytes(0, larger);
            }
        }
        if bytes == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the block has as many bytes, all initialised, and is borrowed mutably.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.address, bytes) })
    }

    /// The first bytes, which were asked for before.
    pub fn first(&self, bytes: usize) -> &[u8] {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return &[];
        }
        // SAFETY: the block has as many bytes, all initialised.
        unsafe { std::slice::from_raw_parts(self.address, bytes) }
    }

    /// Gives the block back.
    ///
    /// # Safety
    ///
    /// No copy from or to it is under way.
    pub unsafe fn free(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the block came from the driver and is freed once.
            let _ = unsafe { result::free_host(self.address.cast::<c_void>()) };
        }
        *self = Pinned::default();
    }
}
