//! Instances from any [`Source`]: checked against the types of the program's arguments, all or
//! nothing.

use cohort_abi::Handle;
use cohort_abi::manifest::{Argument, Manifest};

use super::message::Problem;
use super::postorder::Form;
use super::ragged::Dims;
use super::source::Source;
use super::walk::Frame;
use super::{Arguments, Inputs};
use crate::failure::InstanceError;
use crate::memory::bump;
use crate::program::numbering::Numbering;
use crate::program::slot::slot_count;
use crate::program::structure::{Reading, Structured};

/// The one way into [`Inputs`].
pub struct Builder<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) max_memory: u64,
    /// First slot of each argument, and the number of all slots.
    offsets: Vec<usize>,
    slots: usize,
    pub(super) frames: Vec<Frame<'m>>,
    pub(super) values: Vec<u64>,
    /// Of the constructors around the value at hand whose fields come by name: which were there.
    pub(super) given: Vec<bool>,
    /// Position in each dim of the tensor that is being read.
    pub(super) counters: Vec<u64>,
    /// Position in each leading dim of the ragged tensor that is being read.
    pub(super) leading: Vec<u64>,
    /// The argument that is being read, and the instance dims of all.
    pub(super) argument: usize,
    pub(super) dims: Box<Dims>,
    /// Bytes of the instance in memory and rows.
    pub(super) used: u64,
    /// Arguments that the instance at hand has, and its first slot.
    seen: Vec<bool>,
    first_slot: usize,
    before: Before,
    /// Of a program whose calls follow from structures.
    reading: Option<Reading>,
    /// By data type, once one comes as flat arrays; and by tag, the nodes that were taken.
    pub(super) forms: Vec<Vec<Form>>,
    pub(super) taken: Vec<usize>,
}

/// The state of the inputs before an instance.
#[derive(Default)]
struct Before {
    memory: bump::Mark,
    slots: usize,
    rows: Vec<(usize, u64)>,
}

impl Before {
    fn note(&mut self, inputs: &Inputs) {
        self.memory = inputs.memory.mark();
        self.slots = inputs.slots.len();
        self.rows.clear();
        let rows = inputs.rows.row_pools.iter();
        (self.rows).extend(rows.map(|block| (block.bytes().len(), block.rows)));
    }

    /// Takes back what was built since.
    fn restore(&self, inputs: &mut Inputs) {
        inputs.memory.rollback(self.memory);
        inputs.slots.truncate(self.slots);
        for (block, (bytes, rows)) in inputs.rows.row_pools.iter_mut().zip(&self.rows) {
            block.truncate(*bytes, *rows);
        }
    }
}

impl<'m> Builder<'m> {
    /// `max_memory` limits the bytes of an instance's arguments.
    pub fn new(manifest: &'m Manifest, max_memory: u64) -> Builder<'m> {
        let mut offsets = Vec::new();
        let mut slots = 0;
        for argument in &manifest.arguments {
            offsets.push(slots);
            slots += slot_count(&argument.ty);
        }
        Builder {
            manifest,
            max_memory,
            offsets,
            slots,
            frames: Vec::new(),
            values: Vec::new(),
            given: Vec::new(),
            counters: Vec::new(),
            leading: Vec::new(),
            argument: 0,
            dims: Dims::new(manifest.dims.len()).into(),
            used: 0,
            seen: vec![false; manifest.arguments.len()],
            first_slot: 0,
            before: Before::default(),
            reading: Reading::of(manifest),
            forms: manifest.adts.iter().map(|_| Vec::new()).collect(),
            taken: Vec::new(),
        }
    }

    /// The manifest of the program whose instances are built.
    pub fn manifest(&self) -> &'m Manifest {
        self.manifest
    }

    /// Builds an instance of the arguments that `read` gives, which may be asked for them twice:
    /// [`super::ragged`] says why. What [`Inputs::push`] takes then.
    pub fn instance(
        &mut self,
        inputs: &mut Inputs,
        mut read: impl FnMut(&mut Builder<'m>, &mut Inputs) -> Result<(), Problem>,
    ) -> Result<Arguments, InstanceError> {
        self.before.note(inputs);
        self.dims.begin();
        let outcome = loop {
            self.used = 0;
            self.seen.fill(false);
            self.first_slot = inputs.slots.len();
            inputs.slots.resize(self.first_slot + self.slots, 0);
            let outcome = read(self, inputs).and_then(|()| self.none_is_missing());
            if outcome.is_err() || !self.dims.is_guess_wrong() {
                break outcome;
            }
            self.before.restore(inputs);
        };
        match outcome {
            Ok(()) => Ok(Arguments {
                first_slot: self.first_slot,
                bytes: self.used + 8 * self.slots as u64,
                structure: self.structure(inputs),
            }),
            Err(problem) => {
                self.before.restore(inputs);
                Err(self.describe(problem))
            }
        }
    }

    /// The structure of the instance that was built just now.
    fn structure(&self, inputs: &mut Inputs) -> Option<Structured> {
        let reading = self.reading.as_ref()?;
        let rows = self.before.rows.iter().enumerate();
        let origins: Vec<_> = rows
            .map(|(pool, (_, rows))| self.input_handle(inputs, pool, *rows as u32))
            .collect();
        let slots = inputs.slots[self.first_slot..].as_ptr();
        // SAFETY: the builder put arguments of the program there.
        Some(unsafe { reading.read(slots, &origins, &mut inputs.data) })
    }

    /// The number of the argument of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_it = |argument: &Argument| argument.name == name;
        self.manifest.arguments.iter().position(is_it)
    }

    /// Begins with an argument of the instance at hand; each comes once. `key` is its name as it
    /// stands, for a message.
    pub(super) fn begin_argument(
        &mut self,
        number: usize,
        key: impl FnOnce() -> String,
    ) -> Result<(), Problem> {
        if std::mem::replace(&mut self.seen[number], true) {
            return Err(Problem::Line(format!("two keys {}", key())));
        }
        self.argument = number;
        Ok(())
    }

    /// Reads an argument of the instance at hand.
    pub fn argument(
        &mut self,
        number: usize,
        key: impl FnOnce() -> String,
        source: &mut impl Source,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        self.begin_argument(number, key)?;
        self.value(source, &self.manifest.arguments[number].ty, inputs)?;
        self.end_argument(inputs);
        Ok(())
    }

    /// The values are the slots of the argument at hand.
    pub(super) fn end_argument(&mut self, inputs: &mut Inputs) {
        let slot = self.first_slot + self.offsets[self.argument];
        inputs.slots[slot..slot + self.values.len()].copy_from_slice(&self.values);
    }

    /// A key that is not an argument's.
    pub fn unknown_key(&self, key: &str) -> Problem {
        let arguments = self.manifest.arguments.iter();
        let names: Vec<&str> = arguments.map(|argument| argument.name.as_str()).collect();
        Problem::Line(format!(
            "unknown key {key}: expected the arguments of the program ({}) or \"id\"",
            names.join(", ")
        ))
    }

    fn none_is_missing(&mut self) -> Result<(), Problem> {
        let Some(argument) = self.seen.iter().position(|seen| !seen) else {
            return Ok(());
        };
        self.argument = argument;
        self.frames.clear();
        self.counters.clear();
        self.leading.clear();
        Err(Problem::Value {
            expected: self.expected(&self.manifest.arguments[argument].ty),
            found: "no such key".to_owned(),
        })
    }

    /// Moves the values from `base` on to memory.
    pub(super) fn replace_by_pointer(
        &mut self,
        inputs: &mut Inputs,
        base: usize,
    ) -> Result<(), Problem> {
        self.charge(8 * (self.values.len() - base) as u64)?;
        let copy = inputs.memory.alloc_copy(&self.values[base..]);
        self.values.truncate(base);
        self.values.push(copy.ok_or(Problem::Memory)? as u64);
        Ok(())
    }

    pub(super) fn alloc(&mut self, inputs: &mut Inputs, slots: &[u64]) -> Result<u64, Problem> {
        self.charge(8 * slots.len() as u64)?;
        let copy = inputs.memory.alloc_copy(slots);
        Ok(copy.ok_or(Problem::Memory)? as u64)
    }

    /// Counts memory that stays, and checks it together with what the stacks use now.
    #[inline]
    pub(super) fn charge(&mut self, bytes: u64) -> Result<(), Problem> {
        self.used = self.used.saturating_add(bytes);
        let stacks = 8 * self.values.len() + size_of::<Frame<'_>>() * self.frames.len();
        if self.used.saturating_add(stacks as u64) > self.max_memory {
            Err(Problem::Memory)
        } else {
            Ok(())
        }
    }

    /// The handle of a row of the inputs.
    pub(super) fn input_handle(&self, inputs: &Inputs, pool: usize, position: u32) -> Handle {
        let bucket = Numbering::of(self.manifest).input(inputs.chunk, pool);
        Handle::new(bucket as u32, 0, position)
    }
}
