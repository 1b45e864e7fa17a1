//! Products of warpgroups whose weights stay in shared memory.
//!
//! A block loads the weights of its columns, all their terms, once. Then its warpgroups go over tiles of 64 rows, at a stride of the
//! grid: each copies their terms to buffers of its own, multiplies, and stores what is made of the sums, with barriers of its own 128
//! threads. So rows alone come from the second cache.
//!
//! Half of the warpgroups multiply while the other half stores, and they change places at a barrier of the block: the tensor cores
//! wait for no end of a tile (the *ping-pong* schedule of CUTLASS, and of FlashAttention-3: Shah et al., 2024). The first terms of a
//! tile are copied before its turn comes.
//!
//! Products follow in the order of k, 16 at a time, as in all sizes of a tile.

use std::cell::Cell;

use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::Val;

use super::super::launches::Tile;
use super::super::ops::{
    THREADS, WARP, barrier, below, block, commit_copies, divide, fence_copies, grid_blocks,
    named_barrier, thread, wait_for_copies, when,
};
use super::super::site::{Frame, memory};
use super::copies::Copies;
use super::size::{GROUP_ROWS, GROUP_TERMS};
use super::warpgroup::PATTERN_BYTES;
use super::{Gates, Group, Size, Writer, first_of_thread};
use crate::emit::Emitter;

/// Warpgroups of a block, in two halves.
const GROUPS: i64 = 4;

/// What a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panels {
    /// Columns of each sum.
    pub columns: i64,
    /// Buffers of rows of each warpgroup.
    pub stages: i64,
}

impl Panels {
    /// From the loop level's numbers.
    pub fn new([_, columns, stages]: [i64; 3]) -> Panels {
        Panels { columns, stages }
    }

    /// What the warpgroups of a block have together, its rows one below the other.
    pub fn of_block(self) -> Size {
        Size::of_warpgroups([GROUPS, self.columns, self.stages])
    }

    /// What a warpgroup has.
    fn of_group(self) -> Size {
        Size::of_warpgroups([1, self.columns, self.stages])
    }

    /// Bytes of a block's shared memory: the weights, and behind them what each warpgroup has for itself.
    pub fn shared_bytes(self, tile: &Tile<'_>) -> i64 {
        self.held_bytes(tile) + GROUPS * self.group_bytes(tile.gates())
    }

    /// Bytes of the weights: all terms of the block's columns.
    fn held_bytes(self, tile: &Tile<'_>) -> i64 {
        let of_chains = tile.chains.iter().map(|chain| {
            let terms: i64 = chain.segments.iter().map(|segment| segment.k).sum();
            terms / GROUP_TERMS * self.of_group().right_bytes(chain.gates.len() as i64)
        });
        of_chains.sum()
    }

    fn rows_bytes(self) -> i64 {
        self.stages * self.of_group().left_bytes()
    }

    /// Bytes of a warpgroup: its buffers of rows, which the sums take the place of.
    fn group_bytes(self, gates: Gates) -> i64 {
        let size = self.of_group();
        let sums = match size.redistributes(gates) {
            true => size.sums_bytes(gates) / self.parts(gates),
            false => 0,
        };
        let bytes = self.rows_bytes().max(sums);
        (bytes + PATTERN_BYTES - 1) / PATTERN_BYTES * PATTERN_BYTES
    }

    /// In how many passes a warpgroup redistributes its sums.
    fn parts(self, gates: Gates) -> i64 {
        self.of_group().parts_in(gates, self.rows_bytes())
    }
}

/// Writes the function's body.
pub fn write<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, tile: &Tile<'c>, panels: Panels) {
    let first_column = e.times(block(e, GpuDim::Y), panels.columns);
    hold(e, frame, tile, (panels, first_column));
    let (group, thread) = divide(e, thread(e), THREADS);
    let shared = memory(e, true);
    let behind = shared.offset_by(frame.shared(), panels.held_bytes(tile));
    let own = shared.offset(behind, e.times(group, panels.group_bytes(tile.gates())));
    let tiles = Tiles {
        frame: &Frame {
            shared: Some(own),
            ..frame.clone()
        },
        tile,
        panels,
        weights: frame.shared(),
        group,
        thread,
        first_column,
    };
    let rows = e.times(frame.rows, tile.matrix_rows());
    let count =
        e.b.divui(e.add(rows, e.int(GROUP_ROWS - 1)), e.int(GROUP_ROWS));
    let of_block = e.times(block(e, GpuDim::X), GROUPS);
    let stride = e.times(grid_blocks(e), GROUPS);
    // As many for all warpgroups, as they wait for each other: what is behind the last row is not stored.
    let turns = e.add(e.sub(count, of_block), e.sub(stride, e.int(1)));
    let turns = e.b.divui(turns, stride);
    let number = |e: &Emitter<'c>, turn| e.add(e.add(of_block, group), e.mul(turn, stride));
    let turn_taking = Turns {
        half: e.shift_right(group, 1),
        last: e.sub(turns, e.int(1)),
    };

    tiles.at(e, number(e, e.int(0))).prefetch(e);
    e.rolled_loop(e.int(0), turns, 1, &[], |e, turn, _| {
        let writer = tiles.at(e, number(e, turn));
        let rows = writer.rows(e);
        let (first, others) = (&tile.chains[0], &tile.chains[1..]);
        // Loaded while the others multiply.
        let starts = writer.starts(e, first, &rows);
        turn_taking.begin(e, turn);
        let mut sums = vec![writer.chain_from(e, first, starts)];
        let others = others.iter();
        sums.extend(others.map(|chain| writer.chain(e, chain, &rows)));
        turn_taking.end(e, turn);
        let tiles = tiles.in_turn(e, turn);
        let writer = tiles.at(e, number(e, turn));
        writer.tail(e, &writer.rows(e), &sums);
        // What the next rows are copied to may still be read.
        writer.barrier(e);
        let next = e.add(turn, e.int(1));
        when(e, below(e, next, turns), |e| {
            tiles.at(e, number(e, next)).prefetch(e);
        });
        vec![]
    });
}

/// Named barriers of a block: one for each warpgroup, from 1 on, one at which its halves change places, and one for each half.
const FIRST_GROUP: i64 = 1;
const CHANGE: i64 = FIRST_GROUP + GROUPS;
const FIRST_HALF: i64 = CHANGE + 1;

/// Who multiplies when: where one half begins, the other one ends.
struct Turns<'c> {
    /// Of the warpgroup.
    half: Val<'c>,
    /// The last turn.
    last: Val<'c>,
}

impl<'c> Turns<'c> {
    /// Waits until the other half has ended its turn; the first half does not before its first one.
    fn begin(&self, e: &Emitter<'c>, turn: Val<'c>) {
        self.change(e, below(e, e.add(turn, self.half), e.int(1)));
    }

    /// Lets the other half begin; behind the last turn of the second half nobody does.
    fn end(&self, e: &Emitter<'c>, turn: Val<'c>) {
        let done = e.add(turn, self.half);
        self.change(e, below(e, self.last, done));
    }

    /// Without a branch, as all threads of a block come to the same barriers: those of a half that is alone wait for each other.
    fn change(&self, e: &Emitter<'c>, is_alone: Val<'c>) {
        let own = e.add(self.half, e.int(FIRST_HALF));
        let barrier = e.select(is_alone, own, e.int(CHANGE));
        let all = GROUPS * THREADS;
        named_barrier(e, barrier, e.select(is_alone, e.int(all / 2), e.int(all)));
    }
}

/// What a warpgroup goes over.
#[derive(Clone, Copy)]
struct Tiles<'a, 'f, 'c> {
    /// Its shared memory is the warpgroup's own.
    frame: &'a Frame<'f, 'c>,
    tile: &'a Tile<'c>,
    panels: Panels,
    /// Where the block's weights are.
    weights: Val<'c>,
    /// The warpgroup's number in the block, and the thread's in it.
    group: Val<'c>,
    thread: Val<'c>,
    first_column: Val<'c>,
}

impl<'a, 'f, 'c> Tiles<'a, 'f, 'c> {
    /// The same, of whose thread LLVM cannot tell that it is the same in each turn: it would have all that follows from it in
    /// registers beside the sums.
    fn in_turn(&self, e: &Emitter<'c>, turn: Val<'c>) -> Self {
        let zero = e.b.shrui(turn, e.int(62));
        Tiles {
            thread: e.add(self.thread, zero),
            first_column: e.add(self.first_column, zero),
            ..*self
        }
    }

    /// The tile of this number; behind the last row, one of the last row.
    fn at(&self, e: &Emitter<'c>, number: Val<'c>) -> Writer<'a, 'f, 'c> {
        let size = self.panels.of_group();
        let (warp, lane) = divide(e, self.thread, WARP);
        let first = [e.times(number, GROUP_ROWS), self.first_column];
        let (row, column) = first_of_thread(e, size, warp, lane);
        let threads = [self.thread, warp, lane];
        Writer {
            parts: self.panels.parts(self.tile.gates()),
            group: Some(Group {
                barrier: e.add(self.group, e.int(FIRST_GROUP)),
                weights: Cell::new(self.weights),
                has_begun: Cell::new(true),
            }),
            ..Writer::new(
                e,
                (self.frame, self.tile),
                size,
                threads,
                first,
                [row, column],
            )
        }
    }
}

/// Loads the weights of the block's columns, by all of its threads.
fn hold<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    tile: &Tile<'c>,
    (panels, first_column): (Panels, Val<'c>),
) {
    let thread = thread(e);
    let (warp, lane) = divide(e, thread, WARP);
    let size = panels.of_block();
    let place = [e.int(0), first_column];
    let writer = Writer::new(
        e,
        (frame, tile),
        size,
        [thread, warp, lane],
        place,
        [e.int(0), e.int(0)],
    );
    let mut to = frame.shared();
    for chain in &tile.chains {
        let bytes = size.right_bytes(chain.gates.len() as i64);
        for segment in &chain.segments {
            let copies = Copies::of_weights(e, &writer, chain, segment);
            let steps = segment.k / GROUP_TERMS;
            e.rolled_loop(e.int(0), e.int(steps), 1, &[], |e, step, _| {
                let to = memory(e, true).offset(to, e.times(step, bytes));
                copies.begin_weights(e, step, to);
                vec![]
            });
            to = memory(e, true).offset_by(to, steps * bytes);
        }
    }
    commit_copies(e);
    wait_for_copies(e);
    fence_copies(e);
    barrier(e);
}
