//! Where the engine's instances come from: inputs decoded in chunks, several of which are alive.
//!
//! Instances that run together began at different times, so their arguments are in different
//! chunks. A chunk's memory and rows are given back when its last instance is out. A chunk has a
//! *slot*, and a slot has input buckets of its own, so that handles of inputs are unambiguous.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::input::{InputStream, Inputs, Patience, Reader};
use crate::instance::{Machine, Ticket};

/// What the feed has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Instance(Ticket),
    /// Nothing until a chunk is out, or until more of the input arrives.
    Later,
    /// Nothing ever.
    Nothing,
}

enum Source<'a, R> {
    /// Chunks of that many instances and bytes.
    Stream {
        reader: Box<Reader<'a, R>>,
        count: usize,
        bytes: u64,
    },
    /// One chunk, decoded already, for slot 0.
    Decoded(&'a Inputs),
    End,
}

enum Held<'a> {
    Own(Inputs),
    Borrowed(&'a Inputs),
}

struct Chunk<'a> {
    inputs: Held<'a>,
    /// Instances that are out.
    done: usize,
}

pub struct Feed<'a, R> {
    source: Source<'a, R>,
    slots: Vec<Option<Chunk<'a>>>,
    /// The chunk that instances are taken from, and the next one of it.
    current: Option<(usize, usize)>,
    number: u64,
    spare: Vec<Inputs>,
    read: Duration,
    bytes_read: u64,
}

impl<'a, R: InputStream> Feed<'a, R> {
    /// Chunks of up to `count` instances and about `bytes` bytes, up to `slots` of them at once.
    pub fn stream(reader: Reader<'a, R>, count: usize, bytes: u64, slots: usize) -> Self {
        let source = Source::Stream {
            reader: Box::new(reader),
            count,
            bytes,
        };
        Feed::new(source, slots)
    }

    fn new(source: Source<'a, R>, slots: usize) -> Self {
        let mut free = Vec::new();
        free.resize_with(slots.max(1), || None);
        Feed {
            source,
            slots: free,
            current: None,
            number: 0,
            spare: Vec::new(),
            read: Duration::ZERO,
            bytes_read: 0,
        }
    }

    /// How many chunks may be alive.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The inputs of a ticket's chunk.
    pub fn inputs(&self, chunk: usize) -> Result<&Inputs, Error> {
        match &self.slots[chunk] {
            Some(Chunk {
                inputs: Held::Own(inputs),
                ..
            }) => Ok(inputs),
            Some(Chunk {
                inputs: Held::Borrowed(inputs),
                ..
            }) => Ok(inputs),
            None => Err(Error::Internal("a chunk of inputs is gone".to_owned())),
        }
    }

    /// Time spent with reading and decoding.
    pub fn read(&self) -> Duration {
        self.read
    }

    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Whether the next instance is not decoded yet, and getting it may take long.
    pub fn must_read(&self) -> bool {
        let is_left = |(chunk, index)| self.inputs(chunk).is_ok_and(|inputs| index < inputs.len());
        !self.current.is_some_and(is_left)
    }

    /// The next instance of the input; it is waited for if it `may_wait`.
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
            if matches!(self.source, Source::End) {
                return Ok(Next::Nothing);
            }
            let Some(slot) = self.slots.iter().position(Option::is_none) else {
                return Ok(Next::Later);
            };
            let patience = match may_wait {
                true => Patience::One,
                false => Patience::None,
            };
            if !self.fill(slot, machine, patience)? {
                return Ok(match self.source {
                    Source::End => Next::Nothing,
                    _ => Next::Later,
                });
            }
        }
    }

    /// Decodes the next chunk; whether there is one now.
    fn fill(
        &mut self,
        slot: usize,
        machine: &mut Machine<'_>,
        patience: Patience,
    ) -> Result<bool, Error> {
        let inputs = match &mut self.source {
            Source::Stream {
                reader,
                count,
                bytes,
            } => {
                let begin = Instant::now();
                let mut inputs = self.spare.pop().unwrap_or_default();
                let goes_on = reader.read_batch(&mut inputs, slot, *count, *bytes, patience)?;
                self.bytes_read = reader.bytes_read();
                self.read += begin.elapsed();
                if inputs.is_empty() {
                    self.spare.push(inputs);
                    if !goes_on {
                        self.source = Source::End;
                    }
                    return Ok(false);
                }
                Held::Own(inputs)
            }
            Source::Decoded(inputs) => {
                let inputs = *inputs;
                self.source = Source::End;
                Held::Borrowed(inputs)
            }
            Source::End => return Ok(false),
        };
        self.slots[slot] = Some(Chunk { inputs, done: 0 });
        self.current = Some((slot, 0));
        machine
            .executor
            .put_inputs(slot, self.inputs(slot)?.rows())?;
        Ok(true)
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
            if let Held::Own(inputs) = chunk.inputs {
                self.spare.push(inputs);
            }
        }
        Ok(())
    }
}

impl<'a> Feed<'a, std::io::Empty> {
    /// Instances that were all decoded before, for slot 0.
    pub fn decoded(inputs: &'a Inputs) -> Self {
        Feed::new(Source::Decoded(inputs), 1)
    }
}
