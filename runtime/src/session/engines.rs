//! Instances side by side where tensors decide: with several threads, each has an engine of its own.
//!
//! Between two decisions there is little to compute, and threads that share it wait for each other more than
//! they help. So each thread has a [`Lane`] with an engine, whose instances are alive beside those of other
//! lanes and know nothing of them. The thread of the caller, the *desk*, reads instances, deals them to lanes,
//! and delivers what is done: supply and sink need not be for several threads. A lane comes back to the
//! desk when some of its instances are done, and when it has no more.
//!
//! What an instance gives depends neither on those beside it nor on its lane.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use cohort_abi::EntryFn;
use cohort_abi::manifest::Manifest;

use super::Session;
use super::beside::{Fetched, PAUSE, Source, Told, gone};
use super::lane::Lane;
use crate::engine::{Report, Window};
use crate::error::Error;
use crate::io::feed::{Feed, Held};
use crate::report::Progress;
use crate::report::stats::{Stats, Times};

/// What all lanes do alike.
struct Rules<'r> {
    entry: EntryFn,
    manifest: &'r Manifest,
    /// Of each lane.
    window: Window,
    lanes: usize,
}

/// A lane with what it has of the run.
struct Working<'a> {
    number: usize,
    lane: Lane,
    feed: Feed<'a>,
    times: Times,
    stats: Stats,
    has_begun: bool,
}

// SAFETY: as `Lane`; the feed has only what was handed to it, and no supply.
unsafe impl Send for Working<'_> {}

/// A lane that came back to the desk.
struct Paused<'a> {
    working: Box<Working<'a>>,
    /// Whether some of its instances are done; if not, it has none.
    result: Result<bool, Error>,
}

impl Session {
    /// Runs all instances of a program whose paths depend on tensors, in `lanes` lanes, which it makes.
    pub(super) fn run_engines<'a>(
        &mut self,
        lanes: usize,
        source: &mut dyn Source<'a>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        let (_, slots) = self.chunks();
        let rules = Rules {
            entry: self.program.entry,
            manifest: &self.program.manifest,
            window: self.window(lanes),
            lanes,
        };
        let others = self.beside.split_off(lanes.min(self.beside.len()));
        let working = self.beside.drain(..).enumerate().map(|(number, lane)| {
            Box::new(Working {
                number,
                lane,
                feed: Feed::handed(slots),
                times: Times::default(),
                stats: Stats::default(),
                has_begun: false,
            })
        });
        let mut idle: Vec<Box<Working<'a>>> = working.collect();
        let (give_back, back) = mpsc::channel();
        let (hands, ends): (Vec<_>, Vec<_>) = (0..lanes)
            .map(|_| {
                let (hand, given) = mpsc::channel();
                (hand, (given, give_back.clone()))
            })
            .unzip();
        drop(give_back);
        let work = |_, (given, give_back): (Receiver<_>, Sender<_>)| {
            work(&rules, &given, &give_back);
        };
        idle.reverse();
        let result = self.crew.run(ends, &work, || {
            let mut desk = Desk {
                rules: &rules,
                shelf: Shelf::new(source, slots),
                idle: std::mem::take(&mut idle),
                hands,
                back,
                at_work: 0,
                failed: None,
            };
            let result = desk.run(told);
            idle = desk.idle;
            result
        });
        let mut times = Times::default();
        idle.sort_by_key(|working| working.number);
        for working in idle {
            times += working.times;
            told.stats.flushes += working.stats.flushes;
            told.stats.suspensions += working.stats.suspensions;
            // At most, as they need not have been at the same time.
            told.stats.peak_rows += working.stats.peak_rows;
            told.stats.peak_buckets += working.stats.peak_buckets;
            // One that stopped in the middle has lost its threads.
            if result.is_ok() {
                self.beside.push(working.lane);
            }
        }
        self.beside.extend(others);
        *told.times += times.within(begin.elapsed());
        result
    }
}

impl Working<'_> {
    /// Runs until the desk is needed; whether some instances are done.
    fn advance(&mut self, rules: &Rules<'_>) -> Result<bool, Error> {
        let Some((engine, mut machine)) = self.lane.engine(rules.entry, rules.manifest, false)
        else {
            return Ok(false);
        };
        if !std::mem::replace(&mut self.has_begun, true) {
            engine.begin(&mut machine, self.feed.slots())?;
        }
        let mut report = Report {
            sink: &mut None,
            times: &mut self.times,
            stats: &mut self.stats,
            progress: &mut |_| {},
        };
        engine.run_to_delivery(&mut machine, &mut self.feed, &rules.window, &mut report)
    }

    /// Gives the sink what is done.
    fn deliver(
        &mut self,
        rules: &Rules<'_>,
        bytes_read: u64,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let Some((engine, mut machine)) = self.lane.engine(rules.entry, rules.manifest, false)
        else {
            return Ok(());
        };
        let progress = &mut *told.progress;
        let mut report = Report {
            sink: told.sink,
            times: told.times,
            stats: told.stats,
            progress: &mut |so_far| {
                progress(Progress {
                    bytes_read,
                    ..so_far
                });
            },
        };
        engine.deliver(&mut machine, &mut self.feed, &mut report)
    }

    /// Instances that it has.
    fn instances(&self) -> usize {
        let alive = self.lane.engine.as_ref().map_or(0, |engine| engine.alive());
        alive + self.feed.left()
    }
}

/// What a lane's thread does: runs the lane whenever it is handed it.
fn work<'a>(rules: &Rules<'_>, given: &Receiver<Box<Working<'a>>>, back: &Sender<Paused<'a>>) {
    for mut working in given {
        // Whoever waits for it must hear of it, whatever happens.
        let advance = AssertUnwindSafe(|| working.advance(rules));
        let result = catch_unwind(advance).unwrap_or_else(|_| Err(gone()));
        if back.send(Paused { working, result }).is_err() {
            return;
        }
    }
}

/// Where lanes get instances and leave those that are done. Lanes are boxed because they are big and go to and fro.
struct Desk<'r, 'a, 's> {
    rules: &'r Rules<'r>,
    shelf: Shelf<'a, 's>,
    /// Those without an instance, the next one last.
    idle: Vec<Box<Working<'a>>>,
    hands: Vec<Sender<Box<Working<'a>>>>,
    back: Receiver<Paused<'a>>,
    at_work: usize,
    /// What ends the run; each lane then stops where it next comes to the desk.
    failed: Option<Error>,
}

impl<'a> Desk<'_, 'a, '_> {
    fn run(&mut self, told: &mut Told<'_, '_>) -> Result<(), Error> {
        loop {
            while self.may_begin(told)
                && let Some(mut working) = self.idle.pop()
            {
                if self.deal(&mut working) {
                    self.hand(working)?;
                } else {
                    self.idle.push(working);
                    break;
                }
            }
            if self.at_work == 0 {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if let Some(sink) = told.sink {
                    sink.flush()?;
                }
                if !self.shelf.fetch(true) {
                    return self.shelf.end.take().unwrap_or_else(|| Err(gone()));
                }
                continue;
            }
            match self.back.try_recv() {
                Ok(paused) => {
                    self.take_back(paused, told)?;
                    continue;
                }
                Err(TryRecvError::Disconnected) => return Err(gone()),
                // There is time to read ahead.
                Err(TryRecvError::Empty) => {
                    if self.failed.is_none()
                        && self.shelf.lacks(self.rules)
                        && self.shelf.fetch(false)
                    {
                        continue;
                    }
                }
            }
            let patience = match self.idle.is_empty() || self.shelf.is_at_end() {
                true => Duration::MAX,
                false => PAUSE,
            };
            match self.back.recv_timeout(patience) {
                Ok(paused) => self.take_back(paused, told)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// Whether a lane may have more: not while too many results wait for those of an instance that is
    /// alive elsewhere.
    fn may_begin(&self, told: &Told<'_, '_>) -> bool {
        let is_full = (told.sink.as_ref()).is_some_and(|sink| sink.is_full());
        self.failed.is_none() && (!is_full || self.at_work == 0)
    }

    fn hand(&mut self, working: Box<Working<'a>>) -> Result<(), Error> {
        let hand = self.hands.get(working.number).ok_or_else(gone)?;
        hand.send(working).map_err(|_| gone())?;
        self.at_work += 1;
        Ok(())
    }

    /// Delivers what is done of a lane, and hands it back, if it has more.
    fn take_back(
        &mut self,
        Paused {
            mut working,
            result,
        }: Paused<'a>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        self.at_work -= 1;
        let delivered = result.and_then(|is_done| {
            if is_done && self.failed.is_none() {
                working.deliver(self.rules, self.shelf.source.bytes_read(), told)?;
            }
            Ok(is_done)
        });
        for inputs in working.feed.take_used() {
            self.shelf.take_back(inputs);
        }
        match delivered {
            Ok(true) if self.failed.is_none() => {
                if self.rules.window.is_in_flight && self.may_begin(told) {
                    self.deal(&mut working);
                }
                return self.hand(working);
            }
            Ok(_) => {}
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
        self.idle.push(working);
        match told.sink {
            Some(sink) => sink.flush(),
            None => Ok(()),
        }
    }

    /// Gives a lane its share of what waits; whether that is anything.
    fn deal(&mut self, working: &mut Working<'a>) -> bool {
        while self.shelf.lacks(self.rules) && self.shelf.fetch(false) {}
        let room = self.rules.window.count.saturating_sub(working.instances());
        let most = room.min(self.shelf.share(self.rules));
        let mut given = 0;
        while given < most
            && let Some(length) = self.shelf.next_length()
            && (given == 0 || given + length / 2 <= most)
            && let Some((number, inputs)) = self.shelf.pop()
        {
            given += length;
            working.feed.hand(number, inputs);
        }
        given > 0
    }
}

/// Chunks that were read and no lane has, and the source of others.
struct Shelf<'a, 's> {
    source: &'s mut dyn Source<'a>,
    /// With the numbers of their first instances.
    waiting: VecDeque<(u64, Held<'a>)>,
    /// Of those that wait.
    instances: usize,
    bytes: u64,
    /// Which slots have a chunk that waits or is with a lane, and a chunk for one of them.
    is_taken: Vec<bool>,
    blocked: Option<Held<'a>>,
    /// Instances that were read.
    number: u64,
    /// What a lane gets of the last ones.
    last_share: Option<usize>,
    /// The source has no more, or said what was wrong.
    end: Option<Result<(), Error>>,
}

impl<'a, 's> Shelf<'a, 's> {
    fn new(source: &'s mut dyn Source<'a>, slots: usize) -> Shelf<'a, 's> {
        Shelf {
            source,
            waiting: VecDeque::new(),
            instances: 0,
            bytes: 0,
            is_taken: vec![false; slots],
            blocked: None,
            number: 0,
            last_share: None,
            end: None,
        }
    }

    /// Reads a chunk, if there is one, and a slot for it; whether that is so.
    fn fetch(&mut self, may_wait: bool) -> bool {
        while !self.is_read() {
            let fetched = match self.blocked.take() {
                Some(inputs) => Ok(Fetched::Instances(inputs, None)),
                None => match self.is_taken.iter().position(|is_taken| !is_taken) {
                    Some(slot) => self.source.next(slot, may_wait),
                    None => return false,
                },
            };
            match fetched {
                Ok(Fetched::Instances(inputs, _)) => match self.is_taken.get_mut(inputs.chunk()) {
                    Some(is_taken @ false) => {
                        *is_taken = true;
                        self.put(inputs);
                        return true;
                    }
                    Some(true) => {
                        self.blocked = Some(inputs);
                        return false;
                    }
                    None => {
                        let problem = "a chunk of inputs for no slot".to_owned();
                        self.end = Some(Err(Error::Internal(problem)));
                    }
                },
                Ok(Fetched::Later) if may_wait => {}
                Ok(Fetched::Later) => return false,
                Ok(Fetched::End) => self.end = Some(Ok(())),
                // What came before is run all the same.
                Err(error) => self.end = Some(Err(error)),
            }
        }
        false
    }

    fn put(&mut self, inputs: Held<'a>) {
        let number = self.number;
        self.number += inputs.len() as u64;
        self.instances += inputs.len();
        self.bytes += inputs.bytes();
        self.waiting.push_back((number, inputs));
    }

    fn pop(&mut self) -> Option<(u64, Held<'a>)> {
        let (number, inputs) = self.waiting.pop_front()?;
        self.instances -= inputs.len();
        self.bytes -= inputs.bytes();
        Some((number, inputs))
    }

    fn next_length(&self) -> Option<usize> {
        self.waiting.front().map(|(_, inputs)| inputs.len())
    }

    /// A chunk is out.
    fn take_back(&mut self, inputs: Held<'a>) {
        if let Some(is_taken) = self.is_taken.get_mut(inputs.chunk()) {
            *is_taken = false;
        }
        self.source.done(inputs);
    }

    /// Whether so few wait that more should be read.
    fn lacks(&self, rules: &Rules<'_>) -> bool {
        self.instances <= rules.lanes.saturating_mul(rules.window.count)
            && self.bytes < rules.window.memory
    }

    /// How many of those that wait a lane gets at most: when no others follow, all lanes shall have equally many.
    fn share(&mut self, rules: &Rules<'_>) -> usize {
        if !self.is_read() {
            return usize::MAX;
        }
        let turns = (self.instances).div_ceil(rules.lanes.saturating_mul(rules.window.count));
        let share = self.instances.div_ceil(rules.lanes * turns.max(1));
        *self.last_share.get_or_insert(share)
    }

    /// Whether nothing is left to read.
    fn is_read(&self) -> bool {
        self.end.is_some() && self.blocked.is_none()
    }

    fn is_at_end(&self) -> bool {
        self.is_read() && self.waiting.is_empty()
    }
}
