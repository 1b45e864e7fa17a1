//! The vector-Jacobian products of what only moves elements: slices, concatenations and reshapes.

use cohort_dialects::builder::{Op, Val, operands_of, result_of};
use cohort_dialects::keys;
use melior::ir::{
    Attribute, OperationRef, Type, ValueLike, attribute::DenseI64ArrayAttribute,
    operation::OperationLike,
};

use super::emit::{padded, slice};
use super::rules::{Backward, NoRule, Rule, no_rule};
use crate::support::dim_equality::reassociation;
use crate::support::ir::{TensorType, integer_attribute, integers};

impl<'c> Backward<'c> {
    pub(super) fn reshaped(
        &mut self,
        operation: OperationRef<'c, 'c>,
        kind: Op,
        g: Val<'c>,
    ) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        match kind {
            Op::TensorExtractSlice => {
                let shape = self.shape(of[0])?;
                let dynamic = |numbers: &[i64]| numbers.iter().any(|number| *number < 0);
                let offsets = integers(operation, keys::STATIC_OFFSETS);
                let steps = integers(operation, keys::STATIC_STRIDES);
                let part = TensorType::of_value(result_of(operation, 0));
                let part = part.filter(|part| part.rank() == shape.ty.rank());
                let Some(part) =
                    part.filter(|_| !dynamic(&offsets) && steps.iter().all(|s| *s == 1))
                else {
                    return Err(NoRule("this slice".to_owned()));
                };
                // Padded along one axis after the other, but for the first, which others may join.
                let mut cut: Vec<usize> = (0..part.rank())
                    .filter(|axis| part.shape[*axis] != shape.ty.shape[*axis])
                    .collect();
                if cut
                    .iter()
                    .any(|axis| part.shape[*axis].is_none() || shape.ty.shape[*axis].is_none())
                {
                    return Err(NoRule(
                        "a slice along a dim whose length differs".to_owned(),
                    ));
                }
                let mut value = g;
                let mut grown = shape.clone();
                for axis in &cut {
                    grown = grown.resized(*axis, part.shape[*axis].unwrap_or(0));
                }
                let Some(first) = (!cut.is_empty()).then(|| cut.remove(0)) else {
                    self.add(of[0], g);
                    return Ok(());
                };
                for axis in cut {
                    let size = part.shape[axis].unwrap_or(0);
                    let own = (axis, offsets[axis] as u64, size, value);
                    grown = grown.resized(axis, shape.ty.shape[axis].unwrap_or(0));
                    value = padded(&b, &grown, axis, &[own]);
                }
                let size = part.shape[first].unwrap_or(0);
                self.add_slice(of[0], first, offsets[first] as u64, size, value);
            }
            Op::TensorConcat => {
                let axis = integer_attribute(operation, keys::DIM).unwrap_or(0) as usize;
                let mut first = 0;
                for operand in of {
                    let shape = self.shape(operand)?;
                    let Some(size) = shape.ty.shape[axis] else {
                        return Err(NoRule(
                            "a concatenation along a dim whose length differs".to_owned(),
                        ));
                    };
                    self.add(operand, slice(&b, g, &shape, axis, first));
                    first += size;
                }
            }
            Op::TensorCollapseShape => return self.split_again(operation, g),
            Op::TensorExpandShape => return self.join_again(operation, g),
            // One way and back.
            Op::TensorCast => {
                let shape = self.shape(of[0])?;
                let operands = [&[g], &shape.lengths[..]].concat();
                self.add(of[0], b.value(Op::CfbWiden, &operands, shape.to_type()));
            }
            Op::CfbWiden => {
                let ty: Type<'c> = of[0].r#type();
                self.add(of[0], b.tensor_cast(g, ty));
            }
            // Of a host scalar, or of nothing.
            Op::TensorFromElements | Op::TensorEmpty => {}
            _ => return Err(no_rule(operation)),
        }
        Ok(())
    }

    /// Of a reshape that made one dim of several.
    fn split_again(&mut self, collapse: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
        let source = operands_of(collapse)[0];
        let shape = self.shape(source)?;
        // SAFETY: a pure function that returns MLIR's mark of a dynamic size.
        let dynamic = unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() };
        let sizes: Vec<i64> = (shape.ty.shape.iter())
            .map(|size| size.map_or(dynamic, |size| size as i64))
            .collect();
        let sizes = DenseI64ArrayAttribute::new(self.b.context(), &sizes).into();
        let operands = [&[g], &shape.lengths[..]].concat();
        let attributes = [
            (keys::REASSOCIATION, groups_of(collapse)?),
            (keys::STATIC_OUTPUT_SHAPE, sizes),
        ];
        let ty = shape.to_type();
        let back = (self.b).value_with(Op::TensorExpandShape, &operands, ty, &attributes);
        self.add(source, back);
        Ok(())
    }

    /// Of a reshape that made several dims of one. Those up to the last instance dim count rows, which no
    /// kernel over calls can read as if they were one dim; but their rows are the same, so they are
    /// counted anew and not computed.
    fn join_again(&mut self, expand: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
        let b = self.b;
        let source = operands_of(expand)[0];
        let few = self.shape(source)?;
        let many = self.shape(result_of(expand, 0))?.ty;
        let joined = reassociation(expand);
        let groups = apart(&joined, &many.shape);
        if groups == joined {
            self.add(source, b.collapse(g, groups_of(expand)?, few.to_type()));
            return Ok(());
        }
        let size = |group: &Vec<usize>| {
            let sizes = group.iter().map(|axis| many.shape[*axis]);
            sizes.product::<Option<u64>>()
        };
        let rows = TensorType {
            shape: groups.iter().map(size).collect(),
            element: many.element,
        };
        let rows = match groups.len() == many.rank() {
            true => g,
            false => b.collapse(g, b.reassociation(&groups), rows.to_type()),
        };
        let operands = [&[rows], &few.lengths[..]].concat();
        let back = b.value(Op::CfbView, &operands, few.to_type());
        self.add(source, back);
        Ok(())
    }
}

fn groups_of<'c>(reshape: OperationRef<'c, 'c>) -> Result<Attribute<'c>, NoRule> {
    let groups = reshape.attribute(&keys::REASSOCIATION);
    groups.map_err(|_| NoRule("this reshape".to_owned()))
}

/// The groups of a reshape that makes one dim of each, where each dim that counts rows has a group of its
/// own, but for those of one element.
fn apart(joined: &[Vec<usize>], shape: &[Option<u64>]) -> Vec<Vec<usize>> {
    let is_long = |axis: &usize| shape[*axis] != Some(1);
    let last = shape.iter().rposition(Option::is_none);
    let counts = |axis: &usize| last.is_some_and(|last| *axis <= last);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for group in joined {
        if !group.iter().filter(|axis| is_long(axis)).all(counts) {
            groups.push(group.clone());
            continue;
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for axis in group {
            match parts.last_mut() {
                Some(part) if !is_long(axis) || !part.iter().any(is_long) => part.push(*axis),
                _ => parts.push(vec![*axis]),
            }
        }
        groups.extend(parts);
    }
    groups
}
