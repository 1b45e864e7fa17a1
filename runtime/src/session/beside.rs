//! Batches side by side: with several threads, and batches enough, each thread runs a batch of its own.
//!
//! A launch that several threads compute ends when the last of them is done, and none of them helps to
//! record. A batch that a thread has for itself waits for nobody, and has its weights in that thread's
//! cache. So where there are batches for more than half of the threads, each [`Lane`] takes one, and
//! this thread reads the next ones meanwhile and writes the results, in the order in which they are done;
//! a sink puts them in the order of the input. Otherwise one lane runs a batch with all threads.
//!
//! Where kernels run on a device there are two lanes, each with rows, lists and a queue of its own there: while the device
//! computes a batch, and its lane waits, the other lane records the next one. The first batch of all runs alone and shows
//! whether there is memory for others beside it; where they lack it all the same, batches run one after another from then on.
//!
//! What is recorded of a batch follows from its instances alone, and which lane runs it shows in no result.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::batches::{Chunk, Rules};
use super::lane::Lane;
use super::pace::Pace;
use super::{Batch, Session, how};
use crate::error::Error;
use crate::io::feed::{Held, Supplied, Supply};
use crate::io::input::Inputs;
use crate::io::sink::Sink;
use crate::locks::locked;
use crate::report::Progress;
use crate::report::profile::Span;
use crate::report::stats::{Stats, Times};

/// Bytes that all lanes may have in rows of parameters, of which each has its own.
const MOST_FIXED_BYTES: u64 = 1 << 30;
/// A chunk that takes no longer is not worth handing to another thread.
const QUICK: Duration = Duration::from_micros(50);
/// A chunk that takes longer is worth dividing where there are more lanes than chunks,
pub(super) const LONG: Duration = Duration::from_micros(500);
/// if it has at least this number of instances.
const FEWEST: usize = 8;
/// How often a lane asks for its next chunk before it sleeps: a tenth of a millisecond.
const ASKED: usize = 400;
/// How long a lane that has nothing to do waits before the source is asked again that had nothing.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// What there is to run.
pub(super) enum Fetched<'a> {
    Instances(Held<'a>, Option<Instant>),
    /// Nothing at the moment; only where it must not wait.
    Later,
    End,
}

/// Where the chunks of a run come from, and go when they are done.
pub(super) trait Source<'a> {
    /// The next one, for that slot or another one that is free.
    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Fetched<'a>, Error>;
    fn done(&mut self, inputs: Held<'a>);
    fn bytes_read(&self) -> u64;
    /// Whether a chunk may be taken before a lane has time for it.
    fn reads_ahead(&self) -> bool;
}

/// Chunks as a supply gives them.
pub(super) struct Supplying<'s> {
    pub supply: &'s mut dyn Supply,
    pub read: Duration,
}

impl<'a> Source<'a> for Supplying<'_> {
    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Fetched<'a>, Error> {
        let begin = Instant::now();
        let supplied = self.supply.next(slot, may_wait)?;
        self.read += begin.elapsed();
        Ok(match supplied {
            Supplied::Instances(inputs) => {
                Fetched::Instances(Held::Own(inputs), self.supply.last_deadline())
            }
            Supplied::Later => Fetched::Later,
            Supplied::End => Fetched::End,
        })
    }

    fn done(&mut self, inputs: Held<'a>) {
        if let Held::Own(inputs) = inputs {
            self.supply.done(*inputs);
        }
    }

    fn bytes_read(&self) -> u64 {
        self.supply.bytes_read()
    }

    fn reads_ahead(&self) -> bool {
        self.supply.reads_ahead()
    }
}

/// Chunks that were all decoded before.
pub(super) struct Decoded<'a>(pub std::slice::Iter<'a, Inputs>);

impl<'a> Source<'a> for Decoded<'a> {
    fn next(&mut self, _slot: usize, _may_wait: bool) -> Result<Fetched<'a>, Error> {
        Ok(match self.0.next() {
            Some(inputs) => Fetched::Instances(Held::Borrowed(inputs), None),
            None => Fetched::End,
        })
    }

    fn done(&mut self, _inputs: Held<'a>) {}

    fn bytes_read(&self) -> u64 {
        0
    }

    fn reads_ahead(&self) -> bool {
        true
    }
}

/// Who is told what comes of a run.
pub(super) struct Told<'a, 's> {
    pub sink: &'a mut Option<&'s mut dyn Sink>,
    pub times: &'a mut Times,
    pub stats: &'a mut Stats,
    pub progress: &'a mut dyn FnMut(Progress),
}

impl Told<'_, '_> {
    /// A chunk is done.
    fn done(&mut self, bytes_read: u64) -> Result<(), Error> {
        if let Some(sink) = self.sink {
            sink.flush()?;
        }
        (self.progress)(Progress {
            instances: self.stats.instances,
            failed: self.stats.failed,
            bytes_read,
        });
        Ok(())
    }
}

/// A chunk that a lane has computed a batch of, or could not.
struct Computed<'a> {
    lane: usize,
    chunk: Chunk<'a>,
    result: Result<(), Error>,
    /// When; its results are written later.
    at: Instant,
}

impl Session {
    /// Runs all instances of a program whose paths are known from the inputs alone.
    pub(super) fn run_batches<'a>(
        &mut self,
        source: &mut dyn Source<'a>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let mut queue = Queue::new(source);
        loop {
            let begin = Instant::now();
            if queue.waiting.is_empty() && !queue.fetch(true) {
                return queue.end();
            }
            self.lane.executor.spent(Span::Read, begin);
            let most = match self.is_quick {
                true => 1,
                false => self.most_lanes(),
            };
            while queue.waiting.len() < most && queue.fetch(false) {}
            // A device computes a larger batch in about the same time.
            if self.is_long && !self.lane.executor.is_on_device() {
                queue.divide(most);
            }
            let lanes = match most > 1 && 2 * queue.waiting.len() > most {
                true => self.make_lanes(queue.waiting.len().min(most)),
                false => 0,
            };
            if lanes > 1 {
                self.run_beside(lanes, &mut queue, told)?;
            } else {
                while let Some(chunk) = queue.waiting.pop_front() {
                    self.run_alone(chunk, &mut queue, told)?;
                }
            }
        }
    }

    /// Runs a chunk with all threads.
    fn run_alone<'a>(
        &mut self,
        mut chunk: Chunk<'a>,
        queue: &mut Queue<'a, '_>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let rules = Rules::new(&self.program, &self.config, 1, &self.enough);
        while !chunk.is_done() {
            self.lane.compute(&rules, &mut chunk)?;
            self.lane.write(&rules, &mut chunk, told.sink, told.stats)?;
        }
        self.took(chunk.times.record + chunk.times.execute);
        *told.times += chunk.times;
        queue.done(chunk, told)
    }

    /// Runs the chunks that wait, and those behind them as long as there are some, in lanes.
    fn run_beside<'a>(
        &mut self,
        lanes: usize,
        queue: &mut Queue<'a, '_>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        let mut beside = std::mem::take(&mut self.beside);
        let mut rules = Rules::new(&self.program, &self.config, lanes, &self.enough);
        rules.returns = self.lane.executor.is_on_device();
        let shared: Vec<Mutex<&mut Lane>> = beside[..lanes].iter_mut().map(Mutex::new).collect();
        let (mut times, mut longest, mut ended) = (Times::default(), Duration::ZERO, begin);
        let (give_back, computed) = mpsc::channel();
        let (hands, ends): (Vec<_>, Vec<_>) = (0..lanes)
            .map(|_| {
                let (hand, chunks) = mpsc::channel();
                (hand, (chunks, give_back.clone()))
            })
            .unzip();
        drop(give_back);
        let work = |number: usize, (chunks, give_back): (Receiver<_>, Sender<_>)| {
            work(number, &shared[number], &rules, &chunks, &give_back);
        };
        let result = self.crew.run(ends, &work, || {
            let mut desk = Desk {
                rules: &rules,
                lanes: &shared,
                idle: (0..hands.len()).rev().collect(),
                hands,
                computed,
                failed: None,
                returned: Vec::new(),
                times: &mut times,
                longest: &mut longest,
                ended: &mut ended,
                pace: Pace::new(lanes),
            };
            desk.run(queue, told)?;
            Ok(desk.returned)
        });
        drop(shared);
        let returned = result?;
        self.is_short_of_memory |= !returned.is_empty();
        returned
            .into_iter()
            .for_each(|chunk| queue.waiting.push_front(chunk));
        if !self.is_short_of_memory {
            self.beside = beside;
        }
        // One that was divided is as long as its parts.
        self.took(2 * longest);
        *told.times += times.within(ended - begin);
        Ok(())
    }

    /// What the next chunks may be like.
    fn took(&mut self, took: Duration) {
        (self.is_quick, self.is_long) = (took < QUICK, took > LONG);
    }

    /// How many lanes there may be: one, where they lack memory, or where somebody watches what is done
    /// in which order.
    pub(super) fn most_lanes(&mut self) -> usize {
        let executor = &self.lane.executor;
        let is_watched = executor.is_watched() || self.lane.recorder.tracer().is_some();
        let is_short_of_memory = self.is_short_of_memory || !executor.has_room_beside();
        if is_watched || is_short_of_memory || self.config.batch == Batch::Unbatched {
            return 1;
        }
        let side_by_side = self.config.side_by_side(executor.is_on_device());
        let bytes = executor.arena().fixed_bytes().max(1);
        let lanes = usize::try_from(MOST_FIXED_BYTES / bytes).unwrap_or(usize::MAX);
        lanes.min(side_by_side).max(1)
    }

    /// Makes lanes until there are `count`, or no memory or threads for more; gives how many there are.
    pub(super) fn make_lanes(&mut self, count: usize) -> usize {
        while self.beside.len() < count {
            let how = how(&self.config);
            let lane = (self.lane).beside(&self.program, &self.config, how, &self.most_cached);
            match lane {
                Ok(lane) => self.beside.push(lane),
                Err(_) => break,
            }
        }
        self.crew.grow(self.beside.len().min(count))
    }
}

/// What a lane's thread does: computes batches until nobody hands it any more.
fn work<'a>(
    number: usize,
    lane: &Mutex<&mut Lane>,
    rules: &Rules<'_>,
    chunks: &Receiver<Chunk<'a>>,
    give_back: &Sender<Computed<'a>>,
) {
    while let Some(mut chunk) = receive(chunks) {
        // Whoever waits for it must hear of it, whatever happens.
        let compute = AssertUnwindSafe(|| locked(lane).compute(rules, &mut chunk));
        let result = catch_unwind(compute).unwrap_or_else(|_| Err(gone()));
        let computed = Computed {
            lane: number,
            chunk,
            result,
            at: Instant::now(),
        };
        if give_back.send(computed).is_err() {
            return;
        }
    }
}

/// The next chunk; `None` once there are no more. A processor that halts takes tens of microseconds to go on, and
/// writing results, before the next chunk is handed out, takes less: so it asks some times before it sleeps.
fn receive<'a>(chunks: &Receiver<Chunk<'a>>) -> Option<Chunk<'a>> {
    for _ in 0..ASKED {
        match chunks.try_recv() {
            Ok(chunk) => return Some(chunk),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => thread::yield_now(),
        }
    }
    chunks.recv().ok()
}

/// Where lanes get chunks and leave what they computed.
struct Desk<'r, 'l, 'a> {
    rules: &'r Rules<'r>,
    lanes: &'r [Mutex<&'l mut Lane>],
    idle: Vec<usize>,
    hands: Vec<Sender<Chunk<'a>>>,
    computed: Receiver<Computed<'a>>,
    /// What ends the run, once the lanes are done with what they have.
    failed: Option<Error>,
    /// Chunks for which there was no memory beside others; no other one begins then.
    returned: Vec<Chunk<'a>>,
    times: &'r mut Times,
    /// Of all chunks.
    longest: &'r mut Duration,
    /// When the last one was computed.
    ended: &'r mut Instant,
    pace: Pace,
}

impl<'a> Desk<'_, '_, 'a> {
    fn run(&mut self, queue: &mut Queue<'a, '_>, told: &mut Told<'_, '_>) -> Result<(), Error> {
        loop {
            while self.failed.is_none()
                && self.returned.is_empty()
                && self.may_begin(told)
                && let Some(lane) = self.idle.last().copied()
                && let Some(chunk) = queue.take()
            {
                self.idle.pop();
                let chunk = self.divide(lane, chunk, queue);
                self.pace.begin(lane, &chunk);
                self.hand(lane, chunk)?;
            }
            if self.idle.len() == self.hands.len() {
                return self.failed.take().map_or(Ok(()), Err);
            }
            if self.failed.is_none() && self.returned.is_empty() && self.idle.is_empty() {
                queue.read_ahead();
            }
            let patience = match self.idle.is_empty() || queue.is_at_end() {
                true => Duration::MAX,
                false => PAUSE,
            };
            match self.computed.recv_timeout(patience) {
                Ok(computed) => self.finish(computed, queue, told)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// What the lane gets of a chunk; of the last one others may get parts. A device computes a larger batch in about the
    /// same time.
    fn divide(&mut self, lane: usize, chunk: Chunk<'a>, queue: &mut Queue<'a, '_>) -> Chunk<'a> {
        if self.rules.returns || !queue.is_at_end() || chunk.len() < 2 * FEWEST {
            return chunk;
        }
        let shares = self.pace.shares(lane, chunk.size());
        if shares.len() == 1 {
            return chunk;
        }
        self.pace.divided();
        let (own, others) = chunk.divide(&shares);
        queue.waiting.extend(others);
        own
    }

    /// Whether another chunk may begin: not while too many results wait for those of one before them.
    fn may_begin(&self, told: &Told<'_, '_>) -> bool {
        let is_full = (told.sink.as_ref()).is_some_and(|sink| sink.is_full());
        !is_full || self.idle.len() == self.hands.len()
    }

    fn hand(&self, lane: usize, chunk: Chunk<'a>) -> Result<(), Error> {
        self.hands[lane].send(chunk).map_err(|_| gone())
    }

    /// Writes the results of a batch; its lane goes on with the chunk, or is idle.
    fn finish(
        &mut self,
        computed: Computed<'a>,
        queue: &mut Queue<'a, '_>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let Computed {
            lane,
            mut chunk,
            result,
            at,
        } = computed;
        *self.ended = at.max(*self.ended);
        if let Err(error) = &result
            && self.rules.returns
            && error.is_of_batch()
        {
            self.idle.push(lane);
            self.returned.push(chunk);
            return Ok(());
        }
        let written = result.and_then(|()| {
            locked(&self.lanes[lane]).write(self.rules, &mut chunk, told.sink, told.stats)
        });
        match written {
            Ok(()) if chunk.is_done() => {
                *self.times += chunk.times;
                self.pace.done(lane, &chunk);
                let took = chunk.times.record + chunk.times.execute;
                *self.longest = took.max(*self.longest);
                self.idle.push(lane);
                queue.done(chunk, told)?;
            }
            Ok(()) => self.hand(lane, chunk)?,
            Err(error) => {
                self.idle.push(lane);
                self.failed.get_or_insert(error);
            }
        }
        Ok(())
    }
}

pub(super) fn gone() -> Error {
    Error::Internal("a thread ended in the middle of a batch".to_owned())
}

/// The chunks that were read and are not begun, and the source of others.
struct Queue<'a, 's> {
    source: &'s mut dyn Source<'a>,
    waiting: VecDeque<Chunk<'a>>,
    /// Instances that were read.
    number: u64,
    /// The source has no more, or said what was wrong.
    end: Option<Result<(), Error>>,
}

impl<'a, 's> Queue<'a, 's> {
    fn new(source: &'s mut dyn Source<'a>) -> Queue<'a, 's> {
        Queue {
            source,
            waiting: VecDeque::new(),
            number: 0,
            end: None,
        }
    }

    /// Reads a chunk, if there is one; whether that is so.
    fn fetch(&mut self, may_wait: bool) -> bool {
        while self.end.is_none() {
            match self.source.next(0, may_wait) {
                Ok(Fetched::Instances(inputs, deadline)) => {
                    let number = self.number;
                    self.number += inputs.len() as u64;
                    self.waiting.push_back(Chunk::new(inputs, number, deadline));
                    return true;
                }
                Ok(Fetched::Later) if may_wait => {}
                Ok(Fetched::Later) => return false,
                Ok(Fetched::End) => self.end = Some(Ok(())),
                // What came before is run all the same.
                Err(error) => self.end = Some(Err(error)),
            }
        }
        false
    }

    /// The next chunk, if there is one without waiting.
    fn take(&mut self) -> Option<Chunk<'a>> {
        if self.waiting.is_empty() {
            self.fetch(false);
        }
        self.waiting.pop_front()
    }

    /// Makes parts of the chunks that wait where these are fewer than lanes.
    fn divide(&mut self, lanes: usize) {
        let parts = lanes / self.waiting.len().max(1);
        if parts > 1 {
            for _ in 0..self.waiting.len() {
                let Some(chunk) = self.waiting.pop_front() else {
                    break;
                };
                let shares = match chunk.len() {
                    0..FEWEST => 1,
                    _ => parts,
                };
                let (first, others) = chunk.divide(&vec![1.0; shares]);
                self.waiting.push_back(first);
                self.waiting.extend(others);
            }
        }
    }

    fn read_ahead(&mut self) {
        // With a second one, it is known of the last chunk that it is.
        while self.waiting.len() < 2 && self.source.reads_ahead() && self.fetch(false) {}
    }

    fn is_at_end(&self) -> bool {
        self.end.is_some() && self.waiting.is_empty()
    }

    fn done(&mut self, chunk: Chunk<'a>, told: &mut Told<'_, '_>) -> Result<(), Error> {
        // Of one that was divided, the part that is done last.
        if let Some(inputs) = Arc::into_inner(chunk.inputs) {
            self.source.done(inputs);
        }
        told.done(self.source.bytes_read())
    }

    fn end(self) -> Result<(), Error> {
        self.end.unwrap_or(Ok(()))
    }
}
