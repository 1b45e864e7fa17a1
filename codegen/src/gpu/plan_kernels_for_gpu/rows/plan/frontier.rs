//! What is stored of a product that a launch cannot keep in registers: the last value on the way from it
//! that can be computed with it.

use cohort_passes::kernel::rows::body::Body;
use cohort_passes::kernel::rows::graph::{Kind, NodeId};

use super::{LaunchPlanner, Stop};

impl<'c> LaunchPlanner<'_, 'c> {
    /// The last node on the way from a product to `end` that needs nothing but the product and what
    /// is in memory, and that everything on that way goes through.
    pub(super) fn frontier(&self, product: NodeId, end: NodeId) -> NodeId {
        let mut cone = vec![false; self.graph.nodes.len()];
        let mut stack = vec![end];
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut cone[id], true) && (id == end || self.is_computed(id)) {
                stack.extend(self.graph.nodes[id].inputs());
            }
        }
        let mut at = product;
        loop {
            let mut users = (0..cone.len()).filter(|id| {
                let reads = *id == end || self.is_computed(*id);
                cone[*id] && reads && self.graph.nodes[*id].inputs().contains(&at)
            });
            let (Some(user), None) = (users.next(), users.next()) else {
                return at;
            };
            let node = &self.graph.nodes[user];
            let others = node.inputs().into_iter().filter(|input| *input != at);
            let alone = others.into_iter().all(|input| self.in_memory_alone(input));
            if user == end || !alone || self.stored[user] {
                return at;
            }
            at = user;
        }
    }

    /// Whether a node is computed from its inputs where it is read.
    pub(super) fn is_computed(&self, id: NodeId) -> bool {
        let pointwise = matches!(
            self.graph.nodes[id].kind,
            Kind::Pointwise { .. } | Kind::Access { .. } | Kind::Reshape { .. }
        );
        pointwise && self.layouts.of_node[id].is_none()
    }

    /// Whether a node needs only operands, constants and what was written already.
    pub(super) fn in_memory_alone(&self, id: NodeId) -> bool {
        if self.is_computed(id) {
            let inputs = self.graph.nodes[id].inputs();
            return inputs.into_iter().all(|input| self.in_memory_alone(input));
        }
        matches!(
            self.graph.nodes[id].kind,
            Kind::Operand(_) | Kind::Param(_) | Kind::Dense | Kind::Splat(_) | Kind::HostScalar(_)
        ) || self.written.contains_key(&id)
    }

    /// Stores what a body reads of products in registers.
    pub(super) fn needs_memory(&self, end: NodeId, body: &Body<'c>) -> Result<(), Stop<'c>> {
        match body
            .buffers()
            .filter(|buffer| self.is_pending(*buffer))
            .min()
        {
            // The end itself may be what is stored.
            Some(product) => Err(Stop::Store(self.frontier_to(product, end))),
            None => Ok(()),
        }
    }

    /// As [`LaunchPlanner::frontier`], where `end` is read by what needs memory.
    fn frontier_to(&self, product: NodeId, end: NodeId) -> NodeId {
        let before = self.frontier(product, end);
        let only = self.graph.nodes[end].inputs();
        let others = only.iter().filter(|input| **input != before);
        let alone = others.into_iter().all(|input| self.in_memory_alone(*input));
        let grows = self.graph.nodes[end].elements() > self.graph.nodes[before].elements();
        if self.is_computed(end) && only.contains(&before) && alone && !grows {
            end
        } else {
            before
        }
    }
}
