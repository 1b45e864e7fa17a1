//! Memory of a device, within a limit.

use super::{Device, Problem};

/// Blocks are multiples of it.
const GRANULE: u64 = 256;

/// A block of a device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    pub bytes: u64,
}

/// What is allocated. Few blocks are, and each seldom: one a row pool, one for the constants, the index
/// lists and the scratch; those grow by half, so that their contents are seldom moved.
#[derive(Debug)]
pub struct MemoryPool {
    limit: u64,
    used: u64,
    most_used: u64,
}

impl MemoryPool {
    pub fn new(limit: u64) -> MemoryPool {
        MemoryPool {
            limit,
            used: 0,
            most_used: 0,
        }
    }

    /// The most that was in use at a time.
    pub fn most_used(&self) -> u64 {
        self.most_used
    }

    pub fn take(&mut self, device: &mut dyn Device, bytes: u64) -> Result<Block, Problem> {
        let room = self.limit.saturating_sub(self.used);
        let too_much = Problem::OutOfMemory { bytes, room };
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(GRANULE) else {
            return Err(too_much);
        };
        if bytes > room {
            return Err(too_much);
        }
        let address = device.allocate(bytes)?;
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
        Ok(Block { address, bytes })
    }

    /// # Safety
    ///
    /// The block is of this pool, and nothing that is queued on the device after this uses it.
    pub unsafe fn give(&mut self, device: &mut dyn Device, block: Block) {
        if block.bytes > 0 {
            // SAFETY: the caller's promise.
            unsafe { device.free(block.address) };
            self.used -= block.bytes;
        }
    }

    /// Makes a block have at least `bytes`; keeps the first `kept` of them, and may move it.
    pub fn grow(
        &mut self,
        device: &mut dyn Device,
        block: &mut Block,
        bytes: u64,
        kept: u64,
    ) -> Result<(), Problem> {
        if bytes <= block.bytes {
            return Ok(());
        }
        // A whole block is free to be half as big again only where there is room.
        let generous = bytes.max(block.bytes + block.bytes / 2);
        let larger = match self.take(device, generous) {
            Err(Problem::OutOfMemory { .. }) if generous > bytes => self.take(device, bytes)?,
            taken => taken?,
        };
        let old = std::mem::replace(block, larger);
        if old.bytes > 0 {
            // SAFETY: both blocks are this pool's, and the old one is not used any more behind the
            // copy.
            unsafe {
                if kept > 0 {
                    device.copy(larger.address, old.address, kept.min(old.bytes))?;
                }
                self.give(device, old);
            }
        }
        Ok(())
    }
}
