//! A value of any type to its slots.
//!
//! A value is built bottom up: its parts' slots are pushed on a stack of *values*; when a list or a
//! constructor ends, its parts are moved to memory of the instance and replaced by the pointer. What
//! is being read around the source's place is a stack of *frames*, which also is the path that a
//! message shows.

use cohort_abi::manifest::{Adt, Constructor, Elem, Type};
use cohort_abi::text_slots;

use super::Inputs;
use super::builder::Builder;
use super::message::{END_OF_LIST, Problem, too_many};
use super::source::{Source, Tag};
use crate::program::slot::slot_count;

/// Nodes of constructors without fields are the same everywhere, so they need no memory.
pub(super) static TAGS: [u64; 256] = {
    let mut tags = [0; 256];
    let mut tag = 0;
    while tag < tags.len() {
        tags[tag] = tag as u64;
        tag += 1;
    }
    tags
};

/// What comes next: a value of a type, or a row of a stacked tensor.
#[derive(Clone, Copy)]
pub(super) enum Want<'m> {
    Value(&'m Type),
    Row(usize),
}

/// A list that is being read; `index` counts the elements that are complete.
pub(super) enum Frame<'m> {
    Tuple {
        types: &'m [Type],
        index: usize,
    },
    Fields {
        constructor: &'m Constructor,
        index: usize,
        base: usize,
    },
    /// Fields that come by name. Room for all of them lies behind the tag, at `base`; whether each was
    /// there is in the builder's `given`, from that place on.
    ByName {
        constructor: &'m Constructor,
        field: Option<usize>,
        base: usize,
        given: usize,
    },
    Array {
        element: Want<'m>,
        index: u64,
        base: usize,
    },
}

/// Slots of the fields before one.
fn field_offset(constructor: &Constructor, field: usize) -> usize {
    constructor.fields.iter().take(field).map(slot_count).sum()
}

impl<'m> Builder<'m> {
    /// Reads one value; leaves its slots in `values`.
    pub(super) fn value(
        &mut self,
        source: &mut impl Source,
        ty: &'m Type,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        self.frames.clear();
        self.values.clear();
        self.given.clear();
        self.counters.clear();
        self.leading.clear();
        let mut want = Want::Value(ty);
        loop {
            if let Some(first) = self.begin(source, want, inputs)? {
                want = first;
                continue;
            }
            match self.next(source, inputs)? {
                Some(next) => want = next,
                None => return Ok(()),
            }
        }
    }

    /// Reads a value that has no parts, or the begin of one that has: then gives the type of its
    /// first part.
    fn begin(
        &mut self,
        source: &mut impl Source,
        want: Want<'m>,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        let ty = match want {
            Want::Value(ty) => ty,
            Want::Row(pool) => {
                let handle = self.tensor(source, pool, inputs)?;
                self.values.push(handle.0);
                return Ok(None);
            }
        };
        match ty {
            Type::Scalar(elem) => {
                let bits = self.scalar(source, *elem)?;
                self.values.push(u64::from(bits));
                Ok(None)
            }
            Type::Str => {
                let Some(text) = source.text()? else {
                    return Err(self.mismatch(source, ty));
                };
                let slots = text_slots(&text);
                let pointer = self.alloc(inputs, &slots)?;
                self.values.push(pointer);
                Ok(None)
            }
            Type::Ragged { pool, dims } => {
                self.ragged(source, *pool, dims, inputs)?;
                Ok(None)
            }
            Type::Tensor { pool } => {
                let handle = self.tensor(source, *pool, inputs)?;
                self.values.push(handle.0);
                Ok(None)
            }
            Type::Tuple(types) => {
                self.begin_list(source, ty)?;
                self.frames.push(Frame::Tuple { types, index: 0 });
                self.charge(0)?;
                match (types.first(), source.next(true)?) {
                    (Some(first), true) => Ok(Some(Want::Value(first))),
                    (Some(first), false) => Err(self.ended(first)),
                    (None, true) => Err(too_many(source, 0)),
                    (None, false) => {
                        self.frames.pop();
                        Ok(None)
                    }
                }
            }
            Type::Array(_) | Type::Stacked { .. } => {
                if let Type::Array(element) = ty
                    && let Type::Scalar(elem) = **element
                    && self.scalars(source, elem, inputs)?
                {
                    return Ok(None);
                }
                self.begin_list(source, ty)?;
                if !source.next(true)? {
                    let pointer = self.alloc(inputs, &[0])?;
                    self.values.push(pointer);
                    return Ok(None);
                }
                let element = match ty {
                    Type::Stacked { pool } => Want::Row(*pool),
                    Type::Array(element) => Want::Value(element),
                    _ => want,
                };
                self.frames.push(Frame::Array {
                    element,
                    index: 0,
                    base: self.values.len(),
                });
                self.charge(0)?;
                Ok(Some(element))
            }
            Type::Adt(adt) => {
                let manifest = self.manifest;
                self.constructor(source, ty, *adt, &manifest.adts[*adt], inputs)
            }
        }
    }

    /// After a value: what comes next in the innermost list that is not at its end, or `None` when
    /// the outermost value is complete.
    fn next(
        &mut self,
        source: &mut impl Source,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        loop {
            let (types, index) = match self.frames.last_mut() {
                None => return Ok(None),
                Some(Frame::ByName { .. }) => match self.next_by_name(source, false)? {
                    Some(next) => return Ok(Some(next)),
                    None => {
                        if let Some(Frame::ByName { base, .. }) = self.frames.pop() {
                            self.replace_by_pointer(inputs, base)?;
                        }
                        continue;
                    }
                },
                Some(Frame::Array {
                    element,
                    index,
                    base,
                }) => {
                    *index += 1;
                    let (element, length, base) = (*element, *index, *base);
                    if source.next(false)? {
                        self.charge(0)?;
                        return Ok(Some(element));
                    }
                    // The length goes before the elements.
                    self.values.push(0);
                    self.values[base..].rotate_right(1);
                    self.values[base] = length;
                    self.frames.pop();
                    self.replace_by_pointer(inputs, base)?;
                    continue;
                }
                Some(Frame::Tuple { types, index }) => {
                    *index += 1;
                    (*types, *index)
                }
                Some(Frame::Fields {
                    constructor, index, ..
                }) => {
                    *index += 1;
                    (constructor.fields.as_slice(), *index)
                }
            };
            match (types.get(index), source.next(false)?) {
                (Some(next), true) => return Ok(Some(Want::Value(next))),
                (Some(next), false) => return Err(self.ended(next)),
                (None, true) => return Err(too_many(source, types.len())),
                (None, false) => {}
            }
            if let Some(Frame::Fields { base, .. }) = self.frames.pop() {
                source.end_fields()?;
                self.replace_by_pointer(inputs, base)?;
            }
        }
    }

    /// Puts the field that was read in its place; what comes next, or `None` where all are there and the
    /// source has left them.
    fn next_by_name(
        &mut self,
        source: &mut impl Source,
        is_first: bool,
    ) -> Result<Option<Want<'m>>, Problem> {
        let Some(Frame::ByName {
            constructor,
            field,
            base,
            given,
        }) = self.frames.last_mut()
        else {
            return Ok(None);
        };
        let (constructor, base, given) = (*constructor, *base, *given);
        if let Some(read) = field.take() {
            let place = base + 1 + field_offset(constructor, read);
            let from = self.values.len() - slot_count(&constructor.fields[read]);
            self.values.copy_within(from.., place);
            self.values.truncate(from);
        }
        let next = source.field(is_first, constructor)?;
        if let Some(next) = next {
            *field = Some(next);
            if std::mem::replace(&mut self.given[given + next], true) {
                return Err(Problem::Value {
                    expected: "a field once".to_owned(),
                    found: format!("`{}` again", constructor.names[next]),
                });
            }
            return Ok(Some(Want::Value(&constructor.fields[next])));
        }
        if let Some(missing) = self.given[given..].iter().position(|given| !given) {
            *field = Some(missing);
            return Err(self.missing(&constructor.fields[missing]));
        }
        self.given.truncate(given);
        source.end_fields()?;
        Ok(None)
    }

    fn missing(&self, ty: &Type) -> Problem {
        Problem::Value {
            expected: self.expected(ty),
            found: "no such field".to_owned(),
        }
    }

    fn begin_list(&self, source: &mut impl Source, ty: &Type) -> Result<(), Problem> {
        match source.begin_list()? {
            true => Ok(()),
            false => Err(self.mismatch(source, ty)),
        }
    }

    /// A list ended where a value of the type should be.
    fn ended(&self, ty: &Type) -> Problem {
        Problem::Value {
            expected: self.expected(ty),
            found: END_OF_LIST.to_owned(),
        }
    }

    fn constructor(
        &mut self,
        source: &mut impl Source,
        ty: &'m Type,
        number: usize,
        adt: &'m Adt,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        let (tag, by_name) = match source.constructor(number, adt)? {
            Tag::Of(tag) => (tag, false),
            Tag::ByName(tag) => (tag, true),
            Tag::Other(found) => {
                let expected = self.expected(ty);
                return Err(Problem::Value { expected, found });
            }
            Tag::Misused { tag, found } => {
                let expected = super::message::form(&adt.constructors[tag]);
                return Err(Problem::Value { expected, found });
            }
        };
        let constructor = &adt.constructors[tag];
        let Some(first) = constructor.fields.first() else {
            let pointer = match TAGS.get(tag) {
                Some(node) => node as *const u64 as u64,
                None => self.alloc(inputs, &[tag as u64])?,
            };
            self.values.push(pointer);
            return Ok(None);
        };
        if by_name {
            let (base, given) = (self.values.len(), self.given.len());
            self.values.push(tag as u64);
            let slots = field_offset(constructor, constructor.fields.len());
            self.values.resize(base + 1 + slots, 0);
            self.given.resize(given + constructor.fields.len(), false);
            self.frames.push(Frame::ByName {
                constructor,
                field: None,
                base,
                given,
            });
            self.charge(0)?;
            return match self.next_by_name(source, true)? {
                Some(first) => Ok(Some(first)),
                None => Err(self.missing(first)),
            };
        }
        self.frames.push(Frame::Fields {
            constructor,
            index: 0,
            base: self.values.len(),
        });
        self.charge(0)?;
        self.values.push(tag as u64);
        match source.next(true)? {
            true => Ok(Some(Want::Value(first))),
            false => Err(self.ended(first)),
        }
    }

    /// An array of scalars that comes as a tensor; whether there is one.
    fn scalars(
        &mut self,
        source: &mut impl Source,
        elem: Elem,
        inputs: &mut Inputs,
    ) -> Result<bool, Problem> {
        let Some(shape) = source.tensor(elem)? else {
            return Ok(false);
        };
        let &[length] = shape else {
            return Err(super::tensor::wrong_shape("a list", elem, shape));
        };
        self.charge(8_u64.saturating_mul(length.saturating_add(1)))?;
        let length = usize::try_from(length).map_err(|_| Problem::Memory)?;
        let elements = source.elements(elem)?;
        let slots = inputs.memory.alloc(1 + length);
        if slots.is_null() {
            return Err(Problem::Memory);
        }
        // SAFETY: that many slots were allocated, and nothing else refers to them.
        let slots = unsafe { std::slice::from_raw_parts_mut(slots.cast(), 1 + length) };
        slots[0] = std::mem::MaybeUninit::new(length as u64);
        let mut elements = elements.chunks_exact(elem.bytes());
        for slot in &mut slots[1..] {
            let element = elements
                .next()
                .map(|bytes| crate::io::output::bits(elem, bytes));
            slot.write(u64::from(element.unwrap_or(0)));
        }
        self.values.push(slots.as_ptr() as u64);
        Ok(true)
    }
}
