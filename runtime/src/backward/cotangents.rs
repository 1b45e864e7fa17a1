//! The cotangents of outputs, given by the caller where the entry does not return a loss.
//!
//! What is differentiated is the sum of all numbers that an instance gives, each times its own
//! *cotangent*. These come as JSON of the output's form ([`Cotangent::Text`]) or as numbers by its parts
//! ([`Cotangent::Parts`]). The output is walked as it is when it is written, and what it is
//! weighed by is read along with it ([`along`]).

mod along;
mod lines;

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, Manifest, Type};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::io::output::columns::parts;
use crate::io::output::{Group, Problem, Tensor, TooLong, Walk, Writer, bits};
use along::{Source, Text};

pub use lines::CotangentLines;

/// Knows by what the outputs of instances are weighed.
pub trait Cotangents {
    /// Of the instance of that number, from 0 in the order of the input, whose id is that JSON text.
    fn of(&mut self, number: u64, id: &str) -> Result<Cotangent<'_>, InstanceError>;
}

/// By what one output is weighed.
#[derive(Clone, Copy, Debug)]
pub enum Cotangent<'a> {
    /// JSON of the output's form: a number for each f32, and `null` for a part that does not count, or is
    /// not of f32.
    Text(&'a str),
    /// For each of the output's [`parts`] its numbers, or nothing where the part does not count.
    Parts(&'a [Option<Numbers>]),
}

/// By what a part of an output is weighed.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// The length of each axis; where the part is a number or a tensor, they are its own.
    pub shape: Vec<u64>,
    /// One for each f32 of the part, in its order.
    pub numbers: Vec<f32>,
}

/// Where the numbers that weigh a tensor are, once they are rows: from the handle of its first row on as
/// many as it has.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    pub handle: Handle,
    pub rows: u64,
    /// The first row of its cotangent; without, that is the number 1.
    pub cotangent: Option<Handle>,
}

/// What an output is weighed by: its tensors that count, and where in the numbers each has its own.
#[derive(Debug, Default)]
pub struct Weighed {
    pub tensors: Vec<(Wanted, usize)>,
    pub numbers: Vec<f32>,
}

/// Weighs the output of an instance.
///
/// # Safety
///
/// `slots` is what the program's entry left for an instance of the executor's last flush, and everything
/// it points to is still there.
pub unsafe fn weigh(
    manifest: &Manifest,
    executor: &Executor,
    slots: *const u64,
    by: Cotangent<'_>,
) -> Result<Result<Weighed, InstanceError>, Error> {
    let mut weighing = Weighing {
        source: Source::Numbers(&[]),
        shape: None,
        at_hand: None,
        weighed: Weighed::default(),
        total: 0.0,
        problem: None,
    };
    let mut walk = Walk::new(manifest);
    match by {
        Cotangent::Text(text) => {
            let source = Source::Text(Text::new(text));
            // SAFETY: the caller's promise.
            unsafe { weighing.part(&mut walk, source, &manifest.result, slots, executor)? };
        }
        Cotangent::Parts(given) => {
            let parts = parts(&manifest.result);
            if parts.len() != given.len() {
                weighing.problem = Some(format!("of {} parts", parts.len()));
            }
            for ((ty, slot), numbers) in parts.into_iter().zip(given) {
                if let Some(Numbers { shape, numbers }) = numbers {
                    let is_one = matches!(
                        ty,
                        Type::Scalar(_) | Type::Tensor { .. } | Type::Ragged { .. }
                    );
                    weighing.shape = is_one.then_some(shape);
                    let source = Source::Numbers(numbers);
                    // SAFETY: the caller's promise; the part begins at that slot.
                    unsafe { weighing.part(&mut walk, source, ty, slots.add(slot), executor)? };
                }
            }
        }
    }
    Ok(weighing.done())
}

/// A walk along an output.
struct Weighing<'c> {
    source: Source<'c>,
    /// Of what was given for the tensor that comes next, where it has one.
    shape: Option<&'c [u64]>,
    /// The tensor that comes next.
    at_hand: Option<Wanted>,
    weighed: Weighed,
    /// The sum of what counts.
    total: f64,
    /// What should be there, where it is not.
    problem: Option<String>,
}

impl<'c> Weighing<'c> {
    /// Weighs a part of the output.
    ///
    /// # Safety
    ///
    /// As [`weigh`].
    unsafe fn part<'m>(
        &mut self,
        walk: &mut Walk<'m>,
        source: Source<'c>,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(), Error> {
        if self.problem.is_some() {
            return Ok(());
        }
        self.source = source;
        // SAFETY: the caller's promise.
        let walked = unsafe { walk.value(ty, slots, executor, self) };
        if let (Err(Problem::Broken(what)), None) = (walked, &self.problem) {
            return Err(Error::Internal(format!("a result has {what}")));
        }
        if self.problem.is_none() {
            let read = self.source.end();
            self.note(read);
        }
        Ok(())
    }

    fn done(self) -> Result<Weighed, InstanceError> {
        if let Some(expected) = self.problem {
            return Err(InstanceError::bad_input(format!(
                "the cotangent is not of the output's form: it should be {expected}"
            )));
        }
        match self.total.is_finite() {
            true => Ok(self.weighed),
            false => Err(InstanceError::not_finite(
                "the output, weighed by its cotangents,",
                self.total,
            )),
        }
    }

    fn note(&mut self, read: Result<(), String>) {
        if self.problem.is_none() {
            self.problem = read.err();
        }
    }

    /// Reads what weighs a number or a tensor; `at` is where its rows are, if it has some.
    fn leaf(&mut self, elem: Elem, shape: &[u64], bytes: &[u8], at: Option<Wanted>) {
        if elem != Elem::F32 {
            let read = self.source.nothing(elem);
            return self.note(read);
        }
        if let Some(given) = self.shape.take()
            && given != shape
        {
            return self.note(Err(format!("of shape {shape:?} and not {given:?}")));
        }
        let first = self.weighed.numbers.len();
        match self.source.numbers(shape, &mut self.weighed.numbers) {
            Err(expected) => self.note(Err(expected)),
            Ok(false) => {}
            Ok(true) => {
                let given = bytes.chunks_exact(4).map(|element| bits(elem, element));
                for (number, weight) in given.zip(&self.weighed.numbers[first..]) {
                    // What does not count may be anything.
                    if *weight != 0.0 {
                        self.total += f64::from(f32::from_bits(number)) * f64::from(*weight);
                    }
                }
                match at {
                    Some(at) if at.rows > 0 => self.weighed.tensors.push((at, first)),
                    _ => self.weighed.numbers.truncate(first),
                }
            }
        }
    }
}

impl Writer for Weighing<'_> {
    fn scalar(&mut self, elem: Elem, bits: u32) {
        // It is of the host, and nothing flows from it.
        self.leaf(elem, &[], &bits.to_le_bytes(), None);
    }

    fn text(&mut self, _: &str) {
        let read = self.source.text();
        self.note(read);
    }

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        let at = self.at_hand.take();
        self.leaf(tensor.elem, tensor.shape, tensor.bytes, at);
        Ok(())
    }

    fn begin(&mut self, group: Group<'_>) {
        let read = self.source.begin(group);
        self.note(read);
    }

    fn separate(&mut self) {
        let read = self.source.separate();
        self.note(read);
    }

    fn field(&mut self, name: &str) {
        let read = self.source.field(name);
        self.note(read);
    }

    fn end(&mut self, group: Group<'_>) {
        let read = self.source.leave(group);
        self.note(read);
    }

    fn is_full(&self) -> bool {
        self.problem.is_some()
    }

    fn rows(&mut self, wanted: Wanted) -> bool {
        self.at_hand = Some(wanted);
        false
    }
}
