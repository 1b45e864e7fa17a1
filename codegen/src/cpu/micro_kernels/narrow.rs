//! Products of few columns. Panels have one column, `[k][1]`, and lanes run along `k`: every lane adds up each
//! sixteenth term in order, then the lanes are added in a fixed tree, then the start. Whether a product is such a
//! one depends on its weight's shape alone.

use cohort_abi::manifest::{Elem, WeightFormat};
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::LANES;

use super::rows::product;
use super::tile::Operands;
use crate::emit::{Emitter, Width};

/// The function of the whole product: it takes what a tile takes, the number of rows, and that of columns.
pub fn narrow_product(format: WeightFormat) -> &'static str {
    match format {
        WeightFormat::F32 => "cohort_narrow_product",
        WeightFormat::Bf16 => "cohort_narrow_product_bf16",
    }
}

/// Rows that are computed together.
const ROWS: i64 = 4;

pub fn add(module: &Emitter<'_>, format: WeightFormat) {
    let mut types = Operands::types(module);
    types.extend([module.i64; 2]);
    module.function(
        product(format),
        narrow_product(format),
        &types,
        |e, arguments| {
            let (operands, rest) = Operands::of(arguments, format);
            let (rows, columns) = (rest[0], rest[1]);
            let whole = e.and(operands.k, -LANES);
            let left = e.sub(operands.k, whole);
            let mask = e.first_lanes(left);
            e.for_loop(e.int(0), rows, ROWS, &[], |e, row, _| {
                let operands = operands.at_row(e, row);
                let a: Vec<_> = (0..ROWS)
                    .map(|row| e.load_pointer(operands.a, row))
                    .collect();
                e.for_loop(e.int(0), columns, 1, &[], |e, column, _| {
                    let b = e.offset(operands.b, e.mul(column, operands.panel));
                    let none = e.bits(0, Elem::F32, Width::Vector);
                    let none = vec![none; a.len()];
                    let sums = e.for_loop(e.int(0), whole, LANES, &none, |e, term, sums| {
                        terms(e, &a, (b, format), sums, (term, None))
                    });
                    // What lies behind a row may be anything.
                    let one = e.min(left, e.int(1));
                    let sums = e.for_loop(e.int(0), one, 1, &sums, |e, _, sums| {
                        terms(e, &a, (b, format), sums, (whole, Some(mask)))
                    });
                    let (c, s) = (e.times(column, 4), e.times(column, 4));
                    let (mut c, mut s) = (e.offset(operands.c, c), e.offset(operands.s, s));
                    for (row, sum) in sums.into_iter().enumerate() {
                        if row > 0 {
                            (c, s) = (e.offset(c, operands.c_row), e.offset(s, operands.s_row));
                        }
                        let sum = e.first_lane(all_lanes(e, sum), Elem::F32);
                        let start = e.load_elem(s, Elem::F32, Width::Scalar, None);
                        let result = e.add_floats(start, sum);
                        e.store_elem(result, c, Elem::F32, Width::Scalar, None);
                    }
                    vec![]
                });
                vec![]
            });
        },
    );
}

/// One more vector of terms of each row.
fn terms<'c>(
    e: &Emitter<'c>,
    rows: &[Val<'c>],
    (b, format): (Val<'c>, WeightFormat),
    sums: &[Val<'c>],
    (term, mask): (Val<'c>, Option<Val<'c>>),
) -> Vec<Val<'c>> {
    let at = e.times(term, 4);
    let load = |base| e.load_elem(e.offset(base, at), Elem::F32, Width::Vector, mask);
    let right = match format {
        WeightFormat::F32 => load(b),
        WeightFormat::Bf16 => {
            // What lies behind the column is a number of another one or zero.
            let all = e.load_bf16(e.offset(b, e.times(term, 2)));
            let zero = e.bits(0, Elem::F32, Width::Vector);
            mask.map_or(all, |mask| e.select(mask, all, zero))
        }
    };
    let products = rows.iter().zip(sums);
    products
        .map(|(row, sum)| e.fma(load(*row), right, *sum))
        .collect()
}

/// The sum of all lanes, in each lane.
fn all_lanes<'c>(e: &Emitter<'c>, vector: Val<'c>) -> Val<'c> {
    let halves = std::iter::successors(Some(LANES / 2), |half| Some(half / 2));
    halves
        .take_while(|half| *half > 0)
        .fold(vector, |sum, half| e.add_floats(sum, e.rotate(sum, half)))
}
