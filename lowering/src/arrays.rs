//! Arrays, and the closures that run over them.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_frontend::program::{Binary, Expr, ExprKind, Literal, Type};

use crate::expr::{Lowering, types_of};
use crate::types::{elem_of, instance_dims};
use crate::{cfb, numbers};

impl<'c> Lowering<'_, 'c> {
    pub fn array(&mut self, at: Builder<'c>, expr: &Expr) -> Vec<Val<'c>> {
        let one = |kind: Op, operands: &[Val<'c>]| {
            vec![at.value(kind, operands, self.unit.types.whole(&expr.ty))]
        };
        match &expr.kind {
            ExprKind::Array(elements) => {
                let mut values = Vec::new();
                for element in elements {
                    let value = self.expr(at, element);
                    values.extend(self.as_element(at, value, &expr.ty));
                }
                one(Op::CfbArrayCreate, &values)
            }
            ExprKind::Len(array) => {
                let array = self.value(at, array);
                one(Op::CfbArrayLen, &[array])
            }
            ExprKind::Index { array, index } => {
                if let ExprKind::Range(count) = &array.kind
                    && is_count(count)
                {
                    // An element of a range is its place.
                    let count = self.value(at, count);
                    let length = at.index_cast(count, at.index_type());
                    let index = self.value(at, index);
                    return one(Op::CfbWithin, &[index, length]);
                }
                let array = self.value(at, array);
                let index = self.value(at, index);
                cfb::array_get(at, array, index, &self.types().flat(&expr.ty))
            }
            ExprKind::Push { array, value } => {
                let mut operands = vec![self.value(at, array)];
                let value = self.expr(at, value);
                operands.extend(self.as_element(at, value, &expr.ty));
                one(Op::CfbArrayPush, &operands)
            }
            ExprKind::Reverse(array) => {
                let array = self.value(at, array);
                one(Op::CfbArrayReverse, &[array])
            }
            ExprKind::Range(count) => {
                let count = self.value(at, count);
                one(Op::CfbArrayRange, &[count])
            }
            ExprKind::Stack(elements) => vec![self.stack(at, expr, elements)],
            ExprKind::Map { arrays, closure } => {
                let arrays = self.exprs(at, arrays);
                let Type::Array(element) = &expr.ty else {
                    unreachable!("a map to {:?}", expr.ty)
                };
                let body = self.region(at, &closure.params, &closure.body, element, Op::CfbYield);
                vec![cfb::map(at, &arrays, self.types().whole(&expr.ty), body)]
            }
            ExprKind::Fold {
                array,
                init,
                closure,
            } => {
                let array = self.value(at, array);
                let init = self.expr(at, init);
                let init = self.fitted(at, init, &expr.ty);
                let body = self.region(at, &closure.params, &closure.body, &expr.ty, Op::CfbYield);
                cfb::fold(at, array, &init, body)
            }
            ExprKind::Sum(array) => {
                let array = self.value(at, array);
                vec![self.sum(at, array, &expr.ty)]
            }
            other => unreachable!("not an operation on arrays: {other:?}"),
        }
    }

    /// Values as an element of an array of this type.
    fn as_element(&self, at: Builder<'c>, values: Vec<Val<'c>>, array: &Type) -> Vec<Val<'c>> {
        match array {
            Type::Array(element) => self.fitted(at, values, element),
            _ => values,
        }
    }

    /// A fold of additions, from zero.
    fn sum(&mut self, at: Builder<'c>, array: Val<'c>, ty: &Type) -> Val<'c> {
        let elem = elem_of(ty);
        let zero = match ty {
            Type::Tensor { shape, .. } if !instance_dims(ty).is_empty() => {
                self.tensors(at, elem).filled(shape, numbers::zero(elem))
            }
            _ => numbers::constant(at, self.types().whole(ty), numbers::zero(elem)),
        };
        let whole = types_of(&[zero, zero]);
        let (region, block) = region_with_block(&whole, at.location);
        let inside = Builder::at_end(at.context(), block, at.location);
        let arguments = arguments_of(block);
        let total = numbers::binary(inside, Binary::Add, elem, arguments[0], arguments[1]);
        cfb::yield_(inside, &[total]);
        cfb::fold(at, array, &[zero], region)[0]
    }
}

/// Whether a number is never negative: one that is written, or a length.
fn is_count(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(Literal::I32(count)) => *count >= 0,
        ExprKind::DimSize { .. } | ExprKind::Len(_) => true,
        _ => false,
    }
}
