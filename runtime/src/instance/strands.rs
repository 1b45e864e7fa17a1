//! Strands: parts of one instance that run and wait side by side.
//!
//! Compiled code *forks* what does not need each other and may wait ([`cohort_abi::symbols::FORK`]): a strand
//! begins on a stack of its own and runs until it waits or ends, and its caller goes on. So all that is known to
//! be needed is recorded before any of it is waited for, and one flush serves all strands of all instances. At
//! the end of the *scope* the caller waits for the strands that have not ended. A strand may wait for earlier ones
//! of its scope, whose values it needs.
//!
//! # What does not change
//!
//! A strand computes what it would have computed in its caller's place. What counts against an instance's limits
//! counts for all of its strands together, in whatever order; a strand has as much stack as its caller had left,
//! and counts depth from its caller's. Calls that are kept for gradients stand in the order of the program
//! ([`Strands::tape`]). So an instance has a result with strands if and only if it has one without, and it is the same.
//! One that meets an error, in any strand, begins again without: the error that it then ends with is the first
//! in the order of the program.
//!
//! # How many
//!
//! Stacks come from a [`StackPool`] that all instances share, the last one used first. When it is empty, the
//! caller runs the strand itself.
//!
//! So it does where [`ENOUGH`] instances and strands are there already. What waits with many others gains little: their
//! rows fill the launches of a flush. But each stack that goes on is in the caches less often, the more there are. So a
//! few instances wait side by side with all that they have, and where many are in flight, each runs its strands in
//! their turn. An instance that is alone has as many as it likes, and so it is on a device, where a launch costs the
//! same whatever its rows.

use crate::error::Error;
use crate::recorder::{Recorder, STRAND, State, StrandState};
use crate::threads::fiber::{Fiber, Signal, Strand};
use cohort_abi::Handle;

use crate::io::shown::Shown;

/// Each stack is two mappings of memory, of which a process has 65,530; instances need some as well.
const MOST_FIBERS: usize = 1 << 13;
/// As many instances and strands together fill the launches of a flush; more strands are not begun beside their callers.
pub const ENOUGH: u64 = 64;
/// A strand that took fewer steps made fewer calls, so its stack was not deep.
const SHALLOW_STEPS: u64 = 1 << 8;
/// The strand that an instance begins with.
const FIRST: u32 = 0;

/// Stacks for strands.
pub struct StackPool {
    stack_bytes: u64,
    idle: Vec<Fiber>,
    /// How many it may still make.
    left: usize,
    /// How many it gave and did not get back.
    in_use: u64,
}

impl StackPool {
    /// One of a number of which share the process.
    pub fn new(stack_bytes: u64, pools: usize) -> StackPool {
        StackPool {
            stack_bytes,
            idle: Vec::new(),
            left: MOST_FIBERS / pools,
            in_use: 0,
        }
    }

    /// The budget of strands that `alive` live instances leave.
    #[inline]
    pub fn forks_left(&self, alive: usize) -> u64 {
        match alive {
            0 | 1 => u64::MAX,
            _ => ENOUGH.saturating_sub(self.in_use + alive as u64),
        }
    }

    fn give(&mut self, fiber: Fiber) {
        self.in_use -= 1;
        self.idle.push(fiber);
    }

    fn take(&mut self) -> Option<Fiber> {
        let fiber = self.idle.pop().or_else(|| self.make());
        self.in_use += u64::from(fiber.is_some());
        fiber
    }

    fn make(&mut self) -> Option<Fiber> {
        if self.left == 0 {
            return None;
        }
        match Fiber::new(self.stack_bytes) {
            Ok(fiber) => {
                self.left -= 1;
                Some(fiber)
            }
            // The system has no other, so there are enough.
            Err(_) => {
                self.left = 0;
                None
            }
        }
    }
}

/// What a strand waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// The element of a row.
    Forced { handle: Handle, force: u32 },
    /// That a value to be shown is computed.
    Shown(Shown),
}

struct StrandPlace {
    /// Absent where no strand is.
    fiber: Option<Fiber>,
    state: StrandState,
    /// The strand that waits for this one in the end, and where it counts it.
    caller: u32,
    scope: *mut u64,
    /// Which of the scope's strands it is.
    index: i64,
    /// The number of its tape.
    tape: usize,
    /// Steps that the instance had left when it began.
    steps: u64,
    /// The scope whose strands it waits for, or null.
    joins: *mut u64,
}

impl StrandPlace {
    fn new(fiber: Fiber) -> StrandPlace {
        StrandPlace {
            fiber: Some(fiber),
            state: StrandState::default(),
            caller: FIRST,
            scope: std::ptr::null_mut(),
            index: 0,
            tape: 0,
            steps: 0,
            joins: std::ptr::null_mut(),
        }
    }
}

/// The strands of one instance.
pub struct Strands {
    places: Vec<StrandPlace>,
    free: Vec<u32>,
    running: u32,
    /// Those that can go on, with what they are told; the last one first.
    ready: Vec<(u32, u32)>,
    /// Those that wait, in the order in which they began to.
    waiting: Vec<(u32, Wait)>,
    /// Those that waited for the last flush.
    answered: Vec<(u32, Wait)>,
    /// Strands that others wait for, and these.
    awaited: Vec<(u32, u32)>,
    tapes: Vec<Vec<u64>>,
    has_forked: bool,
}

impl Strands {
    /// None but the one that an instance begins with, on this fiber.
    pub fn new(fiber: Fiber) -> Strands {
        Strands {
            places: vec![StrandPlace::new(fiber)],
            free: Vec::new(),
            running: FIRST,
            ready: Vec::new(),
            waiting: Vec::new(),
            answered: Vec::new(),
            awaited: Vec::new(),
            tapes: Vec::new(),
            has_forked: false,
        }
    }

    /// The fiber of the strand that runs.
    pub fn fiber(&mut self) -> Result<&mut Fiber, Error> {
        let fiber = self.places[self.running as usize].fiber.as_mut();
        fiber.ok_or_else(|| Error::Internal("a strand without a stack".to_owned()))
    }

    /// Whether some strand was begun, beside the first.
    pub fn has_forked(&self) -> bool {
        self.has_forked
    }

    /// Whether there is no strand but the first.
    pub fn is_single(&self) -> bool {
        self.places.len() == 1 + self.free.len()
    }

    /// Whether the first strand runs.
    pub fn is_first(&self) -> bool {
        self.running == FIRST
    }

    /// What is waited for.
    pub fn waits(&self) -> impl Iterator<Item = &Wait> {
        self.waiting.iter().map(|(_, wait)| wait)
    }

    /// The instance begins: from now on steps are counted.
    pub fn begin(&mut self, state: &State) {
        self.places[FIRST as usize].steps = state.steps_left();
    }

    /// What those wait for that wait now is computed: none waits any more.
    pub fn answer(&mut self) {
        self.answered.clear();
        std::mem::swap(&mut self.waiting, &mut self.answered);
    }

    /// Nobody waits any more, as the instance stands where it stood before.
    pub fn forget_waits(&mut self) {
        self.waiting.clear();
    }

    /// One of those that waited until [`Strands::answer`], by its number from 0 on, in the order in which they began to.
    pub fn answered(&self, index: usize) -> Option<(u32, Wait)> {
        self.answered.get(index).copied()
    }

    /// The strand that runs waits.
    pub fn wait(&mut self, wait: Wait) {
        self.waiting.push((self.running, wait));
    }

    /// Lets another strand be the one that runs.
    #[inline]
    pub fn switch_to(&mut self, strand: u32, state: &mut State) {
        if strand != self.running {
            state.swap_strand(&mut self.places[self.running as usize].state);
            state.swap_strand(&mut self.places[strand as usize].state);
            self.running = strand;
        }
    }

    /// Goes on with a strand that can; `None` where all wait.
    ///
    /// # Safety
    ///
    /// As [`Fiber::resume`].
    pub unsafe fn next(&mut self, recorder: &mut Recorder) -> Result<Option<Signal>, Error> {
        let Some((strand, bits)) = self.ready.pop() else {
            return Ok(None);
        };
        self.switch_to(strand, recorder.state_mut());
        // SAFETY: the caller's promise.
        unsafe { self.fiber()?.resume(bits) }.map(Some)
    }

    /// Begins a strand that the one that runs asks for, if there is a stack for it.
    ///
    /// # Safety
    ///
    /// As [`Fiber::run_strand`], [`Fiber::resume`].
    pub unsafe fn fork(
        &mut self,
        recorder: &mut Recorder,
        pool: &mut StackPool,
        strand: Strand,
    ) -> Result<Signal, Error> {
        let Some(fiber) = pool.take() else {
            recorder.strand_refused();
            // SAFETY: the caller's promise.
            return unsafe { self.fiber()?.resume(0) };
        };
        self.has_forked = true;
        recorder.strand_began();
        let caller = self.running;
        self.ready.push((caller, 1));
        let state = recorder.state_mut();
        let stack_limit = fiber.stack_limit_of(strand.stack_left);
        let place = StrandPlace {
            state: state.fork(stack_limit, self.tapes.len() as u64),
            caller,
            scope: strand.scope,
            index: strand.index,
            tape: self.tapes.len(),
            steps: state.steps_left(),
            ..StrandPlace::new(fiber)
        };
        if place.state.tape.is_some() {
            self.tapes.push(Vec::new());
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = place;
                number
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        };
        self.switch_to(number, state);
        // SAFETY: the scope is the caller's, who does not run.
        unsafe { *strand.scope += 1 };
        // SAFETY: the caller's promise.
        unsafe { self.fiber()?.run_strand(recorder.host(), strand) }
    }

    /// The strand that runs goes on when those of the scope have ended.
    ///
    /// # Safety
    ///
    /// The scope is one of that strand's.
    pub unsafe fn join(&mut self, scope: *mut u64) {
        // SAFETY: the caller's promise.
        match unsafe { scope.read() } {
            0 => self.ready.push((self.running, 0)),
            _ => self.places[self.running as usize].joins = scope,
        }
    }

    /// The strand that runs goes on when the one of that scope and index has ended.
    pub fn await_strand(&mut self, scope: *mut u64, index: u32) {
        let index = i64::from(index);
        let is_it = |place: &StrandPlace| {
            place.fiber.is_some() && std::ptr::eq(place.scope, scope) && place.index == index
        };
        match self.places.iter().position(is_it) {
            Some(strand) => self.awaited.push((strand as u32, self.running)),
            None => self.ready.push((self.running, 0)),
        }
    }

    /// The strand that runs, which is not the first, has ended.
    ///
    /// # Safety
    ///
    /// Its caller is alive.
    pub unsafe fn end(&mut self, recorder: &mut Recorder, pool: &mut StackPool) {
        let ended = self.running;
        recorder.strand_ended();
        let (caller, scope) = {
            let place = &self.places[ended as usize];
            (place.caller, place.scope)
        };
        // Which strand runs next is not known, but this one's state is nobody's.
        let state = recorder.state_mut();
        self.switch_to(caller, state);
        let place = &mut self.places[ended as usize];
        if let Some(tape) = place.state.tape.take() {
            self.tapes[place.tape] = tape;
        }
        if let Some(mut fiber) = place.fiber.take() {
            if place.steps.saturating_sub(state.steps_left()) >= SHALLOW_STEPS {
                fiber.trim();
            }
            pool.give(fiber);
        }
        self.free.push(ended);
        let freed = self.awaited.extract_if(.., |(strand, _)| *strand == ended);
        self.ready.extend(freed.map(|(_, waiting)| (waiting, 0)));
        // SAFETY: the scope is its caller's, who has not joined it yet.
        let left = unsafe {
            *scope -= 1;
            scope.read()
        };
        let joins = &mut self.places[caller as usize].joins;
        if left == 0 && *joins == scope {
            *joins = std::ptr::null_mut();
            self.ready.push((caller, 0));
        }
    }

    /// Bytes of the tapes of all strands but the one that runs.
    pub fn tape_bytes(&self) -> u64 {
        let parked = self.places.iter().flat_map(|place| &place.state.tape);
        8 * parked
            .chain(&self.tapes)
            .map(|tape| tape.len() as u64)
            .sum::<u64>()
    }

    /// The calls of an instance that has ended, in the order of the program: those of each strand in its
    /// caller's place.
    pub fn tape(&mut self, first: Vec<u64>) -> Vec<u64> {
        if self.tapes.is_empty() {
            return first;
        }
        let mut whole = Vec::new();
        let mut open = vec![(first, 0)];
        while let Some((tape, mut at)) = open.pop() {
            let begin = at;
            while at < tape.len() && tape[at] != STRAND {
                at += 3 + tape[at + 2] as usize;
            }
            whole.extend_from_slice(&tape[begin..at]);
            if let Some(number) = tape.get(at + 1) {
                let strand = std::mem::take(&mut self.tapes[*number as usize]);
                open.push((tape, at + 3));
                open.push((strand, 0));
            }
        }
        whole
    }

    /// Throws all frames away: the instance is done, or begins again.
    pub fn clear(&mut self, state: &mut State, pool: &mut StackPool) {
        self.switch_to(FIRST, state);
        let (first, others) = self.places.split_at_mut(1);
        for mut fiber in others.iter_mut().filter_map(|place| place.fiber.take()) {
            fiber.abandon();
            fiber.trim();
            pool.give(fiber);
        }
        first[0].joins = std::ptr::null_mut();
        first[0].state = StrandState::default();
        if let Some(fiber) = &mut first[0].fiber {
            fiber.abandon();
        }
        self.places.truncate(1);
        self.free.clear();
        self.ready.clear();
        self.waiting.clear();
        self.awaited.clear();
        self.tapes.clear();
        self.running = FIRST;
        self.has_forked = false;
    }

    /// As [`Strands::trim`], of an instance that has just ended; the system is asked only where it took enough steps.
    pub fn trim_unless_shallow(&mut self, state: &State) {
        let steps = self.places[FIRST as usize].steps;
        if steps.saturating_sub(state.steps_left()) >= SHALLOW_STEPS {
            self.trim();
        }
    }

    /// Gives the memory of the first strand's stack back where it was deep.
    pub fn trim(&mut self) {
        if let Some(fiber) = &mut self.places[FIRST as usize].fiber {
            fiber.trim();
        }
    }
}
