//! Slices, concatenations and reshapes: what is read elsewhere, and computes nothing.

use cohort_dialects::builder::{operands_of, result_of};
use cohort_dialects::keys;
use cohort_dialects::shape::Shape;
use melior::ir::{OperationRef, ValueLike, attribute::IntegerAttribute, operation::OperationLike};

use super::super::graph::{Kind, Node, Size};
use super::Reader;
use crate::kernel::affine::{Affine, identity};
use crate::pass::{Outcome, error};
use crate::support::ir::{TensorType, integers, key};

impl<'c> Reader<'c> {
    pub(super) fn slice(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operand = operands_of(op)[0];
        let source = self.node(operand, op)?;
        let from = self.typed(operand.r#type(), op)?;
        let to = self.typed(result_of(op, 0).r#type(), op)?;
        let lead = usize::from(from.batched);
        let offsets = integers(op, keys::STATIC_OFFSETS);
        let strides = integers(op, keys::STATIC_STRIDES);
        let sizes = integers(op, keys::STATIC_SIZES);
        let computed = offsets.iter().chain(&strides).any(|n| *n == i64::MIN);
        let rows = !from.batched || offsets[0] == 0 && strides[0] == 1;
        let refuse = || error(op, "not supported yet: a slice whose bounds are computed");
        if computed || !rows || from.batched != to.batched {
            return Err(refuse());
        }
        // A dim of size 1 that the result has no place for is dropped.
        let mut dim = 0;
        let mut index = Vec::new();
        for axis in lead..from.shape.len() + lead {
            let size = sizes[axis];
            let left = from.shape.len() + lead - axis;
            let fits = to.shape.get(dim).is_some_and(|to| match *to {
                Size::Known(known) => known == size,
                length => {
                    size == i64::MIN && offsets[axis] == 0 && length == from.shape[axis - lead]
                }
            });
            let kept = fits && (size != 1 || left <= to.shape.len() - dim);
            if !kept && size != 1 {
                return Err(refuse());
            }
            let mut linear = Affine::constant(offsets[axis]);
            if kept {
                linear = linear.plus(&Affine::var(dim).times(strides[axis]));
                dim += 1;
            }
            index.push(linear);
        }
        let node = self.access(source, index, &to.shape, op);
        self.values.insert(key(result_of(op, 0)), node);
        Ok(())
    }

    pub(super) fn concat(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let axis = op
            .attribute(&keys::DIM)
            .ok()
            .and_then(|dim| IntegerAttribute::try_from(dim).ok())
            .map_or(0, |dim| dim.value() as usize);
        let refuse = || {
            let message = "not supported yet: a concatenation along a dim of unknown size";
            error(op, message)
        };
        let inputs = operands_of(op)
            .into_iter()
            .map(|operand| self.node(operand, op))
            .collect::<Result<Vec<_>, _>>()?;
        let rank = TensorType::of_value(result_of(op, 0)).map_or(0, |ty| ty.rank());
        // Canonicalisation infers the type anew and loses the shape in it, which the parts have.
        let first = &self.graph.nodes[inputs[0]];
        let (mut shape, elem) = (first.shape.clone(), first.elem);
        let lead = rank - shape.len();
        let dim = axis.checked_sub(lead).ok_or_else(refuse)?;
        let mut total = 0;
        for input in &inputs {
            match self.graph.nodes[*input].shape[dim] {
                Size::Known(size) => total += size,
                Size::Length(_) => return Err(refuse()),
            }
        }
        shape[dim] = Size::Known(total);
        let kind = Kind::Concat { inputs, dim };
        let node = self.graph.add(Node {
            kind,
            shape,
            elem,
            op,
        });
        self.values.insert(key(result_of(op, 0)), node);
        Ok(())
    }

    /// A value of a type that says more or less of its shape. What canonicalisation has taken the dims'
    /// names from keeps the shape it had.
    pub(super) fn cast(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let source = self.node(operands_of(op)[0], op)?;
        let result = result_of(op, 0);
        let unknown = TensorType::of_value(result).map_or(0, |ty| {
            ty.shape.iter().filter(|size| size.is_none()).count()
        });
        let own = self.graph.nodes[source].shape.clone();
        let node = if Shape::of_type(result.r#type()).is_none() && unknown > 1 {
            source
        } else {
            let to = self.typed(result.r#type(), op)?;
            self.access(source, identity(own.len()), &to.shape, op)
        };
        self.values.insert(key(result), node);
        Ok(())
    }

    /// Dims of one entry come and go, and a dim of known size becomes several; so a dim of the
    /// source is a sum of the result's.
    pub(super) fn reshape(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operand = operands_of(op)[0];
        let source = self.node(operand, op)?;
        let from = self.typed(operand.r#type(), op)?;
        let to = self.typed(result_of(op, 0).r#type(), op)?;
        let refuse = || error(op, "not supported yet: this reshape in a kernel over calls");
        let mut index = vec![];
        let mut dim = 0;
        let last = from.shape.len();
        for (axis, size) in from.shape.iter().enumerate() {
            let mut linear = Affine::constant(0);
            // Dims of the result whose sizes multiply to this one's.
            let mut group = vec![];
            let mut known = 1;
            loop {
                let done = match size {
                    Size::Known(size) => known == *size,
                    length => group.iter().any(|dim: &usize| to.shape[*dim] == *length),
                };
                match to.shape.get(dim) {
                    Some(Size::Known(1)) => {}
                    Some(next) if !done => {
                        if let Size::Known(next) = next {
                            known *= next;
                        }
                    }
                    _ if done => break,
                    _ => return Err(refuse()),
                }
                if done && axis + 1 < last && from.shape[axis + 1] == Size::Known(1) {
                    break;
                }
                group.push(dim);
                dim += 1;
            }
            let mut stride = 1;
            for dim in group.iter().rev() {
                // There is no way along a dim of one entry.
                if to.shape[*dim] == Size::Known(1) {
                    continue;
                }
                linear = linear.plus(&Affine::var(*dim).times(stride));
                stride *= match to.shape[*dim] {
                    Size::Known(size) => size,
                    Size::Length(_) => 1,
                };
            }
            index.push(linear);
        }
        if dim < to.shape.len() && to.shape[dim..].iter().any(|size| *size != Size::Known(1)) {
            return Err(refuse());
        }
        let node = self.access(source, index, &to.shape, op);
        self.values.insert(key(result_of(op, 0)), node);
        Ok(())
    }
}
