//! What the threads of a block share: tiles of numbers in shared memory, and products of them.
//!
//! A tile of `k` by `columns` has a column's neighbours next to each other. Threads are in eight groups
//! of rows by sixteen of columns; each has some neighbouring rows and columns of the result.

use std::ops::Range;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;

use super::super::ops::{THREADS, below, divide, thread};
use super::super::site::memory;
use super::super::tile::load_floats;
use super::eval::Call;
use crate::calls::graph::{Index, NodeId, Var};
use crate::cpu::lower_kernels::emit::{Emitter, Width};

pub const ROW_GROUPS: i64 = 8;
pub const COLUMN_GROUPS: i64 = 16;

/// Floats behind each k's rows, so that neighbouring k lie in other banks.
const PADDING: i64 = 4;

/// Elements of a tile that a thread loads before it puts any into shared memory: more would be on their
/// way at once, and take more registers.
const AT_ONCE: usize = 8;

/// Multiply-adds of one sum that are written one after another; tiles have a multiple of them.
pub const UNROLL: i64 = 4;

/// Where a thread is.
#[derive(Clone, Copy)]
pub struct Place<'c> {
    pub thread: Val<'c>,
    pub row_group: Val<'c>,
    pub column_group: Val<'c>,
    /// The start of the block's shared memory.
    pub shared: Val<'c>,
}

impl<'c> Place<'c> {
    pub fn new(e: &Emitter<'c>, shared: Val<'c>) -> Self {
        let thread = thread(e);
        let (row_group, column_group) = divide(e, thread, COLUMN_GROUPS);
        Place {
            thread,
            row_group,
            column_group,
            shared,
        }
    }

    /// An address in shared memory.
    pub fn at(&self, e: &Emitter<'c>, bytes: i64) -> Val<'c> {
        memory(e, true).offset_by(self.shared, bytes)
    }
}

/// A tile in shared memory: `[depth][width]`, from a byte on.
#[derive(Clone, Copy)]
pub struct Shared {
    pub from: i64,
    pub depth: i64,
    pub width: i64,
}

impl Shared {
    pub fn row_bytes(&self) -> i64 {
        (self.width + PADDING) * 4
    }

    pub fn bytes(&self) -> i64 {
        self.depth * self.row_bytes()
    }

    pub fn end(&self) -> i64 {
        self.from + self.bytes()
    }

    /// The address of an element.
    pub fn address<'c>(
        &self,
        e: &Emitter<'c>,
        place: &Place<'c>,
        k: Val<'c>,
        at: Val<'c>,
    ) -> Val<'c> {
        let e = &memory(e, true);
        let row = e.offset(place.at(e, self.from), e.times(k, self.row_bytes()));
        e.offset(row, e.times(at, 4))
    }
}

/// A dim of a tile: entries from `first` on, of which those below `end` count.
#[derive(Clone, Copy)]
pub struct Span<'c> {
    pub var: Var,
    pub first: Val<'c>,
    pub end: Val<'c>,
}

/// What threads bring to a tile: the values of a node at an index of two variables.
pub struct Source<'a, 'c> {
    pub tile: Shared,
    pub node: NodeId,
    pub at: &'a [Index],
    pub k: Span<'c>,
    pub other: Span<'c>,
}

/// A thread's part of a tile: values, and where in the tile they belong.
pub type Loaded<'c> = Vec<(Val<'c>, [Val<'c>; 2])>;

impl<'c> Source<'_, 'c> {
    /// Loads the thread's part of the tile that begins with a k. Entries of k behind the end are zeros;
    /// of the other dim they are as the last.
    pub fn load(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &Place<'c>,
        first_k: Val<'c>,
    ) -> Loaded<'c> {
        self.load_some(e, call, place, first_k, 0..self.loads())
    }

    /// How many elements a thread has; every thread has as many as all others.
    fn loads(&self) -> i64 {
        self.tile.depth * self.tile.width / THREADS
    }

    fn load_some(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &Place<'c>,
        first_k: Val<'c>,
        which: Range<i64>,
    ) -> Loaded<'c> {
        let Source {
            tile, at, k, other, ..
        } = *self;
        // Neighbouring threads take neighbours in memory.
        let along_k = call.gathers(self.node, at, k.var) < call.gathers(self.node, at, other.var);
        let one = e.int(1);
        let (last_k, last) = (e.sub(k.end, one), e.sub(other.end, one));
        let zero = e.bits(0, Elem::F32, Width::Scalar);
        which
            .map(|number| {
                let piece = e.add(place.thread, e.int(number * THREADS));
                let (in_k, in_other) = match along_k {
                    true => {
                        let (other, k) = divide(e, piece, tile.depth);
                        (k, other)
                    }
                    false => divide(e, piece, tile.width),
                };
                let at_k = e.add(first_k, in_k);
                let valid = below(e, at_k, k.end);
                let value = call.scope(|call| {
                    call.set(k.var, e.min(at_k, last_k));
                    call.set(other.var, e.min(e.add(other.first, in_other), last));
                    call.value(e, self.node, at)
                });
                (e.select(valid, value, zero), [in_k, in_other])
            })
            .collect()
    }

    /// Puts what was loaded into the tile.
    pub fn put(&self, e: &Emitter<'c>, place: &Place<'c>, loaded: &Loaded<'c>, buffer: Val<'c>) {
        let skip = e.times(buffer, self.tile.bytes());
        for (value, [k, other]) in loaded {
            let s = memory(e, true);
            let to = s.offset(self.tile.address(e, place, *k, *other), skip);
            s.store(*value, to, 4);
        }
    }

    /// Fills the tile from its first k on.
    pub fn fill(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, place: &Place<'c>) {
        for first in (0..self.loads()).step_by(AT_ONCE) {
            let some = first..self.loads().min(first + AT_ONCE as i64);
            let loaded = self.load_some(e, call, place, self.k.first, some);
            self.put(e, place, &loaded, e.int(0));
        }
    }
}

/// Adds `Σ_k left[k][row] · right[k][column]` over the first `count` k, a multiple of [`UNROLL`], to
/// the sums of a thread's rows and columns, row by row. Tiles of a later buffer lie behind the first.
pub fn multiply<'c>(
    e: &Emitter<'c>,
    place: &Place<'c>,
    (left, rows): (Shared, i64),
    (right, columns): (Shared, i64),
    (count, buffer): (Val<'c>, Val<'c>),
    sums: &[Val<'c>],
) -> Vec<Val<'c>> {
    let shared = memory(e, true);
    let of_rows = shared.offset(place.at(e, left.from), e.times(place.row_group, rows * 4));
    let of_rows = shared.offset(of_rows, e.times(buffer, left.bytes()));
    let of_columns = shared.offset(
        place.at(e, right.from),
        e.times(place.column_group, columns * 4),
    );
    let of_columns = shared.offset(of_columns, e.times(buffer, right.bytes()));
    e.for_loop(e.int(0), count, UNROLL, sums, |e, k, sums| {
        let e = &memory(e, true);
        let of_rows = e.offset(of_rows, e.times(k, left.row_bytes()));
        let of_columns = e.offset(of_columns, e.times(k, right.row_bytes()));
        let ty = e.elem_type(Elem::F32, Width::Scalar);
        let mut sums = sums.to_vec();
        for step in 0..UNROLL {
            let a = load_floats(e, e.offset_by(of_rows, step * left.row_bytes()), rows);
            let b = load_floats(
                e,
                e.offset_by(of_columns, step * right.row_bytes()),
                columns,
            );
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
            for (sum, (a, b)) in sums.iter_mut().zip(pairs) {
                *sum = e.b.value("math.fma", &[a, b, *sum], ty);
            }
        }
        sums
    })
}

/// `count` up to a multiple of [`UNROLL`].
pub fn whole_steps<'c>(e: &Emitter<'c>, count: Val<'c>) -> Val<'c> {
    e.and(e.add(count, e.int(UNROLL - 1)), -UNROLL)
}

/// Zeros for sums.
pub fn zeros<'c>(e: &Emitter<'c>, count: i64) -> Vec<Val<'c>> {
    let zero = e.bits(0, Elem::F32, Width::Scalar);
    vec![zero; count as usize]
}
