//! Rows of inputs, as readers make them; and those that stay where they are when a batch reads them.

use aligned_vec::{AVec, ConstAlign};

use super::arena::{PoolBase, Region};
use super::{ALIGNMENT, SLACK, advise_huge_pages};

/// Rows of inputs as the reader makes them.
#[derive(Clone, Debug, Default)]
pub struct InputRows {
    /// One a row pool.
    pub row_pools: Vec<InputBlock>,
}

/// The rows of one row pool, as [`InputRows`] has them.
#[derive(Clone, Debug)]
pub struct InputBlock {
    bytes: AVec<u8, ConstAlign<ALIGNMENT>>,
    /// How many rows.
    pub rows: u64,
}

impl Default for InputBlock {
    fn default() -> InputBlock {
        let bytes = AVec::new(ALIGNMENT);
        InputBlock { bytes, rows: 0 }
    }
}

impl InputBlock {
    /// The rows, one behind another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes; [`SLACK`] more could be read behind the last.
    pub fn extend(&mut self, bytes: &[u8]) {
        if let Some(lacking) = self.lacking(bytes.len()) {
            self.bytes.reserve(lacking);
            advise_huge_pages(spare(&self.bytes));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// As [`InputBlock::extend`]; false, and nothing is appended, where the system has no memory for that.
    pub fn try_extend(&mut self, bytes: &[u8]) -> bool {
        if let Some(lacking) = self.lacking(bytes.len()) {
            if self.bytes.try_reserve(lacking).is_err() {
                return false;
            }
            advise_huge_pages(spare(&self.bytes));
        }
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// How much to reserve before appending `bytes` bytes; nothing if they fit.
    fn lacking(&self, bytes: usize) -> Option<usize> {
        let least = self.bytes.len() + bytes + SLACK;
        let wanted = least.max(2 * self.bytes.capacity());
        (least > self.bytes.capacity()).then(|| wanted - self.bytes.len())
    }

    /// Shortens the block to `bytes` bytes, which are `rows` rows.
    pub fn truncate(&mut self, bytes: usize, rows: u64) {
        self.bytes.truncate(bytes);
        self.rows = rows;
    }

    /// Appends the rows of another block.
    pub fn append(&mut self, other: &InputBlock) {
        self.extend(&other.bytes);
        self.rows += other.rows;
    }

    /// Whether kernels can read its rows where they are.
    pub(super) fn has_slack(&self) -> bool {
        self.bytes.capacity() - self.bytes.len() >= SLACK
    }
}

/// The memory of a block, for advice on it.
fn spare(bytes: &AVec<u8, ConstAlign<ALIGNMENT>>) -> &[std::mem::MaybeUninit<u8>] {
    // SAFETY: it is the vector's memory, which may be uninitialised.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.capacity()) }
}

/// A block of inputs whose rows have numbers in the arena and are read where the reader made them.
#[derive(Clone, Copy, Debug)]
pub struct Lent {
    /// The numbers of its rows.
    pub region: Region,
    from: *const u8,
}

impl Lent {
    pub(super) fn new(region: Region, block: &InputBlock) -> Lent {
        let from = block.bytes.as_ptr();
        Lent { region, from }
    }

    /// Whether a row is one of these.
    pub fn has(&self, pool: usize, row: u32) -> bool {
        let Region { first, rows, .. } = self.region;
        self.region.pool == pool && row.checked_sub(first).is_some_and(|at| at < rows)
    }

    /// Where row 0 of the row pool would be if all rows lay as these do.
    pub fn base(&self, row_bytes: usize) -> PoolBase {
        let before = self.region.first as usize * row_bytes;
        PoolBase {
            address: self.from.wrapping_sub(before).cast_mut(),
            row_bytes,
        }
    }

    /// The bytes of `rows` rows from number `first` on; nothing unless all of them are in the block.
    ///
    /// # Safety
    ///
    /// The block is still there.
    pub(super) unsafe fn rows<'a>(
        &self,
        first: u64,
        rows: u64,
        row_bytes: usize,
    ) -> Option<&'a [u8]> {
        let at = first.checked_sub(u64::from(self.region.first))?;
        (at + rows <= u64::from(self.region.rows)).then(|| {
            let (at, bytes) = (at as usize * row_bytes, rows as usize * row_bytes);
            // SAFETY: the block has these rows, and is there by the caller's promise.
            unsafe { std::slice::from_raw_parts(self.from.add(at), bytes) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_slack_however_it_grows() {
        let mut block = InputBlock::default();
        for step in 0..300_u64 {
            block.extend(&vec![step as u8; 13 * step as usize]);
            block.rows += 1;
            assert!(block.bytes.capacity() - block.bytes.len() >= SLACK);
            assert_eq!(block.bytes.as_ptr().addr() % ALIGNMENT, 0);
        }
        let mut other = InputBlock::default();
        for step in 0..300_u64 {
            assert!(other.try_extend(&vec![step as u8; 13 * step as usize]));
            assert!(other.bytes.capacity() - other.bytes.len() >= SLACK);
        }
        assert_eq!(other.bytes(), block.bytes());
        let mut both = block.clone();
        both.append(&block);
        assert_eq!(both.rows, 600);
        assert_eq!(both.bytes()[block.bytes().len()..], *block.bytes());
        both.truncate(13, 2);
        assert_eq!((both.bytes(), both.rows), (&[1; 13][..], 2));
    }

    #[test]
    fn rows_are_found_by_their_numbers() {
        let mut block = InputBlock::default();
        block.extend(&[1, 1, 2, 2, 3, 3]);
        let region = Region {
            pool: 4,
            first: 10,
            rows: 3,
        };
        let lent = Lent::new(region, &block);
        let has = [(4, 9), (4, 10), (4, 12), (4, 13), (3, 10), (4, u32::MAX)];
        let has = has.map(|(pool, row)| lent.has(pool, row));
        assert_eq!(has, [false, true, true, false, false, false]);
        let base = lent.base(2);
        assert_eq!(
            base.address.wrapping_add(20).cast_const(),
            block.bytes.as_ptr()
        );
        // SAFETY: the block is there.
        let rows = |first, rows| unsafe { lent.rows(first, rows, 2) };
        assert_eq!(rows(11, 2), Some(&[2, 2, 3, 3][..]));
        assert_eq!([rows(9, 1), rows(11, 3)], [None, None]);
    }
}
