//! Values of a data type as lists of their nodes, see [`crate::io::nodes`].
//!
//! Results have a field where it stands, before some of the node's parts and behind others, so what the nodes of a
//! constructor have there is put into postorder at the end.

use arrow_array::{ArrayRef, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::ArrowError;
use arrow_select::take::take;
use cohort_abi::manifest::{Constructor, Elem, Manifest};

use super::growing::{Growing, Left, lists, structs};
use super::rows::Rows;
use crate::io::nodes::Field;

pub struct Nodes<'m> {
    tags: Rows,
    /// Nodes of each value.
    lengths: Vec<usize>,
    /// By tag.
    constructors: Vec<Columns<'m>>,
}

struct Columns<'m> {
    constructor: &'m Constructor,
    fields: Vec<Content<'m>>,
    /// Nodes so far, and those of each value.
    count: usize,
    lengths: Vec<usize>,
}

enum Content<'m> {
    Part,
    /// How many parts there are.
    Parts(Rows, Order),
    Other(Growing<'m>, Order),
}

/// The values of a column in postorder, by their places in the order in which they were read.
#[derive(Default)]
struct Order {
    read: u64,
    places: Vec<u64>,
}

/// A node whose fields are read.
struct Open {
    tag: usize,
    field: usize,
    /// Parts that are left to read of the field before.
    parts: u64,
}

impl<'m> Nodes<'m> {
    pub fn of(manifest: &'m Manifest, adt: usize) -> Nodes<'m> {
        let content = |ty| match Field::of(adt, ty) {
            Field::Part => Content::Part,
            Field::Parts => Content::Parts(Rows::new(Elem::I32, []), Order::default()),
            Field::Other(ty) => Content::Other(Growing::of(manifest, ty), Order::default()),
        };
        let constructors = manifest.adts[adt].constructors.iter();
        let columns = constructors.map(|constructor| Columns {
            constructor,
            fields: constructor.fields.iter().map(content).collect(),
            count: 0,
            lengths: Vec::new(),
        });
        Nodes {
            tags: Rows::new(Elem::I32, []),
            lengths: Vec::new(),
            constructors: columns.collect(),
        }
    }

    pub fn append(&mut self, left: &mut Left<'_>) -> Result<(), ArrowError> {
        let before: Vec<usize> = self.constructors.iter().map(|of| of.count).collect();
        let mut nodes = 0;
        // The nodes that are around each other, and the places of what they have so far.
        let mut open = vec![self.begin(left)?];
        let mut places: Vec<u64> = Vec::new();
        while let Some(innermost) = open.last_mut() {
            if innermost.parts > 0 {
                innermost.parts -= 1;
                open.push(self.begin(left)?);
                continue;
            }
            let columns = &mut self.constructors[innermost.tag];
            match columns.fields.get_mut(innermost.field) {
                Some(Content::Part) => innermost.parts = 1,
                Some(Content::Parts(lengths, order)) => {
                    places.push(order.next());
                    innermost.parts = left.word()?;
                    lengths.push(innermost.parts as i32);
                }
                Some(Content::Other(values, order)) => {
                    places.push(order.next());
                    values.append(left)?;
                }
                None => {
                    columns.end(&mut places);
                    self.tags.push(innermost.tag as i32);
                    nodes += 1;
                    open.pop();
                    continue;
                }
            }
            innermost.field += 1;
        }
        self.lengths.push(nodes);
        for (columns, before) in self.constructors.iter_mut().zip(before) {
            columns.lengths.push(columns.count - before);
        }
        Ok(())
    }

    fn begin(&self, left: &mut Left<'_>) -> Result<Open, ArrowError> {
        let tag = left.word()? as usize;
        match tag < self.constructors.len() {
            true => Ok(Open {
                tag,
                field: 0,
                parts: 0,
            }),
            false => Err(ArrowError::InvalidArgumentError(
                "an unknown constructor".to_owned(),
            )),
        }
    }

    pub fn append_nothing(&mut self) {
        self.lengths.push(0);
        for columns in &mut self.constructors {
            columns.lengths.push(0);
        }
    }

    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let count = self.lengths.len();
        let tags = lists(self.lengths, self.tags.finish(None)?, None)?;
        let mut members = vec![("tags".to_owned(), tags)];
        for columns in self.constructors {
            let name = columns.constructor.name.clone();
            if let Some(lists) = columns.finish()? {
                members.push((name, lists));
            }
        }
        structs(members, count, nulls)
    }
}

impl Order {
    /// The place of the value that is read next.
    fn next(&mut self) -> u64 {
        self.read += 1;
        self.read - 1
    }

    /// Puts the values of a column in postorder.
    fn apply(self, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let is_applied = self.places.iter().copied().eq(0..self.places.len() as u64);
        match is_applied {
            true => Ok(values),
            false => take(&*values, &UInt64Array::from(self.places), None),
        }
    }
}

impl Columns<'_> {
    /// A node ends, what it has the last of these places, and is the next one in postorder.
    fn end(&mut self, places: &mut Vec<u64>) {
        self.count += 1;
        for field in self.fields.iter_mut().rev() {
            if let Content::Parts(_, order) | Content::Other(_, order) = field {
                order.places.extend(places.pop());
            }
        }
    }

    /// The lists of a constructor whose nodes have columns.
    fn finish(self) -> Result<Option<ArrayRef>, ArrowError> {
        let mut members = Vec::new();
        for (number, field) in self.fields.into_iter().enumerate() {
            let values = match field {
                Content::Part => continue,
                Content::Parts(lengths, order) => order.apply(lengths.finish(None)?)?,
                Content::Other(values, order) => order.apply(values.finish(None)?)?,
            };
            let name = self.constructor.names.get(number).cloned();
            members.push((name.unwrap_or_else(|| number.to_string()), values));
        }
        let values = match members.len() {
            0 => return Ok(None),
            1 => members.remove(0).1,
            _ => structs(members, self.count, None)?,
        };
        lists(self.lengths, values, None).map(Some)
    }
}
