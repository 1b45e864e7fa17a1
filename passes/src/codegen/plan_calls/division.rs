//! How a call may be divided between threads, and what its parts cost.
//!
//! Every element of a result is computed by itself, so a range of the first dim can be computed
//! without the others. What must not change with the range is how rows fall into tiles and blocks,
//! and what should not be made too often is what all rows share.

use cohort_abi::manifest::{Division, Extent};

use super::Plan;
use super::parts::{Part, index_of};
use crate::codegen::cpu::lower_calls::ONLINE_ROWS;
use crate::codegen::cpu::micro_kernels::TILE_ROWS;
use crate::kernel::calls::graph::{Graph, Kind, NodeId, Size, Var};
use crate::kernel::calls::memory::extent;
use crate::kernel::rows::layout::LANES;

/// What it takes to pack the right side of a product, in rows of the left side.
const PACKING: i64 = 16;
/// The same where it is computed while it is packed.
const COMPUTING: i64 = 32;

/// Operations of the products that are needed, a call, and which they are.
pub fn flops(graph: &Graph<'_>) -> Vec<(NodeId, Extent)> {
    let mut found = vec![];
    let mut all: Vec<NodeId> = vec![];
    let mut roots = graph.results.clone();
    while let Some(root) = roots.pop() {
        for fold in graph.folds(root, &[]) {
            if all.contains(&fold) {
                continue;
            }
            all.push(fold);
            if let Kind::Reduce { input, init, .. } = &graph.nodes[fold].kind {
                if graph.product(fold).is_some() {
                    found.push((fold, extent(&graph.nodes[*input].shape, 2)));
                }
                roots.extend([*input, *init]);
            }
        }
    }
    found
}

/// The division of a kernel's calls; none where rows have no dim of the instance, or share more than
/// they compute.
pub fn of(graph: &Graph<'_>, parts: &[Part], flops: &[(NodeId, Extent)]) -> Option<Division> {
    let Size::Length(length) = *graph.rows.first()? else {
        return None;
    };
    let (mut tile, mut shared) = (1, 0);
    let mut rising = vec![];
    for part in parts {
        // Where the first dim is not that of a product's rows, each of its indices is a matrix.
        let is_matrix = part.windows.len() == 2;
        match &part.plan {
            Plan::Matmul(plan) if is_matrix => {
                tile = multiple(tile, TILE_ROWS);
                shared = shared.max(packing(graph, plan.node()));
                rising.extend(plan.is_triangle().then_some(plan.node()));
            }
            Plan::Online(plan) if is_matrix => {
                // A block of rows is computed again as a whole where what is masked counts.
                tile = multiple(tile, ONLINE_ROWS);
                if plan.is_triangle() {
                    rising.extend(plan.products(graph));
                }
            }
            Plan::Matmul(_) | Plan::Online(_) => {}
            Plan::Loops if shares(graph, part) => return None,
            Plan::Loops => tile = multiple(tile, LANES),
        }
    }
    let rising = flops
        .iter()
        .enumerate()
        .filter(|(_, (node, _))| rising.contains(node));
    Some(Division {
        length,
        tile: tile as u64,
        shared: shared as u64,
        rising: rising.map(|(at, _)| at).collect(),
    })
}

/// Whether a part computed by loops has folds that all of its first dim needs.
fn shares(graph: &Graph<'_>, part: &Part) -> bool {
    let below = |var: Var| part.windows.get(var)?.size.known();
    let reads = graph.reads(graph.results[part.result], &index_of(&part.windows), &below);
    reads
        .iter()
        .any(|(node, at)| !graph.depends(*node, at).contains(&0))
}

fn packing(graph: &Graph<'_>, node: NodeId) -> i64 {
    let Some(product) = graph.product(node) else {
        return COMPUTING;
    };
    let (b, _) = graph.resolve(product.b, &product.at);
    match graph.nodes[b].kind {
        Kind::Operand | Kind::Param(_) | Kind::Dense(_) => PACKING,
        _ => COMPUTING,
    }
}

/// The least common multiple.
fn multiple(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
