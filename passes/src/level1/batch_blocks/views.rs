//! The batching rules of what moves elements and computes none: slices, concatenations, reshapes and
//! transpositions, and scalars side by side.

use crate::support::dim_equality::reassociation;
use cohort_dialects::builder::{Op, Val, operands_of, result_of};
use cohort_dialects::keys::{self, Key};
use melior::ir::{
    Attribute, OperationRef, ValueLike,
    attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
};

use super::rules::{Batcher, int32s, tensor_type};
use crate::pass::{Failed, error};
use crate::support::ir::{TensorType, clone_region, integer_attribute, integers};

impl<'c> Batcher<'c> {
    /// `tensor.from_elements %s : tensor<f32>`: a host scalar's rows are that tensor already. Those of
    /// several are put side by side.
    pub(super) fn scalar_rows(
        &mut self,
        operation: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let mut rows = Vec::new();
        for operand in operands_of(operation) {
            rows.push(self.rows_of(operand, operation)?);
        }
        Ok(self.side_by_side(&rows, &row))
    }

    /// One tensor a row of as many scalars a row.
    fn side_by_side(&self, scalars: &[Val<'c>], row: &TensorType<'c>) -> Val<'c> {
        let [Some(length), inner @ ..] = &row.shape[..] else {
            return scalars[0];
        };
        let part = TensorType {
            shape: inner.to_vec(),
            element: row.element,
        };
        let one = TensorType {
            shape: [&[Some(1)], inner].concat(),
            element: row.element,
        };
        let each = scalars.len() / (*length as usize).max(1);
        let parts: Vec<Val<'c>> = scalars
            .chunks(each.max(1))
            .map(|scalars| self.with_one(self.side_by_side(scalars, &part), &one))
            .collect();
        match parts[..] {
            [only] => only,
            _ => {
                let ty = row.batched().to_type();
                self.builder.concat(1, &parts, ty)
            }
        }
    }

    /// Rows with a first dim of one entry, as those of `row` are.
    fn with_one(&self, value: Val<'c>, row: &TensorType<'c>) -> Val<'c> {
        let groups: Vec<Vec<usize>> = (0..row.rank())
            .map(|axis| match axis {
                0 => vec![0, 1],
                _ => vec![axis + 1],
            })
            .collect();
        let groups = self.builder.reassociation(&groups);
        let sizes = self.batched_sizes(row);
        self.builder.value_with(
            Op::TensorExpandShape,
            &[value, self.rows],
            row.batched().to_type(),
            &[
                (keys::REASSOCIATION, groups),
                (keys::STATIC_OUTPUT_SHAPE, sizes),
            ],
        )
    }

    /// The static sizes of rows of a type: the number of rows is known when the kernel runs.
    fn batched_sizes(&self, row: &TensorType<'c>) -> Attribute<'c> {
        let of_row = row.shape.iter();
        let of_row = of_row.map(|dim| dim.map_or(dynamic(), |size| size as i64));
        let sizes: Vec<i64> = std::iter::once(dynamic()).chain(of_row).collect();
        DenseI64ArrayAttribute::new(self.builder.context(), &sizes).into()
    }

    /// Rows of the shape of `like`, a value of the block.
    pub(super) fn expand(
        &mut self,
        value: Val<'c>,
        like: Val<'c>,
        groups: Attribute<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let row = tensor_type(like, user)?;
        let mut operands = vec![value];
        operands.extend(self.sizes(like, user)?);
        let sizes = self.batched_sizes(&row);
        Ok(self.builder.value_with(
            Op::TensorExpandShape,
            &operands,
            row.batched().to_type(),
            &[
                (keys::REASSOCIATION, groups),
                (keys::STATIC_OUTPUT_SHAPE, sizes),
            ],
        ))
    }

    pub(super) fn transpose(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let input = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let mut permutation = vec![0];
        permutation.extend(
            integers(operation, keys::PERMUTATION)
                .into_iter()
                .map(|axis| axis + 1),
        );
        let permutation = DenseI64ArrayAttribute::new(self.builder.context(), &permutation).into();
        let region = clone_region(operation, 0);
        let copy = self.builder.op(
            Op::LinalgTranspose,
            &[input, init],
            &[init.r#type()],
            &[(keys::PERMUTATION, permutation)],
            vec![region],
        );
        Ok(result_of(copy, 0))
    }

    pub(super) fn extract_slice(
        &mut self,
        operation: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        if int32s(operation, keys::OPERAND_SEGMENT_SIZES)
            .iter()
            .enumerate()
            .any(|(segment, count)| [1, 3].contains(&segment) && *count > 0)
        {
            return Err(error(
                operation,
                "not supported yet: a slice whose bounds are computed",
            ));
        }
        let source = self.rows_of(operands[0], operation)?;
        let context = self.builder.context();
        let with_leading = |name: Key<'_>, leading: i64| -> Attribute<'c> {
            let mut values = vec![leading];
            values.extend(integers(operation, name));
            DenseI64ArrayAttribute::new(context, &values).into()
        };
        let row = tensor_type(result_of(operation, 0), operation)?;
        let sizes = self.sizes(result_of(operation, 0), operation)?;
        let segments = [1, 0, sizes.len() as i32, 0];
        let segments = DenseI32ArrayAttribute::new(context, &segments).into();
        let mut operands = vec![source];
        operands.extend(sizes);
        Ok(self.builder.value_with(
            Op::TensorExtractSlice,
            &operands,
            row.batched().to_type(),
            &[
                (keys::STATIC_OFFSETS, with_leading(keys::STATIC_OFFSETS, 0)),
                (
                    keys::STATIC_SIZES,
                    with_leading(keys::STATIC_SIZES, dynamic()),
                ),
                (keys::STATIC_STRIDES, with_leading(keys::STATIC_STRIDES, 1)),
                (keys::OPERAND_SEGMENT_SIZES, segments),
            ],
        ))
    }

    pub(super) fn concat(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let mut parts = Vec::new();
        for operand in operands_of(operation) {
            parts.push(self.rows_of(operand, operation)?);
        }
        let axis = integer_attribute(operation, keys::DIM).unwrap_or(0) as usize;
        let row = tensor_type(result_of(operation, 0), operation)?;
        let ty = row.batched().to_type();
        Ok(self.builder.concat(axis + 1, &parts, ty))
    }

    pub(super) fn reshape(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let source = operands_of(operation)[0];
        let from = tensor_type(source, operation)?;
        let to = tensor_type(result_of(operation, 0), operation)?;
        let value = self.rows_of(source, operation)?;
        let groups = if from.rank() == 0 || to.rank() == 0 {
            // All dims of size one join the batch dim.
            vec![(0..=from.rank().max(to.rank())).collect()]
        } else {
            let groups = reassociation(operation).into_iter();
            let behind = groups.map(|group| group.into_iter().map(|axis| axis + 1).collect());
            std::iter::once(vec![0]).chain(behind).collect()
        };
        let groups = self.builder.reassociation(&groups);
        if Op::TensorExpandShape.is(operation) {
            return self.expand(value, result_of(operation, 0), groups, operation);
        }
        Ok(self.builder.collapse(value, groups, to.batched().to_type()))
    }
}

fn dynamic() -> i64 {
    // SAFETY: a pure function that returns MLIR's mark of a dynamic size.
    unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() }
}
