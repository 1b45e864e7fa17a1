//! What threads bring to a tile in shared memory: the values of a node at an index of two variables.
//!
//! Elements that lie in the device's memory are copied there asynchronously (`cp.async`), past the
//! registers, four neighbours or one at a time; what lies behind an end is filled with zeros by the copy
//! itself. Others are computed and stored.

use std::ops::Range;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::graph::NodeId;

use super::super::ops::{Copied, THREADS, below, both, copy_async, divide, when};
use super::super::site::memory;
use super::block::{Shared, ThreadPlace};
use super::eval::Call;
use super::side::{Side, Way};
use crate::emit::{Emitter, Width};

/// Elements of a tile that a thread computes before it puts any into shared memory: more would be on their
/// way at once, and take more registers.
const AT_ONCE: usize = 8;

/// A dim of a tile: its entries below `end` count.
#[derive(Clone, Copy)]
pub struct Span<'c> {
    pub var: Var,
    pub end: Val<'c>,
    /// Whether all entries of all tiles do.
    pub full: bool,
}

/// A factor's values, and the tile that they belong in.
pub struct Source<'c> {
    pub tile: Shared,
    pub side: Side,
    pub node: NodeId,
    pub at: Vec<Affine>,
    pub k: Span<'c>,
    pub other: Span<'c>,
}

/// What a thread computed of a tile: values, and where in the tile they belong.
pub type Loaded<'c> = Vec<(Val<'c>, [Val<'c>; 2])>;

/// Where a tile begins in its dims, and its buffer.
#[derive(Clone, Copy)]
pub struct Begins<'c> {
    pub k: Val<'c>,
    pub other: Val<'c>,
    pub buffer: Val<'c>,
}

impl<'c> Source<'c> {
    /// Begins the copies of a tile, or computes it. Before it is read, copies are to be waited for, and
    /// the other threads.
    pub fn bring(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &ThreadPlace<'c>,
        begins: Begins<'c>,
    ) {
        match self.side.way {
            Way::Copied(width) => call.scope(|call| self.copy(e, call, place, begins, width)),
            Way::Computed => {
                for first in (0..self.loads()).step_by(AT_ONCE) {
                    let some = first..self.loads().min(first + AT_ONCE as i64);
                    let loaded = self.compute(e, call, place, begins, some);
                    self.put(e, place, &loaded, begins.buffer);
                }
            }
        }
    }

    // Copies.

    /// Threads have neighbouring pieces of a row of the tile, and then of the next rows.
    fn copy(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &ThreadPlace<'c>,
        begins: Begins<'c>,
        width: i64,
    ) {
        let tile = self.tile;
        let (inner, outer) = tile.inner_and_outer();
        let pieces = (inner + width - 1) / width;
        // Of a power of two, so that a thread has the same piece of every row that it has.
        let of_row = (pieces as u64).next_power_of_two().min(THREADS as u64) as i64;
        let rows = THREADS / of_row;
        let (row, piece) = divide(e, place.thread, of_row);
        let piece = e.times(piece, width);
        let to_tile = |inner: Val<'c>, outer: Val<'c>| match tile.along_k {
            true => (inner, outer),
            false => (outer, inner),
        };
        let (k, other) = to_tile(piece, row);
        let to = tile.address(e, place, k, other);
        let to = memory(e, true).offset(to, e.times(begins.buffer, tile.bytes()));
        let (first_inner, first_outer) = match tile.along_k {
            true => (begins.k, begins.other),
            false => (begins.other, begins.k),
        };
        let (spans_inner, spans_outer) = match tile.along_k {
            true => (self.k, self.other),
            false => (self.other, self.k),
        };
        let at_inner = e.add(first_inner, piece);
        let at_outer = e.add(first_outer, row);
        call.set(spans_inner.var, at_inner);
        call.set(spans_outer.var, at_outer);
        let copied = call.copied(e, self.node, &self.at, spans_outer.var);
        let is_whole = of_row == pieces && outer % rows == 0;
        for number in 0..(outer + rows - 1) / rows {
            let at_outer = e.add(at_outer, e.int(number * rows));
            let from = e.offset(copied.address, e.times(copied.stride, number * rows));
            let valid = Valid {
                outer: (!spans_outer.full).then(|| below(e, at_outer, spans_outer.end)),
                inner: (!spans_inner.full).then_some((at_inner, spans_inner.end)),
                width,
            };
            let to = memory(e, true).offset_by(to, number * rows * tile.row_bytes());
            let (bytes, from) = valid.bytes(e, from, copied.base);
            let begin = |e: &Emitter<'c>| copy_async(e, to, from, 4 * width, bytes);
            if is_whole {
                begin(e);
                continue;
            }
            let in_row = below(e, piece, e.int(inner));
            let row = e.add(row, e.int(number * rows));
            when(e, in_row, |e| when(e, below(e, row, e.int(outer)), begin));
        }
    }

    // What is computed.

    /// How many elements a thread has; every thread has as many as all others.
    fn loads(&self) -> i64 {
        self.tile.depth * self.tile.width / THREADS
    }

    /// Computes the thread's part of a tile.
    pub fn load(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &ThreadPlace<'c>,
        begins: Begins<'c>,
    ) -> Loaded<'c> {
        self.compute(e, call, place, begins, 0..self.loads())
    }

    /// Entries of k behind the end are zeros; of the other dim they are as the last.
    fn compute(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        place: &ThreadPlace<'c>,
        begins: Begins<'c>,
        which: Range<i64>,
    ) -> Loaded<'c> {
        let (inner, _) = self.tile.inner_and_outer();
        let one = e.int(1);
        let (last_k, last) = (e.sub(self.k.end, one), e.sub(self.other.end, one));
        let zero = e.bits(0, Elem::F32, Width::Scalar);
        which
            .map(|number| {
                let piece = e.add(place.thread, e.int(number * THREADS));
                let (row, in_row) = divide(e, piece, inner);
                let (in_k, in_other) = match self.tile.along_k {
                    true => (in_row, row),
                    false => (row, in_row),
                };
                let at_k = e.add(begins.k, in_k);
                let valid = below(e, at_k, self.k.end);
                let value = call.scope(|call| {
                    call.set(self.k.var, e.min(at_k, last_k));
                    call.set(self.other.var, e.min(e.add(begins.other, in_other), last));
                    call.value(e, self.node, &self.at)
                });
                (e.select(valid, value, zero), [in_k, in_other])
            })
            .collect()
    }

    /// Puts what was computed into the tile.
    pub fn put(
        &self,
        e: &Emitter<'c>,
        place: &ThreadPlace<'c>,
        loaded: &Loaded<'c>,
        buffer: Val<'c>,
    ) {
        let skip = e.times(buffer, self.tile.bytes());
        for (value, [k, other]) in loaded {
            let s = memory(e, true);
            let to = s.offset(self.tile.address(e, place, *k, *other), skip);
            s.store(*value, to, 4);
        }
    }
}

/// Which elements of a piece count.
struct Valid<'c> {
    /// Whether its row does, if not every row.
    outer: Option<Val<'c>>,
    /// Where in its row it begins, and where the row ends, if not behind every piece.
    inner: Option<(Val<'c>, Val<'c>)>,
    width: i64,
}

impl<'c> Valid<'c> {
    /// What is copied, and from where: from the base, where nothing is.
    fn bytes(&self, e: &Emitter<'c>, from: Val<'c>, base: Val<'c>) -> (Copied<'c>, Val<'c>) {
        let inner = self.inner.map(|(at, end)| below(e, at, end));
        let any = match (self.outer, inner) {
            (None, None) => return (Copied::All, from),
            (Some(outer), Some(inner)) => both(e, outer, inner),
            (Some(one), None) | (None, Some(one)) => one,
        };
        let from = e.select(any, from, base);
        let Some((at, end)) = self.inner.filter(|_| self.width > 1) else {
            return (Copied::If(any), from);
        };
        let some = e.min(e.sub(end, at), e.int(self.width));
        let bytes = e.select(any, e.times(some, 4), e.int(0));
        let bytes = e.b.trunci(bytes, e.i32);
        (Copied::Bytes(bytes), from)
    }
}
