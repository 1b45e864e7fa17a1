//! Where values of the control program come from.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use cohort_dialects::builder::{Val, extend_op, name_of, operands_of, operations_of, results_of};
use melior::ir::{BlockLike, OperationRef, operation::OperationLike};

use crate::support::ir::{
    argument_of, blocks_of, defining_op, functions_of, key, name_attribute, nested_ops, op_key,
};

/// What a lazy tensor may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A whole parameter.
    Parameter(String),
    /// A row of a parameter that the instance chooses.
    Row(String),
    /// The constant that is written like this.
    Constant(String),
    /// A result of a kernel.
    Computed(String),
    /// Part of what the instance is or made: a field, an element, an argument of the entry.
    Instance,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Parameter(name) => write!(f, "the parameter @{name}"),
            Origin::Row(name) => write!(f, "a row of @{name} by the instance's choice"),
            Origin::Constant(_) => write!(f, "a constant"),
            Origin::Computed(kernel) => write!(f, "computed by block `{kernel}`"),
            Origin::Instance => write!(f, "part of the instance's data"),
        }
    }
}

/// Follows values back through calls, branches and loops.
pub struct Origins<'c> {
    functions: HashMap<String, OperationRef<'c, 'c>>,
    /// By function: its name and the calls of it.
    names: HashMap<usize, String>,
    calls: HashMap<String, Vec<OperationRef<'c, 'c>>>,
}

impl<'c> Origins<'c> {
    pub fn new(module: OperationRef<'c, 'c>) -> Origins<'c> {
        let mut origins = Origins {
            functions: HashMap::new(),
            names: HashMap::new(),
            calls: HashMap::new(),
        };
        for function in functions_of(module) {
            if let Some(name) = name_attribute(function, "sym_name") {
                origins.names.insert(op_key(function), name.clone());
                origins.functions.insert(name, function);
            }
        }
        for call in nested_ops(module) {
            if name_of(call) == "func.call"
                && let Some(callee) = name_attribute(call, "callee")
            {
                origins.calls.entry(callee).or_default().push(call);
            }
        }
        origins
    }

    /// Everything that any of the values may be, each once, in a fixed order.
    pub fn of_all(&self, values: impl IntoIterator<Item = Val<'c>>) -> Vec<Origin> {
        let mut found = BTreeSet::new();
        let mut seen = HashSet::new();
        let mut open: Vec<Val<'c>> = values.into_iter().collect();
        while let Some(value) = open.pop() {
            if !seen.insert(key(value)) {
                continue;
            }
            match self.step(value) {
                Step::Is(origin) => {
                    found.insert(origin);
                }
                Step::From(values) => open.extend(values),
            }
        }
        found.into_iter().collect()
    }

    fn step(&self, value: Val<'c>) -> Step<'c> {
        if let Some(producer) = defining_op(value) {
            let result = results_of(producer)
                .iter()
                .position(|result| key(*result) == key(value));
            return self.produced(producer, result.unwrap_or(0));
        }
        let Some((block, index)) = argument_of(value) else {
            return Step::Is(Origin::Instance);
        };
        let Some(owner) = block.parent_operation() else {
            return Step::Is(Origin::Instance);
        };
        let is_first = blocks_of(extend_op(owner))
            .first()
            .is_some_and(|first| *first == block);
        self.argument(extend_op(owner), is_first, index)
    }

    fn produced(&self, producer: OperationRef<'c, 'c>, result: usize) -> Step<'c> {
        let named = |attribute: &str| name_attribute(producer, attribute).unwrap_or_default();
        match name_of(producer).as_str() {
            "cfb.param" => Step::Is(Origin::Parameter(named("param"))),
            "cfb.param_row" => Step::Is(Origin::Row(named("param"))),
            "cfb.constant" => {
                let value = producer.attribute("value").map(|value| value.to_string());
                Step::Is(Origin::Constant(value.unwrap_or_default()))
            }
            "cfb.record" => Step::Is(Origin::Computed(named("kernel"))),
            "cfb.ghost" => Step::From(operands_of(producer).into_iter().take(1).collect()),
            "arith.select" => Step::From(operands_of(producer).into_iter().skip(1).collect()),
            "func.call" => {
                let callee = self.functions.get(&named("callee"));
                Step::From(callee.map_or(vec![], |callee| ends(*callee, "func.return", result)))
            }
            "cfb.match" | "scf.if" => Step::From(yields(producer, result)),
            // What leaves a loop is what enters it or what a turn yields.
            "cfb.fold" => {
                let mut values = yields(producer, result);
                let inits = operands_of(producer);
                let first = inits.len().saturating_sub(producer.result_count());
                values.extend(inits.get(first + result).copied());
                Step::From(values)
            }
            "scf.while" => Step::From(condition(producer, result)),
            _ => Step::Is(Origin::Instance),
        }
    }

    /// An argument of a block of `owner`'s, of its first or of another.
    fn argument(&self, owner: OperationRef<'c, 'c>, is_first: bool, index: usize) -> Step<'c> {
        match name_of(owner).as_str() {
            "func.func" => {
                let calls = self
                    .names
                    .get(&op_key(owner))
                    .and_then(|n| self.calls.get(n));
                match calls {
                    // The entry, whose arguments are the instance.
                    None => Step::Is(Origin::Instance),
                    Some(calls) => Step::From(
                        calls
                            .iter()
                            .filter_map(|call| operands_of(*call).get(index).copied())
                            .collect(),
                    ),
                }
            }
            "scf.while" if is_first => {
                let mut values = yields(owner, index);
                values.extend(operands_of(owner).get(index).copied());
                Step::From(values)
            }
            "scf.while" => Step::From(condition(owner, index)),
            "cfb.fold" => {
                // The carried values come first, then the elements.
                let carried = owner.result_count();
                if index >= carried {
                    return Step::Is(Origin::Instance);
                }
                let operands = operands_of(owner);
                let mut values = yields(owner, index);
                values.extend(operands.get(operands.len() - carried + index).copied());
                Step::From(values)
            }
            _ => Step::Is(Origin::Instance),
        }
    }
}

enum Step<'c> {
    Is(Origin),
    From(Vec<Val<'c>>),
}

/// Operand `index` of the terminators of this name in an operation's own regions.
fn ends<'c>(operation: OperationRef<'c, 'c>, name: &str, index: usize) -> Vec<Val<'c>> {
    blocks_of(operation)
        .into_iter()
        .flat_map(operations_of)
        .filter(|op| name_of(*op) == name)
        .filter_map(|op| operands_of(op).get(index).copied())
        .collect()
}

fn yields<'c>(operation: OperationRef<'c, 'c>, index: usize) -> Vec<Val<'c>> {
    let mut values = ends(operation, "cfb.yield", index);
    values.extend(ends(operation, "scf.yield", index));
    values
}

/// What an `scf.while` passes on: behind the decision in `scf.condition`.
fn condition<'c>(operation: OperationRef<'c, 'c>, index: usize) -> Vec<Val<'c>> {
    ends(operation, "scf.condition", index + 1)
}
