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
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::graph::{Graph, NodeId, Size};
use cohort_passes::kernel::calls::memory::extent;
use cohort_passes::kernel::calls::neighbours::stored_at_once;
use cohort_passes::kernel::calls::stages::{Matmul, Store};

use super::super::function::SHARED;
use super::super::ops::{barrier, below, both, commit_copies, wait_for_copies, when};
use super::block::{self, Cells, Shared, ThreadPlace, multiply};
use super::eval::{Call, Memory};
use super::side::Side;
use super::source::{Begins, Source, Span};
use super::{Tile, at, tiled};
use crate::emit::Emitter;

const BUFFERS: i64 = 2;

/// Rows of a triangle that end together; a multiple of every tile's.
const TRIANGLE: i64 = 64;

/// Blocks with which a card is full.
const ENOUGH: u64 = 256;

/// Products whose sums are added up, and what is made of them.
pub struct ProductPlan {
    /// What the sums start from, where that is not zero.
    start: Option<Store>,
    /// The products in order.
    segments: Vec<Segment>,
    pub store: Store,
    precision: Precision,
}

/// A product, and what the tiles of its left and right side are like.
struct Segment {
    stage: Matmul,
    sides: [Side; 2],
}

impl Segment {
    /// How many k are in a buffer of shared memory.
    fn depth(&self) -> i64 {
        self.stage.blocks[1]
    }
}

impl ProductPlan {
    /// Sums that start from a value that loops store.
    pub fn new(start: Option<Store>, precision: Precision) -> ProductPlan {
        ProductPlan {
            start,
            segments: vec![],
            store: Store::default(),
            precision,
        }
    }

    /// With a product that goes on from these sums.
    pub fn and(mut self, graph: &Graph<'_>, stage: Matmul) -> Result<ProductPlan, String> {
        let rank = stage.over.len();
        let result = graph.results[stage.result];
        let sides = [(&stage.left, rank - 2), (&stage.right, rank - 1)];
        let sides = sides.map(|(side, other)| Side::of(graph, side, rank, other));
        let plain = || Store {
            value: result,
            at: stage.to.clone(),
            lanes: None,
            result: stage.result,
            to: stage.to.clone(),
        };
        let finish = stage.finish.as_ref();
        self.store = finish.map_or_else(plain, Store::clone);
        self.segments.push(Segment { stage, sides });
        self.check()?;
        Ok(self)
    }

    /// Whether threads and shared memory can be had for the tiles that the stages ask for.
    fn check(&self) -> Result<(), String> {
        let columns = self.last().blocks[0];
        let step = Cells::of(self.precision, 64, 64).step();
        let fits = |segment: &Segment| {
            let [own, depth] = segment.stage.blocks;
            own == columns && depth.count_ones() == 1 && depth % step == 0 && depth >= 8
        };
        let is_tile = [16, 32, 64].contains(&columns) && self.segments.iter().all(fits);
        let has_room = || {
            let mut sizes = self.sizes().into_iter();
            sizes.all(|(cells, _)| self.shared_bytes(cells) <= SHARED)
        };
        match is_tile && has_room() {
            true => Ok(()),
            false => Err(format!(
                "tiles of a product have 16, 32 or 64 columns, the same of all that are summed, and a power of two \
                 of terms from {} on, for which there is shared memory",
                step.max(8)
            )),
        }
    }

    fn last(&self) -> &Matmul {
        &self.segments[self.segments.len() - 1].stage
    }

    /// Whether the sums are what is stored.
    pub fn is_plain(&self) -> bool {
        self.last().finish.is_none()
    }

    pub fn over(&self) -> &[Size] {
        &self.last().over
    }

    /// The sizes of tiles, each with the number of blocks from which on it is used.
    pub fn sizes(&self) -> Vec<(Cells, u64)> {
        let columns = self.last().blocks[0];
        let small = Cells::of(self.precision, 16, columns.min(32));
        let large = Cells::of(self.precision, 64, columns);
        let mut sides = self.segments.iter().map(|segment| segment.sides[1]);
        let spread = sides.all(|side| side.along_k);
        vec![(small.spread(spread), 0), (large.spread(spread), ENOUGH)]
    }

    pub fn shared_bytes(&self, cells: Cells) -> i64 {
        let ends = self.segments.iter().map(|segment| {
            let [_, right] = segment.layout(cells);
            right.from + BUFFERS * right.bytes()
        });
        ends.max().unwrap_or(0)
    }

    /// How a call is cut into tiles.
    pub fn tiles(&self, cells: Cells) -> CallTiles {
        let over = self.over();
        let dims = over.iter().zip(tile_sizes(cells, over.len()));
        CallTiles {
            dims: dims.map(|(size, tile)| tiled(*size, tile)).collect(),
            work: extent(&[self.last().depth], 1),
        }
    }
}

impl Segment {
    /// The first buffers of both sides.
    fn layout(&self, cells: Cells) -> [Shared; 2] {
        let [left, right] = self.sides.map(|side| side.along_k);
        let left = cells.tile(0, (self.depth(), cells.block_rows()), left);
        let from = BUFFERS * left.bytes();
        let right = cells.tile(from, (self.depth(), cells.block_columns()), right);
        [left, right]
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
    plan: &'a ProductPlan,
    cells: Cells,
    place: ThreadPlace<'c>,
    /// Variables of the loops before rows and columns.
    outer: Vec<Var>,
    /// The tile's first row and column of the result, and how many there are in the call.
    first: [Val<'c>; 2],
    end: [Val<'c>; 2],
    known: [Option<i64>; 2],
    /// Zero, which LLVM cannot tell.
    zero: Val<'c>,
}

/// Computes a tile of what is stored.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (plan, cells): (&ProductPlan, Cells),
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let over = plan.over();
    let (row, column) = (over.len() - 2, over.len() - 1);
    let writer = Writer {
        plan,
        cells,
        place: ThreadPlace::new(e, tile.shared),
        outer: (0..row).map(|dim| call.variable(tile.first[dim])).collect(),
        first: [tile.first[row], tile.first[column]],
        end: [row, column].map(|dim| call.size(e, over[dim])),
        known: [row, column].map(|dim| over[dim].known()),
        zero: tile.zero,
    };
    let mut sums = writer.starts(e, call);
    for (number, segment) in plan.segments.iter().enumerate() {
        if number > 0 {
            // Other threads may still read the buffer that is filled first.
            barrier(e);
        }
        sums = writer.segment(e, call, segment, sums);
    }
    let result = call.graph.results[plan.store.result];
    let at_once = stored_at_once(call.graph, &plan.store, over, cells.neighbours());
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
                        let mut vars = writer.outer.clone();
                        vars.extend([row, column].map(|value| call.variable(value)));
                        call.give(result, at(&plan.store.to, &vars), *sum);
                        vars
                    })
                    .collect();
                super::store(e, call, &plan.store, &elements, memory);
            });
        });
    }
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
        let Some(start) = &self.plan.start else {
            return block::zeros(e, count);
        };
        (0..count)
            .map(|number| {
                let element = self.element(e, number);
                let inside = [0, 1].map(|dim| e.min(element[dim], e.sub(self.end[dim], e.int(1))));
                let mut vars = self.outer.clone();
                vars.extend(inside.map(|value| call.variable(value)));
                call.scope(|call| call.value(e, start.value, &at(&start.at, &vars)))
            })
            .collect()
    }

    fn segment(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        segment: &Segment,
        sums: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let Segment { stage, sides } = segment;
        let step = segment.depth();
        let depth = call.size(e, stage.depth);
        let end = match stage.until {
            None => depth,
            Some(until) => {
                let more = TRIANGLE - 1 + until;
                e.min(depth, e.add(e.and(self.first[0], -TRIANGLE), e.int(more)))
            }
        };
        let known = stage.depth.known();
        let zero = e.int(0);
        let [row, column] = [0, 1].map(|_| call.variable(zero));
        let k = Span {
            var: call.variable(zero),
            end,
            full: stage.until.is_none() && known.is_some_and(|depth| depth % step == 0),
        };
        let mut vars = self.outer.clone();
        vars.extend([row, column, k.var]);
        let [left, right] = segment.layout(self.cells);
        let source = |tile: Shared, (node, index): (NodeId, &[Affine]), dim: usize| Source {
            tile,
            side: sides[dim],
            node,
            at: at(index, &vars),
            k,
            other: Span {
                var: [row, column][dim],
                end: self.end[dim],
                full: self.known[dim].is_some_and(|size| {
                    size % [self.cells.block_rows(), self.cells.block_columns()][dim] == 0
                }),
            },
        };
        let sources = [
            source(left, stage.left.read(), 0),
            source(right, stage.right.read(), 1),
        ];
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
