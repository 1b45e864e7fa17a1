//! Results, from the slots and rows that compiled code left.
//!
//! A result is walked with a stack of its own, so its depth does not matter. The walk hands its parts
//! in order to a [`Writer`]: [`json`] makes lines of them, [`columns`] numbers as they lie in memory, which [`replay`] hands on
//! in the same order again.

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod columns;
pub mod json;
pub mod replay;

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, LeadingDim, Manifest, Type};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::program::slot::slot_count;
use crate::symbols::text_bytes;

/// Bits of an element as it lies in a row.
#[inline]
pub(crate) fn bits(elem: Elem, element: &[u8]) -> u32 {
    match elem {
        Elem::F32 | Elem::I32 => {
            u32::from_le_bytes([element[0], element[1], element[2], element[3]])
        }
        Elem::Bool => u32::from(element[0]),
    }
}

/// A result is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// A value that has parts.
#[derive(Clone, Copy, Debug)]
pub enum Group<'m> {
    /// A tuple.
    Tuple,
    /// An array.
    Array {
        /// How many elements it has.
        length: u64,
    },
    /// A value of a data type: its constructor's tag and name, how many fields it has, and their names
    /// if they have some.
    Node {
        /// The number of the constructor in its data type.
        tag: u64,
        /// The name of the constructor.
        name: &'m str,
        /// How many fields it has.
        fields: usize,
        /// The names of the fields; empty where they have none.
        names: &'m [String],
    },
}

/// Takes the parts of one value after another.
pub trait Writer {
    /// Takes a number or a truth value, as the bits of an element.
    fn scalar(&mut self, elem: Elem, bits: u32);

    /// Takes a text.
    fn text(&mut self, text: &str);

    /// Takes the elements of a tensor; an error where it would make the result longer than it may be.
    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong>;

    /// Its parts come next, then [`Writer::end`].
    fn begin(&mut self, group: Group<'_>);

    /// In the place of what has no gradient, where gradients are written.
    fn nothing(&mut self) {}

    /// Between two parts.
    fn separate(&mut self) {}

    /// The name of the field that comes next, if it has one.
    fn field(&mut self, _name: &str) {}

    /// The parts of the innermost group are complete.
    fn end(&mut self, group: Group<'_>);

    /// Whether what was written of the result is longer than it may be.
    fn is_full(&self) -> bool;

    /// Takes a tensor as the place of its rows; if it does not, [`Writer::tensor`] gets its elements.
    fn rows(&mut self, _wanted: Wanted) -> bool {
        false
    }
}

/// The elements of a tensor as they lie in its rows.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The type of its elements.
    pub elem: Elem,
    /// The length of each axis.
    pub shape: &'a [u64],
    /// Of the shape, what the instance says: the leading dims whose lengths the type does not know.
    pub lengths: &'a [u64],
    /// All elements, in row-major order.
    pub bytes: &'a [u8],
}

/// What is left of a value whose parts are being written.
enum Frame<'m> {
    /// Values of different types, next to each other.
    Parts {
        types: &'m [Type],
        next: usize,
        slots: *const u64,
        group: Group<'m>,
    },
    /// Values of one type, next to each other.
    Elements {
        ty: Element<'m>,
        slots: *const u64,
        left: u64,
        length: u64,
    },
}

#[derive(Clone, Copy)]
enum Element<'m> {
    Value(&'m Type),
    Row(usize),
}

/// Walks values of one program.
pub struct Walk<'m> {
    manifest: &'m Manifest,
    frames: Vec<Frame<'m>>,
}

/// Why a result cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is longer than an instance's result may be.
    TooLong,
    /// Compiled code left something that is not a value of the type: an internal error.
    Broken(&'static str),
}

impl From<TooLong> for Problem {
    fn from(TooLong: TooLong) -> Problem {
        Problem::TooLong
    }
}

impl Problem {
    /// Whether it is the one that is the instance's own; the error of the run, if not.
    pub fn into_too_long(self) -> Result<TooLong, Error> {
        match self {
            Problem::TooLong => Ok(TooLong),
            Problem::Broken(what) => Err(Error::Internal(format!("a result has {what}"))),
        }
    }
}

impl<'m> Walk<'m> {
    /// Walks values of this program.
    pub fn new(manifest: &'m Manifest) -> Walk<'m> {
        Walk {
            manifest,
            frames: Vec::new(),
        }
    }

    /// The manifest of the program whose values are walked.
    pub fn manifest(&self) -> &'m Manifest {
        self.manifest
    }

    /// Hands a value of the type to the writer.
    ///
    /// # Safety
    ///
    /// `slots` is such a value of an instance of the executor's last flush, and everything it points
    /// to is still there.
    pub unsafe fn value(
        &mut self,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        self.frames.clear();
        // SAFETY: the caller's promise.
        unsafe { self.begin(ty, slots, executor, writer)? };
        while let Some(frame) = self.frames.last_mut() {
            if writer.is_full() {
                return Err(Problem::TooLong);
            }
            match frame {
                Frame::Parts {
                    types,
                    next,
                    slots,
                    group,
                } => {
                    let Some(ty) = types.get(*next) else {
                        writer.end(*group);
                        self.frames.pop();
                        continue;
                    };
                    if *next > 0 {
                        writer.separate();
                    }
                    if let Group::Node { names, .. } = group
                        && let Some(name) = names.get(*next)
                    {
                        writer.field(name);
                    }
                    *next += 1;
                    let part = *slots;
                    // SAFETY: the slots of the parts lie next to each other, in this order; after
                    // the last this is one past the end.
                    *slots = unsafe { part.add(slot_count(ty)) };
                    // SAFETY: a part of a valid value is valid.
                    unsafe { self.begin(ty, part, executor, writer)? };
                }
                Frame::Elements {
                    ty,
                    slots,
                    left,
                    length,
                } => {
                    if *left == 0 {
                        writer.end(Group::Array { length: *length });
                        self.frames.pop();
                        continue;
                    }
                    if left != length {
                        writer.separate();
                    }
                    *left -= 1;
                    let (ty, element) = (*ty, *slots);
                    let count = match ty {
                        Element::Value(ty) => slot_count(ty),
                        Element::Row(_) => 1,
                    };
                    // SAFETY: as for parts; an array's elements lie next to each other.
                    *slots = unsafe { element.add(count) };
                    match ty {
                        // SAFETY: an element of a valid value is valid.
                        Element::Value(ty) => unsafe {
                            self.begin(ty, element, executor, writer)?;
                        },
                        Element::Row(pool) => {
                            // SAFETY: a stacked tensor is an array of handles, of which some are left.
                            let handle = Handle(unsafe { element.read() });
                            self.tensor(pool, handle, &[], executor, writer)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a value that has no parts, or pushes the frame of one that has.
    ///
    /// # Safety
    ///
    /// As [`Walk::value`].
    unsafe fn begin(
        &mut self,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        let (types, slots, group) = match ty {
            Type::Tuple(types) => (types, slots, Group::Tuple),
            // SAFETY: the caller's promise.
            Type::Ragged { pool, dims } => unsafe {
                return self.ragged(*pool, dims, slots, executor, writer);
            },
            _ => {
                // SAFETY: every other type has one slot.
                let slot = unsafe { slots.read() };
                let pointer = slot as *const u64;
                match ty {
                    Type::Scalar(elem) => {
                        writer.scalar(*elem, slot as u32);
                        return Ok(());
                    }
                    Type::Tensor { pool } => {
                        return self.tensor(*pool, Handle(slot), &[], executor, writer);
                    }
                    _ if pointer.is_null() => return Err(Problem::Broken("a null pointer")),
                    Type::Str => {
                        // SAFETY: a text points to its bytes.
                        let bytes = unsafe { text_bytes(pointer) };
                        let text = std::str::from_utf8(bytes);
                        writer.text(text.map_err(|_| Problem::Broken("a text that is none"))?);
                        return Ok(());
                    }
                    Type::Adt(adt) => {
                        // SAFETY: a value of a data type points to its tag.
                        let tag = unsafe { pointer.read() };
                        let constructors = &self.manifest.adts[*adt].constructors;
                        let Some(constructor) = constructors.get(tag as usize) else {
                            return Err(Problem::Broken("a constructor that does not exist"));
                        };
                        let group = Group::Node {
                            tag,
                            name: &constructor.name,
                            fields: constructor.fields.len(),
                            names: &constructor.names,
                        };
                        // SAFETY: the fields' slots come after the tag.
                        let fields = unsafe { pointer.add(1) };
                        (&constructor.fields, fields, group)
                    }
                    Type::Array(_)
                    | Type::Stacked { .. }
                    | Type::Tuple(_)
                    | Type::Ragged { .. } => {
                        // SAFETY: an array points to its length, and its elements come after it.
                        let (length, slots) = unsafe { (pointer.read(), pointer.add(1)) };
                        writer.begin(Group::Array { length });
                        self.frames.push(Frame::Elements {
                            ty: match ty {
                                Type::Stacked { pool } => Element::Row(*pool),
                                Type::Array(element) => Element::Value(element),
                                _ => return Err(Problem::Broken("an impossible type")),
                            },
                            slots,
                            left: length,
                            length,
                        });
                        return Ok(());
                    }
                }
            }
        };
        writer.begin(group);
        self.frames.push(Frame::Parts {
            types,
            next: 0,
            slots,
            group,
        });
        Ok(())
    }

    /// Writes a tensor with instance dims.
    ///
    /// # Safety
    ///
    /// `slots` are its handle and its lengths.
    unsafe fn ragged(
        &self,
        pool: usize,
        dims: &[LeadingDim],
        slots: *const u64,
        executor: &Executor,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        let mut lengths = Vec::with_capacity(dims.len());
        let mut free = Vec::with_capacity(dims.len());
        for dim in dims {
            lengths.push(match dim {
                LeadingDim::Known(length) => *length,
                LeadingDim::Named(_) | LeadingDim::Any => {
                    // SAFETY: the caller's promise.
                    free.push(unsafe { slots.add(1 + free.len()).read() });
                    free[free.len() - 1]
                }
            });
        }
        // SAFETY: as above.
        let handle = Handle(unsafe { slots.read() });
        self.rows(pool, handle, &lengths, &free, executor, writer)
    }

    fn tensor(
        &self,
        pool: usize,
        handle: Handle,
        lengths: &[u64],
        executor: &Executor,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        self.rows(pool, handle, lengths, lengths, executor, writer)
    }

    /// Writes a tensor of these leading dims, some of which the type does not know.
    fn rows(
        &self,
        pool: usize,
        handle: Handle,
        leading: &[u64],
        lengths: &[u64],
        executor: &Executor,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        let rows = match leading.contains(&0) {
            true => Some(0),
            false => (leading.iter()).try_fold(1_u64, |rows, dim| rows.checked_mul(*dim)),
        };
        let wanted = rows.map(|rows| Wanted { handle, pool, rows });
        if wanted.is_some_and(|wanted| writer.rows(wanted)) {
            return Ok(());
        }
        let bytes = rows.and_then(|rows| executor.rows(handle, pool, rows));
        let Some(bytes) = bytes else {
            return Err(Problem::Broken("a handle of no rows"));
        };
        let of_row = &self.manifest.row_pools[pool];
        let shape: Vec<u64> = leading.iter().chain(&of_row.shape).copied().collect();
        writer.tensor(Tensor {
            elem: of_row.elem,
            shape: &shape,
            lengths,
            bytes,
        })?;
        Ok(())
    }
}

/// Takes the places of all rows that a result has, or, of one that is too long, more of them than are
/// ever read.
pub struct Places<'a> {
    wanted: &'a mut Vec<Wanted>,
    /// Parts that were seen, each of which has some text; it ends what would otherwise never end.
    parts: u64,
    most: u64,
}

impl<'a> Places<'a> {
    /// Of a result of at most `most` bytes.
    pub fn new(wanted: &'a mut Vec<Wanted>, most: u64) -> Places<'a> {
        Places {
            wanted,
            parts: 0,
            most,
        }
    }
}

impl Writer for Places<'_> {
    fn scalar(&mut self, _: Elem, _: u32) {
        self.parts += 1;
    }

    fn text(&mut self, _: &str) {
        self.parts += 1;
    }

    fn tensor(&mut self, _: Tensor<'_>) -> Result<(), TooLong> {
        Ok(())
    }

    fn begin(&mut self, _: Group<'_>) {
        self.parts += 1;
    }

    fn end(&mut self, _: Group<'_>) {}

    fn is_full(&self) -> bool {
        self.parts > self.most
    }

    fn rows(&mut self, wanted: Wanted) -> bool {
        self.wanted.push(wanted);
        self.parts += 1;
        true
    }
}
