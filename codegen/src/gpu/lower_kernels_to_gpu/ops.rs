//! The operations of a GPU thread that the emitter of loops and vectors lacks.

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{CmpiPredicate, Op, Val, region_with_block, result_of};
use cohort_dialects::keys::{self, Key};
use melior::ir::{Attribute, Type, attribute::IntegerAttribute};

use crate::emit::{Emitter, Index, Width};

/// Threads of a block, but for those of the largest tiles; and of a warpgroup.
pub const THREADS: i64 = 128;

pub const WARP: i64 = 32;

/// Neighbouring elements that a thread loads or stores at once, of 4 bytes each.
pub const WIDE: i64 = 4;

fn position<'c>(e: &Emitter<'c>, kind: Op, dim: GpuDim) -> Val<'c> {
    let index = Type::index(e.b.context());
    let at =
        e.b.value_with(kind, &[], index, &[(keys::DIMENSION, e.b.gpu_dim(dim))]);
    e.b.index_cast(at, e.i64)
}

pub fn thread<'c>(e: &Emitter<'c>) -> Val<'c> {
    position(e, Op::GpuThreadId, GpuDim::X)
}

/// The block's place along a dim of the grid.
pub fn block<'c>(e: &Emitter<'c>, dim: GpuDim) -> Val<'c> {
    position(e, Op::GpuBlockId, dim)
}

/// Blocks along the grid's first dim.
pub fn grid_blocks<'c>(e: &Emitter<'c>) -> Val<'c> {
    position(e, Op::GpuGridDim, GpuDim::X)
}

pub fn barrier(e: &Emitter<'_>) {
    e.b.op(Op::GpuBarrier, &[], &[], &[], vec![]);
}

/// The barrier of a number from 1 to 15, at which as many threads of the block wait for each other: those of whole warps.
pub fn named_barrier<'c>(e: &Emitter<'c>, barrier: Val<'c>, threads: Val<'c>) {
    let operands = [barrier, threads].map(|number| e.b.trunci(number, e.i32));
    let segments = [(keys::OPERAND_SEGMENT_SIZES, e.b.i32s(&[1, 1, 0]))];
    e.b.op(Op::NvvmBarrier, &operands, &[], &segments, vec![]);
}

/// Which copies are made; the others fill with zeros what they would write.
#[derive(Clone, Copy)]
pub enum Copied<'c> {
    All,
    If(Val<'c>),
    /// So many bytes of each, an `i32`; the rest is zeros.
    Bytes(Val<'c>),
}

/// Begins a copy of 4 or 16 bytes from global to shared memory, aligned to as many.
pub fn copy_async<'c>(e: &Emitter<'c>, to: Val<'c>, from: Val<'c>, bytes: i64, copied: Copied<'c>) {
    let number = |value| e.b.integer(value, e.i32);
    let mut operands = vec![to, from];
    match copied {
        Copied::All => {}
        Copied::If(condition) => operands.push(e.select(condition, number(bytes), number(0))),
        Copied::Bytes(bytes) => operands.push(bytes),
    }
    // Only copies of 16 bytes can leave the first level of the cache alone.
    let attributes = [
        (keys::SIZE, IntegerAttribute::new(e.i32, bytes).into()),
        (keys::MODIFIER, e.b.load_cache(bytes == 16)),
    ];
    let name = Op::NvvmCpAsyncSharedGlobal;
    e.b.op(name, &operands, &[], &attributes, vec![]);
}

/// Ends a group of copies.
pub fn commit_copies(e: &Emitter<'_>) {
    e.b.op(Op::NvvmCpAsyncCommitGroup, &[], &[], &[], vec![]);
}

/// Waits until all groups of copies that this thread began are done.
pub fn wait_for_copies(e: &Emitter<'_>) {
    wait_for_copies_but(e, 0);
}

/// The same of all groups but the last few.
pub fn wait_for_copies_but(e: &Emitter<'_>, groups: i64) {
    let groups = [(keys::N, IntegerAttribute::new(e.i32, groups).into())];
    e.b.op(Op::NvvmCpAsyncWaitGroup, &[], &[], &groups, vec![]);
}

/// Makes what this thread copied to shared memory, and waited for, visible to what reads it asynchronously behind a barrier.
pub fn fence_copies(e: &Emitter<'_>) {
    let attributes = [
        (keys::KIND, e.b.async_shared_proxy()),
        (keys::SPACE, e.b.shared_space()),
    ];
    e.b.op(Op::NvvmFenceProxy, &[], &[], &attributes, vec![]);
}

fn rounding<'c>(e: &Emitter<'c>, is_away: bool) -> [(Key<'static>, Attribute<'c>); 3] {
    [
        (keys::RND, e.b.rounding_mode(is_away)),
        (keys::SAT, e.b.no_saturation()),
        (keys::RELU, e.b.bool_attr(false)),
    ]
}

/// A float rounded to tf32, to the nearest, halves away from zero.
pub fn to_tf32<'c>(e: &Emitter<'c>, value: Val<'c>) -> Val<'c> {
    let rounding = rounding(e, true);
    e.b.value_with(Op::NvvmConvertFloatToTf32, &[value], e.i32, &rounding)
}

/// Two floats rounded to bf16, to the nearest, halves to even: the first in the lower half.
pub fn to_bf16_pair<'c>(e: &Emitter<'c>, first: Val<'c>, second: Val<'c>) -> Val<'c> {
    let rounding = rounding(e, false);
    let pair = e.b.vector_type(2, e.b.bf16());
    let name = Op::NvvmConvertF32x2ToBf16x2;
    let pair = e.b.value_with(name, &[second, first], pair, &rounding);
    e.b.value(Op::LlvmBitcast, &[pair], e.i32)
}

/// An `f32` of the lane of the warp whose number differs in the bits of `lanes`.
pub fn shuffle<'c>(e: &Emitter<'c>, value: Val<'c>, lanes: i64) -> Val<'c> {
    let operands = [value, e.b.integer(lanes, e.i32), e.b.integer(WARP, e.i32)];
    let results = [e.b.f32(), e.b.i1()];
    let mode = [(keys::MODE, e.b.shuffle_xor())];
    result_of(
        e.b.op(Op::GpuShuffle, &operands, &results, &mode, vec![]),
        0,
    )
}

/// `c + a · b` of a warp, of 16 rows, 8 columns, and 8 k in tf32 or 16 in bf16. Which elements each
/// lane has, the instruction set says (`mma.sync.aligned.m16n8k8`, `m16n8k16`).
pub fn multiply_matrices<'c>(
    e: &Emitter<'c>,
    precision: Precision,
    a: [Val<'c>; 4],
    b: [Val<'c>; 2],
    c: [Val<'c>; 4],
) -> [Val<'c>; 4] {
    let k = if precision == Precision::Bf16 { 16 } else { 8 };
    let of_type = e.b.mma_type(precision == Precision::Bf16);
    let shape = e.b.mma_shape(k);
    let attributes = [
        (keys::SHAPE, shape),
        (keys::LAYOUT_A, e.b.mma_layout(false)),
        (keys::LAYOUT_B, e.b.mma_layout(true)),
        (keys::MULTIPLICAND_APTX_TYPE, of_type),
        (keys::MULTIPLICAND_BPTX_TYPE, of_type),
        (keys::OPERAND_SEGMENT_SIZES, e.b.i32s(&[4, 2, 4])),
    ];
    let operands = [&a[..], &b[..], &c[..]].concat();
    let result = e.b.llvm_struct(&[e.b.f32(); 4]);
    let sums =
        e.b.value_with(Op::NvvmMmaSync, &operands, result, &attributes);
    let sums = e.b.unpack_struct(sums, 4, e.b.f32());
    [sums[0], sums[1], sums[2], sums[3]]
}

/// Neighbouring elements of 4 bytes, loaded at once; their address is a multiple of all their bytes.
pub fn load_neighbours<'c>(e: &Emitter<'c>, at: Val<'c>, elem: Elem, count: i64) -> Vec<Val<'c>> {
    let ty = e.elem_type(elem, Width::Scalar);
    if count == 1 {
        return vec![e.load_elem(at, elem, Width::Scalar, None)];
    }
    let vector = e.load(at, e.b.vector_type(count as u64, ty), count * 4);
    (0..count)
        .map(|lane| {
            let position = e.b.i64s(&[lane]);
            let attributes = [(keys::STATIC_POSITION, position)];
            e.b.value_with(Op::VectorExtract, &[vector], ty, &attributes)
        })
        .collect()
}

/// Stores neighbouring elements of 4 bytes at once, as [`load_neighbours`] loads them.
pub fn store_neighbours<'c>(e: &Emitter<'c>, values: &[Val<'c>], at: Val<'c>, elem: Elem) {
    if let [value] = values {
        return e.store_elem(*value, at, elem, Width::Scalar, None);
    }
    let count = values.len() as i64;
    let ty = e.elem_type(elem, Width::Scalar);
    let ty = e.b.vector_type(count as u64, ty);
    let vector = e.b.value(Op::VectorFromElements, values, ty);
    e.store(vector, at, count * 4);
}

/// `a < b` of numbers that are not negative.
pub fn below<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.b.cmpi(CmpiPredicate::Slt, a, b)
}

pub fn both<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.b.andi(a, b)
}

/// Quotient and rest of a number that is not negative by a known one.
pub fn divide<'c>(e: &Emitter<'c>, a: Val<'c>, by: i64) -> (Val<'c>, Val<'c>) {
    if by == 1 {
        return (a, e.int(0));
    }
    let divisor = e.int(by);
    (e.b.divui(a, divisor), e.b.remui(a, divisor))
}

/// Runs `body` where a condition holds.
pub fn when<'c>(e: &Emitter<'c>, condition: Val<'c>, body: impl FnOnce(&Emitter<'c>)) {
    let (region, block) = region_with_block(&[], e.b.location);
    let inner = e.within(block);
    body(&inner);
    inner.b.scf_yield(&[]);
    let empty = melior::ir::Region::new();
    e.b.scf_if(condition, &[], [region, empty]);
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
