//! Taking loops over dims apart.

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of};
use melior::ir::{
    Attribute, BlockRef, OperationRef, attribute::DenseI32ArrayAttribute, operation::OperationLike,
};

use crate::support::ir::{blocks_of, defining_op, integer_attribute, name_attribute, op_key};

/// How many operands each group of an operation has.
pub fn segments(operation: OperationRef<'_, '_>) -> Vec<usize> {
    let sizes = operation.attribute("operandSegmentSizes").ok();
    let Some(sizes) = sizes.and_then(|sizes| DenseI32ArrayAttribute::try_from(sizes).ok()) else {
        return Vec::new();
    };
    (0..sizes.len())
        .map(|at| sizes.element(at).unwrap_or(0) as usize)
        .collect()
}

/// Adds those attributes of an operation that it has.
pub fn copy_attributes<'c>(
    operation: OperationRef<'c, 'c>,
    names: &[&'static str],
    attributes: &mut Vec<(&'static str, Attribute<'c>)>,
) {
    for name in names {
        if let Ok(attribute) = operation.attribute(name) {
            attributes.push((name, attribute));
        }
    }
}

/// A `ragged.for` or a `ragged.forall`.
#[derive(Clone)]
pub struct Loop<'c> {
    pub op: OperationRef<'c, 'c>,
    /// The operation's.
    pub dim: String,
    pub outer: Vec<Val<'c>>,
    pub from: Option<Val<'c>>,
    pub to: Option<Val<'c>>,
    pub rows: Option<Val<'c>>,
    pub inits: Vec<Val<'c>>,
    pub pad: i64,
    pub block: BlockRef<'c, 'c>,
}

impl<'c> Loop<'c> {
    /// `None` for another operation.
    pub fn of(op: OperationRef<'c, 'c>) -> Option<Self> {
        if !matches!(Op::of(op), Some(Op::RaggedFor | Op::RaggedForall)) {
            return None;
        }
        let mut operands = operands_of(op).into_iter();
        let mut groups: Vec<Vec<Val<'c>>> = segments(op)
            .into_iter()
            .map(|size| operands.by_ref().take(size).collect())
            .collect();
        groups.resize(5, Vec::new());
        let mut next = groups.into_iter();
        let mut group = || next.next().unwrap_or_default();
        Some(Loop {
            op,
            dim: name_attribute(op, "dim")?,
            outer: group(),
            from: group().first().copied(),
            to: group().first().copied(),
            rows: group().first().copied(),
            inits: group(),
            pad: integer_attribute(op, "pad").unwrap_or(1),
            block: blocks_of(op).first().copied()?,
        })
    }

    /// The loop's index within its body.
    pub fn index(&self) -> Val<'c> {
        arguments_of(self.block)[0]
    }

    /// `ragged.for` or `ragged.forall`.
    pub fn kind(&self) -> Op {
        match self.carries() {
            true => Op::RaggedFor,
            false => Op::RaggedForall,
        }
    }

    /// Whether it is of the kind that carries values.
    pub fn carries(&self) -> bool {
        Op::RaggedFor.is(self.op)
    }

    /// What the body ends in.
    pub fn terminator(&self) -> Option<OperationRef<'c, 'c>> {
        operations_of(self.block).last().copied()
    }
}

/// Whether a value is computed in a loop's body.
pub fn is_within<'c>(value: Val<'c>, ragged: &Loop<'c>) -> bool {
    let body = operations_of(ragged.block);
    defining_op(value).is_some_and(|op| body.iter().any(|other| op_key(*other) == op_key(op)))
}
