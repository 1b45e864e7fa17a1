//! Where tensors decide, and the marks that move calls to other batches.

use cohort_abi::manifest::Debug;
use cohort_abi::manifest::Elem;
use cohort_abi::{Context, Failure, symbols};
use cohort_dialects::builder::{Builder, CmpiPredicate, Op, Val, operands_of, results_of};
use cohort_dialects::keys;
use cohort_dialects::types::lazy_tensor;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{TensorType, elem_of, integer_attribute, name_attribute};
use melior::ir::{OperationRef, ValueLike, attribute::TypeAttribute, operation::OperationLike};

use super::emit::{call, i32_constant, i64_constant, slot_address, store_slot};
use super::function::Lowering;
use super::types::is_stacked;

/// Where the phase is in the context, in slots.
const PHASE_SLOT: i32 = (std::mem::offset_of!(Context, phase) / size_of::<u64>()) as i32;

/// Where the instance's key is.
const KEY_SLOT: i32 = (std::mem::offset_of!(Context, key) / size_of::<u64>()) as i32;

impl<'c> Lowering<'c, '_> {
    pub fn force(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let value = self.read(b, source, operands[0])?;
        if let Some(guard) = operands.get(1) {
            let is_nan = self.read(b, source, *guard)?;
            let nothing = i64_constant(b, 0);
            self.fail_when(b, source, is_nan, Failure::NanDecision, (nothing, nothing));
        }
        self.bind_results(source, &[value]);
        Ok(())
    }

    /// The one element of a row, as a host scalar.
    fn read(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        row: Val<'c>,
    ) -> Result<Val<'c>, Failed> {
        let ty = lazy_tensor(row.r#type())
            .and_then(TensorType::of)
            .map(|tensor| tensor.element);
        let Some((ty, elem)) = ty.and_then(|ty| Some((ty, elem_of(ty)?))) else {
            let message = format!("not supported yet: a decision on {}", row.r#type());
            return Err(error(source, &message));
        };
        let number = self.program.manifest.force(b.location, elem);
        let operands = [
            self.runtime,
            self.value(row),
            i32_constant(b, number as i64),
        ];
        let word = b.i32();
        let bits = call(b, symbols::FORCE, &operands, &[word])[0];
        Ok(match elem_of(ty) {
            Some(Elem::Bool) => b.cmpi(CmpiPredicate::Ne, bits, i32_constant(b, 0)),
            Some(Elem::F32) => b.bitcast(bits, ty),
            _ => bits,
        })
    }

    /// Hands a value to the runtime, which shows it.
    pub fn debug(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let ty = source.attribute(&keys::TYPE).ok();
        let Some(ty) = ty.and_then(|ty| TypeAttribute::try_from(ty).ok()) else {
            return Err(error(source, "a value without a type"));
        };
        let operands = operands_of(source);
        let stacked: Vec<bool> = operands.iter().map(|value| is_stacked(*value)).collect();
        let ty = self.program.manifest.result_type(ty.value(), &stacked);
        let ty = ty.map_err(|message| error(source, &message))?;
        let text = name_attribute(source, keys::TEXT).unwrap_or_default();
        let number = self.program.manifest.debugs.len() as i64;
        self.program.manifest.debugs.push(Debug { text, ty });
        let values = self.values(&operands);
        let slots = match self.operand_slots {
            Some(slots) if !values.is_empty() => slots,
            _ => b.value(Op::LlvmMlirZero, &[], b.pointer()),
        };
        for (value, slot) in values.into_iter().zip(0..) {
            store_slot(b, value, slot_address(b, slots, slot));
        }
        let number = i32_constant(b, number);
        call(b, symbols::DEBUG, &[self.runtime, number, slots], &[]);
        Ok(())
    }

    /// Raises the instance's phase; one that is later already stays.
    pub fn phase(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let number = integer_attribute(source, keys::NUMBER).unwrap_or_default();
        let address = slot_address(b, self.runtime, PHASE_SLOT);
        let now = b.llvm_load(address, b.i64());
        let later = b.maxui(now, i64_constant(b, number));
        b.llvm_store(later, address);
        Ok(())
    }

    /// The words of the instance's key.
    pub fn instance_key(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) {
        let address = slot_address(b, self.runtime, KEY_SLOT);
        let key = b.llvm_load(address, b.i64());
        let half = i64_constant(b, i64::from(u32::BITS));
        let upper = b.shrui(key, half);
        let words = [key, upper].map(|word| b.trunci(word, b.i32()));
        self.bind_results(source, &words);
    }

    pub fn ghost(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let row = operands_of(source)[0];
        let stacked = lazy_tensor(row.r#type())
            .and_then(TensorType::of)
            .is_some_and(|tensor| tensor.shape.first() == Some(&None));
        let levels = integer_attribute(source, keys::LEVELS).unwrap_or_default();
        if stacked || u32::try_from(levels).is_err() {
            let message = "not supported yet: a ghost of several rows, or of too many levels";
            return Err(error(source, message));
        }
        let operands = [self.runtime, self.value(row), i32_constant(b, levels)];
        let handle = call(b, symbols::GHOST, &operands, &[b.i64()])[0];
        self.bind(results_of(source)[0], handle);
        Ok(())
    }
}
