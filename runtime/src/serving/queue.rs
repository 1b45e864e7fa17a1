//! What waits and what runs; the supply of the session.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cohort_abi::manifest::Manifest;

use super::{Answer, Failure, Full, Options, STEP, Settings};
use crate::error::Error;
use crate::failure::InstanceError;
use crate::io::feed::{Supplied, Supply};
use crate::io::input::{Inputs, Joiner};
use crate::locks::{locked, unpoisoned};

/// The place of an instance in the queue: the rank, then the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// When it came, in microseconds, less what its priority counts.
    rank: i64,
    number: u64,
}

pub(super) type Then = Box<dyn FnOnce(Answer) + Send>;

pub(super) struct Request {
    pub instance: Inputs,
    pub options: Options,
    pub then: Then,
}

/// An instance that the session has.
struct Running {
    key: Key,
    deadline: Option<Instant>,
    /// Nothing where it is answered already.
    then: Option<Then>,
}

/// What an engine did so far, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServingStats {
    /// Instances that wait at present.
    pub queued: usize,
    /// Instances that the session has at present.
    pub running: usize,
    /// Instances with a result.
    pub done: u64,
    /// Those that failed, for another reason than the following.
    pub failed: u64,
    /// Those that were cancelled before they had a result.
    pub cancelled: u64,
    /// Those whose deadline came before their result.
    pub late: u64,
    /// Submissions for which there was no room.
    pub refused: u64,
    /// Launches of kernels.
    pub launches: u64,
    /// Rows that launches computed.
    pub rows: u64,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Key, Request>,
    waiting_bytes: u64,
    /// Of those that wait.
    deadlines: BTreeSet<(Instant, Key)>,
    /// By the session's number.
    running: HashMap<u64, Running>,
    running_deadlines: BTreeSet<(Instant, u64)>,
    /// Those of the session that are cancelled, and still to be given up.
    cancelled: Vec<u64>,
    /// Of the next instance that is submitted, and of the next one that the session gets.
    next_key: u64,
    next_number: u64,
    is_closed: bool,
    /// Why nothing is taken any more.
    error: Option<Arc<Error>>,
    stats: ServingStats,
}

/// What the threads that submit share with the session's.
pub(super) struct Shared {
    settings: Settings,
    begin: Instant,
    state: Mutex<State>,
    /// An instance came, or the engine is closed.
    arrived: Condvar,
    /// There is room, or nothing is left.
    left: Condvar,
}

/// Answers to give when nothing is locked.
#[derive(Default)]
struct Answers(Vec<(Then, Answer)>);

impl Answers {
    fn push(&mut self, then: Option<Then>, answer: Answer) {
        self.0.extend(then.map(|then| (then, answer)));
    }

    fn give(self) {
        for (then, answer) in self.0 {
            then(answer);
        }
    }
}

pub(super) fn thread_ended() -> Error {
    Error::Internal("the thread of the engine ended".to_owned())
}

impl Shared {
    pub fn new(settings: Settings) -> Shared {
        Shared {
            settings,
            begin: Instant::now(),
            state: Mutex::default(),
            arrived: Condvar::new(),
            left: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub fn submit(&self, request: Request) -> Result<Key, Full> {
        let now = Instant::now();
        let mut state = self.state();
        let rank = (now - self.begin).as_micros() as i64
            - i64::from(request.options.priority) * STEP.as_micros() as i64;
        let key = Key {
            rank,
            number: state.next_key,
        };
        let deadline = request.options.deadline;
        let refused = if let Some(error) = &state.error {
            Some(Failure::Engine(error.clone()))
        } else if request.instance.len() != 1 || request.instance.chunk() != 0 {
            let problem = "an engine takes inputs of one instance, of chunk 0";
            Some(Failure::Engine(Error::Usage(problem.to_owned()).into()))
        } else if let Err(error) = request.instance.arguments(0) {
            state.stats.failed += 1;
            Some(Failure::Instance(error.clone()))
        } else if deadline.is_some_and(|deadline| deadline <= now) {
            state.stats.late += 1;
            Some(Failure::Instance(InstanceError::deadline()))
        } else {
            None
        };
        state.next_key += 1;
        if let Some(failure) = refused {
            drop(state);
            (request.then)(Err(failure));
            return Ok(key);
        }
        if !self.has_room(&state, request.instance.bytes()) {
            state.stats.refused += 1;
            return Err(Full(Box::new(request.instance)));
        }
        state.waiting_bytes += request.instance.bytes();
        state.deadlines.extend(deadline.map(|end| (end, key)));
        state.waiting.insert(key, request);
        drop(state);
        self.arrived.notify_one();
        Ok(key)
    }

    /// Whether the queue has room for an instance that takes `bytes`.
    fn has_room(&self, state: &State, bytes: u64) -> bool {
        let most = self.settings.max_queued_bytes;
        state.waiting.len() < self.settings.max_queued.max(1)
            && (state.waiting.is_empty() || state.waiting_bytes.saturating_add(bytes) <= most)
    }

    /// Waits on `left` until that is so, or the time is over; whether it is.
    fn wait_until(&self, timeout: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let is_not = |state: &mut State| !is_so(state);
        let waited = self.left.wait_timeout_while(self.state(), timeout, is_not);
        let (state, _) = unpoisoned(waited);
        is_so(&state)
    }

    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| {
            state.error.is_some() || self.has_room(state, 0)
        })
    }

    pub fn drain(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| {
            state.waiting.is_empty() && state.running.is_empty()
        })
    }

    pub fn cancel(&self, key: Key) -> bool {
        let mut state = self.state();
        let then = match state.take_waiting(key) {
            Some(request) => Some(request.then),
            None => {
                let is_it = |(_, running): &(&u64, &mut Running)| running.key == key;
                match state.running.iter_mut().find(is_it) {
                    Some((number, running)) => {
                        let (number, then) = (*number, running.then.take());
                        state.cancelled.push(number);
                        then
                    }
                    None => None,
                }
            }
        };
        state.stats.cancelled += u64::from(then.is_some());
        drop(state);
        self.left.notify_all();
        let Some(then) = then else {
            return false;
        };
        then(Err(Failure::Instance(InstanceError::cancelled())));
        true
    }

    pub fn stats(&self) -> ServingStats {
        let state = self.state();
        ServingStats {
            queued: state.waiting.len(),
            running: state.running.len(),
            ..state.stats
        }
    }

    /// Cancels everything; the thread of the session ends.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let ended = Error::Usage("the engine is closed".to_owned());
        state.error.get_or_insert(ended.into());
        let mut answers = Answers::default();
        let cancelled = || Err(Failure::Instance(InstanceError::cancelled()));
        for (_, request) in std::mem::take(&mut state.waiting) {
            answers.push(Some(request.then), cancelled());
        }
        state.deadlines.clear();
        state.waiting_bytes = 0;
        let State {
            running,
            cancelled: all,
            ..
        } = &mut *state;
        for (number, running) in running {
            all.push(*number);
            answers.push(running.then.take(), cancelled());
        }
        state.stats.cancelled += answers.0.len() as u64;
        drop(state);
        self.arrived.notify_all();
        self.left.notify_all();
        answers.give();
    }

    /// The session cannot go on.
    pub fn fail(&self, error: Error) {
        let error = Arc::new(error);
        let mut state = self.state();
        let error = state.error.get_or_insert(error).clone();
        let mut answers = Answers::default();
        for (_, request) in std::mem::take(&mut state.waiting) {
            answers.push(Some(request.then), Err(Failure::Engine(error.clone())));
        }
        for (_, running) in std::mem::take(&mut state.running) {
            answers.push(running.then, Err(Failure::Engine(error.clone())));
        }
        state.stats.failed += answers.0.len() as u64;
        drop(state);
        self.left.notify_all();
        answers.give();
    }

    /// What was launched until now.
    pub fn launched(&self, launches: u64, rows: u64) {
        let mut state = self.state();
        (state.stats.launches, state.stats.rows) = (launches, rows);
    }

    /// The session is done with the instance of that number: what its caller gets, and where. `Err` stands
    /// for what the instance itself has.
    pub fn finish(&self, number: u64, is_done: bool) -> Option<(Then, Result<(), InstanceError>)> {
        let mut state = self.state();
        let running = state.running.remove(&number)?;
        if let Some(deadline) = running.deadline {
            state.running_deadlines.remove(&(deadline, number));
        }
        let then = running.then;
        if then.is_none() {
            state.cancelled.retain(|cancelled| *cancelled != number);
        }
        let mut outcome = Ok(());
        if then.is_some() {
            let is_late = (running.deadline).is_some_and(|deadline| deadline <= Instant::now());
            if is_late {
                state.stats.late += 1;
                outcome = Err(InstanceError::deadline());
            } else if is_done {
                state.stats.done += 1;
            } else {
                state.stats.failed += 1;
            }
        }
        drop(state);
        self.left.notify_all();
        then.map(|then| (then, outcome))
    }
}

impl State {
    fn take_waiting(&mut self, key: Key) -> Option<Request> {
        let request = self.waiting.remove(&key)?;
        self.waiting_bytes -= request.instance.bytes();
        if let Some(deadline) = request.options.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        Some(request)
    }

    /// Takes those out whose deadline is over.
    fn take_late(&mut self, answers: &mut Answers) {
        let now = Instant::now();
        while let Some((deadline, key)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.deadlines.remove(&(deadline, key));
            if let Some(request) = self.take_waiting(key) {
                self.stats.late += 1;
                let late = Failure::Instance(InstanceError::deadline());
                answers.push(Some(request.then), Err(late));
            }
        }
    }
}

/// Answers all if the thread of the session ends without a word.
pub(super) struct AtEnd(pub Arc<Shared>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.fail(thread_ended());
    }
}

/// The supply of the session: what waits, as far as there is room.
pub(super) struct Queue {
    shared: Arc<Shared>,
    manifest: Arc<Manifest>,
    joiner: Joiner,
    spare: Vec<Inputs>,
}

impl Queue {
    pub fn new(shared: Arc<Shared>, manifest: Arc<Manifest>) -> Queue {
        Queue {
            joiner: Joiner::new(&manifest),
            shared,
            manifest,
            spare: Vec::new(),
        }
    }
}

impl Supply for Queue {
    fn is_divisible(&self) -> bool {
        false
    }

    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Supplied, Error> {
        let mut inputs = self.spare.pop().unwrap_or_default();
        inputs.reset(&self.manifest, slot);
        let shared = self.shared.clone();
        let mut answers = Answers::default();
        let mut state = shared.state();
        if may_wait {
            let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
            let woken = shared.arrived.wait_while(state, is_idle);
            state = unpoisoned(woken);
        }
        state.take_late(&mut answers);
        while inputs.len() < shared.settings.in_flight
            && let Some((key, request)) = state.waiting.first_key_value()
            && (inputs.is_empty() || self.joiner.fit(&inputs, &request.instance))
        {
            let key = *key;
            let Some(request) = state.take_waiting(key) else {
                break;
            };
            let Request {
                instance,
                options,
                then,
            } = request;
            self.joiner.join(&self.manifest, &mut inputs, instance);
            let number = state.next_number;
            state.next_number += 1;
            let deadline = options.deadline;
            (state.running_deadlines).extend(deadline.map(|deadline| (deadline, number)));
            let running = Running {
                key,
                deadline,
                then: Some(then),
            };
            state.running.insert(number, running);
        }
        let is_closed = state.is_closed;
        drop(state);
        shared.left.notify_all();
        answers.give();
        if !inputs.is_empty() {
            return Ok(Supplied::Instances(Box::new(inputs)));
        }
        self.spare.push(inputs);
        Ok(match is_closed {
            true => Supplied::End,
            false => Supplied::Later,
        })
    }

    /// As long as it waits, a batch may still grow.
    fn reads_ahead(&self) -> bool {
        false
    }

    fn done(&mut self, mut inputs: Inputs) {
        inputs.reset(&self.manifest, 0);
        self.spare.push(inputs);
    }

    fn last_deadline(&self) -> Option<Instant> {
        let state = self.shared.state();
        let have_all = state.running_deadlines.len() == state.running.len();
        let (last, _) = state.running_deadlines.last().filter(|_| have_all)?;
        Some(*last)
    }

    fn given_up(&mut self) -> Vec<(u64, InstanceError)> {
        let mut answers = Answers::default();
        let mut state = self.shared.state();
        state.take_late(&mut answers);
        let cancelled = std::mem::take(&mut state.cancelled);
        let mut all: Vec<_> = (cancelled.into_iter())
            .map(|number| (number, InstanceError::cancelled()))
            .collect();
        let now = Instant::now();
        while let Some((deadline, number)) = state.running_deadlines.first().copied()
            && deadline <= now
        {
            state.running_deadlines.remove(&(deadline, number));
            all.push((number, InstanceError::deadline()));
        }
        drop(state);
        answers.give();
        all
    }
}
