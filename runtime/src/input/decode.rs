//! A JSON value to the slots of its type.
//!
//! A value is decoded bottom up: its parts' slots are pushed on a stack of *values*; when a list
//! or a constructor ends, its parts are moved to memory of the instance and replaced by the
//! pointer. What is being read around the cursor is a stack of *frames*, which also is the path
//! that a message shows.

use cohort_abi::manifest::{Adt, Constructor, Manifest, Type};

use super::Inputs;
use super::cursor::{Cursor, Peek, shorten, unescape};
use super::message::{Problem, too_many};
use super::ragged::Dims;
use crate::output::slot_count;

/// Nodes of constructors without fields are the same everywhere, so they need no memory.
static TAGS: [u64; 256] = {
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
    Array {
        element: Want<'m>,
        index: u64,
        base: usize,
    },
}

pub struct Decoder<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) max_memory: u64,
    /// First slot of each argument, and the number of all slots.
    pub(super) offsets: Vec<usize>,
    pub(super) slots: usize,
    pub(super) frames: Vec<Frame<'m>>,
    pub(super) values: Vec<u64>,
    /// Position in each dim of the tensor that is being read.
    pub(super) counters: Vec<u64>,
    /// Position in each leading dim of the ragged tensor that is being read.
    pub(super) leading: Vec<u64>,
    /// The argument that is being read, and the instance dims of all.
    pub(super) argument: usize,
    pub(super) dims: Box<Dims>,
    /// Bytes of the instance in memory and rows.
    pub(super) used: u64,
}

impl<'m> Decoder<'m> {
    pub fn new(manifest: &'m Manifest, max_memory: u64) -> Decoder<'m> {
        let mut offsets = Vec::new();
        let mut slots = 0;
        for argument in &manifest.arguments {
            offsets.push(slots);
            slots += slot_count(&argument.ty);
        }
        Decoder {
            manifest,
            max_memory,
            offsets,
            slots,
            frames: Vec::new(),
            values: Vec::new(),
            counters: Vec::new(),
            leading: Vec::new(),
            argument: 0,
            dims: Dims::new(manifest.dims.len()).into(),
            used: 0,
        }
    }

    /// Decodes one value; leaves its slots in `values`.
    pub(super) fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        ty: &'m Type,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        self.frames.clear();
        self.values.clear();
        self.counters.clear();
        self.leading.clear();
        let mut want = Want::Value(ty);
        loop {
            if let Some(first) = self.begin(cursor, want, inputs)? {
                want = first;
                continue;
            }
            match self.next(cursor, inputs)? {
                Some(next) => want = next,
                None => return Ok(()),
            }
        }
    }

    /// Reads a value that has no parts, or the begin of one that has: then gives the type of its
    /// first part.
    fn begin(
        &mut self,
        cursor: &mut Cursor<'_>,
        want: Want<'m>,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        let ty = match want {
            Want::Value(ty) => ty,
            Want::Row(space) => {
                let handle = self.tensor(cursor, space, inputs)?;
                self.values.push(handle.0);
                return Ok(None);
            }
        };
        match ty {
            Type::Scalar(elem) => {
                let bits = self.scalar(cursor, *elem)?;
                self.values.push(u64::from(bits));
                Ok(None)
            }
            Type::Ragged { space, dims } => {
                self.ragged(cursor, *space, dims, inputs)?;
                Ok(None)
            }
            Type::Tensor { space } => {
                let handle = self.tensor(cursor, *space, inputs)?;
                self.values.push(handle.0);
                Ok(None)
            }
            Type::Tuple(types) => {
                self.begin_list(cursor, ty)?;
                self.frames.push(Frame::Tuple { types, index: 0 });
                self.charge(0)?;
                match types.first() {
                    Some(first) => self.unless_list_ends(cursor, first),
                    None => self.end_empty(cursor),
                }
            }
            Type::Array(_) | Type::Stacked { .. } => {
                self.begin_list(cursor, ty)?;
                if cursor.take(b']') {
                    let pointer = self.alloc(inputs, &[0])?;
                    self.values.push(pointer);
                    return Ok(None);
                }
                let element = match ty {
                    Type::Stacked { space } => Want::Row(*space),
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
                self.constructor(cursor, ty, &manifest.adts[*adt], inputs)
            }
        }
    }

    /// After a value: what comes next in the innermost list that is not at its end, or `None` when
    /// the outermost value is complete.
    fn next(
        &mut self,
        cursor: &mut Cursor<'_>,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        loop {
            let (types, index) = match self.frames.last_mut() {
                None => return Ok(None),
                Some(Frame::Array {
                    element,
                    index,
                    base,
                }) => {
                    *index += 1;
                    if cursor.take(b',') {
                        let element = *element;
                        self.charge(0)?;
                        return Ok(Some(element));
                    }
                    let (length, base) = (*index, *base);
                    cursor.expect(b']', "`,` or `]`")?;
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
            let has_more = cursor.take(b',');
            match types.get(index) {
                Some(next) if has_more => return Ok(Some(Want::Value(next))),
                Some(next) if cursor.peek() == Peek::ListEnd => {
                    return Err(self.mismatch(cursor, next));
                }
                None if has_more => return Err(too_many(cursor, types.len())),
                _ => cursor.expect(b']', "`,` or `]`")?,
            }
            if let Some(Frame::Fields { base, .. }) = self.frames.pop() {
                cursor.expect(b'}', "`}`, as a value has one constructor")?;
                self.replace_by_pointer(inputs, base)?;
            }
        }
    }

    fn begin_list(&self, cursor: &mut Cursor<'_>, ty: &Type) -> Result<(), Problem> {
        if cursor.take(b'[') {
            Ok(())
        } else {
            Err(self.mismatch(cursor, ty))
        }
    }

    /// The first part of a list that must not be empty.
    fn unless_list_ends(
        &self,
        cursor: &mut Cursor<'_>,
        first: &'m Type,
    ) -> Result<Option<Want<'m>>, Problem> {
        if cursor.peek() == Peek::ListEnd {
            return Err(self.mismatch(cursor, first));
        }
        Ok(Some(Want::Value(first)))
    }

    /// The end of a tuple of nothing, whose frame was pushed.
    fn end_empty(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Want<'m>>, Problem> {
        if !cursor.take(b']') {
            return Err(too_many(cursor, 0));
        }
        self.frames.pop();
        Ok(None)
    }

    fn constructor(
        &mut self,
        cursor: &mut Cursor<'_>,
        ty: &'m Type,
        adt: &'m Adt,
        inputs: &mut Inputs,
    ) -> Result<Option<Want<'m>>, Problem> {
        let mut look = *cursor;
        let is_object = look.take(b'{');
        if look.peek() != Peek::String {
            return Err(self.mismatch(if is_object { &mut look } else { cursor }, ty));
        }
        let token = look.string()?;
        let name = unescape(token);
        let Some(tag) = adt.constructors.iter().position(|c| c.name == name) else {
            return Err(Problem::Value {
                expected: self.expected(ty),
                found: shorten(token),
            });
        };
        let constructor = &adt.constructors[tag];
        match (constructor.fields.first(), is_object) {
            (None, false) => {
                *cursor = look;
                let pointer = match TAGS.get(tag) {
                    Some(node) => node as *const u64 as u64,
                    None => self.alloc(inputs, &[tag as u64])?,
                };
                self.values.push(pointer);
                Ok(None)
            }
            (Some(first), true) => {
                *cursor = look;
                cursor.expect(b':', "`:`")?;
                self.frames.push(Frame::Fields {
                    constructor,
                    index: 0,
                    base: self.values.len(),
                });
                self.charge(0)?;
                self.values.push(tag as u64);
                if !cursor.take(b'[') {
                    self.frames.pop();
                    return Err(Problem::Value {
                        expected: format!("a list of the fields of {}", constructor.name),
                        found: cursor.found(),
                    });
                }
                self.unless_list_ends(cursor, first)
            }
            (None, true) => Err(Problem::Value {
                expected: format!("\"{}\", a constructor without fields", constructor.name),
                found: format!("an object {{{}: …}}", shorten(token)),
            }),
            (Some(_), false) => Err(Problem::Value {
                expected: format!(
                    "{{\"{}\": [{}]}}",
                    constructor.name,
                    vec!["…"; constructor.fields.len()].join(", ")
                ),
                found: shorten(token),
            }),
        }
    }

    /// Moves the values from `base` on to memory.
    fn replace_by_pointer(&mut self, inputs: &mut Inputs, base: usize) -> Result<(), Problem> {
        self.charge(8 * (self.values.len() - base) as u64)?;
        let pointer = inputs.memory.alloc_copy(&self.values[base..]) as u64;
        self.values.truncate(base);
        self.values.push(pointer);
        Ok(())
    }

    fn alloc(&mut self, inputs: &mut Inputs, slots: &[u64]) -> Result<u64, Problem> {
        self.charge(8 * slots.len() as u64)?;
        Ok(inputs.memory.alloc_copy(slots) as u64)
    }

    /// Counts memory that stays, and checks it together with what the stacks use now.
    pub(super) fn charge(&mut self, bytes: u64) -> Result<(), Problem> {
        self.used = self.used.saturating_add(bytes);
        let stacks = 8 * self.values.len() + size_of::<Frame<'_>>() * self.frames.len();
        if self.used.saturating_add(stacks as u64) > self.max_memory {
            Err(Problem::Memory)
        } else {
            Ok(())
        }
    }
}
