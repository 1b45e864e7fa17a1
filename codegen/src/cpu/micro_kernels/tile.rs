//! Tiles: some rows and vectors of a product, whose sums registers hold while they go over all terms.

use cohort_dialects::builder::Val;
use melior::ir::Type;

use super::VECTOR;
use crate::cpu::registers;
use crate::emit::{Emitter, Width};
use cohort_abi::manifest::{Elem, WeightFormat};

/// Vectors of a panel.
const PANEL_VECTORS: usize = 2;

/// How many terms ahead a tile asks for the right side where it leaves out every second vector, which processors do
/// not foresee. It asks for nothing behind the last term: where a processor stalls on that, a small product takes
/// twice as long.
const AHEAD: i64 = 16;

/// Where the rows of the left side are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// At the addresses of a table.
    Table,
    /// As many bytes apart as the tile is told.
    Even,
}

/// What a tile, and what calls it, is told; strides are bytes.
#[derive(Clone, Copy)]
pub struct Operands<'c> {
    /// The left side's first row or its entry in the table, and where the next is.
    pub a: Val<'c>,
    pub a_row: Val<'c>,
    /// The first panel, and where the next is.
    pub b: Val<'c>,
    pub panel: Val<'c>,
    /// How many terms each element has.
    pub k: Val<'c>,
    pub c: Val<'c>,
    pub c_row: Val<'c>,
    /// What the sums start from: rows may be one, and vectors.
    pub s: Val<'c>,
    pub s_row: Val<'c>,
    pub s_vector: Val<'c>,
    /// What the panels' numbers are kept in, which every tile of a library knows.
    pub format: WeightFormat,
}

impl<'c> Operands<'c> {
    pub fn types(e: &Emitter<'c>) -> Vec<Type<'c>> {
        let (pointer, int) = (e.pointer, e.i64);
        vec![
            pointer, int, pointer, int, int, pointer, int, pointer, int, int,
        ]
    }

    /// From the arguments of a function, of which these are the first.
    pub fn of<'a>(arguments: &'a [Val<'c>], format: WeightFormat) -> (Operands<'c>, &'a [Val<'c>]) {
        let (&[a, a_row, b, panel, k, c, c_row, s, s_row, s_vector], rest) =
            arguments.split_first_chunk().unwrap_or_else(|| {
                unreachable!("ten arguments, of which the function has ten or more")
            });
        let operands = Operands {
            a,
            a_row,
            b,
            panel,
            k,
            c,
            c_row,
            s,
            s_row,
            s_vector,
            format,
        };
        (operands, rest)
    }

    pub fn list(&self) -> Vec<Val<'c>> {
        vec![
            self.a,
            self.a_row,
            self.b,
            self.panel,
            self.k,
            self.c,
            self.c_row,
            self.s,
            self.s_row,
            self.s_vector,
        ]
    }

    /// The part from a row on.
    pub fn at_row(self, e: &Emitter<'c>, row: Val<'c>) -> Operands<'c> {
        Operands {
            a: e.offset(self.a, e.mul(row, self.a_row)),
            c: e.offset(self.c, e.mul(row, self.c_row)),
            s: e.offset(self.s, e.mul(row, self.s_row)),
            ..self
        }
    }

    /// The part from a vector of columns on.
    pub fn at_vector(self, e: &Emitter<'c>, vector: Val<'c>) -> Operands<'c> {
        let panel = e.mul(e.shift_right(vector, 1), self.panel);
        let in_panel = e.times(e.and(vector, 1), second_vector(self.format));
        Operands {
            b: e.offset(e.offset(self.b, panel), in_panel),
            c: e.offset(self.c, e.times(vector, VECTOR)),
            s: e.offset(self.s, e.mul(vector, self.s_vector)),
            ..self
        }
    }
}

/// The tiles of one kind of left side.
pub struct Tiles {
    /// What their names begin with, and the library that they are of.
    pub prefix: &'static str,
    pub left: Left,
    /// What they read of the right side.
    pub format: WeightFormat,
    /// Rows and vectors of each.
    pub sizes: Vec<(usize, usize)>,
}

impl Tiles {
    fn name(&self, (rows, vectors): (usize, usize)) -> String {
        format!("{}_r{rows}_v{vectors}", self.prefix)
    }

    pub fn call<'c>(&self, e: &Emitter<'c>, size: (usize, usize), operands: Operands<'c>) {
        e.call(&self.name(size), &operands.list());
    }

    /// Adds a function for each; one that the registers do not hold calls one that they do.
    pub fn add(&self, module: &Emitter<'_>, registers: usize) {
        for size in self.sizes.iter().copied() {
            let part = registers::part(registers, size, self.sizes.iter().copied());
            module.function(
                self.prefix,
                &self.name(size),
                &Operands::types(module),
                |e, arguments| {
                    let (operands, _) = Operands::of(arguments, self.format);
                    if part == size {
                        return multiply(e, self.left, size, operands);
                    }
                    for vector in (0..size.1).step_by(part.1) {
                        let operands = operands.at_vector(e, e.int(vector as i64));
                        for row in (0..size.0).step_by(part.0) {
                            self.call(e, part, operands.at_row(e, e.int(row as i64)));
                        }
                    }
                },
            );
        }
    }
}

/// Multiplies a tile that the registers hold.
fn multiply<'c>(
    e: &Emitter<'c>,
    left: Left,
    (rows, vectors): (usize, usize),
    operands: Operands<'c>,
) {
    let width = Width::Vector;
    let a = match left {
        Left::Table => (0..rows as i64)
            .map(|row| e.load_pointer(operands.a, row))
            .collect(),
        Left::Even => steps(e, operands.a, operands.a_row, rows),
    };
    let panels = steps(
        e,
        operands.b,
        operands.panel,
        vectors.div_ceil(PANEL_VECTORS),
    );
    let starts: Vec<_> = steps(e, operands.s, operands.s_row, rows)
        .into_iter()
        .flat_map(|row| steps(e, row, operands.s_vector, vectors))
        .map(|address| e.load_elem(address, Elem::F32, width, None))
        .collect();
    let last = e.sub(operands.k, e.int(1));
    let one_term = |e: &Emitter<'c>, term: Val<'c>, sums: &[Val<'c>]| {
        let in_panel = e.times(term, line(operands.format));
        if operands.format == WeightFormat::F32 && vectors < PANEL_VECTORS {
            let ahead = e.min(e.add(term, e.int(AHEAD)), last);
            e.prefetch(e.offset(panels[0], e.times(ahead, line(operands.format))));
        }
        let at_term: Vec<_> = panels.iter().map(|b| e.offset(*b, in_panel)).collect();
        let right = match operands.format {
            WeightFormat::F32 => right_side(e, &at_term, vectors),
            WeightFormat::Bf16 => right_side_in_bf16(e, &at_term, vectors),
        };
        let in_row = e.times(term, 4);
        let mut next = Vec::with_capacity(sums.len());
        for (a, sums) in a.iter().zip(sums.chunks(vectors)) {
            let factor = e.load_elem(e.offset(*a, in_row), Elem::F32, Width::Scalar, None);
            let factor = e.splat(factor, Elem::F32, width);
            let fma = |(b, sum): (&Val<'c>, &Val<'c>)| e.fma(factor, *b, *sum);
            next.extend(right.iter().zip(sums).map(fma));
        }
        next
    };
    // Unrolled, it would need more registers than there are.
    let sums = e.rolled_loop(e.int(0), operands.k, 1, &starts, one_term);
    let results = steps(e, operands.c, operands.c_row, rows);
    for (row, sums) in results.into_iter().zip(sums.chunks(vectors)) {
        for (vector, sum) in sums.iter().enumerate() {
            let at = e.offset_by(row, vector as i64 * VECTOR);
            e.store_elem(*sum, at, Elem::F32, width, None);
        }
    }
}

/// Bytes of a panel's row.
fn line(format: WeightFormat) -> i64 {
    match format {
        WeightFormat::F32 => PANEL_VECTORS as i64 * VECTOR,
        WeightFormat::Bf16 => VECTOR,
    }
}

/// How many bytes the second vector of a panel lies behind the first: in bf16 it is the upper halves of the same words,
/// which are the lower halves of the words at 2 bytes further on.
fn second_vector(format: WeightFormat) -> i64 {
    match format {
        WeightFormat::F32 => VECTOR,
        WeightFormat::Bf16 => 2,
    }
}

/// The vectors of one term, from where each panel is.
fn right_side<'c>(e: &Emitter<'c>, at_term: &[Val<'c>], vectors: usize) -> Vec<Val<'c>> {
    (0..vectors)
        .map(|vector| {
            let panel = at_term[vector / PANEL_VECTORS];
            let at = e.offset_by(panel, (vector % PANEL_VECTORS) as i64 * VECTOR);
            e.load_elem(at, Elem::F32, Width::Vector, None)
        })
        .collect()
}

/// The same, widened.
fn right_side_in_bf16<'c>(e: &Emitter<'c>, at_term: &[Val<'c>], vectors: usize) -> Vec<Val<'c>> {
    let pairs = at_term.iter().flat_map(|at| e.load_bf16_pairs(*at));
    pairs.take(vectors).collect()
}

/// Addresses that lie `stride` bytes apart.
fn steps<'c>(e: &Emitter<'c>, first: Val<'c>, stride: Val<'c>, count: usize) -> Vec<Val<'c>> {
    let addresses = std::iter::successors(Some(first), |at| Some(e.offset(*at, stride)));
    addresses.take(count).collect()
}

/// Runs a body for the first of some limits that a number does not exceed, or for the last of them.
pub fn by_limit<'c>(
    e: &Emitter<'c>,
    number: Val<'c>,
    limits: &[usize],
    body: &dyn Fn(&Emitter<'c>, usize),
) {
    match limits {
        [] => {}
        [last] => body(e, *last),
        [limit, larger @ ..] => e.if_else(
            e.at_least(e.int(*limit as i64), number),
            |e| body(e, *limit),
            |e| by_limit(e, number, larger, body),
        ),
    }
}
