//! The threads of a block, each a coroutine that is switched from at barriers and where its warp
//! multiplies.
//!
//! A *round* runs every thread from one barrier to the next, warp by warp. In it threads run one after
//! another, in the order of their numbers or against it, by turns from round to round and block to
//! block: what a thread reads without a barrier behind the write is not there yet in the one order or,
//! where it is overwritten, not there any more in the other.

use std::ffi::c_void;

use cohort_abi::gpu::SimFn;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::copies::Copies;
use super::warp::{Product, WARP};
use crate::device::queue::Launch;
use crate::memory::AlignedBuffer;

/// Of a thread. Kernels keep their tiles in shared memory, and what they spill is little.
const STACK_BYTES: usize = 128 << 10;

type Switch = Yielder<(), Wait>;
type Thread = Coroutine<(), Wait, ()>;

/// Why a thread does not go on.
enum Wait {
    /// For all threads of the block.
    Barrier,
    /// For all threads of its warp.
    Warp(Product),
    /// An address is not a multiple of the bytes that it would copy at once.
    Misaligned(i64),
}

/// In which order the threads of a block run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Forward and backward by turns.
    #[default]
    Turns,
    /// By their numbers, from the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// Warps and their lanes in an order that looks random.
    Shuffled,
}

impl Order {
    /// The numbers below a count; `is_turned` where forward and backward go by turns.
    pub fn numbers(self, count: usize, is_turned: bool) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        match self {
            Order::Turns if is_turned => all.reverse(),
            Order::Turns | Order::Forward => {}
            Order::Backward => all.reverse(),
            Order::Shuffled => {
                let mut state = 0x2545_F491_4F6C_DD1D_u64;
                for at in (1..all.len()).rev() {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    all.swap(at, (state >> 33) as usize % (at + 1));
                }
            }
        }
        all
    }
}

/// Stacks and shared memory, used again from block to block.
#[derive(Default)]
pub struct Threads {
    spare: Vec<DefaultStack>,
    shared: AlignedBuffer,
    /// In which order they run.
    pub order: Order,
}

/// What a thread needs, for its coroutine.
#[derive(Clone, Copy)]
struct Call {
    function: SimFn,
    arguments: *const u64,
    block: (u64, u64),
    thread: u64,
    shared: *mut c_void,
    context: *mut Context,
}

/// What the `context` of a thread's calls points to.
struct Context {
    switch: *const Switch,
    copies: Copies,
}

impl Threads {
    /// Runs all blocks of a launch.
    ///
    /// # Safety
    ///
    /// The function is that of a kernel, and the arguments and the shared memory are what it takes.
    pub unsafe fn run(
        &mut self,
        function: SimFn,
        launch: &Launch,
        arguments: &[u64],
        shared_bytes: usize,
        poison: u8,
    ) -> Result<(), String> {
        self.shared
            .ensure(shared_bytes, "the simulated GPU")
            .map_err(|error| error.to_string())?;
        for y in 0..u64::from(launch.grid.1) {
            for x in 0..u64::from(launch.grid.0) {
                let shared = &mut self.shared.bytes_mut();
                shared[..shared_bytes].fill(poison);
                let call = Call {
                    function,
                    arguments: arguments.as_ptr(),
                    block: (x, y),
                    thread: 0,
                    shared: shared.as_mut_ptr().cast(),
                    context: std::ptr::null_mut(),
                };
                // SAFETY: the caller's promise.
                unsafe { self.run_block(call, launch.threads, poison)? };
            }
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_block(&mut self, call: Call, threads: u32, poison: u8) -> Result<(), String> {
        let new = || Context {
            switch: std::ptr::null(),
            copies: Copies::new(poison),
        };
        let mut contexts: Vec<Context> = (0..threads).map(|_| new()).collect();
        let mut alive: Vec<Thread> = Vec::with_capacity(contexts.len());
        for (thread, context) in contexts.iter_mut().enumerate() {
            alive.push(self.start(Call {
                thread: thread as u64,
                context,
                ..call
            })?);
        }
        // SAFETY: the caller's promise; the contexts live until the threads have ended.
        let ended = unsafe { self.run_rounds(&mut alive, call.block) };
        for mut thread in alive {
            if !thread.done() {
                // SAFETY: what is on the stack is compiled code, which owns nothing.
                unsafe { thread.force_reset() };
            }
            self.spare.push(thread.into_stack());
        }
        ended
    }

    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_rounds(&self, alive: &mut [Thread], block: (u64, u64)) -> Result<(), String> {
        let all = alive.len();
        let mut is_turned = (block.0 + block.1) % 2 == 1;
        let mut round = 0_u64;
        loop {
            let mut waiting = 0;
            let mut warps: Vec<&mut [Thread]> = alive.chunks_mut(WARP).collect();
            for number in self.order.numbers(warps.len(), is_turned) {
                let lanes = &mut *warps[number];
                let order = self.order.numbers(lanes.len(), is_turned);
                // SAFETY: the caller's promise.
                waiting += unsafe { run_warp(lanes, &order) }
                    .map_err(|problem| format!("in block {block:?}, {problem}"))?;
            }
            match waiting {
                0 => return Ok(()),
                _ if waiting < all => {
                    return Err(format!(
                        "in block {block:?}, {waiting} of {all} threads wait at a barrier after \
                         {round} others, and the rest have ended",
                    ));
                }
                _ => {}
            }
            is_turned = !is_turned;
            round += 1;
        }
    }

    fn start(&mut self, call: Call) -> Result<Thread, String> {
        let stack = match self.spare.pop() {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES).map_err(|error| {
                format!("no memory for the stacks of a block's threads: {error}")
            })?,
        };
        Ok(Coroutine::with_stack(stack, move |switch: &Switch, ()| {
            // The closure takes the call as a whole, and not its pointers one by one.
            let call = call;
            // SAFETY: `Threads::run` requires what the function takes; the context and the switch
            // outlive the call, and nothing else touches the context.
            unsafe {
                (*call.context).switch = switch;
                (call.function)(
                    call.arguments,
                    call.block.0,
                    call.block.1,
                    call.thread,
                    call.shared,
                    call.context.cast(),
                );
            }
        }))
    }
}

/// Runs the threads of a warp to the next barrier or their end, and what they multiply on the way; how
/// many are at a barrier.
///
/// # Safety
///
/// As [`Threads::run`].
unsafe fn run_warp(lanes: &mut [Thread], order: &[usize]) -> Result<usize, String> {
    loop {
        let mut waiting = 0;
        let mut products: Vec<(usize, Product)> = Vec::new();
        for lane in order {
            match lanes[*lane].resume(()) {
                CoroutineResult::Yield(Wait::Barrier) => waiting += 1,
                CoroutineResult::Yield(Wait::Warp(product)) => products.push((*lane, product)),
                CoroutineResult::Yield(Wait::Misaligned(bytes)) => {
                    return Err(format!(
                        "a thread copies {bytes} bytes at once from or to an address that is no \
                         multiple of them"
                    ));
                }
                CoroutineResult::Return(()) => {}
            }
        }
        if products.is_empty() {
            return Ok(waiting);
        }
        if products.len() != WARP {
            let some = products.len();
            return Err(format!(
                "{some} of the {WARP} threads of a warp multiply, the rest do not"
            ));
        }
        products.sort_by_key(|(lane, _)| *lane);
        let products: Vec<Product> = products.into_iter().map(|(_, product)| product).collect();
        // SAFETY: each thread gave its own registers, and waits.
        unsafe { super::warp::multiply(&products)? };
    }
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

/// See [`cohort_abi::gpu::MULTIPLY`].
///
/// # Safety
///
/// The context is what the function that calls was given, and there are as many registers as
/// [`cohort_abi::gpu::MULTIPLY`] says.
pub unsafe extern "C" fn cohort_sim_multiply(context: *mut c_void, k: i64, registers: *mut u32) {
    // SAFETY: the context is that of the thread that runs now.
    unsafe { suspend(context, Wait::Warp(Product { k, registers })) }
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
