//! Finds values that are computed so often that storing them would be cheaper.

use std::collections::{BTreeMap, HashMap};

use cohort_dialects::builder::{Dialect, Op};
use cohort_passes::kernel::rows::body::Body;
use cohort_passes::kernel::rows::graph::{Graph, Kind, NodeId};
use cohort_passes::kernel::rows::layout::Layouts;
use cohort_passes::kernel::rows::stage::Stage;

/// Cycles for a store and the loads that follow it, a vector.
const STORED: f64 = 8.0;

/// How many operations deep a cost is added up.
const DEPTH: usize = 8;

/// Pointwise nodes that cost more to compute again than to store; see [`costly_in`].
pub fn costly<'a, 'c: 'a>(
    graph: &Graph<'c>,
    layouts: &Layouts,
    stages: impl Iterator<Item = &'a Stage<'c>>,
) -> Vec<NodeId> {
    costly_in(graph, layouts, stages.flat_map(Stage::bodies))
}

/// Nodes that cost more to compute again than to store, in bodies that are computed on demand. A value
/// that is stored is computed once, and so what it is made of is computed less often: from the last node
/// back, each is asked for what is left of its cost when those behind it are stored.
pub fn costly_in<'a, 'c: 'a>(
    graph: &Graph<'c>,
    layouts: &Layouts,
    bodies: impl Iterator<Item = &'a Body<'c>>,
) -> Vec<NodeId> {
    let mut evaluations: BTreeMap<NodeId, i64> = BTreeMap::new();
    for (node, count) in bodies.flat_map(|body| &body.evaluations) {
        *evaluations.entry(*node).or_default() += count;
    }
    let mut costly = Vec::new();
    let mut saved: HashMap<NodeId, i64> = HashMap::new();
    for (id, count) in evaluations.into_iter().rev() {
        if layouts.of_node[id].is_some() {
            continue;
        }
        let node = &graph.nodes[id];
        let mut less = saved.remove(&id).unwrap_or(0);
        let extra = (count - less) as f64 / node.elements() as f64 - 1.0;
        if extra * cost(graph, layouts, id, DEPTH) > STORED {
            costly.push(id);
            less = count - node.elements();
        }
        if less > 0 {
            for input in node.inputs() {
                *saved.entry(input).or_default() += less;
            }
        }
    }
    costly
}

/// Roughly the cycles to compute one vector of a node that has no memory.
fn cost(graph: &Graph<'_>, layouts: &Layouts, id: NodeId, depth: usize) -> f64 {
    if layouts.of_node[id].is_some() || depth == 0 {
        return 1.0;
    }
    let node = &graph.nodes[id];
    let own = match &node.kind {
        Kind::Pointwise { op, .. } => match Op::of(*op) {
            Some(Op::ArithDivf) => 8.0,
            _ if Dialect::Math.has(*op) && !Op::MathAbsf.is(*op) => 20.0,
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
