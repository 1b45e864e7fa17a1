//! Copies of the next k of both sides to shared memory, while the last ones are multiplied.
//!
//! They are asynchronous (`cp.async`): the data goes past the registers, and a thread waits for its
//! own copies when it needs them, then at a barrier for those of others. Four neighbouring floats, or eight bf16 of a row that
//! is kept so, are one copy of 16 bytes where rows and widths allow it, and each float one of 4 bytes elsewhere; of
//! weights that were rounded and put two in a word, words are copied. What lies behind the last k is
//! filled with zeros by the copy itself.

use cohort_dialects::builder::Val;
use cohort_passes::kernel::description::ConstantDescription;

use super::super::launches::{Chain, Segment};
use super::super::ops::{Copied, below, copy_async, divide, when};
use super::super::site::memory;
use super::{TileRow, Unit, Writer, warpgroup};
use crate::emit::Emitter;

/// What a thread copies of one step: elements of the left side, then of each gate's columns.
pub struct Copies<'a, 'w, 'f, 'c> {
    writer: &'a Writer<'w, 'f, 'c>,
    gates: i64,
    k: i64,
    left: Vec<Part<'c>>,
    right: Vec<Part<'c>>,
}

/// One element, or neighbouring ones of 16 bytes, that a thread copies.
struct Part<'c> {
    /// The address of its first one, of k = 0.
    base: Val<'c>,
    /// Which k of the step it has.
    k: Val<'c>,
    /// Bytes between neighbouring k.
    stride: i64,
    /// How many neighbours are one copy: of k on the left, of columns on the right.
    width: i64,
    /// Bytes of the copy.
    bytes: i64,
    /// Bytes from the start of a buffer of its side.
    to: Val<'c>,
    /// Whether the thread has it.
    valid: Option<Val<'c>>,
}

/// The pieces of 16 bytes of rows of a buffer that a thread copies.
struct Pieces<'c> {
    /// The first row, the piece of each, and how far rows are apart.
    row: Val<'c>,
    piece: Val<'c>,
    rows: i64,
    /// Whether the thread has each.
    valid: Vec<Option<Val<'c>>>,
}

impl<'c> Pieces<'c> {
    /// The piece of the row `after` rows below the first; `after` is a multiple of eight.
    fn part(&self, e: &Emitter<'c>, base: Val<'c>, after: i64, valid: Option<Val<'c>>) -> Part<'c> {
        let width = warpgroup::PIECE_BYTES / 2;
        let first = warpgroup::place(e, self.row, self.piece);
        Part {
            base,
            k: e.times(self.piece, width),
            stride: 2,
            width,
            bytes: warpgroup::PIECE_BYTES,
            to: e.add(first, e.int(after * warpgroup::ROW_BYTES)),
            valid,
        }
    }
}

impl<'a, 'w, 'f, 'c> Copies<'a, 'w, 'f, 'c> {
    pub fn new(
        e: &Emitter<'c>,
        writer: &'a Writer<'w, 'f, 'c>,
        chain: &Chain<'c>,
        segment: &Segment,
    ) -> Self {
        let mut copies = match writer.group {
            Some(_) => Copies::none(writer, chain, segment),
            None => Copies::of_weights(e, writer, chain, segment),
        };
        copies.left = match writer.size.unit {
            Unit::Warpgroups => copies.rows_parts(e, segment),
            _ => copies.left_parts(e, segment),
        };
        copies
    }

    fn none(writer: &'a Writer<'w, 'f, 'c>, chain: &Chain<'c>, segment: &Segment) -> Self {
        Copies {
            writer,
            gates: chain.gates.len() as i64,
            k: segment.k,
            left: vec![],
            right: vec![],
        }
    }

    /// Of the right side alone.
    pub fn of_weights(
        e: &Emitter<'c>,
        writer: &'a Writer<'w, 'f, 'c>,
        chain: &Chain<'c>,
        segment: &Segment,
    ) -> Self {
        let mut copies = Copies::none(writer, chain, segment);
        for (number, gate) in chain.gates.iter().enumerate() {
            let parts = match &segment.by_columns {
                Some(weight) if writer.size.unit == Unit::Warpgroups => {
                    copies.columns_parts(e, segment, weight, (number as i64, *gate))
                }
                _ => copies.right_parts(e, segment, number, *gate),
            };
            copies.right.extend(parts);
        }
        copies
    }

    /// Begins the copies of a step to a buffer.
    pub fn begin(&self, e: &Emitter<'c>, step: Val<'c>, buffer: Val<'c>) {
        let (left, right) = self.writer.buffers(e, buffer, self.gates);
        let size = self.writer.size;
        for part in &self.left {
            self.copy(e, part, (self.k, size.depth, part.width), step, left);
        }
        self.begin_weights(e, step, right);
    }

    /// The same of the right side alone, to this place.
    pub fn begin_weights(&self, e: &Emitter<'c>, step: Val<'c>, right: Val<'c>) {
        let size = self.writer.size;
        let per_word = size.per_word();
        let words = (self.k + per_word - 1) / per_word;
        for part in &self.right {
            let of_side = match size.unit {
                Unit::Warpgroups => (self.k, size.depth, part.width),
                _ => (words, size.depth / per_word, 1),
            };
            self.copy(e, part, of_side, step, right);
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
        let mut k = e.add(e.times(step, depth), part.k);
        let mut copied = Copied::All;
        if all % depth != 0 {
            copied = Copied::If(below(e, k, e.int(all)));
            k = e.min(k, e.int(all - along));
        }
        guarded(e, part.valid, |e| {
            let from = e.offset(part.base, e.times(k, part.stride));
            let to = memory(e, true).offset(to, part.to);
            copy_async(e, to, from, part.bytes, copied);
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
        let elem = size.left_elem();
        let parts = self.deal(e, size.block_rows() * size.depth / width);
        parts
            .into_iter()
            .map(|(part, valid)| {
                let (row, k) = divide(e, part, size.depth / width);
                let k = e.times(k, width);
                let to = e.add(e.times(row, size.left_stride()), e.times(k, elem));
                let row = self.writer.row(e, e.add(self.writer.first_row, row));
                Part {
                    base: self.writer.left_row(e, segment, &row),
                    k,
                    stride: elem,
                    width,
                    bytes: width * elem,
                    to,
                    valid,
                }
            })
            .collect()
    }

    /// Pieces of columns of a gate, for products of warpgroups.
    fn columns_parts(
        &self,
        e: &Emitter<'c>,
        segment: &Segment,
        weight: &ConstantDescription,
        (gate, offset): (i64, i64),
    ) -> Vec<Part<'c>> {
        let writer = self.writer;
        let columns = writer.size.block_columns();
        let all = writer.tile.columns();
        let column_bytes = segment.k * 2;
        let base = writer.frame.constant(weight);
        let base = e.offset_by(base, offset * column_bytes);
        let own = self.pieces(e, columns);
        let of_column = |column| e.offset(base, e.times(column, column_bytes));
        let first = of_column(e.add(writer.first_column, own.row));
        let parts = (0..).zip(&own.valid).map(|(number, valid)| {
            let after = number * own.rows;
            let base = match all % columns {
                0 => e.offset_by(first, after * column_bytes),
                _ => {
                    let column = e.add(writer.first_column, e.add(own.row, e.int(after)));
                    of_column(e.min(column, e.int(all - 1)))
                }
            };
            own.part(e, base, gate * columns + after, *valid)
        });
        parts.collect()
    }

    /// Assigns the pieces of `rows` rows of a buffer to threads, for products of warpgroups. A thread has the same piece of
    /// rows at a fixed stride, a multiple of eight, so their addresses differ by constants.
    fn pieces(&self, e: &Emitter<'c>, rows: i64) -> Pieces<'c> {
        let size = self.writer.size;
        let of_row = size.depth * 2 / warpgroup::PIECE_BYTES;
        let step = size.threads() / of_row;
        let (row, piece) = divide(e, self.writer.thread, of_row);
        let valid = (0..rows).step_by(step as usize).map(|first| {
            let is_whole = first + step <= rows;
            (!is_whole).then(|| below(e, row, e.int(rows - first)))
        });
        Pieces {
            row,
            piece,
            rows: step,
            valid: valid.collect(),
        }
    }

    /// Pieces of rows of the left side, for products of warpgroups.
    fn rows_parts(&self, e: &Emitter<'c>, segment: &Segment) -> Vec<Part<'c>> {
        let writer = self.writer;
        let own = self.pieces(e, writer.size.block_rows());
        let first = e.add(writer.first_row, own.row);
        let parts = (0..).zip(&own.valid).map(|(number, valid)| {
            let after = number * own.rows;
            let row = writer.row(e, e.add(first, e.int(after)));
            let base = writer.left_row(e, segment, &row);
            own.part(e, base, after, *valid)
        });
        parts.collect()
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
        let (base, first, [k_stride, column_stride]) = self.writer.weight(e, segment);
        let width = segment.copies[number + 1];
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
                let column = writer.clamped(e, column, width);
                Part {
                    base: e.offset(base, e.times(column, column_stride * 4)),
                    k,
                    stride: k_stride * 4,
                    width,
                    bytes: width * 4,
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
        let elem = self.size.left_elem();
        let mut base = e.offset_by(base, address.constant * elem);
        for (dim, stride) in &address.terms {
            if let Some(at) = row.outer[*dim].value {
                base = e.offset(base, e.times(at, stride * elem));
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
