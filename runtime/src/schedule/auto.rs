//! By depth or by looking ahead, whichever was measured to be faster: see [`super::chooser`].
//!
//! An order by depth looks at no call, so where depth is in use, this costs what that does.

use std::time::Duration;

use super::chooser::{Arm, Chooser, Taken};
use super::groups::Groups;
use super::lookahead::Lookahead;
use super::{DepthScheduler, Grouped, Ready, Recorded, Scheduler};
use crate::report::stats::{MeasuredOrder, SchedulerStats};

/// A scheduler that chooses between two by measuring them.
#[derive(Debug, Default)]
pub struct Auto {
    lookahead: Grouped<Lookahead>,
    chooser: Chooser,
    /// The flush that is being computed.
    arm: Option<Arm>,
    flush: Taken,
    /// What was computed by depth, and by looking ahead, since counts were cleared.
    by_depth: MeasuredOrder,
    by_lookahead: MeasuredOrder,
}

impl Scheduler for Auto {
    fn schedule(&mut self, recorded: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups) {
        let arm = self.chooser.next();
        match arm {
            Arm::Depth => DepthScheduler.schedule(recorded, buckets, groups),
            Arm::Lookahead => self.lookahead.schedule(recorded, buckets, groups),
        }
        self.arm = Some(arm);
        self.flush = Taken {
            rows: buckets.iter().map(|ready| u64::from(ready.rows)).sum(),
            launches: groups.launches.len() as u64,
            by_depth: buckets.len() as u64,
            seconds: 0.0,
        };
    }

    fn reads_calls(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> bool {
        self.chooser.next() == Arm::Lookahead && self.lookahead.reads_calls(recorded, buckets)
    }

    fn took(&mut self, took: Duration) {
        // Where what was scheduled could not be computed, nothing is known of its time.
        let Some(arm) = self.arm.take() else {
            return;
        };
        self.flush.seconds = took.as_secs_f64();
        self.chooser.took(self.flush);
        let measured = match arm {
            Arm::Depth => &mut self.by_depth,
            Arm::Lookahead => &mut self.by_lookahead,
        };
        measured.flushes += 1;
        measured.launches += self.flush.launches;
        measured.rows += self.flush.rows;
        measured.seconds += self.flush.seconds;
    }

    fn clear_counts(&mut self) {
        self.by_depth = MeasuredOrder::default();
        self.by_lookahead = MeasuredOrder::default();
    }

    fn stats(&self) -> SchedulerStats {
        let measured = [
            (Arm::Depth, &self.by_depth),
            (Arm::Lookahead, &self.by_lookahead),
        ];
        let measured = measured.into_iter().filter(|(_, of)| of.flushes > 0);
        SchedulerStats {
            asked: "auto".to_owned(),
            used: self.chooser.used().name().to_owned(),
            why: self.chooser.reason().to_string(),
            measured: (measured)
                .map(|(arm, of)| MeasuredOrder {
                    scheduler: arm.name().to_owned(),
                    ..of.clone()
                })
                .collect(),
        }
    }
}
