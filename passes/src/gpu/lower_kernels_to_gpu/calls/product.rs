//! Products over calls: a block has a tile of rows and columns of one matrix of one call.
//!
//! Both sides go through shared memory, a few k at a time, computed while they are loaded: what is
//! elementwise before a product (a scale, a mask, a transposition) has no memory of its own. What is
//! elementwise behind it is computed from the sums, in registers.
//!
//! Every sum takes its terms in the order of k, and ends where the mask of a triangle says for 64 rows
//! together, whatever the tile; so tiles of both sizes give the same bits.

use cohort_abi::gpu::CallTiles;
use cohort_dialects::builder::Val;

use super::super::ops::{barrier, below, both, when};
use super::block::{
    self, COLUMN_GROUPS, Place, ROW_GROUPS, Shared, Source, Span, multiply, whole_steps,
};
use super::eval::{Call, Memory};
use super::{Tile, size_of, tiled};
use crate::calls::bounds;
use crate::calls::graph::{Graph, Index, Kind, NodeId, Product, Size, identity};
use crate::calls::memory::extent;
use crate::calls::parts::{Window, find_root};
use crate::cpu::lower_kernels::emit::Emitter;

/// How many k are in a buffer of shared memory. Loads of one element take many registers, so these are
/// few; the next ones are loaded while those of one buffer are multiplied.
const DEPTH: i64 = 8;
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
    segments: Vec<NodeId>,
    /// What they start from.
    start: NodeId,
    /// How many terms more than its index a row has, where the left side is a triangle.
    until: Option<i64>,
}

/// Rows and columns of a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    rows: i64,
    columns: i64,
}

/// Finds the product that a part of a result is made of.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| graph.product(node).is_some())?;
    let mut segments = vec![node];
    let mut start = graph.product(node)?.init;
    let at = identity(windows.len());
    loop {
        let (before, read) = graph.resolve(start, &at);
        let Some(product) = (read == at).then(|| graph.product(before)).flatten() else {
            break;
        };
        segments.insert(0, before);
        start = product.init;
    }
    Some(Plan {
        node,
        shift,
        segments,
        start,
        until: bounds::after(graph, node).filter(|after| {
            bounds::of_product(graph, node).is_some_and(|(mask, _)| mask.after == *after)
        }),
    })
}

impl Plan {
    /// The sizes of tiles, each with the number of blocks from which on it is used.
    pub fn sizes(&self, windows: &[Window]) -> Vec<(Sizes, u64)> {
        let columns = match windows.last().map(|window| window.size) {
            Some(Size::Known(..=16)) => 1,
            Some(Size::Known(..=32)) => 2,
            _ => 4,
        };
        let small = Sizes {
            rows: 2,
            columns: columns.min(2),
        };
        let large = Sizes { rows: 8, columns };
        vec![(small, 0), (large, ENOUGH)]
    }

    pub fn shared_bytes(&self, sizes: Sizes) -> i64 {
        sizes.right().from + BUFFERS * sizes.right().bytes()
    }

    /// How a call is cut into tiles.
    pub fn tiles(&self, graph: &Graph<'_>, windows: &[Window], sizes: Sizes) -> CallTiles {
        let tiles = sizes.tiles(windows.len());
        let dims = windows.iter().zip(tiles);
        let depth = graph.product(self.node).map(|product| product.depth);
        CallTiles {
            dims: dims.map(|(window, tile)| tiled(window, tile)).collect(),
            work: extent(depth.as_slice(), 1),
        }
    }
}

impl Sizes {
    fn block_rows(self) -> i64 {
        ROW_GROUPS * self.rows
    }

    fn block_columns(self) -> i64 {
        COLUMN_GROUPS * self.columns
    }

    /// Entries of a tile, by dim.
    pub fn tiles(self, rank: usize) -> Vec<i64> {
        let mut tiles = vec![1; rank];
        tiles[rank - 2] = self.block_rows();
        tiles[rank - 1] = self.block_columns();
        tiles
    }

    fn left(self) -> Shared {
        Shared {
            from: 0,
            depth: DEPTH,
            width: self.block_rows(),
        }
    }

    fn right(self) -> Shared {
        Shared {
            from: BUFFERS * self.left().bytes(),
            depth: DEPTH,
            width: self.block_columns(),
        }
    }
}

struct Writer<'a, 'c> {
    plan: &'a Plan,
    sizes: Sizes,
    place: Place<'c>,
    /// Indices of the product's dims before rows and columns.
    outer: Vec<Index>,
    /// The tile's first row and column of the result, and how many there are in the call.
    first: [Val<'c>; 2],
    end: [Val<'c>; 2],
    known: [Option<i64>; 2],
}

/// Computes a tile of a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    (plan, sizes): (&Plan, Sizes),
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
        sizes,
        place: Place::new(e, tile.shared),
        outer: shifted(&outer_vars, &plan.shift),
        first: [tile.first[row], tile.first[column]],
        end: [row, column].map(|dim| size_of(e, call, &windows[dim])),
        known: [row, column].map(|dim| windows[dim].size.known()),
    };
    let mut sums = writer.starts(e, call);
    for node in &plan.segments {
        if let Some(product) = call.graph.product(*node) {
            let is_last = *node == plan.node;
            sums = writer.segment(e, call, &product, is_last, sums);
        }
    }
    for (number, sum) in sums.iter().enumerate() {
        let at = writer.element(e, number as i64);
        let [in_row, in_column] = [0, 1].map(|dim| below(e, at[dim], writer.end[dim]));
        when(e, both(e, in_row, in_column), |e| {
            call.scope(|call| {
                let mut vars = outer_vars.clone();
                vars.extend([0, 1].map(|dim| call.variable(at[dim], writer.known[dim])));
                call.give(plan.node, shifted(&vars, &plan.shift), *sum);
                super::store(e, call, (root, windows), &vars, memory);
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
        let Sizes { rows, columns } = self.sizes;
        let Place {
            row_group,
            column_group,
            ..
        } = self.place;
        let row = e.add(e.times(row_group, rows), e.int(number / columns));
        let column = e.add(e.times(column_group, columns), e.int(number % columns));
        [e.add(self.first[0], row), e.add(self.first[1], column)]
    }

    fn starts(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>) -> Vec<Val<'c>> {
        let count = self.sizes.rows * self.sizes.columns;
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
        product: &Product,
        is_last: bool,
        sums: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let (left, right) = (self.sizes.left(), self.sizes.right());
        let depth = call.size(e, product.depth);
        let lead = self.outer.len();
        let end = match self.plan.until.filter(|_| is_last) {
            None => depth,
            Some(after) => {
                let more = TRIANGLE - 1 + self.plan.shift[lead] + after;
                e.min(depth, e.add(e.and(self.first[0], -TRIANGLE), e.int(more)))
            }
        };
        let zero = e.int(0);
        let vars = [
            call.variable(zero, self.known[0]),
            call.variable(zero, self.known[1]),
        ];
        let k = call.variable(zero, product.depth.known());
        let mut index = self.outer.clone();
        index.extend(shifted(&vars, &self.plan.shift[lead..]));
        index.push(Index::var(k));
        let at: Vec<Index> = product.at.iter().map(|of| of.at(&index)).collect();
        let of_k = Span {
            var: k,
            first: zero,
            end,
        };
        let span = |dim: usize| Span {
            var: vars[dim],
            first: self.first[dim],
            end: self.end[dim],
        };
        let source = |tile: Shared, node: NodeId, dim: usize| Source {
            tile,
            node,
            at: &at,
            k: of_k,
            other: span(dim),
        };
        let sides = [source(left, product.a, 0), source(right, product.b, 1)];
        let some = below(e, zero, end);
        when(e, some, |e| {
            for side in &sides {
                side.fill(e, call, &self.place);
            }
        });
        barrier(e);
        e.for_loop(zero, end, DEPTH, &sums, |e, first, sums| {
            let next = e.add(first, e.int(DEPTH));
            let loaded = sides
                .each_ref()
                .map(|side| side.load(e, call, &self.place, next));
            let buffer = |k: Val<'c>| e.and(e.shift_right(k, DEPTH.ilog2().into()), 1);
            let count = whole_steps(e, e.min(e.sub(end, first), e.int(DEPTH)));
            let (left, right) = ((left, self.sizes.rows), (right, self.sizes.columns));
            let sums = multiply(e, &self.place, left, right, (count, buffer(first)), sums);
            for (side, loaded) in sides.iter().zip(&loaded) {
                side.put(e, &self.place, loaded, buffer(next));
            }
            barrier(e);
            sums
        })
    }
}
