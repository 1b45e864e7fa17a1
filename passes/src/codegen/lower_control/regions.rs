//! Operations that stay what they are, with their regions.

use cohort_dialects::builder::{
    Builder, Val, arguments_of, operands_of, region_with_block, results_of,
};
use melior::ir::{OperationRef, Region, RegionLike, operation::OperationLike};

use super::emit::{i64_constant, step};
use super::function::Lowering;
use crate::pass::{Failed, Outcome, error};

impl<'c> Lowering<'c, '_> {
    /// The same operation on lowered values.
    pub fn rebuild(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let regions = source
            .regions()
            .map(|region| self.region(b, source, &region, |_, _| {}))
            .collect::<Result<Vec<_>, _>>()?;
        self.rebuild_with(b, source, regions)
    }

    /// `scf.while`, whose body counts a step each time.
    pub fn while_(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let mut regions = Vec::new();
        for (number, region) in source.regions().enumerate() {
            let runtime = self.runtime;
            regions.push(self.region(b, source, &region, |b, _| {
                if number == 1 {
                    step(b, runtime, i64_constant(b, 1));
                }
            })?);
        }
        self.rebuild_with(b, source, regions)
    }

    fn rebuild_with(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        regions: Vec<Region<'c>>,
    ) -> Outcome {
        let name = cohort_dialects::builder::name_of(source);
        let operands = operands_of(source);
        self.types_of(source, &operands)?;
        let operands = self.values(&operands);
        let types = self.result_types(source)?;
        let attributes: Vec<_> = source
            .attributes()
            .map(|(name, attribute)| {
                (
                    name.as_string_ref().as_str().unwrap_or_default().to_owned(),
                    attribute,
                )
            })
            .collect();
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, attribute)| (name.as_str(), *attribute))
            .collect();
        let rebuilt = b.op(&name, &operands, &types, &attributes, regions);
        self.bind_results(source, &results_of(rebuilt));
        Ok(())
    }

    /// A region of at most one block, rebuilt; `begin` may add operations at its start.
    fn region(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        region: &impl RegionLike<'c, 'c>,
        begin: impl FnOnce(&Builder<'c>, &[Val<'c>]),
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
        begin(&inner, &values);
        self.block(&inner, cohort_dialects::builder::extend_block(body))?;
        Ok(rebuilt)
    }
}
