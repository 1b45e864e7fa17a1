//! The batching rule of each tensor operation.
//!
//! A value of a block is *shared* (the same for every row, still unbatched) or *rows* (it has the
//! leading batch dim). An operation all of whose operands are shared stays as it is; otherwise its
//! rule gives it the batch dim, and a shared operand that must have one too is broadcast.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Op, Val, is_arithmetic, name_of, operands_of, result_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use melior::ir::{
    OperationRef, ValueLike,
    attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
    operation::OperationLike,
};

use super::shapes::Bounds;
use crate::pass::{Failed, error};
use crate::support::ir::{
    TensorType, clone_op, clone_region, defining_op, integers, is_tensor, key, set_operand,
};

#[derive(Clone, Copy)]
pub(super) enum Batched<'c> {
    Shared(Val<'c>),
    Rows(Val<'c>),
}

/// Writes the batched form of a block's operations, in order.
pub struct Batcher<'c> {
    pub builder: Builder<'c>,
    /// The number of rows, an `index`.
    pub(super) rows: Val<'c>,
    /// The sizes of dims that differ by call.
    pub(super) bounds: Option<Bounds<'c>>,
    pub(super) values: HashMap<usize, Batched<'c>>,
}

impl<'c> Batcher<'c> {
    pub fn new(builder: Builder<'c>, rows: Val<'c>) -> Self {
        Batcher {
            builder,
            rows,
            bounds: None,
            values: HashMap::new(),
        }
    }

    pub fn define_shared(&mut self, of: Val<'c>, shared: Val<'c>) {
        self.values.insert(key(of), Batched::Shared(shared));
    }

    pub fn define_rows(&mut self, of: Val<'c>, rows: Val<'c>) {
        self.values.insert(key(of), Batched::Rows(rows));
    }

    /// Writes the batched form of one operation.
    pub fn batch(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        self.builder.location = operation.location();
        let operands = self.operands(operation)?;
        if Op::CfbWiden.is(operation) {
            // What is the same for all instances gets a length like any other.
            let result = self.widen(operation)?;
            self.define_rows(result_of(operation, 0), result);
            return Ok(());
        }
        if operands
            .iter()
            .all(|operand| matches!(operand, Batched::Shared(_)))
        {
            return self.keep_shared(operation, &operands);
        }
        let result = match Op::of(operation) {
            Some(Op::TensorEmpty) => self.empty(result_of(operation, 0), operation)?,
            Some(Op::LinalgFill) => self.fill(operation)?,
            Some(Op::LinalgBroadcast) => {
                self.shift_dimensions(operation, keys::DIMENSIONS, Op::LinalgBroadcast)?
            }
            Some(Op::LinalgReduce) => {
                self.shift_dimensions(operation, keys::DIMENSIONS, Op::LinalgReduce)?
            }
            Some(Op::LinalgTranspose) => self.transpose(operation)?,
            Some(Op::CfbReduceRows) => self.reduce_rows(operation)?,
            Some(Op::LinalgGeneric) => return self.generic(operation),
            Some(Op::LinalgVecmat) => self.vecmat(operation)?,
            Some(Op::LinalgMatvec) => self.matvec(operation)?,
            Some(Op::LinalgMatmul) => self.matmul(operation)?,
            Some(Op::LinalgDot) => self.dot(operation)?,
            Some(Op::TensorCast) => self.cast(operation)?,
            Some(Op::TensorExtractSlice) => self.extract_slice(operation)?,
            Some(Op::TensorConcat) => self.concat(operation)?,
            Some(Op::TensorCollapseShape | Op::TensorExpandShape) => self.reshape(operation)?,
            Some(Op::TensorFromElements) => self.scalar_rows(operation)?,
            _ if is_arithmetic(operation) => self.elementwise(operation)?,
            _ => {
                return Err(error(
                    operation,
                    &format!(
                        "not supported yet: no batching rule for `{}`",
                        name_of(operation)
                    ),
                ));
            }
        };
        self.define_rows(result_of(operation, 0), result);
        Ok(())
    }

    /// A value with the batch dim, broadcast if it is shared.
    pub fn rows_of(
        &mut self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        match self.lookup(value, user)? {
            Batched::Rows(rows) => Ok(rows),
            Batched::Shared(shared) => Ok(self.broadcast(shared)),
        }
    }

    pub(super) fn lookup(
        &self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Batched<'c>, Failed> {
        self.values
            .get(&key(value))
            .copied()
            .ok_or_else(|| error(user, "uses a value from outside of its block"))
    }

    fn operands(&self, operation: OperationRef<'c, 'c>) -> Result<Vec<Batched<'c>>, Failed> {
        operands_of(operation)
            .into_iter()
            .map(|operand| self.lookup(operand, operation))
            .collect()
    }

    pub(super) fn keep_shared(
        &mut self,
        operation: OperationRef<'c, 'c>,
        operands: &[Batched<'c>],
    ) -> Result<(), Failed> {
        let copy = self.builder.insert(clone_op(operation));
        for (index, operand) in operands.iter().enumerate() {
            if let Batched::Shared(value) = operand {
                set_operand(copy, index, *value);
            }
        }
        self.rebind_captures(operation, copy)?;
        for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
            self.define_shared(old, new);
        }
        Ok(())
    }

    /// Rows like a value of the block, of no content.
    pub(super) fn empty(
        &mut self,
        like: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let row = tensor_type(like, user)?;
        let sizes = self.sizes(like, user)?;
        let ty = row.batched().to_type();
        Ok(self.builder.tensor_empty(&sizes, ty))
    }

    /// The number of rows, then the sizes of the dims of a value that differ by call.
    pub(super) fn sizes(
        &mut self,
        like: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Vec<Val<'c>>, Failed> {
        let mut sizes = vec![self.rows];
        if tensor_type(like, user)?.shape.contains(&None) {
            let message = "not supported yet: a length that no operand of the kernel has";
            let bounds = self.bounds.as_mut().and_then(|bounds| bounds.of(like));
            sizes.extend(bounds.ok_or_else(|| error(user, message))?);
        }
        Ok(sizes)
    }

    fn broadcast(&self, shared: Val<'c>) -> Val<'c> {
        let ty = TensorType::of_value(shared).unwrap_or(TensorType {
            shape: vec![],
            element: shared.r#type(),
        });
        let shared = if is_tensor(shared.r#type()) {
            shared
        } else {
            self.builder.from_elements(&[shared], ty.to_type())
        };
        let init = self
            .builder
            .tensor_empty(&[self.rows], ty.batched().to_type());
        self.builder.broadcast(shared, init, &[0])
    }

    /// The destination of an operation: a fresh one where the original is, the same fill where it
    /// is filled, the value's rows otherwise.
    pub(super) fn destination(
        &mut self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        if let Batched::Rows(rows) = self.lookup(value, user)? {
            return Ok(rows);
        }
        let producer = defining_op(value);
        match producer.and_then(Op::of) {
            Some(Op::TensorEmpty) => self.empty(value, user),
            Some(Op::LinalgFill) => match producer {
                Some(fill) => self.fill(fill),
                None => self.rows_of(value, user),
            },
            _ => self.rows_of(value, user),
        }
    }

    /// A tensor whose shape is known as one whose lengths are operands of the kernel.
    fn widen(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let rows = self.rows_of(operands_of(operation)[0], operation)?;
        let result = result_of(operation, 0);
        let operands = [vec![rows], self.sizes(result, operation)?].concat();
        let ty = tensor_type(result, operation)?.batched();
        Ok(self.builder.value(Op::CfbWiden, &operands, ty.to_type()))
    }

    /// A tensor whose lengths are operands of the kernel as one whose shape is known, where the lengths
    /// were found to be that.
    fn cast(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let rows = self.rows_of(operands_of(operation)[0], operation)?;
        let ty = tensor_type(result_of(operation, 0), operation)?.batched();
        Ok(self.builder.tensor_cast(rows, ty.to_type()))
    }

    fn elementwise(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let mut operands = Vec::new();
        for operand in operands_of(operation) {
            let same_shape = TensorType::of_value(operand).is_some_and(|ty| ty.shape == row.shape);
            if !same_shape {
                return Err(error(operation, "expected operands of the result's shape"));
            }
            operands.push(self.rows_of(operand, operation)?);
        }
        let types = [row.batched().to_type()];
        let copy = self.builder.again(operation, &operands, &types, vec![]);
        Ok(result_of(copy, 0))
    }

    fn fill(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let init = self.empty(result_of(operation, 0), operation)?;
        Ok(match self.lookup(operands_of(operation)[0], operation)? {
            Batched::Rows(scalars) => {
                let dims: Vec<i64> = (1..=row.rank() as i64).collect();
                self.builder.broadcast(scalars, init, &dims)
            }
            Batched::Shared(scalar) => self.named(Op::LinalgFill, &[scalar], init),
        })
    }

    /// `linalg.broadcast` and `linalg.reduce`: the same with every dim one further.
    fn shift_dimensions(
        &mut self,
        operation: OperationRef<'c, 'c>,
        attribute: Key<'_>,
        kind: Op,
    ) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        if operands.len() != 2 {
            return Err(error(
                operation,
                "not supported yet: a reduction of several values at once",
            ));
        }
        let input = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let dims: Vec<i64> = integers(operation, attribute)
            .into_iter()
            .map(|dim| dim + 1)
            .collect();
        let dims = DenseI64ArrayAttribute::new(self.builder.context(), &dims).into();
        let region = clone_region(operation, 0);
        let copy = self.builder.op(
            kind,
            &[input, init],
            &[init.r#type()],
            &[(attribute, dims)],
            vec![region],
        );
        Ok(result_of(copy, 0))
    }

    /// `cfb.reduce_rows`: each row folds the list that is its own.
    fn reduce_rows(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let list = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let region = clone_region(operation, 0);
        let ty = init.r#type();
        let copy = self
            .builder
            .op(Op::CfbReduceRows, &[list, init], &[ty], &[], vec![region]);
        Ok(result_of(copy, 0))
    }
}

pub(super) fn tensor_type<'c>(
    value: Val<'c>,
    at: OperationRef<'c, 'c>,
) -> Result<TensorType<'c>, Failed> {
    TensorType::of_value(value).ok_or_else(|| error(at, "expected a ranked tensor"))
}

pub(super) fn int32s(operation: OperationRef<'_, '_>, name: Key<'_>) -> Vec<i32> {
    let Ok(attribute) = operation.attribute(&name) else {
        return vec![];
    };
    let Ok(array) = DenseI32ArrayAttribute::try_from(attribute) else {
        return vec![];
    };
    (0..array.len())
        .filter_map(|index| array.element(index).ok())
        .collect()
}
