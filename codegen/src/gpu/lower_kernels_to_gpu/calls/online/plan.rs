//! In tiles of what size a chain is computed, and what is in shared memory.

use cohort_abi::gpu::{CallTiles, Precision};
use cohort_passes::kernel::calls::graph::{Graph, Size};
use cohort_passes::kernel::calls::memory::extent;
use cohort_passes::kernel::calls::stages::OnlineSoftmax;
use cohort_passes::kernel::rows::layout::round_up;
use cohort_passes::kernel::schedule::{MOST_SOFTMAX_DEPTH, ROWS_OF_WARPS};

use super::super::super::function::SHARED;
use super::super::super::ops::THREADS;
use super::super::block::{Cells, Shared};
use super::super::product::tile_sizes;
use super::super::side::Side;
use super::super::tiled;

/// The depth of the first product that is in shared memory at once where not all of it is.
const SOME_DEPTH: i64 = 64;

/// Where an exponential of so much less than another is zero beside it.
pub const NOTHING: f32 = 110.0;

/// Softmax-like weights of a product times values, and how they are computed.
pub struct OnlinePlan {
    pub stage: OnlineSoftmax,
    /// Rows of a block, and keys of a step.
    pub rows: i64,
    pub keys: i64,
    /// Where each warp has rows of its own, their factors, scores and weights in registers: in what format.
    pub by_warps: Option<Precision>,
    /// Whether all of the first product's depth is in shared memory.
    pub whole: bool,
    /// Columns of a block, and whether all columns of all blocks count.
    columns: i64,
    pub full: bool,
    pub sides: Sides,
    /// Of the first product, and of the second.
    pub scores: Cells,
    pub sums: Cells,
}

/// How factors come to shared memory: those of the first product, and the right one of the second.
#[derive(Clone, Copy)]
pub struct Sides {
    pub rows: Side,
    pub keys: Side,
    pub values: Side,
}

/// The plan, or why there is none.
pub fn plan(
    graph: &Graph<'_>,
    stage: OnlineSoftmax,
    precision: Precision,
) -> Result<OnlinePlan, String> {
    let [rows, keys] = stage.blocks;
    let rank = stage.over.len();
    let (row, column, key, k) = (rank - 2, rank - 1, rank, rank + 1);
    let size = stage.over[column];
    let columns = match size {
        Size::Known(..=16) => 16,
        Size::Known(..=32) => 32,
        _ => 64,
    };
    let sides = Sides {
        rows: Side::of(graph, &stage.left, k, row),
        keys: Side::of(graph, &stage.right, k, key),
        values: Side::of(graph, &stage.values, key, column),
    };
    let whole = stage.depth <= MOST_SOFTMAX_DEPTH;
    let is_by_warps = precision != Precision::F32 && rows == ROWS_OF_WARPS && whole;
    let cells = |columns: i64| match is_by_warps {
        true => Cells::of_warps(precision, columns),
        false => Cells::of(precision, rows, columns),
    };
    let mut plan = OnlinePlan {
        by_warps: is_by_warps.then_some(precision),
        whole,
        columns,
        full: size.known().is_some_and(|size| size % columns == 0),
        scores: cells(keys).spread(sides.keys.along_k),
        sums: cells(columns).spread(sides.values.along_k),
        sides,
        rows,
        keys,
        stage,
    };
    plan.whole = plan.whole && (is_by_warps || plan.shared_bytes() <= SHARED);
    match plan.shared_bytes() {
        0..=SHARED => Ok(plan),
        bytes => Err(format!(
            "a block of {rows} rows and {keys} keys needs {bytes} bytes of shared memory, and has {SHARED}"
        )),
    }
}

/// What is in shared memory.
pub struct SharedLayout {
    pub rows: Shared,
    pub keys: Shared,
    pub values: Shared,
    /// Of each row whether it needs what is masked.
    pub needs: i64,
    pub bytes: i64,
}

/// What the threads of a row exchange there, where its scores are not in the registers of one warp.
pub struct Exchange {
    pub weights: Shared,
    /// Of each row a number of each part, twice; what its sums are multiplied by; and the sum of its weights.
    pub parts: i64,
    pub scales: i64,
    pub totals: i64,
    end: i64,
}

impl OnlinePlan {
    /// How many rows a thread has of which it knows the largest score.
    pub fn rows_of_thread(&self) -> usize {
        match self.by_warps {
            Some(_) => self.scores.rows as usize,
            None => 1,
        }
    }

    /// Where maxima and sums are found, this many threads have a row.
    pub fn parts(&self) -> i64 {
        THREADS / self.rows
    }

    /// The keys of a step that one of them has.
    pub fn part_keys(&self) -> i64 {
        self.keys / self.parts()
    }

    pub fn layout(&self) -> SharedLayout {
        let depth = match self.whole {
            true => round_up(self.stage.depth, self.scores.step()),
            false => SOME_DEPTH,
        };
        let OnlinePlan {
            scores,
            sums,
            rows: block_rows,
            keys: block_keys,
            ..
        } = *self;
        let rows = scores.tile(0, (depth, block_rows), self.sides.rows.along_k);
        // Rows are in registers before keys come.
        let from = match self.by_warps {
            Some(_) => 0,
            None => rows.end(),
        };
        let keys = scores.tile(from, (depth, block_keys), self.sides.keys.along_k);
        let of_values = (block_keys, self.columns);
        let values = sums.tile(keys.end(), of_values, self.sides.values.along_k);
        let needs = match self.by_warps {
            Some(_) => rows.end().max(values.end()),
            None => self.exchange(values.end()).end,
        };
        SharedLayout {
            rows,
            keys,
            values,
            needs,
            bytes: needs + block_rows * 4,
        }
    }

    /// From a byte on.
    pub fn exchange(&self, from: i64) -> Exchange {
        let weights = self.sums.tile(from, (self.keys, self.rows), true);
        let parts = weights.end();
        let scales = parts + 2 * self.rows * self.parts() * 4;
        let totals = scales + self.rows * 4;
        Exchange {
            weights,
            parts,
            scales,
            totals,
            end: totals + self.rows * 4,
        }
    }

    pub fn shared_bytes(&self) -> i64 {
        self.layout().bytes
    }

    pub fn tiles(&self) -> CallTiles {
        let OnlineSoftmax { over, keys, .. } = &self.stage;
        let dims = over.iter().zip(tile_sizes(self.sums, over.len()));
        CallTiles {
            dims: dims.map(|(size, tile)| tiled(*size, tile)).collect(),
            work: extent(&[*keys], 1),
        }
    }
}
