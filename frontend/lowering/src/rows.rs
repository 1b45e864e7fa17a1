//! Rows whose number differs by instance: tensors stacked from arrays, concatenations along such a
//! dim, and tensors of known shape that are used where the shape may differ.

use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block, result_of};
use cohort_dialects::types::array;
use cohort_frontend::program::{Binary, Dim, Elem, Expr, ExprKind, Literal, Type};
use melior::ir::{Region, Type as MlirType, TypeLike, ValueLike, attribute::IntegerAttribute};

use crate::dims::ANY_LENGTH;
use crate::expr::Lowering;
use crate::types::{elem_of, known, shape_of};
use crate::{cfb, numbers};

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
            cfb::value(inside, "lookup", &[rows, index], row)
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
        let count = at.value("arith.index_cast", &[count], integer);
        let range = cfb::value(at, "array_range", &[count], array(integer));
        self.each(at, range, Elem::I32, integer, |inside, index| {
            let element = cfb::value(inside, "lookup", &[rows, index], scalar);
            cfb::value(inside, "force", &[element], integer)
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
        let value = body(inside, arguments_of(block)[0]);
        cfb::yield_(inside, &[value]);
        cfb::map(at, &[scalars], array(result), region)
    }

    /// A tensor whose rows can be looked up. Those of a parameter and of a tensor with an instance dim
    /// exist by themselves.
    fn table_of_rows(&mut self, at: Builder<'c>, table: &Expr) -> Val<'c> {
        let value = self.value(at, table);
        let mut shape = shape_of(&table.ty);
        match (&table.kind, known(&shape[0])) {
            (ExprKind::Param(_), _) | (_, None) => value,
            _ => {
                shape[0] = Dim::Instance(ANY_LENGTH.to_owned());
                let ty = self.types().tensor(elem_of(&table.ty), &shape);
                at.value("tensor.cast", &[value], ty)
            }
        }
    }

    /// The rows of an array as a tensor, whose first dim may be known.
    fn stacked(&self, at: Builder<'c>, expr: &Expr, rows: Val<'c>) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let Some(count) = known(&shape[0]) else {
            return cfb::value(at, "stack", &[rows], self.types().whole(&expr.ty));
        };
        let row = self.types().tensor(elem_of(&expr.ty), &shape[1..]);
        let integer = self.types().elem(Elem::I32);
        let get = |index: u64| {
            let index = numbers::constant(at, integer, Literal::I32(index as i32));
            cfb::array_get(at, rows, index, &[row])[0]
        };
        self.joined(at, expr, (0..count).map(get).collect())
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
                false => at.value("tensor.from_elements", &[value], row),
            })
            .map(|value| self.reshape(at, elem, value, &shape[1..], &one))
            .collect();
        match rows[..] {
            [only] => only,
            _ => {
                let first = IntegerAttribute::new(at.ty("i64"), 0).into();
                let ty = self.types().whole(&expr.ty);
                at.value_with("tensor.concat", &rows, ty, &[("dim", first)])
            }
        }
    }

    /// An array of host scalars as one of tensors.
    fn lifted(&self, at: Builder<'c>, scalars: Val<'c>, row: MlirType<'c>, elem: Elem) -> Val<'c> {
        self.each(at, scalars, elem, row, |inside, scalar| {
            inside.value("tensor.from_elements", &[scalar], row)
        })
    }

    /// A concatenation along the first axis, whose length differs by instance: each row is one of a
    /// part's.
    pub fn concat_rows(&mut self, at: Builder<'c>, expr: &Expr, parts: &[Expr]) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        let integer = self.types().elem(Elem::I32);
        let mut tensors = Vec::new();
        for part in parts {
            let value = self.table_of_rows(at, part);
            let length = self.dims.size(at, &shape_of(&part.ty)[0]);
            let length = at.value("arith.index_cast", &[length], integer);
            tensors.push((value, length));
        }
        let total = tensors
            .iter()
            .map(|(_, length)| *length)
            .reduce(|sum, length| numbers::binary(at, Binary::Add, Elem::I32, sum, length))
            .unwrap_or_else(|| unreachable!("a concatenation has parts"));
        let range = cfb::value(at, "array_range", &[total], array(integer));
        let row = self.types().tensor(elem, &shape[1..]);
        let rows = self.each(at, range, Elem::I32, row, |inside, index| {
            row_of(inside, &tensors, index, row)
        });
        cfb::value(at, "stack", &[rows], self.types().whole(&expr.ty))
    }

    /// Values of one type where those of another are expected, of which some dims differ by
    /// instance that are known here.
    pub fn fitted(&self, at: Builder<'c>, values: Vec<Val<'c>>, to: &Type) -> Vec<Val<'c>> {
        let types = self.types().flat(to);
        let fit = |(value, ty): (Val<'c>, MlirType<'c>)| {
            let differs = value.r#type() != ty && ty.is_ranked_tensor();
            match differs {
                true => at.value("tensor.cast", &[value], ty),
                false => value,
            }
        };
        values.into_iter().zip(types).map(fit).collect()
    }
}

/// Row `index` of tensors one behind another.
fn row_of<'c>(
    at: Builder<'c>,
    tensors: &[(Val<'c>, Val<'c>)],
    index: Val<'c>,
    row: MlirType<'c>,
) -> Val<'c> {
    let (tensor, length) = tensors[0];
    if tensors.len() == 1 {
        return cfb::value(at, "lookup", &[tensor, index], row);
    }
    let branch = |value: &dyn Fn(Builder<'c>) -> Val<'c>| -> Region<'c> {
        let (region, block) = region_with_block(&[], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let value = value(inside);
        inside.op("scf.yield", &[value], &[], &[], vec![]);
        region
    };
    let is_here = numbers::binary(at, Binary::Lt, Elem::I32, index, length);
    let here = branch(&|inside| cfb::value(inside, "lookup", &[tensor, index], row));
    let behind = branch(&|inside| {
        let rest = numbers::binary(inside, Binary::Sub, Elem::I32, index, length);
        row_of(inside, &tensors[1..], rest, row)
    });
    let regions = vec![here, behind];
    result_of(at.op("scf.if", &[is_here], &[row], &[], regions), 0)
}
