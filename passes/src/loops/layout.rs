//! How ragged tensors lie in storage, as arithmetic on indices.
//!
//! The dims up to the last one on which another's length depends number the *rows* of storage, and
//! offsets say where each begins. Within a row every further dim has one extent, so an element's
//! position is a product and a sum away from its row's first. Rows of several dims are numbered as
//! the table of lengths over these dims stores them, if there is one; otherwise by offsets of their
//! own, which are computed where the layout is.

use std::rc::Rc;

use cohort_dialects::builder::Val;
use cohort_dialects::shape::Shape;
use melior::ir::{Type, ValueLike};

use super::index::Indices;
use crate::support::ir::TensorType;

/// A table of lengths: as dense as it looks, or the storage of a ragged tensor.
#[derive(Clone)]
pub struct Table<'c> {
    pub values: Val<'c>,
    pub layout: Option<Rc<Layout<'c>>>,
}

impl<'c> Table<'c> {
    fn entry(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Val<'c> {
        match &self.layout {
            None => e.get(self.values, at),
            Some(layout) => e.get(self.values, &layout.place(e, at)),
        }
    }

    /// Which of all entries stands at some indices, in order of storage.
    fn number(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Val<'c> {
        let place = match &self.layout {
            None => at.to_vec(),
            Some(layout) => layout.place(e, at),
        };
        let sizes = (1..place.len()).map(|axis| e.size_of(self.values, axis));
        let steps = place[1..].iter().copied().zip(sizes);
        steps.fold(place[0], |number, (index, size)| {
            e.add(e.mul(number, size), index)
        })
    }
}

/// How long one dim is.
#[derive(Clone)]
enum Length<'c> {
    Known(i64),
    /// Of one length that only the run knows.
    One(Val<'c>),
    /// A length for each row of the dims at these positions.
    Ragged(Vec<usize>, Table<'c>),
    /// Of one length that is written nowhere; of the first dim it need not be known.
    Unknown,
}

#[derive(Clone)]
struct Extent<'c> {
    length: Length<'c>,
    pad: i64,
}

impl<'c> Extent<'c> {
    /// `None` where the length is not known.
    fn length(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Option<Val<'c>> {
        match &self.length {
            Length::Known(size) => Some(e.constant(*size)),
            Length::One(size) => Some(*size),
            Length::Ragged(outer, table) => {
                let row: Vec<_> = outer.iter().map(|position| at[*position]).collect();
                Some(table.entry(e, &row))
            }
            Length::Unknown => None,
        }
    }

    fn padded(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Val<'c> {
        let length = self.length(e, at).unwrap_or_else(|| e.constant(0));
        e.round_up(length, self.pad)
    }
}

/// How rows are numbered.
#[derive(Clone)]
enum Rows<'c> {
    /// By the first dim alone.
    First,
    /// As the entries of a table.
    Entries(Table<'c>),
    /// No length differs within these dims.
    Dense,
    /// As the elements of a ragged tensor over these dims.
    Elements(Rc<Layout<'c>>),
}

/// Where the elements of a ragged tensor lie.
pub struct Layout<'c> {
    /// The dims up to the last ragged one.
    dims: Vec<Extent<'c>>,
    /// How many of them number rows.
    outer: usize,
    rows: Rows<'c>,
    offsets: Val<'c>,
}

impl<'c> Layout<'c> {
    /// The layout of a ragged type, of the tables of its ragged dims, each once; what has to be
    /// computed for it is emitted. An error says what is not known.
    pub fn new(
        e: &Indices<'c>,
        ty: Type<'c>,
        tables: &[Table<'c>],
        offsets: Val<'c>,
    ) -> Result<Layout<'c>, &'static str> {
        let (Some(shape), Some(tensor)) = (Shape::of_type(ty), TensorType::of(ty)) else {
            return Err("expected a ragged tensor");
        };
        let dims = extents(e, &shape, &tensor, tables)?;
        let (outer, rows) = rows(e, &dims)?;
        Ok(Layout {
            dims,
            outer,
            rows,
            offsets,
        })
    }

    /// The position of an element's row in storage, and its indices in the dims behind.
    pub fn place(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Vec<Val<'c>> {
        let first = match &self.rows {
            Rows::First => at[0],
            Rows::Entries(table) => table.number(e, &at[..self.outer]),
            Rows::Dense => linear(e, &self.dims[..self.outer], at, 0),
            Rows::Elements(layout) => layout.place(e, &at[..self.outer])[0],
        };
        let within = linear(e, &self.dims, at, self.outer);
        let position = e.add(e.get(self.offsets, &[first]), within);
        let behind = at[self.dims.len()..].iter().copied();
        std::iter::once(position).chain(behind).collect()
    }

    /// A loop over every index within the lengths of the first `depth` dims, in order of storage,
    /// behind the indices that are given.
    pub fn for_each(
        &self,
        e: &Indices<'c>,
        at: &[Val<'c>],
        depth: usize,
        carried: &[Val<'c>],
        body: &mut Body<'_, 'c>,
    ) -> Vec<Val<'c>> {
        nest(e, &self.dims[..depth], &mut at.to_vec(), carried, body)
    }

    /// Whether there can be a loop over all of it.
    pub fn has_lengths(&self) -> bool {
        let unknown = |dim: &Extent<'c>| matches!(dim.length, Length::Unknown);
        !self.dims.iter().any(unknown)
    }

    /// How many dims of the tensor are one of storage.
    pub fn depth(&self) -> usize {
        self.dims.len()
    }
}

/// What a loop does at some indices with what is carried.
pub type Body<'b, 'c> = dyn FnMut(&Indices<'c>, &[Val<'c>], &[Val<'c>]) -> Vec<Val<'c>> + 'b;

/// Loops over the dims behind those that have an index.
pub fn nest<'c>(
    e: &Indices<'c>,
    dims: &[impl Bound<'c>],
    at: &mut Vec<Val<'c>>,
    carried: &[Val<'c>],
    body: &mut Body<'_, 'c>,
) -> Vec<Val<'c>> {
    let Some(dim) = dims.get(at.len()) else {
        return body(e, at, carried);
    };
    let to = dim.bound(e, at);
    e.for_loop(e.constant(0), to, carried, |inner, index, carried| {
        at.push(index);
        let results = nest(inner, dims, at, carried, body);
        at.pop();
        results
    })
}

/// What a loop over a dim ends at.
pub trait Bound<'c> {
    fn bound(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Val<'c>;
}

impl<'c> Bound<'c> for Extent<'c> {
    fn bound(&self, e: &Indices<'c>, at: &[Val<'c>]) -> Val<'c> {
        self.length(e, at).unwrap_or_else(|| e.constant(0))
    }
}

impl<'c> Bound<'c> for Val<'c> {
    fn bound(&self, _: &Indices<'c>, _: &[Val<'c>]) -> Val<'c> {
        *self
    }
}

/// The position among the dims from `first` on, row by row.
fn linear<'c>(e: &Indices<'c>, dims: &[Extent<'c>], at: &[Val<'c>], first: usize) -> Val<'c> {
    (first + 1..dims.len()).fold(at[first], |position, axis| {
        let extent = dims[axis].padded(e, at);
        e.add(e.mul(position, extent), at[axis])
    })
}

fn extents<'c>(
    e: &Indices<'c>,
    shape: &Shape,
    tensor: &TensorType<'c>,
    tables: &[Table<'c>],
) -> Result<Vec<Extent<'c>>, &'static str> {
    let last = shape.dims.iter().rposition(|dim| dim.is_ragged());
    let last = last.ok_or("expected a ragged tensor")?;
    let mut ragged: Vec<(&str, Table<'c>)> = Vec::new();
    for dim in shape.dims.iter().filter(|dim| dim.is_ragged()) {
        let name = dim.name.as_deref().unwrap_or_default();
        if ragged.iter().all(|(known, _)| *known != name) {
            let table = tables.get(ragged.len()).ok_or("expected a table a dim")?;
            ragged.push((name, table.clone()));
        }
    }
    let table_of = |name: &str| ragged.iter().find(|(known, _)| *known == name);
    let mut extents = Vec::new();
    for (axis, dim) in shape.dims[..=last].iter().enumerate() {
        let name = dim.name.as_deref();
        let length = match (tensor.shape[axis], name) {
            (Some(size), _) => Length::Known(size as i64),
            (None, Some(name)) if dim.is_ragged() => {
                let nearest = |outer: &String| {
                    let before = &shape.dims[..axis];
                    before
                        .iter()
                        .rposition(|dim| dim.name.as_ref() == Some(outer))
                };
                let outer: Option<Vec<_>> = dim.outer.iter().map(nearest).collect();
                let (_, table) = table_of(name).ok_or("expected a table a dim")?;
                Length::Ragged(outer.ok_or("expected outer dims before")?, table.clone())
            }
            (None, name) => size_of(e, shape, name, &ragged).map_or(Length::Unknown, Length::One),
        };
        if axis > 0 && matches!(length, Length::Unknown) {
            return Err("not supported yet: a dim of unknown size before a ragged one");
        }
        let pad = dim.pad as i64;
        extents.push(Extent { length, pad });
    }
    Ok(extents)
}

/// The size of a dim of one length: as far as a dense table over it goes.
fn size_of<'c>(
    e: &Indices<'c>,
    shape: &Shape,
    name: Option<&str>,
    ragged: &[(&str, Table<'c>)],
) -> Option<Val<'c>> {
    let name = name?;
    shape.dims.iter().find_map(|dim| {
        let axis = dim.outer.iter().position(|outer| outer == name)?;
        let (_, table) = ragged
            .iter()
            .find(|(of, _)| dim.name.as_deref() == Some(*of))?;
        match &table.layout {
            None => Some(e.size_of(table.values, axis)),
            // Behind the first dim, only a static size or a table tells.
            Some(layout) => match &layout.dims.get(axis)?.length {
                Length::One(size) => Some(*size),
                Length::Known(size) => Some(e.constant(*size)),
                _ => None,
            },
        }
    })
}

/// How many dims number rows, and how.
fn rows<'c>(e: &Indices<'c>, dims: &[Extent<'c>]) -> Result<(usize, Rows<'c>), &'static str> {
    let governed = dims.iter().filter_map(|dim| match &dim.length {
        Length::Ragged(outer, table) => Some((outer, table)),
        _ => None,
    });
    let outer = governed.clone().flat_map(|(outer, _)| outer).max();
    let outer = outer.map_or(1, |last| last + 1);
    if outer == 1 {
        return Ok((1, Rows::First));
    }
    let mut over_all = governed.filter(|(positions, _)| positions.iter().copied().eq(0..outer));
    if let Some((_, table)) = over_all.next() {
        let pads = |dims: &[Extent<'c>]| dims[1..].iter().map(|dim| dim.pad).collect::<Vec<_>>();
        let own = match &table.layout {
            Some(layout) => {
                let mut own = pads(&layout.dims);
                own.resize(outer - 1, 1);
                own
            }
            None => vec![1; outer - 1],
        };
        return match own == pads(&dims[..outer]) {
            true => Ok((outer, Rows::Entries(table.clone()))),
            false => Err("expected a table of lengths padded as the dims that it is over are"),
        };
    }
    let dims = &dims[..outer];
    if !dims
        .iter()
        .any(|dim| matches!(dim.length, Length::Ragged(..)))
    {
        return Ok((outer, Rows::Dense));
    }
    if dims[1..].iter().any(|dim| dim.pad != 1) {
        return Err("not supported yet: padding of a dim on which other lengths depend");
    }
    let layout = own_layout(e, dims)?;
    Ok((outer, Rows::Elements(Rc::new(layout))))
}

/// The layout of a tensor over dims up to a ragged one, with offsets that are computed from lengths.
fn own_layout<'c>(e: &Indices<'c>, dims: &[Extent<'c>]) -> Result<Layout<'c>, &'static str> {
    // Dims of one length behind the last ragged one are part of its rows.
    let (outer, numbering) = rows(e, dims)?;
    if dims[..outer]
        .iter()
        .any(|dim| matches!(dim.length, Length::Unknown))
    {
        return Err("not supported yet: a first dim of unknown size");
    }
    let (zero, one) = (e.constant(0), e.constant(1));
    let rows_there = nest(
        e,
        &dims[..outer],
        &mut Vec::new(),
        &[zero],
        &mut |e, _, sum| vec![e.add(sum[0], one)],
    )[0];
    let list = TensorType {
        shape: vec![None],
        element: zero.r#type(),
    };
    let empty = e.empty(e.add(rows_there, one), list.to_type());
    let start = [e.put(empty, zero, zero), zero, zero];
    let filled = nest(
        e,
        &dims[..outer],
        &mut Vec::new(),
        &start,
        &mut |e, at, carried| {
            let mut row: Vec<_> = at.to_vec();
            row.resize(dims.len(), zero);
            let extents = dims[outer..].iter().map(|dim| dim.padded(e, &row));
            let extent = extents.reduce(|a, b| e.mul(a, b)).unwrap_or(one);
            let (next, end) = (e.add(carried[1], one), e.add(carried[2], extent));
            vec![e.put(carried[0], next, end), next, end]
        },
    );
    Ok(Layout {
        dims: dims.to_vec(),
        outer,
        rows: numbering,
        offsets: filled[0],
    })
}
