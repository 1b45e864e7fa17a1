//! Products over calls: blocks of both operands are packed into scratch, then multiplied.
//!
//! The order of loops is that of Goto and van de Geijn (Anatomy of High-Performance Matrix
//! Multiplication, 2008): blocks of columns, of depth, of rows. An operand is packed by computing it, so what
//! is elementwise before the product (a scale, a mask, a transposition) has no memory of its own.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::stages::{Matmul, Side};
use cohort_passes::kernel::rows::layout::{LANES, round_up};
use cohort_passes::kernel::rows::stage::{PANEL, TILE_ROWS};
use melior::ir::ValueLike;

use super::eval::{Call, Lanes, Memory, Range, Stride};
use super::graph::NodeId;
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

    /// Bytes between rows of a packed left side; whole vectors are stored behind its last column.
    fn a_row(&self) -> i64 {
        (round_up(self.depth, LANES) + LANES) * 4
    }

    fn panel(&self) -> i64 {
        round_up(self.depth, LANES) * PANEL * 4
    }

    fn a_bytes(&self) -> i64 {
        (self.rows + LANES) * self.a_row()
    }
}

pub fn scratch_bytes(matmul: &Matmul) -> i64 {
    let layout = ProductLayout::of(matmul);
    let panels = round_up(layout.columns, PANEL) / PANEL;
    BLOCKS + layout.a_bytes() + panels * layout.panel() + 128
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
                    let packing = |side, own| Packing {
                        side,
                        outer: &outer_vars,
                        own,
                        along: rank,
                        k,
                        k_count,
                        depth,
                    };
                    call.scope(|call| {
                        let right = packing(&matmul.right, rank - 1);
                        right.right(e, call, columns, ranges[rank - 1].count, b, layout.panel());
                    });
                    e.for_loop(row_from, row_to, layout.rows, &[], |e, row, _| {
                        let rows = block(e, rows, row, layout.rows);
                        // The terms that the first tile of the block has left; tiles below have more.
                        let until = more.map(|more| e.sub(e.add(row, e.int(more)), k));
                        let mut write = |e: &Emitter<'c>| {
                            call.scope(|call| {
                                let left = packing(&matmul.left, rank - 2);
                                left.left(e, call, rows, row_to, a, layout.a_row());
                            });
                            let bound = until.unwrap_or_else(|| e.int(1 << 40));
                            let block = [rows, columns];
                            self.multiply(e, call, block, outer, (a, b), (k, k_count), bound);
                        };
                        match until {
                            None => write(e),
                            Some(until) => {
                                e.if_then(e.at_least(until, e.int(1 - layout.rows)), write)
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
        (a, b): (Val<'c>, Val<'c>),
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
            e.int(self.layout.a_row()),
            b,
            e.int(self.layout.panel()),
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

/// A block of depth of a side of a product, to be packed.
pub struct Packing<'a, 'c> {
    pub side: &'a Side,
    /// The first loops.
    pub outer: &'a [Var],
    /// The numbers of the loops over the side's own rows or columns, and along the depth.
    pub own: usize,
    pub along: usize,
    /// The first of the block, how many there are, and how many there are in all.
    pub k: Val<'c>,
    pub k_count: Val<'c>,
    pub depth: Val<'c>,
}

impl<'c> Packing<'_, 'c> {
    /// A variable for the side's rows or columns, one for the depth, and the side's index of both.
    fn variables(&self, call: &mut Call<'_, 'c>, first: Val<'c>) -> (Var, Var, Vec<Affine>) {
        let own = call.variable(first);
        let k = call.variable(self.k);
        let mut loops: Vec<Affine> = self.outer.iter().map(|var| Affine::var(*var)).collect();
        loops.resize(self.along + 1, Affine::default());
        loops[self.own] = Affine::var(own);
        loops[self.along] = Affine::var(k);
        let at = self.side.at.iter();
        (own, k, at.map(|index| index.at(&loops)).collect())
    }

    /// Rows of the left side, each with its columns side by side.
    pub fn left(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        rows: Range<'c>,
        all: Val<'c>,
        to: Val<'c>,
        stride: i64,
    ) {
        let zero = e.int(0);
        let first = rows.first.unwrap_or(zero);
        let (row_var, k_var, at) = self.variables(call, first);
        let node = self.side.value;
        if self.side.along_depth {
            e.for_loop(zero, rows.count, 1, &[], |e, i, _| {
                call.scope(|call| {
                    call.set(row_var, e.add(first, i));
                    call.prepare(e, node, &at, Lanes::default(), &[k_var]);
                    let to = e.offset(to, e.times(i, stride));
                    self.k_loop(e, call, |call, e, k, masked| {
                        let value = self.along_k(e, call, node, &at, (k_var, k), masked);
                        e.store(value, e.offset(to, e.times(k, 4)), 4);
                    });
                });
                vec![]
            });
            return;
        }
        // Lanes run along the rows, and squares of them are transposed.
        call.lanes_loop(e, rows.count, rows.known, &[], |call, e, i, mask, _| {
            let to = e.offset(to, e.times(i, stride));
            e.for_loop(zero, self.k_count, LANES, &[], |e, k, _| {
                let square = (0..LANES).map(|lane| {
                    call.scope(|call| {
                        let k = e.add(self.k, e.add(k, e.int(lane)));
                        call.set(k_var, e.min(k, e.sub(self.depth, e.int(1))));
                        let row = e.add(first, i);
                        call.set(row_var, row);
                        let lanes = Lanes {
                            var: Some(row_var),
                            mask: mask.map(|_| e.first_lanes(e.sub(all, row))),
                        };
                        call.value(e, node, &at, lanes)
                    })
                });
                let square = transpose(e, square.collect());
                store_lines(e, square, e.offset(to, e.times(k, 4)), stride);
                vec![]
            });
            vec![]
        });
    }

    /// A loop over the block's depth by vectors; the body is told whether some lanes may not count.
    fn k_loop<'a>(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'a, 'c>,
        mut body: impl FnMut(&mut Call<'a, 'c>, &Emitter<'c>, Val<'c>, bool),
    ) {
        call.lanes_loop(e, self.k_count, None, &[], |call, e, k, mask, _| {
            call.scope(|call| body(call, e, k, mask.is_some()));
            vec![]
        });
    }

    /// The left or right side at an index, with lanes along the depth from `k` of the block on.
    fn along_k(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        node: NodeId,
        at: &[Affine],
        (k_var, k): (Var, Val<'c>),
        masked: bool,
    ) -> Val<'c> {
        let k = e.add(self.k, k);
        call.set(k_var, k);
        let lanes = Lanes {
            var: Some(k_var),
            mask: masked.then(|| e.first_lanes(e.sub(self.depth, k))),
        };
        call.value(e, node, at, lanes)
    }

    /// Panels of the right side: `[columns / 32][k][32]`.
    pub fn right(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        columns: Range<'c>,
        all: Val<'c>,
        to: Val<'c>,
        panel: i64,
    ) {
        let zero = e.int(0);
        let first = columns.first.unwrap_or(zero);
        let (var, k_var, at) = self.variables(call, first);
        let node = self.side.value;
        let place = |e: &Emitter<'c>, j: Val<'c>| {
            let panels = e.shift_right(j, 5);
            let half = e.and(e.times(j, 4), 64);
            let to = e.offset(to, e.add(e.times(panels, panel), half));
            (to, e.add(first, j))
        };
        if !self.side.along_depth {
            call.lanes_loop(
                e,
                columns.count,
                columns.known,
                &[],
                |call, e, j, mask, _| {
                    let (to, column) = place(e, j);
                    let mask = mask.map(|_| e.first_lanes(e.sub(all, column)));
                    e.for_loop(zero, self.k_count, 1, &[], |e, k, _| {
                        call.scope(|call| {
                            call.set(var, column);
                            call.set(k_var, e.add(self.k, k));
                            let var = Some(var);
                            let value = call.value(e, node, &at, Lanes { var, mask });
                            e.store(value, e.offset(to, e.times(k, PANEL * 4)), 4);
                        });
                        vec![]
                    });
                    vec![]
                },
            );
            return;
        }
        e.for_loop(zero, columns.count, LANES, &[], |e, j, _| {
            let (to, column) = place(e, j);
            self.k_loop(e, call, |call, e, k, masked| {
                let square = (0..LANES).map(|lane| {
                    call.scope(|call| {
                        let column = e.add(column, e.int(lane));
                        call.set(var, e.min(column, e.sub(all, e.int(1))));
                        self.along_k(e, call, node, &at, (k_var, k), masked)
                    })
                });
                let square = transpose(e, square.collect());
                store_lines(e, square, e.offset(to, e.times(k, PANEL * 4)), PANEL * 4);
            });
            vec![]
        });
    }
}

/// Stores vectors, `stride` bytes apart.
fn store_lines<'c>(e: &Emitter<'c>, lines: Vec<Val<'c>>, to: Val<'c>, stride: i64) {
    for (line, vector) in lines.into_iter().enumerate() {
        e.store(vector, e.offset_by(to, line as i64 * stride), 4);
    }
}

/// A square of sixteen vectors, transposed by exchanges at distances 1, 2, 4, 8.
fn transpose<'c>(e: &Emitter<'c>, mut square: Vec<Val<'c>>) -> Vec<Val<'c>> {
    let lanes = LANES as usize;
    for distance in [1, 2, 4, 8] {
        for row in (0..lanes).filter(|row| row & distance == 0) {
            let (a, b) = (square[row], square[row + distance]);
            let low: Vec<usize> = (0..lanes)
                .map(|lane| match lane & distance {
                    0 => lane,
                    _ => lanes + lane - distance,
                })
                .collect();
            let high: Vec<usize> = (0..lanes)
                .map(|lane| match lane & distance {
                    0 => lane + distance,
                    _ => lanes + lane,
                })
                .collect();
            square[row] = shuffle(e, a, b, &low);
            square[row + distance] = shuffle(e, a, b, &high);
        }
    }
    square
}

fn shuffle<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>, lanes: &[usize]) -> Val<'c> {
    let lanes: Vec<i64> = lanes.iter().map(|lane| *lane as i64).collect();
    let mask = e.b.i64s(&lanes);
    e.b.value_with(
        Op::VectorShuffle,
        &[a, b],
        a.r#type(),
        &[(keys::MASK, mask)],
    )
}
