//! Where results go, and how they become lines of the output, in the order of the input.

use std::io::Write;

use cohort_abi::manifest::Manifest;

use crate::backward::{InputGradient, InputGradients};
use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::io::output::json::{Formatter, gradient_record};
use crate::io::reorder::Reorder;
use crate::limits::Limits;

/// Takes the results of a run.
pub trait Sink {
    /// Takes the result of the instance of that number, from 0 on in the order of the input, or
    /// its error; whether what it took is what it was given, and not an error of its own. They come in
    /// any order.
    ///
    /// # Safety
    ///
    /// A result is what the program's entry left for an instance of the executor's last flush, and
    /// everything it points to is still there.
    unsafe fn put(
        &mut self,
        number: u64,
        id: &str,
        result: Result<*const u64, &InstanceError>,
        executor: &Executor,
    ) -> Result<bool, Error>;

    /// Appends the rows that are read when the result is put.
    ///
    /// # Safety
    ///
    /// As [`Sink::put`].
    unsafe fn wanted(&mut self, slots: *const u64, executor: &Executor, wanted: &mut Vec<Wanted>);

    /// Whether no new instance should begin, since too much waits for earlier ones.
    fn is_full(&self) -> bool;

    /// The run has no more for now.
    fn flush(&mut self) -> Result<(), Error>;
}

/// Lines of gradients of inputs, in the order of the input.
pub struct GradientLines<W: Write> {
    max_bytes: u64,
    reorder: Reorder,
    output: W,
}

impl<W: Write> GradientLines<W> {
    /// Writes to `output` lines of at most [`Limits::max_memory`] bytes.
    pub fn new(limits: &Limits, output: W) -> Self {
        GradientLines {
            max_bytes: limits.max_memory,
            reorder: Reorder::default(),
            output,
        }
    }
}

impl<W: Write> InputGradients for GradientLines<W> {
    fn put(
        &mut self,
        number: u64,
        id: &str,
        gradient: Result<InputGradient<'_>, &InstanceError>,
    ) -> Result<(), Error> {
        let line = gradient_record(id, gradient, self.max_bytes)?;
        self.reorder
            .put(number, &line, &mut self.output)
            .map_err(Error::WriteOutput)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.output.flush().map_err(Error::WriteOutput)
    }
}

/// Lines, in the order of the input. The output is given whole lines, one at a time.
pub struct JsonLines<'a, W: Write> {
    formatter: Formatter<'a>,
    reorder: Reorder,
    output: W,
}

impl<'a, W: Write> JsonLines<'a, W> {
    /// Writes results of this program to `output`, lines of at most [`Limits::max_memory`] bytes.
    pub fn new(manifest: &'a Manifest, limits: &Limits, output: W) -> Self {
        JsonLines {
            formatter: Formatter::new(manifest, limits.max_memory),
            reorder: Reorder::default(),
            output,
        }
    }
}

impl<W: Write> Sink for JsonLines<'_, W> {
    unsafe fn put(
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

    unsafe fn wanted(&mut self, slots: *const u64, executor: &Executor, wanted: &mut Vec<Wanted>) {
        // SAFETY: the caller's promise.
        unsafe { self.formatter.wanted(slots, executor, wanted) }
    }

    fn is_full(&self) -> bool {
        self.reorder.is_full()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.output.flush().map_err(Error::WriteOutput)
    }
}
