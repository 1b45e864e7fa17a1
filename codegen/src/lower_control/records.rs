//! Kernel calls, and the handles of rows that exist already.

use cohort_abi::manifest::Source;
use cohort_abi::{Failure, Handle, symbols};
use cohort_dialects::builder::{Builder, CmpiPredicate, Op, Val, operands_of, results_of};
use cohort_dialects::keys;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{kernel_of, name_attribute, users_of};
use melior::ir::{OperationRef, operation::OperationLike};

use super::constants;
use super::emit::{call, i32_constant, i64_constant, slot_address, store_slot};
use super::function::Lowering;

impl<'c> Lowering<'c, '_> {
    pub fn record(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let name = kernel_of(source).unwrap_or_default();
        let Some(kernel) = self.program.manifest.kernel(&name) else {
            return Err(error(
                source,
                &format!("kernel `{name}` is not lowered yet"),
            ));
        };
        if self.program.manifest.is_load_time(kernel) {
            let message =
                format!("kernel `{name}` runs at load; `cfb.param` reads what it computes");
            return Err(error(source, &message));
        }
        let operands: Vec<_> = operands_of(source)
            .into_iter()
            .map(|operand| self.value(operand))
            .collect();
        let described = &self.program.manifest.kernels[kernel];
        if described.operands.len() != operands.len()
            || described.results.len() != source.result_count()
        {
            return Err(error(
                source,
                &format!("kernel `{name}` does not fit this record"),
            ));
        }
        let slots = match self.operand_slots {
            Some(slots) if !operands.is_empty() => slots,
            _ => b.value(Op::LlvmMlirZero, &[], b.pointer()),
        };
        for (operand, slot) in operands.iter().zip(0..) {
            let operand = self.recorded(b, *operand);
            store_slot(b, operand, slot_address(b, slots, slot));
        }
        let number = i32_constant(b, kernel as i64);
        let handle = call(
            b,
            symbols::RECORD,
            &[self.runtime, number, slots],
            &[b.i64()],
        )[0];
        for (result, number) in results_of(source).into_iter().zip(0_i64..) {
            if number > 0 && users_of(result).is_empty() {
                continue;
            }
            let offset = number << Handle::RESULT_SHIFT;
            let value = match number {
                0 => handle,
                _ => b.addi(handle, i64_constant(b, offset)),
            };
            let slots = self.result_slots(b, kernel, &operands, value);
            self.bind_slots(result, slots);
        }
        Ok(())
    }

    pub fn param(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let param = self.parameter(source)?;
        let described = self.program.manifest.weight(param);
        let (elem, shape) = (described.elem, described.shape.clone());
        let pool = self.program.manifest.pool(elem, &shape);
        let handle = self.source_handle(b, Source::Whole { param, pool });
        self.bind_results(source, &[handle]);
        Ok(())
    }

    pub fn param_row(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let param = self.parameter(source)?;
        let described = self.program.manifest.weight(param);
        let elem = described.elem;
        let Some((rows, row)) = described
            .shape
            .split_first()
            .map(|(rows, row)| (*rows, row.to_vec()))
        else {
            return Err(error(source, "a parameter without dims has no rows"));
        };
        let pool = self.program.manifest.pool(elem, &row);
        let index = self.value(operands_of(source)[0]);
        let index = self.wide_index(b, index);
        let bound = i64_constant(b, rows as i64);
        let outside = b.cmpi(CmpiPredicate::Uge, index, bound);
        self.fail_when(b, source, outside, Failure::IndexOutOfRange, (index, bound));
        let first = self.source_handle(b, Source::Table { param, pool });
        let handle = b.addi(first, index);
        self.bind_results(source, &[handle]);
        Ok(())
    }

    pub fn constant(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let value = source
            .attribute(&keys::VALUE)
            .map_err(|_| error(source, "no value"))?;
        let manifest = &mut self.program.manifest;
        let described =
            constants::read(manifest, value).map_err(|message| error(source, &message))?;
        let handle = self.source_handle(b, described);
        self.bind_results(source, &[handle]);
        Ok(())
    }

    /// The handle of a source's first row.
    fn source_handle(&mut self, b: &Builder<'c>, source: Source) -> Val<'c> {
        let bucket = self.program.manifest.source(source) as i64;
        i64_constant(b, bucket << Handle::BUCKET_SHIFT)
    }

    fn parameter(&self, source: OperationRef<'c, 'c>) -> Result<usize, Failed> {
        let name = name_attribute(source, keys::PARAM).unwrap_or_default();
        let number = self.program.manifest.param(&name);
        number.ok_or_else(|| error(source, &format!("no parameter `{name}`")))
    }
}
