//! `share-leaf-products`: what a caller multiplies a result with is computed by the call, where leaves can share
//! it (level 0).
//!
//! Where a recursion ends with what depends on one row of a parameter alone, as a leaf on its word, equal calls are
//! made once and kept. What the caller multiplies such a result with, a parameter too, is not: it is computed with all
//! else that the caller does, for each node anew. Here the product moves into the function, behind its ends. That of a
//! leaf is then part of what equal leaves share; that of a node is computed with its node rather than with the node
//! above it.
//!
//! ```mlir
//! func.func private @f(%t: !cfb.adt<@Tree>) -> tensor<64xf32> {
//!   %h = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
//!   ^bb0(%i: i32):
//!     %x = cfb.lookup %emb[%i] : tensor<100x64xf32> -> tensor<64xf32>
//!     cfb.yield %x : tensor<64xf32>
//!   }, {
//!   ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
//!     %l = func.call @f(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
//!     %r = func.call @f(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
//!     %p = linalg.vecmat ins(%l, %u : …) outs(%zero : …) -> tensor<64xf32>
//!     %q = linalg.vecmat ins(%r, %v : …) outs(%zero : …) -> tensor<64xf32>
//!     … from %p and %q, and so for @f_1 and @f_2, each with its own product behind both arms
//! // becomes
//!     %p = func.call @f_1(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
//!     %q = func.call @f_2(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
//!     … from %p and %q
//! ```
//!
//! A function gets a copy for each of the products that calls of it need. Results that nobody uses any more are not
//! results of it. Who calls the recursion from outside gets the first copy, and does not use its product: a root has
//! one product too many, and in return its rows are in the launches of other nodes.
//!
//! Done where it pays: as a product's result is stored and read where it was used at once before, the contracted dim
//! must be at least 64 long, 128 where the result is longer than it, 256 where that has more than 2,048 elements; and
//! some end of the function must depend on one looked-up row and nothing else but parameters. What an end makes of
//! parameters alone is left to `specialise-kernels`, which needs no launches of its own for it.
//!
//! Part of the pipeline where no code for a GPU is wanted. There a node's product with its own result is a launch
//! behind the one that computes that, so a level is two launches one behind the other, and these are what takes time.
//!
//! Sums of products are sums of what was computed apart then, and so are those over the parts of a concatenation, so a
//! program's last bits differ from those without this pass, never those of one batch from those of another.
//!
//! Requires: level 0 after inlining. Leaves: level 0. Left alone, with a remark: functions that would get more than
//! four copies. Left alone, without one: functions that may be called from outside, products of differing length,
//! and, where gradients are wanted, all, as equal calls are not shared then.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cohort_dialects::builder::{Builder, Val, operands_of, operations_of, result_of, results_of};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, Type, ValueLike, attribute::StringAttribute, operation::OperationLike},
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::copies::Copies;
use crate::support::ends::{change_ends, ends_below};
use crate::support::functions::change_type;
use crate::support::ir::{
    blocks_of, callee_of, calls_in, clone_op, functions_of, is_private, key, op_key, set_attribute,
    symbol_of, users_of,
};
use crate::support::known::is_made_of_a_row;
use crate::support::symbols::Symbols;
use crate::support::waves::close;
use cohort_dialects::marks::{GRADIENTS, GRANULARITY};

use self::call::{Call, Made, split_concatenations};

mod call;

/// The pass `share-leaf-products`.
pub const PASS: PassInfo = PassInfo {
    name: "share-leaf-products",
    summary: "Let calls compute what callers multiply their results with, so that leaves share it (level 0)",
    description: include_str!("share_leaf_products.rs"),
    run,
};

/// The most copies of a function.
const MOST_COPIES: usize = 4;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Elsewhere equal calls are not shared, or products are calls of their own as it is.
    if module.has_attribute(&GRADIENTS) || module.has_attribute(&GRANULARITY) {
        return Ok(());
    }
    let program = Program::of(context, module);
    program.split_concatenations();
    let mut plans = program.plans();
    let mut symbols = Symbols::of(module);
    // With their copies, which call what they call.
    let mut callers: Vec<_> = program.functions.clone().into_iter().collect();
    for (name, plan) in &mut plans {
        for copy in &mut plan.copies {
            copy.symbol = symbols.free_like(name);
            copy.types = copy.values().iter().map(|value| value.r#type()).collect();
            callers.extend(program.copy(name, copy).map(|made| (name.clone(), made)));
        }
        remark(program.functions[name], &plan.told(name));
    }
    for (caller, function) in callers {
        for call in program.calls_in(&caller, function) {
            let copy = plans
                .get(&call.callee)
                .and_then(|plan| Some(&plan.copies[plan.choice(&call)?]));
            if let Some(copy) = copy {
                call.change(context, copy);
            }
        }
    }
    Ok(())
}

/// A copy of a function, which computes products as well.
struct Copy<'c> {
    symbol: String,
    /// A call that needs it, and how that makes the products.
    call: Call<'c>,
    made: Vec<Made<'c>>,
    /// The function's results that are the copy's too; behind them come the products.
    kept: BTreeSet<usize>,
    types: Vec<Type<'c>>,
}

/// What becomes of a function.
#[derive(Default)]
struct Plan<'c> {
    copies: Vec<Copy<'c>>,
    /// Whether calls within the recursion need it as it is, and do more than hand its results on.
    stays: bool,
}

impl<'c> Plan<'c> {
    /// Which copy a call calls; none if it calls the function.
    fn choice(&self, call: &Call<'c>) -> Option<usize> {
        if !call.recurs {
            return (!self.stays).then_some(0);
        }
        let made = call.made();
        self.copies.iter().position(|copy| copy.made == made)
    }

    fn told(&self, name: &str) -> String {
        let copies = self.copies.iter().map(|copy| format!("`{}`", copy.symbol));
        let copies = copies.collect::<Vec<_>>().join(" and ");
        format!(
            "`{name}` is called as {copies}: a call computes what its caller multiplies the result with, \
             and equal leaves share that"
        )
    }
}

struct Program<'c> {
    context: &'c Context,
    functions: BTreeMap<String, OperationRef<'c, 'c>>,
    /// The functions that each reaches by calls.
    reached: HashMap<String, HashSet<String>>,
}

impl<'c> Program<'c> {
    fn of(context: &'c Context, module: OperationRef<'c, 'c>) -> Program<'c> {
        let functions: BTreeMap<_, _> = functions_of(module)
            .into_iter()
            .filter_map(|function| Some((symbol_of(function)?, function)))
            .collect();
        let callees =
            |function: OperationRef<'c, 'c>| calls_in(function).into_iter().filter_map(callee_of);
        let mut reached = (functions.iter())
            .map(|(name, function)| (name.clone(), callees(*function).collect()))
            .collect();
        close(&mut reached);
        Program {
            context,
            functions,
            reached,
        }
    }

    /// The functions that get copies.
    fn plans(&self) -> BTreeMap<String, Plan<'c>> {
        let mut plans: BTreeMap<String, Plan<'c>> = BTreeMap::new();
        for call in self.calls().filter(|call| call.recurs) {
            let pays = !call.products.is_empty() && self.shares(&call.callee, call.factors());
            let plan = plans.entry(call.callee.clone()).or_default();
            plan.stays |= !pays && !self.hands_on(&call);
            if pays && plan.choice(&call).is_none() {
                plan.copies.push(Copy {
                    symbol: String::new(),
                    made: call.made(),
                    call,
                    kept: BTreeSet::new(),
                    types: Vec::new(),
                });
            }
        }
        plans.retain(|name, plan| {
            let fits = plan.copies.len() + usize::from(plan.stays) <= MOST_COPIES;
            if !fits {
                let message = format!(
                    "leaves of `{name}` share no products: its callers need more than {MOST_COPIES} different ones"
                );
                remark(self.functions[name], &message);
            }
            fits && !plan.copies.is_empty()
        });
        for call in self.calls() {
            let Some(plan) = plans.get_mut(&call.callee) else {
                continue;
            };
            if let Some(copy) = plan.choice(&call) {
                plan.copies[copy].kept.extend(call.needed_elsewhere());
            }
        }
        plans
    }

    fn calls(&self) -> impl Iterator<Item = Call<'c>> {
        let callers = self.functions.iter();
        callers.flat_map(|(name, function)| self.calls_in(name, *function))
    }

    /// The calls in a function, or in a copy of it, of those that may be copied.
    fn calls_in(&self, caller: &str, function: OperationRef<'c, 'c>) -> Vec<Call<'c>> {
        let recurs = |callee: &str| self.reached[callee].contains(caller);
        let mut calls = Call::all_in(function, &recurs);
        calls.retain(|call| self.may_be_copied(&call.callee));
        calls
    }

    fn may_be_copied(&self, name: &str) -> bool {
        let function = self.functions[name];
        let attributes = [keys::ARG_ATTRS, keys::RES_ATTRS];
        is_private(function)
            && blocks_of(function).len() == 1
            && !attributes.iter().any(|of| function.has_attribute(of))
    }

    /// Whether a function ends with what a call of it returns: then a copy does with what a call of the copy returns.
    fn hands_on(&self, call: &Call<'c>) -> bool {
        let end = end_of(self.functions[&call.callee]);
        let ends: HashSet<usize> = (end.into_iter().flat_map(ends_below)).map(op_key).collect();
        let mut users = results_of(call.operation).into_iter().flat_map(users_of);
        users.all(|user| ends.contains(&op_key(user)))
    }

    fn split_concatenations(&self) {
        for (name, function) in &self.functions {
            let recurs = |callee: &str| self.reached[callee].contains(name);
            let shares = |callee: &str, results| self.shares(callee, results);
            split_concatenations(self.context, *function, &recurs, &shares);
        }
    }

    /// Whether some results of a function are made of one row of a parameter at some end of it.
    fn shares(&self, callee: &str, results: HashSet<usize>) -> bool {
        let end = end_of(self.functions[callee]);
        end.into_iter().flat_map(ends_below).any(|end| {
            let ended = operands_of(end);
            is_made_of_a_row(results.iter().map(|result| ended[*result]).collect())
        })
    }

    fn copy(&self, name: &str, copy: &Copy<'c>) -> Option<OperationRef<'c, 'c>> {
        let function = self.functions[name];
        let new = Builder::before(self.context, function)?.insert(clone_op(function));
        let symbol = StringAttribute::new(self.context, &copy.symbol);
        set_attribute(new, keys::SYM_NAME, symbol.into());
        let end = end_of(new)?;
        change_ends(self.context, end, &copy.types, &mut |before, results| {
            let mut copies = Copies::default();
            for (of, result) in results_of(copy.call.operation).into_iter().zip(results) {
                copies.values.insert(key(of), *result);
            }
            for operation in copy.call.operations() {
                copies.copy(before, operation);
            }
            copy.values()
                .into_iter()
                .map(|value| copies.of(value))
                .collect()
        });
        change_type(self.context, new);
        Some(new)
    }
}

fn end_of<'c>(function: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    operations_of(*blocks_of(function).first()?).last().copied()
}

impl<'c> Copy<'c> {
    /// What the call that needs it has of what it returns.
    fn values(&self) -> Vec<Val<'c>> {
        let results = results_of(self.call.operation);
        let kept = self.kept.iter().map(|index| results[*index]);
        let products = self.call.products.iter();
        kept.chain(products.map(|product| result_of(*product, 0)))
            .collect()
    }
}
