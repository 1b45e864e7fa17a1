//! `keep-functions`: blocks follow the source's functions (level 0).
//!
//! Inlining merges the tensor code of a function with its caller's. This pass keeps a function that
//! is tensor code only whole: calls of it get `no_inline`, so that its body becomes one block,
//! neither torn apart nor merged with others. A function is tensor code only when it is not
//! recursive and holds nothing but tensor operations, host arithmetic, constants, parameters, rows
//! of parameters (`cfb.lookup`), and calls of such functions, which are inlined into it: no
//! `match`, no loop, no array and no `cfb.force`. Nor does it give tensors of integers or truth values: who decides
//! by one must see what it was made of (`guard-decisions`). The module's attribute `cfb.granularity` tells
//! the choice.
//!
//! ```mlir
//! module {
//!   func.func private @act(%x: tensor<8xf32>) -> tensor<8xf32> { … math.tanh … }
//!   … func.call @act(%y) : (tensor<8xf32>) -> tensor<8xf32>
//! }
//! // becomes
//! module attributes {cfb.granularity = #cfb<granularity function>} {
//!   func.func private @act(%x: tensor<8xf32>) -> tensor<8xf32> { … math.tanh … }
//!   … func.call @act(%y) {no_inline} : (tensor<8xf32>) -> tensor<8xf32>
//! }
//! ```
//!
//! Part of the pipeline with `--granularity function` only. Requires: level 0 before inlining.
//! After "just-in-time dynamic batching" (granularity of batching).

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Dialect, Op, Val, is_arithmetic, operands_of};
use cohort_dialects::enums::{DialectEnum, Granularity};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{Attribute, OperationRef, TypeLike, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    TensorType, callee_of, functions_of, nested_ops, set_attribute, symbol_of,
};
use crate::support::waves::{Role, role};
use cohort_dialects::marks::GRANULARITY;

/// The pass `keep-functions`.
pub const PASS: PassInfo = PassInfo {
    name: "keep-functions",
    summary: "Keep each function that is tensor code only as one unit of scheduling (level 0)",
    description: include_str!("keep_functions.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    set_attribute(
        module,
        GRANULARITY,
        Granularity::Function.attribute(context),
    );
    let functions: HashMap<String, OperationRef<'c, 'c>> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    let kept = tensor_code_only(&functions);
    for (name, function) in &functions {
        if kept.contains(name) {
            continue;
        }
        for call in nested_ops(*function) {
            let callee = callee_of(call);
            if callee.is_some_and(|callee| kept.contains(&callee)) {
                set_attribute(call, keys::NO_INLINE, Attribute::unit(context));
            }
        }
    }
    Ok(())
}

/// The functions that are tensor code only, found by adding callers of those that are. A function
/// that reaches itself is never added.
fn tensor_code_only<'c>(functions: &HashMap<String, OperationRef<'c, 'c>>) -> HashSet<String> {
    let mut kept = HashSet::new();
    loop {
        let more: Vec<String> = functions
            .iter()
            .filter(|(name, function)| !kept.contains(*name) && is_kept(**function, &kept))
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return kept;
        }
        kept.extend(more);
    }
}

fn is_kept<'c>(function: OperationRef<'c, 'c>, kept: &HashSet<String>) -> bool {
    let mut computes = false;
    for operation in nested_ops(function) {
        if Op::FuncReturn.is(operation) && operands_of(operation).into_iter().any(may_decide) {
            return false;
        }
        if is_in_tensor_operation(operation) {
            continue;
        }
        let fits = match (role(operation), Op::of(operation)) {
            (Role::Constant | Role::Parameter, _) => true,
            (Role::Tensor, _) => {
                computes = true;
                true
            }
            (Role::Control, Some(Op::FuncReturn | Op::CfbLookup)) => true,
            (Role::Control, Some(Op::FuncCall)) => {
                computes = true;
                callee_of(operation).is_some_and(|callee| kept.contains(&callee))
            }
            (Role::Control, _) => is_arithmetic(operation),
        };
        if !fits {
            return false;
        }
    }
    computes
}

/// Whether a value is a tensor that does not tell by itself whether it was made of what is not a number.
fn may_decide(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|ty| !ty.element.is_float())
}

/// Whether an operation is part of the body of a tensor operation, as of a `linalg.generic`.
fn is_in_tensor_operation<'c>(operation: OperationRef<'c, 'c>) -> bool {
    operation
        .parent_operation()
        .is_some_and(|parent| Dialect::Linalg.has(parent))
}
