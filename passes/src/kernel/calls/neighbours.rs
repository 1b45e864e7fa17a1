//! How many neighbours of what lies in memory can be taken at once: those that lie next to each other and begin
//! at a multiple of what is taken.

use cohort_abi::manifest::Elem;

use super::graph::{Graph, Kind, NodeId, Size};
use super::memory::{result_row_bytes, row_bytes};
use super::stages::Store;
use crate::kernel::affine::{Affine, Var};
use crate::kernel::rows::layout::elem_bytes;

/// The most bytes that are taken at once.
const WIDE_BYTES: i64 = 16;

/// Whether a node has memory of its own, which what reads it need not compute.
pub fn is_in_memory(graph: &Graph<'_>, node: NodeId) -> bool {
    matches!(
        graph.nodes[node].kind,
        Kind::Operand | Kind::Param(_) | Kind::Dense(_)
    )
}

/// How many floats of a node in memory can be copied at once that are neighbours where a variable counts up.
pub fn copied_at_once(graph: &Graph<'_>, (node, at): (NodeId, &[Affine]), along: Var) -> i64 {
    let begins = match graph.nodes[node].kind {
        Kind::Operand => row_bytes(graph, node) % WIDE_BYTES == 0,
        // What is made at load begins at a multiple of more.
        _ => true,
    };
    let wide = begins
        && is_near(graph, (node, at), along)
        && is_aligned(graph, (node, at), along, WIDE_BYTES);
    if wide { 4 } else { 1 }
}

/// How many neighbours along the last loop one store can write, at most `most`: their number divides every address.
pub fn stored_at_once(graph: &Graph<'_>, store: &Store, over: &[Size], most: i64) -> i64 {
    let node = graph.results[store.result];
    let bytes = elem_bytes(graph.nodes[node].elem) * most;
    let Some((last, outer)) = over.split_last() else {
        return 1;
    };
    let (to, along) = ((node, &store.to[..]), outer.len());
    let aligned = result_row_bytes(graph, node) % bytes == 0
        && is_near(graph, to, along)
        && is_aligned(graph, to, along, bytes);
    let whole = last.known().is_some_and(|size| size % most == 0);
    let fits = graph.nodes[node].elem != Elem::Bool && bytes <= WIDE_BYTES;
    if aligned && whole && fits { most } else { 1 }
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
fn is_near(graph: &Graph<'_>, (node, at): (NodeId, &[Affine]), along: Var) -> bool {
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

/// Whether neighbours, taken `bytes` bytes at once, begin at multiples of that from where the memory does.
fn is_aligned(graph: &Graph<'_>, (node, at): (NodeId, &[Affine]), along: Var, taken: i64) -> bool {
    let mut dims = at.iter().zip(strides(graph, node));
    dims.all(|(index, (bytes, _))| {
        let others = index.terms.iter().filter(|(var, _)| *var != along);
        let mut factors = others.map(|(_, coefficient)| *coefficient);
        index.constant * bytes % taken == 0 && factors.all(|factor| factor * bytes % taken == 0)
    })
}
