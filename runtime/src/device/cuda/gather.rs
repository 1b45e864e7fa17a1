//! Bringing pieces of device memory to the host in one copy: a kernel puts them together first.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::driver::{function, load};
use super::memory::Memory;
use super::pinned::Pinned;
use crate::device::Piece;

const CODE: &str = include_str!("gather.ptx");
const SYMBOL: &str = "cohort_gather";
const THREADS: u32 = 128;
/// Of a piece in the table of the kernel.
const ENTRY: usize = 24;

/// The kernel, the table of pieces, and the pieces, on the device and here.
pub struct Gather {
    /// None where the driver has no compiler for its PTX: pieces are copied one by one then.
    kernel: Option<(sys::CUmodule, sys::CUfunction)>,
    table: Pinned,
    table_block: Block,
    pieces: Pinned,
    pieces_block: Block,
}

/// Memory of the device, by address and bytes.
type Block = (u64, usize);

impl Gather {
    /// On a device that is this thread's.
    pub fn new() -> Gather {
        let module = load(CODE.as_bytes()).ok();
        Gather {
            kernel: module
                .and_then(|module| Some((module, function(module, SYMBOL, 0).ok()?.handle))),
            table: Pinned::default(),
            table_block: (0, 0),
            pieces: Pinned::default(),
            pieces_block: (0, 0),
        }
    }

    /// Queues bringing pieces to the host; gives how many copies that takes. The table and what was
    /// brought before are not used any more.
    ///
    /// # Safety
    ///
    /// The pieces are of the device's memory.
    pub unsafe fn queue(
        &mut self,
        pieces: &[Piece],
        memory: &mut Memory,
        stream: sys::CUstream,
    ) -> Result<u64, DriverError> {
        let length = pieces.iter().map(|piece| piece.bytes as usize).sum();
        let mut room = self.pieces.room(length)?;
        let gathered;
        let copied = match (&self.kernel, pieces) {
            (Some((_, kernel)), [_, _, ..]) => {
                let table = self.table.room(pieces.len() * ENTRY)?;
                fill_table(table, pieces);
                // SAFETY: table and room have the bytes of all pieces, which are the device's by
                // the caller's promise; the table stays as it is until the copy was waited for.
                unsafe {
                    grow(&mut self.table_block, table.len(), memory, stream)?;
                    grow(&mut self.pieces_block, length, memory, stream)?;
                    result::memcpy_htod_async(self.table_block.0, &*table, stream)?;
                    let mut arguments = [self.table_block.0, self.pieces_block.0];
                    let mut pointers = arguments.each_mut().map(|word| (&raw mut *word).cast());
                    let (blocks, threads) = ((pieces.len() as u32, 1, 1), (THREADS, 1, 1));
                    result::launch_kernel(*kernel, blocks, threads, 0, stream, &mut pointers)?;
                }
                gathered = [Piece {
                    address: self.pieces_block.0,
                    bytes: length as u64,
                }];
                &gathered[..]
            }
            _ => pieces,
        };
        for piece in copied {
            let (place, rest) = room.split_at_mut(piece.bytes as usize);
            // SAFETY: the piece is the device's; nothing reads the place before the copy was waited
            // for.
            unsafe { result::memcpy_dtoh_async(place, piece.address, stream)? };
            room = rest;
        }
        Ok(copied.len() as u64)
    }

    /// What was brought, once that was waited for.
    pub fn brought(&self, pieces: &[Piece]) -> &[u8] {
        let length = pieces.iter().map(|piece| piece.bytes as usize).sum();
        self.pieces.first(length)
    }

    /// Gives everything back but the device's memory.
    ///
    /// # Safety
    ///
    /// Nothing is queued.
    pub unsafe fn destroy(&mut self) {
        // SAFETY: all is this one's, and not used after this.
        unsafe {
            if let Some((module, _)) = self.kernel.take() {
                let _ = result::module::unload(module);
            }
            self.table.free();
            self.pieces.free();
        }
    }
}

fn fill_table(table: &mut [u8], pieces: &[Piece]) {
    let mut offset = 0;
    for (entry, piece) in table.chunks_exact_mut(ENTRY).zip(pieces) {
        let words = [piece.address, piece.bytes, offset];
        for (place, word) in entry.chunks_exact_mut(size_of::<u64>()).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        offset += piece.bytes;
    }
}

/// Grows a block by doubling; what it held is lost.
///
/// # Safety
///
/// As for [`Memory::allocate`].
unsafe fn grow(
    block: &mut Block,
    bytes: usize,
    memory: &mut Memory,
    stream: sys::CUstream,
) -> Result<(), DriverError> {
    if bytes <= block.1 {
        return Ok(());
    }
    let larger = bytes.next_power_of_two().max(1 << 16);
    // SAFETY: the caller's promise; what used the old block is queued before this.
    unsafe {
        let Some(address) = memory.allocate(larger, stream)? else {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        };
        memory.free(block.0, stream);
        *block = (address, larger);
    }
    Ok(())
}
