//! Softmax-like folds between two products: `Σ_j exp(s - max s) / Σ exp(s - max s) · v`, where `s` is
//! computed from a product, element by element.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Op;

use crate::kernel::affine::Affine;
use crate::kernel::calls::graph::{Graph, Kind, NodeId, Product, Size};
use crate::kernel::calls::stages::Matmul;

/// The most columns that either product may have where they are computed.
const MOST: i64 = 1024;

/// A value, and the index of loops where it is read.
type Read = (NodeId, Vec<Affine>);

/// The chain of operations. Indices are of the loops over the result, then `j`.
pub struct Chain {
    /// What the exponentials are of.
    pub scores: Read,
    /// The first product, and its sides.
    pub first: Read,
    pub product: Product,
}

/// Finds the chain that ends in a product.
pub fn find(graph: &Graph<'_>, second: &Matmul) -> Option<Chain> {
    let rank = second.over.len();
    let (row, j) = (rank - 2, rank);
    if second.onto || second.until.is_some() {
        return None;
    }
    let weight = graph.resolve(second.left.value, &second.left.at);
    let [power, total] = operands(graph, &weight, Op::ArithDivf)?;
    let [shifted] = operands(graph, &power, Op::MathExp)?;
    let [scores, most] = operands(graph, &shifted, Op::ArithSubf)?;
    // Whether one folds the other over all `j`.
    let folds = |fold: &Read, of: &Read, combiners: &[Op], start: u32| {
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
        if dim > at.len() || graph.nodes[*input].shape[dim] != second.depth {
            return false;
        }
        let free = at.iter().all(|index| index.coefficient(j) == 0);
        at.insert(dim, Affine::var(j));
        let starts = matches!(graph.nodes[*init].kind, Kind::Splat(bits) if bits == start);
        free && starts
            && combiners.iter().any(|kind| kind.is(*combiner))
            && graph.same((*input, &at), (of.0, &of.1))
    };
    let low = f32::NEG_INFINITY.to_bits();
    if !folds(&total, &power, &[Op::ArithAddf], 0)
        || !folds(&most, &scores, &[Op::ArithMaximumf, Op::ArithMaxnumf], low)
    {
        return None;
    }
    let reads = graph.reads(scores.0, &scores.1, &|_| None);
    let [first] = &reads[..] else { return None };
    let product = graph.product(first.0)?;
    let [outer @ .., of_row, of_key] = &first.1[..] else {
        return None;
    };
    let known = |size: Size| size.known().is_some_and(|size| (1..=MOST).contains(&size));
    let fits = of_row.terms == [(row, 1)] && *of_key == Affine::var(j);
    let free = outer
        .iter()
        .all(|index| index.coefficient(j) == 0 && index.coefficient(row) == 0);
    let f32s = graph.nodes[scores.0].elem == Elem::F32;
    let zero = matches!(graph.nodes[product.init].kind, Kind::Splat(0));
    let columns = known(*second.over.last()?);
    (fits && free && f32s && zero && columns && known(product.depth)).then(|| Chain {
        scores,
        first: first.clone(),
        product,
    })
}

/// The operands of a value that is this operation, where they are in the end read.
fn operands<const N: usize>(graph: &Graph<'_>, (node, at): &Read, kind: Op) -> Option<[Read; N]> {
    let Kind::Pointwise { op, inputs } = &graph.nodes[*node].kind else {
        return None;
    };
    if !kind.is(*op) {
        return None;
    }
    let operands: Vec<_> = inputs
        .iter()
        .map(|input| graph.resolve(*input, at))
        .collect();
    operands.try_into().ok()
}
