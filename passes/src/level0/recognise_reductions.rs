//! `recognise-reductions`: folds that combine tensors element by element become `cfb.reduce_rows`.
//!
//! A `cfb.fold` in the control program records one kernel call an element, each deeper than the
//! one before, so that nodes with different numbers of children batch badly. Where all that happens
//! to the carried tensor is elementwise (`sum` of a list, `max` of a list, a decayed sum), the fold
//! is one tensor operation on the whole list: a call takes any number of rows, and fuses with what
//! uses it. What the fold's body computes of the element alone moves to a `cfb.map` before it, so
//! that it is batched over the elements too. Elements are combined in the same order from the same
//! start, so the bits are those of the fold.
//!
//! ```mlir
//! %s = cfb.fold %states init(%zero) : (!cfb.array<tuple<tensor<8xf32>, i32>>, tensor<8xf32>) -> tensor<8xf32> {
//! ^bb0(%acc: tensor<8xf32>, %h: tensor<8xf32>, %i: i32):
//!   %g = math.tanh %h : tensor<8xf32>
//!   %n = arith.addf %acc, %g : tensor<8xf32>
//!   cfb.yield %n : tensor<8xf32>
//! }
//! // becomes
//! %list = cfb.map %states : (!cfb.array<tuple<tensor<8xf32>, i32>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%h: tensor<8xf32>, %i: i32):
//!   %g = math.tanh %h : tensor<8xf32>
//!   cfb.yield %g : tensor<8xf32>
//! }
//! %s = cfb.reduce_rows %list init(%zero) : (!cfb.array<tensor<8xf32>>, tensor<8xf32>) -> tensor<8xf32> {
//! ^bb0(%acc: f32, %g: f32):
//!   %n = arith.addf %acc, %g : f32
//!   cfb.yield %n : f32
//! }
//! ```
//!
//! Where the module has the attribute `cfb.gradients` only sums are recognised: no other has a gradient.
//!
//! Requires: level 0. Leaves: level 0. A fold that carries one tensor and is no such reduction
//! stays, with a remark that says why; one that carries anything else is not a candidate.
//!
//! Paper: ACRoBat, section on operator fusion (reductions over `@map`).

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, is_arithmetic, name_of, operands_of, operations_of,
    region_with_block, result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::{array, array_element};
use melior::{
    Context,
    ir::{Attribute, OperationRef, Region, ValueLike, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, blocks_of, defining_op, erase, functions_of, key, move_before, nested_ops, op_key,
    replace_uses, splat_value,
};
use cohort_dialects::marks::GRADIENTS;

/// The pass `recognise-reductions`.
pub const PASS: PassInfo = PassInfo {
    name: "recognise-reductions",
    summary: "Make elementwise folds of tensors reductions over the whole list",
    description: include_str!("recognise_reductions.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let for_gradients = module.has_attribute(&GRADIENTS);
    for function in functions_of(module) {
        let mut folds: Vec<_> = nested_ops(function)
            .into_iter()
            .filter(|op| Op::CfbFold.is(*op))
            .collect();
        // Inner folds first: what they become is moved with the body of an outer one.
        folds.reverse();
        for fold in folds {
            let Some(candidate) = Fold::of(fold) else {
                continue;
            };
            match candidate.reduction() {
                Ok(reduction) if for_gradients && !reduction.is_sum() => {
                    remark(fold, "left as a fold: only sums of lists have gradients");
                }
                Ok(reduction) => candidate.rewrite(context, &reduction),
                Err(Refusal { at, why }) => remark(at, &format!("left as a fold: {why}")),
            }
        }
    }
    Ok(())
}

/// Why a fold is not a reduction of ours, and where.
struct Refusal<'c> {
    at: OperationRef<'c, 'c>,
    why: String,
}

/// A fold that carries one tensor of static shape.
struct Fold<'c> {
    operation: OperationRef<'c, 'c>,
    ty: TensorType<'c>,
    carried: Val<'c>,
    elements: Vec<Val<'c>>,
    operations: Vec<OperationRef<'c, 'c>>,
    end: OperationRef<'c, 'c>,
}

/// What a fold is made of when it is a reduction.
struct Reduction<'c> {
    /// The operations on the carried tensor, all elementwise.
    combines: Vec<OperationRef<'c, 'c>>,
    /// What each turn combines with it.
    element: Val<'c>,
}

impl Reduction<'_> {
    fn is_sum(&self) -> bool {
        matches!(&self.combines[..], [only] if Op::ArithAddf.is(*only))
    }
}

impl<'c> Fold<'c> {
    fn of(operation: OperationRef<'c, 'c>) -> Option<Fold<'c>> {
        let [result] = results_of(operation)[..] else {
            return None;
        };
        let ty = TensorType::of_value(result)?;
        if ty.shape.contains(&None) {
            return None;
        }
        let &body = blocks_of(operation).first()?;
        let mut arguments = arguments_of(body).into_iter();
        let carried = arguments.next()?;
        let mut operations = operations_of(body);
        let end = operations.pop()?;
        Some(Fold {
            operation,
            ty,
            carried,
            elements: arguments.collect(),
            operations,
            end,
        })
    }

    fn reduction(&self) -> Result<Reduction<'c>, Refusal<'c>> {
        let combines = self.combines();
        let changed: HashSet<usize> = combines.iter().map(|op| op_key(*op)).collect();
        let is_carried = |value: Val<'c>| {
            key(value) == key(self.carried)
                || defining_op(value).is_some_and(|op| changed.contains(&op_key(op)))
        };
        if !operands_of(self.end).into_iter().all(is_carried) || combines.is_empty() {
            return Err(self.refuse(self.end, "it does not combine what it carries"));
        }
        let mut element: Option<Val<'c>> = None;
        for operation in &combines {
            self.check_elementwise(*operation)?;
            for operand in operands_of(*operation) {
                if is_carried(operand) || splat(operand).is_some() {
                    continue;
                }
                if !self.is_inside(operand) {
                    let why = "it combines what it carries with a value from outside";
                    return Err(self.refuse(*operation, why));
                }
                if element.is_some_and(|known| key(known) != key(operand)) {
                    let why = "it combines what it carries with two values of an element";
                    return Err(self.refuse(*operation, why));
                }
                element = Some(operand);
            }
        }
        let element = element
            .ok_or_else(|| self.refuse(self.operation, "what it carries needs no element"))?;
        if TensorType::of_value(element).as_ref() != Some(&self.ty) {
            let why = "an element has another type than what it carries";
            return Err(self.refuse(self.operation, why));
        }
        // A mark without results, such as the start of a phase, has its place in the loop.
        let mark = self.operations.iter().find(|op| op.result_count() == 0);
        if let Some(mark) = mark {
            return Err(self.refuse(*mark, &format!("`{}` runs in every turn", name_of(*mark))));
        }
        Ok(Reduction { combines, element })
    }

    /// The operations of the body that need what it carries, in order.
    fn combines(&self) -> Vec<OperationRef<'c, 'c>> {
        let mut values = HashSet::from([key(self.carried)]);
        let mut found = Vec::new();
        for operation in &self.operations {
            let mut used = operands_of(*operation);
            used.extend(nested_ops(*operation).into_iter().flat_map(operands_of));
            if used.iter().any(|value| values.contains(&key(*value))) {
                values.extend(results_of(*operation).into_iter().map(key));
                found.push(*operation);
            }
        }
        found
    }

    fn check_elementwise(&self, operation: OperationRef<'c, 'c>) -> Result<(), Refusal<'c>> {
        let same_shape = |value: &Val<'c>| {
            TensorType::of_value(*value).is_some_and(|ty| ty.shape == self.ty.shape)
        };
        let known = is_arithmetic(operation)
            && operation.result_count() == 1
            && operation.region_count() == 0
            && results_of(operation).iter().all(same_shape)
            && operands_of(operation).iter().all(same_shape);
        match known {
            true => Ok(()),
            false => Err(self.refuse(
                operation,
                &format!(
                    "`{}` does not combine what it carries element by element",
                    name_of(operation)
                ),
            )),
        }
    }

    fn is_inside(&self, value: Val<'c>) -> bool {
        self.elements
            .iter()
            .any(|argument| key(*argument) == key(value))
            || defining_op(value).is_some_and(|producer| {
                self.operations
                    .iter()
                    .any(|op| op_key(*op) == op_key(producer))
            })
    }

    fn refuse(&self, at: OperationRef<'c, 'c>, why: &str) -> Refusal<'c> {
        let why = why.to_owned();
        Refusal { at, why }
    }

    fn rewrite(&self, context: &'c Context, reduction: &Reduction<'c>) {
        let Some(before) = Builder::before(context, self.operation) else {
            return;
        };
        let operands = operands_of(self.operation);
        let is_list = array_element(operands[0].r#type()) == Some(self.ty.to_type());
        let is_element = self
            .elements
            .iter()
            .any(|argument| key(*argument) == key(reduction.element));
        let body = self.scalar_body(context, reduction);
        let list = match is_list && is_element {
            true => operands[0],
            false => self.map_elements(context, &before, reduction),
        };
        let reduced = before.op(
            Op::CfbReduceRows,
            &[list, operands[1]],
            &[self.ty.to_type()],
            &[],
            vec![body],
        );
        replace_uses(result_of(self.operation, 0), result_of(reduced, 0));
        erase(self.operation);
    }

    /// The combination of one element of what is carried with one of the list's.
    fn scalar_body(&self, context: &'c Context, reduction: &Reduction<'c>) -> Region<'c> {
        let element = self.ty.element;
        let location = self.operation.location();
        let (region, block) = region_with_block(&[element, element], location);
        let inner = Builder::at_end(context, block, location);
        let arguments = arguments_of(block);
        let mut scalars = HashMap::from([
            (key(self.carried), arguments[0]),
            (key(reduction.element), arguments[1]),
        ]);
        for operation in &reduction.combines {
            let inner = inner.at(operation.location());
            let mut operands = Vec::new();
            for operand in operands_of(*operation) {
                let known = scalars.get(&key(operand)).copied();
                let scalar = known.or_else(|| {
                    let ty = TensorType::of_value(operand)?.element;
                    let value = splat(operand)?;
                    Some(inner.constant(value, ty))
                });
                if let Some(scalar) = scalar {
                    scalars.insert(key(operand), scalar);
                    operands.push(scalar);
                }
            }
            let result = result_of(*operation, 0);
            let ty = TensorType::of_value(result).map_or(element, |ty| ty.element);
            let copy = inner.again(*operation, &operands, &[ty], vec![]);
            scalars.insert(key(result), result_of(copy, 0));
        }
        let yielded: Vec<_> = operands_of(self.end)
            .into_iter()
            .filter_map(|value| scalars.get(&key(value)).copied())
            .collect();
        inner.cfb_yield(&yielded);
        region
    }

    /// Moves what needs the element alone to a map; the array of what is combined.
    fn map_elements(
        &self,
        context: &'c Context,
        before: &Builder<'c>,
        reduction: &Reduction<'c>,
    ) -> Val<'c> {
        let types: Vec<_> = self
            .elements
            .iter()
            .map(|element| element.r#type())
            .collect();
        let location = self.operation.location();
        let (region, block) = region_with_block(&types, location);
        let map = before.op(
            Op::CfbMap,
            &operands_of(self.operation)[..1],
            &[array(self.ty.to_type())],
            &[],
            vec![region],
        );
        let inner = Builder::at_end(context, block, location);
        let end = inner.cfb_yield(&[reduction.element]);
        let combines: HashSet<usize> = reduction.combines.iter().map(|op| op_key(*op)).collect();
        for operation in &self.operations {
            if !combines.contains(&op_key(*operation)) {
                move_before(*operation, end);
            }
        }
        for (old, new) in self.elements.iter().zip(arguments_of(block)) {
            replace_uses(*old, new);
        }
        result_of(map, 0)
    }
}

/// The one value of all elements of a constant tensor.
fn splat<'c>(value: Val<'c>) -> Option<Attribute<'c>> {
    let producer = defining_op(value)?;
    match Op::of(producer) {
        Some(Op::ArithConstant) => splat_value(producer),
        Some(Op::LinalgFill) => {
            let scalar = defining_op(*operands_of(producer).first()?)?;
            let is_constant = Op::ArithConstant.is(scalar);
            is_constant
                .then(|| scalar.attribute(&keys::VALUE).ok())
                .flatten()
        }
        _ => None,
    }
}
