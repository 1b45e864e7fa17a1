//! Products of a warp on tensor cores, of tiles in shared memory: `mma.sync`.
//!
//! Which rows, columns and k a lane has is as in `codegen/src/gpu/lower_kernels_to_gpu/tile/tensor.rs`. A left side may be in
//! registers: rows that are multiplied with tile after tile, or the sums of one product that are a factor of the next (Dao,
//! FlashAttention-2, 2023, section 3.2). A lane has of a sum's columns the pairs that it has of the next product's k, so no lane
//! needs another one's.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::Val;

use super::super::ops::divide;
use super::super::site::memory;
use super::super::tile::{add_products, factors, load_floats};
use super::block::{Cells, Shared, ThreadPlace};
use crate::emit::Emitter;

/// Adds `Σ_k left[k][row] · right[k][column]` over the depth of the tiles to a lane's sums.
pub fn multiply<'c>(
    e: &Emitter<'c>,
    place: &ThreadPlace<'c>,
    (cells, precision): (Cells, Precision),
    (left, right): (Shared, Shared),
    buffer: Val<'c>,
    sums: &[Val<'c>],
) -> Vec<Val<'c>> {
    let depth = e.int(left.depth);
    let left = Factors::of_rows(e, place, cells, left, buffer);
    let right = Factors::of_columns(e, place, cells, right, buffer);
    e.for_loop(e.int(0), depth, step_of(precision), sums, |e, k, sums| {
        let rows = left.rows(e, precision, k, cells.rows);
        let mut sums = sums.to_vec();
        add_step(e, precision, cells, &rows, (&right, k), &mut sums);
        sums
    })
}

/// The terms of an operation of a warp.
fn step_of(precision: Precision) -> i64 {
    match precision {
        Precision::Bf16 => 16,
        _ => 8,
    }
}

/// A left side that a warp has in registers: of each step the two registers of each row of a lane.
pub struct Held<'c> {
    pub precision: Precision,
    steps: Vec<Vec<[Val<'c>; 2]>>,
}

/// All of a tile's rows, once they are there.
pub fn hold<'c>(
    e: &Emitter<'c>,
    place: &ThreadPlace<'c>,
    (cells, precision): (Cells, Precision),
    left: Shared,
) -> Held<'c> {
    let factors = Factors::of_rows(e, place, cells, left, e.int(0));
    let steps = (0..left.depth).step_by(step_of(precision) as usize);
    let steps = steps.map(|k| factors.rows(e, precision, e.int(k), cells.rows));
    Held {
        precision,
        steps: steps.collect(),
    }
}

/// Sums of a product as the left side of the next one, whose terms are the columns: a lane has the pairs of neighbours that it
/// needs there.
pub fn hold_sums<'c>(
    e: &Emitter<'c>,
    (cells, precision): (Cells, Precision),
    sums: &[Val<'c>],
) -> Held<'c> {
    let pairs = step_of(precision) / 8;
    let columns = cells.columns as usize;
    let steps = (0..columns).step_by(2 * pairs as usize).map(|first| {
        let of_row = |row: &[Val<'c>]| {
            factors(e, precision, |_, k| {
                let at = first + k as usize / 4;
                row[at..at + 2].to_vec()
            })
        };
        sums.chunks(columns).map(of_row).collect()
    });
    Held {
        precision,
        steps: steps.collect(),
    }
}

/// Adds `Σ_k left[k][row] · right[k][column]` to the sums of a warp whose left side is in registers.
pub fn multiply_held<'c>(
    e: &Emitter<'c>,
    place: &ThreadPlace<'c>,
    cells: Cells,
    (left, right): (&Held<'c>, Shared),
    sums: &[Val<'c>],
) -> Vec<Val<'c>> {
    let e = &memory(e, true);
    let precision = left.precision;
    let right = Factors::of_columns(e, place, cells, right, e.int(0));
    let mut sums = sums.to_vec();
    for (number, rows) in (0..).zip(&left.steps) {
        let k = e.int(number * step_of(precision));
        add_step(e, precision, cells, rows, (&right, k), &mut sums);
    }
    sums
}

/// What a lane reads of a tile for operations of its warp: pairs of neighbouring k.
struct Factors<'c> {
    tile: Shared,
    start: Val<'c>,
}

impl<'c> Factors<'c> {
    fn of_rows(
        e: &Emitter<'c>,
        place: &ThreadPlace<'c>,
        cells: Cells,
        tile: Shared,
        buffer: Val<'c>,
    ) -> Self {
        Factors::new(e, place, tile, cells.row(e, place, 0), buffer)
    }

    fn of_columns(
        e: &Emitter<'c>,
        place: &ThreadPlace<'c>,
        cells: Cells,
        tile: Shared,
        buffer: Val<'c>,
    ) -> Self {
        let across = cells.tensor.map_or(1, |(_, across)| across);
        let (_, warp) = divide(e, place.warp, across);
        let (group, _) = divide(e, place.lane, 4);
        let column = e.add(e.times(warp, cells.columns * 4), group);
        Factors::new(e, place, tile, column, buffer)
    }

    fn new(
        e: &Emitter<'c>,
        place: &ThreadPlace<'c>,
        tile: Shared,
        at: Val<'c>,
        buffer: Val<'c>,
    ) -> Self {
        let (_, pair) = divide(e, place.lane, 4);
        let start = tile.address(e, place, e.times(pair, 2), at);
        let start = memory(e, true).offset(start, e.times(buffer, tile.bytes()));
        Factors { tile, start }
    }

    /// The two registers of the row or the column that is so far behind the lane's first, from a `k` on.
    fn read(&self, e: &Emitter<'c>, precision: Precision, k: Val<'c>, behind: i64) -> [Val<'c>; 2] {
        let e = &memory(e, true);
        let (of_k, of_other) = self.tile.strides();
        let from = e.offset(self.start, e.times(k, of_k));
        let from = e.offset_by(from, behind * of_other);
        factors(e, precision, |e, k| match self.tile.along_k {
            true => load_floats(e, e.offset_by(from, k * 4), 2),
            false => [k, k + 1]
                .iter()
                .flat_map(|k| load_floats(e, e.offset_by(from, k * of_k), 1))
                .collect(),
        })
    }

    fn rows(
        &self,
        e: &Emitter<'c>,
        precision: Precision,
        k: Val<'c>,
        count: i64,
    ) -> Vec<[Val<'c>; 2]> {
        (0..count)
            .map(|row| self.read(e, precision, k, row * 8))
            .collect()
    }
}

/// Adds the products of one step to a lane's sums.
fn add_step<'c>(
    e: &Emitter<'c>,
    precision: Precision,
    cells: Cells,
    rows: &[[Val<'c>; 2]],
    (right, k): (&Factors<'c>, Val<'c>),
    sums: &mut [Val<'c>],
) {
    let columns = cells.columns as usize;
    for column in (0..columns).step_by(2) {
        let b = right.read(e, precision, k, column as i64 * 4);
        add_products(e, precision, (rows, b), (column, columns), sums);
    }
}
