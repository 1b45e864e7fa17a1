//! `limit-inlining`: functions whose copies would grow without measure stay functions (level 0).
//!
//! Inlining gathers the tensor code of functions into one block. Where fifteen functions each call the
//! next one twice, it would write the last one out 2^15 times. Here each function's size is counted as it
//! would be with all that it calls written out, from those that call nothing upwards. Where it comes to
//! more than a limit, the functions that it calls are kept whole, the largest first, as long as there
//! are several calls of them: their code is compiled once, and each call of them is a call at run time.
//!
//! ```mlir
//! func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> { … 6000 operations … }
//! func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> { … func.call @g … func.call @g … }
//! // becomes
//! func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> attributes {no_inline} { … }
//! ```
//!
//! Requires: level 0 after `mark-recursive`. Leaves: everything else untouched, with a remark at each
//! function that is kept, since what it computes is not in one block with its callers'.

use std::collections::{BTreeMap, HashMap};

use cohort_dialects::keys::{self, Key};
use melior::{
    Context,
    ir::{Attribute, OperationRef, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{callee_of, calls_in, functions_of, nested_ops, set_attribute, symbol_of};

/// The pass `limit-inlining`.
pub const PASS: PassInfo = PassInfo {
    name: "limit-inlining",
    summary: "Keep functions whose copies would grow without measure (level 0)",
    description: include_str!("limit_inlining.rs"),
    run,
};

/// Operations that a function may have with all that is inlined into it.
const MOST_OPERATIONS: usize = 1 << 13;

/// A function of fewer operations is inlined anyhow: a call of it costs as much.
const SMALL: usize = 16;

const KEPT: Key<'static> = keys::NO_INLINE;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let functions: HashMap<String, OperationRef<'c, 'c>> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    let mut calls: HashMap<String, usize> = HashMap::new();
    for callee in functions.values().flat_map(|function| callees(*function)) {
        *calls.entry(callee).or_default() += 1;
    }
    let mut sizes = Sizes {
        context,
        functions: &functions,
        calls,
        known: HashMap::new(),
    };
    for function in functions_of(module) {
        if let Some(name) = symbol_of(function) {
            sizes.find(&name);
        }
    }
    Ok(())
}

struct Sizes<'a, 'c> {
    context: &'c Context,
    functions: &'a HashMap<String, OperationRef<'c, 'c>>,
    /// How often each function is called, in the whole module.
    calls: HashMap<String, usize>,
    /// The operations of a function with all that is inlined into it.
    known: HashMap<String, usize>,
}

impl Sizes<'_, '_> {
    /// Counts the functions that a function reaches, each after those that it calls, without recursion
    /// of its own: a chain of calls may be long.
    fn find(&mut self, name: &str) {
        let mut pending = vec![name.to_owned()];
        while let Some(name) = pending.last().cloned() {
            let unknown: Vec<String> = self
                .inlined_into(&name)
                .into_keys()
                .filter(|callee| !self.known.contains_key(callee) && !pending.contains(callee))
                .collect();
            if unknown.is_empty() || self.known.contains_key(&name) {
                self.count(&name);
                pending.pop();
            } else {
                pending.extend(unknown);
            }
        }
    }

    /// The functions that are inlined into one, each with the number of calls of it there.
    fn inlined_into(&self, name: &str) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        let function = self.functions.get(name);
        for callee in function.into_iter().flat_map(|function| callees(*function)) {
            let is_kept = |function: &OperationRef<'_, '_>| function.has_attribute(&KEPT);
            if self.functions.get(&callee).is_some_and(|f| !is_kept(f)) {
                *found.entry(callee).or_default() += 1;
            }
        }
        found
    }

    fn count(&mut self, name: &str) {
        let Some(function) = self.functions.get(name).copied() else {
            return;
        };
        let mut inlined: Vec<(usize, String, usize)> = self
            .inlined_into(name)
            .into_iter()
            .map(|(callee, calls)| (self.known.get(&callee).copied().unwrap_or(0), callee, calls))
            .collect();
        inlined.sort_unstable();
        let size_of = |inlined: &[(usize, String, usize)]| {
            let inside = inlined.iter().map(|(size, _, calls)| size * calls);
            nested_ops(function).len() + inside.sum::<usize>()
        };
        let mut at = inlined.len();
        while size_of(&inlined) > MOST_OPERATIONS && at > 0 {
            at -= 1;
            let (size, callee, _) = &inlined[at];
            if *size <= SMALL || self.calls.get(callee).copied().unwrap_or(0) < 2 {
                continue;
            }
            let kept = self.functions[callee];
            set_attribute(kept, KEPT, Attribute::unit(self.context));
            let message = format!(
                "`{callee}` stays a function, so that its work is not in one block with its \
                 callers': written out at each of its calls, `{name}` would have more than \
                 {MOST_OPERATIONS} operations"
            );
            remark(kept, &message);
            inlined.remove(at);
        }
        self.known.insert(name.to_owned(), size_of(&inlined));
    }
}

fn callees(function: OperationRef<'_, '_>) -> Vec<String> {
    calls_in(function)
        .into_iter()
        .filter(|call| !call.has_attribute(&KEPT))
        .filter_map(callee_of)
        .collect()
}
