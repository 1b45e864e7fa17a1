//! `mark-recursive`: keeps recursive functions whole.
//!
//! Inlining gathers the tensor code of small functions into one block, but a recursive function
//! that is inlined once into its caller would run its first step in kernels of its own and lose
//! the batching with all later steps. This pass puts `no_inline` on each function that can reach
//! itself by calls; the upstream inliner leaves those alone.
//!
//! ```mlir
//! func.func private @cell(%t: …) { … func.call @cell(%l) … }
//! // becomes
//! func.func private @cell(%t: …) attributes {no_inline} { … }
//! ```
//!
//! Requires: calls by `func.call`. Leaves: everything else untouched.

use std::collections::{HashMap, HashSet};

use cohort_dialects::keys;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{callee_of, calls_in, functions_of, set_attribute, symbol_of};

/// The pass `mark-recursive`.
pub const PASS: PassInfo = PassInfo {
    name: "mark-recursive",
    summary: "Mark functions that can reach themselves `no_inline`",
    description: include_str!("mark_recursive.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let functions = functions_of(module);
    let calls: HashMap<String, HashSet<String>> = functions
        .iter()
        .filter_map(|function| Some((symbol_of(*function)?, callees(*function))))
        .collect();
    for function in functions {
        let Some(name) = symbol_of(function) else {
            continue;
        };
        if reaches(&calls, &name, &name) {
            set_attribute(function, keys::NO_INLINE, Attribute::unit(context));
        }
    }
    Ok(())
}

fn callees(function: OperationRef<'_, '_>) -> HashSet<String> {
    calls_in(function)
        .into_iter()
        .filter_map(callee_of)
        .collect()
}

/// Whether a path of at least one call leads from `from` to `to`.
fn reaches(calls: &HashMap<String, HashSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = HashSet::new();
    let mut pending: Vec<&str> = vec![from];
    while let Some(function) = pending.pop() {
        for callee in calls.get(function).into_iter().flatten() {
            if callee == to {
                return true;
            }
            if seen.insert(callee.as_str()) {
                pending.push(callee);
            }
        }
    }
    false
}
