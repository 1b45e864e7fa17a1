//! A block, as its gradient function is written from it.

use cohort_dialects::builder::{Val, arguments_of, operands_of, operations_of, results_of};
use cohort_dialects::keys;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, BlockRef, OperationRef};

use super::rules::NoRule;
use crate::support::dim_equality::DimEquality;
use crate::support::dims;
use crate::support::ir::{TensorType, blocks_of, elements_of};

/// An instance dim, and the axis of a tensor that it is.
pub type NamedAxis<'c> = (Attribute<'c>, usize);

/// The instance dims of a block's operands and results.
pub struct BlockDims<'c> {
    /// Those whose lengths are operands, the first ones.
    pub lengths: Vec<Attribute<'c>>,
    /// Those of the results' rows.
    pub rows: Vec<Attribute<'c>>,
    /// Of each other operand the leading dims.
    leading: Vec<Vec<Attribute<'c>>>,
}

impl<'c> BlockDims<'c> {
    fn of(block: OperationRef<'c, '_>) -> BlockDims<'c> {
        let leading = block
            .attribute(&keys::LEADING)
            .map_or(vec![], elements_of)
            .into_iter();
        BlockDims {
            lengths: dims::lengths(block),
            rows: dims::rows(block),
            leading: leading.map(elements_of).collect(),
        }
    }

    /// Those of a result.
    pub fn of_results(&self) -> Vec<NamedAxis<'c>> {
        named(&self.rows)
    }

    /// Those of an operand that is no length.
    pub fn of_operand(&self, operand: usize) -> Vec<NamedAxis<'c>> {
        let leading = self.leading.get(operand - self.lengths.len());
        leading.map_or(vec![], |leading| named(leading))
    }
}

/// Those of leading dims that are instance dims, with their axes.
fn named<'c>(leading: &[Attribute<'c>]) -> Vec<NamedAxis<'c>> {
    let dims = leading.iter().enumerate();
    dims.filter(|(_, dim)| dims::name(**dim).is_some())
        .map(|(axis, dim)| (*dim, axis))
        .collect()
}

/// A block and its parts.
pub struct Source<'c> {
    pub block: OperationRef<'c, 'c>,
    pub dims: BlockDims<'c>,
    /// Of each operand, whether it is the same parameter for all calls.
    pub shared: Vec<bool>,
    /// The operands, as the body has them: first the lengths.
    pub operands: Vec<Val<'c>>,
    /// The results, as the program has them, and what the body yields for each.
    pub results: Vec<Val<'c>>,
    pub yielded: Vec<Val<'c>>,
    /// The operations of the body, but for its end.
    pub operations: Vec<OperationRef<'c, 'c>>,
    body: BlockRef<'c, 'c>,
}

impl<'c> Source<'c> {
    pub fn of(block: OperationRef<'c, 'c>) -> Result<Source<'c>, NoRule> {
        let Some(body) = blocks_of(block).first().copied() else {
            return Err(NoRule("a block without a body".to_owned()));
        };
        let mut operations = operations_of(body);
        let yielded = operations.pop().map(operands_of).unwrap_or_default();
        Ok(Source {
            block,
            dims: BlockDims::of(block),
            shared: crate::level1::batch_blocks::shared_operands(block),
            operands: arguments_of(body),
            results: results_of(block),
            yielded,
            operations,
            body,
        })
    }

    /// How many of the operands are lengths.
    pub fn lengths(&self) -> usize {
        self.dims.lengths.len()
    }

    /// Which dims of the body's values are equal, those that the block's operands name among them.
    pub fn dim_equality(&self) -> DimEquality {
        let mut equality = DimEquality::new(operations_of(self.body));
        let count = self.lengths();
        for (index, _) in self.dims.leading.iter().enumerate() {
            let operand = self.operands[count + index];
            for (dim, axis) in self.dims.of_operand(count + index) {
                let length = self.dims.lengths.iter().position(|own| *own == dim);
                if let (Some(length), Some(_)) = (length, TensorType::of_value(operand)) {
                    equality.join_length(operand, axis, self.operands[length]);
                }
            }
        }
        equality
    }
}
