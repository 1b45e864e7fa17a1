//! Rows whose number differs by instance: tensors stacked from arrays, concatenations along such a
//! dim, and tensors of known shape that are used where the shape may differ.

use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block, result_of};
use cohort_dialects::types::array;
use cohort_frontend::program::{Binary, Dim, Elem, Expr, ExprKind, Literal, Type};
use melior::ir::{Region, Type as MlirType, TypeLike, ValueLike, attribute::IntegerAttribute};

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
        let Some(count) = known(&shape[0]) else {
            let rows = self.value(at, elements);
            let rows = match &elements.ty {
                Type::Array(element) if matches!(**element, Type::Scalar(_)) => {
                    self.lifted(at, rows, row, elem)
                }
                _ => rows,
            };
            return cfb::value(at, "stack", &[rows], self.types().whole(&expr.ty));
        };
        let rows: Vec<Val<'c>> = match &elements.kind {
            ExprKind::Array(elements) => self.exprs(at, elements),
            _ => {
                let rows = self.value(at, elements);
                let Type::Array(element) = &elements.ty else {
                    unreachable!("a stack of {:?}", elements.ty)
                };
                let element = self.types().whole(element);
                let integer = self.types().elem(Elem::I32);
                let get = |index: u64| {
                    let index = numbers::constant(at, integer, Literal::I32(index as i32));
                    cfb::array_get(at, rows, index, &[element])[0]
                };
                (0..count).map(get).collect()
            }
        };
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
        let (region, block) = region_with_block(&[self.types().elem(elem)], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let scalar = arguments_of(block)[0];
        let tensor = inside.value("tensor.from_elements", &[scalar], row);
        cfb::yield_(inside, &[tensor]);
        cfb::map(at, &[scalars], array(row), region)
    }

    /// A concatenation along the first axis, whose length differs by instance: each row is one of a
    /// part's.
    pub fn concat_rows(&mut self, at: Builder<'c>, expr: &Expr, parts: &[Expr]) -> Val<'c> {
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        let integer = self.types().elem(Elem::I32);
        let mut tensors = Vec::new();
        for part in parts {
            let value = self.value(at, part);
            let length = self.dims.size(at, &shape_of(&part.ty)[0]);
            let length = at.value("arith.index_cast", &[length], integer);
            // The rows of a parameter and of a tensor with an instance dim exist by themselves.
            let value = match (&part.kind, known(&shape_of(&part.ty)[0])) {
                (ExprKind::Param(_), _) | (_, None) => value,
                _ => at.value("tensor.cast", &[value], self.types().tensor(elem, &shape)),
            };
            tensors.push((value, length));
        }
        let total = tensors
            .iter()
            .map(|(_, length)| *length)
            .reduce(|sum, length| numbers::binary(at, Binary::Add, Elem::I32, sum, length))
            .unwrap_or_else(|| unreachable!("a concatenation has parts"));
        let range = cfb::value(at, "array_range", &[total], array(integer));
        let row = self.types().tensor(elem, &shape[1..]);
        let (region, block) = region_with_block(&[integer], at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let row_value = row_of(inside, &tensors, arguments_of(block)[0], row);
        cfb::yield_(inside, &[row_value]);
        let rows = cfb::map(at, &[range], array(row), region);
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
