//! Finds values that are computed so often that storing them would be cheaper.

use std::collections::HashMap;

use cohort_dialects::builder::name_of;

use super::body::Body;
use super::graph::{Graph, Kind, NodeId};
use super::layout::Layouts;
use super::stage::Stage;

/// Cycles for a store and the loads that follow it, a vector.
const STORED: f64 = 8.0;

/// How many operations deep a cost is added up.
const DEPTH: usize = 8;

/// The last pointwise node that costs more to compute again than to store.
pub fn costly<'a, 'c: 'a>(
    graph: &Graph<'c>,
    layouts: &Layouts,
    stages: impl Iterator<Item = &'a Stage<'c>>,
) -> Option<NodeId> {
    costly_in(graph, layouts, stages.flat_map(Stage::bodies))
}

/// The same of the bodies that are computed on demand.
pub fn costly_in<'a, 'c: 'a>(
    graph: &Graph<'c>,
    layouts: &Layouts,
    bodies: impl Iterator<Item = &'a Body<'c>>,
) -> Option<NodeId> {
    let mut evaluations: HashMap<NodeId, i64> = HashMap::new();
    for (node, count) in bodies.flat_map(|body| &body.evaluations) {
        *evaluations.entry(*node).or_default() += count;
    }
    let costly = evaluations.into_iter().filter(|(id, count)| {
        let extra = *count as f64 / graph.nodes[*id].elements() as f64 - 1.0;
        layouts.of_node[*id].is_none() && extra * cost(graph, layouts, *id, DEPTH) > STORED
    });
    costly.map(|(id, _)| id).max()
}

/// Roughly the cycles to compute one vector of a node that has no memory.
fn cost(graph: &Graph<'_>, layouts: &Layouts, id: NodeId, depth: usize) -> f64 {
    if layouts.of_node[id].is_some() || depth == 0 {
        return 1.0;
    }
    let node = &graph.nodes[id];
    let own = match &node.kind {
        Kind::Pointwise { op, .. } => match name_of(*op).as_str() {
            "arith.divf" => 8.0,
            name if name.starts_with("math.") && name != "math.absf" => 20.0,
            _ => 1.0,
        },
        _ => 0.0,
    };
    let inputs = node.inputs();
    own + inputs
        .iter()
        .map(|input| cost(graph, layouts, *input, depth - 1))
        .sum::<f64>()
}
