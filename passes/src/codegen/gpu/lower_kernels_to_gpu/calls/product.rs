//! Products over calls: a block has a tile of rows and columns of one matrix of one call.
//!
//! Both sides go through shared memory, a few k at a time, in two buffers: while one is multiplied, the
//! other is filled. What lies in the device's memory is copied asynchronously, gathered by the call's first
//! row; what is elementwise before a product (a scale, a mask) is computed and has no memory of its own.
//! What is elementwise behind it is computed from the sums, in registers.
//!
//! Every sum takes its terms in the order of k, and ends where the mask of a triangle says for 64 rows
//! together, whatever the tile; so tiles of both sizes give the same bits.

use cohort_abi::gpu::{CallTiles, Precision};
use cohort_dialects::builder::Val;

use super::super::ops::{barrier, below, both, commit_copies, wait_for_copies, when};
use super::block::{self, Cells, Place, Shared, multiply};
use super::eval::{Call, Memory};
use super::side::{Dims, Side, stored_at_once};
use super::source::{Begins, Source, Span};
use super::{Tile, size_of, tiled};
use crate::codegen::emit::Emitter;
use crate::kernel::calls::bounds;
use crate::kernel::calls::graph::{Graph, Index, Kind, NodeId, Product, Size, Var, identity};
use crate::kernel::calls::memory::extent;
use crate::kernel::calls::parts::{Window, find_root};

/// How many k are in a buffer of shared memory. What is computed or copied one by one takes registers
/// for each element or its address, so these are fewer, but for tensor cores.
const DEPTH: i64 = 16;
const NARROW_DEPTH: i64 = 8;
const BUFFERS: i64 = 2;

/// Rows of a triangle that end together; a multiple of every tile's.
const TRIANGLE: i64 = 64;

/// Blocks with which a card is full.
const ENOUGH: u64 = 256;

/// A part of a result that is a product, or computed from one element by element.
pub struct Plan {
    node: NodeId,
    /// Where the product is read: each of its dims at the result's index plus this.
    shift: Vec<i64>,
    /// The products whose sums are added up, in order; the last is the node.
    segments: Vec<Segment>,
    /// What they start from.
    start: NodeId,
    /// How many terms more than its index a row has, where the left side is a triangle.
    until: Option<i64>,
    precision: Precision,
    /// How many k are in a buffer.
    depth: i64,
}

/// A product, and what the tiles of its left and right side are like.
struct Segment {
    node: NodeId,
    sides: [Side; 2],
}

/// Finds the product that a part of a result is made of.
pub fn plan(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    precision: Precision,
) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| graph.product(node).is_some())?;
    let segment = |node: NodeId, product: &Product| Segment {
        node,
        sides: sides(graph, product, windows, &shift),
    };
    let product = graph.product(node)?;
    let mut segments = vec![segment(node, &product)];
    let mut start = product.init;
    let at = identity(windows.len());
    loop {
        let (before, read) = graph.resolve(start, &at);
        let Some(product) = (read == at).then(|| graph.product(before)).flatten() else {
            break;
        };
        segments.insert(0, segment(before, &product));
        start = product.init;
    }
    let mut all = segments.iter().flat_map(|segment| segment.sides);
    let wide = all.all(|side| side.is_wide()) || precision != Precision::F32;
    Some(Plan {
        node,
        shift,
        segments,
        start,
        until: bounds::after(graph, node).filter(|after| {
            bounds::of_product(graph, node).is_some_and(|(mask, _)| mask.after == *after)
        }),
        precision,
        depth: if wide { DEPTH } else { NARROW_DEPTH },
    })
}

fn sides(graph: &Graph<'_>, product: &Product, windows: &[Window], shift: &[i64]) -> [Side; 2] {
    let rank = windows.len();
    let vars: Vec<Var> = (0..rank).collect();
    let mut index = shifted(&vars, shift);
    index.push(Index::var(rank));
    let at: Vec<Index> = product.at.iter().map(|of| of.at(&index)).collect();
    let below = |var: Var| match windows.get(var) {
        Some(window) => window.size.known(),
        None => product.depth.known(),
    };
    [(product.a, rank - 2), (product.b, rank - 1)].map(|(node, other)| {
        let dims = Dims {
            k: rank,
            other,
            below: &below,
        };
        Side::of(graph, (node, &at), &dims)
    })
}

impl Plan {
    /// The sizes of tiles, each with the number of blocks from which on it is used.
    pub fn sizes(&self, windows: &[Window]) -> Vec<(Cells, u64)> {
        let columns = match windows.last().map(|window| window.size) {
            Some(Size::Known(..=16)) => 16,
            Some(Size::Known(..=32)) => 32,
            _ => 64,
        };
        let small = Cells::of(self.precision, 16, columns.min(32));
        let large = Cells::of(self.precision, 64, columns);
        let mut sides = self.segments.iter().map(|segment| segment.sides[1]);
        let spread = sides.all(|side| side.along_k);
        vec![(small.spread(spread), 0), (large.spread(spread), ENOUGH)]
    }

    /// The products that are computed so.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.segments.iter().map(|segment| segment.node).collect()
    }

    pub fn shared_bytes(&self, cells: Cells) -> i64 {
        let ends = self.segments.iter().map(|segment| {
            let [_, right] = self.layout(cells, segment);
            right.from + BUFFERS * right.bytes()
        });
        ends.max().unwrap_or(0)
    }

    /// The first buffers of both sides.
    fn layout(&self, cells: Cells, segment: &Segment) -> [Shared; 2] {
        let [left, right] = segment.sides.map(|side| side.along_k);
        let left = cells.tile(0, (self.depth, cells.block_rows()), left);
        let from = BUFFERS * left.bytes();
        let right = cells.tile(from, (self.depth, cells.block_columns()), right);
        [left, right]
    }

    /// How a call is cut into tiles.
    pub fn tiles(&self, graph: &Graph<'_>, windows: &[Window], cells: Cells) -> CallTiles {
        let tiles = tile_sizes(cells, windows.len());
        let dims = windows.iter().zip(tiles);
        let depth = graph.product(self.node).map(|product| product.depth);
        CallTiles {
            dims: dims.map(|(window, tile)| tiled(window, tile)).collect(),
            work: extent(depth.as_slice(), 1),
        }
    }
}

/// Entries of a tile, by dim.
pub fn tile_sizes(cells: Cells, rank: usize) -> Vec<i64> {
    let mut tiles = vec![1; rank];
    tiles[rank - 2] = cells.block_rows();
    tiles[rank - 1] = cells.block_columns();
    tiles
}

struct Writer<'a, 'c> {
    plan: &'a Plan,
    cells: Cells,
    place: Place<'c>,
    /// Indices of the product's dims before rows and columns.
    outer: Vec<Index>,
    /// The tile's first row and column of the result, and how many there are in the call.
    first: [Val<'c>; 2],
    end: [Val<'c>; 2],
    known: [Option<i64>; 2],
    /// Zero, which LLVM cannot tell.
    zero: Val<'c>,
}

/// Computes a tile of a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    (plan, cells): (&Plan, Cells),
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let rank = windows.len();
    let (row, column) = (rank - 2, rank - 1);
    let outer_vars: Vec<_> = (0..row)
        .map(|dim| call.variable(tile.first[dim], windows[dim].size.known()))
        .collect();
    let writer = Writer {
        plan,
        cells,
        place: Place::new(e, tile.shared),
        outer: shifted(&outer_vars, &plan.shift),
        first: [tile.first[row], tile.first[column]],
        end: [row, column].map(|dim| size_of(e, call, &windows[dim])),
        known: [row, column].map(|dim| windows[dim].size.known()),
        zero: tile.zero,
    };
    let mut sums = writer.starts(e, call);
    for (number, segment) in plan.segments.iter().enumerate() {
        if let Some(product) = call.graph.product(segment.node) {
            if number > 0 {
                // Other threads may still read the buffer that is filled first.
                barrier(e);
            }
            sums = writer.segment(e, call, segment, &product, sums);
        }
    }
    let at_once = stored_at_once(call.graph, (root, windows), cells.neighbours());
    for (number, sums) in sums.chunks(at_once as usize).enumerate() {
        let [row, column] = writer.element(e, number as i64 * at_once);
        let inside = both(
            e,
            below(e, row, writer.end[0]),
            below(e, column, writer.end[1]),
        );
        when(e, inside, |e| {
            call.scope(|call| {
                let elements: Vec<Vec<_>> = (0..)
                    .zip(sums)
                    .map(|(next, sum)| {
                        let column = e.add(column, e.int(next));
                        let mut vars = outer_vars.clone();
                        vars.push(call.variable(row, writer.known[0]));
                        vars.push(call.variable(column, writer.known[1]));
                        call.give(plan.node, shifted(&vars, &plan.shift), *sum);
                        vars
                    })
                    .collect();
                super::store(e, call, (root, windows), &elements, memory);
            });
        });
    }
}

/// Variables at constants.
pub fn shifted(vars: &[usize], shift: &[i64]) -> Vec<Index> {
    let vars = vars.iter().zip(shift);
    vars.map(|(var, shift)| Index::var(*var).plus(&Index::constant(*shift)))
        .collect()
}

impl<'c> Writer<'_, 'c> {
    /// Row and column of one of the thread's sums.
    fn element(&self, e: &Emitter<'c>, number: i64) -> [Val<'c>; 2] {
        let columns = self.cells.columns;
        let row = self.cells.row(e, &self.place, number / columns);
        let column = self.cells.column(e, &self.place, number % columns);
        [e.add(self.first[0], row), e.add(self.first[1], column)]
    }

    fn starts(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>) -> Vec<Val<'c>> {
        let count = self.cells.count();
        if let Kind::Splat(0) = call.graph.nodes[self.plan.start].kind {
            return block::zeros(e, count);
        }
        (0..count)
            .map(|number| {
                let at = self.element(e, number);
                let inside = [0, 1].map(|dim| e.min(at[dim], e.sub(self.end[dim], e.int(1))));
                let vars = [0, 1].map(|dim| call.variable(inside[dim], self.known[dim]));
                let mut index = self.outer.clone();
                index.extend(shifted(&vars, &self.plan.shift[self.outer.len()..]));
                call.scope(|call| call.value(e, self.plan.start, &index))
            })
            .collect()
    }

    fn segment(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        segment: &Segment,
        product: &Product,
        sums: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let step = self.plan.depth;
        let lead = self.outer.len();
        let until = self.plan.until.filter(|_| segment.node == self.plan.node);
        let depth = call.size(e, product.depth);
        let end = match until {
            None => depth,
            Some(after) => {
                let more = TRIANGLE - 1 + self.plan.shift[lead] + after;
                e.min(depth, e.add(e.and(self.first[0], -TRIANGLE), e.int(more)))
            }
        };
        let known = product.depth.known();
        let zero = e.int(0);
        let vars = [0, 1].map(|dim| call.variable(zero, self.known[dim]));
        let k = Span {
            var: call.variable(zero, known),
            end,
            full: until.is_none() && known.is_some_and(|depth| depth % step == 0),
        };
        let mut index = self.outer.clone();
        index.extend(shifted(&vars, &self.plan.shift[lead..]));
        index.push(Index::var(k.var));
        let at: Vec<Index> = product.at.iter().map(|of| of.at(&index)).collect();
        let [left, right] = self.plan.layout(self.cells, segment);
        let source = |tile: Shared, node: NodeId, dim: usize| Source {
            tile,
            side: segment.sides[dim],
            node,
            at: at.clone(),
            k,
            other: Span {
                var: vars[dim],
                end: self.end[dim],
                full: self.known[dim].is_some_and(|size| {
                    size % [self.cells.block_rows(), self.cells.block_columns()][dim] == 0
                }),
            },
        };
        let sources = [source(left, product.a, 0), source(right, product.b, 1)];
        let (copied, computed): (Vec<_>, Vec<_>) =
            (0..2).partition(|dim| sources[*dim].side.is_copied());
        let begins = |dim: usize, k: Val<'c>, buffer: Val<'c>| Begins {
            k,
            other: self.first[dim],
            buffer,
        };
        when(e, below(e, zero, end), |e| {
            for (dim, source) in sources.iter().enumerate() {
                source.bring(e, call, &self.place, begins(dim, zero, zero));
            }
            if !copied.is_empty() {
                commit_copies(e);
            }
        });
        e.for_loop(self.zero, end, step, &sums, |e, first, sums| {
            // Of this thread, then of all: what this step reads is there, and what the last step read
            // may be overwritten.
            if !copied.is_empty() {
                wait_for_copies(e);
            }
            barrier(e);
            let next = e.add(first, e.int(step));
            let buffer = |k: Val<'c>| e.and(e.shift_right(k, step.ilog2().into()), 1);
            if !copied.is_empty() {
                when(e, below(e, next, end), |e| {
                    for dim in &copied {
                        let begins = begins(*dim, next, buffer(next));
                        sources[*dim].bring(e, call, &self.place, begins);
                    }
                    commit_copies(e);
                });
            }
            let loaded: Vec<_> = computed
                .iter()
                .map(|dim| {
                    let begins = begins(*dim, next, buffer(next));
                    sources[*dim].load(e, call, &self.place, begins)
                })
                .collect();
            let tiles = (left, right);
            let sums = multiply(e, &self.place, self.cells, tiles, buffer(first), sums);
            for (dim, loaded) in computed.iter().zip(&loaded) {
                sources[*dim].put(e, &self.place, loaded, buffer(next));
            }
            sums
        })
    }
}
