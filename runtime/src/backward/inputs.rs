//! Gradients of what an instance takes: for each f32 of its arguments a number.
//!
//! Behind the gradient functions of its first calls stand cotangents of rows of the inputs. An instance's
//! arguments are walked twice: when backward is recorded, to find the rows of each tensor, and when it is
//! computed, to hand on their cotangents in the arguments' form.

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, Manifest};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::io::output::{Group, Places, Problem, Tensor, TooLong, Walk, Writer};

/// Takes the gradients of inputs.
pub trait InputGradients {
    /// Takes those of the instance of that number, from 0 in the order of the input, or why there are
    /// none; each instance comes once, in any order. Its id is JSON text.
    fn put(
        &mut self,
        number: u64,
        id: &str,
        gradient: Result<InputGradient<'_>, &InstanceError>,
    ) -> Result<(), Error>;

    /// The run is over.
    fn flush(&mut self) -> Result<(), Error>;
}

/// The gradient of an instance for its arguments.
#[derive(Clone, Copy)]
pub struct InputGradient<'a> {
    manifest: &'a Manifest,
    executor: &'a Executor,
    arguments: &'a [u64],
    cotangents: &'a [(Wanted, Option<u64>)],
}

impl<'a> InputGradient<'a> {
    /// `cotangents` has each tensor of floats, in the order of [`tensors`], with the first row of its
    /// cotangent, or `None` where nothing flows.
    ///
    /// # Safety
    ///
    /// As for [`tensors`]; the cotangents are computed.
    pub(super) unsafe fn new(
        manifest: &'a Manifest,
        executor: &'a Executor,
        arguments: &'a [u64],
        cotangents: &'a [(Wanted, Option<u64>)],
    ) -> InputGradient<'a> {
        InputGradient {
            manifest,
            executor,
            arguments,
            cotangents,
        }
    }

    /// Hands the arguments to the writer, each between two calls of `name`d; a tensor of floats is its
    /// gradient, and what has none is [`Writer::nothing`].
    pub fn write<W: Writer>(
        &self,
        writer: &mut W,
        mut name: impl FnMut(&mut W, usize, &str),
    ) -> Result<(), Problem> {
        let mut walk = Walk::new(self.manifest);
        let mut in_place = InPlace {
            executor: self.executor,
            cotangents: self.cotangents.iter(),
            problem: None,
            inner: writer,
        };
        let mut slot = 0;
        for (number, argument) in self.manifest.arguments.iter().enumerate() {
            name(in_place.inner, number, &argument.name);
            let slots = self.arguments[slot..].as_ptr();
            // SAFETY: who made this promised that these are an instance's arguments.
            let walked = unsafe { walk.value(&argument.ty, slots, self.executor, &mut in_place) };
            if let Some(problem) = in_place.problem.take() {
                return Err(problem);
            }
            walked?;
            slot += crate::program::slot::slot_count(&argument.ty);
        }
        Ok(())
    }
}

/// The tensors of floats that the arguments of an instance have, in order.
///
/// # Safety
///
/// The arguments are slots of the program's, whose rows the executor has, and all that they point to is
/// there.
pub unsafe fn tensors(
    manifest: &Manifest,
    executor: &Executor,
    arguments: &[u64],
) -> Result<Vec<Wanted>, Error> {
    let mut walk = Walk::new(manifest);
    let mut found = Vec::new();
    let mut slot = 0;
    for argument in &manifest.arguments {
        let mut places = Places::new(&mut found, u64::MAX);
        let slots = arguments[slot..].as_ptr();
        // SAFETY: the caller's promise.
        let walked = unsafe { walk.value(&argument.ty, slots, executor, &mut places) };
        walked.map_err(|problem| Error::Internal(format!("arguments: {problem:?}")))?;
        slot += crate::program::slot::slot_count(&argument.ty);
    }
    found.retain(|wanted| manifest.row_pools[wanted.pool].elem == Elem::F32);
    Ok(found)
}

/// Puts cotangents in the place of what the arguments hold.
struct InPlace<'a, 'w, W> {
    executor: &'a Executor,
    cotangents: std::slice::Iter<'a, (Wanted, Option<u64>)>,
    problem: Option<Problem>,
    inner: &'w mut W,
}

impl<W: Writer> Writer for InPlace<'_, '_, W> {
    fn scalar(&mut self, _: Elem, _: u32) {
        self.inner.nothing();
    }

    fn text(&mut self, _: &str) {
        self.inner.nothing();
    }

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        if tensor.elem != Elem::F32 {
            self.inner.nothing();
            return Ok(());
        }
        let rows = match self.cotangents.next() {
            Some((place, Some(first))) => {
                let rows = self.executor.rows(Handle(*first), place.pool, place.rows);
                if rows.is_none() {
                    self.problem = Some(Problem::Broken("a gradient of no rows"));
                    return Err(TooLong);
                }
                rows
            }
            _ => None,
        };
        let zeros;
        let bytes = match rows {
            Some(rows) => rows,
            None => {
                zeros = vec![0; tensor.bytes.len()];
                &zeros
            }
        };
        self.inner.tensor(Tensor { bytes, ..tensor })
    }

    fn begin(&mut self, group: Group<'_>) {
        self.inner.begin(group);
    }

    fn separate(&mut self) {
        self.inner.separate();
    }

    fn field(&mut self, name: &str) {
        self.inner.field(name);
    }

    fn end(&mut self, group: Group<'_>) {
        self.inner.end(group);
    }

    fn is_full(&self) -> bool {
        self.inner.is_full()
    }
}

/// The gradients of one instance as numbers: those of all tensors of floats behind each other, in the
/// order of the arguments, and the shape of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flat {
    /// The gradients, one tensor behind another.
    pub numbers: Vec<f32>,
    /// The shape of each tensor.
    pub shapes: Vec<Vec<u64>>,
}

impl InputGradient<'_> {
    /// All numbers of the gradient; fails only where it is not of its program's form, an internal error.
    pub fn flat(&self) -> Result<Flat, Error> {
        let mut flat = Flat::default();
        self.write(&mut flat, |_, _, _| {})
            .map_err(|problem| Error::Internal(format!("gradients of inputs: {problem:?}")))?;
        Ok(flat)
    }
}

impl Writer for Flat {
    fn scalar(&mut self, _: Elem, _: u32) {}

    fn text(&mut self, _: &str) {}

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        let elements = tensor.bytes.chunks_exact(4);
        let numbers =
            elements.map(|element| f32::from_bits(crate::io::output::bits(Elem::F32, element)));
        self.numbers.extend(numbers);
        self.shapes.push(tensor.shape.to_vec());
        Ok(())
    }

    fn begin(&mut self, _: Group<'_>) {}

    fn end(&mut self, _: Group<'_>) {}

    fn is_full(&self) -> bool {
        false
    }
}
