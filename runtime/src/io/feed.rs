//! Where the engine's instances come from: inputs decoded in chunks, several of which are alive.
//!
//! Instances that run together began at different times, so their arguments are in different
//! chunks. A chunk's memory and rows are given back when its last instance is out. A chunk has a
//! *slot*, and a slot has input buckets of its own, so that handles of inputs are unambiguous.

use std::collections::VecDeque;
use std::ops::Deref;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::failure::InstanceError;
use crate::instance::{Machine, Ticket};
use crate::io::input::{InputStream, Inputs, Patience, Reader};

/// What the feed has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next instance of the input.
    Instance(Ticket),
    /// Nothing until a chunk is out, or until more of the input arrives.
    Later,
    /// Nothing ever.
    Nothing,
}

/// What a [`Supply`] has.
pub enum Supplied {
    /// A chunk of instances.
    Instances(Box<Inputs>),
    /// Nothing at the moment; only where it must not wait.
    Later,
    /// The input is over.
    End,
}

/// Gives instances, chunk by chunk.
pub trait Supply {
    /// The next chunk of one instance or more. Its slot must be free, as the one given is; in a program
    /// whose path does not depend on tensors that is always 0.
    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Supplied, Error>;

    /// Takes a chunk back when all of its instances are out, and its slot is free again.
    fn done(&mut self, _inputs: Inputs) {}

    /// The numbers of instances that are not to go on, and why; asked once a round. They count from 0 in
    /// the order in which they were given.
    fn given_up(&mut self) -> Vec<(u64, InstanceError)> {
        Vec::new()
    }

    /// When nobody waits any more for the instances that were given and are not done, if ever.
    fn last_deadline(&self) -> Option<Instant> {
        None
    }

    /// Whether a chunk may be taken before there is time for it: not where others join it as long as it
    /// is not.
    fn reads_ahead(&self) -> bool {
        true
    }

    /// Whether its chunks may go to several engines. What is said while instances run, by
    /// [`Supply::given_up`] and [`Supply::last_deadline`], only a single one hears.
    fn is_divisible(&self) -> bool {
        true
    }

    /// Bytes that were read so far, where that means something.
    fn bytes_read(&self) -> u64 {
        0
    }
}

/// Lines in chunks of a limited number of instances and of bytes.
pub struct Chunks<'m, R> {
    reader: Reader<'m, R>,
    count: usize,
    bytes: u64,
    spare: Vec<Inputs>,
}

impl<'m, R: InputStream> Chunks<'m, R> {
    /// Reads chunks of at most `count` instances, which end early once they take `bytes` bytes.
    pub fn new(reader: Reader<'m, R>, count: usize, bytes: u64) -> Self {
        Chunks {
            reader,
            count,
            bytes,
            spare: Vec::new(),
        }
    }
}

impl<R: InputStream> Supply for Chunks<'_, R> {
    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Supplied, Error> {
        let mut inputs = self.spare.pop().unwrap_or_default();
        let patience = match may_wait {
            true => Patience::One,
            false => Patience::None,
        };
        let goes_on =
            (self.reader).read_batch(&mut inputs, slot, self.count, self.bytes, patience)?;
        if !inputs.is_empty() {
            return Ok(Supplied::Instances(Box::new(inputs)));
        }
        self.spare.push(inputs);
        Ok(match goes_on {
            true => Supplied::Later,
            false => Supplied::End,
        })
    }

    fn done(&mut self, inputs: Inputs) {
        self.spare.push(inputs);
    }

    fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }
}

enum Source<'a> {
    Stream(&'a mut dyn Supply),
    /// One chunk, for slot 0.
    Decoded(&'a Inputs),
    /// Chunks that somebody hands over, with the number of the first instance, and those that are out.
    Handed(VecDeque<(u64, Held<'a>)>, Vec<Held<'a>>),
}

/// Decoded instances that a run has.
pub enum Held<'a> {
    /// Instances of its own, which go back to the supply in the end.
    Own(Box<Inputs>),
    /// Instances that the caller keeps.
    Borrowed(&'a Inputs),
}

impl Deref for Held<'_> {
    type Target = Inputs;

    fn deref(&self) -> &Inputs {
        match self {
            Held::Own(inputs) => inputs,
            Held::Borrowed(inputs) => inputs,
        }
    }
}

struct Chunk<'a> {
    inputs: Held<'a>,
    /// Instances that are out.
    done: usize,
}

/// Hands out the instances of a run one by one, and holds their chunks meanwhile.
pub struct Feed<'a> {
    source: Source<'a>,
    is_at_end: bool,
    slots: Vec<Option<Chunk<'a>>>,
    /// The chunk that instances are taken from, and the next one of it.
    current: Option<(usize, usize)>,
    number: u64,
    read: Duration,
}

impl<'a> Feed<'a> {
    /// Up to `slots` chunks at once.
    pub fn stream(supply: &'a mut dyn Supply, slots: usize) -> Self {
        Feed::new(Source::Stream(supply), slots)
    }

    /// Instances that were all decoded before, for slot 0.
    pub fn decoded(inputs: &'a Inputs) -> Self {
        Feed::new(Source::Decoded(inputs), 1)
    }

    /// Chunks that somebody [hands over](Feed::hand), in slots below `slots`.
    pub fn handed(slots: usize) -> Self {
        Feed::new(Source::Handed(VecDeque::new(), Vec::new()), slots)
    }

    /// Hands a chunk over, whose first instance has that number; only of a feed for that.
    pub fn hand(&mut self, number: u64, inputs: Held<'a>) {
        if let Source::Handed(waiting, _) = &mut self.source {
            waiting.push_back((number, inputs));
        }
    }

    /// Takes those that were handed over and are out.
    pub fn take_used(&mut self) -> Vec<Held<'a>> {
        match &mut self.source {
            Source::Handed(_, used) => std::mem::take(used),
            Source::Stream(_) | Source::Decoded(_) => Vec::new(),
        }
    }

    /// Instances that were handed over and not taken yet.
    pub fn left(&self) -> usize {
        let current = self.current.map_or(0, |(chunk, index)| {
            self.inputs(chunk)
                .map_or(0, |inputs| inputs.len().saturating_sub(index))
        });
        let waiting = match &self.source {
            Source::Handed(waiting, _) => waiting.iter().map(|(_, inputs)| inputs.len()).sum(),
            Source::Stream(_) | Source::Decoded(_) => 0,
        };
        current + waiting
    }

    fn new(source: Source<'a>, slots: usize) -> Self {
        let mut free = Vec::new();
        free.resize_with(slots.max(1), || None);
        Feed {
            source,
            is_at_end: false,
            slots: free,
            current: None,
            number: 0,
            read: Duration::ZERO,
        }
    }

    /// How many chunks may be alive.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The inputs of a ticket's chunk.
    pub fn inputs(&self, chunk: usize) -> Result<&Inputs, Error> {
        match &self.slots[chunk] {
            Some(chunk) => Ok(&chunk.inputs),
            None => Err(Error::Internal("a chunk of inputs is gone".to_owned())),
        }
    }

    /// Time spent with reading and decoding.
    pub fn read(&self) -> Duration {
        self.read
    }

    /// Bytes of the input that were read so far; 0 where it was decoded before.
    pub fn bytes_read(&self) -> u64 {
        match &self.source {
            Source::Stream(supply) => supply.bytes_read(),
            Source::Decoded(_) | Source::Handed(..) => 0,
        }
    }

    /// Instances that are not to go on.
    pub fn given_up(&mut self) -> Vec<(u64, InstanceError)> {
        match &mut self.source {
            Source::Stream(supply) => supply.given_up(),
            Source::Decoded(_) | Source::Handed(..) => Vec::new(),
        }
    }

    /// When nobody waits any more for those that are alive.
    pub fn last_deadline(&self) -> Option<Instant> {
        match &self.source {
            Source::Stream(supply) => supply.last_deadline(),
            Source::Decoded(_) | Source::Handed(..) => None,
        }
    }

    /// Whether the next instance is not decoded yet, and getting it may take long.
    pub fn must_read(&self) -> bool {
        let is_left = |(chunk, index)| self.inputs(chunk).is_ok_and(|inputs| index < inputs.len());
        !self.current.is_some_and(is_left)
    }

    /// The next instance of the input; waits for it only if it may.
    pub fn next(&mut self, machine: &mut Machine<'_>, may_wait: bool) -> Result<Next, Error> {
        loop {
            if let Some((chunk, index)) = self.current {
                if index < self.inputs(chunk)?.len() {
                    self.current = Some((chunk, index + 1));
                    self.number += 1;
                    return Ok(Next::Instance(Ticket {
                        number: self.number - 1,
                        chunk,
                        index,
                    }));
                }
                self.current = None;
                self.drop_if_done(chunk, machine)?;
            }
            let Some(slot) = self.slots.iter().position(Option::is_none) else {
                return Ok(Next::Later);
            };
            if let Some(next) = self.fill(slot, machine, may_wait)? {
                return Ok(next);
            }
        }
    }

    /// Takes the next chunk, or says why there is none.
    fn fill(
        &mut self,
        slot: usize,
        machine: &mut Machine<'_>,
        may_wait: bool,
    ) -> Result<Option<Next>, Error> {
        let inputs = match &mut self.source {
            Source::Stream(supply) if !self.is_at_end => {
                let begin = Instant::now();
                let supplied = supply.next(slot, may_wait)?;
                self.read += begin.elapsed();
                match supplied {
                    Supplied::Instances(inputs) => Held::Own(inputs),
                    Supplied::Later => return Ok(Some(Next::Later)),
                    Supplied::End => {
                        self.is_at_end = true;
                        return Ok(Some(Next::Nothing));
                    }
                }
            }
            Source::Decoded(inputs) if !self.is_at_end => {
                self.is_at_end = true;
                Held::Borrowed(inputs)
            }
            Source::Handed(waiting, _) => match waiting.pop_front() {
                Some((number, inputs)) => {
                    self.number = number;
                    inputs
                }
                None => return Ok(Some(Next::Nothing)),
            },
            Source::Stream(_) | Source::Decoded(_) => return Ok(Some(Next::Nothing)),
        };
        let slot = inputs.chunk;
        match self.slots.get_mut(slot) {
            Some(free @ None) => *free = Some(Chunk { inputs, done: 0 }),
            _ => return Err(Error::Internal("a chunk of inputs for no slot".to_owned())),
        }
        self.current = Some((slot, 0));
        machine
            .executor
            .put_inputs(slot, self.inputs(slot)?.rows())?;
        Ok(None)
    }

    /// An instance of the chunk is out.
    pub fn done(&mut self, chunk: usize, machine: &mut Machine<'_>) -> Result<(), Error> {
        if let Some(chunk) = &mut self.slots[chunk] {
            chunk.done += 1;
        }
        self.drop_if_done(chunk, machine)
    }

    fn drop_if_done(&mut self, slot: usize, machine: &mut Machine<'_>) -> Result<(), Error> {
        let is_current = self.current.is_some_and(|(current, _)| current == slot);
        let all = self.inputs(slot)?.len();
        let is_done = |chunk: &mut Chunk<'_>| chunk.done == all && !is_current;
        if let Some(chunk) = self.slots[slot].take_if(is_done) {
            machine.executor.drop_inputs(slot);
            match (&mut self.source, chunk.inputs) {
                (Source::Stream(supply), Held::Own(inputs)) => supply.done(*inputs),
                (Source::Handed(_, used), inputs) => used.push(inputs),
                (Source::Stream(_) | Source::Decoded(_), _) => {}
            }
        }
        Ok(())
    }
}
