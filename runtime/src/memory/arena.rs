//! Rows: one growing block a row pool.
//!
//! The first rows of a row pool are those of the program's *sources*, and then those of calls that are
//! kept; both stay. After them, rows are taken and given back in [`Region`]s: for the *inputs* of a chunk of instances, and for the
//! *results* of a flush. No block ever shrinks.

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::memory::AlignedBuffer;
use crate::memory::inputs::{InputRows, Lent};
use crate::memory::rows::Rows;

struct PoolRows {
    buffer: AlignedBuffer,
    row_bytes: usize,
    sources: u64,
    /// Sources and what is kept.
    fixed: u64,
    rows: Rows,
}

/// All row pools of a program.
pub struct Arena {
    row_pools: Vec<PoolRows>,
    /// What is read where it was made.
    lent: Vec<Lent>,
}

/// Rows next to each other that were taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The number of their row pool.
    pub pool: usize,
    /// The number of the first row in its row pool.
    pub first: u32,
    /// How many rows.
    pub rows: u32,
}

/// Where the rows of a row pool are.
#[derive(Clone, Copy, Debug)]
pub struct PoolBase {
    /// The address of row 0.
    pub address: *mut u8,
    /// Bytes of a row.
    pub row_bytes: usize,
}

const PURPOSE: &str = "the rows of a batch (try a smaller --batch)";

impl Arena {
    /// An arena without rows, for the row pools of a program.
    pub fn new(manifest: &Manifest) -> Arena {
        let row_pools = manifest
            .row_pools
            .iter()
            .map(|pool| PoolRows {
                buffer: AlignedBuffer::default(),
                row_bytes: pool.row_bytes() as usize,
                sources: 0,
                fixed: 0,
                rows: Rows::default(),
            })
            .collect();
        let lent = Vec::new();
        Arena { row_pools, lent }
    }

    /// Makes room for the rows of a source; only before what is kept and the first inputs. Gives the first one's number
    /// and the bytes to fill.
    pub fn add_sources(&mut self, pool: usize, rows: u64) -> Result<(u32, &mut [u8]), Error> {
        let first = self.take(pool, rows)?.first;
        self.commit()?;
        let pool = &mut self.row_pools[pool];
        pool.sources = pool.rows.end();
        pool.fixed = pool.sources;
        let begin = first as usize * pool.row_bytes;
        let end = pool.sources as usize * pool.row_bytes;
        Ok((first, &mut pool.buffer.bytes_mut()[begin..end]))
    }

    /// Another one that has the same rows of sources, and nothing else.
    pub fn with_sources(&self) -> Result<Arena, Error> {
        let row_pools = self.row_pools.iter().map(|pool| {
            let bytes = pool.sources as usize * pool.row_bytes;
            let mut buffer = AlignedBuffer::default();
            if bytes > 0 {
                buffer.ensure(bytes, PURPOSE)?;
                buffer.bytes_mut()[..bytes].copy_from_slice(&pool.buffer.bytes()[..bytes]);
            }
            let mut rows = Rows::default();
            rows.take(pool.sources);
            Ok(PoolRows {
                buffer,
                row_bytes: pool.row_bytes,
                sources: pool.sources,
                fixed: pool.sources,
                rows,
            })
        });
        let row_pools = row_pools.collect::<Result<_, Error>>()?;
        let lent = Vec::new();
        Ok(Arena { row_pools, lent })
    }

    /// Bytes of the rows that stay.
    pub fn fixed_bytes(&self) -> u64 {
        let bytes = |pool: &PoolRows| pool.fixed.saturating_mul(pool.row_bytes as u64);
        self.row_pools.iter().map(bytes).sum()
    }

    /// Makes room for rows to be kept; only before the first inputs. Gives the first one's number.
    /// Memory of the system is used as they are written.
    pub fn add_cached(&mut self, pool: usize, rows: u64) -> Result<u32, Error> {
        let first = self.take(pool, rows)?.first;
        self.commit()?;
        let pool = &mut self.row_pools[pool];
        pool.fixed = pool.rows.end();
        Ok(first)
    }

    /// The rows of the sources, a region a row pool that has any.
    pub fn sources(&self) -> impl Iterator<Item = Region> {
        let row_pools = self.row_pools.iter().enumerate();
        row_pools
            .filter(|(_, pool)| pool.sources > 0)
            .map(|(pool, rows)| Region {
                pool,
                first: 0,
                rows: rows.sources as u32,
            })
    }

    /// Gives back all rows but those that stay.
    pub fn reset(&mut self) {
        self.lent.clear();
        for pool in &mut self.row_pools {
            pool.rows.truncate(pool.fixed);
        }
    }

    /// Takes rows for a chunk of inputs and has them copied there by `copy(from, to)`; appends the
    /// regions, one a row pool that has any.
    pub fn put_inputs(
        &mut self,
        inputs: &InputRows,
        regions: &mut Vec<Region>,
        copy: impl Fn(&[u8], &mut [u8]),
    ) -> Result<(), Error> {
        // SAFETY: nothing is lent.
        unsafe { self.lend_inputs(inputs, regions, u64::MAX, copy) }
    }

    /// The same, but blocks of `lends_from` bytes and more are not copied: they are read where they are.
    ///
    /// # Safety
    ///
    /// What is lent stays as it is until its rows are [given back](Arena::give), all are ([`Arena::reset`]), or it was
    /// [copied](Arena::copy_lent).
    pub unsafe fn lend_inputs(
        &mut self,
        inputs: &InputRows,
        regions: &mut Vec<Region>,
        lends_from: u64,
        copy: impl Fn(&[u8], &mut [u8]),
    ) -> Result<(), Error> {
        for (index, block) in inputs.row_pools.iter().enumerate() {
            if block.rows == 0 {
                continue;
            }
            let region = self.take(index, block.rows)?;
            regions.push(region);
            if block.bytes().len() as u64 >= lends_from && block.has_slack() {
                self.lent.push(Lent::new(region, block));
                continue;
            }
            let pool = &mut self.row_pools[index];
            let begin = region.first as usize * pool.row_bytes;
            let end = begin + block.bytes().len();
            pool.buffer.ensure(end, PURPOSE)?;
            copy(block.bytes(), &mut pool.buffer.bytes_mut()[begin..end]);
        }
        Ok(())
    }

    /// What is lent.
    pub fn lent(&self) -> &[Lent] {
        &self.lent
    }

    /// Has what is lent of a row pool copied by `copy(from, to)`; its rows keep their numbers. Before, there was memory
    /// for all rows ([`Arena::commit`]).
    pub fn copy_lent(&mut self, pool: usize, copy: impl Fn(&[u8], &mut [u8])) {
        let rows = &mut self.row_pools[pool];
        self.lent.retain(|lent| {
            let Region {
                first, rows: count, ..
            } = lent.region;
            if lent.region.pool != pool {
                return true;
            }
            let (begin, bytes) = (
                first as usize * rows.row_bytes,
                count as usize * rows.row_bytes,
            );
            // SAFETY: who lent it keeps it as it is.
            let from = unsafe { lent.rows(u64::from(first), u64::from(count), rows.row_bytes) };
            copy(
                from.unwrap_or_default(),
                &mut rows.buffer.bytes_mut()[begin..begin + bytes],
            );
            false
        });
    }

    /// Reserves `rows` consecutive rows. They have no memory until [`Arena::commit`].
    pub fn take(&mut self, pool: usize, rows: u64) -> Result<Region, Error> {
        row_count(rows)?;
        let taken = &mut self.row_pools[pool].rows;
        let first = taken.take(rows);
        row_count(taken.end())?;
        Ok(Region {
            pool,
            first: first as u32,
            rows: rows as u32,
        })
    }

    /// Nobody reads these rows any more.
    pub fn give(&mut self, region: Region) {
        self.lent.retain(|lent| lent.region != region);
        self.row_pools[region.pool]
            .rows
            .give(u64::from(region.first), u64::from(region.rows));
    }

    /// Gives memory to all rows taken so far; moves blocks.
    pub fn commit(&mut self) -> Result<(), Error> {
        for pool in &mut self.row_pools {
            let bytes = pool.rows.end() as usize * pool.row_bytes;
            pool.buffer.ensure(bytes, PURPOSE)?;
        }
        Ok(())
    }

    /// Bytes of all rows in use but those that stay.
    pub fn used_bytes(&self) -> u64 {
        let bytes = |pool: &PoolRows| (pool.rows.used() - pool.fixed) * pool.row_bytes as u64;
        self.row_pools.iter().map(bytes).sum()
    }

    /// Rows in use but those that stay, of all row pools.
    pub fn used_rows(&self) -> u64 {
        let rows = |pool: &PoolRows| pool.rows.used() - pool.fixed;
        self.row_pools.iter().map(rows).sum()
    }

    /// Bytes of a row of the row pool.
    pub fn row_bytes(&self, pool: usize) -> u64 {
        self.row_pools[pool].row_bytes as u64
    }

    /// Number of row pools.
    pub fn row_pools(&self) -> usize {
        self.row_pools.len()
    }

    /// All rows of the row pool that are in use are below this one; those that are not may hold
    /// anything, but can be read once there is memory for them.
    pub fn rows(&self, pool: usize) -> u64 {
        self.row_pools[pool].rows.end()
    }

    /// The address of row 0 of each row pool, for reading and writing all its rows; valid until the
    /// arena is next changed.
    pub fn bases(&mut self, bases: &mut Vec<PoolBase>) {
        bases.clear();
        bases.extend(self.row_pools.iter_mut().map(|pool| PoolBase {
            address: pool.buffer.bytes_mut().as_mut_ptr(),
            row_bytes: pool.row_bytes,
        }));
    }

    /// The bytes of a row, if there is such a row.
    pub fn row(&self, pool: usize, row: u64) -> Option<&[u8]> {
        self.row_range(pool, row, 1)
    }

    /// The bytes of rows, to be written, if there are such rows.
    pub fn rows_mut(&mut self, region: Region) -> Option<&mut [u8]> {
        let pool = self.row_pools.get_mut(region.pool)?;
        let (first, rows) = (region.first as usize, region.rows as usize);
        if (first + rows) as u64 > pool.rows.end() {
            return None;
        }
        let bytes = pool.buffer.bytes_mut();
        bytes.get_mut(first * pool.row_bytes..(first + rows) * pool.row_bytes)
    }

    /// The bytes of consecutive rows, if all of them exist.
    pub fn row_range(&self, pool: usize, first: u64, rows: u64) -> Option<&[u8]> {
        let number = pool;
        let pool = self.row_pools.get(pool)?;
        if first.checked_add(rows)? > pool.rows.end() {
            return None;
        }
        let mut lent = self.lent.iter();
        if let Some(lent) = lent.find(|lent| lent.has(number, first as u32)) {
            // SAFETY: who lent it keeps it as it is.
            return unsafe { lent.rows(first, rows, pool.row_bytes) };
        }
        let offset = first as usize * pool.row_bytes;
        let bytes = rows as usize * pool.row_bytes;
        pool.buffer.bytes().get(offset..offset + bytes)
    }
}

fn row_count(rows: u64) -> Result<u64, Error> {
    if rows > u64::from(u32::MAX) {
        return Err(Error::BatchTooLarge(format!(
            "{rows} rows of one shape in one batch; try a smaller --batch"
        )));
    }
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::inputs::InputBlock;
    use cohort_abi::manifest::{Elem, RowPool};

    /// Of a program with one row pool and nothing else.
    pub(crate) fn manifest() -> Manifest {
        Manifest {
            version: 1,
            entry: String::new(),
            arguments: vec![],
            result: cohort_abi::manifest::Type::Tuple(vec![]),
            adts: vec![],
            params: vec![],
            row_pools: vec![RowPool {
                elem: Elem::I32,
                shape: vec![2],
            }],
            sources: vec![],
            kernels: vec![],
            locations: vec![],
            debugs: vec![],
            forces: vec![],
            computed: vec![],
            grows_in_place: false,
            gradients: None,
            structure: None,
            gpu_flush: None,
            dims: vec![],
        }
    }

    fn arena() -> Arena {
        Arena::new(&manifest())
    }

    fn copy(from: &[u8], to: &mut [u8]) {
        to.copy_from_slice(from);
    }

    fn inputs(byte: u8, rows: u64) -> InputRows {
        let mut block = InputBlock::default();
        block.extend(&vec![byte; 8 * rows as usize]);
        block.rows = rows;
        InputRows {
            row_pools: vec![block],
        }
    }

    #[test]
    fn lent_rows_are_read_where_they_are_until_they_are_copied() {
        let mut arena = arena();
        let (one, other) = (inputs(1, 3), inputs(2, 2));
        let mut regions = vec![];
        // SAFETY: both are there to the end.
        unsafe {
            arena.lend_inputs(&one, &mut regions, 17, copy).unwrap();
            arena.lend_inputs(&other, &mut regions, 17, copy).unwrap();
        }
        // The other one has 16 bytes.
        assert_eq!((arena.lent().len(), regions.len()), (1, 2));
        let first = u64::from(regions[0].first);
        let lent = one.row_pools[0].bytes();
        assert_eq!(arena.row_range(0, first, 3), Some(lent));
        let at = |arena: &Arena| arena.row(0, first + 1).unwrap().as_ptr();
        assert_eq!(at(&arena), lent[8..].as_ptr());
        assert_eq!(arena.row_range(0, first, 4), None);
        assert_eq!(
            arena.row(0, u64::from(regions[1].first)).unwrap(),
            [2_u8; 8]
        );
        arena.commit().unwrap();
        arena.copy_lent(0, copy);
        assert!(arena.lent().is_empty());
        assert_eq!(arena.row_range(0, first, 3), Some(lent));
        assert_ne!(at(&arena), lent[8..].as_ptr());
        // What is given back is not lent any more.
        // SAFETY: it is there to the end.
        unsafe { arena.lend_inputs(&one, &mut regions, 1, copy).unwrap() };
        arena.give(regions[2]);
        assert!(arena.lent().is_empty());
    }

    #[test]
    fn sources_stay_while_inputs_and_results_change() {
        let mut arena = arena();
        let (first, bytes) = arena.add_sources(0, 1).unwrap();
        assert_eq!(first, 0);
        bytes.copy_from_slice(&[1; 8]);
        let mut regions = Vec::new();
        arena.put_inputs(&inputs(2, 2), &mut regions, copy).unwrap();
        assert_eq!((regions[0].first, arena.rows(0)), (1, 3));
        assert_eq!(arena.take(0, 1_000_000).unwrap().first, 3);
        assert!(arena.row(0, 1_000_003).is_none());
        arena.commit().unwrap();
        assert_eq!(arena.row(0, 0).unwrap(), &[1; 8]);
        assert_eq!(arena.row(0, 2).unwrap(), &[2; 8]);
        arena.give(regions[0]);
        arena.put_inputs(&inputs(3, 1), &mut regions, copy).unwrap();
        assert_eq!((regions[1].first, arena.rows(0)), (1, 1_000_003));
        assert_eq!(arena.row(0, 1).unwrap(), &[3; 8]);
        assert_eq!(
            (arena.used_rows(), arena.used_bytes()),
            (1_000_001, 8_000_008)
        );
        arena.reset();
        assert_eq!((arena.rows(0), arena.used_rows()), (1, 0));
        assert_eq!(arena.add_cached(0, 4).unwrap(), 1);
        arena.put_inputs(&inputs(4, 1), &mut regions, copy).unwrap();
        assert_eq!((regions[2].first, arena.used_rows()), (5, 1));
        arena.reset();
        assert_eq!((arena.rows(0), arena.used_rows()), (5, 0));
        assert_eq!(arena.sources().map(|region| region.rows).sum::<u32>(), 1);
    }

    #[test]
    fn row_numbers_do_not_wrap() {
        let mut arena = arena();
        arena.take(0, u64::from(u32::MAX)).unwrap();
        assert!(arena.take(0, 1).is_err());
    }
}
