//! How a factor of a product comes to shared memory: copied, four elements or one at a time, or computed.

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::affine::Var;
use cohort_passes::kernel::calls::graph::Graph;
use cohort_passes::kernel::calls::neighbours::{copied_at_once, is_in_memory};
use cohort_passes::kernel::calls::stages;

/// What a factor's tile is like.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Side {
    /// Whether neighbours along k are neighbours in the tile, rather than rows or columns.
    pub along_k: bool,
    pub way: Way,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// So many elements at a time, from where they lie.
    Copied(i64),
    /// Each by the thread that stores it.
    Computed,
}

impl Side {
    /// What a stage's side is like, of which one loop is over k and one over its rows or columns.
    pub fn of(graph: &Graph<'_>, side: &stages::Side, k: Var, other: Var) -> Side {
        let along_k = side.along_depth;
        let (node, at) = graph.resolve(side.value, &side.at);
        let is_copied = is_in_memory(graph, node) && graph.nodes[node].elem == Elem::F32;
        let along = if along_k { k } else { other };
        let way = match is_copied {
            true => Way::Copied(copied_at_once(graph, (node, &at), along)),
            false => Way::Computed,
        };
        Side { along_k, way }
    }

    pub fn is_copied(self) -> bool {
        matches!(self.way, Way::Copied(_))
    }
}
