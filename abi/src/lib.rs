//! What compiled code and the runtime share: symbol names, C layouts, handles, the manifest.
//!
//! Nothing else may pass between them. A change here is a change of [`VERSION`].
//!
//! # How a compiled program looks from outside
//!
//! * One *entry* function, [`EntryFn`]: it runs the control program for one instance. It reads the
//!   instance's arguments from slots, calls back through the [`symbols`] to record kernel calls,
//!   and leaves its result, full of handles, in slots.
//! * One function a *kernel*, [`KernelFn`]: it computes a range of rows of a bucket.
//! * A [`manifest::Manifest`] that names them and describes types, parameters, row pools and operands.
//!
//! # Slots
//!
//! Every value of the control program is a sequence of 64-bit slots:
//!
//! | type | slots |
//! |---|---|
//! | `i32`, `f32`, `bool` on the host | one, the low 32 bits hold the value's bits (`bool`: 0 or 1) |
//! | a tensor | one, its [`Handle`] |
//! | a tensor with instance dims | the [`Handle`] of its first row, then the length of each instance dim, in order |
//! | a tuple | its elements' slots, one after another |
//! | an algebraic data type | one, a pointer to `[tag, field slots…]` |
//! | a text | one, a pointer to `[bytes, UTF-8 …]`, padded with zeros to whole slots |
//! | an array | one, a pointer to `[length, element slots…]` |
//! | a tensor stacked from rows | one, a pointer to an array of handles |
//!
//! # Tensors whose lengths differ
//!
//! A tensor with instance dims is *ragged* in a batch. All its dims up to the last instance dim are
//! one count of consecutive rows of the row pool of the dims behind: `f32[n, 64]` is `n` rows of the
//! row pool of `[64]`, `f32[m, k]` is `m · k` rows of the row pool of `[]`, in row-major order. So a row
//! of it is the handle of its first row plus an index, and work on each row alone, over all
//! instances, is work on one dense range of rows: nothing is padded.

pub mod gpu;
pub mod handle;
pub mod manifest;

pub use handle::Handle;

use std::ffi::c_void;

/// Raised by every incompatible change of this crate; an artifact carries the one it was made for.
pub const VERSION: u32 = 21;

/// `entry(context, arguments, results)`.
pub type EntryFn = unsafe extern "C" fn(*mut Context, *const u64, *mut u64);

/// `kernel(begin, end, operands, results, constants, scratch)`: computes rows `begin..end` of a
/// bucket, or calls, where the manifest's [`manifest::Unit`] says so, or work items of calls, where it
/// has a [`manifest::Division`].
///
/// * `operands`: one [`OperandRef`] for each of the manifest's operands; of a kernel whose unit is
///   the call and whose calls have an extent of rows, one more, a scalar operand: `index[i]` is the
///   row of the bucket at which call `i` begins; of one whose calls can be divided, one more behind
///   it: `index[3 * i..3 * i + 3]` is the call of work item `i` and its range, `from` and `to`, of the
///   first of the dims that count the call's rows;
/// * `results`: for each result, the address of the row of the bucket's row 0; rows are dense;
/// * `constants`: for each of the manifest's constants, its address;
/// * `scratch`: at least the manifest's `scratch_bytes`, 64-byte aligned, private to the caller, and to threads that share a
///   product with it ([`symbols::SHARE_PRODUCT`]).
pub type KernelFn = unsafe extern "C" fn(
    begin: i64,
    end: i64,
    operands: *const OperandRef,
    results: *const *mut c_void,
    constants: *const *const c_void,
    scratch: *mut c_void,
);

/// Columns of a panel of a product's right side, of which each thread computes whole ones.
pub const PANEL_COLUMNS: i64 = 32;
/// Columns of a vector, two of which are a panel.
pub const VECTOR_COLUMNS: i64 = 16;

/// `product(a, a_row, b, panel, k, c, c_row, s, s_row, s_vector, rows, vectors)`: `c[i] = s[i] + a[i] · b` for some rows,
/// in `f32`. Strides are bytes.
///
/// * `a`: the address of a row's terms, and again `a_row` bytes behind it that of the next row's; each row has `k`;
/// * `b`: the first panel, of all terms; the next one is `panel` bytes behind it;
/// * `c`: where the first row goes, the next one `c_row` bytes behind it, in whole vectors;
/// * `s`: what the first row begins with, the next one `s_row` behind it, and its next vector `s_vector`;
/// * `vectors`: how many there are of columns.
pub type ProductFn = unsafe extern "C" fn(
    a: *const *const c_void,
    a_row: i64,
    b: *const c_void,
    panel: i64,
    k: i64,
    c: *mut c_void,
    c_row: i64,
    s: *const c_void,
    s_row: i64,
    s_vector: i64,
    rows: i64,
    vectors: i64,
);

/// Where a kernel finds one operand of each row of a bucket.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OperandRef {
    /// An operand of rows: the address of row 0 of its row pool. A scalar operand: unused, null.
    pub base: *const c_void,
    /// A row operand: `index[i]` is the row in the row pool that row `i` of the bucket reads.
    /// A scalar operand or a length: `index[i]` holds the bits of its value for row `i`.
    /// A ragged or stacked operand where the unit is the row: as a row operand.
    /// Where the unit is the call, `i` counts calls, and a ragged operand has the first row of
    /// the call's value.
    /// A list operand: the rows of all lists, one list after another.
    pub index: *const u32,
    /// A list operand: row `i` of the bucket reads `index[offsets[i]..offsets[i + 1]]`, which may
    /// be empty; one entry more than the bucket has rows. Otherwise unused, null.
    pub offsets: *const u32,
}

/// `strand(context, scope, index)`: a part of an instance that may run beside others of it. It reads what
/// it needs from the scope, and writes there what it gives.
///
/// A *scope* is slots of the caller's frame, alive until all of its strands are joined. The first slot
/// counts those that run and have not ended; it begins with 0, and the runtime alone changes it. The
/// others are the program's. The index is any number that tells the strand which one it is.
pub type StrandFn = unsafe extern "C" fn(*mut Context, *mut u64, i64);

/// The part of the recorder that compiled code reads and writes itself; the recorder starts with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// Calls of `func`s of the control program that are active now.
    pub depth: u64,
    /// The limit on it.
    pub max_depth: u64,
    /// Compiled code fails with [`Failure::DepthLimit`] when its stack pointer is below.
    pub stack_limit: u64,
    /// The phase that the instance is in, from 0. Compiled code only ever raises it; calls of a
    /// later phase run after all those of an earlier one, whatever their depths.
    pub phase: u64,
    /// A hash of the instance's id, which keys its random numbers.
    pub key: u64,
    /// Steps that the instance may still take: turns of loops, elements that a `map` or `fold` runs
    /// over, calls of functions. Compiled code counts calls itself.
    pub steps_left: u64,
}

/// Why compiled code gives an instance up; the number is what it passes to `cohort_fail`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Calls nest deeper than `--max-depth`.
    DepthLimit = 1,
    /// It needs more kernel calls than `--max-nodes`.
    NodeLimit = 2,
    /// It needs more memory than `--max-memory`, or than the run has left.
    MemoryLimit = 3,
    /// It takes more steps than `--max-steps`.
    StepLimit = 4,
    /// An index is not within its axis or array.
    IndexOutOfRange = 5,
    /// Two arrays that must be equally long are not.
    LengthMismatch = 6,
    /// An integer of the host is divided by 0.
    DivisionByZero = 7,
    /// A tensor that decides the instance's path is not a number.
    NanDecision = 8,
    /// Two instance dims that must be equal are not.
    ShapeMismatch = 9,
    /// Only the runtime looks at the clock.
    TimeLimit = 10,
}

impl Failure {
    /// The `kind` of the instance's error record.
    pub fn kind(self) -> &'static str {
        match self {
            Failure::DepthLimit => "depth_limit",
            Failure::NodeLimit => "node_limit",
            Failure::MemoryLimit => "memory_limit",
            Failure::StepLimit => "step_limit",
            Failure::IndexOutOfRange => "index_out_of_range",
            Failure::LengthMismatch => "length_mismatch",
            Failure::DivisionByZero => "division_by_zero",
            Failure::NanDecision => "nan_decision",
            Failure::ShapeMismatch => "shape_mismatch",
            Failure::TimeLimit => "time_limit",
        }
    }

    /// The failure that compiled code passes by this number.
    pub fn from_code(code: u32) -> Option<Failure> {
        use Failure::*;
        [
            DepthLimit,
            NodeLimit,
            MemoryLimit,
            StepLimit,
            IndexOutOfRange,
            LengthMismatch,
            DivisionByZero,
            NanDecision,
            ShapeMismatch,
            TimeLimit,
        ]
        .into_iter()
        .find(|failure| *failure as u32 == code)
    }
}

/// A text as slots: how many bytes it has, and these.
pub fn text_slots(text: &str) -> Vec<u64> {
    let chunks = text.as_bytes().chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    std::iter::once(text.len() as u64).chain(chunks).collect()
}

/// The functions that the runtime offers to compiled code, all `extern "C"`.
pub mod symbols {
    /// `(context, kernel: u32, operands: *const u64) -> u64`: appends one call to a bucket. The
    /// operands are one slot each, as many as the manifest says: a handle, a scalar's bits, a
    /// length, or the address of an array of handles, which is read before the call returns.
    /// Returns the handle of result 0, of its first row where the call has an extent of rows;
    /// result `r` is [`super::Handle::result_handle`] of it.
    pub const RECORD: &str = "cohort_record";
    /// `(context, slots: u64) -> *mut u64`: uninitialised memory of the instance, 8-byte aligned,
    /// alive until the instance's outputs are written.
    pub const ALLOC: &str = "cohort_alloc";
    /// `(context, code: u32, a: i64, b: i64, location: u32) -> !`: gives the instance up. `a` and
    /// `b` are what the message shows (an index and its bound; two lengths); `location` indexes
    /// the manifest's locations.
    pub const FAIL: &str = "cohort_fail";
    /// `(context, steps: u64)`: counts turns of loops against the step limit.
    pub const STEP: &str = "cohort_step";
    /// `(context, handle: u64, force: u32) -> u32`: the bits of the one element of a row (`bool`: 0
    /// or 1), once it is computed; `force` indexes the manifest's forces. Suspends the instance
    /// when the row is not there yet, until the next flush.
    pub const FORCE: &str = "cohort_force";
    /// `(a: *const u64, b: *const u64) -> u32`: whether two texts are the same, 0 or 1.
    pub const STR_EQUAL: &str = "cohort_str_equal";
    /// `(context, debug: u32, slots: *const u64)`: shows a value to the user; `debug` indexes the
    /// manifest's debugs. Suspends the instance when a row of it is not computed yet, until the next
    /// flush.
    pub const DEBUG: &str = "cohort_debug";
    /// `(context, strand: StrandFn, scope: *mut u64, index: i64) -> i32`: runs a strand until it
    /// ends or waits, and returns 1. Returns 0 without running it where no stack is free or where strands are
    /// off; the caller then calls the strand itself.
    pub const FORK: &str = "cohort_fork";
    /// `(context, scope: *mut u64)`: suspends the caller until all strands of the scope have ended.
    pub const JOIN: &str = "cohort_join";
    /// `(context, scope: *mut u64, index: i64)`: suspends the caller, a strand of the scope or who begins them,
    /// until the strand of that index has ended, which was begun or called before.
    pub const AWAIT: &str = "cohort_await";
    /// `(context, handle: u64, levels: u32) -> u64`: a handle of the same row that looks `levels`
    /// deeper, so that what reads it joins a later, larger batch.
    pub const GHOST: &str = "cohort_ghost";
    /// `(product: ProductFn, …)`, and behind it what that takes: computes a product, with threads that have nothing
    /// else to do, if there are any, each some of the panels.
    pub const SHARE_PRODUCT: &str = "cohort_share_product";
    /// `() -> i32`: 1 when there is no time left for the launch that asks, a kernel over calls. What it
    /// computes is thrown away then, so it may end at once.
    pub const LATE: &str = "cohort_late";
}
