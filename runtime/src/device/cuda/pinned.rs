//! Host memory that the system does not move, so that a device copies it at full speed.

use std::ffi::c_void;
use std::ops::Range;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

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
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8], DriverError> {
        if bytes > self.bytes {
            let larger = bytes.next_power_of_two().max(1 << 16);
            // SAFETY: the memory is this one's, is freed once, and is zeroed before it is read.
            unsafe {
                self.free();
                let address = result::malloc_host(larger, 0)?;
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

/// Two blocks by turns: one is filled while copies from the other may be under way.
pub struct Staging {
    blocks: [Pinned; 2],
    /// Behind the last copy from each block.
    sent: [sys::CUevent; 2],
    is_sending: [bool; 2],
    turn: usize,
}

impl Staging {
    pub fn new() -> Result<Staging, DriverError> {
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        Ok(Staging {
            blocks: Default::default(),
            sent: [event()?, event()?],
            is_sending: [false; 2],
            turn: 0,
        })
    }

    /// The other block, from which nothing is copied any more.
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8], DriverError> {
        self.turn = 1 - self.turn;
        if std::mem::take(&mut self.is_sending[self.turn]) {
            // SAFETY: the event was recorded.
            unsafe { result::event::synchronize(self.sent[self.turn])? };
        }
        self.blocks[self.turn].room(bytes)
    }

    /// Queues a copy of a part of the block.
    ///
    /// # Safety
    ///
    /// There is memory for it at the address, used in the order of the stream.
    pub unsafe fn send(
        &mut self,
        to: u64,
        part: Range<usize>,
        stream: sys::CUstream,
    ) -> Result<(), DriverError> {
        self.is_sending[self.turn] = true;
        let bytes = &self.blocks[self.turn].first(part.end)[part];
        // SAFETY: the caller's promise; the block stays as it is until the event behind the copy was
        // waited for.
        unsafe {
            result::memcpy_htod_async(to, bytes, stream)?;
            result::event::record(self.sent[self.turn], stream)
        }
    }

    /// Gives everything back.
    ///
    /// # Safety
    ///
    /// Nothing is queued.
    pub unsafe fn destroy(&mut self) {
        // SAFETY: the events are this one's, and no copy is under way.
        unsafe {
            for event in self.sent {
                let _ = result::event::destroy(event);
            }
            self.blocks.iter_mut().for_each(|block| block.free());
        }
    }
}
