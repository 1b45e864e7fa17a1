//! A result out of its columns, part by part, as [`super::Walk`] hands it to a [`Writer`] out of rows.

use cohort_abi::manifest::{LeadingDim, Manifest, Type};

use super::columns::{Column, Columns};
use super::{Element, Group, Problem, Tensor, Writer, bits};

/// Hands the result of an instance of these columns to the writer; it has one.
pub fn replay(
    manifest: &Manifest,
    columns: &Columns,
    instance: usize,
    writer: &mut impl Writer,
) -> Result<(), Problem> {
    let mut replay = Replay {
        manifest,
        columns: columns.columns.iter(),
        instance,
        bytes: &[],
        words: &[],
        frames: Vec::new(),
    };
    replay.run(writer)
}

struct Frame<'m> {
    parts: Parts<'m>,
    next: usize,
    group: Group<'m>,
}

#[derive(Clone, Copy)]
enum Parts<'m> {
    /// Of the result's own tuple: its parts have columns of their own.
    Columns(&'m [Type]),
    Types(&'m [Type]),
    /// This number of parts of one type.
    Elements(Element<'m>, u64),
}

impl<'m> Parts<'m> {
    fn get(self, index: usize) -> Option<Element<'m>> {
        match self {
            Parts::Columns(types) | Parts::Types(types) => types.get(index).map(Element::Value),
            Parts::Elements(element, count) => ((index as u64) < count).then_some(element),
        }
    }
}

struct Replay<'m, 'c> {
    manifest: &'m Manifest,
    columns: std::slice::Iter<'c, Column>,
    instance: usize,
    /// What is left of the column at hand.
    bytes: &'c [u8],
    words: &'c [u64],
    frames: Vec<Frame<'m>>,
}

/// The columns end before the value.
const SHORT: Problem = Problem::Broken("a column that is too short");

impl<'m> Replay<'m, '_> {
    fn run(&mut self, writer: &mut impl Writer) -> Result<(), Problem> {
        self.begin(Element::Value(&self.manifest.result), true, writer)?;
        while let Some(frame) = self.frames.last_mut() {
            if writer.is_full() {
                return Err(Problem::TooLong);
            }
            let Some(element) = frame.parts.get(frame.next) else {
                writer.end(frame.group);
                self.frames.pop();
                continue;
            };
            if frame.next > 0 {
                writer.separate();
            }
            if let Group::Node { names, .. } = frame.group
                && let Some(name) = names.get(frame.next)
            {
                writer.field(name);
            }
            frame.next += 1;
            let has_columns = matches!(frame.parts, Parts::Columns(_));
            self.begin(element, has_columns, writer)?;
        }
        Ok(())
    }

    /// Hands on a value that has no parts, or opens one that has.
    fn begin(
        &mut self,
        element: Element<'m>,
        has_columns: bool,
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        let ty = match element {
            Element::Row(pool) => return self.tensor(pool, &[], writer),
            Element::Value(ty) => ty,
        };
        if has_columns && !matches!(ty, Type::Tuple(_)) {
            let column = self.columns.next().ok_or(SHORT)?;
            (self.bytes, self.words) = column.get(self.instance);
        }
        let (parts, group) = match ty {
            Type::Scalar(elem) => {
                let element = self.take(elem.bytes())?;
                writer.scalar(*elem, bits(*elem, element));
                return Ok(());
            }
            Type::Str => {
                let length = self.word()?;
                let text = std::str::from_utf8(self.take(length as usize)?);
                writer.text(text.map_err(|_| Problem::Broken("a text that is none"))?);
                return Ok(());
            }
            Type::Tensor { pool } => return self.tensor(*pool, &[], writer),
            Type::Ragged { pool, dims } => return self.tensor(*pool, dims, writer),
            Type::Tuple(types) => match has_columns {
                true => (Parts::Columns(types), Group::Tuple),
                false => (Parts::Types(types), Group::Tuple),
            },
            Type::Array(element) => self.array(Element::Value(element))?,
            Type::Stacked { pool } => self.array(Element::Row(*pool))?,
            Type::Adt(adt) => {
                let tag = self.word()?;
                let constructor = self.manifest.adts[*adt].constructors.get(tag as usize);
                let constructor =
                    constructor.ok_or(Problem::Broken("a constructor that does not exist"))?;
                let group = Group::Node {
                    tag,
                    name: &constructor.name,
                    fields: constructor.fields.len(),
                    names: &constructor.names,
                };
                (Parts::Types(&constructor.fields), group)
            }
        };
        writer.begin(group);
        self.frames.push(Frame {
            parts,
            next: 0,
            group,
        });
        Ok(())
    }

    fn array(&mut self, element: Element<'m>) -> Result<(Parts<'m>, Group<'m>), Problem> {
        let length = self.word()?;
        Ok((Parts::Elements(element, length), Group::Array { length }))
    }

    fn tensor(
        &mut self,
        pool: usize,
        dims: &[LeadingDim],
        writer: &mut impl Writer,
    ) -> Result<(), Problem> {
        let pool = &self.manifest.row_pools[pool];
        let mut lengths = Vec::new();
        let mut shape = Vec::with_capacity(dims.len() + pool.shape.len());
        for dim in dims {
            shape.push(match dim {
                LeadingDim::Known(length) => *length,
                LeadingDim::Named(_) | LeadingDim::Any => {
                    lengths.push(self.word()?);
                    lengths[lengths.len() - 1]
                }
            });
        }
        shape.extend(&pool.shape);
        let count = match shape.contains(&0) {
            true => Some(0),
            false => (shape.iter()).try_fold(1_u64, |count, dim| count.checked_mul(*dim)),
        };
        let size = count.and_then(|count| count.checked_mul(pool.elem.bytes() as u64));
        let bytes = self.take(size.ok_or(SHORT)? as usize)?;
        writer.tensor(Tensor {
            elem: pool.elem,
            shape: &shape,
            lengths: &lengths,
            bytes,
        })?;
        Ok(())
    }

    fn word(&mut self) -> Result<u64, Problem> {
        let (first, rest) = self.words.split_first().ok_or(SHORT)?;
        self.words = rest;
        Ok(*first)
    }
}

impl<'c> Replay<'_, 'c> {
    fn take(&mut self, count: usize) -> Result<&'c [u8], Problem> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(SHORT)?;
        self.bytes = rest;
        Ok(taken)
    }
}
