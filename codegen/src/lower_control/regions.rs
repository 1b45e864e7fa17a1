//! Operations that stay what they are, with their regions.

use cohort_dialects::builder::{
    Builder, Op, arguments_of, operands_of, operations_of, region_with_block, results_of,
};
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::blocks_of;
use melior::ir::{OperationRef, Region, RegionLike, operation::OperationLike};

use super::emit::{i64_constant, step};
use super::function::Lowering;

impl<'c> Lowering<'c, '_> {
    /// The same operation on lowered values.
    pub fn rebuild(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let regions = source
            .regions()
            .map(|region| self.region(b, source, &region))
            .collect::<Result<Vec<_>, _>>()?;
        let operands = operands_of(source);
        self.types_of(source, &operands)?;
        let operands = self.values(&operands);
        let types = self.result_types(source)?;
        let rebuilt = b.again(source, &operands, &types, regions);
        self.bind_results(source, &results_of(rebuilt));
        Ok(())
    }

    /// `scf.while`, of which each turn must count a step.
    pub fn while_(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let body = blocks_of(source).pop();
        let counts = |op: &OperationRef<'c, 'c>| Op::CfbTurn.is(*op);
        if !body.is_some_and(|body| operations_of(body).iter().any(counts)) {
            return Err(error(
                source,
                "this loop may never end: expected a `cfb.turn` in its body",
            ));
        }
        self.rebuild(b, source)
    }

    pub fn turn(&mut self, b: &Builder<'c>) {
        step(b, self.runtime, i64_constant(b, 1));
    }

    /// A region of at most one block, rebuilt.
    fn region(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        region: &impl RegionLike<'c, 'c>,
    ) -> Result<Region<'c>, Failed> {
        let Some(body) = region.first_block() else {
            return Ok(Region::new());
        };
        if melior::ir::BlockLike::next_in_region(&body).is_some() {
            return Err(error(
                source,
                "not supported yet: a region of several basic blocks",
            ));
        }
        let arguments = arguments_of(body);
        let types = self.types_of(source, &arguments)?;
        let (rebuilt, block) = region_with_block(&types, b.location);
        let values = arguments_of(block);
        self.bind_all(source, &arguments, &values)?;
        let inner = Builder::at_end(b.context(), block, b.location);
        self.block(&inner, cohort_dialects::builder::extend_block(body))?;
        Ok(rebuilt)
    }
}
