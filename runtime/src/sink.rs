//! Results become lines of the output, in the order of the input.

use std::io::Write;

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::limits::Limits;
use crate::output::Formatter;
use crate::reorder::Reorder;

/// Where results go. The output is given whole lines, one at a time.
pub struct Sink<'a, W: Write> {
    formatter: Formatter<'a>,
    reorder: Reorder,
    output: W,
}

impl<'a, W: Write> Sink<'a, W> {
    pub fn new(manifest: &'a Manifest, limits: &Limits, output: W) -> Self {
        Sink {
            formatter: Formatter::new(manifest, limits.max_memory),
            reorder: Reorder::default(),
            output,
        }
    }

    /// Takes the result of the instance of that number, from 0 on in the order of the input, or
    /// its error; whether there is a line with a result in the end.
    ///
    /// # Safety
    ///
    /// As [`Formatter::result`].
    pub unsafe fn put(
        &mut self,
        number: u64,
        id: &str,
        result: Result<*const u64, &InstanceError>,
        executor: &Executor,
    ) -> Result<bool, Error> {
        let (line, is_written) = match result {
            // SAFETY: the caller's promise.
            Ok(slots) => unsafe { self.formatter.result(id, slots, executor)? },
            Err(error) => (self.formatter.error(id, error)?, true),
        };
        self.reorder
            .put(number, line, &mut self.output)
            .map_err(Error::WriteOutput)?;
        Ok(is_written)
    }

    /// Appends the rows that the line of a result has.
    ///
    /// # Safety
    ///
    /// As [`Formatter::result`].
    pub unsafe fn wanted(
        &mut self,
        slots: *const u64,
        executor: &Executor,
        wanted: &mut Vec<Wanted>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.formatter.wanted(slots, executor, wanted) }
    }

    /// Whether so much waits for earlier lines that no new instance should begin.
    pub fn is_full(&self) -> bool {
        self.reorder.is_full()
    }

    /// Hands all lines whose turn it was to the output.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.output.flush().map_err(Error::WriteOutput)
    }
}
