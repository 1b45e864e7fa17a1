//! Products in `f32`: each lane adds up its own sums, one multiply-add for each k in order.
//!
//! A warp has some rows, each of its lanes some neighbouring columns, the same of every gate. All
//! lanes read the same element of a row, four k at a time, and neighbouring columns of the right side,
//! so no two of them read from one bank.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val};

use super::super::ops::load_neighbours;
use super::super::site::memory;
use super::{Sums, Writer};
use crate::emit::{Emitter, Width};

/// How many k are multiplied in one step of the loop; as many as are read of a row at once.
const UNROLL: i64 = 4;

/// Adds the products of all k in a buffer.
pub fn multiply<'c>(
    writer: &Writer<'_, '_, 'c>,
    e: &Emitter<'c>,
    gates: i64,
    buffer: Val<'c>,
    sums: &[Val<'c>],
) -> Sums<'c> {
    let size = writer.size;
    let left_stride = size.left_stride();
    let right_stride = size.right_stride(gates) * 4;
    let (left, right) = writer.buffers(e, buffer, gates);
    let shared = memory(e, true);
    let left = shared.offset(left, e.times(writer.warp, size.rows * left_stride));
    let right = shared.offset(right, e.times(writer.lane, size.columns * 4));
    let (from, to) = (e.int(0), e.int(size.depth));
    e.for_loop(from, to, UNROLL, sums, |e, k, sums| {
        let e = &memory(e, true);
        let left = e.offset(left, e.times(k, 4));
        let right = e.offset(right, e.times(k, right_stride));
        let a: Vec<_> = (0..size.rows)
            .map(|row| load_floats(e, e.offset_by(left, row * left_stride), UNROLL))
            .collect();
        let ty = e.elem_type(Elem::F32, Width::Scalar);
        let mut sums = sums.to_vec();
        for step in 0..UNROLL {
            let mut sum = 0;
            for gate in 0..gates {
                let at = step * right_stride + gate * size.block_columns() * 4;
                let b = load_floats(e, e.offset_by(right, at), size.columns);
                for a in &a {
                    for b in &b {
                        let factors = [a[step as usize], *b, sums[sum]];
                        sums[sum] = e.b.value(Op::MathFma, &factors, ty);
                        sum += 1;
                    }
                }
            }
        }
        sums
    })
}

/// Neighbouring floats, aligned to as many bytes as are loaded at once.
pub fn load_floats<'c>(e: &Emitter<'c>, at: Val<'c>, count: i64) -> Vec<Val<'c>> {
    let width = count.min(4);
    let mut values = Vec::new();
    for first in (0..count).step_by(width as usize) {
        let at = e.offset_by(at, first * 4);
        values.extend(load_neighbours(e, at, Elem::F32, width));
    }
    values
}
