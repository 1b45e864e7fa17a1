//! Products over calls: blocks of both operands are packed into scratch, then multiplied.
//!
//! The order of loops is that of Goto and van de Geijn (Anatomy of High-Performance Matrix
//! Multiplication, 2008): blocks of columns, of depth, of rows. An operand is packed by computing it, so what
//! is elementwise before the product (a scale, a mask, a transposition) has no memory of its own. A left side that
//! lies in memory with its terms side by side is not packed: tiles read it there, but for the last rows of a call that
//! are fewer than a tile.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::Var;
use cohort_passes::kernel::calls::stages::Matmul;
use cohort_passes::kernel::rows::layout::{LANES, round_up};
use cohort_passes::kernel::rows::stage::{PANEL, TILE_ROWS};

use super::eval::{Call, Memory, Range, Stride};
use super::packing::Packing;
use crate::cpu::micro_kernels::{BLOCK, CHECKED_BLOCK};
use crate::emit::{Emitter, Width};

/// Zeros that products start from, and a tile for the edges, are at the start of the scratch.
pub const ZEROS: i64 = 0;
pub const TILE: i64 = 128;
pub const BLOCKS: i64 = TILE + TILE_ROWS * PANEL * 4;

/// Where the packed blocks of a product lie.
struct ProductLayout {
    rows: i64,
    columns: i64,
    depth: i64,
}

impl ProductLayout {
    fn of(matmul: &Matmul) -> ProductLayout {
        let [columns, depth] = matmul.blocks;
        ProductLayout {
            // They are always written down on the CPU.
            rows: matmul.rows.unwrap_or(TILE_ROWS),
            columns,
            depth,
        }
    }

    /// Row stride in bytes of a packed left side with `terms` columns: an odd number of vectors, so that the rows of a
    /// tile map to different cache sets.
    fn a_row<'c>(e: &Emitter<'c>, terms: Val<'c>) -> Val<'c> {
        let vectors = Self::vectors(e, terms);
        let even = e.sub(e.int(1), e.and(vectors, 1));
        e.times(e.add(vectors, even), LANES * 4)
    }

    /// Size in bytes of a packed panel of the right side with `terms` rows.
    fn panel<'c>(e: &Emitter<'c>, terms: Val<'c>) -> Val<'c> {
        e.times(Self::vectors(e, terms), LANES * PANEL * 4)
    }

    fn vectors<'c>(e: &Emitter<'c>, terms: Val<'c>) -> Val<'c> {
        e.shift_right(
            e.add(terms, e.int(LANES - 1)),
            LANES.trailing_zeros().into(),
        )
    }

    /// Upper bound in bytes of the packed left side; where lanes run along rows, whole vectors of rows are written.
    fn a_bytes(&self) -> i64 {
        (self.rows + LANES) * (round_up(self.depth, LANES) + LANES) * 4
    }

    /// Upper bound in bytes of the packed right side.
    fn b_bytes(&self) -> i64 {
        round_up(self.columns, PANEL) * round_up(self.depth, LANES) * 4
    }
}

pub fn scratch_bytes(matmul: &Matmul) -> i64 {
    let layout = ProductLayout::of(matmul);
    BLOCKS + layout.a_bytes() + layout.b_bytes() + 128
}

/// The function that multiplies blocks.
pub fn block_of(call: &Call<'_, '_>) -> &'static str {
    match call.split {
        true => BLOCK,
        false => CHECKED_BLOCK,
    }
}

/// Fills the scratch's zeros, once for all calls.
pub fn start<'c>(e: &Emitter<'c>, scratch: Val<'c>) {
    for half in [0, 64] {
        let zero = e.bits(0, Elem::F32, Width::Vector);
        e.store(zero, e.offset_by(scratch, ZEROS + half), 4);
    }
}

/// Computes a product into the memory of its result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    matmul: &Matmul,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    let writer = Writer {
        matmul,
        layout: ProductLayout::of(matmul),
        memory,
        scratch,
    };
    let ranges = call.ranges(e, &matmul.over);
    writer.outer(e, call, &mut vec![], &ranges);
}

struct Writer<'a, 'c> {
    matmul: &'a Matmul,
    layout: ProductLayout,
    memory: &'a Memory<'c>,
    scratch: Val<'c>,
}

impl<'c> Writer<'_, 'c> {
    /// Loops over the dims before rows and columns.
    fn outer(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        outer: &mut Vec<Val<'c>>,
        ranges: &[Range<'c>],
    ) {
        let dim = outer.len();
        if dim + 2 == ranges.len() {
            return self.product(e, call, outer, ranges);
        }
        let [from, to] = ranges[dim].ends(e);
        e.for_loop(from, to, 1, &[], |e, value, _| {
            call.scope(|call| {
                outer.push(value);
                self.outer(e, call, outer, ranges);
                outer.pop();
            });
            vec![]
        });
    }

    /// One matrix.
    fn product(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        outer: &[Val<'c>],
        ranges: &[Range<'c>],
    ) {
        let (matmul, layout) = (self.matmul, &self.layout);
        let rank = ranges.len();
        let (rows, columns) = (ranges[rank - 2], ranges[rank - 1]);
        let depth = call.size(e, matmul.depth);
        let [row_from, row_to] = rows.ends(e);
        // How many terms more than its index the last row of a tile has, counted from its first.
        let more = matmul.until.map(|until| until + TILE_ROWS - 1);
        let needed = match more {
            None => depth,
            Some(more) => e.min(depth, e.add(row_to, e.int(more))),
        };
        let steps = e.max(needed, e.int(1));
        let outer_vars: Vec<Var> = outer.iter().map(|value| call.variable(*value)).collect();
        let a = e.offset_by(self.scratch, BLOCKS);
        let b = e.offset_by(a, layout.a_bytes());
        let block = |e: &Emitter<'c>, range: Range<'c>, first: Val<'c>, most: i64| Range {
            first: Some(first),
            count: e.min(e.sub(range.ends(e)[1], first), e.int(most)),
            known: None,
        };
        e.for_loop(
            e.int(0),
            columns.count,
            layout.columns,
            &[],
            |e, column, _| {
                let columns = block(e, columns, column, layout.columns);
                e.for_loop(e.int(0), steps, layout.depth, &[], |e, k, _| {
                    let k_count = e.min(e.sub(depth, k), e.int(layout.depth));
                    let a_row = ProductLayout::a_row(e, k_count);
                    let panel = ProductLayout::panel(e, k_count);
                    let packing = |side, own, k_count| Packing {
                        side,
                        outer: &outer_vars,
                        own,
                        along: rank,
                        k,
                        k_count,
                        depth,
                    };
                    call.scope(|call| {
                        let right = packing(&matmul.right, rank - 1, k_count);
                        right.right(e, call, columns, ranges[rank - 1].count, b, panel);
                    });
                    e.for_loop(row_from, row_to, layout.rows, &[], |e, row, _| {
                        let rows = block(e, rows, row, layout.rows);
                        // The terms that the first tile of the block has left; tiles below have more.
                        let until = more.map(|more| e.sub(e.add(row, e.int(more)), k));
                        // No tile of the block has more.
                        let terms = until.map_or(k_count, |until| {
                            e.max(e.min(k_count, e.add(until, rows.count)), e.int(0))
                        });
                        let left = packing(&matmul.left, rank - 2, terms);
                        let bound = until.unwrap_or_else(|| e.int(1 << 40));
                        let multiply = |e: &Emitter<'c>, call: &mut Call<'_, 'c>, rows, left| {
                            let sides = [left, (b, panel)];
                            let block = [rows, columns];
                            self.multiply(e, call, block, outer, sides, (k, k_count), bound);
                        };
                        let packed = |e: &Emitter<'c>, call: &mut Call<'_, 'c>, rows| {
                            call.scope(|call| left.left(e, call, rows, row_to, a, a_row));
                            multiply(e, call, rows, (a, a_row));
                        };
                        let place = match until {
                            None => left.in_place(e, call, row),
                            Some(_) => None,
                        };
                        match (place, until) {
                            (Some([from, from_row]), _) => {
                                // Tiles with rows to spare would read behind the side.
                                let rest = e.b.remui(rows.count, e.int(TILE_ROWS));
                                let whole = Range {
                                    count: e.sub(rows.count, rest),
                                    ..rows
                                };
                                e.if_then(e.at_least(whole.count, e.int(1)), |e| {
                                    multiply(e, call, whole, (from, from_row));
                                });
                                e.if_then(e.at_least(rest, e.int(1)), |e| {
                                    let rest = Range {
                                        first: Some(e.add(row, whole.count)),
                                        count: rest,
                                        known: None,
                                    };
                                    packed(e, call, rest);
                                });
                            }
                            (None, None) => packed(e, call, rows),
                            (None, Some(until)) => {
                                let any = e.at_least(until, e.int(1 - layout.rows));
                                e.if_then(any, |e| packed(e, call, rows));
                            }
                        }
                        let done = e.at_least(e.add(k, e.int(layout.depth)), needed);
                        if matmul.finish.is_some() && !matmul.by_rows {
                            e.if_then(done, |e| {
                                call.scope(|call| self.finish(e, call, outer, [rows, columns]));
                            });
                        }
                        vec![]
                    });
                    vec![]
                });
                vec![]
            },
        );
        if matmul.by_rows {
            call.scope(|call| self.finish(e, call, outer, [rows, columns]));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn multiply(
        &self,
        e: &Emitter<'c>,
        call: &Call<'_, 'c>,
        [rows, columns]: [Range<'c>; 2],
        outer: &[Val<'c>],
        [(a, a_row), (b, panel)]: [(Val<'c>, Val<'c>); 2],
        (k, k_count): (Val<'c>, Val<'c>),
        bound: Val<'c>,
    ) {
        let rank = outer.len() + 2;
        let bytes = |stride: Stride<'c>| call.stride(e, stride);
        let mut c = self.memory.base.address(e);
        let firsts = outer
            .iter()
            .copied()
            .chain([rows.first, columns.first].into_iter().flatten());
        for (dim, first) in firsts.enumerate() {
            let position = e.add(first, e.int(self.matmul.to[dim].constant));
            c = e.offset(c, e.mul(position, bytes(self.memory.strides[dim])));
        }
        let c_row = bytes(self.memory.strides[rank - 2]);
        let (mut start, mut start_row) = (c, c_row);
        if !self.matmul.onto {
            let first = e.at_least(e.int(0), k);
            start = e.select(first, e.offset_by(self.scratch, ZEROS), c);
            start_row = e.select(first, e.int(0), c_row);
        }
        let arguments = [
            a,
            a_row,
            b,
            panel,
            k_count,
            c,
            c_row,
            start,
            start_row,
            rows.count,
            columns.count,
            bound,
            e.offset_by(self.scratch, TILE),
        ];
        e.call(block_of(call), &arguments);
    }

    /// What is computed from the product's elements, in their place.
    fn finish(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        outer: &[Val<'c>],
        inner: [Range<'c>; 2],
    ) {
        let Some(finish) = &self.matmul.finish else {
            return;
        };
        let of_outer = outer.iter().map(|value| Range {
            first: Some(*value),
            count: e.int(1),
            known: Some(1),
        });
        let ranges: Vec<_> = of_outer.chain(inner).collect();
        let sums = call.graph.results[finish.result];
        call.memory.insert(sums, self.memory.clone());
        call.store_all(e, finish, &ranges, self.memory);
        call.memory.remove(&sums);
    }
}
