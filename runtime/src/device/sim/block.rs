//! The threads of a block, each a coroutine that is switched from at barriers and where its warp
//! multiplies; and blocks that wait for each other.
//!
//! A *round* runs every thread from one barrier to the next, warp by warp. In it threads run one after
//! another, in the order of their numbers or against it, by turns from round to round and block to
//! block: what a thread reads without a barrier behind the write is not there yet in the one order or,
//! where it is overwritten, not there any more in the other.
//!
//! Blocks that are launched one after another run to their ends. Those that are [launched
//! together](Threads::run_together) run to the next barrier that they have in common, of their cluster or of the grid, one after
//! another, in turned orders too, each with shared memory of its own.

use std::collections::BTreeMap;
use std::ffi::c_void;

use cohort_abi::gpu::SimFn;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::calls::{Context, Named, Switch, Wait};
use super::copies::Copies;
use super::warp::{Together, WARP};
use super::warpgroup::{self, GROUP, Product as OfGroup};
use crate::device::queue::Launch;
use crate::memory::AlignedBuffer;

/// Of a thread. Kernels keep their tiles in shared memory, and what they spill is little.
const STACK_BYTES: usize = 128 << 10;

type Thread = Coroutine<(), Wait, ()>;

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
    /// Of each block that runs.
    shared: Vec<AlignedBuffer>,
    /// In which order they run.
    pub order: Order,
}

/// What a thread needs, for its coroutine.
#[derive(Clone, Copy)]
struct Call {
    function: SimFn,
    arguments: *const u64,
    block: (u64, u64),
    /// Blocks along the grid's first dim.
    grid_blocks: u64,
    thread: u64,
    shared: *mut c_void,
    shared_bytes: usize,
    context: *mut Context,
}

/// A block whose threads have begun.
struct Block {
    at: (u64, u64),
    alive: Vec<Thread>,
    /// What the threads' calls point to, for as long as these have not ended.
    contexts: Box<[Context]>,
    /// What they share.
    shared: *const [u8],
    /// The next round runs against the order of the last one.
    is_turned: bool,
    rounds: u64,
}

/// What the threads of a block have come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Ended,
    Cluster,
    Grid,
}

/// How many threads wait for their block, how many for their cluster, and how many for all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    block: usize,
    cluster: usize,
    grid: usize,
}

/// How far the threads of a warpgroup are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// All are at a named barrier.
    Named(Named),
    /// Each is at a barrier of the block or of more, or has ended.
    Stopped(Waiting),
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
        for y in 0..u64::from(launch.grid.1) {
            for x in 0..u64::from(launch.grid.0) {
                let at = (x, y, launch.grid.0);
                let call = self.call(function, arguments, at, (0, shared_bytes), poison)?;
                let mut block = self.begin(call, launch.threads, poison)?;
                // SAFETY: the caller's promise.
                let ended = unsafe { self.run_rounds(&mut block) };
                self.end(block);
                if ended? != Stop::Ended {
                    return Err(format!(
                        "block {:?} waits for other blocks, which are not launched together",
                        (x, y)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Runs a number of blocks of a function, all of them on the device at the same time, in clusters of `of_cluster`.
    ///
    /// # Safety
    ///
    /// As [`Threads::run`].
    pub unsafe fn run_together(
        &mut self,
        function: SimFn,
        (blocks, of_cluster, threads): (u32, u32, u32),
        arguments: &[u64],
        shared_bytes: usize,
        poison: u8,
    ) -> Result<(), String> {
        let mut begun = Vec::with_capacity(blocks as usize);
        for number in 0..blocks {
            let at = (u64::from(number), 0, blocks);
            let shared = (number as usize, shared_bytes);
            let call = self.call(function, arguments, at, shared, poison)?;
            begun.push(self.begin(call, threads, poison)?);
        }
        // SAFETY: the caller's promise.
        let ended = unsafe { self.run_to_ends(&mut begun, of_cluster) };
        for block in begun {
            self.end(block);
        }
        ended
    }

    /// Runs blocks from one grid barrier to the next.
    ///
    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_to_ends(&self, blocks: &mut [Block], of_cluster: u32) -> Result<(), String> {
        let all = blocks.len();
        let of_cluster = (of_cluster as usize).clamp(1, all.max(1));
        let count = all.div_ceil(of_cluster);
        let mut is_turned = false;
        for barriers in 0_u64.. {
            let mut stops = vec![Stop::Cluster; count];
            // Clusters go on by turns, each to its next barrier.
            while stops.contains(&Stop::Cluster) {
                for number in self.order.numbers(count, is_turned) {
                    if stops[number] == Stop::Cluster {
                        let first = number * of_cluster;
                        let own = &mut blocks[first..all.min(first + of_cluster)];
                        // SAFETY: the caller's promise.
                        stops[number] = unsafe { self.run_cluster(own, is_turned)? };
                    }
                }
                is_turned = !is_turned;
            }
            let waiting = stops.iter().filter(|stop| **stop == Stop::Grid).count();
            if waiting == 0 {
                break;
            }
            if waiting < count {
                return Err(format!(
                    "{waiting} of {count} clusters wait for all blocks after {barriers} such barriers, \
                     and the rest have ended"
                ));
            }
        }
        Ok(())
    }

    /// Runs a cluster's blocks to their next barrier with others; all of them have to come to it.
    ///
    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_cluster(&self, blocks: &mut [Block], is_turned: bool) -> Result<Stop, String> {
        let mut stops = Vec::with_capacity(blocks.len());
        for number in self.order.numbers(blocks.len(), is_turned) {
            // SAFETY: the caller's promise.
            stops.push(unsafe { self.run_rounds(&mut blocks[number])? });
        }
        let count = |stop| stops.iter().filter(|found| **found == stop).count();
        let all = stops.len();
        match [Stop::Ended, Stop::Cluster, Stop::Grid].map(count) {
            [ended, 0, 0] if ended == all => Ok(Stop::Ended),
            [0, waiting, 0] if waiting == all => Ok(Stop::Cluster),
            [0, 0, waiting] if waiting == all => Ok(Stop::Grid),
            [ended, cluster, grid] => Err(format!(
                "{grid} of {all} blocks wait for all blocks, {cluster} for their cluster, and {ended} have ended"
            )),
        }
    }

    /// What the threads of a block are called with; its shared memory is the one of this number.
    fn call(
        &mut self,
        function: SimFn,
        arguments: &[u64],
        (x, y, grid_blocks): (u64, u64, u32),
        (number, shared_bytes): (usize, usize),
        poison: u8,
    ) -> Result<Call, String> {
        if self.shared.len() <= number {
            self.shared.resize_with(number + 1, AlignedBuffer::default);
        }
        let shared = &mut self.shared[number];
        shared
            .ensure(shared_bytes, "the simulated GPU")
            .map_err(|error| error.to_string())?;
        let shared = shared.bytes_mut();
        shared[..shared_bytes].fill(poison);
        Ok(Call {
            function,
            arguments: arguments.as_ptr(),
            block: (x, y),
            grid_blocks: grid_blocks.into(),
            thread: 0,
            shared: shared.as_mut_ptr().cast(),
            shared_bytes,
            context: std::ptr::null_mut(),
        })
    }

    fn begin(&mut self, call: Call, threads: u32, poison: u8) -> Result<Block, String> {
        let new = || Context {
            switch: std::ptr::null(),
            copies: Copies::new(poison),
            grid_blocks: call.grid_blocks as i64,
        };
        let mut contexts: Box<[Context]> = (0..threads).map(|_| new()).collect();
        let mut alive: Vec<Thread> = Vec::with_capacity(contexts.len());
        for (thread, context) in contexts.iter_mut().enumerate() {
            alive.push(self.start(Call {
                thread: thread as u64,
                context,
                ..call
            })?);
        }
        Ok(Block {
            at: call.block,
            alive,
            contexts,
            shared: std::ptr::slice_from_raw_parts(call.shared.cast(), call.shared_bytes),
            is_turned: (call.block.0 + call.block.1) % 2 == 1,
            rounds: 0,
        })
    }

    /// Takes the stacks of a block back.
    fn end(&mut self, block: Block) {
        for mut thread in block.alive {
            if !thread.done() {
                // SAFETY: what is on the stack is compiled code, which owns nothing.
                unsafe { thread.force_reset() };
            }
            self.spare.push(thread.into_stack());
        }
        drop(block.contexts);
    }

    /// Runs the threads of a block until they have ended or wait for the other blocks.
    ///
    /// # Safety
    ///
    /// As [`Threads::run`].
    unsafe fn run_rounds(&self, block: &mut Block) -> Result<Stop, String> {
        let all = block.alive.len();
        let at = block.at;
        loop {
            let mut groups: Vec<&mut [Thread]> = block.alive.chunks_mut(GROUP).collect();
            let mut states = vec![State::Ready; groups.len()];
            while states.contains(&State::Ready) {
                for number in self.order.numbers(groups.len(), block.is_turned) {
                    if states[number] != State::Ready {
                        continue;
                    }
                    let threads = &mut *groups[number];
                    let (order, is_turned) = (self.order, block.is_turned);
                    // SAFETY: the caller's promise.
                    let state = unsafe { run_group(threads, (order, is_turned), block.shared) };
                    let in_block = |problem| format!("in block {at:?}, {problem}");
                    states[number] = state.map_err(in_block)?;
                }
                if meet_at_named(&mut states)
                    .map_err(|problem| format!("in block {at:?}, {problem}"))?
                {
                    block.is_turned = !block.is_turned;
                    block.rounds += 1;
                }
            }
            let mut waiting = Waiting::default();
            for state in states {
                if let State::Stopped(of_group) = state {
                    waiting.add(of_group);
                }
            }
            let Waiting {
                block: some,
                cluster,
                grid,
            } = waiting;
            if some + cluster + grid == 0 {
                return Ok(Stop::Ended);
            }
            if some < all && cluster + grid == 0 {
                return Err(format!(
                    "in block {at:?}, {some} of {all} threads wait at a barrier after {} others, \
                     and the rest have ended",
                    block.rounds
                ));
            }
            if some < all && cluster < all && grid < all {
                return Err(format!(
                    "in block {at:?}, {grid} of {all} threads wait for all blocks, {cluster} for those of the \
                     cluster, and {some} at a barrier of the block"
                ));
            }
            block.is_turned = !block.is_turned;
            block.rounds += 1;
            if grid > 0 {
                return Ok(Stop::Grid);
            }
            if cluster > 0 {
                return Ok(Stop::Cluster);
            }
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

impl Waiting {
    fn add(&mut self, other: Waiting) {
        self.block += other.block;
        self.cluster += other.cluster;
        self.grid += other.grid;
    }
}

/// Lets warpgroups go on that are at a named barrier with all that it is for; whether there are some.
fn meet_at_named(states: &mut [State]) -> Result<bool, String> {
    let mut waiting: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for state in &*states {
        if let State::Named(Named { barrier, threads }) = *state {
            let (count, wanted) = waiting.entry(barrier).or_insert((0, threads));
            *count += GROUP as i64;
            if *wanted != threads || *count > threads {
                return Err(format!(
                    "threads wait at barrier {barrier} for {wanted} and for {threads}, and are {count}"
                ));
            }
        }
    }
    let mut has_moved = false;
    for state in &mut *states {
        if let State::Named(Named { barrier, threads }) = *state
            && waiting[&barrier].0 == threads
        {
            *state = State::Ready;
            has_moved = true;
        }
    }
    match waiting.into_iter().next() {
        Some((barrier, (count, threads))) if !has_moved => Err(format!(
            "{count} threads wait at barrier {barrier} for {threads}, and the rest elsewhere"
        )),
        _ => Ok(has_moved),
    }
}

/// Runs the threads of a warpgroup to the next barrier of the block or of more, or to their end, warp by warp, and what they multiply on
/// the way.
///
/// # Safety
///
/// As [`Threads::run`]; the memory is what the block's threads share.
unsafe fn run_group(
    threads: &mut [Thread],
    (order, is_turned): (Order, bool),
    shared: *const [u8],
) -> Result<State, String> {
    loop {
        let mut waiting = Waiting::default();
        let mut named = Vec::new();
        let mut products = Vec::new();
        let mut warps: Vec<&mut [Thread]> = threads.chunks_mut(WARP).collect();
        for number in order.numbers(warps.len(), is_turned) {
            let lanes = &mut *warps[number];
            let order = order.numbers(lanes.len(), is_turned);
            // SAFETY: the caller's promise.
            let (of_warp, of_group) = unsafe { run_warp(lanes, &order, &mut named)? };
            waiting.add(of_warp);
            let of_group = of_group.into_iter();
            products.extend(of_group.map(|(lane, product)| (number * WARP + lane, product)));
        }
        if let Some((&first, rest)) = named.split_first() {
            let count = 1 + rest.iter().filter(|own| **own == first).count();
            if count == GROUP {
                return Ok(State::Named(first));
            }
            return Err(format!(
                "{count} of the {GROUP} threads of a warpgroup wait at barrier {}, the rest do not",
                first.barrier
            ));
        }
        if products.is_empty() {
            return Ok(State::Stopped(waiting));
        }
        if products.len() != GROUP {
            let some = products.len();
            return Err(format!(
                "{some} of the {GROUP} threads of a warpgroup multiply, the rest do not"
            ));
        }
        products.sort_by_key(|(thread, _)| *thread);
        let products: Vec<OfGroup> = products.into_iter().map(|(_, product)| product).collect();
        // SAFETY: each thread gave its own registers, and waits; no thread runs, so nobody writes what they share.
        unsafe { warpgroup::multiply(&products, &*shared)? };
    }
}

/// Runs the threads of a warp to the next barrier, their end, or what their warpgroup multiplies, and what they compute together
/// on the way; how many are at a barrier of either kind, and what lanes give to the warpgroup.
///
/// # Safety
///
/// As [`Threads::run`].
unsafe fn run_warp(
    lanes: &mut [Thread],
    order: &[usize],
    named: &mut Vec<Named>,
) -> Result<(Waiting, Vec<(usize, OfGroup)>), String> {
    loop {
        let mut waiting = Waiting::default();
        let mut of_group = Vec::new();
        let mut together: Vec<(usize, Together)> = Vec::new();
        for lane in order {
            match lanes[*lane].resume(()) {
                CoroutineResult::Yield(Wait::Barrier) => waiting.block += 1,
                CoroutineResult::Yield(Wait::Named(barrier)) => named.push(barrier),
                CoroutineResult::Yield(Wait::Cluster) => waiting.cluster += 1,
                CoroutineResult::Yield(Wait::Grid) => waiting.grid += 1,
                CoroutineResult::Yield(Wait::Warp(own)) => together.push((*lane, own)),
                CoroutineResult::Yield(Wait::Warpgroup(product)) => of_group.push((*lane, product)),
                CoroutineResult::Yield(Wait::Misaligned(bytes)) => {
                    return Err(format!(
                        "a thread copies {bytes} bytes at once from or to an address that is no \
                         multiple of them"
                    ));
                }
                CoroutineResult::Return(()) => {}
            }
        }
        if together.is_empty() {
            return Ok((waiting, of_group));
        }
        together.sort_by_key(|(lane, _)| *lane);
        let together: Vec<Together> = together.into_iter().map(|(_, own)| own).collect();
        // SAFETY: each thread gave its own registers, and waits.
        unsafe { super::warp::run(together)? };
    }
}
