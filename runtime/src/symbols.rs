//! The functions that compiled code calls, under the names of [`cohort_abi::symbols`].
//!
//! Each gets the context, which is the start of the [`Recorder`] that began the instance, so each
//! may only be called while [`crate::threads::fiber::Fiber::run`] runs that instance.

use cohort_abi::{Context, StrandFn, symbols};

use crate::device::sim;
use crate::late::cohort_late;
use crate::recorder::Recorder;
use crate::threads::share::cohort_share_product;

/// The names and addresses to link host code against.
pub fn abi_symbols() -> Vec<(&'static str, *const ())> {
    let mut all = vec![
        (symbols::RECORD, cohort_record as *const ()),
        (symbols::ALLOC, cohort_alloc as *const ()),
        (symbols::FAIL, cohort_fail as *const ()),
        (symbols::STEP, cohort_step as *const ()),
        (symbols::FORCE, cohort_force as *const ()),
        (symbols::FORK, cohort_fork as *const ()),
        (symbols::JOIN, cohort_join as *const ()),
        (symbols::AWAIT, cohort_await as *const ()),
        (symbols::GHOST, cohort_ghost as *const ()),
        (symbols::DEBUG, cohort_debug as *const ()),
        (symbols::STR_EQUAL, cohort_str_equal as *const ()),
        (symbols::LATE, cohort_late as *const ()),
        (symbols::SHARE_PRODUCT, cohort_share_product as *const ()),
    ];
    all.extend(sim::symbols());
    all
}

/// See [`symbols::RECORD`].
///
/// # Safety
///
/// `context` is that of the running instance and `operands` points to as many slots as the
/// manifest says for the kernel.
pub unsafe extern "C" fn cohort_record(
    context: *mut Context,
    kernel: u32,
    operands: *const u64,
) -> u64 {
    // SAFETY: the caller's promise; while an instance runs, the recorder is reached by nothing
    // else.
    unsafe { (*context.cast::<Recorder>()).record(kernel, operands) }
}

/// See [`symbols::ALLOC`].
///
/// # Safety
///
/// `context` is that of the running instance.
pub unsafe extern "C" fn cohort_alloc(context: *mut Context, slots: u64) -> *mut u64 {
    // SAFETY: as in `cohort_record`.
    unsafe { (*context.cast::<Recorder>()).alloc(slots) }
}

/// See [`symbols::FAIL`].
///
/// # Safety
///
/// `context` is that of the running instance. The frames of compiled code below are left without
/// being unwound: they must own nothing.
pub unsafe extern "C" fn cohort_fail(
    context: *mut Context,
    code: u32,
    a: i64,
    b: i64,
    location: u32,
) -> ! {
    // SAFETY: as in `cohort_record`.
    unsafe { (*context.cast::<Recorder>()).fail(code, a, b, location) }
}

/// See [`symbols::STEP`].
///
/// # Safety
///
/// `context` is that of the running instance.
pub unsafe extern "C" fn cohort_step(context: *mut Context, steps: u64) {
    // SAFETY: as in `cohort_record`.
    unsafe { (*context.cast::<Recorder>()).step(steps) }
}

/// See [`symbols::FORCE`].
///
/// # Safety
///
/// `context` is that of the running instance. Other instances run before this returns.
pub unsafe extern "C" fn cohort_force(context: *mut Context, handle: u64, force: u32) -> u32 {
    // SAFETY: as in `cohort_record`; no reference to the recorder is held meanwhile.
    unsafe { Recorder::force(context.cast::<Recorder>(), handle, force) }
}

/// See [`symbols::FORK`].
///
/// # Safety
///
/// `context` is that of the running instance. The scope lives, and is touched by the strands alone, until
/// [`cohort_join`] returns; what a strand reads of it is written.
pub unsafe extern "C" fn cohort_fork(
    context: *mut Context,
    strand: StrandFn,
    scope: *mut u64,
    index: i64,
) -> u32 {
    // SAFETY: as in `cohort_record`; no reference to the recorder is held meanwhile.
    unsafe { Recorder::fork(context.cast::<Recorder>(), strand, scope, index) }
}

/// See [`symbols::JOIN`].
///
/// # Safety
///
/// `context` is that of the running instance, and the scope one of the caller's.
pub unsafe extern "C" fn cohort_join(context: *mut Context, scope: *mut u64) {
    // SAFETY: as in `cohort_fork`.
    unsafe { Recorder::join(context.cast::<Recorder>(), scope) }
}

/// See [`symbols::AWAIT`].
///
/// # Safety
///
/// `context` is that of the running instance, and the scope one that is not joined yet.
pub unsafe extern "C" fn cohort_await(context: *mut Context, scope: *mut u64, index: i64) {
    // SAFETY: as in `cohort_fork`.
    unsafe { Recorder::await_strand(context.cast::<Recorder>(), scope, index) }
}

/// See [`symbols::STR_EQUAL`].
///
/// # Safety
///
/// Both are texts as the ABI has them.
pub unsafe extern "C" fn cohort_str_equal(a: *const u64, b: *const u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { u32::from(text_bytes(a) == text_bytes(b)) }
}

/// The bytes of a text.
///
/// # Safety
///
/// `text` points at a text in the ABI's layout that lives as long as `'t`.
pub(crate) unsafe fn text_bytes<'t>(text: *const u64) -> &'t [u8] {
    // SAFETY: the caller's promise: the length in bytes comes first, then the bytes.
    unsafe { std::slice::from_raw_parts(text.add(1).cast(), text.read() as usize) }
}

/// See [`symbols::DEBUG`].
///
/// # Safety
///
/// `context` is that of the running instance, and `slots` is a value of the type that the manifest
/// says. Other instances may run before this returns.
pub unsafe extern "C" fn cohort_debug(context: *mut Context, debug: u32, slots: *const u64) {
    // SAFETY: as in `cohort_record`; no reference to the recorder is held meanwhile.
    unsafe { Recorder::debug(context.cast::<Recorder>(), debug, slots) }
}

/// See [`symbols::GHOST`].
///
/// # Safety
///
/// `context` is that of the running instance.
pub unsafe extern "C" fn cohort_ghost(context: *mut Context, handle: u64, levels: u32) -> u64 {
    // SAFETY: as in `cohort_record`.
    unsafe { (*context.cast::<Recorder>()).ghost(handle, levels) }
}
