//! What instances run on: the program, what records its calls, and what computes them.

use cohort_abi::manifest::{Elem, Manifest};
use cohort_abi::{EntryFn, Handle};

use crate::error::Error;
use crate::execute::Executor;
use crate::failure::{InstanceError, Stop};
use crate::recorder::Recorder;

/// What instances run on.
pub struct Machine<'a> {
    /// The program's entry.
    pub entry: EntryFn,
    /// What the compiler says of the program.
    pub manifest: &'a Manifest,
    /// What instances record to.
    pub recorder: &'a mut Recorder,
    /// What computes what they recorded.
    pub executor: &'a mut Executor,
    /// Whether values that instances show are written.
    pub shows: bool,
}

impl Machine<'_> {
    /// The element type of the rows that decide there.
    pub(super) fn force_elem(&self, force: u32) -> Result<Elem, Error> {
        Ok(self.manifest.row_pools[self.force_pool(force)?].elem)
    }

    /// The row pool of the rows that decide there.
    pub fn force_pool(&self, force: u32) -> Result<usize, Error> {
        let force = self.manifest.forces.get(force as usize);
        let force = force.ok_or_else(|| Error::Internal("a decision of no place".to_owned()))?;
        Ok(force.pool)
    }

    /// What a row that is computed decides there.
    pub(super) fn decision(&self, handle: Handle, force: u32) -> Result<u32, Error> {
        let pool = self.force_pool(force)?;
        self.executor.decision(handle, pool)
    }

    /// What an instance is told that stopped at that depth of calls.
    pub(super) fn describe(&self, stop: &Stop, depth: u64) -> InstanceError {
        stop.describe(self.manifest, self.recorder.limits(), depth)
    }
}
