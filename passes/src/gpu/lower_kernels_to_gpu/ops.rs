//! The operations of a GPU thread that the emitter of loops and vectors lacks.

use cohort_dialects::builder::{Val, region_with_block, results_of};
use melior::ir::{Type, ValueLike, attribute::IntegerAttribute};

use crate::cpu::lower_kernels::emit::{Emitter, Index};

/// Threads of a block.
pub const THREADS: i64 = 128;

pub const WARP: i64 = 32;

fn position<'c>(e: &Emitter<'c>, op: &str, dim: &str) -> Val<'c> {
    let dim = e.b.attr(&format!("#gpu<dim {dim}>"));
    let index = Type::index(e.b.context());
    let at = e.b.value_with(op, &[], index, &[("dimension", dim)]);
    e.b.value("arith.index_cast", &[at], e.i64)
}

pub fn thread<'c>(e: &Emitter<'c>) -> Val<'c> {
    position(e, "gpu.thread_id", "x")
}

/// The block's place along a dim of the grid, `x` or `y`.
pub fn block<'c>(e: &Emitter<'c>, dim: &str) -> Val<'c> {
    position(e, "gpu.block_id", dim)
}

pub fn barrier(e: &Emitter<'_>) {
    e.b.op("gpu.barrier", &[], &[], &[], vec![]);
}

/// `a < b` of numbers that are not negative.
pub fn below<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    // Predicate 2 is `slt`.
    let predicate = IntegerAttribute::new(e.i64, 2).into();
    let i1 = e.b.ty("i1");
    e.b.value_with("arith.cmpi", &[a, b], i1, &[("predicate", predicate)])
}

pub fn both<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.b.value("arith.andi", &[a, b], a.r#type())
}

/// Quotient and rest of a number that is not negative by a known one.
pub fn divide<'c>(e: &Emitter<'c>, a: Val<'c>, by: i64) -> (Val<'c>, Val<'c>) {
    if by == 1 {
        return (a, e.int(0));
    }
    let divisor = e.int(by);
    (
        e.b.value("arith.divui", &[a, divisor], e.i64),
        e.b.value("arith.remui", &[a, divisor], e.i64),
    )
}

/// Runs `body` where a condition holds.
pub fn when<'c>(e: &Emitter<'c>, condition: Val<'c>, body: impl FnOnce(&Emitter<'c>)) {
    let (region, block) = region_with_block(&[], e.b.location);
    let inner = e.within(block);
    body(&inner);
    inner.b.op("scf.yield", &[], &[], &[], vec![]);
    let empty = melior::ir::Region::new();
    results_of(e.b.op("scf.if", &[condition], &[], &[], vec![region, empty]));
}

/// The index of element `at` of a dense row-major domain.
pub fn delinearise<'c>(e: &Emitter<'c>, at: Val<'c>, domain: &[i64]) -> Vec<Index<'c>> {
    let mut index = vec![Index::constant(0); domain.len()];
    let mut rest = at;
    let mut left: i64 = domain.iter().product();
    for (dim, size) in domain.iter().enumerate() {
        if *size == 1 {
            continue;
        }
        left /= size;
        let (quotient, remainder) = divide(e, rest, left);
        index[dim] = Index {
            value: Some(quotient),
            constant: 0,
        };
        rest = remainder;
    }
    index
}
