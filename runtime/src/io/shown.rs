//! What a program shows by `debug`: lines on the standard error stream.

use std::io::Write;

use cohort_abi::manifest::{Debug, Manifest};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::io::output::json::Formatter;
use crate::io::output::{Places, Walk};
use crate::recorder::Recorder;

/// A value that an instance shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// An index into the manifest's debugs.
    pub debug: u32,
    pub slots: *const u64,
}

impl Shown {
    fn debug<'m>(&self, manifest: &'m Manifest) -> Result<&'m Debug, Error> {
        let debug = manifest.debugs.get(self.debug as usize);
        debug.ok_or_else(|| Error::Internal("a value shown at no place".to_owned()))
    }

    /// The rows that the line has.
    ///
    /// # Safety
    ///
    /// The slots are a value of an instance that is alive.
    unsafe fn rows(
        &self,
        manifest: &Manifest,
        executor: &Executor,
        most_bytes: u64,
    ) -> Result<Vec<Wanted>, Error> {
        let ty = &self.debug(manifest)?.ty;
        let mut wanted = Vec::new();
        let mut places = Places::new(&mut wanted, most_bytes);
        // What is wrong with the value is told when it is written.
        // SAFETY: the caller's promise.
        let _ = unsafe { Walk::new(manifest).value(ty, self.slots, executor, &mut places) };
        Ok(wanted)
    }

    /// Whether all of the value is computed.
    ///
    /// # Safety
    ///
    /// As [`Shown::write`].
    pub unsafe fn is_computed(
        &self,
        manifest: &Manifest,
        recorder: &Recorder,
        executor: &Executor,
    ) -> Result<bool, Error> {
        // SAFETY: the caller's promise.
        let rows = unsafe { self.rows(manifest, executor, recorder.limits().max_memory)? };
        let waits =
            |wanted: &Wanted| wanted.rows > 0 && recorder.is_computed(wanted.handle) == Some(false);
        Ok(!rows.iter().any(waits))
    }

    /// Writes the line.
    ///
    /// # Safety
    ///
    /// The slots are a value of an instance that is alive, and all of it is computed.
    pub unsafe fn write(
        &self,
        id: &str,
        manifest: &Manifest,
        executor: &mut Executor,
        most_bytes: u64,
    ) -> Result<(), Error> {
        if executor.is_on_device() {
            // SAFETY: the caller's promise.
            let rows = unsafe { self.rows(manifest, executor, most_bytes)? };
            executor.fetch(&rows)?;
        }
        let mut formatter = Formatter::new(manifest, most_bytes);
        // SAFETY: the caller's promise.
        let line = unsafe { formatter.debug(id, self.debug(manifest)?, self.slots, executor)? };
        // Nothing can be done where stderr is gone.
        let _ = std::io::stderr().lock().write_all(line);
        Ok(())
    }
}
