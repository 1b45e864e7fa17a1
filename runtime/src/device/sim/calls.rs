//! What kernels call on the simulator: barriers, copies and products. Each has the *context* of the thread that calls, whose
//! coroutine is switched from where the thread has to wait for others.

use std::ffi::c_void;

use corosensei::Yielder;

use super::copies::Copies;
use super::warp::{Product, Shuffle, Together};
use super::warpgroup::Product as OfGroup;

/// Back from a thread to what runs it.
pub type Switch = Yielder<(), Wait>;

/// Why a thread does not go on.
pub enum Wait {
    /// For all threads of the block.
    Barrier,
    /// For some threads of the block.
    Named(Named),
    /// For all threads of its cluster's blocks.
    Cluster,
    /// For all threads of all blocks.
    Grid,
    /// For all threads of its warp.
    Warp(Together),
    /// For all threads of its warpgroup.
    Warpgroup(OfGroup),
    /// An address is not a multiple of the bytes that it would copy at once.
    Misaligned(i64),
}

/// A barrier of some warpgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub barrier: i64,
    /// How many threads wait for each other.
    pub threads: i64,
}

/// What the `context` of a thread's calls points to.
pub struct Context {
    pub switch: *const Switch,
    pub copies: Copies,
    /// Blocks along the first dim of the grid.
    pub grid_blocks: i64,
}

/// See [`cohort_abi::gpu::BARRIER`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_barrier(context: *mut c_void) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Barrier) }
}

/// See [`cohort_abi::gpu::NAMED_BARRIER`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_named_barrier(
    context: *mut c_void,
    barrier: i64,
    threads: i64,
) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Named(Named { barrier, threads })) }
}

/// See [`cohort_abi::gpu::GRID_DIM`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_grid_dim(context: *mut c_void) -> i64 {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { (*context.cast::<Context>()).grid_blocks }
}

/// See [`cohort_abi::gpu::GRID_BARRIER`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_grid_barrier(context: *mut c_void) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Grid) }
}

/// See [`cohort_abi::gpu::CLUSTER_BARRIER`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_cluster_barrier(context: *mut c_void) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Cluster) }
}

/// See [`cohort_abi::gpu::MULTIPLY`].
///
/// # Safety
///
/// The context is what the function that calls was given, and there are as many registers as
/// [`cohort_abi::gpu::MULTIPLY`] says.
pub unsafe extern "C" fn cohort_sim_multiply(context: *mut c_void, k: i64, registers: *mut u32) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe {
        suspend(
            context,
            Wait::Warp(Together::Multiply(Product { k, registers })),
        )
    }
}

/// See [`cohort_abi::gpu::SHUFFLE`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_shuffle(context: *mut c_void, value: f32, lanes: i64) -> f32 {
    let mut value = value;
    let shuffle = Shuffle {
        lanes,
        value: &raw mut value,
    };
    // SAFETY: the context is that of the thread that runs now, and the value lives until it goes on.
    unsafe { suspend(context, Wait::Warp(Together::Shuffle(shuffle))) };
    value
}

/// See [`cohort_abi::gpu::MULTIPLY_GROUP`].
///
/// # Safety
///
/// The context is what the function that calls was given, and there are as many sums as
/// [`cohort_abi::gpu::MULTIPLY_GROUP`] says.
pub unsafe extern "C" fn cohort_sim_multiply_group(
    context: *mut c_void,
    columns: i64,
    left: u64,
    right: u64,
    sums: *mut f32,
) {
    let product = OfGroup {
        columns,
        left,
        right,
        sums,
    };
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Warpgroup(product)) }
}

/// See [`cohort_abi::gpu::COPY`].
///
/// # Safety
///
/// The context is what the function that calls was given, and both ranges have `bytes` bytes.
pub unsafe extern "C" fn cohort_sim_copy(
    context: *mut c_void,
    to: *mut u8,
    from: *const u8,
    bytes: i64,
    copied: i64,
) {
    if bytes > 0 && !(to.addr() | from.addr()).is_multiple_of(bytes as usize) {
        // SAFETY: the context is that of the thread that runs now.
        unsafe { suspend(context, Wait::Misaligned(bytes)) }
    }
    // SAFETY: the context is that of the thread that runs now; the ranges are the caller's promise.
    unsafe {
        (*context.cast::<Context>())
            .copies
            .begin(to, from, bytes, copied)
    }
}

/// See [`cohort_abi::gpu::COMMIT`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_commit(context: *mut c_void) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { (*context.cast::<Context>()).copies.commit() }
}

/// See [`cohort_abi::gpu::WAIT`].
///
/// # Safety
///
/// The context is what the function that calls was given; what it began to copy is still there.
pub unsafe extern "C" fn cohort_sim_wait(context: *mut c_void, pending: i64) {
    // SAFETY: the context is that of the thread that runs now; the ranges are the caller's promise.
    unsafe { (*context.cast::<Context>()).copies.wait(pending) }
}

/// # Safety
///
/// The context is that of the thread that runs now.
unsafe fn suspend(context: *mut c_void, wait: Wait) {
    // SAFETY: the thread's coroutine runs now, so its switch is there.
    unsafe { (*(*context.cast::<Context>()).switch).suspend(wait) }
}
