//! Rows: one growing block a space.
//!
//! The first rows of a space are those of the program's *sources*, and then those of calls that are
//! kept; both stay. After them, rows are taken and given back in [`Region`]s: for the *inputs* of a chunk of instances, and for the
//! *results* of a flush. No block ever shrinks.

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::memory::AlignedBuffer;
use crate::rows::Rows;

struct SpaceRows {
    buffer: AlignedBuffer,
    row_bytes: usize,
    sources: u64,
    /// Sources and what is kept.
    fixed: u64,
    rows: Rows,
}

/// All spaces of a program.
pub struct Arena {
    spaces: Vec<SpaceRows>,
}

/// Rows next to each other that were taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The number of their space.
    pub space: usize,
    /// The number of the first row in its space.
    pub first: u32,
    /// How many rows.
    pub rows: u32,
}

/// Rows of inputs as the reader makes them.
#[derive(Clone, Debug, Default)]
pub struct InputRows {
    /// One a space.
    pub spaces: Vec<InputBlock>,
}

/// The rows of one space, as [`InputRows`] has them.
#[derive(Clone, Debug, Default)]
pub struct InputBlock {
    /// The rows, one behind another.
    pub bytes: Vec<u8>,
    /// How many rows.
    pub rows: u64,
}

/// Where the rows of a space are.
#[derive(Clone, Copy, Debug)]
pub struct SpaceBase {
    /// The address of row 0.
    pub address: *mut u8,
    /// Bytes of a row.
    pub row_bytes: usize,
}

const PURPOSE: &str = "the rows of a batch (try a smaller --batch)";

impl Arena {
    /// An arena without rows, for the spaces of a program.
    pub fn new(manifest: &Manifest) -> Arena {
        let spaces = manifest
            .spaces
            .iter()
            .map(|space| SpaceRows {
                buffer: AlignedBuffer::default(),
                row_bytes: space.row_bytes() as usize,
                sources: 0,
                fixed: 0,
                rows: Rows::default(),
            })
            .collect();
        Arena { spaces }
    }

    /// Makes room for the rows of a source; only before what is kept and the first inputs. Gives the first one's number
    /// and the bytes to fill.
    pub fn add_sources(&mut self, space: usize, rows: u64) -> Result<(u32, &mut [u8]), Error> {
        let first = self.take(space, rows)?.first;
        self.commit()?;
        let space = &mut self.spaces[space];
        space.sources = space.rows.end();
        space.fixed = space.sources;
        let begin = first as usize * space.row_bytes;
        let end = space.sources as usize * space.row_bytes;
        Ok((first, &mut space.buffer.bytes_mut()[begin..end]))
    }

    /// Another one that has the same rows of sources, and nothing else.
    pub fn with_sources(&self) -> Result<Arena, Error> {
        let spaces = self.spaces.iter().map(|space| {
            let bytes = space.sources as usize * space.row_bytes;
            let mut buffer = AlignedBuffer::default();
            if bytes > 0 {
                buffer.ensure(bytes, PURPOSE)?;
                buffer.bytes_mut()[..bytes].copy_from_slice(&space.buffer.bytes()[..bytes]);
            }
            let mut rows = Rows::default();
            rows.take(space.sources);
            Ok(SpaceRows {
                buffer,
                row_bytes: space.row_bytes,
                sources: space.sources,
                fixed: space.sources,
                rows,
            })
        });
        let spaces = spaces.collect::<Result<_, Error>>()?;
        Ok(Arena { spaces })
    }

    /// Bytes of the rows that stay.
    pub fn fixed_bytes(&self) -> u64 {
        let bytes = |space: &SpaceRows| space.fixed.saturating_mul(space.row_bytes as u64);
        self.spaces.iter().map(bytes).sum()
    }

    /// Makes room for rows to be kept; only before the first inputs. Gives the first one's number.
    /// Memory of the system is used as they are written.
    pub fn add_kept(&mut self, space: usize, rows: u64) -> Result<u32, Error> {
        let first = self.take(space, rows)?.first;
        self.commit()?;
        let space = &mut self.spaces[space];
        space.fixed = space.rows.end();
        Ok(first)
    }

    /// The rows of the sources, a region a space that has any.
    pub fn sources(&self) -> impl Iterator<Item = Region> {
        let spaces = self.spaces.iter().enumerate();
        spaces
            .filter(|(_, space)| space.sources > 0)
            .map(|(space, rows)| Region {
                space,
                first: 0,
                rows: rows.sources as u32,
            })
    }

    /// Gives back all rows but those that stay.
    pub fn reset(&mut self) {
        for space in &mut self.spaces {
            space.rows.truncate(space.fixed);
        }
    }

    /// Takes rows for a chunk of inputs and has them copied there by `copy(from, to)`; appends the
    /// regions, one a space that has any.
    pub fn put_inputs(
        &mut self,
        inputs: &InputRows,
        regions: &mut Vec<Region>,
        copy: impl Fn(&[u8], &mut [u8]),
    ) -> Result<(), Error> {
        for (index, block) in inputs.spaces.iter().enumerate() {
            if block.rows == 0 {
                continue;
            }
            let region = self.take(index, block.rows)?;
            regions.push(region);
            let space = &mut self.spaces[index];
            let begin = region.first as usize * space.row_bytes;
            let end = begin + block.bytes.len();
            space.buffer.ensure(end, PURPOSE)?;
            copy(&block.bytes, &mut space.buffer.bytes_mut()[begin..end]);
        }
        Ok(())
    }

    /// That many rows. They have no memory before [`Arena::commit`].
    pub fn take(&mut self, space: usize, rows: u64) -> Result<Region, Error> {
        row_count(rows)?;
        let taken = &mut self.spaces[space].rows;
        let first = taken.take(rows);
        row_count(taken.end())?;
        Ok(Region {
            space,
            first: first as u32,
            rows: rows as u32,
        })
    }

    /// Nobody reads these rows any more.
    pub fn give(&mut self, region: Region) {
        self.spaces[region.space]
            .rows
            .give(u64::from(region.first), u64::from(region.rows));
    }

    /// Gives memory to all rows taken so far; moves blocks.
    pub fn commit(&mut self) -> Result<(), Error> {
        for space in &mut self.spaces {
            let bytes = space.rows.end() as usize * space.row_bytes;
            space.buffer.ensure(bytes, PURPOSE)?;
        }
        Ok(())
    }

    /// Bytes of all rows in use but those that stay.
    pub fn used_bytes(&self) -> u64 {
        let bytes = |space: &SpaceRows| (space.rows.used() - space.fixed) * space.row_bytes as u64;
        self.spaces.iter().map(bytes).sum()
    }

    /// Rows in use but those that stay, of all spaces.
    pub fn used_rows(&self) -> u64 {
        let rows = |space: &SpaceRows| space.rows.used() - space.fixed;
        self.spaces.iter().map(rows).sum()
    }

    /// Bytes of a row of the space.
    pub fn row_bytes(&self, space: usize) -> u64 {
        self.spaces[space].row_bytes as u64
    }

    /// Number of spaces.
    pub fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// All rows of the space that are in use are below this one; those that are not may hold
    /// anything, but can be read once there is memory for them.
    pub fn rows(&self, space: usize) -> u64 {
        self.spaces[space].rows.end()
    }

    /// The address of row 0 of each space, for reading and writing all its rows; valid until the
    /// arena is next changed.
    pub fn bases(&mut self, bases: &mut Vec<SpaceBase>) {
        bases.clear();
        bases.extend(self.spaces.iter_mut().map(|space| SpaceBase {
            address: space.buffer.bytes_mut().as_mut_ptr(),
            row_bytes: space.row_bytes,
        }));
    }

    /// The bytes of a row, if there is such a row.
    pub fn row(&self, space: usize, row: u64) -> Option<&[u8]> {
        self.row_range(space, row, 1)
    }

    /// The bytes of rows, to be written, if there are such rows.
    pub fn rows_mut(&mut self, region: Region) -> Option<&mut [u8]> {
        let space = self.spaces.get_mut(region.space)?;
        let (first, rows) = (region.first as usize, region.rows as usize);
        if (first + rows) as u64 > space.rows.end() {
            return None;
        }
        let bytes = space.buffer.bytes_mut();
        bytes.get_mut(first * space.row_bytes..(first + rows) * space.row_bytes)
    }

    /// The bytes of consecutive rows, if there are so many.
    pub fn row_range(&self, space: usize, first: u64, rows: u64) -> Option<&[u8]> {
        let space = self.spaces.get(space)?;
        if first.checked_add(rows)? > space.rows.end() {
            return None;
        }
        let offset = first as usize * space.row_bytes;
        let bytes = rows as usize * space.row_bytes;
        space.buffer.bytes().get(offset..offset + bytes)
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
    use cohort_abi::manifest::{Elem, Space};

    /// Of a program with one space and nothing else.
    pub(crate) fn manifest() -> Manifest {
        Manifest {
            version: 1,
            entry: String::new(),
            arguments: vec![],
            result: cohort_abi::manifest::Type::Tuple(vec![]),
            adts: vec![],
            params: vec![],
            spaces: vec![Space {
                elem: Elem::I32,
                shape: vec![2],
            }],
            sources: vec![],
            kernels: vec![],
            locations: vec![],
            debugs: vec![],
            forces: vec![],
            computed: vec![],
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
        InputRows {
            spaces: vec![InputBlock {
                bytes: vec![byte; 8 * rows as usize],
                rows,
            }],
        }
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
        assert_eq!(arena.add_kept(0, 4).unwrap(), 1);
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
