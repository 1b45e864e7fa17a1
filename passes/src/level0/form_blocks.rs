//! `form-blocks`: level 0 to level 1. Gathers tensor code into static blocks, the unit of scheduling.
//!
//! In each basic block of the control program, tensor operations that can run together become one
//! `cfb.block` with explicit operands and results. What can run together is told by *waves*: an
//! operation that needs no call of this basic block is in wave 0; what needs a call's result, or a
//! loop's or a match's, is one above it. A number that a call gives makes nobody wait where no tensor
//! decides on it: it is known as soon as it is recorded. Operations of one wave never wait for each other's
//! calls. An operation that only a later block uses moves into that block, unless `hoist-operators`
//! has marked it `cfb.hoisted`: then it stays in the block of its own wave, which need not wait.
//!
//! ```mlir
//! %a = func.call @f(%l) : (…) -> tensor<8xf32>
//! %p = linalg.vecmat ins(%a, %w : …) outs(%z : …) -> tensor<8xf32>
//! %h = math.tanh %p : tensor<8xf32>
//! // becomes
//! %a = func.call @f(%l) : (…) -> tensor<8xf32>
//! %h = cfb.block "f"(%a, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8xf32>) { … }
//! ```
//!
//! With instance dims a block has *one* extent and one unit ([`parts()`]): row-wise work of
//! the same dims is one block, whose unit is the row; what needs the rows of an instance together,
//! and what is fused with it, is another, whose unit is the call. The block's attributes say which dims
//! its operands and results have, by names of the lengths that are its first operands.
//!
//! ```mlir
//! %p = linalg.matmul ins(%x, %w : tensor<?x8xf32>, …) outs(%z : …) -> tensor<?x8xf32>
//! // becomes
//! %p = cfb.block "f"(%n, %x, %w) : (index, tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
//!     attributes {leading = [[@n0], []], lengths = [@n0], rows = [@n0], unit = #cfb<unit rows>} { … }
//! ```
//!
//! A block of more than 256 operations, such as many layers one after another, or of more operands and
//! results than a kernel on a GPU may have, is cut into several where the fewest numbers go from one to the
//! next ([`cut`]); a concatenation of many tensors is one of concatenations ([`wide`]).
//! A function that has blocks already is left as it is.
//!
//! With the attribute `cfb.granularity = #cfb<granularity operator>` of the module, or of a function, each tensor operation is a block of its
//! own; operations that only say how an operand is read (slices, reshapes, broadcasts) are copied
//! into each block that reads through them.
//!
//! Requires: level 0 after inlining and canonicalisation. Leaves: no tensor operation outside of a
//! block but constants, parameter loads, `cfb.lookup` and `cfb.force`. Constants are copied into
//! each block that uses them.
//! The order of control operations may change where none depends on another, but not that of those by
//! which an instance may end with an error.

mod cut;
mod destinations;
mod dims;
mod parts;
mod wide;

pub use dims::DIM;

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use cohort_dialects::builder::{
    Builder, Op, Val, operands_of, operations_of, region_with_block, result_of, results_of,
};
use cohort_dialects::enums::Granularity;
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        BlockLike, OperationRef, TypeLike, ValueLike, attribute::StringAttribute,
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, error};
use crate::support::copies::{copy_op, replace_operands};
use crate::support::dim_equality::{DimEquality, Kind};
use crate::support::ir::{
    TensorType, blocks_of, clone_op, defining_op, enum_attribute, erase, functions_of, is_local,
    is_tensor, is_within, key, move_before, nested_ops, op_key, remove_attribute,
    replace_uses_except, set_operand, symbol_of, users_of,
};
use crate::support::waves::{BasicBlock, Effects, Role, is_expensive, is_view, role, used_values};
use cohort_dialects::marks::{GRANULARITY, HOISTED};
use dims::Dims;
use parts::{Part, joins_dims, parts};

/// The pass `form-blocks`.
pub const PASS: PassInfo = PassInfo {
    name: "form-blocks",
    summary: "Gather tensor operations into static blocks (level 0 to level 1)",
    description: include_str!("form_blocks.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let effects = Rc::new(Effects::new(module));
    let by_operator = |holder| enum_attribute(holder, GRANULARITY) == Some(Granularity::Operator);
    let all_by_operator = by_operator(module);
    for function in functions_of(module) {
        // Formed already; those of gradients come later.
        if nested_ops(function).iter().any(|op| Op::CfbBlock.is(*op)) {
            continue;
        }
        let name = symbol_of(function).unwrap_or_default();
        destinations::bring_in(context, function);
        wide::split(context, function);
        let blocks = Former {
            context,
            function,
            name,
            by_operator: all_by_operator || by_operator(function),
            effects: Rc::clone(&effects),
        };
        blocks.form_in(function)?;
    }
    Ok(())
}

/// How the blocks of a function are formed.
struct Former<'c> {
    context: &'c Context,
    function: OperationRef<'c, 'c>,
    /// The function's name, which its blocks get.
    name: String,
    /// Each tensor operation is a block of its own.
    by_operator: bool,
    effects: Rc<Effects>,
}

impl<'c> Former<'c> {
    /// Forms the blocks of all regions of a control operation, innermost first.
    fn form_in(&self, control: OperationRef<'c, 'c>) -> Outcome {
        for block in blocks_of(control) {
            for operation in operations_of(block) {
                if role(operation) == Role::Control && !Op::CfbBlock.is(operation) {
                    self.form_in(operation)?;
                }
            }
            self.form(BasicBlock::new(block, &self.effects))?;
        }
        Ok(())
    }

    fn form(&self, mut block: BasicBlock<'c>) -> Outcome {
        let Some(terminator) = block.terminator else {
            return Ok(());
        };
        block.materialise_constants(self.context);
        if self.by_operator {
            block.copy_views();
        }
        block.copy_destinations(self.by_operator);
        block.find_waves();
        block.sink(|operation| operation.has_attribute(&HOISTED));
        let ordered = block.reorder(terminator);
        if ordered.is_empty() {
            // Most arms of a large match are of the host alone, and need not ask for all lengths.
            block.drop_unused_copied();
            return Ok(());
        }
        let lengths = nested_ops(self.function)
            .into_iter()
            .filter(|op| Op::TensorDim.is(*op));
        let mut equality = DimEquality::new(block.operations.iter().copied().chain(lengths));
        equality.join_arguments(self.function);
        for group in ordered {
            let groups = if self.by_operator { 1 } else { group.len() };
            for group in group.chunks(groups) {
                for part in parts(group, &mut block.copied, &mut equality) {
                    for part in cut::cut(self.context, part, &mut block.copied, &mut equality) {
                        make_block(
                            self.context,
                            &part,
                            &self.name,
                            &block.copied,
                            &mut equality,
                        )?;
                    }
                }
            }
        }
        block.drop_unused_copied();
        Ok(())
    }
}

impl<'c> BasicBlock<'c> {
    /// A constant that control operations use as a value must be a plain `arith.constant`; any
    /// other is computed for them by a block, as a copy that is a tensor operation like any.
    fn materialise_constants(&mut self, context: &'c Context) {
        let mut operations = Vec::new();
        for operation in std::mem::take(&mut self.operations) {
            operations.push(operation);
            if self.role(operation) != Some(Role::Constant) || Op::ArithConstant.is(operation) {
                continue;
            }
            let by_control: Vec<_> = results_of(operation)
                .into_iter()
                .flat_map(users_of)
                .filter(|user| matches!(self.role(*user), None | Some(Role::Control)))
                .collect();
            let Some(before) = Builder::before(context, operation) else {
                continue;
            };
            if by_control.is_empty() {
                continue;
            }
            let copy = before.insert(clone_op(operation));
            self.roles.insert(op_key(copy), Role::Tensor);
            operations.push(copy);
            for user in by_control {
                use_copy(user, operation, copy);
            }
        }
        self.operations = operations;
    }

    /// Operations that only say how a value is read go into each block that reads through them,
    /// unless control operations need the value as such.
    fn copy_views(&mut self) {
        for operation in self.operations.iter().rev() {
            let is_view = is_view(*operation) && self.role(*operation) == Some(Role::Tensor);
            // With instance dims how an operand is read may need its rows together.
            if is_view
                && !grows(*operation)
                && self.is_for_tensors(*operation)
                && !self.is_joined_for_calls(*operation)
            {
                self.copied.insert(op_key(*operation));
            }
        }
    }

    /// Whether a reshape that makes one dim of several is read by an operation with instance dims, or by a
    /// view that may be copied into one: a kernel over calls cannot read through it.
    fn is_joined_for_calls(&self, operation: OperationRef<'c, 'c>) -> bool {
        let mut users = results_of(operation).into_iter().flat_map(users_of);
        joins_dims(operation)
            && users.any(|user| grows(user) || self.copied.contains(&op_key(user)))
    }

    /// Tensors of run-time lengths that operations only write to, or that hold one number, are
    /// made in each block that uses them: a block has one extent. So are masks, elementwise work
    /// on nothing but lengths and constants, where each operation is a block; but not what is made of a
    /// concatenation, which is stored for what reads it across its parts.
    fn copy_destinations(&mut self, masks: bool) {
        let mut unfed = HashSet::new();
        for operation in &self.operations {
            let from_nothing = operands_of(*operation).into_iter().all(|operand| {
                let producer = defining_op(operand);
                let of_constants = producer.is_some_and(|producer| {
                    self.role(producer) == Some(Role::Constant) || unfed.contains(&op_key(producer))
                });
                operand.r#type().is_index() || of_constants
            });
            let is_stored = Op::TensorConcat.is(*operation);
            if from_nothing && !is_stored && self.role(*operation) == Some(Role::Tensor) {
                unfed.insert(op_key(*operation));
            }
        }
        for operation in self.operations.iter().rev() {
            let kind = Op::of(*operation);
            let is_mask = masks
                && unfed.contains(&op_key(*operation))
                && (!is_expensive(*operation) || kind == Some(Op::LinalgGeneric));
            let is_destination = matches!(kind, Some(Op::TensorEmpty | Op::LinalgFill));
            if (is_destination || is_mask) && grows(*operation) && self.is_for_tensors(*operation) {
                self.copied.insert(op_key(*operation));
            }
        }
    }

    /// Whether only tensor operations use what an operation gives.
    fn is_for_tensors(&self, operation: OperationRef<'c, 'c>) -> bool {
        let mut users = results_of(operation).into_iter().flat_map(users_of);
        users.all(|user| {
            matches!(self.role(user), Some(Role::Tensor)) || self.copied.contains(&op_key(user))
        })
    }

    /// What only blocks used has been copied into them.
    fn drop_unused_copied(&self) {
        for operation in self.operations.iter().rev() {
            let unused = || {
                results_of(*operation)
                    .into_iter()
                    .all(|result| users_of(result).is_empty())
            };
            let copied = self.role(*operation) == Some(Role::Constant)
                || self.copied.contains(&op_key(*operation));
            if copied && unused() {
                erase(*operation);
            }
        }
    }

    /// The tensor operations marked `cfb.hoisted`, and what they need of their own wave.
    fn hoisted(&self) -> HashSet<usize> {
        let mut hoisted = HashSet::new();
        for operation in self.operations.iter().rev() {
            let wave = self.waves[&op_key(*operation)];
            let needed = || {
                let users = results_of(*operation).into_iter().flat_map(users_of);
                users.into_iter().any(|user| {
                    let at = self.waves.get(&op_key(user)).copied();
                    hoisted.contains(&op_key(user)) && at == Some(wave)
                })
            };
            if operation.has_attribute(&HOISTED)
                || self.role(*operation) == Some(Role::Tensor) && needed()
            {
                hoisted.insert(op_key(*operation));
            }
        }
        hoisted
    }

    /// Puts constants first, then each wave's control operations and its tensor operations, and
    /// returns the latter, wave by wave.
    fn reorder(&self, terminator: OperationRef<'c, 'c>) -> Vec<Vec<OperationRef<'c, 'c>>> {
        let hoisted = self.hoisted();
        let rank = |operation: &OperationRef<'c, 'c>| {
            let role = self.roles[&op_key(*operation)];
            let wave = self.waves[&op_key(*operation)];
            match role {
                Role::Constant | Role::Parameter => (0, 0),
                Role::Control => (wave, 1),
                Role::Tensor if hoisted.contains(&op_key(*operation)) => (wave, 2),
                Role::Tensor => (wave, 3),
            }
        };
        let mut ordered = self.operations.clone();
        ordered.sort_by_key(rank);
        for operation in &ordered {
            move_before(*operation, terminator);
        }
        let tensors = ordered.iter().filter(|op| {
            self.role(**op) == Some(Role::Tensor) && !self.copied.contains(&op_key(**op))
        });
        let mut groups: Vec<Vec<OperationRef<'c, 'c>>> = Vec::new();
        for operation in tensors {
            match groups.last_mut() {
                Some(group) if rank(&group[0]) == rank(operation) => group.push(*operation),
                _ => groups.push(vec![*operation]),
            }
        }
        groups
    }
}

/// Whether the size of a result is known at run time only.
fn grows(operation: OperationRef<'_, '_>) -> bool {
    let shapes = results_of(operation).into_iter();
    let mut shapes = shapes.filter_map(TensorType::of_value);
    shapes.any(|ty| ty.shape.contains(&None))
}

/// Makes a user of an operation's results one of its copy's.
fn use_copy<'c>(
    user: OperationRef<'c, 'c>,
    operation: OperationRef<'c, 'c>,
    copy: OperationRef<'c, 'c>,
) {
    for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
        for (index, operand) in operands_of(user).into_iter().enumerate() {
            if key(operand) == key(old) {
                set_operand(user, index, new);
            }
        }
    }
}

/// Moves neighbouring tensor operations into one `cfb.block`.
fn make_block<'c>(
    context: &'c Context,
    part: &Part<'c>,
    name: &str,
    copied: &HashSet<usize>,
    equality: &mut DimEquality,
) -> Outcome {
    let group = &part.operations[..];
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return Ok(());
    };
    let inside: HashSet<usize> = group.iter().map(|op| op_key(*op)).collect();
    let is_inside = |op: OperationRef<'c, 'c>| inside.contains(&op_key(op));

    let mut operands: Vec<Val<'c>> = Vec::new();
    let mut copies: Vec<OperationRef<'c, 'c>> = Vec::new();
    let mut seen = HashSet::new();
    let mut pending: VecDeque<Val<'c>> = group.iter().flat_map(|op| used_values(*op)).collect();
    while let Some(operand) = pending.pop_front() {
        if !seen.insert(key(operand)) || is_local(operand, &inside) {
            continue;
        }
        match defining_op(operand) {
            Some(producer) if is_inside(producer) => {}
            Some(producer) if is_copied(producer, copied) => {
                copies.push(producer);
                pending.extend(outer_values(producer));
            }
            _ => operands.push(operand),
        }
    }
    let results: Vec<Val<'c>> = group
        .iter()
        .flat_map(|op| results_of(*op))
        .filter(|result| {
            users_of(*result)
                .into_iter()
                .any(|user| !is_within(user, &inside))
        })
        .collect();
    if let Some(result) = results.iter().find(|result| !is_tensor(result.r#type())) {
        let producer = defining_op(*result).unwrap_or(*first);
        let message = "not supported yet: a tensor operation whose result is not a tensor";
        return Err(error(producer, message));
    }

    let location = last.location();
    let Some(outside) = Builder::before(context, *first) else {
        return Ok(());
    };
    let dims = match part.kind {
        Kind::Plain => Dims::default(),
        _ => Dims::find(outside.at(location), part, &operands, &results, equality)?,
    };
    let operands = dims.operands(operands);
    let types: Vec<_> = operands.iter().map(|operand| operand.r#type()).collect();
    let result_types: Vec<_> = results.iter().map(|result| result.r#type()).collect();
    let (region, body) = region_with_block(&types, location);
    let mut attributes = vec![(keys::NAME, StringAttribute::new(context, name).into())];
    attributes.extend(dims.attributes(context, &part.kind));
    let block = outside.at(location).op(
        Op::CfbBlock,
        &operands,
        &result_types,
        &attributes,
        vec![region],
    );
    // Results are replaced while the operations still stand outside, so that `users` are told
    // apart by the group alone.
    let within: Vec<_> = group
        .iter()
        .flat_map(|op| [vec![*op], nested_ops(*op)].concat())
        .collect();
    let inner = Builder::at_end(context, body, location);
    let end = inner.cfb_yield(&results);
    let mut exceptions = within.clone();
    exceptions.push(end);
    for (index, result) in results.iter().enumerate() {
        replace_uses_except(*result, result_of(block, index), &exceptions);
        equality.join_shapes(*result, result_of(block, index));
    }
    for operation in group {
        move_before(*operation, end);
        remove_attribute(*operation, HOISTED);
    }

    let mut replacement: HashMap<usize, Val<'c>> = HashMap::new();
    for (index, operand) in operands.iter().enumerate() {
        if let Ok(argument) = body.argument(index) {
            replacement.insert(key(*operand), crate::support::ir::val(argument));
        }
    }
    for (length, of) in &dims.others {
        if let Some(argument) = replacement.get(&key(dims.lengths[*of])).copied() {
            replacement.insert(key(*length), argument);
        }
    }
    let Some(start) = Builder::before(context, *first) else {
        return Ok(());
    };
    copy_in(start, &copies, copied, &mut replacement);
    for operation in group {
        replace_operands(*operation, &replacement);
    }
    Ok(())
}

/// What an operation and its regions use of what is outside of it.
fn outer_values<'c>(operation: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let own = HashSet::from([op_key(operation)]);
    let used = used_values(operation).into_iter();
    used.filter(|value| !is_local(*value, &own)).collect()
}

/// Whether an operation is copied into each block that uses it.
fn is_copied(operation: OperationRef<'_, '_>, copied: &HashSet<usize>) -> bool {
    role(operation) == Role::Constant || copied.contains(&op_key(operation))
}

/// Copies constants and views, and those they are made of, to the start of a block.
fn copy_in<'c>(
    start: Builder<'c>,
    copies: &[OperationRef<'c, 'c>],
    copied: &HashSet<usize>,
    replacement: &mut HashMap<usize, Val<'c>>,
) {
    for original in copies {
        if results_of(*original)
            .iter()
            .all(|result| replacement.contains_key(&key(*result)))
        {
            continue;
        }
        let sources: Vec<_> = outer_values(*original)
            .into_iter()
            .filter_map(defining_op)
            .filter(|source| is_copied(*source, copied))
            .collect();
        copy_in(start, &sources, copied, replacement);
        copy_op(&start, *original, replacement);
    }
}
