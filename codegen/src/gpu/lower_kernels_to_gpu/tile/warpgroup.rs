//! Products of a warpgroup: `wgmma.mma_async` (sm_90a), whose factors both lie in shared memory, in bf16, and whose sums are of
//! `f32` in registers.
//!
//! One operation of four warps adds to 64 rows and up to 256 columns the products of 16 k. It is asynchronous: a thread begins the
//! products of a step, copies a later step while they are computed, and waits. Both sides lie as the instruction wants them: 64 k of a
//! row, or of a column, are 128 bytes, whose pieces of 16 bytes are swizzled by the number of the row, so that neither what copies
//! write at once nor what products read lies in one bank (*PTX ISA*, "Strides" and "Swizzling modes" of "Asynchronous warpgroup level matrix
//! instructions").
//!
//! A warp has the same rows and columns of the sums as with `mma.sync`, so what is made of them is the same code. Steps follow in the
//! order of k, 16 at a time, as in the other sizes of a tile in bf16: the same bits, as far as both instructions add alike.

use cohort_dialects::builder::{Op, Val};
use cohort_dialects::keys;
use melior::ir::ValueLike;

use super::super::ops::divide;
use super::super::site::memory;
use super::size::{GROUP_ROWS, GROUP_TERMS, GROUP_WARPS};
use super::{Sums, Writer};
use crate::emit::Emitter;

/// Terms of one operation.
const TERMS: i64 = 16;

/// Bytes of a row of a buffer, of its pieces, and from eight rows to the next: the pattern of the swizzle.
pub const ROW_BYTES: i64 = 2 * GROUP_TERMS;
pub const PIECE_BYTES: i64 = 16;
pub const PATTERN_BYTES: i64 = 8 * ROW_BYTES;

/// Where an address is in a descriptor of a matrix: units of 16 bytes of 18 bits.
const ADDRESS_BITS: i64 = 0x3_ffff;
const UNIT_BITS: u32 = 4;

/// The rest of a descriptor: bytes from one pattern to the next, and that pieces are swizzled over 128 bytes. The distance along k is
/// not used then.
const DESCRIPTOR: i64 = 1 << 62 | (PATTERN_BYTES >> UNIT_BITS) << 32 | 1 << 16;

/// Where a piece of a row's k is in a buffer of a side.
pub fn place<'c>(e: &Emitter<'c>, row: Val<'c>, piece: Val<'c>) -> Val<'c> {
    let swizzled = e.b.xori(piece, e.and(row, 7));
    e.add(e.times(row, ROW_BYTES), e.times(swizzled, PIECE_BYTES))
}

/// Begins the products of all k of a step, both sides of which are at these places; the sums are not there before [`wait`].
pub fn begin<'c>(
    writer: &Writer<'_, '_, 'c>,
    e: &Emitter<'c>,
    gates: i64,
    (left, right): (Val<'c>, Val<'c>),
    sums: &[Val<'c>],
) -> Val<'c> {
    let columns = gates * writer.size.block_columns();
    let (group, _) = divide(e, writer.warp, GROUP_WARPS);
    let shared = memory(e, true);
    let left = shared.offset(left, e.times(group, GROUP_ROWS * ROW_BYTES));
    e.b.op(Op::NvvmWgmmaFence, &[], &[], &[], vec![]);
    let in_order = order(writer, gates).into_iter();
    let registers: Vec<_> = in_order.map(|number| sums[number]).collect();
    let mut all = e.b.pack_struct(&registers);
    let (bf16, as_it_is, by_rows) = (
        e.b.warpgroup_type(true),
        e.b.warpgroup_scale(false),
        e.b.mma_layout(false),
    );
    let attributes = [
        (keys::SHAPE, e.b.warpgroup_shape(columns as i32)),
        (keys::TYPE_A, bf16),
        (keys::TYPE_B, bf16),
        (keys::TYPE_D, e.b.warpgroup_type(false)),
        (keys::SCALE_A, as_it_is),
        (keys::SCALE_B, as_it_is),
        (keys::SCALE_D, e.b.warpgroup_scale(true)),
        (keys::LAYOUT_A, by_rows),
        (keys::LAYOUT_B, e.b.mma_layout(true)),
    ];
    let described = [left, right].map(|side| {
        let at = e.b.value(Op::LlvmPtrtoint, &[side], e.i64);
        let at =
            e.b.shrui(e.and(at, ADDRESS_BITS), e.int(i64::from(UNIT_BITS)));
        e.b.ori(at, e.int(DESCRIPTOR))
    });
    for first in (0..GROUP_TERMS).step_by(TERMS as usize) {
        // A buffer begins with a pattern, so the bits of a place in its first row are zero.
        let place = e.int((2 * first) >> UNIT_BITS);
        let [a, b] = described.map(|side| e.b.ori(side, place));
        all = e.b.value_with(
            Op::NvvmWgmmaMmaAsync,
            &[all, a, b],
            all.r#type(),
            &attributes,
        );
    }
    e.b.op(Op::NvvmWgmmaCommitGroup, &[], &[], &[], vec![]);
    all
}

/// Waits for the products of the thread's warpgroup: the sums. That nothing reads them before is said by their going through the
/// instruction.
pub fn wait<'c>(
    writer: &Writer<'_, '_, 'c>,
    e: &Emitter<'c>,
    gates: i64,
    all: Val<'c>,
) -> Sums<'c> {
    let order = order(writer, gates);
    let begun = e.b.unpack_struct(all, order.len(), e.b.f32());
    let outputs = vec!["=f".to_owned(); begun.len()];
    let tied = (0..begun.len()).map(|register| register.to_string());
    let constraints: Vec<String> = outputs.into_iter().chain(tied).collect();
    let attributes = [
        (keys::ASM_STRING, e.b.string(WAIT)),
        (keys::CONSTRAINTS, e.b.string(&constraints.join(","))),
        (keys::HAS_SIDE_EFFECTS, e.b.unit_attr()),
    ];
    let done =
        e.b.value_with(Op::LlvmInlineAsm, &begun, all.r#type(), &attributes);
    let done = e.b.unpack_struct(done, order.len(), e.b.f32());
    let mut sums = begun;
    for (number, sum) in order.into_iter().zip(done) {
        sums[number] = sum;
    }
    sums
}

/// The instruction that waits until no product is pending.
pub const WAIT: &str = "wgmma.wait_group.sync.aligned 0;";

/// Which of a thread's sums is in each register: of eight columns after another, two of its first row, then two of its second.
fn order(writer: &Writer<'_, '_, '_>, gates: i64) -> Vec<usize> {
    let size = writer.size;
    let mut order = vec![];
    for gate in 0..gates {
        for columns in (0..size.columns).step_by(2) {
            for row in 0..size.rows {
                let first = (gate * size.rows + row) * size.columns + columns;
                order.extend([first as usize, first as usize + 1]);
            }
        }
    }
    order
}
