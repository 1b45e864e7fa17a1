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
use crate::schedule::Order;

impl Executor {
    /// On a device storage is ragged whatever the settings say.
    pub(super) fn is_padded(&self) -> bool {
        let padded = !self.ragged_storage || self.has_padding;
        padded && self.has_ragged && self.device.is_none()
    }

    /// Makes the launches groups, whose calls begin wherever they are told to, pads their calls, and
    /// takes rows for all results.
    pub(super) fn pad(
        &mut self,
        log: &[u64],
        order: Order,
        regions: &mut Vec<Region>,
    ) -> Result<(), Error> {
        if matches!(order, Order::Buckets) {
            self.group_buckets();
        }
        self.measure_groups(log)?;
        let kernels = self.groups.launches.iter().map(|(kernel, _)| *kernel);
        let forms = kernels.map(|kernel| &self.forms[kernel as usize]);
        let rule = self.tables.rule();
        self.ragged.pad(forms.map(|form| rule.padded(form)));
        self.next_rows.clear();
        self.next_rows.resize(self.arena.row_pools(), 0);
        for (index, (kernel, calls)) in self.groups.launches.iter().enumerate() {
            let rows = match self.forms[*kernel as usize].is_ragged {
                true => self.ragged.group_rows(index, *calls),
                false => u64::from(*calls),
            };
            for pool in &self.kernels[*kernel as usize].results {
                self.next_rows[*pool] += rows;
            }
        }
        self.take_next_rows(regions)
    }

    /// Each bucket is a group, its calls in the order of recording.
    fn group_buckets(&mut self) {
        self.groups.clear();
        for ready in &self.order {
            let launch = self.groups.launch(ready.kernel);
            self.groups.put_whole(launch, ready.calls);
        }
    }
}
