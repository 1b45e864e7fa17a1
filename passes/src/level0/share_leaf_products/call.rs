//! Calls, and the products that need nothing but the results of one.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Op, Val, name_of, operands_of, operations_of, result_of, results_of,
};
use melior::{
    Context,
    ir::{Attribute, BlockRef, OperationRef, operation::OperationLike},
};

use super::Copy;
use crate::support::concatenations::{Run, concatenation, runs, split};
use crate::support::ir::{
    TensorType, blocks_of, callee_of, defining_op, erase, key, nested_ops, op_key, replace_uses,
    users_of,
};
use crate::support::known::is_known;
use crate::support::products::multiplies;
use crate::support::waves::{Role, is_expensive, role};

/// The shortest contracted dim for which a product's result is worth storing: from there on, on processors that were
/// measured, what leaves share is more than what all nodes store and read.
const SHORTEST: u64 = 64;

/// The same for results longer than that dim: nodes store more of them than of their states, and threads share the
/// memory that it goes to.
const SHORTEST_OF_LONG: u64 = 128;

/// The same for results of more than [`LARGE`] elements, which are read from further away than they are computed.
const SHORTEST_OF_LARGE: u64 = 256;

const LARGE: u64 = 2048;

/// A call, and the products in its basic block that need nothing but its results and parameters.
pub(super) struct Call<'c> {
    pub operation: OperationRef<'c, 'c>,
    pub callee: String,
    /// Whether it is one of the recursion itself. What others multiply stays theirs.
    pub recurs: bool,
    pub products: Vec<OperationRef<'c, 'c>>,
}

/// How a value is made of the results of a call: it is one of them, or an operation makes it.
#[derive(PartialEq)]
pub(super) enum Made<'c> {
    Result(usize),
    By(String, Vec<(String, Attribute<'c>)>, Vec<Made<'c>>),
}

impl<'c> Call<'c> {
    /// The calls in a function; `recurs` says of a callee whether that comes back to it.
    pub fn all_in(function: OperationRef<'c, 'c>, recurs: &dyn Fn(&str) -> bool) -> Vec<Call<'c>> {
        let blocks = blocks_in(function);
        blocks
            .flat_map(|block| Calls::of(block, recurs).calls)
            .collect()
    }

    /// The operations that make the products of the call's results, in order.
    pub fn operations(&self) -> Vec<OperationRef<'c, 'c>> {
        let mut found = Vec::new();
        let mut seen = HashSet::from([op_key(self.operation)]);
        for product in &self.products {
            add_with_producers(*product, &mut seen, &mut found);
        }
        found
    }

    /// How the products are made.
    pub fn made(&self) -> Vec<Made<'c>> {
        let products = self.products.iter();
        products.map(|product| self.made_by(*product)).collect()
    }

    fn made_by(&self, operation: OperationRef<'c, 'c>) -> Made<'c> {
        let operands = operands_of(operation).into_iter();
        let operands = operands.filter_map(|operand| match self.number_of(operand) {
            Some(number) => Some(Made::Result(number)),
            None => defining_op(operand).map(|producer| self.made_by(producer)),
        });
        let attributes = operation.attributes().map(|(name, value)| {
            let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
            (name, value)
        });
        Made::By(name_of(operation), attributes.collect(), operands.collect())
    }

    /// Which of the call's results a value is.
    fn number_of(&self, value: Val<'c>) -> Option<usize> {
        let mut results = results_of(self.operation).into_iter();
        results.position(|result| key(result) == key(value))
    }

    /// The results, by number, that the products are made of.
    pub fn factors(&self) -> HashSet<usize> {
        let products = self.products.iter();
        self.results_in(products.map(|product| result_of(*product, 0)))
    }

    /// The results, by number, that values are made of.
    fn results_in(&self, values: impl Iterator<Item = Val<'c>>) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut pending: Vec<Val<'c>> = values.collect();
        while let Some(value) = pending.pop() {
            match self.number_of(value) {
                Some(number) => {
                    found.insert(number);
                }
                None => pending.extend(defining_op(value).into_iter().flat_map(operands_of)),
            }
        }
        found
    }

    /// The results, by number, that something uses when the products are made elsewhere.
    pub fn needed_elsewhere(&self) -> HashSet<usize> {
        let spared: HashSet<usize> = self.spared().into_iter().map(op_key).collect();
        let results = results_of(self.operation).into_iter().enumerate();
        let needed = results.filter(|(_, result)| {
            let mut users = users_of(*result).into_iter();
            users.any(|user| !spared.contains(&op_key(user)))
        });
        needed.map(|(number, _)| number).collect()
    }

    /// The operations that nothing needs when the products are made elsewhere, in order.
    fn spared(&self) -> Vec<OperationRef<'c, 'c>> {
        let products = self.products.iter();
        let mut spared: HashSet<usize> = products.map(|product| op_key(*product)).collect();
        let mut operations = self.operations();
        operations.retain(|operation| role(*operation) == Role::Tensor);
        for operation in operations.iter().rev() {
            let mut users = results_of(*operation).into_iter().flat_map(users_of);
            if users.all(|user| spared.contains(&op_key(user))) {
                spared.insert(op_key(*operation));
            }
        }
        operations.retain(|operation| spared.contains(&op_key(*operation)));
        operations
    }

    /// Calls a copy of the callee, and takes what that returns.
    pub fn change(self, context: &'c Context, copy: &Copy<'c>) {
        let Some(before) = Builder::before(context, self.operation) else {
            return;
        };
        let new = before.func_call(&copy.symbol, &operands_of(self.operation), &copy.types);
        let mut new = results_of(new).into_iter();
        for (number, value) in copy.kept.iter().zip(new.by_ref()) {
            replace_uses(result_of(self.operation, *number), value);
        }
        for (product, value) in self.products.iter().zip(new) {
            replace_uses(result_of(*product, 0), value);
        }
        for operation in self.spared().into_iter().rev() {
            erase(operation);
        }
        erase(self.operation);
    }
}

/// The calls in a basic block.
struct Calls<'c> {
    calls: Vec<Call<'c>>,
    /// For each value that is made of one call's results alone, the number of the call.
    made_of: HashMap<usize, usize>,
}

impl<'c> Calls<'c> {
    fn of(block: BlockRef<'c, 'c>, recurs: &dyn Fn(&str) -> bool) -> Calls<'c> {
        let mut calls: Vec<Call<'c>> = Vec::new();
        let mut made_of = HashMap::new();
        for operation in operations_of(block) {
            if let Some(callee) = callee_of(operation).filter(|_| Op::FuncCall.is(operation)) {
                let results = results_of(operation).into_iter();
                made_of.extend(results.map(|result| (key(result), calls.len())));
                calls.push(Call {
                    operation,
                    recurs: recurs(&callee),
                    callee,
                    products: Vec::new(),
                });
                continue;
            }
            let Some(of) = only_call_of(operation, &made_of) else {
                continue;
            };
            let call = &mut calls[of];
            if multiplies(operation) {
                let moves = call.recurs && is_worth_storing(operation, contracted(operation));
                call.products.extend(moves.then_some(operation));
            } else if !is_expensive(operation) && operation.region_count() == 0 {
                made_of.insert(key(result_of(operation, 0)), of);
            }
        }
        Calls { calls, made_of }
    }

    /// The product of a concatenation as it is where those of parts that are made of one call each are apart, if
    /// `shares` says of the results that one of them is made of that the call may share that.
    fn runs(&self, product: OperationRef<'c, 'c>, shares: &Shares<'_>) -> Option<Runs<'c>> {
        let concat = concatenation(product)?;
        let call_of = |part| {
            let call = self.made_of.get(&key(part)).copied();
            call.filter(|call| self.calls[*call].recurs)
        };
        let runs = runs(concat, call_of)?;
        let pays = |run: &Run<'c, Option<usize>>| {
            let call = run.holds.map(|call| &self.calls[call]);
            is_worth_storing(product, run.rows)
                && call.is_some_and(|call| {
                    shares(&call.callee, call.results_in(run.parts.iter().copied()))
                })
        };
        let others_are_known = operands_of(product)[1..]
            .iter()
            .all(|operand| is_known(*operand));
        (others_are_known && runs.len() > 1 && runs.iter().any(pays)).then_some(runs)
    }
}

/// Whether a call of a function, by its name, may share what is made of some of its results.
type Shares<'a> = dyn Fn(&str, HashSet<usize>) -> bool + 'a;

/// Parts of a concatenation, with the number of the call that alone they are made of.
type Runs<'c> = Vec<Run<'c, Option<usize>>>;

/// Splits the products of concatenations of which calls may share a part.
pub(super) fn split_concatenations<'c>(
    context: &'c Context,
    function: OperationRef<'c, 'c>,
    recurs: &dyn Fn(&str) -> bool,
    shares: &Shares<'_>,
) {
    for block in blocks_in(function) {
        let calls = Calls::of(block, recurs);
        for operation in operations_of(block) {
            if let Some(runs) = calls.runs(operation, shares) {
                split(context, operation, &[runs]);
            }
        }
    }
}

fn blocks_in<'c>(function: OperationRef<'c, 'c>) -> impl Iterator<Item = BlockRef<'c, 'c>> {
    let operations = std::iter::once(function).chain(nested_ops(function));
    operations.flat_map(blocks_of)
}

/// The call that alone an operation waits for.
fn only_call_of(operation: OperationRef<'_, '_>, made_of: &HashMap<usize, usize>) -> Option<usize> {
    if role(operation) != Role::Tensor {
        return None;
    }
    let waited = operands_of(operation).into_iter();
    let mut waited = waited.filter(|operand| !is_known(*operand));
    let call = *made_of.get(&key(waited.next()?))?;
    let is_same = |operand| made_of.get(&key(operand)) == Some(&call);
    waited.all(is_same).then_some(call)
}

/// Whether a product with a contracted dim of this length is worth storing. One whose shape is not static is not, as its
/// calls are not shared.
fn is_worth_storing(product: OperationRef<'_, '_>, contracted: u64) -> bool {
    let operands = operands_of(product)
        .into_iter()
        .chain([result_of(product, 0)]);
    let types: Option<Vec<_>> = operands.map(TensorType::of_value).collect();
    let Some(types) = types else { return false };
    if !types.iter().all(|ty| ty.shape.iter().all(Option::is_some)) {
        return false;
    }
    let result = types.last().map_or(&[][..], |ty| &ty.shape);
    let elements = result.iter().flatten().product::<u64>();
    let shortest = if elements > LARGE {
        SHORTEST_OF_LARGE
    } else if elements > contracted {
        SHORTEST_OF_LONG
    } else {
        SHORTEST
    };
    contracted >= shortest
}

/// The length of the dim that a product sums over.
fn contracted(product: OperationRef<'_, '_>) -> u64 {
    let left = TensorType::of_value(operands_of(product)[0]);
    let last = left.and_then(|left| left.shape.last().copied().flatten());
    last.unwrap_or(0)
}

fn add_with_producers<'c>(
    operation: OperationRef<'c, 'c>,
    seen: &mut HashSet<usize>,
    found: &mut Vec<OperationRef<'c, 'c>>,
) {
    if seen.insert(op_key(operation)) {
        for producer in operands_of(operation).into_iter().filter_map(defining_op) {
            add_with_producers(producer, seen, found);
        }
        found.push(operation);
    }
}
