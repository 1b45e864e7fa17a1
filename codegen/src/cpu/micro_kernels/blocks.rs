//! Products of blocks: rows of the left side lie evenly, and nothing is written beyond the result.
//!
//! A tile at the edge is computed in memory of its own, and what is valid of it is copied.

use cohort_abi::manifest::{Elem, WeightFormat};
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::LANES;
use cohort_passes::kernel::rows::stage::PANEL;
use cohort_passes::kernel::rows::stage::TILE_ROWS;

use super::VECTOR;
use super::tile::{Left, Operands, Tiles, by_limit};
use crate::emit::{Emitter, Width};

/// The whole product. It takes the left side, its bytes a row, the first panel and the bytes of one, `k`, the result and
/// its bytes a row, the start and its bytes a row (0 is 128 bytes of zeros for all rows), the rows, the columns, the
/// bound, and memory for a tile. The bound lets the left side be a triangle: a tile from row `i` on has terms up
/// to `bound + i` only.
pub const BLOCK: &str = "cohort_block";
/// The same with every tile treated as one at the edge, of loops that are not split.
pub const CHECKED_BLOCK: &str = "cohort_block_checked";

const COPY: &str = "cohort_block_copy";

/// Rows of the tiles.
const ROWS: [usize; 6] = [1, 2, 4, 6, 8, TILE_ROWS as usize];

/// Bytes of a row of a panel, and of a tile.
const LINE: i64 = PANEL * 4;

/// Terms from which on a tile asks for what the next one writes: with fewer, asking takes a part of its time. And bytes
/// between its rows: where these lie closer, they are in a cache or foreseen.
const TERMS_TO_ASK: i64 = 128;
const BYTES_TO_ASK: i64 = 1024;

pub fn add(module: &Emitter<'_>, registers: usize) {
    let tiles = Tiles {
        prefix: BLOCK,
        left: Left::Even,
        format: WeightFormat::F32,
        sizes: ROWS
            .into_iter()
            .flat_map(|rows| [(rows, 1), (rows, 2)])
            .collect(),
    };
    tiles.add(module, registers);
    copy(module);
    for (name, split) in [(BLOCK, true), (CHECKED_BLOCK, false)] {
        block(module, name, &tiles, split);
    }
}

/// Copies the valid part of a tile.
fn copy(module: &Emitter<'_>) {
    let (pointer, int) = (module.pointer, module.i64);
    let types = [pointer, int, pointer, int, int, int];
    module.function(BLOCK, COPY, &types, |e, arguments| {
        let &[from, at_row, to, to_row, rows, columns] = arguments else {
            return;
        };
        let masks = [
            e.first_lanes(columns),
            e.first_lanes(e.sub(columns, e.int(LANES))),
        ];
        e.for_loop(e.int(0), rows, 1, &[], |e, row, _| {
            let from = e.offset(from, e.mul(row, at_row));
            let to = e.offset(to, e.mul(row, to_row));
            let (elem, width) = (Elem::F32, Width::Vector);
            let halves = [0, VECTOR].map(|at| (e.offset_by(from, at), e.offset_by(to, at)));
            let read: Vec<_> = (halves.iter().zip(masks))
                .map(|((from, _), mask)| e.load_elem(*from, elem, width, Some(mask)))
                .collect();
            for (((_, to), mask), value) in halves.iter().zip(masks).zip(read) {
                e.store_elem(value, *to, elem, width, Some(mask));
            }
            vec![]
        });
    });
}

/// The loops over tiles; with `split`, those that are whole are written where the result lies.
fn block(module: &Emitter<'_>, name: &str, tiles: &Tiles, split: bool) {
    let (pointer, int) = (module.pointer, module.i64);
    let mut types = Operands::types(module);
    types.pop();
    types.extend([int, int, int, pointer]);
    module.function(BLOCK, name, &types, |e, arguments| {
        let &[
            a,
            a_row,
            b,
            panel,
            k,
            c,
            c_row,
            s,
            s_row,
            rows,
            columns,
            bound,
            tile,
        ] = arguments
        else {
            return;
        };
        let zeros = e.at_least(e.int(0), s_row);
        let s_vector = e.select(zeros, e.int(0), e.int(VECTOR));
        let whole = Operands {
            a,
            a_row,
            b,
            panel,
            k,
            c,
            c_row,
            s,
            s_row,
            s_vector,
            format: WeightFormat::F32,
        };
        e.for_loop(e.int(0), columns, PANEL, &[], |e, column, _| {
            let left = e.sub(columns, column);
            let valid_columns = e.min(left, e.int(PANEL));
            let in_panel = whole.at_vector(e, e.shift_right(column, LANES.trailing_zeros().into()));
            e.for_loop(e.int(0), rows, TILE_ROWS, &[], |e, row, _| {
                let left = e.sub(rows, row);
                let valid_rows = e.min(left, e.int(TILE_ROWS));
                let until = e.min(e.add(bound, row), k);
                let operands = Operands {
                    k: e.max(until, e.int(0)),
                    ..in_panel.at_row(e, row)
                };
                let valid = [valid_rows, valid_columns];
                e.if_then(e.at_least(k, e.int(TERMS_TO_ASK)), |e| {
                    e.if_then(e.at_least(c_row, e.int(BYTES_TO_ASK)), |e| {
                        ask_for_next(e, (c, c_row), [row, column], [rows, columns]);
                    });
                });
                if !split {
                    return at_edge(e, tiles, operands, (tile, zeros), valid);
                }
                e.if_else(
                    is_whole(e, valid, PANEL),
                    |e| tiles.call(e, (TILE_ROWS as usize, 2), operands),
                    |e| {
                        e.if_else(
                            is_whole(e, valid, LANES),
                            |e| tiles.call(e, (TILE_ROWS as usize, 1), operands),
                            |e| {
                                at_edge(e, tiles, operands, (tile, zeros), valid);
                            },
                        );
                    },
                );
                vec![]
            });
            vec![]
        });
    });
}

/// Whether a tile has all of its rows and exactly `columns` columns.
fn is_whole<'c>(e: &Emitter<'c>, [rows, of_tile]: [Val<'c>; 2], columns: i64) -> Val<'c> {
    let others = e.b.xori(of_tile, e.int(columns));
    let missing = e.b.ori(e.sub(e.int(TILE_ROWS), rows), others);
    e.at_least(e.int(0), missing)
}

/// Asks for the part of the result that the tile behind this one goes on from and writes: that below, or the first of
/// the next panel. Rows lie far apart, so that no processor foresees them, and a tile would wait for each.
fn ask_for_next<'c>(
    e: &Emitter<'c>,
    (c, c_row): (Val<'c>, Val<'c>),
    [row, column]: [Val<'c>; 2],
    [rows, columns]: [Val<'c>; 2],
) {
    let [last_row, last_column] = [rows, columns].map(|count| e.sub(count, e.int(1)));
    let below = e.add(row, e.int(TILE_ROWS));
    let is_below = e.at_least(last_row, below);
    let first = e.select(is_below, below, e.int(0));
    let column = e.select(is_below, column, e.add(column, e.int(PANEL)));
    let halves = [0, LANES].map(|lane| {
        let column = e.min(e.add(column, e.int(lane)), last_column);
        e.offset(c, e.times(column, 4))
    });
    for row in 0..TILE_ROWS {
        let row = e.min(e.add(first, e.int(row)), last_row);
        let in_row = e.mul(row, c_row);
        for half in halves {
            e.prefetch(e.offset(half, in_row));
        }
    }
}

/// A tile of which only some rows and columns are valid.
fn at_edge<'c>(
    e: &Emitter<'c>,
    tiles: &Tiles,
    operands: Operands<'c>,
    (tile, zeros): (Val<'c>, Val<'c>),
    [rows, columns]: [Val<'c>; 2],
) -> Vec<Val<'c>> {
    let line = e.int(LINE);
    e.if_then(e.at_least(operands.s_row, e.int(1)), |e| {
        let (s, s_row) = (operands.s, operands.s_row);
        e.call(COPY, &[s, s_row, tile, line, rows, columns]);
    });
    let in_tile = Operands {
        c: tile,
        c_row: line,
        s: e.select(zeros, operands.s, tile),
        s_row: e.select(zeros, e.int(0), line),
        s_vector: e.int(VECTOR),
        ..operands
    };
    by_limit(
        e,
        columns,
        &[LANES as usize, PANEL as usize],
        &|e, columns| {
            by_limit(e, rows, &ROWS, &|e, rows| {
                tiles.call(e, (rows, columns / LANES as usize), in_tile);
            });
        },
    );
    let (c, c_row) = (operands.c, operands.c_row);
    e.call(COPY, &[tile, line, c, c_row, rows, columns]);
    vec![]
}
