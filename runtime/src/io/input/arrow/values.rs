//! A cell of a column as a source: what its value has, one after another.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use cohort_abi::manifest::{Adt, Elem};

use super::cells::{Dense, found, number, range};
use super::nodes::{Content, Nodes, count};
use crate::io::input::message::Problem;
use crate::io::input::source::{Source, Tag};

/// The value at hand.
enum At<'a> {
    Cell(&'a ArrayRef, usize),
    /// A node of a value of a data type, which is a part of another.
    Node(Rc<Nodes<'a>>, usize),
    /// An array of such.
    Parts(Rc<Nodes<'a>>, Range<usize>),
}

/// A list whose elements are taken.
enum Open<'a> {
    Elements {
        values: &'a ArrayRef,
        next: usize,
        end: usize,
    },
    Members {
        members: &'a StructArray,
        row: usize,
        next: usize,
    },
    Fields {
        nodes: Rc<Nodes<'a>>,
        node: usize,
        next: usize,
        /// The first of its parts that is left.
        parts: usize,
    },
    Parts {
        nodes: Rc<Nodes<'a>>,
        left: Range<usize>,
    },
}

/// The value of one row of a column.
pub struct Values<'a> {
    at: At<'a>,
    open: Vec<Open<'a>>,
    dense: Dense,
}

impl<'a> Values<'a> {
    pub fn new(array: &'a ArrayRef, row: usize) -> Values<'a> {
        Values {
            at: At::Cell(array, row),
            open: Vec::new(),
            dense: Dense::default(),
        }
    }

    /// The cell at hand, if there is one that is not null.
    fn cell(&self) -> Option<(&'a ArrayRef, usize)> {
        match self.at {
            At::Cell(array, row) if !array.is_null(row) => Some((array, row)),
            _ => None,
        }
    }
}

impl Source for Values<'_> {
    fn begin_list(&mut self) -> Result<bool, Problem> {
        let open = match &self.at {
            At::Parts(nodes, parts) => Some(Open::Parts {
                nodes: nodes.clone(),
                left: parts.clone(),
            }),
            _ => self
                .cell()
                .and_then(|(array, row)| match range(array, row) {
                    Some((values, next, end)) => Some(Open::Elements { values, next, end }),
                    None => Some(Open::Members {
                        members: array.as_struct_opt()?,
                        row,
                        next: 0,
                    }),
                }),
        };
        let is_list = open.is_some();
        self.open.extend(open);
        Ok(is_list)
    }

    fn next(&mut self, _is_first: bool) -> Result<bool, Problem> {
        let next = match self.open.last_mut() {
            Some(Open::Elements { values, next, end }) if *next < *end => {
                *next += 1;
                Some(At::Cell(values, *next - 1))
            }
            Some(Open::Members { members, row, next }) if *next < members.num_columns() => {
                *next += 1;
                Some(At::Cell(members.column(*next - 1), *row))
            }
            Some(Open::Fields {
                nodes,
                node,
                next,
                parts,
            }) => {
                *next += 1;
                let field = nodes.field(*node, *next - 1);
                field.map(|(content, row)| match content {
                    Content::Cell(column) => At::Cell(column, row),
                    Content::Part => {
                        *parts += 1;
                        At::Node(nodes.clone(), nodes.part(*parts - 1))
                    }
                    Content::Parts(column) => {
                        let begin = *parts;
                        *parts += count(column, row).unwrap_or(0);
                        At::Parts(nodes.clone(), begin..*parts)
                    }
                })
            }
            Some(Open::Parts { nodes, left }) => {
                (left.next()).map(|part| At::Node(nodes.clone(), nodes.part(part)))
            }
            _ => None,
        };
        let is_there = next.is_some();
        match next {
            Some(next) => self.at = next,
            None => drop(self.open.pop()),
        }
        Ok(is_there)
    }

    fn skip_rest(&mut self) -> Result<u64, Problem> {
        Ok(match self.open.pop() {
            Some(Open::Elements { next, end, .. }) => 1 + (end - next) as u64,
            Some(Open::Members { members, next, .. }) => 1 + (members.num_columns() - next) as u64,
            Some(Open::Parts { left, .. }) => 1 + left.len() as u64,
            // Fields are as many as the type has.
            Some(Open::Fields { .. }) | None => 0,
        })
    }

    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        Ok((self.cell()).and_then(|(array, row)| number(array, row, elem)))
    }

    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem> {
        let text = self
            .cell()
            .and_then(|(array, row)| match array.data_type() {
                DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
                DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
                DataType::Utf8View => Some(array.as_string_view().value(row)),
                _ => None,
            });
        Ok(text.map(Cow::Borrowed))
    }

    fn constructor(&mut self, number: usize, adt: &Adt) -> Result<Tag, Problem> {
        let (nodes, node) = match &self.at {
            At::Node(nodes, node) => (nodes.clone(), *node),
            At::Cell(array, row) if !array.is_null(*row) => {
                let nodes = Rc::new(Nodes::read(number, adt, array, *row)?);
                let root = nodes.root();
                (nodes, root)
            }
            _ => return Ok(Tag::Other(self.found())),
        };
        let tag = nodes.tag(node);
        if !adt.constructors[tag].fields.is_empty() {
            self.open.push(Open::Fields {
                parts: nodes.first_part(node),
                nodes,
                node,
                next: 0,
            });
        }
        Ok(Tag::Of(tag))
    }

    fn end_fields(&mut self) -> Result<(), Problem> {
        Ok(())
    }

    fn tensor(&mut self, elem: Elem) -> Result<Option<&[u64]>, Problem> {
        let Some((values, begin, end)) = self.cell().and_then(|(array, row)| range(array, row))
        else {
            return Ok(None);
        };
        // What tells nothing of its shape, or is not of one, is read element by element.
        if begin == end || !self.dense.rows(values, begin, end, elem) {
            return Ok(None);
        }
        self.dense.shape.insert(0, (end - begin) as u64);
        Ok(Some(&self.dense.shape))
    }

    fn elements(&mut self, _elem: Elem) -> Result<&[u8], Problem> {
        Ok(&self.dense.bytes)
    }

    fn found(&mut self) -> String {
        match &self.at {
            At::Cell(array, row) => found(array, *row),
            At::Node(..) => "a node".to_owned(),
            At::Parts(..) => "a list of nodes".to_owned(),
        }
    }
}
