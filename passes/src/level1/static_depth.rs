//! `static-depth`: writes down what is known of a block's turn before the program runs (level 1).
//!
//! `cfb.depth` is the number of blocks of its instance that a block waits for, one after another,
//! where a call of it waits for no more than that: 0 for a block that depends on no other, as of words or
//! of a tensor of the input. Calls of such a block are batched over all steps and instances. Where
//! the number depends on the structure of the instance (a recursion, a loop's state) there is no
//! attribute, and the runtime finds it while it records.
//!
//! `cfb.control` says what decides whether the block runs: `"structure"`, that is the instance's
//! input alone, or `"tensor"`, a decision on a computed value (`cfb.force`).
//!
//! ```mlir
//! %h = cfb.block "f"(%x, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8xf32>) {…}
//! // becomes, where %x is a row of a parameter
//! %h = cfb.block "f"(%x, %w) : (…) -> (…) attributes {cfb.control = "structure", cfb.depth = 0 : i64} {…}
//! ```
//!
//! Requires: level 1. Leaves: every block with `cfb.control`. After ACRoBat, "static depth" and
//! "inline depth computation".

use cohort_dialects::marks;
use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of, results_of};
use cohort_dialects::types::is_cfb;
use melior::{
    Context,
    ir::{
        BlockRef, OperationRef, Type, ValueLike,
        attribute::{IntegerAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    blocks_of, callee_of, functions_of, is_private, is_tensor, key, nested_ops, op_key,
    set_attribute, symbol_of,
};
use crate::support::waves::waits;

/// The pass `static-depth`.
pub const PASS: PassInfo = PassInfo {
    name: "static-depth",
    summary: "Write down each block's static depth, and whether tensors decide that it runs (level 1)",
    description: include_str!("static_depth.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let decisions = Decisions::solve(module);
    for function in functions_of(module) {
        let public = !is_private(function);
        let mut depths = Depths::default();
        for body in blocks_of(function) {
            if public {
                depths.known(arguments_of(body), Some(0));
            }
            depths.walk(context, body);
        }
        let name = symbol_of(function).unwrap_or_default();
        let decided = decisions.functions.contains(&name);
        decisions.mark(context, function, decided);
    }
    Ok(())
}

/// The blocks that values wait for, one after another, where that is known.
#[derive(Default)]
struct Depths {
    values: HashMap<usize, u64>,
}

impl Depths {
    fn known<'c>(&mut self, values: Vec<Val<'c>>, depth: Option<u64>) {
        if let Some(depth) = depth {
            self.values
                .extend(values.into_iter().map(|value| (key(value), depth)));
        }
    }

    /// The depth of what needs all of these: host scalars wait for nothing.
    fn of_all<'c>(&self, values: impl IntoIterator<Item = Val<'c>>) -> Option<u64> {
        let mut deepest = 0;
        for value in values {
            if is_host(value) {
                continue;
            }
            deepest = deepest.max(*self.values.get(&key(value))?);
        }
        Some(deepest)
    }

    fn walk<'c>(&mut self, context: &'c Context, block: BlockRef<'c, 'c>) {
        for operation in operations_of(block) {
            let operands = operands_of(operation);
            let before = self.of_all(operands.iter().copied());
            let kind = Op::of(operation);
            match kind {
                Some(Op::CfbBlock) => {
                    if let Some(depth) = before {
                        let ty: Type<'c> = melior::ir::r#type::IntegerType::new(context, 64).into();
                        let depth = IntegerAttribute::new(ty, depth as i64).into();
                        set_attribute(operation, marks::DEPTH, depth);
                    }
                    self.known(results_of(operation), before.map(|depth| depth + 1));
                    continue;
                }
                // What a call returns depends on its way.
                Some(Op::FuncCall) => {}
                _ if operation.region_count() == 0 => self.known(results_of(operation), before),
                _ => {}
            }
            // Of the arguments of a region, elements and fields are as deep as what they are of.
            let carried = match kind {
                Some(Op::CfbFold) => operands.len().saturating_sub(1),
                Some(Op::CfbMap | Op::CfbMatch) => 0,
                _ => usize::MAX,
            };
            let parts = match kind {
                Some(Op::CfbFold) => self.of_all(operands.first().copied()),
                _ => before,
            };
            for body in blocks_of(operation) {
                let arguments = arguments_of(body).into_iter().skip(carried).collect();
                self.known(arguments, parts);
                self.walk(context, body);
            }
        }
    }
}

fn is_host(value: Val<'_>) -> bool {
    let ty = value.r#type();
    !is_tensor(ty) && !is_cfb(ty)
}

/// What a `cfb.force` has a say in.
#[derive(Default)]
struct Decisions {
    /// Values of the host that a decision may have made what they are.
    values: HashSet<usize>,
    /// Functions that are called where a decision has led.
    functions: HashSet<String>,
    /// Functions whose results a decision may have made what they are.
    deciding: HashSet<String>,
    /// Operations whose regions run as decided.
    operations: HashSet<usize>,
}

impl Decisions {
    fn solve(module: OperationRef<'_, '_>) -> Decisions {
        let mut decisions = Decisions::default();
        let functions: HashMap<String, OperationRef<'_, '_>> = functions_of(module)
            .into_iter()
            .filter_map(|function| Some((symbol_of(function)?, function)))
            .collect();
        loop {
            let before = decisions.size();
            for (name, function) in &functions {
                let decided = decisions.functions.contains(name);
                decisions.follow(&functions, name, *function, decided);
            }
            if decisions.size() == before {
                return decisions;
            }
        }
    }

    fn size(&self) -> usize {
        self.values.len() + self.functions.len() + self.deciding.len() + self.operations.len()
    }

    /// Takes one more look at what is below an operation that runs, or not, by a decision.
    fn follow<'c>(
        &mut self,
        functions: &HashMap<String, OperationRef<'c, 'c>>,
        function: &str,
        parent: OperationRef<'c, 'c>,
        decided: bool,
    ) {
        for operation in blocks_of(parent).into_iter().flat_map(operations_of) {
            let kind = Op::of(operation);
            let operands = operands_of(operation);
            let given = operands
                .iter()
                .any(|value| self.values.contains(&key(*value)));
            let mut made = given || waits(operation);
            if made && waits(operation) {
                self.deciding.insert(function.to_owned());
            }
            if let Some(callee) = callee_of(operation) {
                made |= self.deciding.contains(&callee);
                if decided {
                    self.functions.insert(callee.clone());
                }
                let body = functions.get(&callee).map(|callee| blocks_of(*callee));
                let arguments = body.and_then(|body| Some(arguments_of(*body.first()?)));
                for (argument, operand) in arguments.into_iter().flatten().zip(&operands) {
                    if self.values.contains(&key(*operand)) {
                        self.values.insert(key(argument));
                    }
                }
            } else if operation.region_count() > 0 && kind != Some(Op::CfbBlock) {
                // A loop that a decision may end, or a branch that one may take.
                let holds = (kind == Some(Op::ScfWhile) || kind == Some(Op::ScfFor))
                    && self.holds(operation);
                if given || holds {
                    self.operations.insert(op_key(operation));
                    for body in blocks_of(operation) {
                        for argument in arguments_of(body) {
                            self.insert(argument);
                        }
                    }
                }
                let inside = decided || given || holds;
                self.follow(functions, function, operation, inside);
                made |= holds || self.holds(operation);
            }
            if made {
                for result in results_of(operation) {
                    self.insert(result);
                }
            }
        }
    }

    /// A tensor is computed whatever its value, so it decides nothing before it is forced.
    fn insert(&mut self, value: Val<'_>) {
        if !is_tensor(value.r#type()) {
            self.values.insert(key(value));
        }
    }

    /// Whether there is a decision, or a call of a function with one, below an operation.
    fn holds(&self, operation: OperationRef<'_, '_>) -> bool {
        nested_ops(operation)
            .into_iter()
            .any(|op| waits(op) || callee_of(op).is_some_and(|name| self.deciding.contains(&name)))
    }

    fn mark<'c>(&self, context: &'c Context, parent: OperationRef<'c, 'c>, decided: bool) {
        let decided = decided || self.operations.contains(&op_key(parent));
        for operation in blocks_of(parent).into_iter().flat_map(operations_of) {
            if Op::CfbBlock.is(operation) {
                let by = if decided { "tensor" } else { "structure" };
                let by = StringAttribute::new(context, by).into();
                set_attribute(operation, marks::CONTROL, by);
            } else {
                self.mark(context, operation, decided);
            }
        }
    }
}
