//! Writes a tile launch: products in registers, then the pointwise values that read them.
//!
//! A block has a tile of rows and columns. Its threads gather the rows' elements, and those of the
//! weights, of the next few k into one buffer of shared memory ([`copies`]) while they multiply those
//! of the last few k, which are in another ([`lanes`], [`tensor`], [`warpgroup`]): one barrier a step. There are two buffers, or a ring
//! of more in the largest tiles, where copies of some steps are on their way. Every sum
//! starts from its start and takes the products in the order of k, whatever the tile: so tiles of
//! different sizes give the same bits. What is made of the sums is distributed over the threads anew, so that
//! each loads and stores 16 bytes at once ([`tail`]).
//!
//! Where warpgroups multiply, weights may stay in shared memory instead ([`panels`]).
//!
//! Rows behind the last are computed as the last and not stored; of columns likewise. What lies
//! behind the last k is zero.

mod copies;
mod lanes;
mod panels;
pub mod resident;
mod ring;
mod size;
mod tail;
mod tensor;
mod warpgroup;

use std::cell::Cell;
use std::collections::HashMap;

use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::Place;

use super::launches::{Chain, Segment, Tile};
use super::ops::{
    THREADS, WARP, barrier, below, block, commit_copies, delinearise, divide, fence_copies,
    named_barrier, thread, wait_for_copies_but, when,
};
use super::rows::addresses;
use super::site::{Address, Frame, Known, Site, memory};
use crate::emit::{Emitter, Index};
use crate::read_rows::body::Body;
use crate::read_rows::memory::Row;
use copies::Copies;

pub use lanes::load_floats;
pub use panels::{Panels, write as write_panels};
pub use resident::{Resident, rows_in_cluster};
pub use size::{GROUP_TERMS, Gates, STAGES, Size, Unit, WARPS};
pub use tensor::{add_products, factors};
pub use warpgroup::WAIT;

/// Sums of a chain in registers, by gate, row and column.
type Sums<'c> = Vec<Val<'c>>;

struct Writer<'a, 'f, 'c> {
    frame: &'a Frame<'f, 'c>,
    tile: &'a Tile<'c>,
    size: Size,
    thread: Val<'c>,
    warp: Val<'c>,
    lane: Val<'c>,
    /// The block's first row and column.
    first_row: Val<'c>,
    first_column: Val<'c>,
    /// The thread's first row and column.
    own_row: Val<'c>,
    own_column: Val<'c>,
    /// The buffer that other threads may still read, and of how many gates it is.
    in_use: Cell<Option<(i64, i64)>>,
    /// In how many passes sums are redistributed.
    parts: i64,
    /// Where warpgroups compute tiles by themselves, what one has.
    group: Option<Group<'c>>,
    /// Rows of the tile's space, and the last of them.
    total: Val<'c>,
    last: Val<'c>,
}

/// A warpgroup whose block keeps its weights in shared memory.
struct Group<'c> {
    /// The barrier of its threads.
    barrier: Val<'c>,
    /// The weights of the next segment.
    weights: Cell<Val<'c>>,
    /// Whether the copies of its first terms are on their way.
    has_begun: Cell<bool>,
}

impl<'a, 'f, 'c> Writer<'a, 'f, 'c> {
    /// Of a block whose first row and column are these, and in it those that the thread has.
    fn new(
        e: &Emitter<'c>,
        (frame, tile): (&'a Frame<'f, 'c>, &'a Tile<'c>),
        size: Size,
        [thread, warp, lane]: [Val<'c>; 3],
        [first_row, first_column]: [Val<'c>; 2],
        [row, column]: [Val<'c>; 2],
    ) -> Self {
        let total = e.times(frame.rows, tile.matrix_rows());
        Writer {
            frame,
            tile,
            size,
            thread,
            warp,
            lane,
            first_row,
            first_column,
            own_row: e.add(first_row, row),
            own_column: e.add(first_column, column),
            in_use: Cell::new(None),
            parts: size.parts(tile.gates()),
            group: None,
            total,
            last: e.sub(total, e.int(1)),
        }
    }
}

/// A row of the tile's space: the kernel's row, and the index of the dims before the columns.
struct TileRow<'c> {
    row: Row<'c>,
    outer: Vec<Index<'c>>,
}

pub fn write<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, tile: &Tile<'c>, size: Size) {
    let thread = thread(e);
    let (warp, lane) = divide(e, thread, WARP);
    let first_row = e.times(block(e, GpuDim::X), size.block_rows());
    let first_column = e.times(block(e, GpuDim::Y), size.block_columns());
    let (row, column) = first_of_thread(e, size, warp, lane);
    let (first, own) = ([first_row, first_column], [row, column]);
    let writer = Writer::new(e, (frame, tile), size, [thread, warp, lane], first, own);
    let rows = writer.rows(e);
    let sums: Vec<Sums<'c>> = tile
        .chains
        .iter()
        .map(|chain| writer.chain(e, chain, &rows))
        .collect();
    writer.tail(e, &rows, &sums);
}

/// Whether the buffers that are filled first, all but the last one, overlap one that is being read: it is among them, or
/// they are wider than those of the chain before.
fn reach(stages: i64, gates: i64, (buffer, gates_before): (i64, i64)) -> bool {
    buffer < stages - 1 || gates > gates_before
}

/// The first row and column of a thread, from those of the block.
fn first_of_thread<'c>(
    e: &Emitter<'c>,
    size: Size,
    warp: Val<'c>,
    lane: Val<'c>,
) -> (Val<'c>, Val<'c>) {
    match size.unit {
        Unit::Lanes => (e.times(warp, size.rows), e.times(lane, size.columns)),
        Unit::Tensor { .. } | Unit::Warpgroups => {
            let (down, across) = divide(e, warp, size.across());
            let (row, pair) = divide(e, lane, 4);
            (
                e.add(e.times(down, size.warp_rows()), row),
                e.add(e.times(across, size.warp_columns()), e.times(pair, 2)),
            )
        }
    }
}

impl<'c> Writer<'_, '_, 'c> {
    /// The rows of the thread.
    fn rows(&self, e: &Emitter<'c>) -> Vec<(Val<'c>, TileRow<'c>)> {
        (0..self.size.rows)
            .map(|number| {
                let at = e.add(self.own_row, e.int(self.row_place(number)));
                (at, self.row(e, at))
            })
            .collect()
    }

    /// Where a row of the thread is, from its first one on.
    fn row_place(&self, number: i64) -> i64 {
        match self.size.unit {
            Unit::Lanes => number,
            Unit::Tensor { .. } | Unit::Warpgroups => number * 8,
        }
    }

    /// The same of a column.
    fn column_place(&self, number: i64) -> i64 {
        match self.size.unit {
            Unit::Lanes => number,
            Unit::Tensor { .. } | Unit::Warpgroups => number / 2 * 8 + number % 2,
        }
    }

    /// A row of the space, or the last one for those behind it.
    fn row(&self, e: &Emitter<'c>, at: Val<'c>) -> TileRow<'c> {
        let at = e.min(at, self.last);
        let (row, rest) = divide(e, at, self.tile.matrix_rows());
        TileRow {
            row: Row {
                in_block: row,
                in_bucket: row,
            },
            outer: delinearise(e, rest, self.tile.outer()),
        }
    }

    /// A column of the thread, as it is and so that as many as are taken together are not behind the last.
    fn column(&self, e: &Emitter<'c>, number: i64, together: i64) -> (Val<'c>, Val<'c>) {
        let at = e.add(self.own_column, e.int(self.column_place(number)));
        (at, self.clamped(e, at, together))
    }

    /// A column so that as many as are taken together are not behind the last.
    fn clamped(&self, e: &Emitter<'c>, column: Val<'c>, together: i64) -> Val<'c> {
        let columns = self.tile.columns();
        match columns % self.size.block_columns() {
            0 => column,
            _ => e.min(column, e.int(columns - together)),
        }
    }

    /// How many of a thread's columns are neighbours, and all of them or none columns of the tile.
    fn together(&self) -> i64 {
        let neighbours = match self.size.unit {
            Unit::Lanes => self.size.columns,
            Unit::Tensor { .. } | Unit::Warpgroups => 2,
        };
        match self.tile.columns() % neighbours {
            0 => neighbours,
            _ => 1,
        }
    }

    fn index(&self, row: &TileRow<'c>, column: Val<'c>) -> Vec<Index<'c>> {
        let mut index = row.outer.clone();
        if !self.tile.domain.is_empty() {
            index.push(Index {
                value: Some(column),
                constant: 0,
            });
        }
        index
    }

    fn addresses(
        &self,
        e: &Emitter<'c>,
        row: &TileRow<'c>,
        body: &Body<'c>,
    ) -> HashMap<Place, Address<'c>> {
        let places: Vec<Place> = body.stores.iter().map(|store| store.place).collect();
        addresses(e, self.frame, Some(row.row), &[body], &places)
    }

    /// All threads that have the tile wait for each other.
    fn barrier(&self, e: &Emitter<'c>) {
        match &self.group {
            Some(group) => named_barrier(e, group.barrier, e.int(THREADS)),
            None => barrier(e),
        }
    }

    // Sums.

    fn chain(
        &self,
        e: &Emitter<'c>,
        chain: &Chain<'c>,
        rows: &[(Val<'c>, TileRow<'c>)],
    ) -> Sums<'c> {
        self.chain_from(e, chain, self.starts(e, chain, rows))
    }

    /// The same from what its sums start from.
    fn chain_from(&self, e: &Emitter<'c>, chain: &Chain<'c>, starts: Sums<'c>) -> Sums<'c> {
        let mut sums = starts;
        for segment in &chain.segments {
            sums = self.segment(e, chain, segment, sums);
        }
        sums
    }

    fn starts(
        &self,
        e: &Emitter<'c>,
        chain: &Chain<'c>,
        rows: &[(Val<'c>, TileRow<'c>)],
    ) -> Sums<'c> {
        let together = self.together();
        let mut by_row = vec![Vec::new(); chain.gates.len()];
        for (_, row) in rows {
            let mut touched = self.addresses(e, row, &chain.init);
            for column in (0..self.size.columns).step_by(together as usize) {
                let (_, column) = self.column(e, column, together);
                let index = self.index(row, column);
                let mut site = Site {
                    frame: self.frame,
                    row: Some(row.row),
                    index: &index,
                    count: together,
                    addresses: &mut touched,
                    sums: None,
                };
                let mut known = Known::new();
                for (start, starts) in chain.starts.iter().zip(&mut by_row) {
                    starts.extend(site.values(e, &chain.init, *start, &mut known));
                }
            }
        }
        by_row.concat()
    }

    fn segment(
        &self,
        e: &Emitter<'c>,
        chain: &Chain<'c>,
        segment: &Segment,
        sums: Sums<'c>,
    ) -> Sums<'c> {
        let copies = Copies::new(e, self, chain, segment);
        let Size { depth, stages, .. } = self.size;
        let steps = (segment.k + depth - 1) / depth;
        let gates = chain.gates.len() as i64;
        let last = Some(((steps - 1) % stages, gates));
        if let Some(read) = self.in_use.replace(last)
            && reach(stages, gates, read)
        {
            self.barrier(e);
        }
        let weights = self.group.as_ref().map(|group| {
            let weights = group.weights.get();
            let bytes = steps * self.size.right_bytes(gates);
            let next = memory(e, true).offset_by(weights, bytes);
            group.weights.set(next);
            weights
        });
        let ahead = stages - 1;
        let group = self.group.as_ref();
        if !group.is_some_and(|group| group.has_begun.replace(false)) {
            self.begin(e, &copies, steps);
        }
        let steps = e.add(e.int(steps), self.unknown_zero(e));
        let mut carried = sums;
        carried.push(e.int(0));
        let mut carried = e.for_loop(e.int(0), steps, 1, &carried, |e, step, carried| {
            let (sums, buffer) = carried.split_at(carried.len() - 1);
            let buffer = self.in_ring(e, step, buffer[0]);
            // Of this thread, then of all: what this step reads is there, and what the last step read
            // may be overwritten.
            wait_for_copies_but(e, ahead - 1);
            if self.size.unit == Unit::Warpgroups {
                fence_copies(e);
            }
            self.barrier(e);
            let fill = || {
                let next = e.add(step, e.int(ahead));
                when(e, below(e, next, steps), |e| {
                    let before = self.before(e, buffer);
                    copies.begin(e, next, self.in_ring(e, next, before));
                });
                commit_copies(e);
            };
            let mut carried = match self.size.unit {
                Unit::Lanes => {
                    fill();
                    lanes::multiply(self, e, gates, buffer, sums)
                }
                Unit::Tensor {
                    precision, across, ..
                } => {
                    fill();
                    tensor::multiply(self, e, (precision, across), gates, buffer, sums)
                }
                Unit::Warpgroups => {
                    let (left, mut right) = self.buffers(e, buffer, gates);
                    if let Some(weights) = weights {
                        let at = e.times(step, self.size.right_bytes(gates));
                        right = memory(e, true).offset(weights, at);
                    }
                    let sums = warpgroup::begin(self, e, gates, (left, right), sums);
                    fill();
                    warpgroup::wait(self, e, gates, sums)
                }
            };
            carried.push(self.behind(e, buffer));
            carried
        });
        carried.pop();
        carried
    }

    /// Begins the copies of all steps that there are buffers for but one.
    fn begin(&self, e: &Emitter<'c>, copies: &Copies<'_, '_, '_, 'c>, steps: i64) {
        for step in 0..self.size.stages - 1 {
            if step < steps {
                copies.begin(e, e.int(step), e.int(step));
            }
            commit_copies(e);
        }
    }

    /// Does so for the first segment, before [`Writer::chain`].
    fn prefetch(&self, e: &Emitter<'c>) {
        let chain = &self.tile.chains[0];
        let segment = &chain.segments[0];
        let steps = (segment.k + self.size.depth - 1) / self.size.depth;
        self.begin(e, &Copies::new(e, self, chain, segment), steps);
    }

    /// The buffer of a step, which is the one `turned` to: where their number is a power of two it follows from the step.
    fn in_ring(&self, e: &Emitter<'c>, step: Val<'c>, turned: Val<'c>) -> Val<'c> {
        match self.size.stages {
            stages if stages.count_ones() == 1 => e.and(step, stages - 1),
            _ => turned,
        }
    }

    /// The buffer behind another, and the one before it.
    fn behind(&self, e: &Emitter<'c>, buffer: Val<'c>) -> Val<'c> {
        let is_last = below(e, e.int(self.size.stages - 2), buffer);
        e.select(is_last, e.int(0), e.add(buffer, e.int(1)))
    }

    fn before(&self, e: &Emitter<'c>, buffer: Val<'c>) -> Val<'c> {
        let is_first = below(e, buffer, e.int(1));
        let last = e.int(self.size.stages - 1);
        e.select(is_first, last, e.sub(buffer, e.int(1)))
    }

    /// Zero, which LLVM cannot tell: there are never as many rows as would make it more. It unrolls loops of few steps
    /// otherwise, whatever a loop's attributes say, and has the addresses of all steps in registers.
    fn unknown_zero(&self, e: &Emitter<'c>) -> Val<'c> {
        e.b.shrui(self.frame.rows, e.int(62))
    }

    /// Where a buffer of the left and of the right side begins in shared memory.
    fn buffers(&self, e: &Emitter<'c>, buffer: Val<'c>, gates: i64) -> (Val<'c>, Val<'c>) {
        let e = memory(e, true);
        let start = self.frame.shared();
        let left = e.offset(start, e.times(buffer, self.size.left_bytes()));
        let right = e.offset_by(start, self.size.stages * self.size.left_bytes());
        let right = e.offset(right, e.times(buffer, self.size.right_bytes(gates)));
        (left, right)
    }
}
