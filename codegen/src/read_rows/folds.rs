//! Folds: of some loops of a stage, and of the rows of a list.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of, result_of};
use cohort_dialects::keys;
use cohort_passes::kernel::loop_level::address_of;
use cohort_passes::kernel::rows::body::{Instruction, Store, ValueId};
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{defining_op, elem_of, integer_attribute, integers, key};
use melior::ir::{BlockRef, OperationRef, ValueLike, operation::OperationLike};

use super::body::{Body, block_of, yields};
use super::kernel::Kernel;
use crate::emit::{Emitter, Width, divides};
use crate::plan_rows::is_operation;

/// Folds some loops of a stage.
pub struct Fold<'c> {
    pub body: Body<'c>,
    /// What is folded in; with two, their product, which a multiply-add does as well.
    pub inputs: Vec<ValueId>,
    pub elem: Elem,
    pub kept: Vec<usize>,
    pub folded: Vec<usize>,
    pub combiner: OperationRef<'c, 'c>,
    /// Computes the start of each element of the result, over the loops that are kept.
    pub init: Body<'c>,
    /// Where the result is; its value is the start.
    pub store: Store,
    /// The loop that runs in vectors, or along which a warp folds.
    pub lanes: Option<usize>,
    /// How many vectors, or neighbours along the last loop, are folded at once.
    pub vectors: i64,
    /// How many neighbours along another loop.
    pub neighbours: i64,
}

impl<'c> Fold<'c> {
    pub fn read(kernel: &Kernel<'c>, op: OperationRef<'c, 'c>) -> Result<Fold<'c>, Failed> {
        let over = integers(op, keys::OVER);
        let folded = integers(op, keys::FOLDING).into_iter();
        let folded: Vec<usize> = folded.map(|dim| dim as usize).collect();
        let dims = 0..over.len();
        let kept: Vec<usize> = dims.filter(|dim| !folded.contains(dim)).collect();
        let sizes = kept.iter().map(|dim| over[*dim]).collect();
        let (start, step) = (block_of(op, 0)?, block_of(op, 1)?);
        let combiner = yields(step).first().and_then(|value| defining_op(*value));
        let combiner = combiner.ok_or_else(|| error(op, "expected a step that combines"))?;
        let body = Body::read(kernel, step, over, Some(combiner))?;
        let init = Body::read(kernel, start, sizes, None)?;
        let input = body.id(operands_of(combiner)[1]);
        let (instruction, elem) = &body.values[input];
        let inputs = match instruction {
            Instruction::Pointwise { inputs, .. }
                if is_operation(instruction, Op::ArithMulf) && Op::ArithAddf.is(combiner) =>
            {
                inputs.clone()
            }
            _ => vec![input],
        };
        Ok(Fold {
            inputs,
            elem: *elem,
            kept,
            folded,
            combiner,
            store: store_of(kernel, op, operands_of(op)[0], init.id(yields(start)[0]))?,
            init,
            lanes: integer_attribute(op, keys::LANES).map(|dim| dim as usize),
            vectors: integer_attribute(op, keys::VECTORS).unwrap_or(1),
            neighbours: integer_attribute(op, keys::NEIGHBOURS).unwrap_or(1),
            body,
        })
    }

    /// How many results there are, and how many values each folds.
    pub fn results(&self) -> i64 {
        self.init.domain.iter().product()
    }

    pub fn count(&self) -> i64 {
        self.folded
            .iter()
            .map(|dim| self.body.domain[*dim])
            .product()
    }
}

/// Folds the rows of a list element by element.
pub struct List<'c> {
    /// Its position among the kernel's operands.
    pub list: usize,
    pub step: BlockRef<'c, 'c>,
    pub elem: Elem,
    /// Computes the start of each element of the result.
    pub init: Body<'c>,
    /// Where the result is; its value is the start.
    pub store: Store,
    /// How many vectors, or neighbours along the last loop, are folded at once.
    pub vectors: i64,
}

impl<'c> List<'c> {
    pub fn read(kernel: &Kernel<'c>, op: OperationRef<'c, 'c>) -> Result<List<'c>, Failed> {
        let operands = operands_of(op);
        let start = block_of(op, 0)?;
        let init = Body::read(kernel, start, integers(op, keys::OVER), None)?;
        let Place::Operand(list) = kernel.place(operands[0]) else {
            return Err(error(op, "expected a list"));
        };
        let first = init.id(yields(start)[0]);
        Ok(List {
            list,
            step: block_of(op, 1)?,
            elem: init.values[first].1,
            store: store_of(kernel, op, operands[1], first)?,
            init,
            vectors: integer_attribute(op, keys::VECTORS).unwrap_or(1),
        })
    }
}

fn store_of<'c>(
    kernel: &Kernel<'c>,
    op: OperationRef<'c, 'c>,
    memory: Val<'c>,
    value: ValueId,
) -> Result<Store, Failed> {
    Ok(Store {
        place: kernel.place(memory),
        address: address_of(op).ok_or_else(|| error(op, "expected a linear map"))?,
        value,
    })
}

/// A body of scalars on vectors, or on single elements: what is carried, and the list's element.
pub fn combine<'c>(
    e: &Emitter<'c>,
    body: BlockRef<'c, 'c>,
    elem: Elem,
    [carried, element]: [Val<'c>; 2],
    width: Width,
) -> Val<'c> {
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (argument, value) in arguments_of(body).into_iter().zip([carried, element]) {
        values.insert(key(argument), value);
    }
    for op in operations_of(body) {
        let mut operands: Vec<_> = operands_of(op)
            .into_iter()
            .filter_map(|operand| values.get(&key(operand)).copied())
            .collect();
        if op.result_count() == 0 {
            return operands.first().copied().unwrap_or(carried);
        }
        let result = result_of(op, 0);
        let elem = elem_of(result.r#type()).unwrap_or(elem);
        let value = if Op::ArithConstant.is(op) {
            let scalar = e.copy(op, &[], result.r#type());
            e.splat(scalar, elem, width)
        } else {
            if divides(op) {
                operands[1] = e.safe_divisor(operands[0], operands[1], width);
            }
            e.copy(op, &operands, e.elem_type(elem, width))
        };
        values.insert(key(result), value);
    }
    carried
}
