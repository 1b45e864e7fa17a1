//! Softmax-like folds between two products: `Σ_j exp(s - max s) / Σ exp(s - max s) · v`, where `s` is
//! computed from a product, element by element.
//!
//! They can be computed block by block of `j` with rescaled sums, so that no score need be stored.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::name_of;

use super::graph::{Graph, Index, Kind, NodeId, Product, Size};

/// The attribute of the second product's operation that asks for it.
pub const ONLINE: &str = "ragged.online";

/// The most columns that either product may have where they are computed.
const MOST: i64 = 1024;

/// The chain of operations. Indices are over the variables of the second product's domain: its
/// result's dims, then `j`.
pub struct Chain {
    pub second: Product,
    /// What the exponentials are of, and where it is read.
    pub scores: (NodeId, Vec<Index>),
    /// The first product, and where it is read.
    pub first: (NodeId, Vec<Index>),
}

/// Finds the chain that ends in a product.
pub fn find(graph: &Graph<'_>, node: NodeId) -> Option<Chain> {
    let second = graph.product(node)?;
    if !matches!(graph.nodes[second.init].kind, Kind::Splat(0)) {
        return None;
    }
    let rank = graph.nodes[node].shape.len();
    let (row, j) = (rank - 2, rank);
    let weight = graph.resolve(second.a, &second.at);
    let [power, total] = operands(graph, &weight, "arith.divf")?;
    let [shifted] = operands(graph, &power, "math.exp")?;
    let [scores, most] = operands(graph, &shifted, "arith.subf")?;
    let folds =
        |fold: &(NodeId, Vec<Index>), of: &(NodeId, Vec<Index>), combiners: &[&str], start| {
            let Kind::Reduce {
                input,
                dims,
                combiner,
                init,
            } = &graph.nodes[fold.0].kind
            else {
                return false;
            };
            let [dim] = dims[..] else { return false };
            let mut at = fold.1.clone();
            if dim > at.len() {
                return false;
            }
            let free = at.iter().all(|index| index.coefficient(j) == 0);
            at.insert(dim, Index::var(j));
            let starts = matches!(graph.nodes[*init].kind, Kind::Splat(bits) if bits == start);
            free && starts
                && combiners.contains(&name_of(*combiner).as_str())
                && graph.resolve(*input, &at) == *of
        };
    let low = f32::NEG_INFINITY.to_bits();
    if !folds(&total, &power, &["arith.addf"], 0)
        || !folds(&most, &scores, &["arith.maximumf", "arith.maxnumf"], low)
    {
        return None;
    }
    let reads = graph.reads(scores.0, &scores.1, &|_| None);
    let [first] = &reads[..] else { return None };
    let product = graph.product(first.0)?;
    let [.., of_row, of_key] = &first.1[..] else {
        return None;
    };
    let known = |size: Size| size.known().is_some_and(|size| (1..=MOST).contains(&size));
    let fits = of_row.terms == [(row, 1)] && *of_key == Index::var(j);
    let free = first.1[..first.1.len() - 2]
        .iter()
        .all(|index| index.coefficient(j) == 0 && index.coefficient(row) == 0);
    let f32s = graph.nodes[scores.0].elem == Elem::F32;
    let zero = matches!(graph.nodes[product.init].kind, Kind::Splat(0));
    let columns = known(*graph.nodes[node].shape.last()?);
    (fits && free && f32s && zero && columns && known(product.depth)).then(|| Chain {
        second,
        scores: scores.clone(),
        first: first.clone(),
    })
}

/// The operands of a node that is this operation, where they are in the end read.
fn operands<const N: usize>(
    graph: &Graph<'_>,
    (node, at): &(NodeId, Vec<Index>),
    name: &str,
) -> Option<[(NodeId, Vec<Index>); N]> {
    let Kind::Pointwise { op, inputs } = &graph.nodes[*node].kind else {
        return None;
    };
    if name_of(*op) != name {
        return None;
    }
    let operands: Vec<_> = inputs
        .iter()
        .map(|input| graph.resolve(*input, at))
        .collect();
    operands.try_into().ok()
}
