//! The agenda: always the kernel whose calls lie least deep on average, with all its ready calls.
//!
//! Where branches have different lengths, calls of one kernel lie at several depths; by depth each
//! is a launch of its own. The agenda merges whatever is ready. That the average is of all calls of
//! the kernel, not of the ready ones, keeps a kernel that ends each instance waiting until the long
//! instances are done too.
//!
//! Neubig, Goldberg, Dyer: On-the-fly operation batching in dynamic computation graphs, 2017,
//! section 3.2; ACRoBat and just-in-time dynamic batching compare against it.

use super::Grouping;
use super::frontier::{Frontier, Policy};
use super::graph::{CallGraph, Kind};
use super::groups::Groups;

#[derive(Debug, Default)]
pub struct Agenda {
    frontier: Frontier,
}

impl Grouping for Agenda {
    fn run(&mut self, graph: &CallGraph, groups: &mut Groups) {
        self.frontier.run(graph, groups, &mut LeastDeep { graph });
    }
}

struct LeastDeep<'a> {
    graph: &'a CallGraph,
}

impl Policy for LeastDeep<'_> {
    fn choose(&mut self, _frontier: &Frontier, kinds: &[u32]) -> u32 {
        let of = |kind: &u32| &self.graph.kinds[*kind as usize];
        let least = kinds.iter().min_by(|a, b| by_average_depth(of(a), of(b)));
        least.copied().unwrap_or_default()
    }
}

/// Compares exactly, in whole numbers, so that ties are ties; then by kernel.
pub fn by_average_depth(a: &Kind, b: &Kind) -> std::cmp::Ordering {
    let scaled = |kind: &Kind, other: &Kind| u128::from(kind.depths) * u128::from(other.calls);
    (scaled(a, b), a.kernel).cmp(&(scaled(b, a), b.kernel))
}
