//! One instance that is alive: a fiber, what the recorder knows of it, and where it stands.
//!
//! What an instance leaves behind when it is done, stack and memory, serves the next one.

mod ahead;
pub(crate) mod alignment;
mod machine;
mod run;
pub(crate) mod strands;

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::failure::{InstanceError, Stop};
use crate::memory::bump::Bump;
use crate::recorder::State;
use crate::speculation::Predictor;
use crate::threads::fiber::Fiber;

use ahead::Ahead;
use alignment::Alignment;
pub use machine::Machine;
use strands::{StackPool, Strands};

/// Which instance of the input it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// From 0 on, in the order of the input.
    pub number: u64,
    /// The chunk of inputs that its arguments are in.
    pub chunk: usize,
    /// Its number in that chunk.
    pub index: usize,
}

/// What stands between an instance and its line.
#[derive(Debug)]
pub enum Status {
    /// It, or each of its strands, waits for what a flush computes.
    Waits,
    /// Its results are written; their rows wait for the next flush.
    Finished,
    /// It has no result, and an error record instead.
    Failed(InstanceError),
    /// There was too little for it because of the others, and it must run again without them.
    Crowded(Again),
}

/// How an instance runs again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Those of one number run together, the lower numbers first; without one it runs alone.
    pub crowd: Option<u64>,
    /// The time that it has then, if not all.
    time: Option<Duration>,
}

/// What an instance begins with.
#[derive(Clone, Copy)]
struct Beginning {
    key: u64,
    arguments: *const u64,
    input_bytes: u64,
}

/// What all instances share that are alive.
pub struct Common {
    /// Where instances that were just admitted begin, so that they meet the others.
    pub alignment: Alignment,
    /// Stacks for strands.
    pub pool: StackPool,
    /// What decisions are guessed by, where they are.
    pub predictor: Option<Predictor>,
    /// How many instances are alive.
    pub alive: usize,
}

/// A place for an instance, used for one after another.
pub struct Instance {
    /// Which instance is at this place.
    pub ticket: Ticket,
    /// How far it is.
    pub status: Status,
    /// Why only those of its crowd are alive, if it runs again.
    pub again: Option<Again>,
    /// Whether it made no decision yet.
    is_new: bool,
    /// The number of the first flush after it began.
    pub generation: u64,
    /// Of a run that is profiled.
    pub admitted: Option<Instant>,
    /// Its id as JSON text, where values are shown.
    pub id: String,
    /// How many values it has shown since it began.
    pub shown: u64,
    /// How many it had shown before it began again, which are not shown a second time.
    pub shown_before: u64,
    strands: Strands,
    beginning: Beginning,
    /// Rows that were computed before it began again.
    repeated_rows: u64,
    ahead: Ahead,
    state: State,
    results: Box<[u64]>,
}

impl Instance {
    /// An empty place, with a stack of `stack_bytes` bytes and `result_slots` slots for a result.
    pub fn new(stack_bytes: u64, result_slots: usize) -> Result<Box<Instance>, Error> {
        let fiber = Fiber::new(stack_bytes)?;
        Ok(Box::new(Instance {
            ticket: Ticket::default(),
            status: Status::Waits,
            again: None,
            is_new: true,
            generation: 0,
            admitted: None,
            id: String::new(),
            shown: 0,
            shown_before: 0,
            state: State::new(fiber.stack_limit(), Bump::default()),
            strands: Strands::new(fiber),
            beginning: Beginning {
                key: 0,
                arguments: std::ptr::null(),
                input_bytes: 0,
            },
            repeated_rows: 0,
            ahead: Ahead::default(),
            results: vec![0; result_slots].into(),
        }))
    }

    /// The slots of the results of an instance that finished.
    pub fn results(&self) -> *const u64 {
        self.results.as_ptr()
    }

    /// Whether it waits for what it has recorded.
    pub fn waits(&self) -> bool {
        matches!(self.status, Status::Waits)
    }

    /// What was recorded of it, where gradients are wanted.
    pub fn take_tape(&mut self) -> Vec<u64> {
        let first = self.state.take_tape();
        self.strands.tape(first)
    }

    /// Bytes that the control program allocated.
    pub fn held_bytes(&self) -> u64 {
        match self.state.keeps_tape() {
            true => self.state.held_bytes() + self.strands.tape_bytes(),
            false => self.state.held_bytes(),
        }
    }

    /// Rows that were computed for nothing, if it has no result.
    pub fn computed_rows(&self) -> u64 {
        self.repeated_rows + self.state.computed_rows()
    }

    /// When it must be done.
    pub fn end(&self) -> Option<Instant> {
        self.state.end_of_time()
    }

    /// Whether nobody else was alive since it began.
    fn is_alone(&self) -> bool {
        self.again.is_some_and(|again| again.crowd.is_none())
    }

    /// The number of the segment with the calls that it recorded last.
    pub fn segment(&self) -> usize {
        self.state.segment()
    }

    /// Whether nothing that the next flush computes is of any use to it.
    pub fn is_over(&self) -> bool {
        matches!(self.status, Status::Failed(_) | Status::Crowded(_))
    }

    /// It cannot be computed beside the others; alone, it has failed.
    pub fn give_up(&mut self, machine: &Machine<'_>, error: &Error, is_alone: bool) {
        if self.is_over() {
            return;
        }
        self.status = match error {
            Error::Late => Status::Failed(machine.describe(&Stop::LATE, 0)),
            // Without what it guessed it may need less.
            _ if is_alone && !self.is_ahead() => {
                Status::Failed(InstanceError::no_memory(Some(error)))
            }
            _ => Status::Crowded(self.run_again()),
        };
    }

    /// A flush of several instances `took` so long that some instance has no time left; `own` is this instance's part of
    /// it. The instance fails if it would have no time left without the others either; otherwise it runs again, in what
    /// is left of the `most` that an instance has. Whether it has failed.
    pub fn give_up_late(
        &mut self,
        machine: &Machine<'_>,
        took: Duration,
        own: Duration,
        most: Option<Duration>,
    ) -> bool {
        if self.is_over() {
            return true;
        }
        let excused = took.saturating_sub(own);
        let end = self.end().and_then(|end| end.checked_add(excused));
        let is_late = end.is_some_and(|end| Instant::now() >= end);
        let had = self.again.and_then(|again| again.time).or(most);
        self.status = match is_late {
            true => Status::Failed(machine.describe(&Stop::LATE, 0)),
            false => Status::Crowded(Again {
                time: had.map(|had| had.saturating_sub(own)),
                ..self.run_again()
            }),
        };
        is_late
    }

    fn run_again(&self) -> Again {
        Again {
            crowd: None,
            time: self.again.and_then(|again| again.time),
        }
    }

    /// Takes back what an instance that is done used.
    pub fn clear(&mut self, common: &mut Common) {
        self.decide_nothing(common);
        self.strands.clear(&mut self.state, &mut common.pool);
        self.strands.trim_unless_shallow(&self.state);
        self.state.clear();
        self.repeated_rows = 0;
    }
}
