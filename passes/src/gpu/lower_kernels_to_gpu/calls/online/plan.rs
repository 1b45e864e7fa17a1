//! Which parts of results are computed online, in tiles of what size, and what is in shared memory.

use cohort_abi::gpu::CallTiles;
use melior::ir::operation::OperationLike;

use super::super::super::ops::THREADS;
use super::super::block::{COLUMN_GROUPS, ROW_GROUPS, Shared};
use super::super::tiled;
use crate::calls::bounds::{self, Mask};
use crate::calls::chain::{self, ONLINE};
use crate::calls::graph::{Graph, NodeId, Size};
use crate::calls::memory::extent;
use crate::calls::parts::{Window, find_root};
use crate::cpu::lower_kernels::layout::round_up;

/// Rows of a thread and of a block.
pub const ROWS: i64 = 4;
pub const BLOCK_ROWS: i64 = ROW_GROUPS * ROWS;

/// Keys of a thread and of a step.
pub const KEYS: i64 = 2;
pub const BLOCK_KEYS: i64 = COLUMN_GROUPS * KEYS;

/// Where maxima and sums are found, this many threads have a row.
pub const PARTS: i64 = THREADS / BLOCK_ROWS;
pub const PART_KEYS: i64 = BLOCK_KEYS / PARTS;

/// The most of the first product's depth that is in shared memory at once.
pub const DEPTH: i64 = 64;

/// Where an exponential of so much less than another is zero beside it.
pub const NOTHING: f32 = 110.0;

/// A part of a result that is computed from such a chain.
pub struct Plan {
    pub node: NodeId,
    pub shift: Vec<i64>,
    /// Depth of the first product.
    pub depth: i64,
    /// Columns of a thread.
    pub columns: i64,
    /// The mask behind which scores need not be looked at.
    pub until: Option<Mask>,
}

/// Finds the chain that a part of a result ends in, where its operation asks for it.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| {
        graph.nodes[node].op.attribute(ONLINE).is_ok() && chain::find(graph, node).is_some()
    })?;
    let chain = chain::find(graph, node)?;
    let columns = match windows.last()?.size {
        Size::Known(..=16) => 1,
        Size::Known(..=32) => 2,
        _ => 4,
    };
    Some(Plan {
        node,
        shift,
        depth: graph.product(chain.first.0)?.depth.known()?,
        columns,
        until: bounds::after(graph, node).and_then(|after| {
            let (mask, _) = bounds::of_product(graph, node)?;
            (mask.after == after).then_some(mask)
        }),
    })
}

/// What is in shared memory. The second product's right side takes the place of the first one's.
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
        let depth = round_up(self.depth, 4).clamp(4, DEPTH);
        let tile = |from: i64, depth: i64, width: i64| Shared { from, depth, width };
        let rows = tile(0, depth, BLOCK_ROWS);
        let keys = tile(rows.end(), depth, BLOCK_KEYS);
        let values = tile(rows.end(), BLOCK_KEYS, COLUMN_GROUPS * self.columns);
        let weights = tile(keys.end().max(values.end()), BLOCK_KEYS, BLOCK_ROWS);
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

    /// Entries of a tile, by dim.
    pub fn sizes(&self, rank: usize) -> Vec<i64> {
        let mut sizes = vec![1; rank];
        sizes[rank - 2] = BLOCK_ROWS;
        sizes[rank - 1] = COLUMN_GROUPS * self.columns;
        sizes
    }

    pub fn tiles(&self, graph: &Graph<'_>, windows: &[Window]) -> CallTiles {
        let sizes = self.sizes(windows.len());
        let keys = graph.product(self.node).map(|product| product.depth);
        let dims = windows.iter().zip(sizes);
        CallTiles {
            dims: dims.map(|(window, tile)| tiled(window, tile)).collect(),
            work: extent(keys.as_slice(), 1),
        }
    }
}
