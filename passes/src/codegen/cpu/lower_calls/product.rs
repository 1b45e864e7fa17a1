//! Products over calls: blocks of both operands are packed into scratch, then multiplied.
//!
//! The order of loops is that of Goto and van de Geijn (Anatomy of High-Performance Matrix
//! Multiplication, 2008): blocks of columns, of depth, of rows. The result's own rows hold the sums
//! between two blocks of depth, and what is elementwise behind the product is computed there, while
//! the last block is in the cache; what folds the product's rows, as a softmax does, when all columns are
//! there. What folds it otherwise replaces what it has still to read, and is computed by loops. An operand is packed by computing it, so what is elementwise
//! before the product (a scale, a mask, a transposition) has no memory of its own.

use std::collections::HashSet;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use melior::ir::ValueLike;

use super::blocks::{BLOCK, CHECKED_BLOCK, PANEL, TILE_ROWS};
use super::bounds;
use super::eval::{Call, Lanes, Memory, Range, Stride};
use super::graph::{Graph, Index, Kind, NodeId, Product, Size, Var, part_of};
use crate::codegen::cpu::lower_kernels::product::call as call_shared;
use crate::codegen::emit::{Emitter, Width};
use crate::kernel::calls::parts::Window;
pub use crate::kernel::calls::parts::find_root;
use crate::kernel::calls::parts::{index_of, is_plain};
use crate::kernel::rows::layout::LANES;

/// The largest block: its right side stays in a second-level cache, with its left side.
const DEPTH: i64 = 256;
const COLUMNS: i64 = 512;
const ROWS: i64 = 96;

/// Zeros that products start from, and a tile for the edges, are at the start of the scratch.
pub const ZEROS: i64 = 0;
pub const TILE: i64 = 128;
pub const BLOCKS: i64 = TILE + TILE_ROWS * PANEL * 4;

/// A part of a result that is a product, or computed from one element by element.
pub struct Plan {
    node: NodeId,
    /// Where the product is read: each of its dims at the result's index plus this.
    shift: Vec<i64>,
    depth: i64,
    columns: i64,
    /// The result is the product, with nothing behind it.
    plain: bool,
    /// What is behind it needs whole rows of the product, as a softmax does.
    by_rows: bool,
    /// How many terms more than its index a row has, where the left side is a triangle.
    until: Option<i64>,
}

/// Finds the product that a part of a result is made of.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| graph.product(node).is_some())?;
    let product = graph.product(node)?;
    let by_rows = match in_folds(graph, root, windows, node, &shift) {
        Folded::Nowhere => false,
        Folded::ByRows => true,
        Folded::Otherwise => return None,
    };
    let at_most = |size: Size, most: i64| match size {
        Size::Known(size) => size.clamp(1, most),
        Size::Length(_) => most,
    };
    let below = |var: Var| windows.get(var)?.size.known();
    Some(Plan {
        node,
        shift,
        depth: at_most(product.depth, DEPTH),
        columns: at_most(windows[windows.len() - 1].size, COLUMNS),
        plain: is_plain(graph, root, index_of(windows), node, &below),
        by_rows,
        until: bounds::after(graph, node).filter(|after| {
            bounds::of_product(graph, node).is_some_and(|(mask, _)| mask.after == *after)
        }),
    })
}

/// Where the folds behind a product read it. It lies where the result will, and is replaced row by row.
enum Folded {
    Nowhere,
    /// In the row of the element that is computed.
    ByRows,
    Otherwise,
}

fn in_folds(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    product: NodeId,
    shift: &[i64],
) -> Folded {
    let mut variables = windows.len();
    let mut below: Vec<Option<i64>> = windows.iter().map(|window| window.size.known()).collect();
    let (mut folded, mut seen) = (Folded::Nowhere, HashSet::new());
    let mut stack = vec![(root, index_of(windows), false)];
    while let Some((node, at, within)) = stack.pop() {
        let (node, at) = graph.resolve(node, &at);
        if !seen.insert((node, at.clone(), within)) {
            continue;
        }
        if node == product {
            let mut rows = at.iter().zip(shift).enumerate().take(at.len() - 1);
            let is_own = |(dim, (index, shift)): (usize, (&Index, &i64))| {
                *index == Index::var(dim).plus(&Index::constant(*shift))
            };
            match (within, rows.all(is_own)) {
                (false, _) => {}
                (true, true) => folded = Folded::ByRows,
                (true, false) => return Folded::Otherwise,
            }
            continue;
        }
        match &graph.nodes[node].kind {
            Kind::Pointwise { inputs, .. } => {
                stack.extend(inputs.iter().map(|input| (*input, at.clone(), within)));
            }
            Kind::Concat { inputs, dim } => {
                let part = part_of(graph, inputs, *dim, &at, |var| below[var]);
                stack.extend(part.map(|(node, at)| (node, at, within)));
            }
            Kind::Reduce {
                input, dims, init, ..
            } => {
                let mut kept = at.iter();
                let mut domain = vec![];
                for (dim, size) in graph.nodes[*input].shape.iter().enumerate() {
                    if dims.contains(&dim) {
                        domain.push(Index::var(variables));
                        variables += 1;
                        below.push(size.known());
                    } else {
                        domain.extend(kept.next().cloned());
                    }
                }
                stack.push((*input, domain, true));
                stack.push((*init, at.clone(), true));
            }
            _ => {}
        }
    }
    folded
}

impl Plan {
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Whether a row's cost grows with its index.
    pub fn is_triangle(&self) -> bool {
        self.until.is_some()
    }

    /// Bytes between rows of a packed left side; whole vectors are stored behind its last column.
    fn a_row(&self) -> i64 {
        (round_up(self.depth, LANES) + LANES) * 4
    }

    fn panel(&self) -> i64 {
        round_up(self.depth, LANES) * PANEL * 4
    }

    fn a_bytes(&self) -> i64 {
        (ROWS + LANES) * self.a_row()
    }

    pub fn scratch_bytes(&self) -> i64 {
        BLOCKS + self.a_bytes() + round_up(self.columns, PANEL) / PANEL * self.panel() + 128
    }
}

pub fn round_up(value: i64, multiple: i64) -> i64 {
    (value + multiple - 1) / multiple * multiple
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

/// Computes a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    root: NodeId,
    windows: &[Window],
    plan: &Plan,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    let mut sums = memory.clone();
    for (dim, shift) in plan.shift.iter().enumerate() {
        let skip = shift - windows[dim].from;
        sums.origin[dim] = (skip != 0).then(|| e.int(skip));
    }
    let writer = Writer {
        root,
        windows,
        plan,
        memory,
        sums: &sums,
        scratch,
    };
    let ranges = call.ranges(e, windows);
    writer.outer(e, call, &mut vec![], &ranges);
}

struct Writer<'a, 'c> {
    root: NodeId,
    windows: &'a [Window],
    plan: &'a Plan,
    memory: &'a Memory<'c>,
    /// The product's own elements, which lie where the result's do.
    sums: &'a Memory<'c>,
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
            return self.product(e, call, self.plan.node, outer, ranges, true);
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

    /// The ranges of one matrix: the outer dims where they are, rows and columns as given.
    fn within(
        &self,
        e: &Emitter<'c>,
        outer: &[Val<'c>],
        inner: [Range<'c>; 2],
        shift: bool,
    ) -> Vec<Range<'c>> {
        let mut ranges: Vec<_> = outer
            .iter()
            .zip(self.windows)
            .map(|(value, window)| Range {
                first: Some(*value),
                from: 0,
                count: e.int(1),
                known: Some(1),
                below: window.size.known(),
            })
            .chain(inner)
            .collect();
        for (dim, range) in ranges.iter_mut().enumerate() {
            range.from = match shift {
                true => self.plan.shift[dim],
                false => self.windows[dim].from,
            };
        }
        ranges
    }

    /// One matrix. The product's sums are left where the result lies.
    fn product(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        node: NodeId,
        outer: &[Val<'c>],
        ranges: &[Range<'c>],
        last: bool,
    ) {
        let graph = call.graph;
        let Some(product) = graph.product(node) else {
            return;
        };
        let rank = ranges.len();
        let (rows, columns) = (ranges[rank - 2], ranges[rank - 1]);
        let zero = matches!(graph.nodes[product.init].kind, Kind::Splat(0));
        if !zero {
            self.init(e, call, &product, outer, ranges);
        }
        let depth = call.size(e, product.depth);
        let [row_from, row_to] = rows.ends(e);
        let until = self.plan.until.filter(|_| node == self.plan.node);
        // How many terms more than its index the last row of a tile has, counted from its first.
        let more = until.map(|after| self.plan.shift[rank - 2] + after + TILE_ROWS - 1);
        let needed = match more {
            None => depth,
            Some(more) => e.min(depth, e.add(row_to, e.int(more))),
        };
        let steps = e.max(needed, e.int(1));
        let outer_index: Vec<Index> = outer
            .iter()
            .enumerate()
            .map(|(dim, value)| {
                let var = call.variable(*value, self.windows[dim].size.known());
                Index::var(var).plus(&Index::constant(self.plan.shift[dim]))
            })
            .collect();
        let known = |dim: usize| self.windows[dim].size.known();
        let plan = self.plan;
        let a = e.offset_by(self.scratch, BLOCKS);
        let b = e.offset_by(a, plan.a_bytes());
        let block = |e: &Emitter<'c>, range: Range<'c>, first: Val<'c>, most: i64| Range {
            first: Some(first),
            from: 0,
            count: e.min(e.sub(range.ends(e)[1], first), e.int(most)),
            known: None,
            below: range.below,
        };
        e.for_loop(
            e.int(0),
            columns.count,
            plan.columns,
            &[],
            |e, column, _| {
                let columns = block(e, columns, column, plan.columns);
                e.for_loop(e.int(0), steps, plan.depth, &[], |e, k, _| {
                    let k_count = e.min(e.sub(depth, k), e.int(plan.depth));
                    let packing = Packing {
                        product: &product,
                        outer: &outer_index,
                        shift: [plan.shift[rank - 2], plan.shift[rank - 1]],
                        below: [known(rank - 2), known(rank - 1), product.depth.known()],
                        k,
                        k_count,
                        depth,
                    };
                    call.scope(|call| {
                        packing.right(e, call, columns, ranges[rank - 1].count, b, plan.panel());
                    });
                    e.for_loop(row_from, row_to, ROWS, &[], |e, row, _| {
                        let rows = block(e, rows, row, ROWS);
                        // The terms that the first tile of the block has left; tiles below have more.
                        let until = more.map(|more| e.sub(e.add(row, e.int(more)), k));
                        let mut write = |e: &Emitter<'c>| {
                            call.scope(|call| packing.left(e, call, rows, row_to, a, plan.a_row()));
                            let bound = until.unwrap_or_else(|| e.int(1 << 40));
                            self.multiply(
                                e,
                                call,
                                rows,
                                columns,
                                outer,
                                zero,
                                (a, b),
                                (k, k_count),
                                bound,
                            );
                        };
                        match until {
                            None => write(e),
                            Some(until) => e.if_then(e.at_least(until, e.int(1 - ROWS)), write),
                        }
                        let done = e.at_least(e.add(k, e.int(plan.depth)), needed);
                        if last && !plan.plain && !plan.by_rows {
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
        if last && plan.by_rows {
            call.scope(|call| self.finish(e, call, outer, [rows, columns]));
        }
    }

    /// What the sums start from, where that is not zero.
    fn init(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        product: &Product,
        outer: &[Val<'c>],
        ranges: &[Range<'c>],
    ) {
        let graph = call.graph;
        let rank = ranges.len();
        let at = super::graph::identity(rank);
        let (before, read) = graph.resolve(product.init, &at);
        if read == at && graph.product(before).is_some() {
            return self.product(e, call, before, outer, ranges, false);
        }
        let inner = [ranges[rank - 2], ranges[rank - 1]];
        let ranges = self.within(e, outer, inner, true);
        call.scope(|call| call.store_all(e, product.init, &ranges, self.sums));
    }

    #[allow(clippy::too_many_arguments)]
    fn multiply(
        &self,
        e: &Emitter<'c>,
        call: &Call<'_, 'c>,
        rows: Range<'c>,
        columns: Range<'c>,
        outer: &[Val<'c>],
        zero: bool,
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
            let position = e.add(first, e.int(self.windows[dim].from));
            c = e.offset(c, e.mul(position, bytes(self.memory.strides[dim])));
        }
        let c_row = bytes(self.memory.strides[rank - 2]);
        let (mut start, mut start_row) = (c, c_row);
        if zero {
            let first = e.at_least(e.int(0), k);
            start = e.select(first, e.offset_by(self.scratch, ZEROS), c);
            start_row = e.select(first, e.int(0), c_row);
        }
        let arguments = [
            a,
            e.int(self.plan.a_row()),
            b,
            e.int(self.plan.panel()),
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
        call_shared(e, block_of(call), &arguments);
    }

    /// What is computed from the product's elements.
    fn finish(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        outer: &[Val<'c>],
        inner: [Range<'c>; 2],
    ) {
        call.memory.insert(self.plan.node, self.sums.clone());
        let ranges = self.within(e, outer, inner, false);
        call.store_all(e, self.root, &ranges, self.memory);
        call.memory.remove(&self.plan.node);
    }
}

/// A block of depth of a product, to be packed.
pub struct Packing<'a, 'c> {
    pub product: &'a Product,
    /// The indices of the product's dims before rows and columns.
    pub outer: &'a [Index],
    /// What is added to the indices of rows and of columns.
    pub shift: [i64; 2],
    /// What rows, columns and the depth are below, where it is known.
    pub below: [Option<i64>; 3],
    /// The first of the block, how many there are, and how many there are in all.
    pub k: Val<'c>,
    pub k_count: Val<'c>,
    pub depth: Val<'c>,
}

impl<'c> Packing<'_, 'c> {
    /// The index of an operand, with these variables for rows (0) or columns (1) and the depth.
    fn at(&self, dim: usize, var: Var, k: Var) -> Vec<Index> {
        let mut index = self.outer.to_vec();
        index.extend([Index::default(), Index::default(), Index::var(k)]);
        let shift = Index::constant(self.shift[dim]);
        index[self.outer.len() + dim] = Index::var(var).plus(&shift);
        let at = self.product.at.iter();
        at.map(|linear| linear.at(&index)).collect()
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
        let row_var = call.variable(first, self.below[0]);
        let k_var = call.variable(self.k, self.below[2]);
        let at = self.at(0, row_var, k_var);
        let node = self.product.a;
        if call.gathers(node, &at, k_var) <= call.gathers(node, &at, row_var) {
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
                let to = e.offset(to, e.times(k, 4));
                for (lane, row) in square.into_iter().enumerate() {
                    e.store(row, e.offset_by(to, lane as i64 * stride), 4);
                }
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
        at: &[Index],
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
        let var = call.variable(first, self.below[1]);
        let k_var = call.variable(self.k, self.below[2]);
        let at = self.at(1, var, k_var);
        let node = self.product.b;
        let straight = call.gathers(node, &at, var) <= call.gathers(node, &at, k_var);
        let place = |e: &Emitter<'c>, j: Val<'c>| {
            let panels = e.shift_right(j, 5);
            let half = e.and(e.times(j, 4), 64);
            let to = e.offset(to, e.add(e.times(panels, panel), half));
            (to, e.add(first, j))
        };
        if straight {
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
                let to = e.offset(to, e.times(k, PANEL * 4));
                for (lane, row) in square.into_iter().enumerate() {
                    e.store(row, e.offset_by(to, lane as i64 * PANEL * 4), 4);
                }
            });
            vec![]
        });
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
    let lanes: Vec<_> = lanes.iter().map(ToString::to_string).collect();
    let mask = e.b.attr(&format!("array<i64: {}>", lanes.join(", ")));
    e.b.value_with("vector.shuffle", &[a, b], a.r#type(), &[("mask", mask)])
}
