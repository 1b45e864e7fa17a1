//! Along which dim a side of a product is packed, for each target.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;

use super::graph::{Graph, Kind, NodeId, Size, part_of};
use super::lanes::Layouts;
use super::neighbours::is_in_memory;
use super::stages::Side;
use crate::kernel::affine::{Affine, Var};

/// What a kernel is planned for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The host's processor.
    Cpu,
    /// A GPU, or its simulator.
    Gpu,
}

impl Target {
    /// Whether a loop may run in vectors, rather than in threads.
    pub fn has_vectors(self) -> bool {
        self == Target::Cpu
    }
}

/// A side of a product, read at an index of loops, of which one is over its rows or columns and one is the
/// depth. It is packed along the one where less need be gathered; where that is the same, as the target has it.
pub fn side(
    graph: &Graph<'_>,
    (value, at): (NodeId, Vec<Affine>),
    sizes: &[Size],
    [own, depth]: [Var; 2],
    (target, or_own): (Target, bool),
) -> Side {
    let layouts = Layouts::new(graph, HashMap::new());
    let below = |var: Var| sizes.get(var)?.known();
    let [own, depth] = [own, depth].map(|lane| layouts.gathers(value, &at, lane, &below));
    let or_depth = || match target {
        Target::Cpu => !or_own,
        Target::Gpu => copied(graph, (value, &at), &below).is_some(),
    };
    Side {
        along_depth: depth < own || depth == own && or_depth(),
        value,
        at,
    }
}

/// What a side is in memory from where a GPU copies it, rather than to be computed.
pub fn copied(
    graph: &Graph<'_>,
    side: (NodeId, &[Affine]),
    below: &dyn Fn(Var) -> Option<i64>,
) -> Option<(NodeId, Vec<Affine>)> {
    let (node, at) = located(graph, side, below);
    let is_copied = is_in_memory(graph, node) && graph.nodes[node].elem == Elem::F32;
    is_copied.then_some((node, at))
}

/// The node that is in the end read at an index, behind concatenations as well.
pub fn located(
    graph: &Graph<'_>,
    (node, at): (NodeId, &[Affine]),
    below: &dyn Fn(Var) -> Option<i64>,
) -> (NodeId, Vec<Affine>) {
    let mut read = graph.resolve(node, at);
    while let Kind::Concat { inputs, dim } = &graph.nodes[read.0].kind {
        match part_of(graph, inputs, *dim, &read.1, below) {
            Some((node, at)) => read = graph.resolve(node, &at),
            None => break,
        }
    }
    read
}
