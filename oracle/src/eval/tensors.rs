//! Expressions whose value is a tensor.

use std::sync::Arc;

use cohort_frontend::program::{Dim, Elem, Expr, ExprKind, Type};

use super::recording::of_rank_0;
use super::{Evaluator, Frame};
use crate::error::{ErrorKind, InstanceError};
use crate::tensor::{Tensor, elementwise, layout, lines, product, reduce};
use crate::value::Value;

impl<'p> Evaluator<'p> {
    pub(super) fn eval_tensor(
        &mut self,
        frame: &mut Frame<'p>,
        expr: &'p Expr,
    ) -> Result<Tensor, InstanceError> {
        let Type::Tensor { elem, shape } = &expr.ty else {
            return Err(InstanceError::internal(format!(
                "not a tensor: {:?}",
                expr.kind
            )));
        };
        match &expr.kind {
            ExprKind::Unary { op, value } => elementwise::unary(*op, &*self.operand(frame, value)?),
            ExprKind::Binary { op, lhs, rhs } => {
                let lhs = self.operand(frame, lhs)?;
                elementwise::binary(*op, &lhs, &*self.operand(frame, rhs)?)
            }
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.operand(frame, cond)?;
                let then = self.operand(frame, then)?;
                elementwise::select(&cond, &then, &*self.operand(frame, otherwise)?)
            }
            ExprKind::Cast(value) => elementwise::cast(&*self.operand(frame, value)?, *elem),
            ExprKind::MatMul { lhs, rhs } => {
                let lhs = self.operand(frame, lhs)?;
                product::matmul(&lhs, &*self.operand(frame, rhs)?)
            }
            ExprKind::Reduce { op, value, axis } => {
                reduce::reduce(*op, &*self.operand(frame, value)?, *axis)
            }
            ExprKind::ArgMax { value, axis } => {
                reduce::argmax(&*self.operand(frame, value)?, *axis)
            }
            ExprKind::Softmax { value, axis } => {
                reduce::softmax(&*self.operand(frame, value)?, *axis)
            }
            ExprKind::CumSum { value, axis } => lines::cumsum(&*self.operand(frame, value)?, *axis),
            ExprKind::Sort {
                value,
                axis,
                order,
                part,
            } => {
                let sorted = lines::sort(&*self.operand(frame, value)?, *axis, *order, *part)?;
                let count = frame.lengths(&shape[*axis..=*axis])?[0];
                layout::slice(&sorted, *axis, 0, count)
            }
            ExprKind::SegmentSum { values, segments } => {
                let values = self.operand(frame, values)?;
                let segments = self.operand(frame, segments)?;
                let count = frame.lengths(&shape[..1])?;
                lines::segment_sum(&values, &segments, count[0])
            }
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => {
                let value = self.operand(frame, value)?;
                let indices = self.operand(frame, indices)?;
                lines::scatter(&value, &indices, &*self.operand(frame, rows)?)
            }
            ExprKind::Slice {
                value,
                axis,
                start,
                length,
            } => {
                let value = self.operand(frame, value)?;
                layout::slice(&value, *axis, *start as usize, *length as usize)
            }
            ExprKind::Concat { values, axis } => {
                let values: Vec<Arc<Tensor>> = values
                    .iter()
                    .map(|value| self.operand(frame, value))
                    .collect::<Result<_, _>>()?;
                layout::concat(&values, *axis)
            }
            ExprKind::Reshape(value) => {
                let value = self.operand(frame, value)?;
                layout::reshape(&value, frame.lengths_for_count(shape, value.count())?)
            }
            ExprKind::CheckShape(value) => {
                let value = self.operand(frame, value)?;
                let lengths = frame.lengths(shape)?;
                match value.shape == lengths {
                    true => Ok((*value).clone()),
                    false => {
                        let message = format!("{} has not the shape {lengths:?}", value.describe());
                        Err(InstanceError::new(ErrorKind::ShapeMismatch, message))
                    }
                }
            }
            ExprKind::Transpose { value, permutation } => {
                layout::transpose(&*self.operand(frame, value)?, permutation)
            }
            ExprKind::Row { table, index } => {
                let table = self.operand(frame, table)?;
                let index = self.eval(frame, index)?;
                self.read_scalar(&index)?;
                layout::row(&table, index.into_i32()?)
            }
            ExprKind::Gather { table, indices } => {
                let table = self.operand(frame, table)?;
                layout::gather(&table, &*self.operand(frame, indices)?)
            }
            ExprKind::Fill(value) => {
                let value = match self.eval(frame, value)? {
                    Value::Tensor(tensor) => tensor,
                    scalar => of_rank_0(scalar)?,
                };
                self.read(&value);
                let filled = Tensor::full(frame.lengths(shape)?, value.only_element()?)?;
                Ok(filled.doubted_where(|_| value.is_doubtful(0)))
            }
            ExprKind::Iota { axis } => layout::iota(frame.lengths(shape)?, *axis),
            ExprKind::Random { counter } => self.eval_random(frame, counter, *elem, shape),
            other => Err(InstanceError::internal(format!(
                "not a tensor operation: {other:?}"
            ))),
        }
    }

    fn operand(
        &mut self,
        frame: &mut Frame<'p>,
        expr: &'p Expr,
    ) -> Result<Arc<Tensor>, InstanceError> {
        let operand = self.eval(frame, expr)?.into_tensor()?;
        self.read(&operand);
        Ok(operand)
    }

    fn eval_random(
        &mut self,
        frame: &mut Frame<'p>,
        counter: &'p Expr,
        elem: Elem,
        shape: &[Dim],
    ) -> Result<Tensor, InstanceError> {
        if elem != Elem::F32 {
            return Err(InstanceError::internal("random numbers that are not f32"));
        }
        let counter = self.eval(frame, counter)?.into_i32()?;
        let shape = frame.lengths(shape)?;
        let count = shape.iter().product();
        let data = (0..count)
            .map(|position| self.key.uniform(counter, position))
            .collect();
        Ok(Tensor::f32(&shape, data))
    }
}
