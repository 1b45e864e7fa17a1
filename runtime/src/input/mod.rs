//! Instances from JSON Lines.
//!
//! A line is decoded straight from its characters into the slots and rows that compiled code
//! reads, guided by the types of the entry's parameters; no tree of JSON values is ever built and
//! nothing recurses, so neither a long line nor deep nesting can hurt. What is wrong with a line
//! becomes the error record of its instance.
//!
//! * [`lines`] cuts the stream into lines of limited length;
//! * [`cursor`] reads tokens of one line;
//! * `instance` takes a line as a whole: keys, id, all or nothing;
//! * [`decode`] puts values where they belong, `tensor` their numbers, `ragged` those of tensors with
//!   instance dims;
//! * `key` hashes ids;
//! * `message` says what is wrong.

pub mod cursor;
pub mod decode;
mod instance;
mod key;
pub mod lines;
mod message;
mod ragged;
mod tensor;

use cohort_abi::manifest::Manifest;

use crate::arena::{InputBlock, InputRows};
use crate::bump::Bump;
use crate::error::Error;
use crate::failure::InstanceError;
use decode::Decoder;
use lines::{Line, Lines, Next};

pub use lines::InputStream;

/// Decoded instances, with all memory that their slots point to.
#[derive(Default)]
pub struct Inputs {
    instances: Vec<Instance>,
    ids: String,
    pub(crate) slots: Vec<u64>,
    pub(crate) memory: Bump,
    pub(crate) rows: InputRows,
    /// Which of the chunks that are alive at once this is.
    pub(crate) chunk: usize,
    bytes: u64,
}

struct Instance {
    /// Where its id ends in `ids`; it begins where the one before ends.
    id_end: usize,
    /// Where its arguments begin in `slots`.
    outcome: Result<Arguments, InstanceError>,
}

#[derive(Clone, Copy)]
struct Arguments {
    first_slot: usize,
    bytes: u64,
}

impl Inputs {
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// The instance's id as JSON text.
    pub fn id(&self, instance: usize) -> &str {
        let begin = match instance.checked_sub(1) {
            Some(before) => self.instances[before].id_end,
            None => 0,
        };
        &self.ids[begin..self.instances[instance].id_end]
    }

    /// What keys the instance's random numbers: a hash of its id.
    pub fn key(&self, instance: usize) -> u64 {
        key::of(self.id(instance))
    }

    /// The slots of the instance's arguments and the bytes that they occupy with all they point to.
    pub fn arguments(&self, instance: usize) -> Result<(&[u64], u64), &InstanceError> {
        match &self.instances[instance].outcome {
            Ok(arguments) => Ok((&self.slots[arguments.first_slot..], arguments.bytes)),
            Err(error) => Err(error),
        }
    }

    pub fn rows(&self) -> &InputRows {
        &self.rows
    }

    /// Bytes of all instances.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn clear(&mut self, spaces: usize) {
        self.instances.clear();
        self.ids.clear();
        self.slots.clear();
        self.memory.reset();
        self.rows.spaces.resize_with(spaces, InputBlock::default);
        for block in &mut self.rows.spaces {
            block.bytes.clear();
            block.rows = 0;
        }
        self.bytes = 0;
    }

    fn push(&mut self, id: &str, outcome: Result<Arguments, InstanceError>) {
        self.ids.push_str(id);
        self.bytes += id.len() as u64 + 64;
        if let Ok(arguments) = &outcome {
            self.bytes += arguments.bytes;
        }
        self.instances.push(Instance {
            id_end: self.ids.len(),
            outcome,
        });
    }
}

/// How long a batch of inputs waits for those that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the batch is full, or nothing comes any more.
    Full,
    /// Until there is one instance.
    One,
    None,
}

/// Reads a stream of instances, batch by batch.
pub struct Reader<'m, R> {
    lines: Lines<R>,
    decoder: Decoder<'m>,
    spaces: usize,
}

impl<'m, R: InputStream> Reader<'m, R> {
    /// `max_memory` limits an instance's decoded arguments, `max_line_bytes` its text.
    pub fn new(manifest: &'m Manifest, input: R, max_memory: u64, max_line_bytes: usize) -> Self {
        Reader {
            lines: Lines::new(input, max_line_bytes),
            decoder: Decoder::new(manifest, max_memory),
            spaces: manifest.spaces.len(),
        }
    }

    /// Replaces what is in `inputs` by up to `count` next instances, fewer if they take more than
    /// `bytes` bytes or have not arrived. Their handles are those of the chunk. Whether more may come.
    pub fn read_batch(
        &mut self,
        inputs: &mut Inputs,
        chunk: usize,
        count: usize,
        bytes: u64,
        patience: Patience,
    ) -> Result<bool, Error> {
        inputs.clear(self.spaces);
        inputs.chunk = chunk;
        while inputs.len() < count && inputs.bytes() < bytes {
            let may_wait = match patience {
                Patience::Full => true,
                Patience::One => inputs.is_empty(),
                Patience::None => false,
            };
            let next = self.lines.next_line(may_wait);
            let (number, line) = match next.map_err(Error::ReadInput)? {
                Next::Line(number, line) => (number, line),
                Next::Later => return Ok(true),
                Next::End => return Ok(false),
            };
            match line {
                Line::Text(text) => self.decoder.decode(number, text, inputs),
                Line::TooLong { limit } => inputs.push(
                    &number.to_string(),
                    Err(InstanceError::bad_input(format!(
                        "line {number} is longer than {limit} bytes"
                    ))),
                ),
            }
        }
        Ok(true)
    }

    /// Bytes of the stream that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }
}
