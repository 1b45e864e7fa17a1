//! The batching rules of products.
//!
//! A matrix that all rows share makes one dense product over all of them; a matrix a row makes a
//! batched product.

use crate::kernel::rows::maps::named_structure;
use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, region_with_block, result_of,
};
use cohort_dialects::keys::{self, Key};
use melior::ir::{
    Attribute, OperationRef, ValueLike,
    attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
};

use super::rules::{Batched, Batcher, tensor_type};
use crate::pass::Failed;
use crate::support::ir::TensorType;

impl<'c> Batcher<'c> {
    pub(super) fn vecmat(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let init = self.destination(operands[2], operation)?;
        let vector = self.rows_of(operands[0], operation)?;
        Ok(match self.lookup(operands[1], operation)? {
            Batched::Shared(matrix) => self.named(Op::LinalgMatmul, &[vector, matrix], init),
            Batched::Rows(matrices) => self.named(Op::LinalgBatchVecmat, &[vector, matrices], init),
        })
    }

    pub(super) fn matvec(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let init = self.destination(operands[2], operation)?;
        let matrices = self.rows_of(operands[0], operation)?;
        let vectors = self.rows_of(operands[1], operation)?;
        Ok(self.named(Op::LinalgBatchMatvec, &[matrices, vectors], init))
    }

    pub(super) fn matmul(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let init = self.destination(operands[2], operation)?;
        let lhs = self.rows_of(operands[0], operation)?;
        let is_ragged = self.bounds.is_some();
        match self.lookup(operands[1], operation)? {
            Batched::Shared(_) if is_ragged => {
                let rhs = self.rows_of(operands[1], operation)?;
                Ok(self.named(Op::LinalgBatchMatmul, &[lhs, rhs], init))
            }
            Batched::Shared(rhs) => {
                let lhs = self.flatten_rows(lhs);
                let flat_init = self.flatten_rows(init);
                let flat = self.named(Op::LinalgMatmul, &[lhs, rhs], flat_init);
                let groups = self.builder.reassociation(&[vec![0, 1], vec![2]]);
                self.expand(flat, result_of(operation, 0), groups, operation)
            }
            Batched::Rows(rhs) => Ok(self.named(Op::LinalgBatchMatmul, &[lhs, rhs], init)),
        }
    }

    /// `[rows, m, k]` as `[rows * m, k]`.
    fn flatten_rows(&self, value: Val<'c>) -> Val<'c> {
        let Some(ty) = TensorType::of_value(value) else {
            return value;
        };
        let flat = TensorType {
            shape: vec![None, ty.shape[2]],
            element: ty.element,
        };
        let groups = self.builder.reassociation(&[vec![0, 1], vec![2]]);
        self.builder.collapse(value, groups, flat.to_type())
    }

    /// A product of the elements and a sum over them.
    pub(super) fn dot(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let init = self.destination(operands[2], operation)?;
        let lhs = self.rows_of(operands[0], operation)?;
        let rhs = self.rows_of(operands[1], operation)?;
        let products = self.builder.mulf(lhs, rhs);
        let element = tensor_type(operands[0], operation)?.element;
        let location = self.builder.location;
        let (region, block) = region_with_block(&[element, element], location);
        let inner = Builder::at_end(self.builder.context(), block, location);
        let parts = arguments_of(block);
        inner.linalg_yield(&[inner.addf(parts[0], parts[1])]);
        let dims = DenseI64ArrayAttribute::new(self.builder.context(), &[1]).into();
        let reduced = self.builder.op(
            Op::LinalgReduce,
            &[products, init],
            &[init.r#type()],
            &[(keys::DIMENSIONS, dims)],
            vec![region],
        );
        Ok(result_of(reduced, 0))
    }

    pub(super) fn named(&self, kind: Op, inputs: &[Val<'c>], init: Val<'c>) -> Val<'c> {
        named(&self.builder, kind, inputs, init)
    }
}

/// A named linalg operation whose payload its name tells.
pub fn named<'c>(b: &Builder<'c>, kind: Op, inputs: &[Val<'c>], init: Val<'c>) -> Val<'c> {
    let context = b.context();
    let mut operands = inputs.to_vec();
    operands.push(init);
    let segments = DenseI32ArrayAttribute::new(context, &[inputs.len() as i32, 1]).into();
    let mut attributes: Vec<(Key<'_>, Attribute<'c>)> =
        vec![(keys::OPERAND_SEGMENT_SIZES, segments)];
    // Their builders write the maps, those of the others do not.
    if matches!(kind, Op::LinalgMatmul | Op::LinalgBatchMatmul)
        && let Some(named) = named_structure(kind)
    {
        let maps = b.indexing_maps(named.folds.len(), &named.maps);
        attributes.push((keys::INDEXING_MAPS, maps));
    }
    let region = melior::ir::Region::new();
    let operation = b.op(kind, &operands, &[init.r#type()], &attributes, vec![region]);
    // SAFETY: the operation is a named linalg operation with an empty region, as required.
    unsafe { mlir_sys::mlirLinalgFillBuiltinNamedOpRegion(operation.to_raw()) };
    result_of(operation, 0)
}
