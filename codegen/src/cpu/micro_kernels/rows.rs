//! Products of rows that lie anywhere, by a table of their addresses: gathered rows cost nothing extra.
//!
//! With many rows, the loop over panels is outside and the rows' tiles inside, and a panel stays in the first-level
//! cache; with few, wide tiles have enough sums to hide the latency of a multiply-add. The last tile is the smallest
//! that holds the rows left; where there is none of their number, they repeat the table's last entries.

use cohort_abi::manifest::WeightFormat;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::stage::TILE_ROWS;

use super::tile::{Left, Operands, Tiles, by_limit};
use crate::emit::Emitter;

/// The function of the whole product, and the library that it is of: it takes what a tile takes, the number of rows, and
/// that of vectors.
pub fn product(format: WeightFormat) -> &'static str {
    match format {
        WeightFormat::F32 => "cohort_product",
        WeightFormat::Bf16 => "cohort_product_bf16",
    }
}

/// Rows of each tile and its widths, in vectors: widest first.
const TILES: &[(usize, &[usize])] = &[
    (1, &[8, 4, 2, 1]),
    (2, &[4, 2, 1]),
    (4, &[4, 2, 1]),
    (6, &[4, 2, 1]),
    (8, &[2, 1]),
    (TILE_ROWS as usize, &[2, 1]),
];

pub fn add(module: &Emitter<'_>, registers: usize, format: WeightFormat) {
    let product = product(format);
    let sizes = TILES
        .iter()
        .flat_map(|(rows, widths)| widths.iter().map(|width| (*rows, *width)));
    let tiles = Tiles {
        prefix: product,
        left: Left::Table,
        format,
        sizes: sizes.collect(),
    };
    tiles.add(module, registers);

    let limits: Vec<_> = TILES.iter().map(|(rows, _)| *rows).collect();
    let mut types = Operands::types(module);
    types.push(module.i64);
    for (rows, widths) in &TILES[..TILES.len() - 1] {
        module.function(
            product,
            &one_tile(product, *rows),
            &types,
            |e, arguments| {
                let (operands, rest) = Operands::of(arguments, format);
                all_columns(e, &tiles, (*rows, widths), operands, rest[0]);
            },
        );
    }
    types.push(module.i64);
    module.function(product, product, &types, |e, arguments| {
        let (operands, rest) = Operands::of(arguments, format);
        let (count, columns) = (rest[0], rest[1]);
        by_limit(
            e,
            count,
            &limits,
            &|e, limit| match limit < TILE_ROWS as usize {
                true => {
                    let mut arguments = operands.list();
                    arguments.push(columns);
                    e.call(&one_tile(product, limit), &arguments);
                }
                false => many_rows(e, &tiles, &limits[1..], operands, [count, columns]),
            },
        );
    });
}

/// The name of the function for rows that are one tile.
fn one_tile(product: &str, rows: usize) -> String {
    format!("{product}_r{rows}")
}

/// All columns of one tile of rows, in its widest instances first.
fn all_columns<'c>(
    e: &Emitter<'c>,
    tiles: &Tiles,
    (rows, widths): (usize, &[usize]),
    operands: Operands<'c>,
    columns: Val<'c>,
) {
    let mut from = e.int(0);
    for width in widths {
        // Widths are powers of two.
        let whole = e.and(e.sub(columns, from), -(*width as i64));
        let to = e.add(from, whole);
        e.for_loop(from, to, *width as i64, &[], |e, vector, _| {
            tiles.call(e, (rows, *width), operands.at_vector(e, vector));
            vec![]
        });
        from = to;
    }
}

/// Columns outside, tiles of rows inside.
fn many_rows<'c>(
    e: &Emitter<'c>,
    tiles: &Tiles,
    tile_rows: &[usize],
    operands: Operands<'c>,
    [rows, columns]: [Val<'c>; 2],
) {
    let pairs = e.and(columns, -2);
    for (from, to, width) in [(e.int(0), pairs, 2), (pairs, columns, 1)] {
        e.for_loop(from, to, width, &[], |e, vector, _| {
            let operands = operands.at_vector(e, vector);
            e.for_loop(e.int(0), rows, TILE_ROWS, &[], |e, row, _| {
                let operands = operands.at_row(e, row);
                by_limit(e, e.sub(rows, row), tile_rows, &|e, rows| {
                    tiles.call(e, (rows, width as usize), operands);
                });
                vec![]
            });
            vec![]
        });
    }
}
