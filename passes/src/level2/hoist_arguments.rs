//! `hoist-arguments`: what a recursion makes of an argument that it hands on is computed where the argument is new
//! (level 2).
//!
//! A function that calls itself with some argument as it is, as one that makes a node's children one after another
//! does with the node, computes of it in every call what it computed in the call before. Here its caller computes
//! that, once, and hands it over; where the function calls itself with the argument as it is, it hands on what it was
//! given. The kernel is split for it: what needs only such arguments is a kernel of its own.
//!
//! ```mlir
//! func.func private @next(%parent: !cfb.lazy<…>, %last: !cfb.lazy<…>) … {
//!   %h = cfb.record @cell(%parent, %last) : …
//!   … func.call @next(%parent, %h) …
//!   … func.call @next(%h, %zeros) …
//! }
//! // becomes
//! func.func private @next(%parent: !cfb.lazy<…>, %last: !cfb.lazy<…>, %given: !cfb.lazy<…>) … {
//!   %h = cfb.record @cell(%last, %given) : …
//!   … func.call @next(%parent, %h, %given) …
//!   %head = cfb.record @cell_head(%h) : …
//!   … func.call @next(%h, %zeros, %head) …
//! }
//! ```
//!
//! Done where the function records the kernel in each of its calls, and where products of 4,096 multiplications a row
//! or more move: the head is a launch of its own, and its rows are stored. The operations are the same, in the same
//! order, and a product that started from another starts from its row, so no bit changes.
//!
//! Requires: level 2, after `accumulate-products` has fixed the order of sums. Leaves: level 2. Left alone: kernels of
//! values with instance dims, those that are recorded in several places, and those that gradients go through.

use std::collections::HashSet;

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend, extend_block, extend_op, operands_of, operations_of,
    result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks::FUSED_COLUMNS;
use cohort_dialects::types::{lazy, lazy_tensor};
use melior::{
    Context,
    ir::{
        BlockLike, BlockRef, OperationRef, Type, ValueLike, attribute::StringAttribute,
        operation::OperationLike,
    },
};

use crate::level0::hoist_constants::rows::row_of;
use crate::level2::accumulate_products::is_product;
use crate::level2::specialise_kernels::records_to_change;
use crate::pass::{Outcome, PassInfo, remark};
use crate::support::functions::{change_type, erase_arguments, replace};
use crate::support::ir::{
    blocks_of, callee_of, clone_op, erase, functions_of, is_local, is_private, key, nested_ops,
    op_key, remove_attribute, replace_uses_except, set_attribute, symbol_of, top_level, users_of,
};
use crate::support::products::size;
use crate::support::symbols::Symbols;
use crate::support::waves::used_values;

/// The pass `hoist-arguments`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-arguments",
    summary: "Compute what a recursion makes of an argument that it hands on where that is new (level 2)",
    description: include_str!("hoist_arguments.rs"),
    run,
};

/// Multiplications a row below which a launch more costs what is saved.
const FEWEST_SAVED: u64 = 4096;
/// Values that a kernel may be given in place of what they are made of.
const MOST_GIVEN: usize = 4;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut symbols = Symbols::of(module);
    for function in functions_of(module) {
        let Some(recursion) = Recursion::of(module, function) else {
            continue;
        };
        // Some of those before may have been replaced.
        let records = records_to_change(module);
        let kernels = top_level(module).into_iter().filter_map(|kernel| {
            let name = symbol_of(kernel)?;
            match records.get(&name)?[..] {
                [record] => Some((name, kernel, record)),
                _ => None,
            }
        });
        for (name, kernel, record) in kernels.collect::<Vec<_>>() {
            if !recursion.always_records(record) {
                continue;
            }
            if let Some(split) = recursion.split(kernel, record) {
                let symbol = symbols.free_like(&format!("{name}_head"));
                split.apply(context, &recursion, &symbol);
                let what = format!(
                    "what `{}` makes of an argument that it hands on is computed by its caller, as `{symbol}`: \
                     products of {} multiplications a row",
                    recursion.name, split.moved
                );
                remark(function, &what);
                // Its calls are others now.
                break;
            }
        }
    }
    Ok(())
}

/// A function that calls itself with some arguments as they are.
struct Recursion<'c> {
    name: String,
    function: OperationRef<'c, 'c>,
    body: BlockRef<'c, 'c>,
    /// All of the module.
    calls: Vec<OperationRef<'c, 'c>>,
    /// For each of its calls of itself that hands some arguments on: which.
    handed_on: Vec<HashSet<usize>>,
}

impl<'c> Recursion<'c> {
    fn of(module: OperationRef<'c, 'c>, function: OperationRef<'c, 'c>) -> Option<Recursion<'c>> {
        let name = symbol_of(function)?;
        let has_attributes = [keys::ARG_ATTRS, keys::RES_ATTRS]
            .iter()
            .any(|of| function.has_attribute(of));
        let is_private = is_private(function);
        let [body] = blocks_of(function)[..] else {
            return None;
        };
        if has_attributes || !is_private {
            return None;
        }
        let calls_it = |op: &OperationRef<'c, 'c>| {
            Op::FuncCall.is(*op) && callee_of(*op).as_deref() == Some(&name)
        };
        let calls: Vec<_> = nested_ops(module).into_iter().filter(calls_it).collect();
        let own = nested_ops(function).into_iter().filter(calls_it);
        let handed_on = own.map(|call| handed_on(body, call));
        let handed_on: Vec<_> = handed_on.filter(|handed| !handed.is_empty()).collect();
        (!handed_on.is_empty()).then_some(Recursion {
            name,
            function,
            body,
            calls,
            handed_on,
        })
    }

    /// Whether the record is made in each call.
    fn always_records(&self, record: OperationRef<'c, 'c>) -> bool {
        let operations = operations_of(self.body);
        operations.iter().any(|op| op_key(*op) == op_key(record))
    }

    /// How the kernel of a record is split, if that is worth it.
    fn split(
        &self,
        kernel: OperationRef<'c, 'c>,
        record: OperationRef<'c, 'c>,
    ) -> Option<Split<'c>> {
        let parameters: Vec<usize> = arguments_of(self.body).into_iter().map(key).collect();
        let operands = operands_of(record);
        let split = |handed: &HashSet<usize>| {
            let is_handed = |operand: &Val<'c>| {
                let parameter = parameters.iter().position(|known| *known == key(*operand));
                parameter.is_some_and(|parameter| handed.contains(&parameter))
            };
            let numbers = 0..operands.len();
            let numbers: Vec<usize> = numbers.filter(|n| is_handed(&operands[*n])).collect();
            Split::of(kernel, record, numbers)
        };
        let splits = self.handed_on.iter().filter_map(split);
        splits.max_by_key(|split| split.moved)
    }
}

/// Which arguments of its function a call hands on as they are.
fn handed_on<'c>(body: BlockRef<'c, 'c>, call: OperationRef<'c, 'c>) -> HashSet<usize> {
    let pairs = arguments_of(body).into_iter().zip(operands_of(call));
    let same = pairs.enumerate().filter(|(_, (own, given))| {
        key(*own) == key(*given) && lazy_tensor(own.r#type()).is_some()
    });
    same.map(|(number, _)| number).collect()
}

/// A kernel, of which a part needs nothing but some operands: the *head*.
struct Split<'c> {
    kernel: OperationRef<'c, 'c>,
    record: OperationRef<'c, 'c>,
    /// The operands that the head may need.
    operands: Vec<usize>,
    /// The operations of the head, and those that both parts may need, by number in the body.
    head: HashSet<usize>,
    common: HashSet<usize>,
    /// What the head hands over: the operation, and which of its results.
    given: Vec<(usize, usize)>,
    /// Multiplications a row of the head's products.
    moved: u64,
}

impl<'c> Split<'c> {
    fn of(
        kernel: OperationRef<'c, 'c>,
        record: OperationRef<'c, 'c>,
        operands: Vec<usize>,
    ) -> Option<Split<'c>> {
        let body = blocks_of(kernel).first().copied()?;
        let arguments = arguments_of(body);
        let mut operations = operations_of(body);
        let end = operations.pop()?;
        // What is made of constants, parameters and the number of rows alone; and what the operands are needed for too.
        let mut constant = HashSet::from([key(*arguments.first()?)]);
        let handed = operands
            .iter()
            .filter_map(|number| arguments.get(number + 1));
        let mut made: HashSet<usize> = handed.map(|argument| key(*argument)).collect();
        let (mut head, mut common) = (HashSet::new(), HashSet::new());
        let mut moved = 0;
        for (number, operation) in operations.iter().enumerate() {
            let inside = HashSet::from([op_key(*operation)]);
            let mut used = used_values(*operation);
            used.retain(|value| !is_local(*value, &inside));
            let results = results_of(*operation).into_iter().map(key);
            if used.iter().all(|value| constant.contains(&key(*value))) {
                common.insert(number);
                constant.extend(results);
            } else if (used.iter().map(|value| key(*value)))
                .all(|value| constant.contains(&value) || made.contains(&value))
            {
                head.insert(number);
                made.extend(results);
                if is_product(*operation) {
                    moved += size(*operation);
                }
            }
        }
        let mut given = Vec::new();
        for (number, operation) in operations.iter().enumerate() {
            if !head.contains(&number) {
                continue;
            }
            for (index, result) in results_of(*operation).into_iter().enumerate() {
                let users: Option<Vec<_>> = (users_of(result).into_iter())
                    .map(|user| owner_in(user, body))
                    .collect();
                let users = users?;
                // What the kernel hands over as it is would be copied.
                if users.iter().any(|user| op_key(*user) == op_key(end)) {
                    return None;
                }
                let is_of_head = |user: &OperationRef<'c, 'c>| {
                    let number = operations
                        .iter()
                        .position(|op| op_key(*op) == op_key(*user));
                    number.is_some_and(|number| head.contains(&number))
                };
                if !users.iter().all(is_of_head) {
                    row_of(result)?;
                    given.push((number, index));
                }
            }
        }
        let is_worth_it = moved >= FEWEST_SAVED && (1..=MOST_GIVEN).contains(&given.len());
        is_worth_it.then_some(Split {
            kernel,
            record,
            operands,
            head,
            common,
            given,
            moved,
        })
    }

    /// Splits the kernel, and lets the callers of the function compute the head, a kernel of that name.
    fn apply(&self, context: &'c Context, recursion: &Recursion<'c>, symbol: &str) {
        let (Some(before), Some(body)) = (
            Builder::before(context, self.kernel),
            blocks_of(self.kernel).first().copied(),
        ) else {
            return;
        };
        let head = before.insert(clone_op(self.kernel));
        // What a tuning says of the kernel that was fused holds for its head.
        remove_attribute(head, FUSED_COLUMNS);
        set_attribute(
            head,
            keys::SYM_NAME,
            StringAttribute::new(context, symbol).into(),
        );
        let needed: Vec<Val<'c>> = (self.cut_head(context, head).into_iter())
            .map(|number| operands_of(self.record)[number])
            .collect();
        let types = self.cut_tail(body);
        let function = recursion.body;
        let location = recursion.function.location();
        let given: Vec<Val<'c>> = (types.iter())
            .map(|ty| extend(function.add_argument(*ty, location)))
            .collect();
        change_type(context, recursion.function);
        let parameters: Vec<usize> = (needed.iter())
            .filter_map(|value| {
                let mut own = arguments_of(function).into_iter();
                own.position(|own| key(own) == key(*value))
            })
            .collect();
        for call in &recursion.calls {
            let Some(b) = Builder::before(context, *call) else {
                continue;
            };
            let operands = operands_of(*call);
            let of_head: Vec<Val<'c>> = parameters.iter().map(|number| operands[*number]).collect();
            let is_same = (of_head.iter().zip(&needed)).all(|(a, b)| key(*a) == key(*b));
            let more = match is_same {
                true => given.clone(),
                false => b.cfb_record(symbol, &of_head, &types),
            };
            replace(&b, *call, &[operands, more].concat());
        }
        // Last, as a call may use what is recorded.
        if let Some(b) = Builder::before(context, self.record) {
            let unused = unused(body, &self.operands, given.len());
            erase_arguments(body, &after_rows(&unused));
            let operands = operands_of(self.record).into_iter().enumerate();
            let kept = operands.filter(|(number, _)| !unused.contains(number));
            let kept: Vec<Val<'c>> = kept.map(|(_, operand)| operand).collect();
            replace(&b, self.record, &[kept, given].concat());
        }
    }

    /// Leaves the head of a copy of the kernel; which operands it needs.
    fn cut_head(&self, context: &'c Context, copy: OperationRef<'c, 'c>) -> Vec<usize> {
        let Some(body) = blocks_of(copy).first().copied() else {
            return vec![];
        };
        let mut operations = operations_of(body);
        let Some(end) = operations.pop() else {
            return vec![];
        };
        let given: Vec<Val<'c>> = (self.given.iter())
            .map(|(number, index)| result_of(operations[*number], *index))
            .collect();
        Builder::at_end(context, body, end.location()).cfb_yield(&given);
        erase(end);
        for (number, operation) in operations.iter().enumerate().rev() {
            if !self.head.contains(&number) && !self.common.contains(&number) {
                erase(*operation);
            }
        }
        let all: Vec<usize> = (0..arguments_of(body).len() - 1).collect();
        let unused = unused(body, &all, 0);
        erase_arguments(body, &after_rows(&unused));
        all.into_iter()
            .filter(|number| !unused.contains(number))
            .collect()
    }

    /// Leaves what is behind the head in the kernel, which is given what it needs of that behind its other operands;
    /// the types of these, as handles.
    fn cut_tail(&self, body: BlockRef<'c, 'c>) -> Vec<Type<'c>> {
        let operations = operations_of(body);
        let mut types = Vec::new();
        for (number, index) in &self.given {
            let value = result_of(operations[*number], *index);
            let location = operations[*number].location();
            let argument = extend(body.add_argument(value.r#type(), location));
            let is_of_head = |user: &OperationRef<'c, 'c>| {
                let owner = owner_in(*user, body);
                (self.head.iter()).any(|number| {
                    owner.is_some_and(|owner| op_key(owner) == op_key(operations[*number]))
                })
            };
            let own: Vec<_> = users_of(value).into_iter().filter(is_of_head).collect();
            replace_uses_except(value, argument, &own);
            types.extend(row_of(value).and_then(|row| lazy(row.to_type())));
        }
        for (number, operation) in operations.iter().enumerate().rev() {
            if self.head.contains(&number) {
                erase(*operation);
            }
        }
        types
    }
}

/// Which of these operands a kernel does not use, whose last arguments are `others`.
fn unused(body: BlockRef<'_, '_>, operands: &[usize], others: usize) -> Vec<usize> {
    let arguments = arguments_of(body);
    let own = arguments.len() - 1 - others;
    let operands = operands.iter().copied().filter(|number| *number < own);
    operands
        .filter(|number| users_of(arguments[number + 1]).is_empty())
        .collect()
}

/// The arguments of a kernel that operands are: the number of rows is the first.
fn after_rows(operands: &[usize]) -> Vec<usize> {
    operands.iter().map(|number| number + 1).collect()
}

/// The operation of a block that is another, or around it.
fn owner_in<'c>(
    operation: OperationRef<'c, 'c>,
    body: BlockRef<'c, 'c>,
) -> Option<OperationRef<'c, 'c>> {
    let mut current = operation;
    while current.block().map(extend_block) != Some(body) {
        current = extend_op(current.parent_operation()?);
    }
    Some(current)
}
