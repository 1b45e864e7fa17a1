//! Writes a tile launch: products in registers, then the pointwise values that read them.
//!
//! A block has a tile of rows and columns. Its threads gather the rows' elements, and load those of
//! the weights, of the next few k into registers while they multiply those of the last few k, which
//! are in shared memory: two buffers, one barrier a step. A warp has some rows, each of its lanes
//! some neighbouring columns, the same of every gate. Every sum starts from its start and takes one
//! multiply-add for each k in order, whatever the tile: so tiles of different sizes give the same
//! bits.
//!
//! Rows behind the last are computed as the last and not stored; of columns likewise. What lies
//! behind the last k is zero.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;

use super::function::SHARED;
use super::ops::{THREADS, WARP, barrier, below, block, both, delinearise, divide, thread, when};
use super::plan::{Chain, Segment, Tile};
use super::rows::addresses;
use super::site::{Address, Frame, Home, Row, Site, memory};
use crate::cpu::lower_kernels::body::Body;
use crate::cpu::lower_kernels::emit::{Emitter, Index, Width};
use crate::cpu::lower_kernels::layout::{Place, round_up};

const WARPS: i64 = THREADS / WARP;

/// How many k are in shared memory at once. With few rows there is little to compute while the next
/// ones are on their way, so more of them are sent for at once.
const DEPTH: i64 = 16;
const SMALL_DEPTH: i64 = 32;
/// The same where elements are loaded one by one.
const NARROW_DEPTH: i64 = 8;

/// Of these, how many multiply-adds are written one after another.
const UNROLL: i64 = 4;

/// Floats behind each k's column of rows, so that neighbouring k lie in other banks.
const PADDING: i64 = 4;

/// Streaming multiprocessors that a launch should fill before it takes larger tiles.
const PROCESSORS: i64 = 128;

/// What one thread computes: rows and columns of each gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub rows: i64,
    pub columns: i64,
    /// How many k are in shared memory at once.
    pub depth: i64,
}

impl Size {
    /// The same of a block.
    pub fn block_rows(self) -> i64 {
        WARPS * self.rows
    }

    pub fn block_columns(self) -> i64 {
        WARP * self.columns
    }

    pub fn column_blocks(self, tile: &Tile<'_>) -> i64 {
        (columns_of(tile) + self.block_columns() - 1) / self.block_columns()
    }

    /// Bytes of shared memory.
    pub fn shared_bytes(self, tile: &Tile<'_>) -> i64 {
        let gates = tile.chains.iter().map(|chain| chain.gates.len() as i64);
        let gates = gates.max().unwrap_or(1);
        2 * (self.left_bytes() + self.right_bytes(gates))
    }

    fn left_stride(self) -> i64 {
        self.block_rows() + PADDING
    }

    fn left_bytes(self) -> i64 {
        self.depth * self.left_stride() * 4
    }

    fn right_bytes(self, gates: i64) -> i64 {
        self.depth * gates * self.block_columns() * 4
    }

    /// The same with more k at once, if there is room, and if no sum is then padded with other zeros:
    /// a zero that is added can change the sign of a zero.
    fn deeper(self, tile: &Tile<'_>) -> Size {
        let deeper = Size {
            depth: SMALL_DEPTH,
            ..self
        };
        let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
        let same = segments.all(|s| round_up(s.k, SMALL_DEPTH) == round_up(s.k, DEPTH));
        if same && deeper.shared_bytes(tile) <= SHARED {
            deeper
        } else {
            self
        }
    }
}

/// Whether rows and columns can be loaded by four. Loads of one element take four times the
/// registers for addresses and values.
fn is_wide(tile: &Tile<'_>) -> bool {
    let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    let mut gates = tile.chains.iter().flat_map(|chain| &chain.gates);
    columns_of(tile) % 4 == 0
        && segments.all(|segment| segment.k % 4 == 0)
        && gates.all(|gate| gate.offset % 4 == 0)
}

/// The sizes of a tile, each with the number of rows from which on it is used.
pub fn sizes(tile: &Tile<'_>) -> Vec<(Size, i64)> {
    let gates: i64 = tile
        .chains
        .iter()
        .map(|chain| chain.gates.len() as i64)
        .sum();
    let columns = match (gates, columns_of(tile)) {
        (_, ..=32) => 1,
        (1, 128..) => 4,
        (1 | 2, _) => 2,
        _ => 1,
    };
    let rows = if gates * columns <= 5 { 8 } else { 4 };
    let wide = is_wide(tile);
    let large = Size {
        rows,
        columns,
        depth: if wide { DEPTH } else { NARROW_DEPTH },
    };
    let small = Size {
        rows: 2,
        columns: if gates == 1 { columns.min(2) } else { 1 },
        ..large
    };
    let small = if wide { small.deeper(tile) } else { small };
    let blocks = PROCESSORS / large.column_blocks(tile);
    let from = (blocks * large.block_rows() / matrix_rows(tile)).max(1);
    vec![(small, 0), (large, from)]
}

fn columns_of(tile: &Tile<'_>) -> i64 {
    tile.domain.last().copied().unwrap_or(1)
}

/// Rows of the tile's space for each row of the kernel.
pub fn matrix_rows(tile: &Tile<'_>) -> i64 {
    outer_of(tile).iter().product()
}

fn outer_of<'t>(tile: &'t Tile<'_>) -> &'t [i64] {
    tile.domain.split_last().map_or(&[], |(_, outer)| outer)
}

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
    /// Rows of the tile's space, and the last of them.
    total: Val<'c>,
    last: Val<'c>,
}

/// A row of the tile's space: the kernel's row, and the index of the dims before the columns.
struct TileRow<'c> {
    row: Row<'c>,
    outer: Vec<Index<'c>>,
}

pub fn write<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, tile: &Tile<'c>, size: Size) {
    let thread = thread(e);
    let (warp, lane) = divide(e, thread, WARP);
    let total = e.times(frame.rows, matrix_rows(tile));
    let writer = Writer {
        frame,
        tile,
        size,
        thread,
        warp,
        lane,
        first_row: e.times(block(e, "x"), size.block_rows()),
        first_column: e.times(block(e, "y"), size.block_columns()),
        total,
        last: e.sub(total, e.int(1)),
    };
    let rows = writer.rows(e);
    let sums: Vec<Sums<'c>> = tile
        .chains
        .iter()
        .map(|chain| writer.chain(e, chain, &rows))
        .collect();
    writer.tail(e, &rows, &sums);
}

impl<'c> Writer<'_, '_, 'c> {
    /// The rows of the thread.
    fn rows(&self, e: &Emitter<'c>) -> Vec<(Val<'c>, TileRow<'c>)> {
        let first = e.add(self.first_row, e.times(self.warp, self.size.rows));
        (0..self.size.rows)
            .map(|number| {
                let at = e.add(first, e.int(number));
                (at, self.row(e, at))
            })
            .collect()
    }

    /// A row of the space, or the last one for those behind it.
    fn row(&self, e: &Emitter<'c>, at: Val<'c>) -> TileRow<'c> {
        let at = e.min(at, self.last);
        let (row, rest) = divide(e, at, matrix_rows(self.tile));
        TileRow {
            row: Row {
                in_block: row,
                in_bucket: row,
            },
            outer: delinearise(e, rest, outer_of(self.tile)),
        }
    }

    /// A column of the thread, as it is and not behind the last.
    fn column(&self, e: &Emitter<'c>, number: i64) -> (Val<'c>, Val<'c>) {
        let first = e.add(self.first_column, e.times(self.lane, self.size.columns));
        let at = e.add(first, e.int(number));
        (at, e.min(at, e.int(columns_of(self.tile) - 1)))
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
        sums: bool,
    ) -> HashMap<Place, Address<'c>> {
        let mut of_memory = body.clone();
        if sums {
            let tile = self.tile;
            of_memory
                .values
                .retain(|(instruction, _)| match instruction {
                    crate::cpu::lower_kernels::body::Instruction::Load { buffer, address } => {
                        tile.gate(*buffer, address).is_none()
                    }
                    _ => false,
                });
        }
        let places: Vec<Place> = body.stores.iter().map(|store| store.place).collect();
        addresses(e, self.frame, Some(row.row), &[&of_memory], &places)
    }

    // Sums.

    fn chain(
        &self,
        e: &Emitter<'c>,
        chain: &Chain<'c>,
        rows: &[(Val<'c>, TileRow<'c>)],
    ) -> Sums<'c> {
        let mut sums = self.starts(e, chain, rows);
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
        let mut by_row = Vec::new();
        for (_, row) in rows {
            let mut touched = self.addresses(e, row, &chain.init, false);
            for column in 0..self.size.columns {
                let (_, column) = self.column(e, column);
                let index = self.index(row, column);
                let mut site = Site {
                    frame: self.frame,
                    row: Some(row.row),
                    index: &index,
                    addresses: &mut touched,
                    gates: None,
                };
                let mut known = HashMap::new();
                let starts: Vec<_> = chain
                    .gates
                    .iter()
                    .map(|gate| site.value(e, &chain.init, gate.init, &mut known))
                    .collect();
                by_row.push(starts);
            }
        }
        (0..chain.gates.len())
            .flat_map(|gate| by_row.iter().map(move |starts| starts[gate]))
            .collect()
    }

    fn segment(
        &self,
        e: &Emitter<'c>,
        chain: &Chain<'c>,
        segment: &Segment,
        sums: Sums<'c>,
    ) -> Sums<'c> {
        let loader = Loader::new(e, self, chain, segment);
        let first = loader.load(e, e.int(0));
        loader.store(e, &first, e.int(0));
        barrier(e);
        let depth = self.size.depth;
        let steps = (segment.k + depth - 1) / depth;
        let one = e.int(1);
        let steps = e.add(e.int(steps), self.unknown_zero(e));
        e.for_loop(e.int(0), steps, 1, &sums, |e, step, sums| {
            let next = e.add(step, one);
            let staged = loader.load(e, e.times(next, depth));
            let buffer = e.b.value("arith.andi", &[step, one], e.i64);
            let sums = self.multiply(e, chain.gates.len() as i64, buffer, sums);
            let other = e.b.value("arith.andi", &[next, one], e.i64);
            loader.store(e, &staged, other);
            barrier(e);
            sums
        })
    }

    /// Zero, which LLVM cannot tell: there are never so many rows. It unrolls loops of few steps
    /// otherwise, whatever a loop's attributes say, and has the addresses of all steps in registers.
    fn unknown_zero(&self, e: &Emitter<'c>) -> Val<'c> {
        e.b.value("arith.shrui", &[self.frame.rows, e.int(62)], e.i64)
    }

    /// Where a buffer of the left and of the right side begins in shared memory.
    fn buffers(&self, e: &Emitter<'c>, buffer: Val<'c>, gates: i64) -> (Val<'c>, Val<'c>) {
        let e = memory(e, true);
        let start = self.frame.shared();
        let left = e.offset(start, e.times(buffer, self.size.left_bytes()));
        let right = e.offset_by(start, 2 * self.size.left_bytes());
        let right = e.offset(right, e.times(buffer, self.size.right_bytes(gates)));
        (left, right)
    }

    /// Adds the products of all k in a buffer.
    fn multiply(&self, e: &Emitter<'c>, gates: i64, buffer: Val<'c>, sums: &[Val<'c>]) -> Sums<'c> {
        let (left, right) = self.buffers(e, buffer, gates);
        let of_warp = e.times(self.warp, self.size.rows * 4);
        let of_lane = e.times(self.lane, self.size.columns * 4);
        let shared = memory(e, true);
        let left = shared.offset(left, of_warp);
        let right = shared.offset(right, of_lane);
        let left_stride = self.size.left_stride() * 4;
        let right_stride = gates * self.size.block_columns() * 4;
        e.for_loop(
            e.int(0),
            e.int(self.size.depth),
            UNROLL,
            sums,
            |e, k, sums| {
                let e = &memory(e, true);
                let left = e.offset(left, e.times(k, left_stride));
                let right = e.offset(right, e.times(k, right_stride));
                let mut sums = sums.to_vec();
                for step in 0..UNROLL {
                    let a = load_floats(e, e.offset_by(left, step * left_stride), self.size.rows);
                    let mut sum = 0;
                    for gate in 0..gates {
                        let at = step * right_stride + gate * self.size.block_columns() * 4;
                        let b = load_floats(e, e.offset_by(right, at), self.size.columns);
                        for a in &a {
                            for b in &b {
                                let ty = e.elem_type(Elem::F32, Width::Scalar);
                                sums[sum] = e.b.value("math.fma", &[*a, *b, sums[sum]], ty);
                                sum += 1;
                            }
                        }
                    }
                }
                sums
            },
        )
    }

    // What is made of the sums.

    fn tail(&self, e: &Emitter<'c>, rows: &[(Val<'c>, TileRow<'c>)], sums: &[Sums<'c>]) {
        let body = &self.tile.body;
        for (number, (at, row)) in rows.iter().enumerate() {
            let touched = self.addresses(e, row, body, true);
            let valid_row = below(e, *at, self.total);
            for column in 0..self.size.columns {
                let (of_thread, clamped) = self.column(e, column);
                let valid_column = below(e, of_thread, e.int(columns_of(self.tile)));
                let per_gate = (self.size.rows * self.size.columns) as usize;
                let of_gate = number * self.size.columns as usize + column as usize;
                let sums: Vec<Vec<Val<'c>>> = sums
                    .iter()
                    .map(|sums| {
                        sums.iter()
                            .skip(of_gate)
                            .step_by(per_gate)
                            .copied()
                            .collect()
                    })
                    .collect();
                let index = self.index(row, clamped);
                when(e, both(e, valid_row, valid_column), |e| {
                    let mut touched = touched.clone();
                    let mut site = Site {
                        frame: self.frame,
                        row: Some(row.row),
                        index: &index,
                        addresses: &mut touched,
                        gates: Some((self.tile, &sums)),
                    };
                    let mut known = HashMap::new();
                    for store in &body.stores {
                        let value = site.value(e, body, store.value, &mut known);
                        site.store(e, store, value, body.values[store.value].1);
                    }
                });
            }
        }
    }
}

/// What a thread loads of one step: elements of the left side, then of each gate's columns.
struct Loader<'a, 'w, 'f, 'c> {
    writer: &'a Writer<'w, 'f, 'c>,
    gates: i64,
    k: i64,
    left: Vec<Part<'c>>,
    right: Vec<Part<'c>>,
}

/// One element, or four neighbouring ones, that a thread carries to shared memory.
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

impl<'a, 'w, 'f, 'c> Loader<'a, 'w, 'f, 'c> {
    fn new(
        e: &Emitter<'c>,
        writer: &'a Writer<'w, 'f, 'c>,
        chain: &Chain<'c>,
        segment: &Segment,
    ) -> Self {
        let mut loader = Loader {
            writer,
            gates: chain.gates.len() as i64,
            k: segment.k,
            left: vec![],
            right: vec![],
        };
        loader.left = loader.left_parts(e, segment);
        for (number, gate) in chain.gates.iter().enumerate() {
            let parts = loader.right_parts(e, segment, number as i64, gate.offset);
            loader.right.extend(parts);
        }
        loader
    }

    /// Deals `count` parts to the threads: the number of each, and whether there is one.
    fn deal(&self, e: &Emitter<'c>, count: i64) -> Vec<(Val<'c>, Option<Val<'c>>)> {
        (0..count)
            .step_by(THREADS as usize)
            .map(|first| {
                let part = e.add(self.writer.thread, e.int(first));
                if first + THREADS <= count {
                    return (part, None);
                }
                let valid = below(e, part, e.int(count));
                (e.min(part, e.int(count - 1)), Some(valid))
            })
            .collect()
    }

    fn left_parts(&self, e: &Emitter<'c>, segment: &Segment) -> Vec<Part<'c>> {
        let size = self.writer.size;
        let wide = self.left_is_wide(segment);
        let width = if wide { 4 } else { 1 };
        let parts = self.deal(e, size.block_rows() * size.depth / width);
        parts
            .into_iter()
            .map(|(part, valid)| {
                let (row, k) = divide(e, part, size.depth / width);
                let k = e.times(k, width);
                let to = e.add(e.times(k, size.left_stride() * 4), e.times(row, 4));
                let row = self.writer.row(e, e.add(self.writer.first_row, row));
                Part {
                    base: self.left_row(e, segment, &row),
                    k,
                    stride: 4,
                    wide,
                    to,
                    valid,
                }
            })
            .collect()
    }

    /// The address of a row of the left side.
    fn left_row(&self, e: &Emitter<'c>, segment: &Segment, row: &TileRow<'c>) -> Val<'c> {
        let frame = self.writer.frame;
        let view = &segment.a;
        let place = frame.place_of(view.buffer);
        let base = frame.address(e, place, Some(row.row)).at;
        let mut base = e.offset_by(base, view.offset * 4);
        for (stride, at) in view.strides.iter().zip(&row.outer) {
            if let Some(at) = at.value {
                base = e.offset(base, e.times(at, stride * 4));
            }
        }
        base
    }

    /// Whether four neighbouring k of every row are 16 aligned bytes.
    fn left_is_wide(&self, segment: &Segment) -> bool {
        let frame = self.writer.frame;
        let view = &segment.a;
        let rows_aligned = match frame.place_of(view.buffer) {
            Place::Operand(_) => frame.graph.nodes[view.buffer].elements() % 4 == 0,
            Place::Slot(slot) => {
                matches!(frame.homes[slot], Home::Rows { bytes, .. } if bytes % 16 == 0)
            }
            // Where the rows of a result begin is not known.
            Place::Result(_) | Place::Constant(_) => false,
        };
        let (_, outer) = view.strides.split_last().unwrap_or((&1, &[]));
        rows_aligned
            && segment.k % 4 == 0
            && view.offset % 4 == 0
            && outer.iter().all(|stride| stride % 4 == 0)
    }

    fn right_parts(
        &self,
        e: &Emitter<'c>,
        segment: &Segment,
        gate: i64,
        offset: i64,
    ) -> Vec<Part<'c>> {
        let writer = self.writer;
        let columns = columns_of(writer.tile);
        let view = &segment.weight;
        let [k_stride, column_stride] = view.strides[..] else {
            unreachable!("a weight has two dims")
        };
        let wide = column_stride == 1
            && k_stride % 4 == 0
            && (view.offset + offset) % 4 == 0
            && columns % 4 == 0;
        let width = if wide { 4 } else { 1 };
        let block_columns = writer.size.block_columns();
        let base = writer
            .frame
            .address(e, writer.frame.place_of(view.buffer), None)
            .at;
        let base = e.offset_by(base, (view.offset + offset * column_stride) * 4);
        let parts = self.deal(e, writer.size.depth * block_columns / width);
        parts
            .into_iter()
            .map(|(part, valid)| {
                let (k, column) = divide(e, part, block_columns / width);
                let column = e.times(column, width);
                let row = e.add(e.times(k, self.gates), e.int(gate));
                let to = e.add(e.times(row, block_columns), column);
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

    /// Loads the parts of the step that begins with a k.
    fn load(&self, e: &Emitter<'c>, first: Val<'c>) -> Vec<Val<'c>> {
        let left = self.left.iter().map(|part| (part, part.wide));
        let right = self.right.iter().map(|part| (part, false));
        left.chain(right)
            .map(|(part, along_k)| {
                let width = if along_k { 4 } else { 1 };
                let k = e.add(first, part.k);
                let inside = below(e, k, e.int(self.k));
                let k = e.min(k, e.int(self.k - width));
                let at = e.offset(part.base, e.times(k, part.stride));
                let ty = floats(e, if part.wide { 4 } else { 1 });
                let value = e.load(at, ty, if part.wide { 16 } else { 4 });
                let zero = match part.wide {
                    true => "dense<0.0> : vector<4xf32>",
                    false => "0.0 : f32",
                };
                let zero = [("value", e.b.attr(zero))];
                let zero = e.b.value_with("arith.constant", &[], ty, &zero);
                e.select(inside, value, zero)
            })
            .collect()
    }

    /// Puts what was loaded into a buffer.
    fn store(&self, e: &Emitter<'c>, values: &[Val<'c>], buffer: Val<'c>) {
        let (left, right) = self.writer.buffers(e, buffer, self.gates);
        let (of_left, of_right) = values.split_at(self.left.len());
        for (part, value) in self.left.iter().zip(of_left) {
            let write = |e: &Emitter<'c>| {
                let e = memory(e, true);
                let to = e.offset(left, part.to);
                if !part.wide {
                    return e.store(*value, to, 4);
                }
                for k in 0..4 {
                    let stride = self.writer.size.left_stride() * 4;
                    e.store(element(&e, *value, k), e.offset_by(to, k * stride), 4);
                }
            };
            guarded(e, part.valid, write);
        }
        for (part, value) in self.right.iter().zip(of_right) {
            guarded(e, part.valid, |e| {
                let e = memory(e, true);
                let to = e.offset(right, part.to);
                e.store(*value, to, if part.wide { 16 } else { 4 });
            });
        }
    }
}

fn guarded<'c>(e: &Emitter<'c>, valid: Option<Val<'c>>, body: impl FnOnce(&Emitter<'c>)) {
    match valid {
        Some(valid) => when(e, valid, body),
        None => body(e),
    }
}

fn floats<'c>(e: &Emitter<'c>, count: i64) -> melior::ir::Type<'c> {
    match count {
        1 => e.b.ty("f32"),
        _ => e.b.ty(&format!("vector<{count}xf32>")),
    }
}

fn element<'c>(e: &Emitter<'c>, vector: Val<'c>, at: i64) -> Val<'c> {
    let position = e.b.attr(&format!("array<i64: {at}>"));
    let ty = e.b.ty("f32");
    e.b.value_with(
        "vector.extract",
        &[vector],
        ty,
        &[("static_position", position)],
    )
}

/// Neighbouring floats, aligned to as many bytes as are loaded at once.
pub fn load_floats<'c>(e: &Emitter<'c>, at: Val<'c>, count: i64) -> Vec<Val<'c>> {
    let width = count.min(4);
    let mut values = Vec::new();
    for first in (0..count).step_by(width as usize) {
        let at = e.offset_by(at, first * 4);
        let loaded = e.load(at, floats(e, width), width * 4);
        match width {
            1 => values.push(loaded),
            _ => values.extend((0..width).map(|lane| element(e, loaded, lane))),
        }
    }
    values
}
