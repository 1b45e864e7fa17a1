//! A tile whose weights stay in shared memory over all levels of a flush.
//!
//! A block has some columns of every gate, and of these all terms: a *panel* of the weights. It loads the panel when it
//! has another one, or none, and says in the first word of its shared memory which one is there; so whoever runs a
//! block of another function in that memory sets the word to zero (`persistence`). Tiles of rows then come and go, a
//! few terms at a time, through a *ring* of buffers: while some are multiplied, those of the next steps are on their
//! way, also those of the next product of the sum.
//!
//! Where there are several sums, a block has a panel of each, and they come one after another through the same ring.
//!
//! A thread has one row and one column of every gate, a warp has at most 8 columns. Four terms are one load, on both sides, so
//! weights lie along the terms: of the lanes of a warp that is the same 16 bytes for each column and for each row, and all of
//! them are in different banks, by padding. Sums start from their start and take the products in the order of k, as in
//! every other tile.

use std::cell::Cell;

use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{CmpiPredicate, Op, Val};

use super::super::launches::{Chain, Tile};
use super::super::ops::{
    Copied, THREADS, WARP, WIDE, barrier, below, block, commit_copies, copy_async, divide, thread,
    wait_for_copies_but, when,
};
use super::super::site::{Frame, memory};
use super::copies::guarded;
use super::{STAGES, Size, Sums, TileRow, Unit, WARPS, Writer, load_floats};
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

    /// Rows of a tile.
    pub fn rows(self) -> i64 {
        WARPS * WARP / self.columns
    }

    fn row_bytes(self) -> i64 {
        (self.terms + PADDING) * 4
    }

    fn stage_bytes(self) -> i64 {
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
    let thread = thread(e);
    let (warp, lane) = divide(e, thread, WARP);
    let (columns, rows) = resident.of_warp();
    let (down, across) = divide(e, warp, resident.columns / columns);
    let (row, column) = divide(e, lane, columns);
    let column = e.add(e.times(across, columns), column);
    let in_tile = e.add(e.times(down, rows), row);
    let total = e.times(frame.rows, tile.matrix_rows());
    let part = block(e, GpuDim::X);
    let first_row = e.times(block(e, GpuDim::Y), resident.rows());
    let first_column = e.times(part, resident.columns);
    let writer = Writer {
        frame,
        tile,
        size: Size {
            unit: Unit::Lanes,
            rows: 1,
            columns: 1,
            depth: resident.terms,
            warps: WARPS,
            stages: STAGES,
        },
        thread,
        warp,
        lane,
        first_row,
        first_column,
        own_row: e.add(first_row, in_tile),
        own_column: e.add(first_column, column),
        in_use: Cell::new(None),
        total,
        last: e.sub(total, e.int(1)),
    };
    let mut next = resident.held_at.unwrap_or(0) + HELD_BYTES;
    let panels = tile.chains.iter().map(|chain| {
        let from = next;
        next += resident.panel_bytes(chain);
        (chain, from)
    });
    let panels: Vec<_> = panels.collect();
    let panels = panels.into_iter().map(|(chain, from)| Panel {
        tile: &writer,
        chain,
        resident,
        terms: terms_of(chain),
        from,
        ring_from: if resident.held_at.is_some() { 0 } else { next },
    });
    let panels: Vec<_> = panels.collect();
    hold(e, &writer, &panels, (part, number), resident);
    let rows = writer.rows(e);
    let sums = panels.iter().enumerate().map(|(index, panel)| {
        if index > 0 {
            // What the sum before read of the ring is overwritten.
            barrier(e);
        }
        let ring = panel.ring(e);
        panel.begin(e, &ring);
        let starts = writer.starts(e, panel.chain, &rows);
        panel.multiply(e, &ring, [in_tile, column], &starts)
    });
    let sums: Vec<_> = sums.collect();
    writer.go_on(e, &rows, &sums);
}

/// Begins to load the panels of a part of the columns unless they are there; they come with the first terms of the rows.
fn hold<'c>(
    e: &Emitter<'c>,
    writer: &Writer<'_, '_, 'c>,
    panels: &[Panel<'_, '_, 'c>],
    (part, number): (Val<'c>, usize),
    resident: Resident,
) {
    let s = memory(e, true);
    let word = s.offset_by(writer.frame.shared(), resident.held_at.unwrap_or(0));
    // Never zero.
    let wanted = e.add(part, e.int(((number as i64) << 16) + 1));
    let held = s.load_u32(word);
    let is_other = e.b.cmpi(CmpiPredicate::Ne, held, wanted);
    when(e, is_other, |e| {
        // Everybody has looked.
        barrier(e);
        panels.iter().for_each(|panel| panel.load(e));
        when(e, below(e, writer.thread, e.int(1)), |e| {
            let wanted = e.b.trunci(wanted, e.i32);
            memory(e, true).store_elem(wanted, word, Elem::I32, Width::Scalar, None);
        });
    });
}

/// What a block has of the weights of a sum, and its rows.
struct Panel<'a, 'f, 'c> {
    tile: &'a Writer<'f, 'f, 'c>,
    chain: &'a Chain<'c>,
    resident: Resident,
    terms: i64,
    /// Where the panel begins in the block's shared memory, and where the ring does that all sums share.
    from: i64,
    ring_from: i64,
}

/// Four terms of a row that a thread copies in each step.
struct Piece<'c> {
    /// Of each product, where those of its first term would be if it were the sum's first.
    from: Vec<Val<'c>>,
    /// Where they go in the first buffer.
    to: Val<'c>,
    valid: Option<Val<'c>>,
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

    fn ring_start(&self, e: &Emitter<'c>) -> Val<'c> {
        memory(e, true).offset_by(self.tile.frame.shared(), self.ring_from)
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

    // The rows.

    /// What a thread copies.
    fn ring(&self, e: &Emitter<'c>) -> Vec<Piece<'c>> {
        let per_row = self.resident.terms / WIDE;
        let count = self.resident.rows() * per_row;
        let start = self.ring_start(e);
        let firsts = (0..count).step_by(THREADS as usize);
        let piece = |first: i64| {
            let number = e.add(self.tile.thread, e.int(first));
            let is_whole = first + THREADS <= count;
            let valid = (!is_whole).then(|| below(e, number, e.int(count)));
            let number = match is_whole {
                true => number,
                false => e.min(number, e.int(count - 1)),
            };
            let (row, four) = divide(e, number, per_row);
            let to = e.add(
                e.times(row, self.resident.row_bytes()),
                e.times(four, WIDE * 4),
            );
            let row = self.tile.row(e, e.add(self.tile.first_row, row));
            Piece {
                from: self.rows_of(e, &row, four),
                to: memory(e, true).offset(start, to),
                valid,
            }
        };
        firsts.map(piece).collect()
    }

    fn rows_of(&self, e: &Emitter<'c>, row: &TileRow<'c>, four: Val<'c>) -> Vec<Val<'c>> {
        let mut before = 0;
        let segments = self.chain.segments.iter();
        let address = segments.map(|segment| {
            let at = self.tile.left_row(e, segment, row);
            let at = e.offset_by(at, -4 * before);
            before += segment.k;
            e.offset(at, e.times(four, WIDE * 4))
        });
        address.collect()
    }

    /// Copies the terms of a step to the buffer at so many bytes.
    fn copy(&self, e: &Emitter<'c>, ring: &[Piece<'c>], step: Val<'c>, buffer: Val<'c>) {
        let terms = self.resident.terms;
        for piece in ring {
            guarded(e, piece.valid, |e| {
                let mut from = piece.from[0];
                let mut before = 0;
                for (segment, next) in self.chain.segments.iter().zip(&piece.from[1..]) {
                    before += segment.k;
                    let is_before = below(e, step, e.int(before / terms));
                    from = e.select(is_before, from, *next);
                }
                let from = e.offset(from, e.times(step, terms * 4));
                let to = memory(e, true).offset(piece.to, buffer);
                copy_async(e, to, from, WIDE * 4, Copied::All);
            });
        }
    }

    fn steps(&self) -> i64 {
        self.terms / self.resident.terms
    }

    /// Begins the copies of all steps that there are buffers for but one.
    fn begin(&self, e: &Emitter<'c>, ring: &[Piece<'c>]) {
        for step in 0..self.resident.stages - 1 {
            if step < self.steps() {
                let buffer = e.int(step * self.resident.stage_bytes());
                self.copy(e, ring, e.int(step), buffer);
            }
            commit_copies(e);
        }
    }

    /// The buffer behind one, in bytes.
    fn next_buffer(&self, e: &Emitter<'c>, buffer: Val<'c>) -> Val<'c> {
        let bytes = self.resident.stage_bytes();
        let next = e.add(buffer, e.int(bytes));
        let is_there = below(e, next, e.int(self.resident.stages * bytes));
        e.select(is_there, next, e.int(0))
    }

    fn multiply(
        &self,
        e: &Emitter<'c>,
        ring: &[Piece<'c>],
        [row, column]: [Val<'c>; 2],
        starts: &[Val<'c>],
    ) -> Sums<'c> {
        let s = memory(e, true);
        let ahead = self.resident.stages - 1;
        let left = s.offset(self.ring_start(e), e.times(row, self.resident.row_bytes()));
        let right = s.offset(self.panel(e), e.times(column, self.column_bytes()));
        let steps = e.add(e.int(self.steps()), self.tile.unknown_zero(e));
        let mut carried = vec![e.int(0), e.int(ahead * self.resident.stage_bytes())];
        carried.extend(starts);
        let found = e.for_loop(e.int(0), steps, 1, &carried, |e, step, carried| {
            let (read, written) = (carried[0], carried[1]);
            // Of this thread, then of all: what this step reads is there, and what the last step read
            // may be overwritten.
            wait_for_copies_but(e, ahead - 1);
            barrier(e);
            let next = e.add(step, e.int(ahead));
            when(e, below(e, next, steps), |e| {
                self.copy(e, ring, next, written);
            });
            commit_copies(e);
            let s = memory(e, true);
            let left = s.offset(left, read);
            let right = s.offset(right, e.times(step, self.resident.terms * 4));
            let mut after = vec![self.next_buffer(e, read), self.next_buffer(e, written)];
            after.extend(self.add_up(e, [left, right], &carried[2..]));
            after
        });
        found[2..].to_vec()
    }

    /// Adds the products of a buffer's terms.
    fn add_up(&self, e: &Emitter<'c>, [left, right]: [Val<'c>; 2], sums: &[Val<'c>]) -> Sums<'c> {
        let s = &memory(e, true);
        let ty = e.elem_type(Elem::F32, Width::Scalar);
        let mut sums = sums.to_vec();
        for first in (0..self.resident.terms).step_by(WIDE as usize) {
            let a = load_floats(s, s.offset_by(left, first * 4), WIDE);
            let gates = (0..self.gates()).map(|gate| {
                let at = gate * self.resident.columns * self.column_bytes() + first * 4;
                load_floats(s, s.offset_by(right, at), WIDE)
            });
            let gates: Vec<_> = gates.collect();
            for term in 0..WIDE as usize {
                for (sum, b) in sums.iter_mut().zip(&gates) {
                    *sum = e.b.value(Op::MathFma, &[a[term], b[term], *sum], ty);
                }
            }
        }
        sums
    }
}
