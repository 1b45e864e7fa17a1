//! The rows of all row pools in a device's memory, of which the executor's arena is the mirror.

use std::ops::Range;

use cohort_abi::manifest::Manifest;

use crate::device::pool::{Block, MemoryPool};
use crate::device::{Device, Piece, Problem};
use crate::error::Error;
use crate::memory::arena::{Arena, Region};

/// Of a flush's new rows, which are sent with its lists. What is more goes before these, piece by piece.
const MOST_STAGED_BYTES: usize = 4 << 20;

pub struct RowPools {
    row_pools: Vec<RowPool>,
    /// What is to be sent, of a part of the staging memory each.
    sends: Vec<(u64, Range<usize>)>,
    pieces: Vec<Piece>,
}

struct RowPool {
    block: Block,
    row_bytes: u64,
    /// Rows that may hold something.
    rows: u64,
    /// Rows that the host has and the device has not.
    stale: Vec<Region>,
}

impl RowPools {
    pub fn new(manifest: &Manifest) -> RowPools {
        let pool = |pool: &cohort_abi::manifest::RowPool| RowPool {
            block: Block::default(),
            row_bytes: pool.row_bytes(),
            rows: 0,
            stale: Vec::new(),
        };
        RowPools {
            row_pools: manifest.row_pools.iter().map(pool).collect(),
            sends: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Where a row pool's rows begin, and the bytes of one.
    pub fn place(&self, pool: usize) -> (u64, u64) {
        let pool = &self.row_pools[pool];
        (pool.block.address, pool.row_bytes)
    }

    /// These rows are on the host, and to be sent.
    pub fn put(&mut self, region: Region) {
        self.row_pools[region.pool].stale.push(region);
    }

    /// Gives the row pools as many rows as the arena has.
    pub fn grow(
        &mut self,
        device: &mut dyn Device,
        memory: &mut MemoryPool,
        arena: &Arena,
    ) -> Result<(), Problem> {
        for (number, pool) in self.row_pools.iter_mut().enumerate() {
            let rows = arena.rows(number);
            let kept = pool.rows * pool.row_bytes;
            memory.grow(device, &mut pool.block, rows * pool.row_bytes, kept)?;
            pool.rows = pool.rows.max(rows);
        }
        Ok(())
    }

    /// Sends the rows that the host wrote, and stages lists; returns where these are in the staging
    /// memory, one behind another.
    pub fn send(
        &mut self,
        device: &mut dyn Device,
        arena: &Arena,
        lists: &[&[u32]],
    ) -> Result<Range<usize>, Problem> {
        let mut staged = Vec::new();
        let mut length = 0;
        self.sends.clear();
        for (number, pool) in self.row_pools.iter_mut().enumerate() {
            for stale in pool.stale.drain(..) {
                // Rows that were given back since then may be beyond the last.
                let first = u64::from(stale.first);
                let rows = arena.rows(number);
                let count = u64::from(stale.rows).min(rows.saturating_sub(first));
                let Some(bytes) = arena.row_range(number, first, count) else {
                    continue;
                };
                let to = pool.block.address + first * pool.row_bytes;
                if length + bytes.len() > MOST_STAGED_BYTES {
                    // SAFETY: the row pool has these rows.
                    unsafe { device.upload(to, bytes)? };
                } else if !bytes.is_empty() {
                    self.sends.push((to, length..length + bytes.len()));
                    staged.push(bytes);
                    length += bytes.len();
                }
            }
        }
        let start = length.next_multiple_of(size_of::<u32>());
        let end = start + lists.iter().map(|list| size_of_val(*list)).sum::<usize>();
        let staging = device.staging(end)?;
        let words = staging[start..end].chunks_exact_mut(size_of::<u32>());
        for (place, word) in words.zip(lists.iter().copied().flatten()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for ((_, part), bytes) in self.sends.iter().zip(staged) {
            staging[part.clone()].copy_from_slice(bytes);
        }
        for (to, part) in self.sends.drain(..) {
            // SAFETY: the row pool has these rows.
            unsafe { device.send(to, part)? };
        }
        Ok(start..end)
    }

    /// Brings rows to the arena, in one copy; all that is queued is done then. Each row was computed,
    /// or sent, before.
    pub fn fetch(
        &mut self,
        device: &mut dyn Device,
        arena: &mut Arena,
        rows: &mut Vec<Region>,
    ) -> Result<(), Error> {
        rows.sort_unstable_by_key(|rows| (rows.pool, rows.first, rows.rows));
        rows.dedup();
        self.pieces.clear();
        for region in rows.iter() {
            let pool = &self.row_pools[region.pool];
            let (first, count) = (u64::from(region.first), u64::from(region.rows));
            if first + count > pool.rows {
                return Err(Error::Internal("a row that the device has not".to_owned()));
            }
            let address = pool.block.address + first * pool.row_bytes;
            let bytes = count * pool.row_bytes;
            if bytes == 0 {
                continue;
            }
            match self.pieces.last_mut() {
                Some(last) if last.address + last.bytes == address => last.bytes += bytes,
                _ => self.pieces.push(Piece { address, bytes }),
            }
        }
        let name = device.name().to_owned();
        let on = |problem: Problem| problem.on(&name);
        if self.pieces.is_empty() {
            return device.finish().map_err(on);
        }
        // SAFETY: the pieces are of rows that the row pools have.
        let mut fetched = unsafe { device.gather(&self.pieces) }.map_err(on)?;
        for region in rows.iter() {
            let row_bytes = self.row_pools[region.pool].row_bytes as usize;
            let (found, rest) = fetched.split_at(row_bytes * region.rows as usize);
            if let Some(place) = arena.rows_mut(*region) {
                place.copy_from_slice(found);
            }
            fetched = rest;
        }
        Ok(())
    }
}
