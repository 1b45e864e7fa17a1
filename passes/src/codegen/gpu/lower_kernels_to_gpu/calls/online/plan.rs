//! Which parts of results are computed online, in tiles of what size, and what is in shared memory.

use cohort_abi::gpu::{CallTiles, Precision};
use melior::ir::operation::OperationLike;

use super::super::super::function::SHARED;
use super::super::super::ops::THREADS;
use super::super::block::{Cells, Shared};
use super::super::product::{shifted, tile_sizes};
use super::super::side::{Dims, Side};
use super::super::tiled;
use crate::kernel::calls::bounds::{self, Mask};
use crate::kernel::calls::chain::{self, Chain, ONLINE};
use crate::kernel::calls::graph::{Graph, Index, NodeId, Product, Size, Var};
use crate::kernel::calls::memory::extent;
use crate::kernel::calls::parts::{Window, find_root};
use crate::kernel::rows::layout::round_up;

/// Rows of a block, and keys of a step.
pub const BLOCK_ROWS: i64 = 32;
pub const BLOCK_KEYS: i64 = 32;

/// Where maxima and sums are found, this many threads have a row.
pub const PARTS: i64 = THREADS / BLOCK_ROWS;
pub const PART_KEYS: i64 = BLOCK_KEYS / PARTS;

/// The most of the first product's depth that is in shared memory at once, and what is where that is
/// too much.
const MOST_DEPTH: i64 = 128;
const SOME_DEPTH: i64 = 64;

/// Where an exponential of so much less than another is zero beside it.
pub const NOTHING: f32 = 110.0;

/// A part of a result that is computed from such a chain.
pub struct Plan {
    pub node: NodeId,
    pub shift: Vec<i64>,
    /// Depth of the first product.
    pub depth: i64,
    /// Whether all of it is in shared memory.
    pub whole: bool,
    /// Columns of a block, and whether all columns of all blocks count.
    columns: i64,
    pub full: bool,
    /// The mask behind which scores need not be looked at.
    pub until: Option<Mask>,
    pub sides: Sides,
    /// Of the first product, and of the second.
    pub scores: Cells,
    pub sums: Cells,
    first: NodeId,
}

/// How factors come to shared memory: those of the first product, and the right one of the second.
#[derive(Clone, Copy)]
pub struct Sides {
    pub rows: Side,
    pub keys: Side,
    pub values: Side,
}

/// Finds the chain that a part of a result ends in, where its operation asks for it.
pub fn plan(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    precision: Precision,
) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| {
        graph.nodes[node].op.attribute(ONLINE).is_ok() && chain::find(graph, node).is_some()
    })?;
    let chain = chain::find(graph, node)?;
    let first = graph.product(chain.first.0)?;
    let size = windows.last()?.size;
    let columns = match size {
        Size::Known(..=16) => 16,
        Size::Known(..=32) => 32,
        _ => 64,
    };
    let depth = first.depth.known()?;
    let sides = sides(graph, (&chain, &first), windows, &shift);
    let mut plan = Plan {
        node,
        shift,
        depth,
        whole: depth <= MOST_DEPTH,
        columns,
        full: size.known().is_some_and(|size| size % columns == 0),
        until: bounds::after(graph, node).and_then(|after| {
            let (mask, _) = bounds::of_product(graph, node)?;
            (mask.after == after).then_some(mask)
        }),
        scores: Cells::of(precision, BLOCK_ROWS, BLOCK_KEYS).spread(sides.keys.along_k),
        sums: Cells::of(precision, BLOCK_ROWS, columns).spread(sides.values.along_k),
        sides,
        first: chain.first.0,
    };
    plan.whole = plan.whole && plan.shared_bytes() <= SHARED;
    Some(plan)
}

fn sides(
    graph: &Graph<'_>,
    (chain, first): (&Chain, &Product),
    windows: &[Window],
    shift: &[i64],
) -> Sides {
    let rank = windows.len();
    let vars: Vec<Var> = (0..rank).collect();
    let (row, column, key, k) = (rank - 2, rank - 1, rank, rank + 1);
    let mut index = shifted(&vars, shift);
    index.push(Index::var(key));
    let below = |var: Var| match windows.get(var) {
        Some(window) => window.size.known(),
        None => first.depth.known().filter(|_| var == k),
    };
    let mut of_first: Vec<Index> = chain.first.1.iter().map(|of| of.at(&index)).collect();
    of_first.push(Index::var(k));
    let side = |node: NodeId, at: &[Index], domain: &[Index], k: Var, other: Var| {
        let at: Vec<Index> = at.iter().map(|of| of.at(domain)).collect();
        let below = &below;
        Side::of(graph, (node, &at), &Dims { k, other, below })
    };
    Sides {
        rows: side(first.a, &first.at, &of_first, k, row),
        keys: side(first.b, &first.at, &of_first, k, key),
        values: side(chain.second.b, &chain.second.at, &index, key, column),
    }
}

/// What is in shared memory.
pub struct Layout {
    pub rows: Shared,
    pub keys: Shared,
    pub values: Shared,
    pub weights: Shared,
    /// Of each row a number a part, what its sums are multiplied by, the sum of its weights, and
    /// whether it needs what is masked.
    pub parts: i64,
    pub scales: i64,
    pub totals: i64,
    pub needs: i64,
    pub bytes: i64,
}

impl Plan {
    pub fn layout(&self) -> Layout {
        let depth = match self.whole {
            true => round_up(self.depth, self.scores.step()),
            false => SOME_DEPTH,
        };
        let Plan { scores, sums, .. } = self;
        let rows = scores.tile(0, (depth, BLOCK_ROWS), self.sides.rows.along_k);
        let keys = scores.tile(rows.end(), (depth, BLOCK_KEYS), self.sides.keys.along_k);
        let of_values = (BLOCK_KEYS, self.columns);
        let values = sums.tile(keys.end(), of_values, self.sides.values.along_k);
        let weights = sums.tile(values.end(), (BLOCK_KEYS, BLOCK_ROWS), true);
        let parts = weights.end();
        let scales = parts + 2 * BLOCK_ROWS * PARTS * 4;
        let totals = scales + BLOCK_ROWS * 4;
        let needs = totals + BLOCK_ROWS * 4;
        Layout {
            rows,
            keys,
            values,
            weights,
            parts,
            scales,
            totals,
            needs,
            bytes: needs + BLOCK_ROWS * 4,
        }
    }

    pub fn shared_bytes(&self) -> i64 {
        self.layout().bytes
    }

    /// The products that are computed so.
    pub fn nodes(&self) -> Vec<NodeId> {
        vec![self.first, self.node]
    }

    pub fn tiles(&self, graph: &Graph<'_>, windows: &[Window]) -> CallTiles {
        let sizes = tile_sizes(self.sums, windows.len());
        let keys = graph.product(self.node).map(|product| product.depth);
        let dims = windows.iter().zip(sizes);
        CallTiles {
            dims: dims.map(|(window, tile)| tiled(window, tile)).collect(),
            work: extent(keys.as_slice(), 1),
        }
    }
}
