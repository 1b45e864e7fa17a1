//! The vector-Jacobian products of reshapes: the same elements in the shape that they came from.

use cohort_dialects::builder::{Op, Val, operands_of, result_of};
use melior::ir::{
    Attribute, OperationRef, attribute::DenseI64ArrayAttribute, operation::OperationLike,
};

use super::rules::{Backward, NoRule, Rule};
use crate::support::extents::reassociation;
use crate::support::ir::TensorType;

impl<'c> Backward<'c> {
    /// Of a reshape that made one dim of several.
    pub(super) fn split_again(&mut self, collapse: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
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
            ("reassociation", groups_of(collapse)?),
            ("static_output_shape", sizes),
        ];
        let ty = shape.to_type();
        let back = (self.b).value_with(Op::TensorExpandShape, &operands, ty, &attributes);
        self.add(source, back);
        Ok(())
    }

    /// Of a reshape that made several dims of one. Those up to the last instance dim count rows, which no
    /// kernel over calls can read as if they were one dim; but their rows are the same, so they are
    /// counted anew and not computed.
    pub(super) fn join_again(&mut self, expand: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
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
    let groups = reshape.attribute("reassociation");
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
