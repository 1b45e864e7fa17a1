//! Along which dim the elements of a value are computed in vectors: one along which they lie side by side
//! in memory, and along which what they are made of need not be gathered.

use std::collections::{HashMap, HashSet};

use super::graph::{Graph, Kind, NodeId, Size, part_of};
use crate::kernel::affine::{Affine, Var};

/// Elements between neighbours along each dim; `None` where they differ from call to call.
pub type Strides = Vec<Option<i64>>;

/// The values of a kernel that lie in memory, with where their elements do.
pub struct Layouts<'a, 'c> {
    graph: &'a Graph<'c>,
    computed: HashMap<NodeId, Strides>,
}

/// Of dense memory of a shape, row after row.
pub fn dense(shape: &[Size]) -> Strides {
    let mut stride = Some(1);
    let mut strides: Strides = shape
        .iter()
        .rev()
        .map(|size| {
            let own = stride;
            stride = stride.and_then(|stride| Some(stride * size.known()?));
            own
        })
        .collect();
    strides.reverse();
    strides
}

/// Elements between lanes along a variable; `None` where they differ from call to call.
fn between_lanes(strides: &Strides, at: &[Affine], lane: Var) -> Option<i64> {
    let steps = at.iter().zip(strides);
    let steps = steps.filter(|(index, _)| index.coefficient(lane) != 0);
    steps
        .map(|(index, stride)| Some(index.coefficient(lane) * (*stride)?))
        .sum()
}

impl<'a, 'c> Layouts<'a, 'c> {
    /// With what a stage has computed.
    pub fn new(graph: &'a Graph<'c>, computed: HashMap<NodeId, Strides>) -> Layouts<'a, 'c> {
        Layouts { graph, computed }
    }

    fn strides(&self, node: NodeId) -> Option<Strides> {
        let of_node = &self.graph.nodes[node];
        let known = || {
            matches!(
                of_node.kind,
                Kind::Operand | Kind::Param(_) | Kind::Dense(_)
            )
        };
        let computed = self.computed.get(&node).cloned();
        computed.or_else(|| known().then(|| dense(&of_node.shape)))
    }

    /// How many loads of a node would gather with lanes along a variable.
    pub fn gathers(
        &self,
        node: NodeId,
        at: &[Affine],
        lane: Var,
        below: &dyn Fn(Var) -> Option<i64>,
    ) -> usize {
        let (mut count, mut seen) = (0, HashSet::new());
        let mut stack = vec![(node, at.to_vec())];
        while let Some((node, at)) = stack.pop() {
            let (node, at) = self.graph.resolve(node, &at);
            if !seen.insert((node, at.clone())) {
                continue;
            }
            if let Some(strides) = self.strides(node) {
                let stride = between_lanes(&strides, &at, lane);
                count += usize::from(!matches!(stride, Some(0 | 1)));
                continue;
            }
            match &self.graph.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    stack.extend(inputs.iter().map(|input| (*input, at.clone())));
                }
                Kind::Concat { inputs, dim } => {
                    stack.extend(part_of(self.graph, inputs, *dim, &at, below));
                }
                Kind::Reduce { input, dims, .. } => {
                    let mut kept = at.into_iter();
                    let domain = (0..self.graph.nodes[*input].shape.len())
                        .map(|dim| match dims.contains(&dim) {
                            true => Affine::default(),
                            false => kept.next().unwrap_or_default(),
                        })
                        .collect();
                    stack.push((*input, domain));
                }
                _ => {}
            }
        }
        count
    }

    /// The dim along which a node is computed in vectors, of those of memory to which it is stored. Trailing
    /// dims of one entry have no lanes, and where folds would gather, they have them. Lanes are stored side
    /// by side: one entry of several, as a part of a concatenation has, is not that.
    pub fn lanes_of_stores(
        &self,
        (node, at): (NodeId, &[Affine]),
        sizes: &[Option<i64>],
        memory: &Strides,
        below: &dyn Fn(Var) -> Option<i64>,
    ) -> Option<usize> {
        let lane = sizes.iter().rposition(|size| *size != Some(1))?;
        if memory[lane] != Some(1) {
            return None;
        }
        let reads = self.graph.reads(node, at, below);
        let gathers = |(node, at): &(NodeId, Vec<Affine>)| self.gathers(*node, at, lane, below);
        (!reads.iter().any(|read| gathers(read) > 0)).then_some(lane)
    }
}
