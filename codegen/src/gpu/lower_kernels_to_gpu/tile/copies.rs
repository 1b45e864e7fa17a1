//! Copies of the next k of both sides to shared memory, while the last ones are multiplied.
//!
//! They are asynchronous (`cp.async`): the data goes past the registers, and a thread waits for its
//! own copies when it needs them, then at a barrier for those of others. Four neighbouring floats are
//! one copy of 16 bytes where rows and widths allow it, and each float one of 4 bytes elsewhere; of
//! weights that were rounded and put two in a word, words are copied. What lies behind the last k is
//! filled with zeros by the copy itself.

use cohort_dialects::builder::Val;

use super::super::launches::{Chain, Segment};
use super::super::ops::{Copied, WIDE, below, copy_async, divide, when};
use super::super::site::memory;
use super::{TileRow, Writer};
use crate::emit::Emitter;

/// What a thread copies of one step: elements of the left side, then of each gate's columns.
pub struct Copies<'a, 'w, 'f, 'c> {
    writer: &'a Writer<'w, 'f, 'c>,
    gates: i64,
    k: i64,
    left: Vec<Part<'c>>,
    right: Vec<Part<'c>>,
}

/// One element, or four neighbouring ones, that a thread copies.
struct Part<'c> {
    /// The address of its first one, of k = 0.
    base: Val<'c>,
    /// Which k of the step it has.
    k: Val<'c>,
    /// Bytes between neighbouring k.
    stride: i64,
    /// Four neighbouring ones: of k on the left, of columns on the right.
    wide: bool,
    /// Bytes from the start of a buffer of its side.
    to: Val<'c>,
    /// Whether the thread has it.
    valid: Option<Val<'c>>,
}

impl<'a, 'w, 'f, 'c> Copies<'a, 'w, 'f, 'c> {
    pub fn new(
        e: &Emitter<'c>,
        writer: &'a Writer<'w, 'f, 'c>,
        chain: &Chain<'c>,
        segment: &Segment,
    ) -> Self {
        let mut copies = Copies {
            writer,
            gates: chain.gates.len() as i64,
            k: segment.k,
            left: vec![],
            right: vec![],
        };
        copies.left = copies.left_parts(e, segment);
        for (number, gate) in chain.gates.iter().enumerate() {
            let parts = copies.right_parts(e, segment, number, *gate);
            copies.right.extend(parts);
        }
        copies
    }

    /// Begins the copies of a step to a buffer.
    pub fn begin(&self, e: &Emitter<'c>, step: Val<'c>, buffer: Val<'c>) {
        let (left, right) = self.writer.buffers(e, buffer, self.gates);
        let size = self.writer.size;
        for part in &self.left {
            let along_k = if part.wide { 4 } else { 1 };
            self.copy(e, part, (self.k, size.depth, along_k), step, left);
        }
        let per_word = size.per_word();
        let words = (self.k + per_word - 1) / per_word;
        for part in &self.right {
            self.copy(e, part, (words, size.depth / per_word, 1), step, right);
        }
    }

    /// A part of a side that has so many k or words of them, in all, a step and a part.
    fn copy(
        &self,
        e: &Emitter<'c>,
        part: &Part<'c>,
        (all, depth, along): (i64, i64, i64),
        step: Val<'c>,
        to: Val<'c>,
    ) {
        let bytes = if part.wide { 16 } else { 4 };
        let mut k = e.add(e.times(step, depth), part.k);
        let mut copied = Copied::All;
        if all % depth != 0 {
            copied = Copied::If(below(e, k, e.int(all)));
            k = e.min(k, e.int(all - along));
        }
        guarded(e, part.valid, |e| {
            let from = e.offset(part.base, e.times(k, part.stride));
            let to = memory(e, true).offset(to, part.to);
            copy_async(e, to, from, bytes, copied);
        });
    }

    /// Deals `count` parts to the threads: the number of each, and whether there is one.
    fn deal(&self, e: &Emitter<'c>, count: i64) -> Vec<(Val<'c>, Option<Val<'c>>)> {
        let threads = self.writer.size.threads();
        (0..count)
            .step_by(threads as usize)
            .map(|first| {
                let part = e.add(self.writer.thread, e.int(first));
                if first + threads <= count {
                    return (part, None);
                }
                let valid = below(e, part, e.int(count));
                (e.min(part, e.int(count - 1)), Some(valid))
            })
            .collect()
    }

    fn left_parts(&self, e: &Emitter<'c>, segment: &Segment) -> Vec<Part<'c>> {
        let size = self.writer.size;
        let width = segment.copies[0];
        let wide = width == WIDE;
        let parts = self.deal(e, size.block_rows() * size.depth / width);
        parts
            .into_iter()
            .map(|(part, valid)| {
                let (row, k) = divide(e, part, size.depth / width);
                let k = e.times(k, width);
                let to = e.add(e.times(row, size.left_stride() * 4), e.times(k, 4));
                let row = self.writer.row(e, e.add(self.writer.first_row, row));
                Part {
                    base: self.writer.left_row(e, segment, &row),
                    k,
                    stride: 4,
                    wide,
                    to,
                    valid,
                }
            })
            .collect()
    }

    fn right_parts(
        &self,
        e: &Emitter<'c>,
        segment: &Segment,
        number: usize,
        offset: i64,
    ) -> Vec<Part<'c>> {
        let writer = self.writer;
        let size = writer.size;
        let gate = number as i64;
        let columns = writer.tile.columns();
        let (base, first, [k_stride, column_stride]) = self.writer.weight(e, segment);
        let width = segment.copies[number + 1];
        let wide = width == WIDE;
        let base = e.offset_by(base, (first + offset * column_stride) * 4);
        let parts = self.deal(
            e,
            size.depth / size.per_word() * size.block_columns() / width,
        );
        parts
            .into_iter()
            .map(|(part, valid)| {
                let (k, column) = divide(e, part, size.block_columns() / width);
                let column = e.times(column, width);
                let of_gate = e.add(e.int(gate * size.block_columns()), column);
                let to = e.add(e.times(k, size.right_stride(self.gates)), of_gate);
                let column = e.add(writer.first_column, column);
                let column = e.min(column, e.int(columns - width));
                Part {
                    base: e.offset(base, e.times(column, column_stride * 4)),
                    k,
                    stride: k_stride * 4,
                    wide,
                    to: e.times(to, 4),
                    valid,
                }
            })
            .collect()
    }
}

impl<'c> Writer<'_, '_, 'c> {
    /// The address of a row of the left side.
    pub(super) fn left_row(
        &self,
        e: &Emitter<'c>,
        segment: &Segment,
        row: &TileRow<'c>,
    ) -> Val<'c> {
        let frame = self.frame;
        let base = frame.address(e, segment.left, Some(row.row)).at;
        let address = &segment.left_address;
        let mut base = e.offset_by(base, address.constant * 4);
        for (dim, stride) in &address.terms {
            if let Some(at) = row.outer[*dim].value {
                base = e.offset(base, e.times(at, stride * 4));
            }
        }
        base
    }

    /// Where a segment's weight is, and in words its first and from one k and one column to the next. One
    /// that was rounded is dense.
    pub(super) fn weight(&self, e: &Emitter<'c>, segment: &Segment) -> (Val<'c>, i64, [i64; 2]) {
        let frame = self.frame;
        if let Some(rounded) = &segment.rounded {
            return (frame.constant(rounded), 0, [segment.columns, 1]);
        }
        let address = &segment.right_address;
        let base = frame.address(e, segment.right, None).at;
        let strides = [0, 1].map(|dim| address.coefficient(dim));
        (base, address.constant, strides)
    }
}

/// Where a thread has what is to be done, if that is not so of all.
pub(super) fn guarded<'c>(
    e: &Emitter<'c>,
    valid: Option<Val<'c>>,
    body: impl FnOnce(&Emitter<'c>),
) {
    match valid {
        Some(valid) => when(e, valid, body),
        None => body(e),
    }
}
