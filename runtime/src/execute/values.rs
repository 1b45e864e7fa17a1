//! What flushes computed, as others read it by handles: rows, and the elements that decide.

use cohort_abi::Handle;

use super::Executor;
use crate::error::Error;

impl Executor {
    /// The row that a handle stands for, after the flush that computed it.
    pub fn row(&self, handle: Handle, pool: usize) -> Option<&[u8]> {
        self.rows(handle, pool, 1)
    }

    /// `rows` consecutive rows, the first of which the handle names, after the flush that computed them.
    pub fn rows(&self, handle: Handle, pool: usize, rows: u64) -> Option<&[u8]> {
        if rows == 0 {
            // The row behind the last may be none.
            return Some(&[]);
        }
        let first = self.rows.find(handle.0, self.arena.rows(pool))?;
        self.arena.row_range(pool, first, rows)
    }

    /// The bits of the one element of each of the rows, given by handle and row pool, in the same
    /// order; a `bool` is 0 or 1.
    ///
    /// Where rows are in the memory of a device, those that can decide were brought by the flush.
    pub fn decisions(
        &self,
        rows: &[(Handle, usize)],
        decisions: &mut Vec<u32>,
    ) -> Result<(), Error> {
        decisions.clear();
        for (handle, pool) in rows {
            decisions.push(self.decision(*handle, *pool)?);
        }
        Ok(())
    }

    /// One of [`Executor::decisions`], by a row that was computed before.
    pub fn decision(&self, handle: Handle, pool: usize) -> Result<u32, Error> {
        match self.row(handle, pool) {
            Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
            Some(&[truth]) => Ok(u32::from(truth != 0)),
            Some(_) | None => Err(Error::Internal(
                "a decision by a handle of no row".to_owned(),
            )),
        }
    }
}
