//! Tensor arithmetic: elementwise with broadcasting written out, products, reductions, lookups.

use cohort_dialects::builder::{Builder, CmpfPredicate, Op, Val};
use cohort_dialects::keys;
use cohort_frontend::program::{Binary, Dim, Elem, Expr, ExprKind, Literal, Reduction, Unary};
use melior::ir::{
    Attribute, TypeLike, ValueLike,
    attribute::{DenseElementsAttribute, FlatSymbolRefAttribute},
    operation::{OperationLike, OperationResult},
};

use crate::expr::Lowering;
use crate::linalg::{Tensors, without};
use crate::types::{elem_of, instance_dims, known, shape_of};
use crate::{integers, numbers};

/// Elements of a constant that the compiler writes out: 256 KiB of them.
const LONGEST_CONSTANT: u64 = 1 << 16;

impl<'a, 'c> Lowering<'a, 'c> {
    pub fn tensor(&mut self, at: Builder<'c>, expr: &Expr) -> Val<'c> {
        let ty = self.types().whole(&expr.ty);
        let shape = shape_of(&expr.ty);
        let elem = elem_of(&expr.ty);
        match &expr.kind {
            ExprKind::Param(param) => {
                let name = &self.unit.program.params[param.0].name;
                let global = FlatSymbolRefAttribute::new(at.context(), name).into();
                at.global(global, ty)
            }
            ExprKind::Lift(_) | ExprKind::Fill(_) => self.operand(at, expr, &shape),
            ExprKind::Unary { op, value } => {
                let operand = self.operand(at, value, &shape);
                numbers::unary(at, *op, elem_of(&value.ty), operand)
            }
            ExprKind::Binary { op, lhs, rhs } => {
                let [left, right] = self.operands(at, [lhs, rhs], &shape);
                match elem_of(&lhs.ty) {
                    Elem::I32 => integers::integers(at, *op, left, right, rhs),
                    elem => numbers::binary(at, *op, elem, left, right),
                }
            }
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                let operands = [&**cond, then, otherwise];
                let [cond, then, otherwise] = self.operands(at, operands, &shape);
                numbers::select(at, cond, then, otherwise)
            }
            ExprKind::Cast(value) => {
                let operand = self.operand(at, value, &shape);
                numbers::cast(at, elem_of(&value.ty), elem, operand, ty)
            }
            ExprKind::Iota { axis } => self.iota(at, &shape, *axis),
            ExprKind::Random { counter } => self.random(at, counter, &shape),
            ExprKind::MatMul { lhs, rhs } => {
                let left = self.value(at, lhs);
                let right = self.value(at, rhs);
                let shapes = [&shape_of(&lhs.ty)[..], &shape_of(&rhs.ty), &shape];
                self.product(at, elem, [left, right], shapes)
            }
            ExprKind::Reduce { op, value, axis } => {
                let operand = self.value(at, value);
                self.reduce(at, *op, elem, operand, &shape_of(&value.ty), *axis)
            }
            ExprKind::ArgMax { value, axis } => {
                let operand = self.value(at, value);
                let from = shape_of(&value.ty);
                if !instance_dims(&value.ty).is_empty() {
                    return self.argmax_of_any(at, elem_of(&value.ty), operand, &from, *axis);
                }
                let tensors = self.tensors(at, elem_of(&value.ty));
                tensors.argmax(operand, &from, *axis)
            }
            ExprKind::Softmax { value, axis } => {
                let operand = self.value(at, value);
                self.softmax(at, operand, &shape, *axis)
            }
            ExprKind::Row { table, index } => match (fixed_row(table, index), &table.kind) {
                (row, ExprKind::Transpose { value, permutation })
                    if !instance_dims(&table.ty).is_empty() && is_rank_2(table) =>
                {
                    self.along(at, value, permutation[0], row, index)
                }
                (Some(row), _) => self.row(at, table, row),
                (None, _) => {
                    let table = self.table_of_rows(at, table);
                    let index = self.value(at, index);
                    at.value(Op::CfbLookup, &[table, index], ty)
                }
            },
            other => unreachable!("not a tensor operation: {other:?}"),
        }
    }

    pub fn tensors(&self, at: Builder<'c>, elem: Elem) -> Tensors<'_, 'c> {
        Tensors {
            at,
            types: self.types(),
            dims: &self.dims,
            elem,
        }
    }

    /// Expressions as operands of elementwise arithmetic over `shape`. What has a shape of its own
    /// comes first: nothing else may tell the lengths.
    fn operands<const N: usize>(
        &mut self,
        at: Builder<'c>,
        exprs: [&Expr; N],
        shape: &[Dim],
    ) -> [Val<'c>; N] {
        let values = exprs.map(|expr| match expr.kind {
            ExprKind::Literal(_) | ExprKind::Lift(_) | ExprKind::Fill(_) => None,
            _ => Some(self.value(at, expr)),
        });
        let mut values = values.into_iter();
        exprs.map(|expr| match values.next().flatten() {
            Some(value) => self.broadcast(at, elem_of(&expr.ty), value, &shape_of(&expr.ty), shape),
            None => self.operand(at, expr, shape),
        })
    }

    /// An expression as an operand of elementwise arithmetic over `shape`.
    pub fn operand(&mut self, at: Builder<'c>, expr: &Expr, shape: &[Dim]) -> Val<'c> {
        let elem = elem_of(&expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => {
                let scalar = numbers::literal(at, *literal);
                self.tensors(at, elem).splat(shape, scalar)
            }
            // One number, wherever it comes from: no need to make a smaller tensor of it first.
            ExprKind::Lift(value) | ExprKind::Fill(value)
                if matches!(value.kind, ExprKind::Literal(_) | ExprKind::Lift(_)) =>
            {
                self.operand(at, value, shape)
            }
            ExprKind::Lift(value) => {
                let scalar = self.value(at, value);
                self.spread(at, elem, scalar, shape)
            }
            ExprKind::Fill(value) => {
                let value = self.value(at, value);
                if value.r#type().is_ranked_tensor() {
                    self.broadcast(at, elem, value, &[], shape)
                } else {
                    self.spread(at, elem, value, shape)
                }
            }
            _ => {
                let value = self.value(at, expr);
                self.broadcast(at, elem, value, &shape_of(&expr.ty), shape)
            }
        }
    }

    /// A host scalar as a tensor of `shape`.
    pub fn spread(&self, at: Builder<'c>, elem: Elem, scalar: Val<'c>, shape: &[Dim]) -> Val<'c> {
        if let Some(element) = constant_of(scalar) {
            return self.tensors(at, elem).splat(shape, element);
        }
        let ty = self.types().tensor(elem, &[]);
        let tensor = at.from_elements(&[scalar], ty);
        self.broadcast(at, elem, tensor, &[], shape)
    }

    /// Repeats a value as NumPy does: axes are aligned at the last, and one that is missing or of
    /// length 1 grows.
    fn broadcast(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        to: &[Dim],
    ) -> Val<'c> {
        if from == to {
            return value;
        }
        if let Some(element) = constant_of(value).and_then(splat_of) {
            return self.tensors(at, elem).splat(to, element);
        }
        let missing = to.len() - from.len();
        let grows = |axis: usize| axis < missing || from[axis - missing] != to[axis];
        let added: Vec<usize> = (0..to.len()).filter(|axis| grows(*axis)).collect();
        let kept: Vec<Dim> = (0..to.len())
            .filter(|axis| !grows(*axis))
            .map(|axis| to[axis].clone())
            .collect();
        let value = self.reshape(at, elem, value, from, &kept);
        self.tensors(at, elem).broadcast(value, to, &added)
    }

    fn reduce(
        &self,
        at: Builder<'c>,
        op: Reduction,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        axis: usize,
    ) -> Val<'c> {
        let shape = without(from, axis);
        let combine = match op {
            Reduction::Sum | Reduction::Mean => Binary::Add,
            Reduction::Max => Binary::Max,
            Reduction::Min => Binary::Min,
        };
        let neutral = numbers::neutral(op, elem);
        let reduced = self
            .tensors(at, elem)
            .reduce(combine, neutral, value, &shape, axis);
        if op != Reduction::Mean {
            return reduced;
        }
        let ty = self.types().tensor(elem, &shape);
        let Some(count) = known(&from[axis]) else {
            return self.share(at, elem, reduced, &shape, &from[axis]);
        };
        if elem == Elem::F32 {
            let share = Literal::F32(1.0 / count as f64);
            let share = numbers::constant_like(at, reduced, ty, share);
            numbers::binary(at, Binary::Mul, elem, reduced, share)
        } else {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            let count = numbers::constant_like(at, reduced, ty, Literal::I32(count));
            numbers::binary(at, Binary::Div, elem, reduced, count)
        }
    }

    /// As [`Tensors::argmax`] of a tensor whose shape differs by instance: the least of the indices of
    /// the largest element, of folds that any kernel has.
    fn argmax_of_any(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        from: &[Dim],
        axis: usize,
    ) -> Val<'c> {
        let shape = without(from, axis);
        let (own, integers) = (self.tensors(at, elem), self.tensors(at, Elem::I32));
        let neutral = numbers::neutral(Reduction::Max, elem);
        let numbers_only = match elem {
            // A NaN is larger than nothing.
            Elem::F32 => {
                let is_number = at.cmpf(CmpfPredicate::Ord, value, value);
                numbers::select(at, is_number, value, own.filled(from, neutral))
            }
            _ => value,
        };
        let largest = own.reduce(Binary::Max, neutral, numbers_only, &shape, axis);
        let largest = own.broadcast(largest, from, &[axis]);
        let is_largest = numbers::binary(at, Binary::Eq, elem, value, largest);
        let none = Literal::I32(i32::MAX);
        let indices = self.iota(at, from, axis);
        let indices = numbers::select(at, is_largest, indices, integers.filled(from, none));
        let first = integers.reduce(Binary::Min, none, indices, &shape, axis);
        let none = numbers::constant_like(at, first, first.r#type(), none);
        let is_none = numbers::binary(at, Binary::Eq, Elem::I32, first, none);
        let integer = self.types().elem(Elem::I32);
        let mut zero = numbers::constant(at, integer, Literal::I32(0));
        if known(&from[axis]).is_none() {
            // Of nothing there is no first index.
            let length = self.length_unless_none(at, &from[axis], &shape);
            zero = at.value(Op::CfbWithin, &[zero, length], integer);
        }
        let zero = self.spread(at, Elem::I32, zero, &shape);
        numbers::select(at, is_none, zero, first)
    }

    /// The length of a dim, or a positive number where one of the others is 0.
    pub fn length_unless_none(&self, at: Builder<'c>, dim: &Dim, others: &[Dim]) -> Val<'c> {
        let sizes = others.iter().map(|dim| self.dims.size(at, dim));
        let Some(count) = sizes.reduce(|count, size| at.muli(count, size)) else {
            return self.dims.size(at, dim);
        };
        let some = at.minsi(count, at.index(1));
        let none = at.subi(at.index(1), some);
        at.addi(self.dims.size(at, dim), none)
    }

    /// A sum divided by a length that is known at run time only. Of nothing the mean is not a number,
    /// and 0 for integers.
    fn share(
        &self,
        at: Builder<'c>,
        elem: Elem,
        sum: Val<'c>,
        shape: &[Dim],
        count: &Dim,
    ) -> Val<'c> {
        let integer = self.types().elem(Elem::I32);
        let count = self.dims.size(at, count);
        let count = at.index_cast(count, integer);
        let count = match elem {
            Elem::F32 => at.sitofp(count, self.types().elem(elem)),
            _ => {
                let one = numbers::constant(at, integer, Literal::I32(1));
                numbers::binary(at, Binary::Max, elem, count, one)
            }
        };
        let count = self.spread(at, elem, count, shape);
        numbers::binary(at, Binary::Div, elem, sum, count)
    }

    /// `exp(x - max) / Σ exp(x - max)`.
    fn softmax(&self, at: Builder<'c>, value: Val<'c>, shape: &[Dim], axis: usize) -> Val<'c> {
        let elem = Elem::F32;
        let tensors = self.tensors(at, elem);
        let largest = self.reduce(at, Reduction::Max, elem, value, shape, axis);
        let largest = tensors.broadcast(largest, shape, &[axis]);
        let shifted = numbers::binary(at, Binary::Sub, elem, value, largest);
        let powers = numbers::unary(at, Unary::Exp, elem, shifted);
        let total = self.reduce(at, Reduction::Sum, elem, powers, shape, axis);
        let total = tensors.broadcast(total, shape, &[axis]);
        numbers::binary(at, Binary::Div, elem, powers, total)
    }

    /// A row of a computed tensor whose number is known: a slice, which tensor code can hold.
    fn row(&mut self, at: Builder<'c>, table: &Expr, row: u64) -> Val<'c> {
        let elem = elem_of(&table.ty);
        let mut sizes = shape_of(&table.ty);
        sizes[0] = Dim::Known(1);
        let table = self.value(at, table);
        let slice = self.slice(at, elem, table, &sizes, 0, row);
        self.reshape(at, elem, slice, &sizes, &sizes[1..])
    }

    /// `x[.., k]`: what has position `index` along `axis`, which leaves the shape. The number `row`
    /// is it, where it is known and in range.
    fn along(
        &mut self,
        at: Builder<'c>,
        value: &Expr,
        axis: usize,
        row: Option<u64>,
        index: &Expr,
    ) -> Val<'c> {
        let elem = elem_of(&value.ty);
        let shape = shape_of(&value.ty);
        let tensor = self.value(at, value);
        if let Some(row) = row {
            let mut sizes = shape.clone();
            sizes[axis] = Dim::Known(1);
            let slice = self.slice(at, elem, tensor, &sizes, axis, row);
            return self.reshape(at, elem, slice, &sizes, &without(&shape, axis));
        }
        let integer = self.types().elem(Elem::I32);
        let index = self.value(at, index);
        let length = self.dims.size(at, &shape[axis]);
        let position = at.value(Op::CfbWithin, &[index, length], integer);
        self.element_along(at, elem, tensor, position, &shape, axis)
    }

    /// The elements at `position` along `axis`, which leaves the shape: the largest where all others
    /// have become the least, since a NaN wins there as any number does. The position is within the axis.
    fn element_along(
        &self,
        at: Builder<'c>,
        elem: Elem,
        value: Val<'c>,
        position: Val<'c>,
        from: &[Dim],
        axis: usize,
    ) -> Val<'c> {
        let tensors = self.tensors(at, elem);
        let neutral = numbers::neutral(Reduction::Max, elem);
        let position = self.spread(at, Elem::I32, position, from);
        let places = self.iota(at, from, axis);
        let is_it = numbers::binary(at, Binary::Eq, Elem::I32, places, position);
        let only = numbers::select(at, is_it, value, tensors.filled(from, neutral));
        tensors.reduce(Binary::Max, neutral, only, &without(from, axis), axis)
    }

    /// `0, 1, …` along one axis: a constant of that axis alone, repeated along the others. An axis that is
    /// too long for a constant is counted in place.
    pub fn iota(&self, at: Builder<'c>, shape: &[Dim], axis: usize) -> Val<'c> {
        let Some(length) = known(&shape[axis]).filter(|length| *length <= LONGEST_CONSTANT) else {
            return self.tensors(at, Elem::I32).indices(shape, axis);
        };
        let line = self.types().tensor(Elem::I32, &[Dim::Known(length)]);
        let values: Vec<i32> = (0..length)
            .map(|index| i32::try_from(index).unwrap_or(i32::MAX))
            .collect();
        let values = DenseElementsAttribute::i32_values(line, &values).into();
        let value = at.constant(values, line);
        let others: Vec<usize> = (0..shape.len()).filter(|other| *other != axis).collect();
        if others.is_empty() {
            return value;
        }
        self.tensors(at, Elem::I32).broadcast(value, shape, &others)
    }
}

/// The row's number, if it is known to be in range. A parameter's rows are values of their own, so
/// those are looked up all the same.
fn fixed_row(table: &Expr, index: &Expr) -> Option<u64> {
    let ExprKind::Literal(Literal::I32(row)) = index.kind else {
        return None;
    };
    let row = u64::try_from(row).ok()?;
    let is_computed = !matches!(table.kind, ExprKind::Param(_));
    let length = known(&shape_of(&table.ty)[0])?;
    (is_computed && row < length).then_some(row)
}

fn is_rank_2(tensor: &Expr) -> bool {
    shape_of(&tensor.ty).len() == 2
}

/// What an `arith.constant` holds, if the value is one.
fn constant_of(value: Val<'_>) -> Option<Attribute<'_>> {
    let owner = OperationResult::try_from(value).ok()?.owner();
    let is_constant = Op::ArithConstant.is(owner);
    is_constant
        .then(|| owner.attribute(&keys::VALUE).ok())
        .flatten()
}

/// The one element that a constant repeats.
fn splat_of(constant: Attribute<'_>) -> Option<Attribute<'_>> {
    let dense = DenseElementsAttribute::try_from(constant).ok()?;
    dense.is_splat().then(|| dense.splat_value())
}
