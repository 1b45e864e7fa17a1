//! Products on tensor cores: `mma.sync`, whose factors are rounded to tf32 or bf16 and whose sums are
//! of `f32`.
//!
//! One operation of a warp adds to 16 rows and 8 columns the products of 8 or 16 k. Lane `4g + t` has
//! rows `g` and `g + 8` and columns `2t` and `2t + 1` of the sums, in registers from the start of the sum
//! to the pointwise values that read it. Which k of the step a lane holds is free, as long as both
//! sides agree, so it takes pairs of neighbours, which are read from shared memory at once.
//!
//! Factors are rounded to the nearest: what an operation would do with more digits than its format has is
//! not defined. Those of the left side are rounded as they are read (`cvt.rna.tf32`, `cvt.rn.bf16x2`), unless rows are kept
//! in bf16: then a word has two neighbouring k.
//! Weights that are parameters were rounded when they were loaded, each once instead of for every tile of
//! rows, and in bf16 two neighbouring k of a column share a word: half the bytes to copy and to keep, and
//! one load where there were two and a conversion. A weight that a launch computes is rounded as it is
//! read.
//!
//! Steps follow in the order of k, and how the hardware adds within one does not depend on the row, the
//! column or the tile: so the same row gives the same bits here too.

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;

use super::super::ops::{divide, load_neighbours, multiply_matrices, to_bf16_pair, to_tf32};
use super::super::site::memory;
use super::{Sums, Writer};
use crate::emit::Emitter;

/// Adds the products of all k in a buffer.
pub fn multiply<'c>(
    writer: &Writer<'_, '_, 'c>,
    e: &Emitter<'c>,
    (precision, across): (Precision, i64),
    gates: i64,
    buffer: Val<'c>,
    sums: &[Val<'c>],
) -> Sums<'c> {
    let size = writer.size;
    let (left_stride, right_stride) = (size.left_stride(), size.right_stride(gates) * 4);
    let (left, right) = writer.buffers(e, buffer, gates);
    let (down, across) = divide(e, writer.warp, across);
    let (group, pair) = divide(e, writer.lane, 4);
    let shared = memory(e, true);
    let row = e.add(e.times(down, size.warp_rows()), group);
    let left = shared.offset(left, e.times(row, left_stride));
    let left = shared.offset(left, e.times(pair, 2 * size.left_elem()));
    let column = e.add(e.times(across, size.warp_columns()), group);
    let right = shared.offset(right, e.times(column, 4));
    let right = shared.offset(right, e.times(pair, 2 / size.per_word() * right_stride));
    let step = if precision == Precision::Bf16 { 16 } else { 8 };
    e.for_loop(e.int(0), e.int(size.depth), step, sums, |e, k, sums| {
        let e = &memory(e, true);
        let left = e.offset(left, e.times(k, size.left_elem()));
        let right = e.offset(right, e.times(k, right_stride / size.per_word()));
        let of_rows: Vec<_> = (0..size.rows)
            .map(|row| {
                let at = e.offset_by(left, row * 8 * left_stride);
                match size.left_elem() {
                    2 => {
                        [0, 8].map(|k| load_neighbours(e, e.offset_by(at, k * 2), Elem::I32, 1)[0])
                    }
                    _ => factors(e, precision, |e, k| {
                        load_neighbours(e, e.offset_by(at, k * 4), Elem::F32, 2)
                    }),
                }
            })
            .collect();
        let mut sums = sums.to_vec();
        for gate in 0..gates {
            for columns in (0..size.columns).step_by(2) {
                let at = (gate * size.block_columns() + columns * 4) * 4;
                let word = |e: &Emitter<'c>, elem, number: i64| {
                    let at = e.offset_by(right, at + number * right_stride);
                    load_neighbours(e, at, elem, 1)[0]
                };
                let b = match (size.is_rounded(), precision) {
                    (false, _) => factors(e, precision, |e, k| {
                        vec![word(e, Elem::F32, k), word(e, Elem::F32, k + 1)]
                    }),
                    (true, Precision::Bf16) => [0, 4].map(|number| word(e, Elem::I32, number)),
                    (true, _) => [0, 1].map(|number| word(e, Elem::I32, number)),
                };
                let first = (gate * size.rows * size.columns + columns) as usize;
                let places = (first, size.columns as usize);
                add_products(e, precision, (&of_rows, b), places, &mut sums);
            }
        }
        sums
    })
}

/// Adds to a lane's sums the products of its rows, two for each operation of the warp, and of two columns. The sums of the first row
/// and column are the one at `first`, and those of each next row are `stride` behind.
pub fn add_products<'c>(
    e: &Emitter<'c>,
    precision: Precision,
    (rows, columns): (&[[Val<'c>; 2]], [Val<'c>; 2]),
    (first, stride): (usize, usize),
    sums: &mut [Val<'c>],
) {
    for (number, pair) in rows.chunks_exact(2).enumerate() {
        let [upper, lower] = [pair[0], pair[1]];
        let rows = [upper[0], lower[0], upper[1], lower[1]];
        let first = first + 2 * number * stride;
        let places = [first, first + 1, first + stride, first + stride + 1];
        let before = places.map(|place| sums[place]);
        let after = multiply_matrices(e, precision, rows, columns, before);
        for (place, sum) in places.into_iter().zip(after) {
            sums[place] = sum;
        }
    }
}

/// The two registers that a lane has of a row or column, of the pairs of k that `load` gives.
pub fn factors<'c>(
    e: &Emitter<'c>,
    precision: Precision,
    load: impl Fn(&Emitter<'c>, i64) -> Vec<Val<'c>>,
) -> [Val<'c>; 2] {
    if precision == Precision::Bf16 {
        return [0, 8].map(|first| {
            let pair = load(e, first);
            to_bf16_pair(e, pair[0], pair[1])
        });
    }
    let pair = load(e, 0);
    [to_tf32(e, pair[0]), to_tf32(e, pair[1])]
}
