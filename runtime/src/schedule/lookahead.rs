//! Looks ahead: a kernel is launched when no call that it will still be needed for is left behind.
//!
//! The *level* of a call is the number of calls of its kernel on the longest way to it. A kernel needs
//! at least as many launches as its highest level, so a launch that takes all calls of the lowest
//! level left is one that no order can save. While there always is such a kernel to choose, the
//! number of launches is the least possible. Of several, and where there is none, the least deep on
//! average comes first, as on the agenda.
//!
//! After the sufficient condition of ED-Batch (Chen et al., 2023), which compares the ready calls of a
//! kernel with those that would be ready if only calls of that kernel depended on each other.

use super::Grouping;
use super::agenda::{Agenda, by_average_depth};
use super::frontier::{Frontier, Policy};
use super::graph::CallGraph;
use super::groups::Groups;

#[derive(Debug, Default)]
pub struct Lookahead {
    frontier: Frontier,
    /// For flushes that are too large to look ahead in.
    agenda: Agenda,
}

impl Grouping for Lookahead {
    fn run(&mut self, graph: &CallGraph, groups: &mut Groups) {
        match graph.levels() {
            Some(levels) => {
                let mut policy = NothingLeftBehind::new(graph, &levels);
                self.frontier.run(graph, groups, &mut policy);
            }
            None => self.agenda.run(graph, groups),
        }
    }
}

struct NothingLeftBehind<'a> {
    graph: &'a CallGraph,
    levels: &'a [u32],
    /// Of each kind.
    progress: Vec<Progress>,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    /// By level: calls that were not launched, and how many of them are ready.
    levels: Vec<(u32, u32)>,
    /// The lowest level with calls left.
    lowest: usize,
    /// Of the ready calls, those that are counted already.
    counted: usize,
}

impl<'a> NothingLeftBehind<'a> {
    fn new(graph: &'a CallGraph, levels: &'a [u32]) -> NothingLeftBehind<'a> {
        let mut progress = vec![Progress::default(); graph.kinds.len()];
        for (kind, level) in graph.kind.iter().zip(levels) {
            let of_kind = &mut progress[*kind as usize].levels;
            let level = *level as usize;
            if of_kind.len() <= level {
                of_kind.resize(level + 1, (0, 0));
            }
            of_kind[level].0 += 1;
        }
        progress.iter_mut().for_each(Progress::skip);
        NothingLeftBehind {
            graph,
            levels,
            progress,
        }
    }

    /// Whether all calls of the kind's lowest level are ready.
    fn is_complete(&mut self, frontier: &Frontier, kind: u32) -> bool {
        let progress = &mut self.progress[kind as usize];
        let ready = &frontier.ready[kind as usize];
        for call in &ready[progress.counted..] {
            progress.levels[self.levels[*call as usize] as usize].1 += 1;
        }
        progress.counted = ready.len();
        let (left, ready) = progress.levels[progress.lowest];
        ready == left
    }
}

impl Policy for NothingLeftBehind<'_> {
    fn choose(&mut self, frontier: &Frontier, kinds: &[u32]) -> u32 {
        let complete: Vec<bool> = kinds
            .iter()
            .map(|kind| self.is_complete(frontier, *kind))
            .collect();
        let of = |index: usize| &self.graph.kinds[kinds[index] as usize];
        let best = (0..kinds.len()).min_by(|a, b| {
            let completeness = complete[*b].cmp(&complete[*a]);
            completeness.then_with(|| by_average_depth(of(*a), of(*b)))
        });
        best.map_or(0, |best| kinds[best])
    }

    fn launched(&mut self, kind: u32, calls: &[u32]) {
        let progress = &mut self.progress[kind as usize];
        for (index, call) in calls.iter().enumerate() {
            let (left, ready) = &mut progress.levels[self.levels[*call as usize] as usize];
            *left -= 1;
            *ready -= u32::from(index < progress.counted);
        }
        progress.counted = 0;
        progress.skip();
    }
}

impl Progress {
    fn skip(&mut self) {
        while self
            .levels
            .get(self.lowest)
            .is_some_and(|(left, _)| *left == 0)
        {
            self.lowest += 1;
        }
    }
}
