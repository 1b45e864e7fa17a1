//! What an evaluation leaves on the tape, if there is one.

use std::sync::Arc;

use cohort_frontend::program::Expr;

use super::Evaluator;
use crate::error::InstanceError;
use crate::reverse::Tape;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::value::Value;

impl<'p> Evaluator<'p> {
    /// From here on, what gradients flow through is recorded.
    pub(crate) fn record(&mut self, tape: Tape<'p>) {
        self.tape = Some(tape);
    }

    /// The end of the recording.
    pub(crate) fn recorded(self) -> Tape<'p> {
        self.tape.unwrap_or_default()
    }

    /// The operation `expr`, whose operands are what `compute` [`reads`](Evaluator::read).
    pub(super) fn operation(
        &mut self,
        expr: &'p Expr,
        compute: impl FnOnce(&mut Self) -> Result<Arc<Tensor>, InstanceError>,
    ) -> Result<Arc<Tensor>, InstanceError> {
        let mark = self.tape.as_ref().map(Tape::begin);
        let result = compute(self)?;
        if let (Some(tape), Some(mark)) = (&mut self.tape, mark) {
            tape.end(mark, expr, &result);
        }
        Ok(result)
    }

    /// A tensor is an operand of the operation under way.
    pub(super) fn read(&mut self, operand: &Arc<Tensor>) {
        if let Some(tape) = &mut self.tape {
            tape.read(operand);
        }
    }

    /// A host scalar is an operand.
    pub(super) fn read_scalar(&mut self, operand: &Value) -> Result<(), InstanceError> {
        if let Some(tape) = &mut self.tape {
            tape.read(&of_rank_0(operand.clone())?);
        }
        Ok(())
    }

    /// The host scalar that the operation `expr` makes of others. It is on the tape if one of them is.
    pub(super) fn host_operation(
        &mut self,
        expr: &'p Expr,
        operands: &[Value],
        result: Scalar,
    ) -> Result<Value, InstanceError> {
        let is_traced = |operand| matches!(operand, &Value::Traced(_));
        if !matches!(result, Scalar::F32(_)) || !operands.iter().any(is_traced) {
            return Ok(Value::Scalar(result));
        }
        let result = self.operation(expr, |evaluator| {
            for operand in operands {
                evaluator.read_scalar(operand)?;
            }
            Ok(Arc::new(Tensor::full(Vec::new(), result)?))
        })?;
        Ok(Value::Traced(result))
    }
}

/// A host scalar as a tensor.
pub(super) fn of_rank_0(scalar: Value) -> Result<Arc<Tensor>, InstanceError> {
    match scalar {
        Value::Traced(tensor) => Ok(tensor),
        other => Ok(Arc::new(Tensor::full(Vec::new(), other.into_scalar()?)?)),
    }
}
