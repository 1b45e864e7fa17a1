//! `operand-reuse`: finds which operands of a block are the same for every instance.
//!
//! A parameter is shared by all instances, so a product with it is one dense product over all
//! rows, while a matrix that differs by instance makes a batched product. A block operand is
//! `shared` when it is a parameter load, or an argument of a function that every call binds to one
//! and the same parameter (found by a fixed point over all calls, recursive ones included); such
//! an argument's uses become loads. Everything else is `row`. The result is the attribute `reuse`,
//! one entry an operand.
//!
//! ```mlir
//! cfb.block "f"(%h, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8xf32>) {…}
//! // becomes, where %w is always the parameter @w
//! %w = ml_program.global_load_const @w : tensor<8x8xf32>
//! cfb.block "f"(%h, %w) : (…) -> (…) attributes {reuse = ["row", "shared"]} {…}
//! ```
//!
//! Requires: level 1. Leaves: every block with `reuse`. A function that is called with different
//! parameters keeps `row` operands and a remark says so: its products run one matrix a row.

use std::collections::HashMap;

use cohort_dialects::builder::{Builder, Val, arguments_of, name_of, operands_of, operations_of};
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, OperationRef, ValueLike,
        attribute::{ArrayAttribute, StringAttribute},
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, argument_of, blocks_of, defining_op, functions_of, is_tensor, name_attribute,
    nested_ops, op_key, replace_uses, set_attribute,
};

pub const PASS: PassInfo = PassInfo {
    name: "operand-reuse",
    summary: "Mark each operand of a block `shared` or `row`",
    description: include_str!("operand_reuse.rs"),
    run,
};

/// What is known of a function's argument over all calls.
#[derive(Clone, PartialEq, Debug)]
enum Binding {
    /// No call seen yet.
    Unbound,
    Parameter(String),
    Varies,
}

impl Binding {
    fn join(&self, other: &Binding) -> Binding {
        match (self, other) {
            (Binding::Unbound, known) | (known, Binding::Unbound) => known.clone(),
            (left, right) if left == right => left.clone(),
            _ => Binding::Varies,
        }
    }
}

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let bindings = Bindings::solve(module);
    bindings.replace_arguments(context, module);
    for operation in nested_ops(module) {
        if name_of(operation) == "cfb.block" {
            annotate(context, operation);
        }
    }
    Ok(())
}

/// The parameter that a value is, when it is a load of one.
fn loaded_parameter(value: Val<'_>) -> Option<String> {
    let producer = defining_op(value)?;
    (name_of(producer) == "ml_program.global_load_const")
        .then(|| name_attribute(producer, "global"))
        .flatten()
}

struct Bindings<'c> {
    functions: HashMap<String, OperationRef<'c, 'c>>,
    /// Which function an operation is, and the argument's binding by (function, index).
    names: HashMap<usize, String>,
    arguments: HashMap<(String, usize), Binding>,
}

impl<'c> Bindings<'c> {
    fn solve(module: OperationRef<'c, 'c>) -> Bindings<'c> {
        let mut bindings = Bindings {
            functions: HashMap::new(),
            names: HashMap::new(),
            arguments: HashMap::new(),
        };
        for function in functions_of(module) {
            if let Some(name) = name_attribute(function, "sym_name") {
                bindings.names.insert(op_key(function), name.clone());
                bindings.functions.insert(name, function);
            }
        }
        let calls: Vec<_> = nested_ops(module)
            .into_iter()
            .filter(|op| name_of(*op) == "func.call")
            .collect();
        bindings.entry_arguments_vary();
        loop {
            let mut changed = false;
            for call in &calls {
                let Some(callee) = name_attribute(*call, "callee") else {
                    continue;
                };
                for (index, operand) in operands_of(*call).into_iter().enumerate() {
                    let found = bindings.binding_of(operand);
                    let slot = bindings
                        .arguments
                        .entry((callee.clone(), index))
                        .or_insert(Binding::Unbound);
                    let joined = slot.join(&found);
                    changed |= joined != *slot;
                    *slot = joined;
                }
            }
            if !changed {
                return bindings;
            }
        }
    }

    /// What can be called from outside gets its arguments from the instance.
    fn entry_arguments_vary(&mut self) {
        for (name, function) in &self.functions {
            if name_attribute(*function, "sym_visibility").as_deref() != Some("private") {
                let count = blocks_of(*function)
                    .first()
                    .map_or(0, |body| body.argument_count());
                let varying = (0..count).map(|index| ((name.clone(), index), Binding::Varies));
                self.arguments.extend(varying);
            }
        }
    }

    fn binding_of(&self, value: Val<'c>) -> Binding {
        if let Some(parameter) = loaded_parameter(value) {
            return Binding::Parameter(parameter);
        }
        let argument = argument_of(value).and_then(|(block, index)| {
            let owner = block.parent_operation()?;
            Some((self.names.get(&op_key(owner))?.clone(), index))
        });
        match argument {
            // Nothing is known yet of an argument that no call has reached.
            Some(argument) => self
                .arguments
                .get(&argument)
                .cloned()
                .unwrap_or(Binding::Unbound),
            None => Binding::Varies,
        }
    }

    fn replace_arguments(&self, context: &'c Context, module: OperationRef<'c, 'c>) {
        for function in functions_of(module) {
            let Some(name) = self.names.get(&op_key(function)) else {
                continue;
            };
            let Some(body) = blocks_of(function).first().copied() else {
                continue;
            };
            for (index, argument) in arguments_of(body).into_iter().enumerate() {
                if !is_tensor(argument.r#type()) {
                    continue;
                }
                match self.arguments.get(&(name.clone(), index)) {
                    Some(Binding::Parameter(parameter)) => {
                        load_instead(context, argument, parameter);
                    }
                    Some(Binding::Varies)
                        if is_matrix(argument) && self.is_called_with_parameters(name, index) =>
                    {
                        remark(
                            function,
                            &format!(
                                "argument {index} of `{name}` is a different parameter at different calls, \
                             so its products take one matrix a row"
                            ),
                        )
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether some call binds the argument to a parameter.
    fn is_called_with_parameters(&self, function: &str, index: usize) -> bool {
        self.functions
            .values()
            .flat_map(|function| nested_ops(*function))
            .any(|op| {
                name_of(op) == "func.call"
                    && name_attribute(op, "callee").as_deref() == Some(function)
                    && operands_of(op)
                        .get(index)
                        .is_some_and(|operand| loaded_parameter(*operand).is_some())
            })
    }
}

fn is_matrix(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|ty| ty.rank() >= 2)
}

fn load_instead<'c>(context: &'c Context, argument: Val<'c>, parameter: &str) {
    let Some((block, _)) = argument_of(argument) else {
        return;
    };
    let Some(first) = operations_of(block).first().copied() else {
        return;
    };
    let Some(builder) = Builder::before(context, first) else {
        return;
    };
    let symbol = melior::ir::attribute::FlatSymbolRefAttribute::new(context, parameter).into();
    let load = builder.value_with(
        "ml_program.global_load_const",
        &[],
        argument.r#type(),
        &[("global", symbol)],
    );
    replace_uses(argument, load);
}

fn annotate<'c>(context: &'c Context, block: OperationRef<'c, 'c>) {
    let reuse: Vec<Attribute<'c>> = operands_of(block)
        .into_iter()
        .map(|operand| {
            if loaded_parameter(operand).is_some() {
                "shared"
            } else {
                "row"
            }
        })
        .map(|reuse| StringAttribute::new(context, reuse).into())
        .collect();
    set_attribute(block, "reuse", ArrayAttribute::new(context, &reuse).into());
}
