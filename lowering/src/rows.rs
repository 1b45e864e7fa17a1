//! Rows whose number differs by instance: tensors stacked from arrays, concatenations along such a
//! dim, and rows that are looked up.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block, result_of};
use cohort_dialects::types::array;
use cohort_frontend::program::{Binary, Dim, Elem, Expr, ExprKind, Literal, Type};
use melior::ir::{Region, Type as MlirType, TypeLike, ValueLike};

use crate::dims::ANY_LENGTH;
use crate::expr::Lowering;
use crate::types::{elem_of, known, shape_of};
use crate::views::{last_unknown, widened};
use crate::{cfb, numbers};

/// So many rows of an array become nodes of their own where their number is known.
const MOST_ROWS: u64 = 64;

impl<'c> Lowering<'_, 'c> {
    /// The elements of an array one behind another. Their number is that of the elements unless it
    /// is known when compiling.
    pub fn stack(&mut self, at: Builder<'c>, expr: &Expr, elements: &Expr) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        let row = self.types().tensor(elem, &shape[1..]);
        if let (ExprKind::Array(elements), Some(_)) = (&elements.kind, known(&shape[0])) {
            let rows = self.exprs(at, elements);
            return self.joined(at, expr, rows);
        }
        let rows = self.value(at, elements);
        let rows = match &elements.ty {
            Type::Array(element) if matches!(**element, Type::Scalar(_)) => {
                self.lifted(at, rows, row, elem)
            }
            _ => rows,
        };
        self.stacked(at, expr, rows)
    }

    /// The rows of a table that a tensor of indices names, one behind another.
    pub fn gather(
        &mut self,
        at: Builder<'c>,
        expr: &Expr,
        table: &Expr,
        indices: &Expr,
    ) -> Val<'c> {
        let rows = self.table_of_rows(at, table);
        let indices = self.host_indices(at, indices);
        let row = self
            .types()
            .tensor(elem_of(&expr.ty), &shape_of(&expr.ty)[1..]);
        let rows = self.each(at, indices, Elem::I32, row, |inside, index| {
            inside.value(Op::CfbLookup, &[rows, index], row)
        });
        self.stacked(at, expr, rows)
    }

    /// The elements of a tensor of indices as an array of the host, which waits for them unless they
    /// came from there.
    fn host_indices(&mut self, at: Builder<'c>, indices: &Expr) -> Val<'c> {
        if let ExprKind::Stack(elements) = &indices.kind
            && matches!(&elements.ty, Type::Array(element) if matches!(**element, Type::Scalar(_)))
        {
            return self.value(at, elements);
        }
        let integer = self.types().elem(Elem::I32);
        let scalar = self.types().tensor(Elem::I32, &[]);
        let rows = self.table_of_rows(at, indices);
        let count = numbers::length(at, rows, 0);
        let count = at.index_cast(count, integer);
        let range = at.value(Op::CfbArrayRange, &[count], array(integer));
        self.each(at, range, Elem::I32, integer, |inside, index| {
            let element = inside.value(Op::CfbLookup, &[rows, index], scalar);
            inside.value(Op::CfbForce, &[element], integer)
        })
    }

    /// A `cfb.map` of an array of scalars.
    fn each(
        &self,
        at: Builder<'c>,
        scalars: Val<'c>,
        elem: Elem,
        result: MlirType<'c>,
        body: impl Fn(Builder<'c>, Val<'c>) -> Val<'c>,
    ) -> Val<'c> {
        let (region, block) = region_with_block(&[self.types().elem(elem)], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let value = self.dims.within(|| body(inside, arguments_of(block)[0]));
        cfb::yield_(inside, &[value]);
        cfb::map(at, &[scalars], array(result), region)
    }

    /// A tensor whose rows can be looked up. Those of a parameter and of a tensor with an instance dim
    /// exist by themselves.
    pub fn table_of_rows(&mut self, at: Builder<'c>, table: &Expr) -> Val<'c> {
        let value = self.value(at, table);
        let mut shape = shape_of(&table.ty);
        match (&table.kind, known(&shape[0])) {
            (ExprKind::Param(_), _) | (_, None) => value,
            _ => {
                shape[0] = Dim::Instance(ANY_LENGTH.to_owned());
                let ty = self.types().tensor(elem_of(&table.ty), &shape);
                widened(at, value, ty)
            }
        }
    }

    /// The rows of an array as a tensor, whose first dim may be known.
    fn stacked(&self, at: Builder<'c>, expr: &Expr, rows: Val<'c>) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        if shape[1..].iter().any(|dim| known(dim).is_none()) {
            return self.stacked_runs(at, elem_of(&expr.ty), &shape, rows);
        }
        let Some(count) = known(&shape[0]).filter(|count| *count <= MOST_ROWS) else {
            let ty = self.types().tensor(elem_of(&expr.ty), &flat(&shape, 1));
            let rows = at.value(Op::CfbStack, &[rows], ty);
            return match known(&shape[0]) {
                None => rows,
                Some(_) => self.viewed(at, elem_of(&expr.ty), rows, &shape, 1),
            };
        };
        let row = self.types().tensor(elem_of(&expr.ty), &shape[1..]);
        let integer = self.types().elem(Elem::I32);
        let get = |index: u64| {
            let index = numbers::constant(at, integer, Literal::I32(index as i32));
            cfb::array_get(at, rows, index, &[row])[0]
        };
        self.joined(at, expr, (0..count).map(get).collect())
    }

    /// Elements that have lengths of their own, which are the same for all: the rows of each, one
    /// behind another.
    fn stacked_runs(
        &self,
        at: Builder<'c>,
        elem: Elem,
        shape: &[Dim],
        elements: Val<'c>,
    ) -> Val<'c> {
        let element = self.types().tensor(elem, &shape[1..]);
        let count = at.value(Op::CfbArrayLen, &[elements], self.types().elem(Elem::I32));
        let lead = last_unknown(shape).map_or(1, |last| last + 1);
        let length = || at.index_cast(count, at.index_type());
        self.dims.know(&shape[0], length);
        let each = self.count(at, &shape[1..lead]);
        let total = integers(at, Binary::Mul, count, each);
        self.rows(at, elem, (shape, lead), total, |inside, index| {
            let place = integers(inside, Binary::Div, index, each);
            let rest = integers(inside, Binary::Rem, index, each);
            let run = cfb::array_get(inside, elements, place, &[element])[0];
            self.row_of(inside, elem, (&shape[1..], lead - 1), run, rest)
        })
    }

    /// A tensor whose first dims, as many as is given, count its `total` rows, each made by its number.
    fn rows(
        &self,
        at: Builder<'c>,
        elem: Elem,
        (shape, lead): (&[Dim], usize),
        total: Val<'c>,
        row: impl Fn(Builder<'c>, Val<'c>) -> Val<'c>,
    ) -> Val<'c> {
        let integer = self.types().elem(Elem::I32);
        let range = at.value(Op::CfbArrayRange, &[total], array(integer));
        let row_type = self.types().tensor(elem, &shape[lead..]);
        let rows = self.each(at, range, Elem::I32, row_type, row);
        let ty = self.types().tensor(elem, &flat(shape, lead));
        let rows = at.value(Op::CfbStack, &[rows], ty);
        match lead {
            1 if known(&shape[0]).is_none() => rows,
            _ => self.viewed(at, elem, rows, shape, lead),
        }
    }

    /// The row of this number of a tensor whose first dims, as many as is given, count its rows.
    fn row_of(
        &self,
        at: Builder<'c>,
        elem: Elem,
        (shape, lead): (&[Dim], usize),
        value: Val<'c>,
        index: Val<'c>,
    ) -> Val<'c> {
        let row = self.types().tensor(elem, &shape[lead..]);
        let value = match lead {
            1 => value,
            _ => {
                let count = self.count(at, &shape[..lead]);
                let count = at.index_cast(count, at.index_type());
                let ty = self.types().tensor(elem, &flat(shape, lead));
                at.value(Op::CfbView, &[value, count], ty)
            }
        };
        at.value(Op::CfbLookup, &[value, index], row)
    }

    /// How many rows these lengths make, on the host.
    fn count(&self, at: Builder<'c>, shape: &[Dim]) -> Val<'c> {
        let integer = self.types().elem(Elem::I32);
        let length = |dim: &Dim| {
            let length = self.dims.size(at, dim);
            at.index_cast(length, integer)
        };
        let all = shape.iter().map(length);
        let all = all.reduce(|count, length| integers(at, Binary::Mul, count, length));
        all.unwrap_or_else(|| numbers::constant(at, integer, Literal::I32(1)))
    }

    /// As many rows as the first dim says, as one tensor.
    fn joined(&self, at: Builder<'c>, expr: &Expr, rows: Vec<Val<'c>>) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        let row = self.types().tensor(elem, &shape[1..]);
        let mut one = shape.clone();
        one[0] = Dim::Known(1);
        let rows: Vec<Val<'c>> = rows
            .into_iter()
            .map(|value| match value.r#type().is_ranked_tensor() {
                true => value,
                false => at.from_elements(&[value], row),
            })
            .map(|value| self.reshape(at, elem, value, &shape[1..], &one))
            .collect();
        match rows[..] {
            [only] => only,
            _ => {
                let ty = self.types().whole(&expr.ty);
                at.concat(0, &rows, ty)
            }
        }
    }

    /// An array of host scalars as one of tensors.
    fn lifted(&self, at: Builder<'c>, scalars: Val<'c>, row: MlirType<'c>, elem: Elem) -> Val<'c> {
        self.each(at, scalars, elem, row, |inside, scalar| {
            inside.from_elements(&[scalar], row)
        })
    }

    /// A concatenation along an axis whose length differs by instance: each row is one of a part's.
    pub fn concat_rows(
        &mut self,
        at: Builder<'c>,
        expr: &Expr,
        parts: &[Expr],
        axis: usize,
    ) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        let all = parts.iter().map(|part| shape_of(&part.ty));
        let last = all
            .chain([shape.clone()])
            .filter_map(|shape| last_unknown(&shape));
        let lead = last.max().map_or(1, |last| last + 1);
        let mut tensors = Vec::new();
        for part in parts {
            let value = self.value(at, part);
            let (value, shape) = self.loosened(at, elem, value, &shape_of(&part.ty), lead);
            tensors.push(Part { value, shape });
        }
        let lengths: Vec<Val<'c>> = tensors
            .iter()
            .map(|part| self.count(at, &part.shape[axis..=axis]))
            .collect();
        let along = lengths.iter().copied();
        let along = along.reduce(|sum, length| integers(at, Binary::Add, sum, length));
        let along = along.unwrap_or_else(|| unreachable!("a concatenation has parts"));
        let (before, after) = (&shape[..axis], &shape[axis + 1..lead]);
        let (before, after) = (self.count(at, before), self.count(at, after));
        let run = integers(at, Binary::Mul, along, after);
        let total = integers(at, Binary::Mul, before, run);
        let length = || at.index_cast(along, at.index_type());
        self.dims.know(&shape[axis], length);
        self.rows(at, elem, (&shape, lead), total, |inside, index| {
            let outer = integers(inside, Binary::Div, index, run);
            let rest = integers(inside, Binary::Rem, index, run);
            let place = integers(inside, Binary::Div, rest, after);
            let inner = integers(inside, Binary::Rem, rest, after);
            let number = |inside, part: usize, place| {
                let row = integers(inside, Binary::Mul, outer, lengths[part]);
                let row = integers(inside, Binary::Add, row, place);
                let row = integers(inside, Binary::Mul, row, after);
                integers(inside, Binary::Add, row, inner)
            };
            let read = |inside, part: usize, place| {
                let index = number(inside, part, place);
                let part = &tensors[part];
                self.row_of(inside, elem, (&part.shape, lead), part.value, index)
            };
            let read = |inside, part: usize, place| self.dims.within(|| read(inside, part, place));
            pick(inside, &lengths, 0, place, &read)
        })
    }
}

/// A tensor with its dims.
struct Part<'c> {
    value: Val<'c>,
    shape: Vec<Dim>,
}

/// Where a place along parts one behind another is: which part, from `part` on, and the place in it.
fn pick<'c>(
    at: Builder<'c>,
    lengths: &[Val<'c>],
    part: usize,
    place: Val<'c>,
    read: &dyn Fn(Builder<'c>, usize, Val<'c>) -> Val<'c>,
) -> Val<'c> {
    if part + 1 == lengths.len() {
        return read(at, part, place);
    }
    let branch = |value: &dyn Fn(Builder<'c>) -> Val<'c>| -> (Region<'c>, MlirType<'c>) {
        let (region, block) = region_with_block(&[], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let value = value(inside);
        inside.scf_yield(&[value]);
        (region, value.r#type())
    };
    let is_here = integers(at, Binary::Lt, place, lengths[part]);
    let (here, row) = branch(&|inside| read(inside, part, place));
    let (behind, _) = branch(&|inside| {
        let rest = integers(inside, Binary::Sub, place, lengths[part]);
        pick(inside, lengths, part + 1, rest, read)
    });
    result_of(at.scf_if(is_here, &[row], [here, behind]), 0)
}

/// Arithmetic of integers of the host that are not negative.
fn integers<'c>(at: Builder<'c>, op: Binary, left: Val<'c>, right: Val<'c>) -> Val<'c> {
    match op {
        Binary::Div => at.divui(left, right),
        Binary::Rem => at.remui(left, right),
        _ => numbers::binary(at, op, Elem::I32, left, right),
    }
}

/// The dims of the same rows, counted by one length.
fn flat(shape: &[Dim], lead: usize) -> Vec<Dim> {
    let count = [Dim::Instance(ANY_LENGTH.to_owned())];
    [&count[..], &shape[lead..]].concat()
}
