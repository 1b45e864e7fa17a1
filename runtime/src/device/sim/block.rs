//! The threads of a block, each a coroutine that is switched from at barriers.
//!
//! A *round* runs every thread from one barrier to the next. In it threads run one after another, in
//! the order of their numbers or against it, by turns from round to round and block to block: what a
//! thread reads without a barrier behind the write is not there yet in the one order or, where it is
//! overwritten, not there any more in the other.

use std::ffi::c_void;

use cohort_abi::gpu::SimFn;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::device::queue::Launch;
use crate::memory::AlignedBuffer;

/// Of a thread. Kernels keep their tiles in shared memory, and what they spill is little.
const STACK_BYTES: usize = 128 << 10;

type Switch = Yielder<(), ()>;
type Thread = Coroutine<(), (), ()>;

/// Stacks and shared memory, used again from block to block.
#[derive(Default)]
pub struct Threads {
    spare: Vec<DefaultStack>,
    shared: AlignedBuffer,
}

/// What a thread needs, for its coroutine.
#[derive(Clone, Copy)]
struct Call {
    function: SimFn,
    arguments: *const u64,
    block: (u64, u64),
    thread: u64,
    shared: *mut c_void,
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
                };
                // SAFETY: the caller's promise.
                unsafe { self.run_block(call, launch.threads)? };
            }
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_block(&mut self, call: Call, threads: u32) -> Result<(), String> {
        let mut alive: Vec<Thread> = Vec::with_capacity(threads as usize);
        for thread in 0..u64::from(threads) {
            let call = Call { thread, ..call };
            alive.push(self.start(call)?);
        }
        let mut is_backwards = (call.block.0 + call.block.1) % 2 == 1;
        let mut round = 0_u64;
        loop {
            let mut waiting = 0;
            for index in 0..alive.len() {
                let index = match is_backwards {
                    true => alive.len() - 1 - index,
                    false => index,
                };
                match alive[index].resume(()) {
                    CoroutineResult::Yield(()) => waiting += 1,
                    CoroutineResult::Return(()) => {}
                }
            }
            let all = alive.len();
            if waiting == 0 || waiting < all {
                for mut thread in alive {
                    if !thread.done() {
                        // SAFETY: what is on the stack is compiled code, which owns nothing.
                        unsafe { thread.force_reset() };
                    }
                    self.spare.push(thread.into_stack());
                }
                return match waiting {
                    0 => Ok(()),
                    _ => Err(format!(
                        "in block {:?}, {waiting} of {all} threads wait at a barrier after {round} \
                         others, and the rest have ended",
                        call.block
                    )),
                };
            }
            is_backwards = !is_backwards;
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
            // SAFETY: `Threads::run` requires what the function takes; the switch outlives the call.
            unsafe {
                (call.function)(
                    call.arguments,
                    call.block.0,
                    call.block.1,
                    call.thread,
                    call.shared,
                    std::ptr::from_ref(switch).cast_mut().cast(),
                );
            }
        }))
    }
}

/// See [`cohort_abi::gpu::BARRIER`].
///
/// # Safety
///
/// The context is what the function that calls was given.
pub unsafe extern "C" fn cohort_sim_barrier(context: *mut c_void) {
    // SAFETY: the context is the switch of the thread's coroutine, which runs now.
    unsafe { (*context.cast::<Switch>()).suspend(()) }
}
