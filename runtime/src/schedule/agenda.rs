//! The agenda: always the kernel whose calls lie least deep on average, with all its ready calls.
//!
//! Where branches have different lengths, calls of one kernel lie at several depths; by depth each
//! is a launch of its own. The agenda merges whatever is ready. That the average is of all calls of
//! the kernel, not of the ready ones, keeps a kernel that ends each instance waiting until the long
//! instances are done too. Kinds are in the order of that average, so the first with ready calls it is.
//!
//! Neubig, Goldberg, Dyer: On-the-fly operation batching in dynamic computation graphs, 2017,
//! section 3.2; ACRoBat and just-in-time dynamic batching compare against it.

use super::frontier::{Frontier, Policy};
use super::groups::Groups;
use super::units::Units;
use super::{Grouping, Ready};

/// A scheduler that goes by average depth.
#[derive(Debug, Default)]
pub struct Agenda {
    frontier: Frontier,
}

impl Grouping for Agenda {
    fn run(&mut self, units: &Units, buckets: &[Ready], groups: &mut Groups) {
        self.frontier.run(units, buckets, groups, &mut LeastDeep);
    }
}

/// Chooses the kind whose calls lie least deep on average.
pub struct LeastDeep;

impl Policy for LeastDeep {}
