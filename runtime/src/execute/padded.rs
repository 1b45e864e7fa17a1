//! Padded storage: where a kernel's description says so, every call's rows are rounded up to a multiple,
//! and those of a launch together; for comparison, every call of a launch gets as many rows as the
//! longest of it.
//!
//! Loops are as ragged as ever: what is behind a call's own rows is neither computed nor read. But
//! rows of several calls no longer lie one behind another, so no loop runs over all of them at once,
//! and memory grows with the padding (CoRa §4.1 and §7, ragged storage).

use super::Executor;
use crate::error::Error;
use crate::memory::arena::Region;

impl Executor {
    /// On a device storage is ragged whatever the settings say.
    pub(super) fn is_padded(&self) -> bool {
        let padded = !self.ragged_storage || self.has_padding;
        padded && self.has_ragged && self.device.is_none()
    }

    /// Takes calls of ragged kernels apart, so that they begin wherever they are told to, pads them, and takes rows for all
    /// results.
    pub(super) fn pad(&mut self, log: &[u64], regions: &mut Vec<Region>) -> Result<(), Error> {
        for (number, ready) in self.ready.iter().enumerate() {
            if self.forms[ready.kernel as usize].is_ragged {
                self.groups.take_apart(number, ready.calls);
            }
        }
        self.measure_groups(log)?;
        let launches = self.groups.launches.iter();
        let forms = launches.map(|launch| &self.forms[launch.kernel as usize]);
        let rule = self.tables.rule();
        self.ragged.pad(forms.map(|form| rule.padded(form)));
        self.next_rows.clear();
        self.next_rows.resize(self.arena.row_pools(), 0);
        for (index, launch) in self.groups.launches.iter().enumerate() {
            let kernel = launch.kernel as usize;
            let rows = match self.forms[kernel].is_ragged {
                true => self.ragged.group_rows(index, launch.calls),
                false => u64::from(launch.calls),
            };
            for pool in &self.kernels[kernel].results {
                self.next_rows[*pool] += rows;
            }
        }
        self.take_next_rows(regions)
    }
}
