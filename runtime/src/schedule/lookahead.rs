//! Looks ahead: a kernel is launched when no call that it will still be needed for is left behind.
//!
//! A kernel needs at least as many launches as its highest rank, so a launch that takes all calls of the
//! lowest rank left is one that no order can save. While there always is such a kernel to choose, the
//! number of launches is the least possible. Of several, and where there is none, the least deep on
//! average comes first, as on the agenda.
//!
//! After the sufficient condition of ED-Batch (Chen et al., 2023), which compares the ready calls of a
//! kernel with those that would be ready if only calls of that kernel depended on each other.

use super::agenda::LeastDeep;
use super::frontier::{Frontier, Policy};
use super::groups::Groups;
use super::units::Units;
use super::{Grouping, Ready};

/// A scheduler that compares what is ready with what is still needed.
#[derive(Debug, Default)]
pub struct Lookahead {
    frontier: Frontier,
    progress: NothingLeftBehind,
}

impl Grouping for Lookahead {
    fn run(&mut self, units: &Units, buckets: &[Ready], groups: &mut Groups) {
        match units.has_ranks() {
            true => (self.frontier).run(units, buckets, groups, &mut self.progress),
            // The flush is too large to look ahead in.
            false => (self.frontier).run(units, buckets, groups, &mut LeastDeep),
        }
    }
}

#[derive(Debug, Default)]
struct NothingLeftBehind {
    /// Of each rank of each kind, of which there are at most as many as buckets: the units that were not
    /// launched, and how many of them are ready.
    ranks: Vec<(u32, u32)>,
    /// Of each kind, the lowest rank with units left.
    lowest: Vec<u32>,
}

impl NothingLeftBehind {
    fn of(&mut self, units: &Units, unit: u32) -> &mut (u32, u32) {
        let unit = units.units[unit as usize];
        let first = units.kinds[unit.kind as usize].first_bucket;
        &mut self.ranks[(first + unit.rank - 1) as usize]
    }

    fn skip(&mut self, units: &Units, kind: usize) {
        let kind_of = &units.kinds[kind];
        let ranks = &self.ranks[kind_of.first_bucket as usize..][..kind_of.buckets as usize];
        let left = &ranks[self.lowest[kind] as usize..];
        self.lowest[kind] += left.iter().take_while(|(left, _)| *left == 0).count() as u32;
    }
}

impl Policy for NothingLeftBehind {
    fn begin(&mut self, units: &Units) {
        self.ranks.clear();
        self.ranks.resize(units.buckets.len(), (0, 0));
        for unit in 0..units.count() as u32 {
            self.of(units, unit).0 += 1;
        }
        self.lowest.clear();
        self.lowest.resize(units.kinds.len(), 0);
    }

    fn is_ready(&mut self, units: &Units, unit: u32) {
        self.of(units, unit).1 += 1;
    }

    /// Whether all units of the kind's lowest rank are ready.
    fn is_good(&self, units: &Units, kind: u32) -> bool {
        let first = units.kinds[kind as usize].first_bucket;
        let lowest = self
            .ranks
            .get((first + self.lowest[kind as usize]) as usize);
        lowest.is_some_and(|(left, ready)| left == ready)
    }

    fn launched(&mut self, units: &Units, kind: u32, launched: &[u32]) {
        for unit in launched {
            let (left, ready) = self.of(units, *unit);
            *left -= 1;
            *ready -= 1;
        }
        self.skip(units, kind as usize);
    }
}
