//! Memory of a device, within a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    account: Arc<Account>,
    /// Of what is in use, what this pool has.
    used: u64,
}

/// What pools have together.
#[derive(Debug)]
struct Account {
    limit: u64,
    used: AtomicU64,
    most_used: AtomicU64,
}

impl MemoryPool {
    pub fn new(limit: u64) -> MemoryPool {
        let account = Account {
            limit,
            used: AtomicU64::new(0),
            most_used: AtomicU64::new(0),
        };
        MemoryPool {
            account: Arc::new(account),
            used: 0,
        }
    }

    /// Another one, within the same limit.
    pub fn beside(&self) -> MemoryPool {
        MemoryPool {
            account: self.account.clone(),
            used: 0,
        }
    }

    /// Whether `times` times the memory in use would be within the limit.
    pub fn has_room_for(&self, times: u64) -> bool {
        let used = self.account.used.load(Ordering::Relaxed);
        used.saturating_mul(times) <= self.account.limit
    }

    /// The most that was in use at a time, of all pools together.
    pub fn most_used(&self) -> u64 {
        self.account.most_used.load(Ordering::Relaxed)
    }

    pub fn take(&mut self, device: &mut dyn Device, bytes: u64) -> Result<Block, Problem> {
        let account = &self.account;
        let rounded = bytes.max(1).checked_next_multiple_of(GRANULE);
        let with = |used: u64| {
            let after = used.checked_add(rounded?)?;
            (after <= account.limit).then_some(after)
        };
        let used = &account.used;
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        let (Ok(before), Some(rounded)) = (taken, rounded) else {
            let room = account.limit.saturating_sub(used.load(Ordering::Relaxed));
            return Err(Problem::OutOfMemory { bytes, room });
        };
        match device.allocate(rounded) {
            Ok(address) => {
                self.used += rounded;
                let most = &account.most_used;
                most.fetch_max(before + rounded, Ordering::Relaxed);
                Ok(Block {
                    address,
                    bytes: rounded,
                })
            }
            Err(problem) => {
                used.fetch_sub(rounded, Ordering::Relaxed);
                Err(problem)
            }
        }
    }

    /// # Safety
    ///
    /// The block is of this pool, and nothing that is queued on the device after this uses it.
    pub unsafe fn give(&mut self, device: &mut dyn Device, block: Block) {
        if block.bytes > 0 {
            // SAFETY: the caller's promise.
            unsafe { device.free(block.address) };
            self.used -= block.bytes;
            self.account.used.fetch_sub(block.bytes, Ordering::Relaxed);
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
        let kept = kept.min(block.bytes);
        if kept > 0 {
            // SAFETY: both blocks are this pool's, and have as many bytes.
            let copied = unsafe { device.copy(larger.address, block.address, kept) };
            if let Err(problem) = copied {
                // SAFETY: nobody else knows of it.
                unsafe { self.give(device, larger) };
                return Err(problem);
            }
        }
        let old = std::mem::replace(block, larger);
        // SAFETY: it is this pool's, and is not used any more behind the copy.
        unsafe { self.give(device, old) };
        Ok(())
    }
}

impl Drop for MemoryPool {
    /// The device gives its memory back when it is dropped.
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.used, Ordering::Relaxed);
    }
}
