//! Rows of inputs, which come and go by chunks.

use super::Executor;
use super::bucket_rows::NO_ROW;
use crate::error::Error;
use crate::memory::inputs::InputRows;

impl Executor {
    /// Takes the rows of a chunk of inputs; drops those that it had.
    pub fn put_inputs(&mut self, chunk: usize, inputs: &InputRows) -> Result<(), Error> {
        // SAFETY: nothing is lent.
        unsafe { self.take_inputs(chunk, inputs, u64::MAX) }
    }

    /// The same, but kernels read large blocks of rows where they are ([`Settings::lends_from`](super::Settings::lends_from)), if they can.
    ///
    /// # Safety
    ///
    /// The inputs stay as they are until they are [dropped](Executor::drop_inputs), or all are ([`Executor::reset`]).
    pub unsafe fn lend_inputs(&mut self, chunk: usize, inputs: &InputRows) -> Result<(), Error> {
        // A device has its own copy, and an inspector reads all rows of a pool from one base.
        let may_lend = self.device.is_none() && self.inspector.is_none();
        let lends_from = if may_lend { self.lends_from } else { u64::MAX };
        // SAFETY: the caller's promise.
        unsafe { self.take_inputs(chunk, inputs, lends_from) }
    }

    /// # Safety
    ///
    /// As of [`Executor::lend_inputs`], if a block has `lends_from` bytes.
    unsafe fn take_inputs(
        &mut self,
        chunk: usize,
        inputs: &InputRows,
        lends_from: u64,
    ) -> Result<(), Error> {
        self.drop_inputs(chunk);
        let copy = |from: &[u8], to: &mut [u8]| self.workers.copy(from, to);
        // SAFETY: the caller's promise.
        unsafe {
            (self.arena).lend_inputs(inputs, &mut self.chunks[chunk], lends_from, copy)?;
        }
        if let Some(runner) = &mut self.device {
            self.chunks[chunk]
                .iter()
                .for_each(|region| runner.put(*region));
        }
        for region in &self.chunks[chunk] {
            let bucket = self.numbering.input(chunk, region.pool);
            self.rows.set_first(bucket, 0, region.first);
        }
        Ok(())
    }

    /// No instance of the chunk is left.
    pub fn drop_inputs(&mut self, chunk: usize) {
        for region in self.chunks[chunk].drain(..) {
            self.arena.give(region);
            let bucket = self.numbering.input(chunk, region.pool);
            self.rows.set_first(bucket, 0, NO_ROW);
        }
    }
}
