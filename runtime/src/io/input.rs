//! Instances, from whatever format, as slots and rows that compiled code reads.
//!
//! A value is read straight from its format into slots and rows, guided by the types of the entry's
//! parameters; no tree of values is ever made and nothing recurses, so neither a long line nor deep
//! nesting can hurt. What is wrong with an instance becomes its error record.
//!
//! * [`builder`] takes an instance as a whole: all arguments, all or nothing;
//! * `walk` puts values where they belong, `tensor` their numbers, `ragged` those of tensors with
//!   instance dims, from any [`source`];
//! * `postorder` makes values of data types of flat arrays;
//! * `arrow` makes instances of the rows of Arrow's arrays;
//! * `json` is the source that a line of JSON is: [`lines`] cuts the stream into lines of limited
//!   length, [`cursor`] reads tokens of one line;
//! * `join` puts instances that were built apart into one chunk;
//! * `key` hashes ids;
//! * `message` says what is wrong.

#[cfg(feature = "arrow")]
mod arrow;
mod builder;
pub mod cursor;
mod join;
mod json;
mod key;
pub mod lines;
mod message;
mod postorder;
mod ragged;
mod source;
mod tensor;
mod walk;

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::failure::InstanceError;
use crate::memory::bump::Bump;
use crate::memory::inputs::{InputBlock, InputRows};
use crate::program::structure::Structured;
use lines::{Line, Lines, Next};

#[cfg(feature = "arrow")]
pub use arrow::ArrowInstances;
pub use builder::Builder;
pub use join::Joiner;
pub use json::Decoder;
pub use lines::InputStream;
pub use message::Problem;
pub use postorder::{FlatFields, Postorder};
pub use source::{Source, Tag};

/// The f32 that is nearest, if a number stays one.
pub fn narrow(value: f64) -> Option<u32> {
    let narrow = value as f32;
    (narrow.is_finite() || !value.is_finite()).then_some(narrow.to_bits())
}

/// Decoded instances, with all memory that their slots point to.
#[derive(Default)]
pub struct Inputs {
    instances: Vec<Instance>,
    ids: String,
    pub(crate) slots: Vec<u64>,
    pub(crate) memory: Bump,
    pub(crate) rows: InputRows,
    /// What the instances have besides their structures, see [`Structured`].
    data: Vec<u64>,
    pub(crate) chunk: usize,
    bytes: u64,
}

struct Instance {
    /// Where its id ends in `ids`; it begins where the one before ends.
    id_end: usize,
    /// Where its arguments begin in `slots`.
    outcome: Result<Arguments, InstanceError>,
}

/// Where the arguments of an instance are, once they are built.
#[derive(Clone, Copy)]
pub struct Arguments {
    first_slot: usize,
    bytes: u64,
    /// Where calls follow from it.
    structure: Option<Structured>,
}

/// An instance of a program whose calls follow from structures.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// See [`Structured::key`].
    pub key: u128,
    /// The handle of its first input row in each row pool, and then its numbers that choose rows; more may follow.
    pub data: &'a [u64],
    /// Its arguments, and the bytes that they occupy.
    pub slots: &'a [u64],
    pub bytes: u64,
}

impl Inputs {
    /// How many instances it has, wrong ones included.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// Whether it has none.
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

    /// The instance, if it is right and its calls follow from its structure.
    pub(crate) fn known(&self, instance: usize) -> Option<Known<'_>> {
        let arguments = self.instances.get(instance)?.outcome.as_ref().ok()?;
        let structure = arguments.structure?;
        Some(Known {
            key: structure.key,
            data: &self.data[structure.data..],
            slots: &self.slots[arguments.first_slot..],
            bytes: arguments.bytes,
        })
    }

    /// The rows of all instances' tensors.
    pub fn rows(&self) -> &InputRows {
        &self.rows
    }

    /// Which of the chunks that are alive at once this is.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Bytes of all instances.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes everything out; the next instances are of the program and of that chunk.
    pub fn reset(&mut self, manifest: &Manifest, chunk: usize) {
        self.chunk = chunk;
        let row_pools = manifest.row_pools.len();
        self.instances.clear();
        self.ids.clear();
        self.slots.clear();
        self.data.clear();
        self.memory.reset();
        self.rows
            .row_pools
            .resize_with(row_pools, InputBlock::default);
        for block in &mut self.rows.row_pools {
            block.truncate(0, 0);
        }
        self.bytes = 0;
    }

    /// Appends the instance that a [`Builder`] built in these inputs just now, or its error; the id is
    /// JSON text.
    pub fn push(&mut self, id: &str, outcome: Result<Arguments, InstanceError>) {
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
    /// Not at all: it has what is there already.
    None,
}

/// Reads a stream of instances, batch by batch.
pub struct Reader<'m, R> {
    lines: Lines<R>,
    decoder: Decoder<'m>,
}

impl<'m, R: InputStream> Reader<'m, R> {
    /// `max_memory` limits an instance's decoded arguments, `max_line_bytes` its text.
    pub fn new(manifest: &'m Manifest, input: R, max_memory: u64, max_line_bytes: usize) -> Self {
        Reader {
            lines: Lines::new(input, max_line_bytes),
            decoder: Decoder::new(manifest, max_memory),
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
        inputs.reset(self.decoder.manifest(), chunk);
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
