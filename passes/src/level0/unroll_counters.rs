//! `unroll-counters`: a recursion that counts gets a copy of its function for each count (level 0).
//!
//! Layers with weights of their own are a parameter with a leading dim and a loop over it, or a function
//! that calls itself with the number of the next layer. In the function the matrix of a layer is a row
//! of the parameter at an index of the control program, so a product with it takes one matrix a row.
//! With a copy of the function for each count, as `unroll-loops` makes of a loop, each copy reads a part
//! of the parameter that is known when the program is compiled and that all rows share.
//!
//! ```mlir
//! func.func private @deep(%x: tensor<8xf32>, %l: i32) -> tensor<8xf32> {
//!   %done = arith.cmpi sge, %l, %c2 : i32
//!   %r = scf.if %done -> (tensor<8xf32>) { scf.yield %x : tensor<8xf32> } else {
//!     %m = cfb.lookup %w[%l] : tensor<2x8x8xf32> -> tensor<8x8xf32>
//!     %n = linalg.vecmat ins(%x, %m : …) outs(%zero : …) -> tensor<8xf32>
//!     %k = arith.addi %l, %c1 : i32
//!     %s = func.call @deep(%n, %k) : (tensor<8xf32>, i32) -> tensor<8xf32>
//!     scf.yield %s : tensor<8xf32>
//!   }
//!   return %r : tensor<8xf32>
//! }
//! // becomes
//! func.func private @deep_0(%x: tensor<8xf32>, %l: i32) -> tensor<8xf32> {
//!   %m = … the first matrix, by tensor.extract_slice and tensor.collapse_shape
//!   %n = linalg.vecmat ins(%x, %m : …) outs(%zero : …) -> tensor<8xf32>
//!   %s = func.call @deep_1(%n, %c1) : (tensor<8xf32>, i32) -> tensor<8xf32>
//!   return %s : tensor<8xf32>
//! }
//! … @deep_1 with the second matrix, and @deep_2, which returns %x
//! ```
//!
//! A function is copied if it calls itself, directly or through others, if a tensor operation computes with
//! a parameter's row at an index that is made of one of its i32 arguments, if all calls from outside
//! give that argument a number that is known, and if the calls inside then give it other numbers until, at
//! one of them, no call is left: integer arithmetic and `scf.if` are computed for each copy. All i32
//! arguments that are known are followed, a bound that is passed along among them.
//!
//! A copy that is called once, and not within a branch, a match or a loop, is left to the inliner, which
//! then makes one block of all layers; so is one that is tensor code alone. Others stay functions, so that
//! what several calls of them do is batched together.
//!
//! Where a copy calls copies at several places, as for the children of a tree, or within a branch or a match,
//! instances may be at different counts at one time, and what they do there is launched apart that was one
//! launch before. There, the parts that are picked must have 4,096 elements or more, as for `share-slices`,
//! to which smaller ones are left as they are.
//!
//! Requires: level 0 after inlining and canonicalisation. Leaves: level 0. Copies of more than 16,384
//! operations together are not made, and a remark says so; another says what was copied. After Cortex,
//! section 3.2 ("unrolling").

mod known;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, arguments_of, extend_op, operands_of, operations_of, result_of,
    results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{FlatSymbolRefAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use super::unroll_loops::{is_parameter, slice};
use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, blocks_of, callee_of, calls_in, clone_op, elem_of, erase, function_arguments,
    functions_of, is_private, key, nested_ops, op_key, remove_attribute, set_attribute,
    set_operand, symbol_of, users_of,
};
use crate::support::symbols::Symbols;
use crate::support::waves::{Role, close, role};
use known::Known;

/// The pass `unroll-counters`.
pub const PASS: PassInfo = PassInfo {
    name: "unroll-counters",
    summary: "Copy functions whose recursion counts, one copy for each count (level 0)",
    description: include_str!("unroll_counters.rs"),
    run,
};

/// Operations that all copies of a recursion may have together.
const MOST_OPERATIONS: usize = 1 << 14;

/// Elements of a part of a parameter from which on it is worth launches of its own.
const LARGE_PART: u64 = 1 << 12;

/// What each argument is known to be; `None` for what is not an i32, or not known.
type Counts = Vec<Option<i64>>;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut symbols = Symbols::of(module);
    for group in recursions(module) {
        if !group.values().any(|function| function.picks()) {
            continue;
        }
        let mut copies = Copies {
            context,
            group: &group,
            symbols: &mut symbols,
            made: Vec::new(),
            operations: 0,
        };
        let calls = calls_from_outside(module, &group);
        match copies.make_all(&calls) {
            Ok(()) => copies.finish(&calls),
            Err(why) => {
                copies.drop_all();
                if let (Some(why), Some(function)) = (why, first_that_picks(&group)) {
                    remark(
                        function.operation,
                        &format!(
                            "`{}` is not copied for each count, so products with the parameters \
                             that it picks take one matrix a row: {why}",
                            function.name
                        ),
                    );
                }
            }
        }
    }
    Ok(())
}

/// A function that reaches itself by calls.
struct Function<'c> {
    name: String,
    operation: OperationRef<'c, 'c>,
    /// Its i32 arguments of which the index of a parameter's row is made that is computed with.
    picking: BTreeSet<usize>,
    /// The elements of the largest part that is picked so.
    part: u64,
}

impl Function<'_> {
    fn picks(&self) -> bool {
        !self.picking.is_empty()
    }
}

/// Functions that reach each other, by their names.
type Group<'c> = HashMap<String, Function<'c>>;

fn first_that_picks<'a, 'c>(group: &'a Group<'c>) -> Option<&'a Function<'c>> {
    let picking = group.values().filter(|function| function.picks());
    picking.min_by(|left, right| left.name.cmp(&right.name))
}

/// The recursions of a module: private functions, each group of those that reach each other.
fn recursions<'c>(module: OperationRef<'c, 'c>) -> Vec<Group<'c>> {
    let functions: Vec<(String, OperationRef<'c, 'c>)> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    let mut reached: HashMap<String, HashSet<String>> = functions
        .iter()
        .map(|(name, function)| {
            let callees = calls_in(*function).into_iter().filter_map(callee_of);
            (name.clone(), callees.collect())
        })
        .collect();
    close(&mut reached);
    let reaches =
        |from: &str, to: &str| reached.get(from).is_some_and(|to_all| to_all.contains(to));
    let mut seen: HashSet<&str> = HashSet::new();
    let mut groups = Vec::new();
    for (name, _) in &functions {
        if seen.contains(name.as_str()) || !reaches(name, name) {
            continue;
        }
        let members = functions
            .iter()
            .filter(|(other, _)| reaches(name, other) && reaches(other, name));
        let mut group = Group::new();
        let mut all_private = true;
        for (name, operation) in members {
            seen.insert(name);
            all_private &= is_private(*operation);
            group.insert(name.clone(), function(name, *operation));
        }
        if all_private {
            groups.push(group);
        }
    }
    groups
}

fn function<'c>(name: &str, operation: OperationRef<'c, 'c>) -> Function<'c> {
    let mut picking = BTreeSet::new();
    let mut part = 0;
    for (index, argument) in function_arguments(operation).into_iter().enumerate() {
        let elements = if is_count(argument) {
            largest_part(argument)
        } else {
            None
        };
        if let Some(elements) = elements {
            picking.insert(index);
            part = part.max(elements);
        }
    }
    Function {
        name: name.to_owned(),
        operation,
        picking,
        part,
    }
}

fn is_count(value: Val<'_>) -> bool {
    elem_of(value.r#type()) == Some(Elem::I32)
}

/// The elements of the largest part of a parameter that tensor operations compute with and that is
/// picked by a number made of this one.
fn largest_part(count: Val<'_>) -> Option<u64> {
    let mut largest = None;
    let mut pending = vec![count];
    let mut seen = HashSet::new();
    while let Some(value) = pending.pop() {
        for user in users_of(value) {
            if Dialect::Arith.has(user) && seen.insert(op_key(user)) {
                pending.extend(
                    results_of(user)
                        .into_iter()
                        .filter(|value| is_count(*value)),
                );
            }
            let operands = operands_of(user);
            let is_index = operands
                .get(1)
                .is_some_and(|index| key(*index) == key(value));
            if Op::CfbLookup.is(user)
                && is_index
                && is_parameter(operands[0])
                && let Some(row) = TensorType::of_value(result_of(user, 0))
                && let Some(sizes) = row.shape.iter().copied().collect::<Option<Vec<u64>>>()
                && users_of(result_of(user, 0))
                    .into_iter()
                    .any(|user| role(user) == Role::Tensor)
            {
                largest = largest.max(Some(sizes.iter().product()));
            }
        }
    }
    largest
}

/// A function as it is for one combination of counts.
struct Copy<'c> {
    of: String,
    counts: Counts,
    operation: OperationRef<'c, 'c>,
    symbol: String,
    /// Its calls of copies, each by number.
    calls: Vec<(OperationRef<'c, 'c>, usize)>,
}

/// Why no copies are made; `None` where there is nothing to say.
type Refusal = Option<String>;

struct Copies<'a, 'c> {
    context: &'c Context,
    group: &'a Group<'c>,
    symbols: &'a mut Symbols,
    made: Vec<Copy<'c>>,
    operations: usize,
}

/// A call from outside of a recursion, with the function that it calls and what it gives.
struct Entry<'c> {
    call: OperationRef<'c, 'c>,
    callee: String,
    counts: Counts,
}

fn calls_from_outside<'c>(module: OperationRef<'c, 'c>, group: &Group<'c>) -> Vec<Entry<'c>> {
    let mut entries = Vec::new();
    for function in functions_of(module) {
        let name = symbol_of(function).unwrap_or_default();
        if group.contains_key(&name) {
            continue;
        }
        let calls: Vec<_> = calls_in(function)
            .into_iter()
            .filter_map(|call| Some((call, callee_of(call)?)))
            .filter(|(_, callee)| group.contains_key(callee))
            .collect();
        if calls.is_empty() {
            continue;
        }
        let known = Known::in_function(function);
        entries.extend(calls.into_iter().map(|(call, callee)| Entry {
            call,
            callee,
            counts: counts_of(call, &known),
        }));
    }
    entries
}

/// What is known of what a call gives.
fn counts_of<'c>(call: OperationRef<'c, 'c>, known: &Known) -> Counts {
    operands_of(call)
        .into_iter()
        .map(|operand| known.get(operand).filter(|_| is_count(operand)))
        .collect()
}

impl<'c> Copies<'_, 'c> {
    /// Makes the copies that calls from outside need, and those that these need, and so on.
    fn make_all(&mut self, entries: &[Entry<'c>]) -> Result<(), Refusal> {
        if entries.is_empty() {
            return Err(None);
        }
        let mut pending = VecDeque::new();
        for entry in entries {
            self.find(&entry.callee, &entry.counts, &mut pending)?;
        }
        let of_entries = self.made.len();
        while let Some(number) = pending.pop_front() {
            self.fill(number, &mut pending)?;
        }
        // What is given as it is makes copies that go on calling themselves, and gains nothing here.
        if self.made.len() == of_entries || self.has_circle() {
            return Err(None);
        }
        let parts = self.group.values().map(|function| function.part);
        if !self.is_chain() && parts.max().unwrap_or(0) < LARGE_PART {
            return Err(Some(format!(
                "its calls are at several places or within branches, so that different counts, \
                 which may meet in one launch, would be launched apart, and a part has fewer than \
                 {LARGE_PART} elements"
            )));
        }
        Ok(())
    }

    /// The copy for these counts, which is still to be filled if it is new.
    fn find(
        &mut self,
        callee: &str,
        counts: &Counts,
        pending: &mut VecDeque<usize>,
    ) -> Result<usize, Refusal> {
        let same = |copy: &Copy<'c>| copy.of == callee && copy.counts == *counts;
        if let Some(number) = self.made.iter().position(same) {
            return Ok(number);
        }
        let function = &self.group[callee];
        if function
            .picking
            .iter()
            .any(|index| counts[*index].is_none())
        {
            return Err(Some(
                "what it counts from, or by, is not known when the program is compiled".to_owned(),
            ));
        }
        let Some(before) = Builder::before(self.context, function.operation) else {
            return Err(None);
        };
        let copy = before.insert(clone_op(function.operation));
        let number = self.made.len();
        let symbol = self
            .symbols
            .free(|tried| format!("{callee}_{}", number + tried));
        let name = StringAttribute::new(self.context, &symbol).into();
        set_attribute(copy, keys::SYM_NAME, name);
        self.made.push(Copy {
            of: callee.to_owned(),
            counts: counts.clone(),
            operation: copy,
            symbol,
            calls: Vec::new(),
        });
        pending.push_back(number);
        Ok(number)
    }

    /// Computes in a copy what its counts decide, and finds the copies that it calls.
    fn fill(&mut self, number: usize, pending: &mut VecDeque<usize>) -> Result<(), Refusal> {
        let operation = self.made[number].operation;
        let Some(body) = blocks_of(operation).first().copied() else {
            return Err(None);
        };
        let mut known = Known::default();
        let counts = self.made[number].counts.clone();
        for (argument, count) in arguments_of(body).into_iter().zip(counts) {
            if let Some(count) = count {
                known.insert(argument, count);
            }
        }
        known.fold(body);
        self.operations += nested_ops(operation).len();
        if self.operations > MOST_OPERATIONS {
            return Err(Some(format!(
                "copied for each count, it would have more than {MOST_OPERATIONS} operations, or \
                 it counts without an end that is known when the program is compiled"
            )));
        }
        self.write_down(operation, &mut known);
        for call in calls_in(operation) {
            let Some(callee) = callee_of(call).filter(|callee| self.group.contains_key(callee))
            else {
                continue;
            };
            let copy = self.find(&callee, &counts_of(call, &known), pending)?;
            self.made[number].calls.push((call, copy));
        }
        Ok(())
    }

    /// Makes constants of the numbers that are known where they are used as an index or given to a call,
    /// and parts of a parameter of its rows at such.
    fn write_down(&self, copy: OperationRef<'c, 'c>, known: &mut Known) {
        for operation in nested_ops(copy) {
            let is_lookup = Op::CfbLookup.is(operation);
            if !is_lookup && !Op::FuncCall.is(operation) {
                continue;
            }
            let Some(before) = Builder::before(self.context, operation) else {
                continue;
            };
            for (index, operand) in operands_of(operation).into_iter().enumerate() {
                if let Some(number) = known.get(operand).filter(|_| is_count(operand)) {
                    let constant = before.integer(number, operand.r#type());
                    known.insert(constant, number);
                    set_operand(operation, index, constant);
                }
            }
            if is_lookup {
                slice(self.context, operation);
            }
        }
    }

    /// Whether each copy calls another once at most, in its body, so that all of them are one body.
    fn is_chain(&self) -> bool {
        self.made.iter().all(|copy| match &copy.calls[..] {
            [] => true,
            [(call, _)] => is_in_body(*call),
            _ => false,
        })
    }

    /// Whether a copy reaches itself.
    fn has_circle(&self) -> bool {
        // Copies that call none but removed ones are removed, until only circles are left.
        let mut left: HashSet<usize> = (0..self.made.len()).collect();
        loop {
            let before = left.len();
            let ends = |number: &usize| {
                let calls = &self.made[*number].calls;
                calls.iter().all(|(_, callee)| !left.contains(callee))
            };
            let ending: Vec<usize> = left.iter().copied().filter(ends).collect();
            for number in ending {
                left.remove(&number);
            }
            if left.is_empty() || left.len() == before {
                return !left.is_empty();
            }
        }
    }

    /// Lets calls name the copies, and the inliner have those that gain by it.
    fn finish(&self, entries: &[Entry<'c>]) {
        let mut callers: Vec<Vec<OperationRef<'c, 'c>>> = vec![Vec::new(); self.made.len()];
        for (call, callee) in self.made.iter().flat_map(|copy| &copy.calls) {
            callers[*callee].push(*call);
        }
        for entry in entries {
            let same = |copy: &Copy<'c>| copy.of == entry.callee && copy.counts == entry.counts;
            if let Some(callee) = self.made.iter().position(same) {
                callers[callee].push(entry.call);
            }
        }
        for (copy, calls) in self.made.iter().zip(&callers) {
            let symbol = FlatSymbolRefAttribute::new(self.context, &copy.symbol).into();
            for call in calls {
                set_attribute(*call, keys::CALLEE, symbol);
            }
            let once = match &calls[..] {
                [call] => is_in_body(*call),
                _ => false,
            };
            if once || is_tensor_code(copy.operation) {
                remove_attribute(copy.operation, keys::NO_INLINE);
            }
        }
        if let Some(function) = first_that_picks(self.group) {
            remark(
                function.operation,
                &format!(
                    "`{}` is copied for each count, {} copies, so that rows share the parameters \
                     that it picks",
                    function.name,
                    self.made.len()
                ),
            );
        }
        for function in self.group.values() {
            erase(function.operation);
        }
    }

    fn drop_all(&mut self) {
        for copy in self.made.drain(..) {
            erase(copy.operation);
        }
    }
}

/// Whether an operation stands in a function's body itself, not in a region of another operation.
fn is_in_body(operation: OperationRef<'_, '_>) -> bool {
    let parent = operation.parent_operation().map(extend_op);
    parent.is_some_and(|parent| Op::FuncFunc.is(parent))
}

/// Whether a function neither calls nor chooses nor repeats.
fn is_tensor_code<'c>(function: OperationRef<'c, 'c>) -> bool {
    let operations = blocks_of(function).into_iter().flat_map(operations_of);
    let mut operations = operations.filter(|op| role(*op) == Role::Control);
    operations.all(|op| Op::FuncReturn.is(op) || Op::CfbLookup.is(op) || Dialect::Arith.has(op))
}
