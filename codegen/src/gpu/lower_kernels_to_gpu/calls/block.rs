//! What the threads of a block share: tiles of numbers in shared memory, and products of them.
//!
//! A tile has a product's `k` in one dim and its rows or columns in the other. Which of the two are
//! neighbours in shared memory is as in the device's memory, so that four of them can be one copy.
//!
//! In `f32`, threads are in eight groups of rows by sixteen of columns, and each adds up its own sums, one
//! multiply-add for each k in order. On tensor cores warps multiply ([`warps`]).

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;

use super::super::ops::{THREADS, WARP, divide, thread};
use super::super::site::memory;
use super::super::tile::load_floats;
use super::warps;
use crate::emit::{Emitter, Width};

const ROW_GROUPS: i64 = 8;
const COLUMN_GROUPS: i64 = 16;

/// Floats behind each row of a tile: lanes then read from different banks.
const PADDING: i64 = 4;
/// The same where tensor cores read pairs of neighbouring k.
const PAIR_PADDING: i64 = 8;

/// Multiply-adds of one sum that are written one after another; tiles have a multiple of them.
const UNROLL: i64 = 4;

/// Where a thread is.
#[derive(Clone, Copy)]
pub struct ThreadPlace<'c> {
    pub thread: Val<'c>,
    pub warp: Val<'c>,
    pub lane: Val<'c>,
    /// The start of the block's shared memory.
    shared: Val<'c>,
}

impl<'c> ThreadPlace<'c> {
    pub fn new(e: &Emitter<'c>, shared: Val<'c>) -> Self {
        let thread = thread(e);
        let (warp, lane) = divide(e, thread, WARP);
        ThreadPlace {
            thread,
            warp,
            lane,
            shared,
        }
    }

    /// An address in shared memory.
    pub fn at(&self, e: &Emitter<'c>, bytes: i64) -> Val<'c> {
        memory(e, true).offset_by(self.shared, bytes)
    }
}

/// Which sums a thread has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cells {
    /// On tensor cores: what factors are rounded to, and how many warps lie side by side.
    pub tensor: Option<(Precision, i64)>,
    /// Rows and columns of a thread.
    pub rows: i64,
    pub columns: i64,
    /// Whether a thread's columns lie apart rather than next to each other, that lanes read from
    /// different banks where neighbours are along k.
    spread: bool,
}

impl Cells {
    /// For a block of 16, 32 or 64 rows and columns. On tensor cores there may be more rows.
    pub fn of(precision: Precision, block_rows: i64, block_columns: i64) -> Cells {
        if precision == Precision::F32 {
            return Cells {
                tensor: None,
                rows: block_rows / ROW_GROUPS,
                columns: block_columns / COLUMN_GROUPS,
                spread: false,
            };
        }
        // A warp has at least 16 rows and 8 columns, of which a thread has two and two.
        let down = if block_rows < 32 && block_columns >= 32 {
            1
        } else {
            2
        };
        let across = THREADS / WARP / down;
        Cells {
            tensor: Some((precision, across)),
            rows: (block_rows / down / 8).max(2),
            columns: block_columns / across / 4,
            spread: false,
        }
    }

    /// On tensor cores, where each warp has 16 rows of its own, and all columns.
    pub fn of_warps(precision: Precision, block_columns: i64) -> Cells {
        Cells {
            tensor: Some((precision, 1)),
            rows: 2,
            columns: block_columns / 4,
            spread: false,
        }
    }

    /// The same for right sides whose neighbours are along k, or are not.
    pub fn spread(self, spread: bool) -> Cells {
        Cells { spread, ..self }
    }

    pub fn count(&self) -> i64 {
        self.rows * self.columns
    }

    /// Rows of a block.
    pub fn block_rows(&self) -> i64 {
        match self.tensor {
            None => ROW_GROUPS * self.rows,
            Some((_, across)) => THREADS / WARP / across * self.rows * 8,
        }
    }

    pub fn block_columns(&self) -> i64 {
        match self.tensor {
            None => COLUMN_GROUPS * self.columns,
            Some((_, across)) => across * self.columns * 4,
        }
    }

    /// How many k one step of the multiplication takes; tiles have a multiple of them.
    pub fn step(&self) -> i64 {
        match self.tensor {
            None => UNROLL,
            // Of either precision, so that tiles are the same.
            Some(_) => 16,
        }
    }

    /// The row, in the block, of the thread's row of this number.
    pub fn row<'c>(&self, e: &Emitter<'c>, place: &ThreadPlace<'c>, number: i64) -> Val<'c> {
        match self.tensor {
            None => {
                let (group, _) = divide(e, place.thread, COLUMN_GROUPS);
                e.add(e.times(group, self.rows), e.int(number))
            }
            Some((_, across)) => {
                let (down, _) = divide(e, place.warp, across);
                let (group, _) = divide(e, place.lane, 4);
                let row = e.add(e.times(down, self.rows * 8), group);
                e.add(row, e.int(number * 8))
            }
        }
    }

    /// The column, in the block, of the thread's column of this number.
    pub fn column<'c>(&self, e: &Emitter<'c>, place: &ThreadPlace<'c>, number: i64) -> Val<'c> {
        match self.tensor {
            None => {
                let (_, group) = divide(e, place.thread, COLUMN_GROUPS);
                match self.spread {
                    true => e.add(group, e.int(number * COLUMN_GROUPS)),
                    false => e.add(e.times(group, self.columns), e.int(number)),
                }
            }
            Some((_, across)) => {
                let (_, across) = divide(e, place.warp, across);
                let (_, pair) = divide(e, place.lane, 4);
                let first = e.add(e.times(across, self.columns * 4), e.times(pair, 2));
                e.add(first, e.int(number / 2 * 8 + number % 2))
            }
        }
    }

    /// How many of a thread's columns are neighbours.
    pub fn neighbours(&self) -> i64 {
        match self.tensor {
            None if self.spread => 1,
            None => self.columns,
            Some(_) => 2,
        }
    }

    /// A tile for these cells, from a byte on.
    pub fn tile(&self, from: i64, (depth, width): (i64, i64), along_k: bool) -> Shared {
        let padding = match (self.tensor, along_k) {
            (Some(_), true) => PAIR_PADDING,
            _ => PADDING,
        };
        Shared {
            from,
            depth,
            width,
            along_k,
            padding,
        }
    }
}

/// A tile in shared memory, from a byte on: `[width][depth]` where neighbours are along k, and
/// `[depth][width]` elsewhere.
#[derive(Clone, Copy)]
pub struct Shared {
    pub from: i64,
    pub depth: i64,
    pub width: i64,
    pub along_k: bool,
    padding: i64,
}

impl Shared {
    /// How many are neighbours, and how many times.
    pub fn inner_and_outer(&self) -> (i64, i64) {
        match self.along_k {
            true => (self.depth, self.width),
            false => (self.width, self.depth),
        }
    }

    pub fn row_bytes(&self) -> i64 {
        (self.inner_and_outer().0 + self.padding) * 4
    }

    pub fn bytes(&self) -> i64 {
        self.inner_and_outer().1 * self.row_bytes()
    }

    pub fn end(&self) -> i64 {
        self.from + self.bytes()
    }

    /// Bytes from one k to the next, and from one row or column.
    pub fn strides(&self) -> (i64, i64) {
        match self.along_k {
            true => (4, self.row_bytes()),
            false => (self.row_bytes(), 4),
        }
    }

    /// The address of an element.
    pub fn address<'c>(
        &self,
        e: &Emitter<'c>,
        place: &ThreadPlace<'c>,
        k: Val<'c>,
        at: Val<'c>,
    ) -> Val<'c> {
        let e = &memory(e, true);
        let (of_k, of_other) = self.strides();
        let start = e.offset(place.at(e, self.from), e.times(at, of_other));
        e.offset(start, e.times(k, of_k))
    }
}

/// Adds `Σ_k left[k][row] · right[k][column]` over the depth of the tiles to the sums of a thread's
/// cells, row by row. Of several buffers of a tile, each lies behind the one before.
pub fn multiply<'c>(
    e: &Emitter<'c>,
    place: &ThreadPlace<'c>,
    cells: Cells,
    (left, right): (Shared, Shared),
    buffer: Val<'c>,
    sums: &[Val<'c>],
) -> Vec<Val<'c>> {
    match cells.tensor {
        None => by_lanes(e, place, cells, (left, right), buffer, sums),
        Some((precision, _)) => {
            warps::multiply(e, place, (cells, precision), (left, right), buffer, sums)
        }
    }
}

fn by_lanes<'c>(
    e: &Emitter<'c>,
    place: &ThreadPlace<'c>,
    cells: Cells,
    (left, right): (Shared, Shared),
    buffer: Val<'c>,
    sums: &[Val<'c>],
) -> Vec<Val<'c>> {
    let s = &memory(e, true);
    let zero = e.int(0);
    let (row, column) = (cells.row(e, place, 0), cells.column(e, place, 0));
    let apart = if cells.spread { COLUMN_GROUPS } else { 1 };
    let start = |tile: &Shared, at: Val<'c>| {
        let start = tile.address(e, place, zero, at);
        s.offset(start, e.times(buffer, tile.bytes()))
    };
    let (of_rows, of_columns) = (start(&left, row), start(&right, column));
    e.for_loop(zero, e.int(left.depth), UNROLL, sums, |e, k, sums| {
        let e = &memory(e, true);
        let a = some_k(e, &left, (of_rows, 1), k, cells.rows);
        let b = some_k(e, &right, (of_columns, apart), k, cells.columns);
        let mut sums = sums.to_vec();
        for (a, b) in a.iter().zip(&b) {
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
            for (sum, (a, b)) in sums.iter_mut().zip(pairs) {
                *sum = e.b.fma(a, b, *sum);
            }
        }
        sums
    })
}

/// The next [`UNROLL`] k of some rows or columns of a tile, by k. Where they are not neighbours, they
/// are `apart`.
fn some_k<'c>(
    e: &Emitter<'c>,
    tile: &Shared,
    (from, apart): (Val<'c>, i64),
    k: Val<'c>,
    count: i64,
) -> Vec<Vec<Val<'c>>> {
    let (of_k, of_other) = tile.strides();
    let from = e.offset(from, e.times(k, of_k));
    if !tile.along_k {
        return (0..UNROLL)
            .map(|k| load_floats(e, e.offset_by(from, k * of_k), count))
            .collect();
    }
    let by_other: Vec<_> = (0..count)
        .map(|at| load_floats(e, e.offset_by(from, at * apart * of_other), UNROLL))
        .collect();
    (0..UNROLL as usize)
        .map(|k| by_other.iter().map(|of_other| of_other[k]).collect())
        .collect()
}

/// Zeros for sums.
pub fn zeros<'c>(e: &Emitter<'c>, count: i64) -> Vec<Val<'c>> {
    let zero = e.bits(0, Elem::F32, Width::Scalar);
    vec![zero; count as usize]
}
