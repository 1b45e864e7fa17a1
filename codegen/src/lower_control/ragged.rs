//! Tensors with instance dims: a handle of the first row, and the lengths.
//!
//! Lengths are known whether or not the rows are computed, so a row or the length of a dim is
//! arithmetic.

use cohort_abi::Failure;
use cohort_dialects::builder::{Builder, CmpiPredicate, Val, operands_of, results_of};
use cohort_dialects::keys;
use cohort_dialects::types::lazy_tensor;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{TensorType, integer_attribute};
use melior::ir::{OperationRef, ValueLike, operation::OperationLike};

use super::emit::i64_constant;
use super::function::Lowering;

impl<'c> Lowering<'c, '_> {
    pub fn dim(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let value = operands_of(source)[0];
        let axis = integer_attribute(source, keys::AXIS).unwrap_or(0) as usize;
        let shape = shape_of(source, value)?;
        let before = shape
            .iter()
            .take(axis)
            .filter(|size| size.is_none())
            .count();
        let Some(length) = self.slots(value).get(1 + before).copied() else {
            return Err(error(source, "not supported yet: a length of this tensor"));
        };
        self.bind(results_of(source)[0], b.index_cast(length, b.index_type()));
        Ok(())
    }

    pub fn row(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let shape = shape_of(source, operands[0])?;
        let slots = self.slots(operands[0]);
        let [handle, length, rest @ ..] = &slots[..] else {
            return Err(error(source, "not supported yet: a row of this tensor"));
        };
        let index = self.value(operands[1]);
        let index = self.wide_index(b, index);
        let outside = b.cmpi(CmpiPredicate::Uge, index, *length);
        self.fail_when(
            b,
            source,
            outside,
            Failure::IndexOutOfRange,
            (index, *length),
        );
        // The rows of one slice: of all its dims up to the last instance dim.
        let last = shape.iter().rposition(Option::is_none).unwrap_or(0);
        let mut offset = index;
        let mut lengths = rest.iter();
        for size in &shape[1..=last] {
            let size = match size {
                Some(size) => i64_constant(b, *size as i64),
                None => lengths.next().copied().unwrap_or(*length),
            };
            offset = b.muli(offset, size);
        }
        let first = b.addi(*handle, offset);
        let mut row = vec![first];
        row.extend(rest);
        self.bind_slots(results_of(source)[0], row);
        Ok(())
    }

    /// The index itself, if it is within the length.
    pub fn within(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = self.values(&operands_of(source));
        let index = self.wide_index(b, operands[0]);
        let length = b.index_cast(operands[1], b.i64());
        let outside = b.cmpi(CmpiPredicate::Uge, index, length);
        self.fail_when(
            b,
            source,
            outside,
            Failure::IndexOutOfRange,
            (index, length),
        );
        self.bind(results_of(source)[0], operands[0]);
        Ok(())
    }

    /// How often a length goes into another, without remainder.
    pub fn quotient(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = self.values(&operands_of(source));
        let [dividend, divisor] = [0, 1].map(|side| b.index_cast(operands[side], b.i64()));
        let (nothing, one) = (i64_constant(b, 0), i64_constant(b, 1));
        // By 0 nothing is divided, so that what is left over is all.
        let by_nothing = b.cmpi(CmpiPredicate::Eq, divisor, nothing);
        let safe = b.select(by_nothing, one, divisor);
        let quotient = b.divsi(dividend, safe);
        let whole = b.muli(quotient, divisor);
        let differs = b.cmpi(CmpiPredicate::Ne, dividend, whole);
        let fails = b.ori(by_nothing, differs);
        self.fail_when(b, source, fails, Failure::ShapeMismatch, (dividend, whole));
        self.bind(
            results_of(source)[0],
            b.index_cast(quotient, b.index_type()),
        );
        Ok(())
    }

    /// The handle of the same rows, with other lengths, which make as many.
    pub fn view(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let result = results_of(source)[0];
        let slots = self.slots(operands[0]);
        let [handle, old @ ..] = &slots[..] else {
            return Err(error(source, "internal error: a tensor without a handle"));
        };
        let lengths = self.values(&operands[1..]);
        let lengths: Vec<_> = lengths
            .into_iter()
            .map(|length| b.index_cast(length, b.i64()))
            .collect();
        let pairs: Vec<_> = match source.has_attribute(&keys::EXACT) {
            true => old.iter().copied().zip(lengths.clone()).collect(),
            false => {
                self.fail_when_negative(b, source, &lengths);
                let from = rows_of(b, &shape_of(source, operands[0])?, old);
                vec![(from, rows_of(b, &shape_of(source, result)?, &lengths))]
            }
        };
        for (old, new) in pairs {
            let differs = b.cmpi(CmpiPredicate::Ne, new, old);
            self.fail_when(b, source, differs, Failure::ShapeMismatch, (new, old));
        }
        self.bind_slots(result, [&[*handle], &lengths[..]].concat());
        Ok(())
    }

    fn fail_when_negative(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        lengths: &[Val<'c>],
    ) {
        // As numbers without a sign the negative ones are the largest.
        let negative = i64_constant(b, i64::MIN);
        for length in lengths {
            let is_negative = b.cmpi(CmpiPredicate::Uge, *length, negative);
            let nothing = i64_constant(b, 0);
            let failure = Failure::ShapeMismatch;
            self.fail_when(b, source, is_negative, failure, (*length, nothing));
        }
    }

    /// A host condition picks all slots of a value.
    pub fn select(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let condition = self.value(operands[0]);
        let (then, otherwise) = (self.slots(operands[1]), self.slots(operands[2]));
        let picked: Vec<Val<'c>> = then
            .into_iter()
            .zip(otherwise)
            .map(|(then, otherwise)| b.select(condition, then, otherwise))
            .collect();
        self.bind_results(source, &picked);
        Ok(())
    }

    /// A slot's form of a value that is recorded: lengths are `index` in the control program.
    pub fn recorded(&self, b: &Builder<'c>, value: Val<'c>) -> Val<'c> {
        if value.r#type() == b.index_type() {
            return b.index_cast(value, b.i64());
        }
        value
    }

    /// The slots of a record's result: its handle, and the lengths that make up the call's rows.
    pub fn result_slots(
        &self,
        b: &Builder<'c>,
        kernel: usize,
        operands: &[Val<'c>],
        handle: Val<'c>,
    ) -> Vec<Val<'c>> {
        let call = &self.program.manifest.kernels[kernel].call;
        let mut slots = vec![handle];
        if let Some(extent) = call.rows.and_then(|rows| call.extents.get(rows)) {
            let lengths = extent
                .lengths
                .iter()
                .filter_map(|length| operands.get(*length));
            slots.extend(lengths.map(|length| self.recorded(b, *length)));
        }
        debug_assert!(slots.iter().all(|slot| slot.r#type() == b.i64()));
        slots
    }
}

/// How many rows a tensor has: the product of its dims up to the last instance dim.
fn rows_of<'c>(b: &Builder<'c>, shape: &[Option<u64>], lengths: &[Val<'c>]) -> Val<'c> {
    let last = shape.iter().rposition(Option::is_none);
    let mut lengths = lengths.iter();
    let sizes = shape[..last.map_or(0, |last| last + 1)].iter();
    sizes.fold(i64_constant(b, 1), |rows, size| {
        let size = match size {
            Some(size) => i64_constant(b, *size as i64),
            None => lengths.next().copied().unwrap_or(rows),
        };
        b.muli(rows, size)
    })
}

fn shape_of<'c>(at: OperationRef<'c, 'c>, value: Val<'c>) -> Result<Vec<Option<u64>>, Failed> {
    let tensor = lazy_tensor(value.r#type()).and_then(TensorType::of);
    let tensor = tensor.ok_or_else(|| error(at, "expected a handle of a tensor"))?;
    Ok(tensor.shape)
}
