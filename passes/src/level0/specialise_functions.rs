//! `specialise-functions`: a function that is called with different parameters gets a copy for each
//! (level 0).
//!
//! A product with a matrix that all rows share is one dense product; where the matrix is a function's
//! argument, it is shared only if every call gives the same parameter. This pass follows the
//! parameters from call to call, each call of a function in its own context, and makes a copy of the
//! function for each combination of parameters that its matrix arguments are bound to. In each copy
//! the combination is one and the same for every call, so that `operand-reuse` finds the matrices
//! shared. In recursive functions an argument counts if every recursive call passes it on as it is.
//!
//! ```mlir
//! func.func private @rnn(%h: tensor<8xf32>, %w: tensor<8x8xf32>, …) { … call @rnn(%n, %w, …) … }
//! %a = func.call @rnn(%x, %wf, …) : …
//! %b = func.call @rnn(%x, %wb, …) : …
//! // becomes
//! func.func private @rnn(%h: tensor<8xf32>, %w: tensor<8x8xf32>, …) { … call @rnn(%n, %w, …) … }
//! func.func private @rnn_1(%h: tensor<8xf32>, %w: tensor<8x8xf32>, …) { … call @rnn_1(%n, %w, …) … }
//! %a = func.call @rnn(%x, %wf, …) : …
//! %b = func.call @rnn_1(%x, %wb, …) : …
//! ```
//!
//! Only matrices (two dims or more) make copies: a vector costs no more when each row has its own,
//! and copies do not run together. Requires: level 0 after inlining. Leaves: level 0. A function
//! that would need more than eight copies keeps one for all further calls, and a remark says so.
//! After ACRoBat, "context-sensitive taint analysis" and "code duplication" (parameter reuse).

use std::collections::{HashMap, HashSet, VecDeque};

use cohort_dialects::builder::{Builder, Op, Val, operands_of};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{FlatSymbolRefAttribute, StringAttribute},
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, argument_of, callee_of, calls_in, clone_op, defining_op, function_arguments,
    functions_of, global_of, is_private, key, set_attribute, symbol_of,
};
use crate::support::symbols::Symbols;

/// The pass `specialise-functions`.
pub const PASS: PassInfo = PassInfo {
    name: "specialise-functions",
    summary: "Copy functions that are called with different parameters, one copy for each (level 0)",
    description: include_str!("specialise_functions.rs"),
    run,
};

/// The most copies of a function, the original among them.
const MOST_COPIES: usize = 8;

/// The parameter that each argument is bound to, where it is one.
type Bindings = Vec<Option<String>>;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let program = Program::new(module);
    let contexts = program.contexts();
    if contexts.values().all(|contexts| contexts.len() < 2) {
        return Ok(());
    }
    let mut symbols = Symbols::of(module);
    // All copies are made before any call is changed.
    let mut copies: Vec<Copy<'c>> = Vec::new();
    for name in &program.names {
        let function = &program.functions[name];
        let known = contexts.get(name).map_or(&[][..], Vec::as_slice);
        for (index, bindings) in known.iter().enumerate() {
            let (operation, symbol) = match index {
                0 => (function.operation, name.clone()),
                _ => copy(context, function.operation, name, index, &mut symbols),
            };
            copies.push(Copy {
                of: name.clone(),
                bindings: bindings.clone(),
                operation,
                symbol,
            });
        }
    }
    for caller in &copies {
        for call in calls_in(caller.operation) {
            let Some((callee, bindings)) = program.bind(call, caller.operation, &caller.bindings)
            else {
                continue;
            };
            let fits = |copy: &&Copy<'c>| copy.of == callee && copy.bindings == bindings;
            let general =
                |copy: &&Copy<'c>| copy.of == callee && copy.bindings.iter().all(Option::is_none);
            let target = copies
                .iter()
                .find(fits)
                .or_else(|| copies.iter().find(general));
            if let Some(target) = target {
                let symbol = FlatSymbolRefAttribute::new(context, &target.symbol).into();
                set_attribute(call, keys::CALLEE, symbol);
            }
        }
    }
    Ok(())
}

/// A function as it is for one combination of parameters.
struct Copy<'c> {
    /// The function's name in the source.
    of: String,
    bindings: Bindings,
    operation: OperationRef<'c, 'c>,
    symbol: String,
}

/// Copies a function, before it, under a free name.
fn copy<'c>(
    context: &'c Context,
    function: OperationRef<'c, 'c>,
    name: &str,
    first: usize,
    symbols: &mut Symbols,
) -> (OperationRef<'c, 'c>, String) {
    let symbol = symbols.free(|number| format!("{name}_{}", first + number));
    let Some(before) = Builder::before(context, function) else {
        return (function, name.to_owned());
    };
    let copy = before.insert(clone_op(function));
    let attribute = StringAttribute::new(context, &symbol).into();
    set_attribute(copy, keys::SYM_NAME, attribute);
    (copy, symbol)
}

struct Function<'c> {
    operation: OperationRef<'c, 'c>,
    /// Whether calls from outside of the module may bind arguments to anything.
    public: bool,
    /// The arguments that are followed: matrices that recursion passes on as they are.
    followed: Vec<bool>,
}

struct Program<'c> {
    functions: HashMap<String, Function<'c>>,
    /// In the order of the module.
    names: Vec<String>,
}

impl<'c> Program<'c> {
    fn new(module: OperationRef<'c, 'c>) -> Program<'c> {
        let mut program = Program {
            functions: HashMap::new(),
            names: Vec::new(),
        };
        for operation in functions_of(module) {
            let Some(name) = symbol_of(operation) else {
                continue;
            };
            let matrices = function_arguments(operation)
                .into_iter()
                .map(|argument| TensorType::of(argument.r#type()).is_some_and(|ty| ty.rank() >= 2));
            let function = Function {
                operation,
                public: !is_private(operation),
                followed: matrices.collect(),
            };
            program.names.push(name.clone());
            program.functions.insert(name, function);
        }
        program.follow_what_recursion_keeps();
        program
    }

    /// Drops arguments that a call by which a function comes back to itself may change.
    fn follow_what_recursion_keeps(&mut self) {
        let reached = self.reached();
        let comes_back = |caller: &String, callee: &String| {
            reached
                .get(callee)
                .is_some_and(|reached| reached.contains(caller))
        };
        loop {
            let mut dropped = Vec::new();
            for (name, function) in &self.functions {
                for call in calls_in(function.operation) {
                    let Some(callee) = callee_of(call).filter(|callee| comes_back(name, callee))
                    else {
                        continue;
                    };
                    let Some(called) = self.functions.get(&callee) else {
                        continue;
                    };
                    for (index, operand) in operands_of(call).into_iter().enumerate() {
                        let own = index_of_argument(operand, function.operation);
                        let kept = own.is_some_and(|own| {
                            // A function that calls itself keeps the place, too.
                            function.followed.get(own) == Some(&true)
                                && (callee != *name || own == index)
                        });
                        if called.followed.get(index) == Some(&true) && !kept {
                            dropped.push((callee.clone(), index));
                        }
                    }
                }
            }
            if dropped.is_empty() {
                return;
            }
            for (name, index) in dropped {
                if let Some(function) = self.functions.get_mut(&name) {
                    function.followed[index] = false;
                }
            }
        }
    }

    /// The functions that each function reaches by calls.
    fn reached(&self) -> HashMap<String, HashSet<String>> {
        let mut reached: HashMap<String, HashSet<String>> = self
            .functions
            .iter()
            .map(|(name, function)| {
                let callees = calls_in(function.operation)
                    .into_iter()
                    .filter_map(callee_of);
                (name.clone(), callees.collect())
            })
            .collect();
        crate::support::waves::close(&mut reached);
        reached
    }

    /// What a call binds its callee's arguments to, in a caller whose own are bound to `bindings`.
    fn bind(
        &self,
        call: OperationRef<'c, 'c>,
        caller: OperationRef<'c, 'c>,
        bindings: &Bindings,
    ) -> Option<(String, Bindings)> {
        let callee = callee_of(call)?;
        let function = self.functions.get(&callee)?;
        let bound =
            operands_of(call)
                .into_iter()
                .zip(&function.followed)
                .map(|(operand, followed)| {
                    if !followed || function.public {
                        return None;
                    }
                    loaded_parameter(operand).or_else(|| {
                        let index = index_of_argument(operand, caller)?;
                        bindings.get(index)?.clone()
                    })
                });
        Some((callee, bound.collect()))
    }

    /// The combinations of parameters that each function is called with, found from the functions
    /// that are called from outside.
    fn contexts(&self) -> HashMap<String, Vec<Bindings>> {
        let mut contexts: HashMap<String, Vec<Bindings>> = HashMap::new();
        let mut pending: VecDeque<(String, Bindings)> = VecDeque::new();
        for name in &self.names {
            let function = &self.functions[name];
            if function.public {
                let unbound = vec![None; function.followed.len()];
                contexts.insert(name.clone(), vec![unbound.clone()]);
                pending.push_back((name.clone(), unbound));
            }
        }
        while let Some((name, bindings)) = pending.pop_front() {
            let caller = self.functions[&name].operation;
            for call in calls_in(caller) {
                let Some((callee, mut bound)) = self.bind(call, caller, &bindings) else {
                    continue;
                };
                let known = contexts.entry(callee.clone()).or_default();
                if known.contains(&bound) {
                    continue;
                }
                if known.len() + 1 >= MOST_COPIES && bound.iter().any(Option::is_some) {
                    bound = vec![None; bound.len()];
                    if known.contains(&bound) {
                        continue;
                    }
                    let message = format!(
                        "`{callee}` is called with more than {MOST_COPIES} combinations of \
                         parameters; some calls share a copy whose products take one matrix a row"
                    );
                    remark(self.functions[&callee].operation, &message);
                }
                known.push(bound.clone());
                pending.push_back((callee, bound));
            }
        }
        contexts
    }
}

/// Which of a function's own arguments a value is.
fn index_of_argument<'c>(value: Val<'c>, function: OperationRef<'c, 'c>) -> Option<usize> {
    let (_, index) = argument_of(value)?;
    let own = function_arguments(function).get(index).copied()?;
    (key(own) == key(value)).then_some(index)
}

/// The parameter that a value is, when it is a load of one.
fn loaded_parameter(value: Val<'_>) -> Option<String> {
    let producer = defining_op(value)?;
    (Op::MlProgramGlobalLoadConst.is(producer))
        .then(|| global_of(producer))
        .flatten()
}
