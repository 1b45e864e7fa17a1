//! A tile whose weights stay in shared memory over all levels of a flush.
//!
//! A block has some columns of every gate, and of these all terms: a *panel* of the weights. It loads the panel when it
//! has another one, or none, and says in the first word of its shared memory which one is there; so whoever runs a
//! block of another function in that memory sets the word to zero (`persistence`). Tiles of rows then come and go, a
//! few terms at a time, through a *ring* of buffers: while some are multiplied, those of the next steps are on their
//! way, also those of the next product, of this sum or another one. Where there are several sums, a block has a panel of each.
//! What else is needed of the rows, behind the products, is on its way from the beginning, too.
//!
//! A thread has one row and one column of every gate, a warp has at most 8 columns. Where a cluster has the columns once, a thread
//! has a second row if there are more than one for each: otherwise the block would take them one after another. Four terms are one
//! load, on both sides, so weights lie along the terms: of the lanes of a warp that is the same 16 bytes for each column and for
//! each row, and all of them are in different banks, by padding. Sums start from their start and take the products in the order
//! of k, as in every other tile.

use std::cell::Cell;

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{CmpiPredicate, Op, Val};

use super::super::launches::{Chain, Tile};
use super::super::ops::{
    Copied, THREADS, WARP, WIDE, barrier, below, block, commit_copies, copy_async, divide, thread,
    wait_for_copies_but, when,
};
use super::super::site::{Frame, memory};
use super::ring::{Ring, RingPlace};
use super::{STAGES, Size, Sums, Unit, WARPS, Writer, load_floats};
use crate::emit::{Emitter, Width};

/// Bytes at the beginning of the shared memory, for the word that says which panel is there.
pub const HELD_BYTES: i64 = 16;

/// Maximum columns per warp: 16 bytes from each of 8 columns are one 128-byte access to shared memory.
const MOST_OF_WARP: i64 = 8;

/// Floats behind the terms of a column, and behind those of a row: neighbours begin in different banks.
const PADDING: i64 = 4;

/// What a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Columns of every gate.
    pub columns: i64,
    /// Terms of the rows that are in a buffer of the ring.
    pub terms: i64,
    /// Buffers of the ring.
    pub stages: i64,
    /// Rows per thread at most.
    pub thread_rows: i64,
    /// Where the word and the panels are in the shared memory of a flush, whose beginning the ring has for as long as the
    /// function runs; behind them, if nowhere else.
    pub held_at: Option<i64>,
}

impl Resident {
    /// Columns that a warp has, and rows.
    fn of_warp(self) -> (i64, i64) {
        let columns = self.columns.min(MOST_OF_WARP);
        (columns, WARP / columns)
    }

    /// Rows of a tile where a thread has one,
    pub fn single_rows(self) -> i64 {
        WARPS * WARP / self.columns
    }

    /// and most rows of one.
    pub fn rows(self) -> i64 {
        self.thread_rows * self.single_rows()
    }

    pub fn row_bytes(self) -> i64 {
        (self.terms + PADDING) * 4
    }

    pub fn stage_bytes(self) -> i64 {
        self.rows() * self.row_bytes()
    }

    fn panel_bytes(self, chain: &Chain<'_>) -> i64 {
        chain.gates.len() as i64 * self.columns * (terms_of(chain) + PADDING) * 4
    }

    /// Bytes of the word and the panels of these sums,
    pub fn held_bytes(self, chains: &[Chain<'_>]) -> i64 {
        let panels = chains.iter().map(|chain| self.panel_bytes(chain));
        HELD_BYTES + panels.sum::<i64>()
    }

    /// and of the ring.
    pub fn ring_bytes(self) -> i64 {
        self.stages * self.stage_bytes()
    }

    /// Bytes of shared memory up to the end of what it needs.
    pub fn shared_bytes(self, chains: &[Chain<'_>]) -> i64 {
        match self.held_at {
            Some(at) => at + self.held_bytes(chains),
            None => self.held_bytes(chains) + self.ring_bytes(),
        }
    }
}

/// Rows per thread at most, in a cluster that divides its columns between `parts` blocks: two if no block is left for other rows.
pub fn rows_in_cluster(parts: i64) -> i64 {
    if 2 * parts > CLUSTER_BLOCKS as i64 {
        2
    } else {
        1
    }
}

/// The terms of all products of a sum.
pub fn terms_of(chain: &Chain<'_>) -> i64 {
    chain.segments.iter().map(|segment| segment.k).sum()
}

/// Writes the function's body. `blocks` is the grid's extent along the columns; blocks beyond the last column return at once.
/// `number` is the kernel's.
pub fn write<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    tile: &Tile<'c>,
    (resident, blocks, number): (Resident, i64, usize),
) {
    let parts = tile.columns() / resident.columns;
    if parts == blocks {
        return write_part(e, frame, tile, (resident, number));
    }
    when(e, below(e, block(e, GpuDim::X), e.int(parts)), |e| {
        write_part(e, frame, tile, (resident, number));
    });
}

fn write_part<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    tile: &Tile<'c>,
    (resident, number): (Resident, usize),
) {
    let part = block(e, GpuDim::X);
    let first_row = e.times(block(e, GpuDim::Y), resident.rows());
    let block = Block::new(e, frame, tile, resident, (part, first_row));
    block.hold(e, number);
    if resident.thread_rows == 1 {
        return block.compute(e);
    }
    let second = e.add(first_row, e.int(resident.single_rows()));
    e.if_else(
        below(e, second, block.writer.total),
        |e| block.with_rows(e, resident.thread_rows).compute(e),
        |e| block.compute(e),
    );
}

/// A block of a tile whose weights stay.
struct Block<'f, 'c> {
    writer: Writer<'f, 'f, 'c>,
    resident: Resident,
    part: Val<'c>,
    /// The row that a thread has in the tile, if each has one, and its column.
    place: [Val<'c>; 2],
}

impl<'f, 'c> Block<'f, 'c> {
    /// A thread has one row.
    fn new(
        e: &Emitter<'c>,
        frame: &'f Frame<'f, 'c>,
        tile: &'f Tile<'c>,
        resident: Resident,
        (part, first_row): (Val<'c>, Val<'c>),
    ) -> Block<'f, 'c> {
        let thread = thread(e);
        let (warp, lane) = divide(e, thread, WARP);
        let (columns, rows) = resident.of_warp();
        let (down, across) = divide(e, warp, resident.columns / columns);
        let (row, column) = divide(e, lane, columns);
        let column = e.add(e.times(across, columns), column);
        let row = e.add(e.times(down, rows), row);
        let first = [first_row, e.times(part, resident.columns)];
        let place = [row, column];
        let size = Size {
            unit: Unit::Lanes,
            rows: 1,
            columns: 1,
            depth: resident.terms,
            warps: WARPS,
            stages: STAGES,
        };
        let threads = [thread, warp, lane];
        Block {
            writer: Writer::new(e, (frame, tile), size, threads, first, place),
            resident,
            part,
            place,
        }
    }

    /// The same block with `rows` consecutive rows per thread.
    fn with_rows(&self, e: &Emitter<'c>, rows: i64) -> Block<'f, 'c> {
        let first_row = self.writer.first_row;
        let [row, column] = self.place;
        let row = e.times(row, rows);
        let size = Size {
            rows,
            ..self.writer.size
        };
        let writer = Writer {
            size,
            own_row: e.add(first_row, row),
            in_use: Cell::new(None),
            group: None,
            ..self.writer
        };
        Block {
            writer,
            place: [row, column],
            ..*self
        }
    }

    fn panels(&self) -> Vec<Panel<'_, 'f, 'c>> {
        let mut next = self.resident.held_at.unwrap_or(0) + HELD_BYTES;
        let chains = self.writer.tile.chains.iter();
        let panels = chains.map(|chain| {
            let from = next;
            next += self.resident.panel_bytes(chain);
            Panel {
                tile: &self.writer,
                chain,
                resident: self.resident,
                terms: terms_of(chain),
                from,
            }
        });
        panels.collect()
    }

    /// Begins to load the panels unless they are there; they come with the first terms of the rows. `number` is the kernel's.
    fn hold(&self, e: &Emitter<'c>, number: usize) {
        let s = memory(e, true);
        let at = self.resident.held_at.unwrap_or(0);
        let word = s.offset_by(self.writer.frame.shared(), at);
        // Never zero.
        let wanted = e.add(self.part, e.int(((number as i64) << 16) + 1));
        let held = s.load_u32(word);
        let is_other = e.b.cmpi(CmpiPredicate::Ne, held, wanted);
        when(e, is_other, |e| {
            // Everybody has looked.
            barrier(e);
            self.panels().iter().for_each(|panel| panel.load(e));
            when(e, below(e, self.writer.thread, e.int(1)), |e| {
                let wanted = e.b.trunci(wanted, e.i32);
                memory(e, true).store_elem(wanted, word, Elem::I32, Width::Scalar, None);
            });
        });
    }

    /// Multiplies its rows, and stores what is made of them.
    fn compute(&self, e: &Emitter<'c>) {
        let writer = &self.writer;
        let rows = writer.rows(e);
        let ring = Ring::new(e, writer, self.resident);
        let mut place = ring.begin(e);
        let chains = writer.tile.chains.iter();
        let starts: Vec<_> = chains.map(|chain| writer.starts(e, chain, &rows)).collect();
        let loaded = writer.loaded(e, &rows);
        let panels = self.panels();
        let sums = panels.iter().zip(&starts).map(|(panel, starts)| {
            let sums;
            (sums, place) = panel.multiply(e, &ring, place, self.place, starts);
            sums
        });
        let sums: Vec<_> = sums.collect();
        writer.go_on(e, &rows, &sums, &loaded);
    }
}

/// What a block has of the weights of a sum.
struct Panel<'a, 'f, 'c> {
    tile: &'a Writer<'f, 'f, 'c>,
    chain: &'a Chain<'c>,
    resident: Resident,
    terms: i64,
    /// Where the panel begins in the block's shared memory.
    from: i64,
}

impl<'c> Panel<'_, '_, 'c> {
    fn gates(&self) -> i64 {
        self.chain.gates.len() as i64
    }

    /// Bytes from a column of the panel to the next.
    fn column_bytes(&self) -> i64 {
        (self.terms + PADDING) * 4
    }

    fn panel(&self, e: &Emitter<'c>) -> Val<'c> {
        memory(e, true).offset_by(self.tile.frame.shared(), self.from)
    }

    // The panel.

    fn load(&self, e: &Emitter<'c>) {
        let columns = self.resident.columns;
        let mut before = 0;
        for segment in &self.chain.segments {
            let (base, first, [k_stride, column_stride]) = self.tile.weight(e, segment);
            for (gate, offset) in self.chain.gates.iter().enumerate() {
                let column = e.add(self.tile.first_column, e.int(*offset));
                let base = e.offset_by(base, first * 4);
                let base = e.offset(base, e.times(column, column_stride * 4));
                let to = gate as i64 * columns * self.column_bytes() + before * 4;
                let to = memory(e, true).offset_by(self.panel(e), to);
                let count = e.int(segment.k * columns);
                e.for_loop(self.tile.thread, count, THREADS, &[], |e, at, _| {
                    let (k, column) = divide(e, at, columns);
                    let from = e.offset(base, e.times(k, k_stride * 4));
                    let from = e.offset(from, e.times(column, column_stride * 4));
                    let to = memory(e, true).offset(to, e.times(column, self.column_bytes()));
                    let to = memory(e, true).offset(to, e.times(k, 4));
                    copy_async(e, to, from, 4, Copied::All);
                    vec![]
                });
            }
            before += segment.k;
        }
    }

    // The products.

    /// Multiplies the rows that come through the ring; the sums, and where the next sum begins.
    fn multiply(
        &self,
        e: &Emitter<'c>,
        ring: &Ring<'c>,
        place: RingPlace<'c>,
        [row, column]: [Val<'c>; 2],
        starts: &[Val<'c>],
    ) -> (Sums<'c>, RingPlace<'c>) {
        let s = memory(e, true);
        let ahead = self.resident.stages - 1;
        let left = s.offset(ring.start, e.times(row, self.resident.row_bytes()));
        let right = s.offset(self.panel(e), e.times(column, self.column_bytes()));
        let steps = self.terms / self.resident.terms;
        let count = e.add(e.int(steps), self.tile.unknown_zero(e));
        let mut carried = vec![place.read, place.written];
        carried.extend(starts);
        let found = e.for_loop(e.int(0), count, 1, &carried, |e, step, carried| {
            let (read, written) = (carried[0], carried[1]);
            // Of this thread, then of all: what this step reads is there, and what the last step read
            // may be overwritten.
            wait_for_copies_but(e, ahead - 1);
            barrier(e);
            let next = e.add(step, e.int(place.step + ahead));
            ring.copy(e, next, written);
            commit_copies(e);
            let s = memory(e, true);
            let left = s.offset(left, read);
            let right = s.offset(right, e.times(step, self.resident.terms * 4));
            let mut after = vec![ring.behind(e, read), ring.behind(e, written)];
            after.extend(self.add_up(e, [left, right], &carried[2..]));
            after
        });
        let next = RingPlace {
            step: place.step + steps,
            read: found[0],
            written: found[1],
        };
        (found[2..].to_vec(), next)
    }

    /// Adds the products of a buffer's terms; sums are of each gate by rows.
    fn add_up(&self, e: &Emitter<'c>, [left, right]: [Val<'c>; 2], sums: &[Val<'c>]) -> Sums<'c> {
        let s = &memory(e, true);
        let ty = e.elem_type(Elem::F32, Width::Scalar);
        let mut sums = sums.to_vec();
        let thread_rows = self.tile.size.rows;
        for first in (0..self.resident.terms).step_by(WIDE as usize) {
            let rows = (0..thread_rows).map(|row| {
                let at = row * self.resident.row_bytes() + first * 4;
                load_floats(s, s.offset_by(left, at), WIDE)
            });
            let rows: Vec<_> = rows.collect();
            let gates = (0..self.gates()).map(|gate| {
                let at = gate * self.resident.columns * self.column_bytes() + first * 4;
                load_floats(s, s.offset_by(right, at), WIDE)
            });
            let gates: Vec<_> = gates.collect();
            for term in 0..WIDE as usize {
                for (sums, b) in sums.chunks_mut(thread_rows as usize).zip(&gates) {
                    for (sum, a) in sums.iter_mut().zip(&rows) {
                        *sum = e.b.value(Op::MathFma, &[a[term], b[term], *sum], ty);
                    }
                }
            }
        }
        sums
    }
}
