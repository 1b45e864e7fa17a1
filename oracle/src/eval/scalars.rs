//! Host scalars, and the ways between them and tensors.

use cohort_frontend::program::{Binary, Expr, ExprKind, Type};

use super::arrays::host_length;
use super::recording::of_rank_0;
use super::{Evaluator, Frame};
use crate::error::{ErrorKind, InstanceError};
use crate::scalar::{self, Scalar};
use crate::value::Value;

impl<'p> Evaluator<'p> {
    pub(super) fn eval_scalar(
        &mut self,
        frame: &mut Frame<'p>,
        expr: &'p Expr,
    ) -> Result<Value, InstanceError> {
        Ok(match &expr.kind {
            ExprKind::ScalarUnary { op, value } => {
                let value = self.eval(frame, value)?;
                let result = scalar::unary(*op, value.clone().into_scalar()?)?;
                self.host_operation(expr, &[value], result)?
            }
            ExprKind::ScalarBinary { op, lhs, rhs } => {
                let lhs = self.eval(frame, lhs)?;
                // `i < len(xs) and xs[i] > 0` must not read `xs[i]` when `i` is out of range.
                match (op, &lhs) {
                    (Binary::And, Value::Scalar(Scalar::Bool(false)))
                    | (Binary::Or, Value::Scalar(Scalar::Bool(true))) => lhs,
                    _ => {
                        let rhs = self.eval(frame, rhs)?;
                        let (a, b) = (lhs.clone().into_scalar()?, rhs.clone().into_scalar()?);
                        self.host_operation(expr, &[lhs, rhs], scalar::binary(*op, a, b)?)?
                    }
                }
            }
            ExprKind::ScalarCast(value) => {
                let Type::Scalar(elem) = expr.ty else {
                    return Err(InstanceError::internal(
                        "a host cast to what is not a scalar",
                    ));
                };
                let value = self.eval(frame, value)?;
                let result = scalar::cast(value.clone().into_scalar()?, elem);
                self.host_operation(expr, &[value], result)?
            }
            ExprKind::Lift(value) => Value::Tensor(of_rank_0(self.eval(frame, value)?)?),
            ExprKind::Force(value) => {
                let tensor = self.eval(frame, value)?.into_tensor()?;
                let element = tensor.only_element()?;
                if tensor.is_doubtful(0) || tensor.is_nan(0) {
                    let message = "a tensor that decides is not a number (NaN)";
                    return Err(InstanceError::new(ErrorKind::NanDecision, message));
                }
                Value::Scalar(element)
            }
            ExprKind::DimSize { value, axis } => {
                let tensor = self.eval(frame, value)?.into_tensor()?;
                let (_, length, _) = tensor.around(*axis)?;
                Value::i32(host_length(length)?)
            }
            other => {
                return Err(InstanceError::internal(format!(
                    "not a host operation: {other:?}"
                )));
            }
        })
    }
}
