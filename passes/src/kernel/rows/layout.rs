//! Where values live in memory while a kernel runs, and which values need to live there at all.

use cohort_abi::manifest::Elem;

use super::graph::{Graph, Kind, NodeId, dense_strides};
use crate::kernel::affine::Affine;

/// Floats in a vector; rows in scratch start at multiples of it.
pub const LANES: i64 = cohort_abi::VECTOR_COLUMNS;

/// Memory that outlives a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Rows of an operand, found through its index list.
    Operand(usize),
    /// The dense rows of a result.
    Result(usize),
    /// A parameter or constant; the node tells which.
    Constant(NodeId),
    /// An entry of [`Layouts::slots`].
    Slot(usize),
    /// A sum of products that a thread of a GPU has in registers.
    Sum(usize),
}

/// A part of the scratch.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Bytes of a row, or of all where it is shared.
    pub bytes: i64,
    /// One for every row of the block, instead of one for all.
    pub rows: bool,
    /// Rows of a product for each row; their number is rounded up to a whole row tile.
    pub product_rows: i64,
    /// Whether it is in the shared memory of a GPU's block.
    pub on_chip: bool,
    /// Whether its numbers are kept in bf16, for a GPU's products.
    pub bf16: bool,
}

/// Memory of a node: element `i` of a row is `Σ i[d] * strides[d]` elements from the row's start.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Which memory.
    pub place: Place,
    /// For each dim, how many elements apart its neighbours lie.
    pub strides: Vec<i64>,
}

/// Elements of a node that another node selects: strides over the selecting node's index.
#[derive(Clone, Debug)]
pub struct View {
    /// The node whose memory it is.
    pub buffer: NodeId,
    /// The first element.
    pub offset: i64,
    /// For each dim, how many elements apart its neighbours lie.
    pub strides: Vec<i64>,
}

impl View {
    /// The element at an index, one entry for each dim.
    pub fn address(&self, index: &[Affine]) -> Affine {
        Affine::strided(self.offset, &self.strides).at(index)
    }
}

/// Where the nodes of a graph lie.
#[derive(Default)]
pub struct Layouts {
    /// By node; `None` for one that is computed where it is read.
    pub of_node: Vec<Option<Layout>>,
    /// The parts of the scratch.
    pub slots: Vec<Slot>,
    /// Results that are not computed in place and must be copied: result and node.
    pub copies: Vec<(usize, NodeId)>,
}

/// How many bytes an element takes in memory.
pub fn elem_bytes(elem: Elem) -> i64 {
    elem.bytes() as i64
}

/// The least multiple that is not below a value.
pub fn round_up(value: i64, multiple: i64) -> i64 {
    (value + multiple - 1) / multiple * multiple
}

impl Layouts {
    /// Gives memory to every node of `stored` and to those that always need it.
    pub fn assign(graph: &Graph<'_>, counts: &[usize], stored: &[bool]) -> Layouts {
        let mut layouts = Layouts {
            of_node: vec![None; graph.nodes.len()],
            ..Layouts::default()
        };
        layouts.assign_results(graph);
        for (id, node) in graph.nodes.iter().enumerate() {
            if counts[id] == 0 || layouts.of_node[id].is_some() {
                continue;
            }
            let dense = dense_strides(&node.shape);
            let (place, strides) = match &node.kind {
                Kind::Operand(index) => (Place::Operand(*index), dense),
                Kind::Param(_) | Kind::Dense => (Place::Constant(id), dense),
                Kind::Product { init, .. } => layouts.product(graph, counts, id, *init),
                Kind::Concat { .. }
                | Kind::Reduce { .. }
                | Kind::ReduceRows { .. }
                | Kind::LoopsResult { .. } => (layouts.slot(graph, id), dense),
                Kind::Loops(_) | Kind::List(_) => continue,
                _ if stored[id] => (layouts.slot(graph, id), dense),
                _ => continue,
            };
            layouts.of_node[id] = Some(Layout { place, strides });
        }
        layouts
    }

    /// A value that is a result is computed into the result's rows where that can be.
    fn assign_results(&mut self, graph: &Graph<'_>) {
        for (result, id) in graph.results.iter().enumerate() {
            let node = &graph.nodes[*id];
            let fits = match &node.kind {
                Kind::Pointwise { .. }
                | Kind::Access { .. }
                | Kind::Reshape { .. }
                | Kind::Concat { .. }
                | Kind::Reduce { .. }
                | Kind::ReduceRows { .. }
                | Kind::LoopsResult { .. } => node.rows && self.of_node[*id].is_none(),
                _ => false,
            };
            if fits {
                let strides = dense_strides(&node.shape);
                self.of_node[*id] = Some(Layout {
                    place: Place::Result(result),
                    strides,
                });
            } else {
                self.copies.push((result, *id));
            }
        }
    }

    fn slot(&mut self, graph: &Graph<'_>, id: NodeId) -> Place {
        let node = &graph.nodes[id];
        let bytes = node.elements() * elem_bytes(node.elem);
        self.add_slot(Slot {
            bytes: round_up(bytes, 64),
            rows: node.rows,
            product_rows: 0,
            on_chip: false,
            bf16: false,
        })
    }

    /// Adds a part to the scratch.
    pub fn add_slot(&mut self, slot: Slot) -> Place {
        self.slots.push(slot);
        Place::Slot(self.slots.len() - 1)
    }

    /// A product's rows are padded to whole vectors; one that starts from another product which
    /// nothing else reads goes on in its memory.
    fn product(
        &mut self,
        graph: &Graph<'_>,
        counts: &[usize],
        id: NodeId,
        init: NodeId,
    ) -> (Place, Vec<i64>) {
        let node = &graph.nodes[id];
        let goes_on = self.continues(graph, counts, init);
        if let Some(layout) = self.of_node[init].as_ref().filter(|_| goes_on) {
            return (layout.place, layout.strides.clone());
        }
        let columns = node.shape.last().copied().unwrap_or(1);
        let mut padded = node.shape.clone();
        if let Some(last) = padded.last_mut() {
            *last = round_up(columns, LANES);
        }
        let bytes = padded.iter().product::<i64>() * 4;
        let product_rows = node.elements() / columns;
        let place = self.add_slot(Slot {
            bytes,
            rows: true,
            product_rows,
            on_chip: false,
            bf16: false,
        });
        (place, dense_strides(&padded))
    }

    /// Whether a product that starts from `init` may overwrite it.
    pub fn continues(&self, graph: &Graph<'_>, counts: &[usize], init: NodeId) -> bool {
        matches!(graph.nodes[init].kind, Kind::Product { .. }) && counts[init] == 1
    }

    /// The memory that a node selects from, if it only selects.
    pub fn view(&self, graph: &Graph<'_>, id: NodeId) -> Option<View> {
        if let Some(layout) = &self.of_node[id] {
            return Some(View {
                buffer: id,
                offset: 0,
                strides: layout.strides.clone(),
            });
        }
        self.selected(graph, id)
    }

    /// The memory that a node selects from, be it stored itself or not.
    pub fn selected(&self, graph: &Graph<'_>, id: NodeId) -> Option<View> {
        match &graph.nodes[id].kind {
            Kind::Access { source, index } => {
                let view = self.view(graph, *source)?;
                let rank = graph.nodes[id].shape.len();
                let mut sum = Affine::constant(view.offset);
                for (stride, linear) in view.strides.iter().zip(index) {
                    sum = sum.plus(&linear.times(*stride));
                }
                Some(View {
                    buffer: view.buffer,
                    offset: sum.constant,
                    strides: sum.coefficients(rank),
                })
            }
            Kind::Reshape { source } => {
                let view = self.view(graph, *source)?;
                let from = &graph.nodes[*source].shape;
                let strides = reshape_strides(from, &view.strides, &graph.nodes[id].shape)?;
                Some(View { strides, ..view })
            }
            _ => None,
        }
    }
}

/// Dims of `from` and of `to` that hold the same elements, group by group.
pub fn reshape_groups(from: &[i64], to: &[i64]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (mut left, mut right) = (vec![], vec![]);
        let (mut a, mut b) = (1, 1);
        loop {
            if i < from.len() && (a < b || left.is_empty() || a == b && from[i] == 1) {
                a *= from[i];
                left.push(i);
                i += 1;
            } else if j < to.len() && (b < a || right.is_empty() || a == b && to[j] == 1) {
                b *= to[j];
                right.push(j);
                j += 1;
            } else {
                break;
            }
        }
        groups.push((left, right));
    }
    groups
}

/// Strides of a strided tensor seen in another shape; `None` when no strides say it.
fn reshape_strides(from: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
    let mut result = vec![0; to.len()];
    for (left, right) in reshape_groups(from, to) {
        let left: Vec<usize> = left.into_iter().filter(|dim| from[*dim] != 1).collect();
        for pair in left.windows(2) {
            if strides[pair[0]] != strides[pair[1]] * from[pair[1]] {
                return None;
            }
        }
        let mut stride = left.last().map_or(0, |dim| strides[*dim]);
        for dim in right.into_iter().rev() {
            result[dim] = stride;
            stride *= to[dim];
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_equal_elements() {
        assert_eq!(
            reshape_groups(&[2, 3, 4], &[6, 4]),
            vec![(vec![0, 1], vec![0]), (vec![2], vec![1])]
        );
        assert_eq!(
            reshape_groups(&[6], &[1, 2, 3]),
            vec![(vec![0], vec![0, 1, 2])]
        );
        assert_eq!(reshape_groups(&[1, 1], &[]), vec![(vec![0, 1], vec![])]);
    }

    #[test]
    fn padded_rows_do_not_collapse() {
        assert_eq!(reshape_strides(&[2, 3], &[16, 1], &[6]), None);
        assert_eq!(reshape_strides(&[2, 3], &[3, 1], &[6]), Some(vec![1]));
        assert_eq!(reshape_strides(&[6], &[1], &[2, 3]), Some(vec![3, 1]));
    }
}
