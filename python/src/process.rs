//! Processes that fork.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The process in which something was made: one that it forks has its memory and not its threads, and would wait
/// for them for ever.
pub struct Process(u32);

impl Process {
    pub fn this() -> Process {
        Process(std::process::id())
    }

    /// An exception in any other process; `made` says what was made.
    pub fn check(&self, made: &str) -> PyResult<()> {
        match self.0 == std::process::id() {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(format!(
                "{made} before the process forked, and its thread is in the other process: load the model again \
                 here, or start processes with `spawn`"
            ))),
        }
    }
}
