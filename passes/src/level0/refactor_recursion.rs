//! `refactor-recursion`: what a caller makes of each child is computed by the call for the child (level 0).
//!
//! A recursive function that maps itself over its children, and then something over their results, runs two
//! launches for each level of a tree: one for the nodes, and one for the edges to their children. Here the
//! recursion's backedge is moved behind the beginning of what the caller does: what it makes of one child's
//! result is computed where that result is, and what it knew for that is an argument more. `form-blocks` makes
//! the end of a child and the beginning of its parent one block.
//!
//! ```mlir
//! %x = … of the node alone
//! %states = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%child: !cfb.adt<@Tree>):
//!   %h = func.call @cell(%child) : (!cfb.adt<@Tree>) -> tensor<8xf32>
//!   cfb.yield %h : tensor<8xf32>
//! }
//! %gated = cfb.map %states : (!cfb.array<tensor<8xf32>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%h: tensor<8xf32>):
//!   %g = arith.mulf %h, %x : tensor<8xf32>
//!   cfb.yield %g : tensor<8xf32>
//! }
//! // becomes
//! %gated = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<tensor<8xf32>> {
//! ^bb0(%child: !cfb.adt<@Tree>):
//!   %g = func.call @cell(%child, %x) : (!cfb.adt<@Tree>, tensor<8xf32>) -> tensor<8xf32>
//!   cfb.yield %g : tensor<8xf32>
//! }
//! // and each end of @cell(%tree, %x) has, behind what it has as %h,
//! %g = arith.mulf %h, %x : tensor<8xf32>
//! ```
//!
//! Results that nobody but the moved part used are not results any more. Whoever calls the function from outside gives
//! it zeros, and leaves what is made of them alone: a root has one edge too many, and in return its rows are in the
//! launches of the other nodes.
//!
//! Requires: level 0 after `recognise-reductions`. Leaves: level 0. Left as they are: functions that call
//! themselves in more than one place, since each of them would compute what only one needs; with a remark, those that
//! wait for tensors (`cfb.force`), those whose caller knows what it needs only when the children are done, and those to
//! which a tensor would be given whose shape an outer caller does not have. After Cortex, section 3.2
//! ("recursive refactoring").

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Op, Val, extend_block, extend_op, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Attribute, BlockRef, OperationRef, Type, TypeLike, ValueLike,
        attribute::{FloatAttribute, IntegerAttribute},
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, blocks_of, callee_of, defining_op, functions_of, is_local, is_private, is_within,
    key, nested_ops, op_key, splat, symbol_of, users_of,
};
use crate::support::waves::{Role, close, role, used_values};

mod rewrite;

/// The pass `refactor-recursion`.
pub const PASS: PassInfo = PassInfo {
    name: "refactor-recursion",
    summary: "Let a call compute what its caller makes of each child's result (level 0)",
    description: include_str!("refactor_recursion.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        let Some(recursion) = Recursion::of(context, module, function) else {
            continue;
        };
        let name = &recursion.name;
        let what = match recursion.head() {
            Ok(head) => {
                rewrite::rewrite(&recursion, &head);
                format!(
                    "`{name}` is refactored: a call computes what its caller makes of the result as well, in one \
                     launch for a level of the recursion where there were two"
                )
            }
            Err(why) => format!("`{name}` is not refactored: {why}"),
        };
        remark(function, &what);
    }
    Ok(())
}

/// A function that maps itself over a list, and tensor operations over the results.
struct Recursion<'c> {
    context: &'c Context,
    name: String,
    function: OperationRef<'c, 'c>,
    body: BlockRef<'c, 'c>,
    /// The map that does nothing but call the function.
    children: OperationRef<'c, 'c>,
    call: OperationRef<'c, 'c>,
    /// Which of the call's results each part of an element of the list is.
    parts: Vec<usize>,
    /// The maps of tensor operations over that list.
    edges: Vec<OperationRef<'c, 'c>>,
    /// The calls from outside.
    callers: Vec<OperationRef<'c, 'c>>,
}

/// What the edges need from around them.
struct Head<'c> {
    /// Constants and parameters, and what is made of them alone, in order: each end has its own.
    constants: Vec<OperationRef<'c, 'c>>,
    /// Values that become arguments.
    needed: Vec<Val<'c>>,
    /// The operations that make these, in order, where they stand behind the recursion.
    earlier: Vec<OperationRef<'c, 'c>>,
}

impl<'c> Recursion<'c> {
    fn of(
        context: &'c Context,
        module: OperationRef<'c, 'c>,
        function: OperationRef<'c, 'c>,
    ) -> Option<Recursion<'c>> {
        let name = symbol_of(function)?;
        let [body] = blocks_of(function)[..] else {
            return None;
        };
        let (own, callers) = calls_of(module, function, &name)?;
        let [call] = own[..] else {
            return None;
        };
        let children = call.parent_operation().map(extend_op)?;
        let only_calls = Op::CfbMap.is(children)
            && blocks_of(children)
                .first()
                .map(|block| operations_of(*block).len())
                == Some(2);
        if !only_calls || children.block().map(extend_block).is_none() {
            return None;
        }
        let results: Vec<usize> = results_of(call).into_iter().map(key).collect();
        let parts: Option<Vec<usize>> = operands_of(end_of(children)?)
            .into_iter()
            .map(|part| results.iter().position(|result| *result == key(part)))
            .collect();
        let block = children.block().map(extend_block);
        let edges: Vec<_> = users_once(result_of(children, 0))
            .into_iter()
            .filter(|user| user.block().map(extend_block) == block && is_edge(*user))
            .collect();
        (!edges.is_empty()).then_some(Recursion {
            context,
            name,
            function,
            body,
            children,
            call,
            parts: parts?,
            edges,
            callers,
        })
    }

    /// What moves, or why nothing does.
    fn head(&self) -> Result<Head<'c>, &'static str> {
        let operations = nested_ops(self.function);
        if operations.iter().any(|op| Op::CfbForce.is(*op)) {
            return Err("it waits for tensors, so its steps run one by one");
        }
        let order: HashMap<usize, usize> = operations
            .iter()
            .enumerate()
            .map(|(index, op)| (op_key(*op), index))
            .collect();
        let constants = self.producers(&order, |producer| {
            matches!(role(producer), Role::Constant | Role::Parameter)
        });
        let copied: HashSet<usize> = constants.iter().map(|op| op_key(*op)).collect();
        let mut seen = HashSet::new();
        let needed: Vec<Val<'c>> = self
            .free_values()
            .filter(|value| {
                let is_copied = defining_op(*value).is_some_and(|op| copied.contains(&op_key(op)));
                !is_copied && seen.insert(key(*value))
            })
            .collect();
        if !needed
            .iter()
            .all(|value| zero_of(self.context, value.r#type()).is_some())
        {
            return Err(
                "whoever calls it from outside does not know the shapes of what it would be given",
            );
        }
        let at = order[&op_key(self.children)];
        let is_late = |producer: OperationRef<'c, 'c>| {
            order
                .get(&op_key(producer))
                .is_some_and(|index| *index >= at)
        };
        let earlier = self.producers(&order, is_late);
        if earlier.iter().any(|op| role(*op) == Role::Control) {
            return Err("what is made of a child's result needs other children's as well");
        }
        Ok(Head {
            constants,
            needed,
            earlier,
        })
    }

    /// The values from around the edges that these use.
    fn free_values(&self) -> impl Iterator<Item = Val<'c>> {
        self.edges.iter().flat_map(|edge| {
            let inside = HashSet::from([op_key(*edge)]);
            let used = nested_ops(*edge).into_iter().flat_map(operands_of);
            used.filter(move |value| !is_local(*value, &inside))
        })
    }

    /// The operations that make the free values, and of which in turn these are made, as far as `counts` goes.
    fn producers(
        &self,
        order: &HashMap<usize, usize>,
        counts: impl Fn(OperationRef<'c, 'c>) -> bool,
    ) -> Vec<OperationRef<'c, 'c>> {
        let mut found: HashMap<usize, OperationRef<'c, 'c>> = HashMap::new();
        let mut pending: Vec<Val<'c>> = self.free_values().collect();
        while let Some(value) = pending.pop() {
            let Some(producer) = defining_op(value).filter(|op| counts(*op)) else {
                continue;
            };
            if found.insert(op_key(producer), producer).is_none() {
                let inside = HashSet::from([op_key(producer)]);
                let used = used_values(producer).into_iter();
                pending.extend(used.filter(|value| !is_local(*value, &inside)));
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_unstable_by_key(|op| order.get(&op_key(*op)));
        found
    }
}

type Calls<'c> = Vec<OperationRef<'c, 'c>>;

/// The calls of a function by itself, and by others; `None` if others call it that it reaches itself, or that are
/// not of this module.
fn calls_of<'c>(
    module: OperationRef<'c, 'c>,
    function: OperationRef<'c, 'c>,
    name: &str,
) -> Option<(Calls<'c>, Calls<'c>)> {
    let has_attributes = [keys::ARG_ATTRS, keys::RES_ATTRS]
        .iter()
        .any(|of| function.has_attribute(of));
    if !is_private(function) || has_attributes {
        return None;
    }
    let callee = |op: OperationRef<'c, 'c>| (Op::FuncCall.is(op)).then(|| callee_of(op)).flatten();
    let mut reached: HashMap<String, HashSet<String>> = HashMap::new();
    for function in functions_of(module) {
        let callees = nested_ops(function)
            .into_iter()
            .filter_map(callee)
            .collect();
        reached.insert(symbol_of(function)?, callees);
    }
    close(&mut reached);
    let within = HashSet::from([op_key(function)]);
    let calls = nested_ops(module)
        .into_iter()
        .filter(|op| callee(*op).as_deref() == Some(name));
    let (own, others): (Vec<_>, Vec<_>) = calls.partition(|call| is_within(*call, &within));
    let comes_back = reached.iter().any(|(other, callees)| {
        other != name && callees.contains(name) && reached[name].contains(other)
    });
    (!comes_back).then_some((own, others))
}

/// Whether an operation is a map of tensor operations over one list.
fn is_edge(operation: OperationRef<'_, '_>) -> bool {
    let Some(body) = takes_alone(operation) else {
        return false;
    };
    let mut operations = operations_of(body);
    operations.pop();
    let computes = operations.iter().any(|op| role(*op) == Role::Tensor);
    computes && operations.iter().all(|op| role(*op) != Role::Control)
}

/// The body of a map over nothing but one list.
fn takes_alone<'c>(operation: OperationRef<'c, '_>) -> Option<BlockRef<'c, 'c>> {
    let alone = Op::CfbMap.is(operation) && operands_of(operation).len() == 1;
    alone
        .then(|| blocks_of(operation).first().copied())
        .flatten()
}

/// The operation at the end of the only block of another.
fn end_of<'c>(operation: OperationRef<'c, '_>) -> Option<OperationRef<'c, 'c>> {
    let block = blocks_of(operation).first().copied()?;
    operations_of(block).last().copied()
}

/// The operations that use a value, each once.
fn users_once<'c>(value: Val<'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut seen = HashSet::new();
    let mut users = users_of(value);
    users.retain(|user| seen.insert(op_key(*user)));
    users
}

/// The zero of a type, where there is one: of a number, or of a tensor of known shape.
fn zero_of<'c>(context: &'c Context, ty: Type<'c>) -> Option<Attribute<'c>> {
    let number = |ty: Type<'c>| match ty.is_float() {
        true => Some(FloatAttribute::new(context, ty, 0.0).into()),
        false if ty.is_integer() || ty.is_index() => Some(IntegerAttribute::new(ty, 0).into()),
        false => None,
    };
    match TensorType::of(ty) {
        Some(tensor) => splat(ty, number(tensor.element)?),
        None => number(ty),
    }
}
