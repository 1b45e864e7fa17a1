//! A value of a data type in a cell: a struct of lists of its nodes, see [`crate::io::nodes`].

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use cohort_abi::manifest::Adt;

use super::cells::{found, integer, range};
use crate::io::input::message::Problem;
use crate::io::nodes::Field;

/// The nodes of one value, each with what it has.
pub struct Nodes<'a> {
    /// By tag.
    constructors: Vec<Columns<'a>>,
    /// In postorder.
    nodes: Vec<Node>,
    /// The nodes that are parts of others, those of one behind each other.
    parts: Vec<usize>,
}

struct Columns<'a> {
    fields: Vec<Content<'a>>,
    /// The row of its next node, and the end of its rows.
    next: usize,
    end: usize,
}

struct Node {
    tag: usize,
    row: usize,
    first_part: usize,
}

/// What a field has.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    Part,
    /// How many elements there are stands in the column.
    Parts(&'a ArrayRef),
    Cell(&'a ArrayRef),
}

impl<'a> Nodes<'a> {
    /// Those in a cell that is not null, of the data type of this number. Each node but the last is a part of
    /// one behind it.
    pub fn read(
        number: usize,
        adt: &Adt,
        array: &'a ArrayRef,
        row: usize,
    ) -> Result<Nodes<'a>, Problem> {
        let (of_tags, begin, end) = list(adt, array, row, "tags")?;
        let columns =
            (adt.constructors.iter()).map(|of| Columns::read(number, adt, of, array, row));
        let mut read = Nodes {
            constructors: columns.collect::<Result<_, _>>()?,
            nodes: Vec::with_capacity(end - begin),
            parts: Vec::with_capacity(end - begin),
        };
        // The nodes that are not parts yet.
        let mut open: Vec<usize> = Vec::new();
        for place in begin..end {
            let tag = count(of_tags, place).filter(|tag| *tag < adt.constructors.len());
            let Some(tag) = tag else {
                let found = integer(of_tags, place).filter(|_| of_tags.is_valid(place));
                let found = found.map_or("null".to_owned(), |tag| tag.to_string());
                return Err(wrong(
                    adt,
                    format!("the tag {found}, which no constructor has"),
                ));
            };
            let name = &adt.constructors[tag].name;
            let columns = &mut read.constructors[tag];
            let row = columns.next;
            columns.next += 1;
            if columns.has_rows() && row >= columns.end {
                return Err(wrong(adt, format!("fewer values of {name} than nodes")));
            }
            let parts = columns.parts(row);
            let first = parts.and_then(|parts| open.len().checked_sub(parts));
            let Some(first) = first else {
                return Err(wrong(
                    adt,
                    format!("a {name} whose parts are not before it"),
                ));
            };
            let first_part = read.parts.len();
            read.parts.extend(open.drain(first..));
            open.push(read.nodes.len());
            read.nodes.push(Node {
                tag,
                row,
                first_part,
            });
        }
        let of_constructors = adt.constructors.iter().zip(&read.constructors);
        for (constructor, columns) in of_constructors {
            if columns.has_rows() && columns.next < columns.end {
                let name = &constructor.name;
                return Err(wrong(adt, format!("more values of {name} than nodes")));
            }
        }
        match open.len() {
            1 => Ok(read),
            count => Err(wrong(adt, format!("{count} values, not one"))),
        }
    }

    /// The node that all others are in.
    pub fn root(&self) -> usize {
        self.nodes.len() - 1
    }

    pub fn tag(&self, node: usize) -> usize {
        self.nodes[node].tag
    }

    /// The first of the node's parts; the others follow.
    pub fn first_part(&self, node: usize) -> usize {
        self.nodes[node].first_part
    }

    /// The node that is this part.
    pub fn part(&self, part: usize) -> usize {
        self.parts[part]
    }

    /// What a node has in a field, and in which row.
    pub fn field(&self, node: usize, field: usize) -> Option<(Content<'a>, usize)> {
        let node = &self.nodes[node];
        let fields = &self.constructors[node.tag].fields;
        Some((*fields.get(field)?, node.row))
    }
}

impl<'a> Columns<'a> {
    fn read(
        number: usize,
        adt: &Adt,
        constructor: &cohort_abi::manifest::Constructor,
        array: &'a ArrayRef,
        row: usize,
    ) -> Result<Columns<'a>, Problem> {
        let fields = || (constructor.fields.iter()).map(|ty| Field::of(number, ty));
        let own = fields().filter_map(Field::column).count();
        if own == 0 {
            return Ok(Columns {
                fields: fields().map(|_| Content::Part).collect(),
                next: 0,
                end: 0,
            });
        }
        let name = &constructor.name;
        let (values, begin, end) = list(adt, array, row, name)?;
        let columns = match own {
            1 => std::slice::from_ref(values),
            _ => {
                let structs = values.as_struct_opt();
                let structs = structs.filter(|structs| structs.num_columns() == own);
                let is_there = |row| values.is_valid(row);
                let structs = structs.filter(|_| (begin..end).all(is_there));
                let wrong = || Problem::Value {
                    expected: format!("a list of structs of {own} fields for {name}"),
                    found: format!("one of {}", values.data_type()),
                };
                structs.ok_or_else(wrong)?.columns()
            }
        };
        let mut columns = columns.iter();
        let content = fields().map_while(|field| match field {
            Field::Part => Some(Content::Part),
            Field::Parts => columns.next().map(Content::Parts),
            Field::Other(_) => columns.next().map(Content::Cell),
        });
        Ok(Columns {
            fields: content.collect(),
            next: begin,
            end,
        })
    }

    /// Whether there are rows, one for each node.
    fn has_rows(&self) -> bool {
        let is_column = |field: &Content<'_>| !matches!(field, Content::Part);
        self.fields.iter().any(is_column)
    }

    /// How many parts the node of a row has.
    fn parts(&self, row: usize) -> Option<usize> {
        let mut parts = self.fields.iter().map(|field| match field {
            Content::Part => Some(1),
            Content::Parts(column) => count(column, row),
            Content::Cell(_) => Some(0),
        });
        parts.try_fold(0_usize, |sum, parts| sum.checked_add(parts?))
    }
}

/// A number of something.
pub fn count(array: &dyn Array, row: usize) -> Option<usize> {
    let number = integer(array, row).filter(|_| array.is_valid(row));
    number.and_then(|number| usize::try_from(number).ok())
}

/// One of the lists that a value's struct has.
fn list<'a>(
    adt: &Adt,
    array: &'a ArrayRef,
    row: usize,
    name: &str,
) -> Result<(&'a ArrayRef, usize, usize), Problem> {
    let Some(members) = array.as_struct_opt() else {
        return Err(Problem::Value {
            expected: format!("a struct with the nodes of a {}", adt.name),
            found: found(array, row),
        });
    };
    let list = members.column_by_name(name);
    let list = list.filter(|list| list.is_valid(row));
    let missing = || wrong(adt, format!("no list `{name}`"));
    (list.and_then(|list| range(list, row))).ok_or_else(missing)
}

fn wrong(adt: &Adt, found: String) -> Problem {
    Problem::Value {
        expected: format!("the nodes of a {} in postorder", adt.name),
        found,
    }
}
