//! Whole instances as the unit of batching: those whose graphs are alike run as one batch, call by
//! call.
//!
//! Two instances are alike when they recorded the same kernels in the same order, each call reading
//! the same earlier calls; which rows of parameters and inputs they read does not matter. Finding that
//! takes one look at each call, and no order has to be found at all; but instances of different shape
//! share no launch.
//!
//! Zha et al.: Just-in-time dynamic batching, 2019: the coarsest granularity of its analysis.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::graph::CallGraph;
use super::groups::{Groups, Share};
use super::{Ready, Recorded, Scheduler};

/// The instances of a flush.
#[derive(Debug, Default)]
pub struct Instances {
    graph: CallGraph,
    /// What each instance recorded, in a form that is equal for instances that are alike.
    shapes: Vec<u64>,
}

impl Scheduler for Instances {
    /// Calls must read only those of their own instance.
    fn schedule(&mut self, recorded: Recorded<'_>, buckets: &mut [Ready], groups: &mut Groups) {
        self.graph.build(recorded, buckets);
        groups.clear();
        let mut start = 0;
        for ready in buckets.iter() {
            groups.shares.push(Share::Apart { start });
            start += ready.calls;
        }
        groups.places.resize(start as usize, (0, 0));
        self.run(groups);
    }
}

impl Instances {
    fn run(&mut self, groups: &mut Groups) {
        let graph = &self.graph;
        let segments = &graph.segments;
        let bounds = |index: usize| {
            let end = segments
                .get(index + 1)
                .map_or(graph.len(), |end| *end as usize);
            segments[index] as usize..end
        };
        self.shapes.clear();
        let mut shape_ends = Vec::with_capacity(segments.len());
        for index in 0..segments.len() {
            write_shape(&mut self.shapes, graph, bounds(index));
            shape_ends.push(self.shapes.len());
        }
        let shape = |index: usize| {
            let begin = index.checked_sub(1).map_or(0, |before| shape_ends[before]);
            &self.shapes[begin..shape_ends[index]]
        };

        // Alike instances, in the order in which the first of each was recorded.
        let mut alike: Vec<Vec<usize>> = Vec::new();
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::new();
        let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        for index in (0..segments.len()).filter(|index| !bounds(*index).is_empty()) {
            let same_hash = by_hash.entry(hasher.hash_one(shape(index))).or_default();
            match same_hash
                .iter()
                .find(|group| shape(alike[**group][0]) == shape(index))
            {
                Some(group) => alike[*group].push(index),
                None => {
                    same_hash.push(alike.len());
                    alike.push(vec![index]);
                }
            }
        }

        let phase_of = |call: usize| graph.kinds[graph.kind[call] as usize].phase;
        let mut next = vec![0; alike.len()];
        let mut phases: Vec<u32> = graph.kinds.iter().map(|kind| kind.phase).collect();
        phases.dedup();
        for phase in phases {
            for (group, next) in alike.iter().zip(&mut next) {
                let first = bounds(group[0]);
                while *next < first.len() && phase_of(first.start + *next) <= phase {
                    let kind = graph.kind[first.start + *next];
                    let kernel = graph.kinds[kind as usize].kernel;
                    let launch = groups.launch(kernel);
                    let of = &mut groups.launches[launch as usize];
                    (of.calls, of.rows) = (group.len() as u32, group.len() as u32);
                    for (instance, number) in group.iter().zip(0..) {
                        let call = bounds(*instance).start + *next;
                        groups.places[graph.places[call] as usize] = (launch, number);
                    }
                    *next += 1;
                }
            }
        }
    }
}

/// For each call its kind and its inputs, relative to the instance's first call.
fn write_shape(shapes: &mut Vec<u64>, graph: &CallGraph, calls: std::ops::Range<usize>) {
    const END: u64 = u64::MAX;
    let first = calls.start as u64;
    for call in calls {
        shapes.push(u64::from(graph.kind[call]));
        let inputs = graph.inputs_of(call).iter();
        shapes.extend(inputs.map(|input| u64::from(*input).wrapping_sub(first)));
        shapes.push(END);
    }
}
