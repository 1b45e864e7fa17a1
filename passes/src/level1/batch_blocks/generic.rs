//! The batching rule of operations with maps and a body.

use crate::support::dim_equality::loops_of;
use cohort_dialects::attributes::MapResult;
use cohort_dialects::builder::{Op, operands_of, results_of};
use cohort_dialects::keys;
use melior::ir::{OperationRef, ValueLike, attribute::IntegerAttribute, operation::OperationLike};

use super::rules::{Batched, Batcher, int32s};
use crate::pass::{Failed, error};
use crate::support::ir::{clone_op, key, nested_ops, set_attribute, set_operand, set_type};

impl<'c> Batcher<'c> {
    /// Any `linalg.generic`: a new leading parallel dim, which shared inputs do not index.
    pub(super) fn generic(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        let segments = int32s(operation, keys::OPERAND_SEGMENT_SIZES);
        let inputs = segments.first().copied().unwrap_or(0) as usize;
        let mut operands = Vec::new();
        let mut batched = Vec::new();
        for (index, operand) in operands_of(operation).into_iter().enumerate() {
            if index >= inputs {
                operands.push(self.destination(operand, operation)?);
                batched.push(true);
                continue;
            }
            match self.lookup(operand, operation)? {
                Batched::Rows(rows) => {
                    operands.push(rows);
                    batched.push(true);
                }
                Batched::Shared(shared) => {
                    operands.push(shared);
                    batched.push(false);
                }
            }
        }
        let copy = self.builder.insert(clone_op(operation));
        for (index, operand) in operands.iter().enumerate() {
            set_operand(copy, index, *operand);
        }
        for (result, init) in results_of(copy).into_iter().zip(&operands[inputs..]) {
            set_type(result, init.r#type());
        }
        self.shift_maps(copy, &batched)?;
        self.rebind_captures(operation, copy)?;
        for index in nested_ops(copy)
            .into_iter()
            .filter(|op| Op::LinalgIndex.is(*op))
        {
            let dim = index
                .attribute(&keys::DIM)
                .ok()
                .and_then(|dim| IntegerAttribute::try_from(dim).ok())
                .map_or(0, |dim| dim.value());
            set_attribute(index, keys::DIM, self.builder.i64_attr(dim + 1));
        }
        for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
            self.define_rows(old, new);
        }
        Ok(())
    }

    /// What the body of an operation uses from outside of it is the copy's own, shared form.
    pub(super) fn rebind_captures(
        &self,
        operation: OperationRef<'c, 'c>,
        copy: OperationRef<'c, 'c>,
    ) -> Result<(), Failed> {
        for (old, new) in nested_ops(operation).into_iter().zip(nested_ops(copy)) {
            for (index, operand) in operands_of(old).into_iter().enumerate() {
                match self.values.get(&key(operand)) {
                    Some(Batched::Shared(shared)) => set_operand(new, index, *shared),
                    Some(Batched::Rows(_)) => {
                        let message =
                            "not supported yet: a body that uses a row from outside of it";
                        return Err(error(old, message));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn shift_maps(&self, generic: OperationRef<'c, 'c>, batched: &[bool]) -> Result<(), Failed> {
        let refuse = || error(generic, "not supported yet: indexing maps of this form");
        let loops = loops_of(generic).ok_or_else(refuse)?;
        let shifted = loops.maps.iter().enumerate().map(|(operand, map)| {
            let behind = map.iter().map(|place| match place {
                MapResult::Loop(number) => MapResult::Loop(number + 1),
                MapResult::Constant(_) => *place,
            });
            let row = batched.get(operand) == Some(&true);
            let row = row.then_some(MapResult::Loop(0));
            row.into_iter().chain(behind).collect()
        });
        let shifted: Vec<Vec<MapResult>> = shifted.collect();
        let folds = [&[false], &loops.folds[..]].concat();
        let maps = self.builder.indexing_maps(folds.len(), &shifted);
        set_attribute(generic, keys::INDEXING_MAPS, maps);
        set_attribute(
            generic,
            keys::ITERATOR_TYPES,
            self.builder.iterators(&folds),
        );
        Ok(())
    }
}
