//! A stack of its own for the control program, which can be left in the middle.
//!
//! Compiled code has no way to unwind: when it gives an instance up, it calls into the runtime and
//! expects never to come back. So it runs on a coroutine. Giving up *stops* the coroutine, the
//! runtime throws its frames away without running anything in them (frames of compiled code own nothing: all memory
//! of an instance is the recorder's) and starts a fresh coroutine on the same stack. An instance
//! that succeeds costs two switches of a few nanoseconds.
//!
//! A coroutine is also what lets an instance wait: where a tensor decides, compiled code *forces*
//! it, the coroutine is suspended, and other instances run on coroutines of theirs until the value
//! is computed. Programs that never force share one coroutine.
//!
//! What is on a stack owns nothing, so it can also be copied, and a coroutine that has gone on can be put back to
//! where it waited ([`Checkpoint`]).

mod gate;
mod signal;

use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::ptr;

use cohort_abi::{Context, EntryFn};
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult};

use crate::error::Error;
use crate::memory;

pub use gate::Gate;
use gate::{Input, Switch};
pub use signal::{Event, Signal, Strand};

/// What compiled code may still use below [`cohort_abi::Context::stack_limit`], for the runtime's
/// functions that it calls and for a frame that checks late.
const MARGIN_BYTES: usize = 256 << 10;
/// Of a stack that has been deeper, this much stays in memory for the next instance.
const KEPT_BYTES: usize = 128 << 10;
/// What is looked at below that to see whether it has been deeper: more than one frame has.
const PROBED_BYTES: usize = 32 << 10;

/// Deeper stacks are not copied: the copy would take longer than what it saves.
const MOST_SAVED_BYTES: usize = SWITCH_BYTES + (16 << 10);
/// How far below [`Gate::waiting_frame`] the stack may be in use: by the rest of that frame, and by the switch.
const SWITCH_BYTES: usize = if cfg!(debug_assertions) {
    16 << 10
} else {
    1 << 10
};

/// What code on a fiber runs with.
#[derive(Clone, Copy)]
pub struct Host {
    /// What it is given as its context.
    pub context: *mut Context,
    /// Its way back, which the fiber opens before the code begins.
    pub gate: *mut Gate,
}

/// One instance to run.
#[derive(Clone, Copy)]
pub struct Job {
    /// The program's entry.
    pub entry: EntryFn,
    /// What it runs with.
    pub host: Host,
    /// The slots of its arguments.
    pub arguments: *const u64,
    /// Where the slots of its result go.
    pub results: *mut u64,
}

type Control = Coroutine<Input, Signal, Infallible>;

/// A fiber as it was when it waited: its frames, and where the coroutine stood.
pub struct Checkpoint {
    /// From this address on to where the stack begins.
    from: usize,
    frames: Vec<MaybeUninit<u8>>,
    /// Never dropped: the stack that it names is the fiber's.
    control: MaybeUninit<Control>,
}

// SAFETY: these are bytes, which mean nothing but to the fiber that they are of. It goes from thread to thread as it does.
unsafe impl Send for Checkpoint {}

impl Default for Checkpoint {
    fn default() -> Checkpoint {
        Checkpoint {
            from: 0,
            frames: Vec::new(),
            control: MaybeUninit::uninit(),
        }
    }
}

/// A coroutine on a stack of its own, for one instance after another.
pub struct Fiber {
    /// One of the two is there, except inside a function of this type.
    coroutine: Option<Control>,
    spare: Option<DefaultStack>,
    stack_limit: u64,
    /// Where the stack begins; it grows down.
    stack_base: usize,
    /// Whether the coroutine waits for a decision.
    is_suspended: bool,
}

impl Fiber {
    /// Reserves a stack; its pages are taken when they are first used.
    pub fn new(stack_bytes: u64) -> Result<Fiber, Error> {
        let bytes = usize::try_from(stack_bytes)
            .unwrap_or(usize::MAX)
            .clamp(4 * MARGIN_BYTES, usize::MAX / 4);
        let stack = DefaultStack::new(bytes).map_err(|source| Error::OutOfMemory {
            purpose: "the stack of the control program (--max-depth)",
            bytes: stack_bytes,
            source,
        })?;
        // The guard page is part of what `limit` counts; the margin is far bigger than a page.
        let stack_limit = stack.limit().get() + MARGIN_BYTES;
        Ok(Fiber {
            stack_base: stack.base().get(),
            coroutine: None,
            spare: Some(stack),
            stack_limit: stack_limit as u64,
            is_suspended: false,
        })
    }

    /// For [`cohort_abi::Context::stack_limit`].
    pub fn stack_limit(&self) -> u64 {
        self.stack_limit
    }

    /// The address below which the stack must not grow, so that at most `bytes` of it are used.
    pub fn stack_limit_of(&self, bytes: u64) -> u64 {
        (self.stack_base as u64)
            .saturating_sub(bytes)
            .max(self.stack_limit)
    }

    /// Runs the entry for one instance, until it returns, is stopped or waits for a decision.
    ///
    /// # Safety
    ///
    /// The job's context and gate are valid and nothing else refers to them during the call; arguments and
    /// results are as the manifest of the entry's program says. If the instance waits, all that
    /// also holds for the call of [`Fiber::resume`] that continues it.
    pub unsafe fn run(&mut self, job: Job) -> Result<Signal, Error> {
        self.abandon();
        // SAFETY: the caller's promise; no instance is on the coroutine.
        unsafe { self.switch(Input::Run(&raw const job)) }
    }

    /// Runs a strand of an instance, as [`Fiber::run`] does its entry.
    ///
    /// # Safety
    ///
    /// As [`Fiber::run`]; the strand is one that the program asked for, and its scope is alive.
    pub unsafe fn run_strand(&mut self, host: Host, strand: Strand) -> Result<Signal, Error> {
        self.abandon();
        let start = (host, strand);
        // SAFETY: the caller's promise; no instance is on the coroutine.
        unsafe { self.switch(Input::Strand(&raw const start)) }
    }

    /// Gives a waiting instance the bits that it waits for.
    ///
    /// # Safety
    ///
    /// As [`Fiber::run`].
    pub unsafe fn resume(&mut self, bits: u32) -> Result<Signal, Error> {
        if !self.is_suspended {
            return Err(Error::Internal("a decision for nobody".to_owned()));
        }
        // SAFETY: the caller's promise; the coroutine waits for a decision.
        unsafe { self.switch(Input::Decided(bits.into())) }
    }

    /// Copies the fiber as it is now, into memory that is used again. The instance waits at `frame`, which its gate knows
    /// ([`Gate::waiting_frame`]). Whether that was done: not where the stack is deep.
    pub fn save(&self, frame: usize, to: &mut Checkpoint) -> bool {
        let from = frame.saturating_sub(SWITCH_BYTES);
        let bytes = self.stack_base.saturating_sub(from);
        let Some(coroutine) = &self.coroutine else {
            return false;
        };
        if !self.is_suspended || !(1..=MOST_SAVED_BYTES).contains(&bytes) {
            return false;
        }
        to.from = from;
        to.frames.clear();
        to.frames.reserve(bytes);
        // SAFETY: all of it is memory of the stack, which nobody runs on; below the frames that are alive lies what may
        // have been written or not, and is read as such. The coroutine's copy is used by `restore` alone, in its place.
        unsafe {
            to.frames.set_len(bytes);
            let source = ptr::with_exposed_provenance::<MaybeUninit<u8>>(from);
            ptr::copy_nonoverlapping(source, to.frames.as_mut_ptr(), bytes);
            ptr::copy_nonoverlapping(coroutine, to.control.as_mut_ptr(), 1);
        }
        true
    }

    /// Puts the fiber back to where it was: it waits for a decision again, whatever it did meanwhile.
    ///
    /// # Safety
    ///
    /// The checkpoint is of this fiber, of the instance that is on it, and all that its frames refer to outside of the
    /// stack is as it was or will be written before it is read.
    pub unsafe fn restore(&mut self, checkpoint: &Checkpoint) {
        // Whoever has the stack now, the coroutine that comes back owns it.
        std::mem::forget((self.coroutine.take(), self.spare.take()));
        let frames = &checkpoint.frames;
        // SAFETY: `save` copied them from there; nobody runs on the stack. The coroutine owned the stack when it was
        // copied, and the others that did since were forgotten.
        unsafe {
            let target = ptr::with_exposed_provenance_mut::<MaybeUninit<u8>>(checkpoint.from);
            ptr::copy_nonoverlapping(frames.as_ptr(), target, frames.len());
            self.coroutine = Some(checkpoint.control.as_ptr().read());
        }
        self.is_suspended = true;
    }

    /// Throws the frames of an instance that waits away.
    pub fn abandon(&mut self) {
        if std::mem::take(&mut self.is_suspended) {
            self.throw_frames_away();
        }
    }

    /// Gives the memory of a stack that has been deep back to the system, as long as no instance is
    /// on it.
    pub fn trim(&mut self) {
        let limit = self.stack_limit as usize;
        let end = self.stack_base.saturating_sub(KEPT_BYTES).max(limit);
        let probe = end.saturating_sub(PROBED_BYTES).max(limit);
        if !self.is_suspended && memory::is_resident(probe..end) {
            // SAFETY: these are pages of the stack, which is this fiber's. No instance is on it, so
            // what is alive on it are the few frames of `run_jobs`, within what is kept.
            unsafe { memory::discard(limit..end) };
        }
    }

    /// # Safety
    ///
    /// As [`Fiber::run`]; the input is of the kind that the coroutine expects.
    unsafe fn switch(&mut self, input: Input) -> Result<Signal, Error> {
        let coroutine = match &mut self.coroutine {
            Some(coroutine) => coroutine,
            none => match self.spare.take() {
                Some(stack) => none.insert(Coroutine::with_stack(stack, run_jobs)),
                None => return Err(Error::Internal("the fiber lost its stack".to_owned())),
            },
        };
        let signal = match coroutine.resume(input) {
            CoroutineResult::Yield(signal) => signal,
            CoroutineResult::Return(never) => match never {},
        };
        let event = signal.event();
        self.is_suspended = !matches!(event, Event::Finished | Event::Stopped);
        if matches!(event, Event::Stopped) {
            self.throw_frames_away();
        }
        Ok(signal)
    }

    fn throw_frames_away(&mut self) {
        if let Some(mut coroutine) = self.coroutine.take() {
            // SAFETY: on the stack are `run_jobs`, frames of compiled code, the functions that it stops or waits by, and perhaps
            // the walk of a backward: none holds anything that must be dropped. The walk leaks the memory of the one call that it
            // is at; what grows with its tape is the recording's.
            unsafe { coroutine.force_reset() };
            self.spare = Some(coroutine.into_stack());
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        self.throw_frames_away();
    }
}

fn run_jobs(switch: &Switch, mut input: Input) -> Infallible {
    loop {
        // SAFETY: `Fiber::run` requires a valid context and gate, to which only this code refers until it
        // switches back, and arguments and results that fit the entry; `Fiber::run_strand` a strand and
        // its scope. Both are alive until the coroutine switches back, and read here. The switch outlives the
        // job: it lives at the bottom of this stack.
        unsafe {
            match input {
                Input::Run(job) => {
                    let job = *job;
                    (*job.host.gate).open(switch);
                    (job.entry)(job.host.context, job.arguments, job.results);
                }
                Input::Strand(start) => {
                    let (host, strand) = *start;
                    (*host.gate).open(switch);
                    (strand.function)(host.context, strand.scope, strand.index);
                }
                // `Fiber` gives decisions only to those who wait for one.
                Input::Decided(_) => std::process::abort(),
            }
        }
        input = switch.suspend(Event::Finished.into());
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use cohort_abi::Handle;

    /// What the code of these tests is given: as of a recorder, the context comes first.
    #[repr(C)]
    #[derive(Default)]
    struct Caller {
        context: Context,
        gate: Gate,
    }

    impl Caller {
        fn host(&mut self) -> Host {
            let caller: *mut Caller = self;
            Host {
                context: caller.cast(),
                // SAFETY: the pointer is that of a reference.
                gate: unsafe { &raw mut (*caller).gate },
            }
        }
    }

    /// Uses as much stack as the first argument says.
    unsafe extern "C" fn deep(_: *mut Context, arguments: *const u64, results: *mut u64) {
        fn down(bytes: u64) -> u64 {
            let frame = std::hint::black_box([1_u8; 4096]);
            match bytes.checked_sub(4096) {
                Some(left) => down(left) + u64::from(std::hint::black_box(frame)[17]),
                None => 0,
            }
        }
        // SAFETY: the test gives one of each.
        unsafe { results.write(down(arguments.read())) }
    }

    /// Asks for as many decisions as the first argument says, each in a frame of its own, and gives their bits as one
    /// number; stops where the last one is 7.
    unsafe extern "C" fn ask(context: *mut Context, arguments: *const u64, results: *mut u64) {
        /// # Safety
        ///
        /// As of the entry.
        unsafe fn down(context: *mut Context, left: u64, sum: u64) -> u64 {
            // Below and above what is alive when it waits, so that it must be there again.
            let frame = std::hint::black_box([sum; 40]);
            if left == 0 {
                return sum;
            }
            let asks = Event::Forced {
                handle: Handle(left),
                force: 3,
            };
            // SAFETY: the context is that of a caller, with whose gate this runs.
            let bits = unsafe {
                let gate = &raw mut (*context.cast::<Caller>()).gate;
                Gate::wait(gate, asks)
            };
            if bits == 7 {
                // SAFETY: as above; the frames own nothing.
                unsafe { (*context.cast::<Caller>()).gate.stop() };
            }
            // SAFETY: as above.
            let all = unsafe { down(context, left - 1, 10 * sum + bits) };
            assert!(std::hint::black_box(frame).iter().all(|word| *word == sum));
            all
        }
        // SAFETY: the test gives one of each.
        unsafe { results.write(down(context, arguments.read(), 0)) }
    }

    /// What a fiber that waits does next: it waits again, ends or stops.
    fn forced(signal: Result<Signal, Error>) -> Option<u64> {
        match signal.unwrap().event() {
            Event::Forced { handle, force } => {
                assert_eq!(force, 3);
                Some(handle.0)
            }
            Event::Finished => None,
            event => panic!("{event:?}"),
        }
    }

    #[test]
    fn a_fiber_goes_back_to_where_it_waited() {
        let mut fiber = Fiber::new(1 << 20).unwrap();
        let mut caller = Caller::default();
        let (argument, mut result) = (4, 0);
        let job = Job {
            entry: ask,
            host: caller.host(),
            arguments: &raw const argument,
            results: &raw mut result,
        };
        let mut saved: Vec<Checkpoint> = Vec::new();
        // SAFETY: the caller is used by nothing else; one argument and one result. Frames refer to nothing but the
        // caller.
        unsafe {
            assert_eq!(forced(fiber.run(job)), Some(4));
            for left in (0..4).rev() {
                let mut checkpoint = Checkpoint::default();
                let frame = (*job.host.gate).waiting_frame();
                assert!(fiber.save(frame, &mut checkpoint));
                // All that is alive was copied: the coroutine's stack pointer is the lowest of its words that lie there.
                let words: [usize; size_of::<Control>() / size_of::<usize>()] =
                    std::mem::transmute_copy(&checkpoint.control);
                let near = fiber.stack_base - MOST_SAVED_BYTES..fiber.stack_base;
                let lowest = words.into_iter().filter(|word| near.contains(word)).min();
                assert!(lowest.is_some_and(|pointer| pointer >= checkpoint.from));
                saved.push(checkpoint);
                let event = forced(fiber.resume(1));
                assert_eq!(event, (left > 0).then_some(left));
            }
            assert_eq!(result, 1111);
            // From the end, from where it waits, twice, and from where it has stopped.
            for (at, bits, sum) in [(3, 2, 1112), (1, 3, 1355), (1, 4, 1455), (0, 5, 5555)] {
                fiber.restore(&saved[at]);
                assert_eq!(
                    forced(fiber.resume(bits)),
                    (at < 3).then_some(3 - at as u64)
                );
                if at == 1 && bits == 3 {
                    let event = fiber.resume(7).unwrap().event();
                    assert!(matches!(event, Event::Stopped));
                    fiber.restore(&saved[1]);
                    assert_eq!(forced(fiber.resume(3)), Some(2));
                }
                for left in (0..3 - at as u64).rev() {
                    assert_eq!(forced(fiber.resume(5)), (left > 0).then_some(left));
                }
                assert_eq!(result, sum);
            }
            // Another instance is on it.
            assert_eq!(forced(fiber.run(job)), Some(4));
            fiber.abandon();
            assert!(!fiber.save(caller.gate.waiting_frame(), &mut saved[0]));
        }
    }

    #[test]
    fn deep_stacks_are_given_back_and_used_again() {
        let mut fiber = Fiber::new(64 << 20).unwrap();
        let mut caller = Caller::default();
        let mut run = |fiber: &mut Fiber, bytes: u64| {
            let mut result = 0;
            let job = Job {
                entry: deep,
                host: caller.host(),
                arguments: &bytes,
                results: &mut result,
            };
            // SAFETY: the caller is used by nothing else; one argument and one result.
            let event = unsafe { fiber.run(job) };
            assert!(matches!(event.unwrap().event(), Event::Finished));
            assert_eq!(result, bytes / 4096);
        };
        for _ in 0..2 {
            run(&mut fiber, 8 << 20);
            let deepest = fiber.stack_base - (8 << 20);
            assert!(memory::is_resident(deepest..deepest + PROBED_BYTES));
            fiber.trim();
            let kept = fiber.stack_base - KEPT_BYTES;
            assert!(!memory::is_resident(kept - (8 << 20)..kept));
            run(&mut fiber, 16 << 10);
        }
    }
}
