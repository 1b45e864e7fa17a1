//! Reads the operations of `tensor` that only select or rearrange elements.

use cohort_dialects::builder::{operands_of, result_of};
use cohort_dialects::keys;
use melior::ir::{OperationRef, attribute::IntegerAttribute, operation::OperationLike};

use super::graph::{Kind, Node, NodeId};
use super::read::{Reader, Tensor, is_rows};
use crate::kernel::affine::{Affine, identity};
use crate::pass::{Outcome, error};
use crate::support::ir::{TensorType, integers};

impl<'c> Reader<'c> {
    /// The same elements under another type.
    pub fn forward(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let simple = op.result_count() == 1 && operands.len() == 1;
        let result = result_of(op, 0);
        let tensor = self.tensor(operands[0], op)?;
        let shape = Self::row_shape(&self.tensor_type(result, op)?, tensor.factor);
        if !simple || shape != self.graph.nodes[tensor.node].shape {
            return Err(error(op, "not supported yet: more than one element"));
        }
        self.define(result, tensor);
        Ok(())
    }

    pub fn slice(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let source = operands_of(op)[0];
        let tensor = self.tensor(source, op)?;
        let from = self.tensor_type(source, op)?;
        let to = self.tensor_type(result_of(op, 0), op)?;
        let offsets = integers(op, keys::STATIC_OFFSETS);
        let strides = integers(op, keys::STATIC_STRIDES);
        let sizes = integers(op, keys::STATIC_SIZES);
        let rows = is_rows(&from);
        let lead = usize::from(rows);
        let whole = !rows || offsets[0] == 0 && strides[0] == 1 && to.shape[0].is_none();
        let computed = offsets.iter().chain(&strides).any(|n| *n == i64::MIN)
            || sizes[lead..].contains(&i64::MIN);
        if !whole || computed {
            return Err(error(
                op,
                "not supported yet: a slice whose bounds are computed",
            ));
        }
        if self.is_splat(tensor.node).is_some() {
            return self.result(
                Kind::Splat(self.is_splat(tensor.node).unwrap_or(0)),
                tensor.factor,
                op,
            );
        }
        let shape = Self::row_shape(&to, tensor.factor);
        let extra = usize::from(rows && tensor.factor > 1);
        let rank = shape.len();
        let mut index: Vec<Affine> = (0..extra).map(Affine::var).collect();
        // A dim of size 1 that the result has no place for is dropped.
        let mut dim = extra;
        for axis in lead..from.rank() {
            let left = from.rank() - axis;
            let kept =
                dim < rank && shape[dim] == sizes[axis] && (sizes[axis] != 1 || left <= rank - dim);
            let mut linear = Affine::constant(offsets[axis]);
            if kept {
                linear = linear.plus(&Affine::var(dim).times(strides[axis]));
                dim += 1;
            }
            index.push(linear);
        }
        self.result(
            Kind::Access {
                source: tensor.node,
                index,
            },
            tensor.factor,
            op,
        )
    }

    pub fn reshape(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let source = operands_of(op)[0];
        let tensor = self.tensor(source, op)?;
        let from = self.tensor_type(source, op)?;
        let to = self.tensor_type(result_of(op, 0), op)?;
        let elements = |ty: &TensorType<'c>| Self::row_shape(ty, 1).iter().product::<i64>();
        let factor = match is_rows(&to) {
            true => tensor.factor * elements(&from) / elements(&to).max(1),
            false => 1,
        };
        if let Some(bits) = self.is_splat(tensor.node) {
            return self.result(Kind::Splat(bits), factor, op);
        }
        if Self::row_shape(&to, factor) == self.graph.nodes[tensor.node].shape {
            let node = tensor.node;
            self.define(result_of(op, 0), Tensor { node, factor });
            return Ok(());
        }
        let source = self.dense(tensor.node, op);
        self.result(Kind::Reshape { source }, factor, op)
    }

    /// A node whose memory, where it has some, is dense: a product's rows are padded, and no strides
    /// tell dims that are joined with its columns.
    fn dense(&mut self, source: NodeId, op: OperationRef<'c, 'c>) -> NodeId {
        let node = &self.graph.nodes[source];
        if !matches!(node.kind, Kind::Product { .. }) {
            return source;
        }
        let copy = Node {
            kind: Kind::Access {
                source,
                index: identity(node.shape.len()),
            },
            shape: node.shape.clone(),
            elem: node.elem,
            rows: node.rows,
            op,
        };
        self.graph.nodes.push(copy);
        self.graph.nodes.len() - 1
    }

    pub fn concat(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let to = self.tensor_type(result_of(op, 0), op)?;
        let axis = op
            .attribute(&keys::DIM)
            .ok()
            .and_then(|dim| IntegerAttribute::try_from(dim).ok())
            .map_or(0, |dim| dim.value() as usize);
        let rows = is_rows(&to);
        if rows && axis == 0 {
            return Err(error(op, "not supported yet: a concatenation of rows"));
        }
        let mut factor = 1;
        let mut inputs = Vec::new();
        for operand in operands_of(op) {
            let tensor = self.tensor(operand, op)?;
            if self.is_splat(tensor.node).is_none() {
                factor = tensor.factor;
            }
            inputs.push(tensor.node);
        }
        let dim = axis - usize::from(rows) + usize::from(rows && factor > 1);
        self.result(Kind::Concat { inputs, dim }, factor, op)
    }
}
