//! Which calls of a flush make a launch, and in which order launches run.
//!
//! ```text
//! the calls by bucket ──DepthScheduler──────────────────┐ each bucket is a launch
//!         ├──Units (calls that wait for the same)       │
//!         │       ├─Agenda──────────────────────────────┤
//!         │       └─Lookahead───────────────────────────┼──► Groups: launches, and where each call is
//!         └──CallGraph──Instances───────────────────────┘
//! ```
//!
//! By depth nothing is searched: buckets are put in order, and that is all. The others look at calls and
//! may merge what lies at different depths. The agenda and the look-ahead go by depth too, and look no
//! further, where no order has fewer launches. The bits of the results depend on neither: every
//! order computes a call after all that it reads, and the calls of a later phase after those of an
//! earlier one. [`auto`] takes turns between two of them and keeps the one that is faster.

pub mod agenda;
pub mod auto;
pub mod chooser;
pub mod frontier;
pub mod graph;
pub mod groups;
pub mod instances;
pub mod lookahead;
pub mod units;

use std::time::Duration;

use crate::program::call_form::CallForm;
use crate::report::stats::SchedulerStats;
use agenda::Agenda;
use auto::Auto;
use groups::Groups;
use instances::Instances;
use lookahead::Lookahead;
use units::Units;

/// A bucket of the flush that has calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The bucket's number.
    pub bucket: u32,
    /// The kernel's number in the manifest.
    pub kernel: u32,
    /// The phase of its calls.
    pub phase: u32,
    /// One more than the deepest operand of its calls, of those of the same phase.
    pub depth: u32,
    /// How many calls it has.
    pub calls: u32,
    /// What its calls make; of an ordinary kernel, one each.
    pub rows: u32,
}

/// How launches are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By depth or by looking ahead, as is measured to be faster; see [`auto`].
    #[default]
    Auto,
    /// Calls of a kernel at one depth, the least deep first.
    Depth,
    /// See [`agenda`].
    Agenda,
    /// See [`lookahead`].
    Lookahead,
    /// See [`instances`].
    Instances,
}

impl Policy {
    /// A new scheduler that goes by this policy.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Policy::Auto => Box::new(Auto::default()),
            Policy::Depth => Box::new(DepthScheduler),
            Policy::Agenda => Box::new(Grouped::<Agenda>::default()),
            Policy::Lookahead => Box::new(Grouped::<Lookahead>::default()),
            Policy::Instances => Box::new(Instances::default()),
        }
    }

    /// As an option and statistics name it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Auto => "auto",
            Policy::Depth => "depth",
            Policy::Agenda => "agenda",
            Policy::Lookahead => "lookahead",
            Policy::Instances => "instance",
        }
    }
}

/// What was recorded since the last flush.
#[derive(Clone, Copy)]
pub struct Recorded<'a> {
    /// One entry a call, see [`crate::program::log`].
    pub log: &'a [u64],
    /// The form of each kernel's calls. The buckets of ghosts have a kernel behind the last.
    pub forms: &'a [CallForm],
    /// The buckets of ghosts.
    pub ghosts: &'a [Ready],
    /// Where in the log the entries of an instance begin, in order.
    pub segments: &'a [usize],
    /// Whether a call may lie deeper than its operands ask for: an instance began deeper than others.
    pub has_gaps: bool,
    /// Whether calls of the first depth of the first phase may be cached, and not among these.
    pub has_cached: bool,
}

/// A policy. Every order that it gives must put a call after all those that it reads, and after
/// those of an earlier phase.
pub trait Scheduler {
    /// Fills `groups` with launches of all calls. The buckets come in the order in which they were opened, and may be
    /// given another one.
    fn schedule(&mut self, recorded: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups);

    /// Whether it looks at the log when it schedules the next flush, which has these buckets. The log may lack calls
    /// as long as it was not asked.
    fn reads_calls(&mut self, _recorded: Recorded<'_>, _buckets: &[Ready]) -> bool {
        true
    }

    /// The flush that was scheduled last is computed; it took this time from the search for launches on. Not called
    /// for flushes on a device.
    fn took(&mut self, _took: Duration) {}

    /// Statistics begin anew.
    fn clear_counts(&mut self) {}

    /// What was chosen and why, of one that chooses.
    fn stats(&self) -> SchedulerStats {
        SchedulerStats::default()
    }
}

/// By phase and depth; at equal depth, where all orders are correct, by kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct DepthScheduler;

impl Scheduler for DepthScheduler {
    fn schedule(&mut self, _: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups) {
        buckets
            .sort_unstable_by_key(|ready| (ready.phase, ready.depth, ready.kernel, ready.bucket));
        groups.of_buckets(buckets);
    }

    fn reads_calls(&mut self, _: Recorded<'_>, _: &[Ready]) -> bool {
        false
    }
}

/// As recorded: an operand's bucket is always opened before its user's. The unbatched reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedOrder;

impl Scheduler for RecordedOrder {
    fn schedule(&mut self, _: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups) {
        groups.of_buckets(buckets);
    }
}

/// A policy that merges what lies at different depths.
trait Grouping {
    /// Fills `groups` with launches of all calls, in an order that [`Scheduler`] asks for.
    fn run(&mut self, units: &Units, buckets: &[Ready], groups: &mut Groups);
}

/// The break-even of a search, in units per launch saved: searching this many costs about as much as launching a
/// small kernel on a CPU.
const UNITS_A_LAUNCH: usize = 4;
/// The longest back-off after searches that did not pay: at least one flush in this many is searched.
const MOST_FLUSHES_A_SEARCH: u32 = 8;

#[derive(Debug, Default)]
struct Grouped<P> {
    units: Units,
    policy: P,
    /// How many flushes a search is for, the others going by depth: twice as many after each search that was not
    /// worth it.
    flushes_a_search: u32,
    /// How many of these are still to come.
    unsearched: u32,
}

impl<P: Grouping> Grouped<P> {
    /// Searches for launches; whether there are fewer than buckets.
    fn search(&mut self, recorded: Recorded<'_>, buckets: &[Ready], groups: &mut Groups) -> bool {
        let mut saved = 0;
        if self.units.find(recorded, buckets) {
            self.policy.run(&self.units, buckets, groups);
            saved = buckets.len().saturating_sub(groups.launches.len());
        }
        self.flushes_a_search = match self.units.count() > saved * UNITS_A_LAUNCH {
            true => (2 * self.flushes_a_search).clamp(1, MOST_FLUSHES_A_SEARCH),
            false => 0,
        };
        self.unsearched = self.flushes_a_search.saturating_sub(1);
        saved > 0
    }
}

impl<P: Grouping> Scheduler for Grouped<P> {
    fn schedule(&mut self, recorded: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups) {
        if self.units.open_kinds(recorded, buckets) > 0 {
            if self.unsearched > 0 {
                self.unsearched -= 1;
            } else if self.search(recorded, buckets, groups) {
                return;
            }
        }
        DepthScheduler.schedule(recorded, buckets, groups);
    }

    fn reads_calls(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) -> bool {
        self.unsearched == 0 && self.units.open_kinds(recorded, buckets) > 0
    }
}

#[cfg(test)]
mod tests;
