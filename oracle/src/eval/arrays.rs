//! Arrays, and the closures that run over them.

use std::sync::Arc;

use cohort_frontend::program::{Binary, Closure, Expr, ExprKind, Type};

use super::{Evaluator, Frame};
use crate::error::{ErrorKind, InstanceError};
use crate::scalar::{self, Scalar};
use crate::tensor::{Tensor, elementwise, layout};
use crate::value::Value;

impl<'p> Evaluator<'p> {
    pub(super) fn eval_array(
        &mut self,
        frame: &mut Frame<'p>,
        expr: &'p Expr,
    ) -> Result<Value, InstanceError> {
        Ok(match &expr.kind {
            ExprKind::Array(elements) => Value::array(self.eval_all(frame, elements)?),
            ExprKind::Len(array) => {
                let length = self.eval(frame, array)?.into_array()?.len();
                Value::i32(host_length(length)?)
            }
            ExprKind::Index { array, index } => {
                let elements = self.eval(frame, array)?.into_array()?;
                let index = self.eval(frame, index)?.into_i32()?;
                elements[layout::check_index(index, elements.len())?].clone()
            }
            ExprKind::Push { array, value } => {
                let mut elements = self.eval(frame, array)?.into_array()?.to_vec();
                elements.push(self.eval(frame, value)?);
                Value::array(elements)
            }
            ExprKind::Reverse(array) => {
                let mut elements = self.eval(frame, array)?.into_array()?.to_vec();
                elements.reverse();
                Value::array(elements)
            }
            ExprKind::Range(count) => self.eval_range(frame, count)?,
            ExprKind::Map { arrays, closure } => self.eval_map(frame, arrays, closure)?,
            ExprKind::Fold {
                array,
                init,
                closure,
            } => {
                let elements = self.eval(frame, array)?.into_array()?;
                let mut total = self.eval(frame, init)?;
                for element in elements.iter() {
                    total = self.apply(frame, closure, vec![total, element.clone()])?;
                }
                total
            }
            ExprKind::Sum(array) => {
                let elements = self.eval(frame, array)?.into_array()?;
                self.eval_sum(frame, expr, &elements)?
            }
            ExprKind::Stack(array) => {
                let elements = self.eval(frame, array)?.into_array()?;
                Value::Tensor(self.operation(expr, |evaluator| {
                    evaluator.read_all(&elements);
                    stack(frame, &expr.ty, &elements).map(Arc::new)
                })?)
            }
            other => {
                return Err(InstanceError::internal(format!(
                    "not an array operation: {other:?}"
                )));
            }
        })
    }

    fn eval_range(
        &mut self,
        frame: &mut Frame<'p>,
        count: &'p Expr,
    ) -> Result<Value, InstanceError> {
        let count = self.eval(frame, count)?.into_i32()?;
        self.refuse_many(&[usize::try_from(count).unwrap_or(0)])?;
        let mut elements = Vec::new();
        for index in 0..count {
            self.step()?;
            elements.push(Value::i32(index));
        }
        Ok(Value::array(elements))
    }

    fn eval_map(
        &mut self,
        frame: &mut Frame<'p>,
        arrays: &'p [Expr],
        closure: &'p Closure,
    ) -> Result<Value, InstanceError> {
        let arrays: Vec<Arc<Vec<Value>>> = arrays
            .iter()
            .map(|array| self.eval(frame, array)?.into_array())
            .collect::<Result<_, _>>()?;
        let length = arrays[0].len();
        if let Some(odd) = arrays.iter().find(|array| array.len() != length) {
            return Err(InstanceError::new(
                ErrorKind::LengthMismatch,
                format!("map over arrays of lengths {length} and {}", odd.len()),
            ));
        }
        let mut results = Vec::with_capacity(length);
        for index in 0..length {
            let args = arrays.iter().map(|array| array[index].clone()).collect();
            results.push(self.apply(frame, closure, args)?);
        }
        Ok(Value::array(results))
    }

    fn eval_sum(
        &mut self,
        frame: &Frame<'p>,
        expr: &'p Expr,
        elements: &[Value],
    ) -> Result<Value, InstanceError> {
        let Type::Tensor { elem, shape } = &expr.ty else {
            return self.host_operation(expr, elements, sum_of_scalars(&expr.ty, elements)?);
        };
        let empty = || Tensor::full(frame.lengths(shape)?, Scalar::zero(*elem));
        let sum = self.operation(expr, |evaluator| {
            evaluator.read_all(elements);
            sum_of_tensors(elements, empty)
        })?;
        Ok(Value::Tensor(sum))
    }

    /// Those of the values that are tensors are operands.
    fn read_all(&mut self, values: &[Value]) {
        for value in values {
            if let Value::Tensor(tensor) = value {
                self.read(tensor);
            }
        }
    }

    /// The closure's parameters are variables of the function around it.
    fn apply(
        &mut self,
        frame: &mut Frame<'p>,
        closure: &'p Closure,
        args: Vec<Value>,
    ) -> Result<Value, InstanceError> {
        self.step()?;
        for (&param, arg) in closure.params.iter().zip(args) {
            frame.set(param, arg)?;
        }
        self.eval(frame, &closure.body)
    }
}

fn sum_of_scalars(ty: &Type, elements: &[Value]) -> Result<Scalar, InstanceError> {
    let Type::Scalar(elem) = ty else {
        let message = "a sum of neither tensors nor scalars";
        return Err(InstanceError::internal(message));
    };
    let zero = Scalar::zero(*elem);
    let mut elements = elements.iter().cloned().map(Value::into_scalar);
    let first = elements.next().unwrap_or(Ok(zero))?;
    elements.try_fold(first, |total, element| {
        scalar::binary(Binary::Add, total, element?)
    })
}

fn sum_of_tensors(
    elements: &[Value],
    empty: impl Fn() -> Result<Tensor, InstanceError>,
) -> Result<Arc<Tensor>, InstanceError> {
    let mut elements = elements.iter().cloned().map(Value::into_tensor);
    let first = match elements.next() {
        Some(first) => first?,
        None => Arc::new(empty()?),
    };
    elements.try_fold(first, |total, element| {
        elementwise::binary(Binary::Add, &total, &*element?).map(Arc::new)
    })
}

fn stack(frame: &Frame<'_>, ty: &Type, elements: &[Value]) -> Result<Tensor, InstanceError> {
    let Type::Tensor { elem, shape } = ty else {
        return Err(InstanceError::internal("a stack that is not a tensor"));
    };
    let rows: Vec<Arc<Tensor>> = elements
        .iter()
        .map(|element| element.clone().into_tensor())
        .collect::<Result<_, _>>()?;
    let row_shape = match rows.first() {
        Some(row) => row.shape.clone(),
        None => frame.lengths(&shape[1..])?,
    };
    layout::stack(*elem, &row_shape, &rows)
}

/// A length as the host i32 that the program sees.
pub(super) fn host_length(length: usize) -> Result<i32, InstanceError> {
    i32::try_from(length).map_err(|_| InstanceError::internal("a length that an i32 cannot hold"))
}
