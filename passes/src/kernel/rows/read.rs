//! Reads the body of a `cfb.kernel` into a [`Graph`].
//!
//! This file holds values, sizes, constants and the `tensor` operations; the structured operations
//! of `linalg` are in [`structured`](super::structured).

use crate::kernel::affine::{Affine, identity};
use crate::support::ir::{affine_map, global_of};
use melior::ir::Attribute;
use std::collections::HashMap;

use cohort_dialects::builder::{
    Dialect, Op, Val, arguments_of, is_arithmetic, name_of, operands_of, operations_of, result_of,
    results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::rows_tensor;
use melior::ir::{
    BlockRef, OperationRef, Type, ValueLike, operation::OperationLike, r#type::TypeLike,
};

use super::graph::{Graph, Kind, Node, NodeId};
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{TensorType, defining_op, elem_of, key};

/// A value of the kernel: its node, and how many rows of the tensor belong to one of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Tensor {
    pub node: NodeId,
    pub factor: i64,
}

pub(crate) struct Reader<'c> {
    pub graph: Graph<'c>,
    values: HashMap<usize, Tensor>,
    /// For an `index` value: its multiple of the number of rows.
    multiples: HashMap<usize, i64>,
    pub indices: HashMap<usize, i64>,
}

/// Reads a kernel's body; `scalars` tells which operands are host scalars.
pub fn read<'c>(block: BlockRef<'c, 'c>, scalars: &[bool]) -> Result<Graph<'c>, Failed> {
    let mut reader = Reader {
        graph: Graph::default(),
        values: HashMap::new(),
        multiples: HashMap::new(),
        indices: HashMap::new(),
    };
    let operations = operations_of(block);
    let Some(end) = operations.last().copied() else {
        return Ok(reader.graph);
    };
    let arguments = arguments_of(block);
    let Some((rows, operands)) = arguments.split_first() else {
        return Err(error(
            end,
            "expected a kernel whose first argument is its number of rows",
        ));
    };
    reader.multiples.insert(key(*rows), 1);
    for (index, operand) in operands.iter().enumerate() {
        if let Some(ty) = list_type(operand.r#type()) {
            let node = reader.typed(Kind::List(index), &ty, 1, end)?;
            reader.graph.operands.push(node);
            reader.define(*operand, Tensor { node, factor: 1 });
            continue;
        }
        let mut ty = reader.tensor_type(*operand, end)?;
        // A length, which no row needs.
        if ty.element.is_index() {
            ty.element = length_type(end);
            let node = reader.typed(Kind::HostScalar(index), &ty, 1, end)?;
            reader.graph.operands.push(node);
            continue;
        }
        let scalar = scalars.get(index).copied().unwrap_or(false);
        let kind = if scalar {
            Kind::HostScalar(index)
        } else {
            Kind::Operand(index)
        };
        let node = reader.typed(kind, &ty, 1, end)?;
        reader.graph.operands.push(node);
        reader.define(*operand, Tensor { node, factor: 1 });
    }
    for operation in operations {
        reader.read(operation)?;
    }
    Ok(reader.graph)
}

impl<'c> Reader<'c> {
    fn read(&mut self, operation: OperationRef<'c, 'c>) -> Outcome {
        match Op::of(operation) {
            Some(Op::CfbYield) => {
                for operand in operands_of(operation) {
                    let node = self.rows(operand, operation)?.node;
                    self.graph.results.push(node);
                }
                Ok(())
            }
            Some(Op::MlProgramGlobalLoadConst) => self.param(operation),
            Some(Op::ArithConstant) => self.constant(operation),
            Some(Op::TensorEmpty) => self.empty(operation),
            Some(Op::TensorDim | Op::AffineApply) => self.size(operation),
            Some(Op::TensorExtractSlice) => self.slice(operation),
            Some(Op::TensorCollapseShape | Op::TensorExpandShape) => self.reshape(operation),
            Some(Op::TensorConcat) => self.concat(operation),
            Some(Op::TensorFromElements | Op::TensorExtract | Op::TensorCast | Op::TensorSplat) => {
                self.forward(operation)
            }
            Some(Op::CfbReduceRows) => self.reduce_rows(operation),
            _ if Dialect::Linalg.has(operation) => self.structured(operation),
            _ if self.is_size(operation) => self.size(operation),
            _ if is_arithmetic(operation) => self.pointwise(operation),
            _ => Err(error(
                operation,
                &format!("not supported yet in a kernel: `{}`", name_of(operation)),
            )),
        }
    }

    pub fn define(&mut self, value: Val<'c>, tensor: Tensor) {
        self.values.insert(key(value), tensor);
    }

    pub fn known(&self, value: Val<'c>) -> Option<Tensor> {
        self.values.get(&key(value)).copied()
    }

    pub fn tensor(&self, value: Val<'c>, at: OperationRef<'c, 'c>) -> Result<Tensor, Failed> {
        self.known(value).ok_or_else(|| {
            error(
                at,
                "not supported yet: an operand that is not a tensor of the kernel",
            )
        })
    }

    /// A tensor that must have the batch dim.
    fn rows(&self, value: Val<'c>, at: OperationRef<'c, 'c>) -> Result<Tensor, Failed> {
        let ty = self.tensor_type(value, at)?;
        match ty.shape.first() {
            Some(None) => self.tensor(value, at),
            _ => Err(error(at, "a kernel yields tensors with the batch dim")),
        }
    }

    pub fn tensor_type(
        &self,
        value: Val<'c>,
        at: OperationRef<'c, 'c>,
    ) -> Result<TensorType<'c>, Failed> {
        let ty = TensorType::of_value(value).unwrap_or_else(|| scalar_type(value.r#type()));
        if ty.shape.iter().skip(1).any(Option::is_none) {
            return Err(error(
                at,
                "not supported yet: a dynamic dim besides the batch dim",
            ));
        }
        Ok(ty)
    }

    /// The shape of one row: without the batch dim, with the `factor` that was collapsed into it.
    pub fn row_shape(ty: &TensorType<'c>, factor: i64) -> Vec<i64> {
        let rows = is_rows(ty);
        let lead = (rows && factor > 1).then_some(factor);
        let rest = ty.shape.iter().skip(usize::from(rows));
        lead.into_iter()
            .chain(rest.map(|dim| dim.unwrap_or(1) as i64))
            .collect()
    }

    pub fn typed(
        &mut self,
        kind: Kind<'c>,
        ty: &TensorType<'c>,
        factor: i64,
        op: OperationRef<'c, 'c>,
    ) -> Result<NodeId, Failed> {
        let elem = elem_of(ty.element).ok_or_else(|| {
            error(
                op,
                &format!(
                    "not supported yet: elements of type `{}` in a kernel",
                    ty.element
                ),
            )
        })?;
        let shape = Self::row_shape(ty, factor);
        if shape.contains(&0) {
            return Err(error(op, "not supported yet: a tensor without elements"));
        }
        Ok(self.graph.add(Node {
            kind,
            shape,
            elem,
            rows: is_rows(ty),
            op,
        }))
    }

    /// Defines a result whose node has the result's own type.
    pub fn result(&mut self, kind: Kind<'c>, factor: i64, op: OperationRef<'c, 'c>) -> Outcome {
        let result = result_of(op, 0);
        let ty = self.tensor_type(result, op)?;
        let node = self.typed(kind, &ty, factor, op)?;
        self.define(result, Tensor { node, factor });
        Ok(())
    }

    pub fn is_splat(&self, node: NodeId) -> Option<u32> {
        match self.graph.nodes[node].kind {
            Kind::Splat(bits) => Some(bits),
            _ => None,
        }
    }

    fn param(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let name = global_of(op).ok_or_else(|| error(op, "expected the symbol of a parameter"))?;
        self.result(Kind::Param(name), 1, op)
    }

    fn empty(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        // Of an unknown multiple of the rows only the elements matter, and there are none.
        let factor = self
            .leading_factor(operands_of(op).first().copied())
            .unwrap_or(1);
        self.result(Kind::Splat(0), factor, op)
    }

    /// The factor of a destination: from its size if it is an empty tensor, its own otherwise.
    pub fn destination_factor(
        &self,
        value: Val<'c>,
        at: OperationRef<'c, 'c>,
    ) -> Result<i64, Failed> {
        if let Some(op) = defining_op(value).filter(|op| Op::TensorEmpty.is(*op)) {
            return match operands_of(op).first() {
                None => Ok(1),
                size => self
                    .leading_factor(size.copied())
                    .ok_or_else(|| error(at, "not supported yet: a batch dim of unknown size")),
            };
        }
        Ok(self.tensor(value, at)?.factor)
    }

    fn leading_factor(&self, size: Option<Val<'c>>) -> Option<i64> {
        self.multiples.get(&key(size?)).copied()
    }

    fn is_size(&self, op: OperationRef<'c, 'c>) -> bool {
        op.result_count() == 1 && result_of(op, 0).r#type().is_index()
    }

    /// Sizes of the batch dim: `%rows * c`, as far as it is understood.
    fn size(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let multiple = |reader: &Self, value: &Val<'c>| reader.multiples.get(&key(*value)).copied();
        let result = match Op::of(op) {
            Some(Op::TensorDim) => self
                .values
                .get(&key(operands[0]))
                .map(|tensor| tensor.factor),
            Some(Op::ArithMuli) => operands
                .iter()
                .map(|value| {
                    multiple(self, value).or_else(|| self.indices.get(&key(*value)).copied())
                })
                .product(),
            Some(Op::AffineApply) => op
                .attribute(&keys::MAP)
                .ok()
                .and_then(factor_of_map)
                .and_then(|factor| Some(factor * multiple(self, operands.first()?)?)),
            _ => None,
        };
        if let Some(result) = result {
            self.multiples.insert(key(result_of(op, 0)), result);
        }
        Ok(())
    }

    fn pointwise(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        if op.result_count() != 1 {
            return Err(error(
                op,
                "not supported yet: an operation with several results",
            ));
        }
        let mut inputs = Vec::new();
        let mut factor = None;
        for operand in operands_of(op) {
            let tensor = self.tensor(operand, op)?;
            if self.is_splat(tensor.node).is_none() {
                factor = Some(tensor.factor);
            }
            inputs.push(tensor.node);
        }
        self.result(Kind::Pointwise { op, inputs }, factor.unwrap_or(1), op)
    }

    fn reduce_rows(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let list = self.tensor(operands[0], op)?.node;
        let init = self.tensor(operands[1], op)?;
        if init.factor != 1 && self.is_splat(init.node).is_none() {
            return Err(error(op, "not supported yet: a start for several rows"));
        }
        let init = init.node;
        self.result(Kind::ReduceRows { list, op, init }, 1, op)
    }

    /// `source` read at `index`, a node of its own unless that is the source itself.
    pub fn access(
        &mut self,
        source: NodeId,
        index: Vec<Affine>,
        shape: &[i64],
        rows: bool,
        op: OperationRef<'c, 'c>,
    ) -> NodeId {
        let node = &self.graph.nodes[source];
        if let Kind::Splat(_) = node.kind {
            return source;
        }
        if node.shape == shape && index == identity(shape.len()) && node.rows == rows {
            return source;
        }
        let elem = node.elem;
        let shape = shape.to_vec();
        self.graph.add(Node {
            kind: Kind::Access { source, index },
            shape,
            elem,
            rows,
            op,
        })
    }

    /// Defines every result of `op` by the given nodes.
    pub fn define_results(&mut self, op: OperationRef<'c, 'c>, nodes: &[NodeId], factor: i64) {
        for (result, node) in results_of(op).into_iter().zip(nodes) {
            self.define(
                result,
                Tensor {
                    node: *node,
                    factor,
                },
            );
        }
    }
}

/// The type of a length as kernels get it.
fn length_type<'c>(at: OperationRef<'c, 'c>) -> Type<'c> {
    // SAFETY: the operation's context is alive.
    unsafe {
        let context = mlir_sys::mlirOperationGetContext(at.to_raw());
        Type::from_raw(mlir_sys::mlirIntegerTypeGet(context, 32))
    }
}

/// A scalar as a tensor of rank 0.
pub fn scalar_type(ty: Type<'_>) -> TensorType<'_> {
    TensorType {
        shape: vec![],
        element: ty,
    }
}

/// The rows that the tensors of a list are, if this is the type of one.
fn list_type(ty: Type<'_>) -> Option<TensorType<'_>> {
    let tensor = TensorType::of(rows_tensor(ty)?)?;
    Some(tensor.batched())
}

pub(crate) fn is_rows(ty: &TensorType<'_>) -> bool {
    matches!(ty.shape.first(), Some(None))
}

/// The 5 of `affine_map<()[s0] -> (s0 * 5)>`.
fn factor_of_map(map: Attribute<'_>) -> Option<i64> {
    let map = affine_map(map)?;
    let only = (map.result_count() == 1).then(|| map.result(0).ok())??;
    match () {
        () if only.is_symbol() => Some(1),
        () if only.is_mul() && only.lhs().is_symbol() && only.rhs().is_constant() => {
            Some(only.rhs().constant_value())
        }
        () => None,
    }
}
