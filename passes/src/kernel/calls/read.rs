//! Reads the body of a `cfb.kernel` whose unit is the call into a [`Graph`].

mod structured;
mod views;

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Dialect, Op, Val, arguments_of, is_arithmetic, name_of, operands_of, operations_of, result_of,
};
use cohort_dialects::keys;
use cohort_dialects::shape::Shape;
use melior::ir::{
    Attribute, OperationRef, Type, ValueLike, attribute::IntegerAttribute,
    operation::OperationLike, r#type::TypeLike,
};

use super::graph::{Form, Graph, Kind, Node, NodeId, Size};
use crate::kernel::affine::{Affine, identity};
use crate::pass::{Failed, Outcome, error};
use crate::support::dims::{self, Takes, length_names};
use crate::support::ir::{TensorType, blocks_of, elem_of, global_of, integers, key};

struct Reader<'c> {
    graph: Graph<'c>,
    values: HashMap<usize, NodeId>,
    /// The names of the lengths' dims.
    lengths: Vec<String>,
}

/// What a tensor's type says of one call's value.
struct Typed {
    shape: Vec<Size>,
    elem: Elem,
    /// Whether the type has the batch dim.
    batched: bool,
}

/// Reads a kernel; `scalars` tells which of its records' operands are host scalars.
pub fn read<'c>(kernel: OperationRef<'c, 'c>, scalars: &[bool]) -> Result<Graph<'c>, Failed> {
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let lengths = length_names(kernel);
    let mut reader = Reader {
        graph: Graph {
            lengths: lengths.len(),
            ..Graph::default()
        },
        values: HashMap::new(),
        lengths,
    };
    for row in dims::rows(kernel) {
        let size = size_of(row, &reader.lengths)
            .ok_or_else(|| error(kernel, "expected `rows` to be dims of `lengths` or numbers"))?;
        reader.graph.rows.push(size);
    }
    let takes = dims::takes(kernel);
    let arguments = arguments_of(block);
    for (at, argument) in arguments.iter().skip(1).enumerate() {
        reader.argument(kernel, at, *argument, scalars, &takes)?;
    }
    for operation in operations_of(block) {
        reader.read(operation)?;
    }
    Ok(reader.graph)
}

/// A number, or the name of a length.
pub fn size_of(dim: Attribute<'_>, lengths: &[String]) -> Option<Size> {
    if let Ok(number) = IntegerAttribute::try_from(dim) {
        return Some(Size::Known(number.value()));
    }
    let name = dims::name(dim)?;
    let at = lengths.iter().position(|length| *length == name)?;
    Some(Size::Length(at))
}

/// What a kernel over calls cannot have.
fn unsupported(op: OperationRef<'_, '_>) -> Failed {
    let name = name_of(op);
    let message = format!("not supported yet in a kernel over calls: `{name}`");
    error(op, &message)
}

impl<'c> Reader<'c> {
    fn length(&self, name: &str) -> Option<Size> {
        let at = self.lengths.iter().position(|length| length == name)?;
        Some(Size::Length(at))
    }

    fn argument(
        &mut self,
        kernel: OperationRef<'c, 'c>,
        at: usize,
        value: Val<'c>,
        scalars: &[bool],
        takes: &[Takes],
    ) -> Outcome {
        let takes = takes.get(at.wrapping_sub(self.graph.lengths));
        let scalar = scalars.get(at).copied().unwrap_or(false) || takes == Some(&Takes::Scalar);
        let (kind, form, typed) = if at < self.graph.lengths {
            let typed = Typed {
                shape: vec![],
                elem: Elem::I32,
                batched: true,
            };
            (Kind::Length, Form::Length, typed)
        } else {
            if let Some(Takes::List | Takes::Stacked) = takes {
                return Err(error(
                    kernel,
                    "not supported yet: a list as the operand of a kernel over calls",
                ));
            }
            let typed = self.typed(value.r#type(), kernel)?;
            let ragged = typed.shape.iter().any(|s| matches!(s, Size::Length(_)));
            match (scalar, ragged) {
                (true, _) => (Kind::Scalar, Form::Scalar, typed),
                (false, true) => (Kind::Operand, Form::Ragged, typed),
                (false, false) => (Kind::Operand, Form::Row, typed),
            }
        };
        let node = self.graph.add(Node {
            kind,
            shape: typed.shape,
            elem: typed.elem,
            op: kernel,
        });
        self.graph.operands.push((node, form));
        self.values.insert(key(value), node);
        Ok(())
    }

    fn typed(&self, ty: Type<'c>, op: OperationRef<'c, 'c>) -> Result<Typed, Failed> {
        let unsupported = |ty: Type<'c>| {
            error(
                op,
                &format!("not supported yet: elements of type `{ty}` in a kernel"),
            )
        };
        let elem_of = |ty: Type<'c>| match ty.is_index() {
            // Lengths are below 2³¹.
            true => Some(Elem::I32),
            false => elem_of(ty),
        };
        let Some(tensor) = TensorType::of(ty) else {
            let elem = elem_of(ty).ok_or_else(|| unsupported(ty))?;
            return Ok(Typed {
                shape: vec![],
                elem,
                batched: false,
            });
        };
        let elem = elem_of(tensor.element).ok_or_else(|| unsupported(tensor.element))?;
        let encoding = Shape::of_type(ty);
        let dim = |axis: usize| encoding.as_ref().and_then(|shape| shape.dims.get(axis));
        let batched =
            matches!(tensor.shape.first(), Some(None)) && dim(0).is_none_or(|dim| !dim.is_ragged());
        let mut shape = Vec::new();
        for (axis, size) in tensor.shape.iter().enumerate().skip(usize::from(batched)) {
            let named = dim(axis).and_then(|dim| dim.name.as_deref());
            let size = match (size, named) {
                (Some(size), _) => Some(Size::Known(*size as i64)),
                (None, Some(name)) => self.length(name),
                (None, None) => None,
            };
            shape.push(size.ok_or_else(|| {
                error(
                    op,
                    "not supported yet: a dim that is not one of the kernel's `lengths`",
                )
            })?);
        }
        if encoding
            .as_ref()
            .is_some_and(|shape| !super::padding::is_of_rows(shape))
        {
            let message =
                "not supported yet: padding of other storage than a call's rows of one dim";
            return Err(error(op, message));
        }
        Ok(Typed {
            shape,
            elem,
            batched,
        })
    }

    fn node(&self, value: Val<'c>, op: OperationRef<'c, 'c>) -> Result<NodeId, Failed> {
        self.values.get(&key(value)).copied().ok_or_else(|| {
            error(
                op,
                "not supported yet: an operand that is not a value of the kernel",
            )
        })
    }

    fn define(&mut self, op: OperationRef<'c, 'c>, kind: Kind<'c>) -> Result<NodeId, Failed> {
        let result = result_of(op, 0);
        let typed = self.typed(result.r#type(), op)?;
        let node = self.graph.add(Node {
            kind,
            shape: typed.shape,
            elem: typed.elem,
            op,
        });
        self.values.insert(key(result), node);
        Ok(node)
    }

    fn read(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        match Op::of(op) {
            Some(Op::CfbYield) => {
                for operand in operands {
                    let node = self.node(operand, op)?;
                    self.graph.results.push(node);
                }
                return Ok(());
            }
            Some(Op::MlProgramGlobalLoadConst) => {
                let name =
                    global_of(op).ok_or_else(|| error(op, "expected the symbol of a parameter"))?;
                self.define(op, Kind::Param(name))?;
            }
            Some(Op::ArithConstant) => {
                let kind = self.constant(op)?;
                self.define(op, kind)?;
            }
            Some(Op::TensorEmpty) => {
                self.define(op, Kind::Splat(0))?;
            }
            Some(Op::TensorDim | Op::AffineApply) => {}
            Some(Op::TensorExtractSlice) => self.slice(op)?,
            Some(Op::TensorConcat) => self.concat(op)?,
            Some(Op::TensorCollapseShape | Op::TensorExpandShape) => self.reshape(op)?,
            Some(Op::TensorCast | Op::CfbWiden) => self.cast(op)?,
            Some(Op::TensorFromElements | Op::TensorExtract | Op::TensorSplat) => {
                let source = self.node(operands[0], op)?;
                let single = operands.len() == 1 && self.graph.nodes[source].shape.is_empty();
                if !single {
                    return Err(error(op, "not supported yet: more than one element"));
                }
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let index = identity(self.graph.nodes[source].shape.len());
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            Some(Op::LinalgFill) => {
                let source = self.node(operands[0], op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let node = self.access(source, vec![], &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            Some(Op::LinalgBroadcast) => {
                let source = self.node(operands[0], op)?;
                let from = self.typed(operands[0].r#type(), op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let lead = usize::from(typed.batched);
                let added: Vec<i64> = integers(op, keys::DIMENSIONS);
                let kept = (lead..typed.shape.len() + lead)
                    .filter(|axis| !added.contains(&(*axis as i64)))
                    .map(|axis| Affine::var(axis - lead));
                let index: Vec<Affine> = kept.collect();
                if index.len() != from.shape.len() {
                    return Err(error(
                        op,
                        "not supported yet: a broadcast that moves the batch dim",
                    ));
                }
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            Some(Op::LinalgTranspose) => {
                let source = self.node(operands[0], op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let lead = i64::from(typed.batched);
                let permutation = integers(op, keys::PERMUTATION);
                if typed.batched && permutation.first() != Some(&0) {
                    return Err(error(
                        op,
                        "not supported yet: a transposition of the batch dim",
                    ));
                }
                let mut index = identity(typed.shape.len());
                for (to, from) in permutation.iter().skip(lead as usize).enumerate() {
                    index[(from - lead) as usize] = Affine::var(to);
                }
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            _ if Dialect::Linalg.has(op) => self.structured(op)?,
            _ if op.result_count() == 1
                && result_of(op, 0).r#type().is_index()
                && operands
                    .iter()
                    .any(|operand| !self.values.contains_key(&key(*operand))) =>
            {
                // The size of some dim, which its type tells.
            }
            _ if is_arithmetic(op) => {
                let mut inputs = Vec::new();
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                for operand in operands {
                    let node = self.node(operand, op)?;
                    let rank = self.graph.nodes[node].shape.len();
                    let index = identity(rank.min(typed.shape.len()));
                    inputs.push(self.access(node, index, &typed.shape, op));
                }
                let node = self.pointwise(op, inputs, typed.shape, typed.elem)?;
                self.values.insert(key(result_of(op, 0)), node);
            }
            _ => {
                return Err(unsupported(op));
            }
        }
        Ok(())
    }

    fn pointwise(
        &mut self,
        op: OperationRef<'c, 'c>,
        inputs: Vec<NodeId>,
        shape: Vec<Size>,
        elem: Elem,
    ) -> Result<NodeId, Failed> {
        if op.result_count() != 1 {
            return Err(unsupported(op));
        }
        let casts = matches!(Op::of(op), Some(Op::ArithIndexCast | Op::ArithIndexCastui));
        if casts && self.graph.nodes[inputs[0]].elem == elem {
            return Ok(inputs[0]);
        }
        Ok(self.graph.add(Node {
            kind: Kind::Pointwise { op, inputs },
            shape,
            elem,
            op,
        }))
    }

    /// `source` read at `index`, a node of its own unless that is the source itself.
    fn access(
        &mut self,
        source: NodeId,
        index: Vec<Affine>,
        shape: &[Size],
        op: OperationRef<'c, 'c>,
    ) -> NodeId {
        let node = &self.graph.nodes[source];
        if node.shape == shape && index == identity(shape.len()) {
            return source;
        }
        let elem = node.elem;
        let kind = match node.kind {
            Kind::Splat(bits) => Kind::Splat(bits),
            _ => Kind::Access { source, index },
        };
        self.graph.add(Node {
            kind,
            shape: shape.to_vec(),
            elem,
            op,
        })
    }

    fn constant(&self, op: OperationRef<'c, 'c>) -> Result<Kind<'c>, Failed> {
        let attribute = op
            .attribute(&keys::VALUE)
            .map_err(|_| error(op, "expected a value"))?;
        crate::kernel::rows::constants::bits_of(attribute)
            .map(|bits| match bits {
                (bits, true) => Kind::Splat(bits[0]),
                (bits, false) => Kind::Dense(bits),
            })
            .ok_or_else(|| error(op, "not supported yet: a constant of this type"))
    }
}
