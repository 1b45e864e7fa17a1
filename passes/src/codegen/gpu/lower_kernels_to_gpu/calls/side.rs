//! How a factor of a product comes to shared memory: copied, four elements or one at a time, or computed;
//! and how many elements of a result leave at a time.

use std::collections::HashSet;

use cohort_abi::manifest::Elem;

use crate::kernel::calls::graph::{Graph, Index, Kind, NodeId, Size, Var, part_of};
use crate::kernel::calls::memory::{result_row_bytes, row_bytes};
use crate::kernel::calls::parts::Window;
use crate::kernel::rows::layout::elem_bytes;

/// Bytes of the widest copy.
const WIDE_BYTES: i64 = 16;

/// What a factor's tile is like.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Side {
    /// Whether neighbours along k are neighbours in the device's memory, rather than rows or columns.
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

/// Variables of the dims of a tile, and what variables are below.
pub struct Dims<'a> {
    pub k: Var,
    pub other: Var,
    pub below: &'a dyn Fn(Var) -> Option<i64>,
}

impl Side {
    /// What a node's tile is like that is read at an index.
    pub fn of(graph: &Graph<'_>, (node, at): (NodeId, &[Index]), dims: &Dims<'_>) -> Side {
        let (node, at) = located(graph, node, at, dims.below);
        if !is_in_memory(graph, node) || graph.nodes[node].elem != Elem::F32 {
            let gathers = |along: Var| gathers(graph, (node, &at), along, dims.below);
            return Side {
                along_k: gathers(dims.k) < gathers(dims.other),
                way: Way::Computed,
            };
        }
        let along_k = is_near(graph, node, &at, dims.k) || !is_near(graph, node, &at, dims.other);
        let along = if along_k { dims.k } else { dims.other };
        let wide = is_near(graph, node, &at, along) && is_aligned(graph, node, &at, along);
        Side {
            along_k,
            way: Way::Copied(if wide { 4 } else { 1 }),
        }
    }

    pub fn is_wide(self) -> bool {
        matches!(self.way, Way::Copied(4))
    }

    pub fn is_copied(self) -> bool {
        matches!(self.way, Way::Copied(_))
    }
}

/// How many elements of a part of a result that are neighbours along its last dim can be stored at once,
/// from a multiple of their number on: at most so many.
pub fn stored_at_once(graph: &Graph<'_>, (root, windows): (NodeId, &[Window]), most: i64) -> i64 {
    let bytes = elem_bytes(graph.nodes[root].elem) * most;
    let Some((last, _)) = windows.split_last() else {
        return 1;
    };
    let mut strides = strides(graph, root);
    strides.pop();
    let aligned = result_row_bytes(graph, root) % bytes == 0
        && strides.iter().all(|(stride, _)| stride % bytes == 0);
    let whole = last.from % most == 0 && last.size.known().is_some_and(|size| size % most == 0);
    let fits = graph.nodes[root].elem != Elem::Bool && bytes <= WIDE_BYTES;
    if aligned && whole && fits { most } else { 1 }
}

/// The node that is in the end read at an index, behind concatenations as well.
pub fn located(
    graph: &Graph<'_>,
    node: NodeId,
    at: &[Index],
    below: &dyn Fn(Var) -> Option<i64>,
) -> (NodeId, Vec<Index>) {
    let mut read = graph.resolve(node, at);
    while let Kind::Concat { inputs, dim } = &graph.nodes[read.0].kind {
        match part_of(graph, inputs, *dim, &read.1, below) {
            Some((node, at)) => read = graph.resolve(node, &at),
            None => break,
        }
    }
    read
}

fn is_in_memory(graph: &Graph<'_>, node: NodeId) -> bool {
    matches!(
        graph.nodes[node].kind,
        Kind::Operand | Kind::Param(_) | Kind::Dense(_)
    )
}

/// Of each dim, a number that the bytes between its neighbours are a multiple of, and whether they are
/// that number.
fn strides(graph: &Graph<'_>, node: NodeId) -> Vec<(i64, bool)> {
    let node = &graph.nodes[node];
    let mut stride = (elem_bytes(node.elem), true);
    let mut strides = vec![];
    for size in node.shape.iter().rev() {
        strides.push(stride);
        stride = match size {
            Size::Known(size) => (stride.0 * size, stride.1),
            Size::Length(_) => (stride.0, false),
        };
    }
    strides.reverse();
    strides
}

/// Whether a node's elements are neighbours in memory where a variable counts up.
fn is_near(graph: &Graph<'_>, node: NodeId, at: &[Index], along: Var) -> bool {
    let mut sum = 0;
    for (index, (bytes, known)) in at.iter().zip(strides(graph, node)) {
        match index.coefficient(along) {
            0 => {}
            coefficient if known => sum += coefficient * bytes,
            _ => return false,
        }
    }
    sum == elem_bytes(graph.nodes[node].elem)
}

/// Whether every fourth of these neighbours begins at a multiple of the widest copy.
fn is_aligned(graph: &Graph<'_>, node: NodeId, at: &[Index], along: Var) -> bool {
    let begins = match graph.nodes[node].kind {
        Kind::Operand => row_bytes(graph, node) % WIDE_BYTES == 0,
        // What is made at load begins at a multiple of more.
        _ => true,
    };
    let mut dims = at.iter().zip(strides(graph, node));
    begins
        && dims.all(|(index, (bytes, _))| {
            let others = index.terms.iter().filter(|(var, _)| *var != along);
            let mut factors = others.map(|(_, coefficient)| *coefficient);
            index.constant * bytes % WIDE_BYTES == 0
                && factors.all(|factor| factor * bytes % WIDE_BYTES == 0)
        })
}

/// How many loads of a node are not of neighbours where a variable counts up.
fn gathers(
    graph: &Graph<'_>,
    (node, at): (NodeId, &[Index]),
    along: Var,
    below: &dyn Fn(Var) -> Option<i64>,
) -> usize {
    let (mut count, mut seen) = (0, HashSet::new());
    let mut stack = vec![(node, at.to_vec())];
    while let Some((node, at)) = stack.pop() {
        let (node, at) = located(graph, node, &at, below);
        if !seen.insert((node, at.clone())) {
            continue;
        }
        if is_in_memory(graph, node) {
            let same = at.iter().all(|index| index.coefficient(along) == 0);
            count += usize::from(!same && !is_near(graph, node, &at, along));
        } else if let Kind::Pointwise { inputs, .. } = &graph.nodes[node].kind {
            stack.extend(inputs.iter().map(|input| (*input, at.clone())));
        }
    }
    count
}
