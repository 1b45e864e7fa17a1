//! `specialise-constructors`: a function that is called with a value just built gets a copy that takes the
//! fields (level 0).
//!
//! What a recursive function does with `Leaf(x)` is known where it is called with that: its match need not
//! be run, and what the arm computes can be one block with what the caller does. Here such a call becomes one
//! of a copy of the function, in which the value is built of its fields; the match of it then folds
//! (`canonicalize`), and a copy that no longer calls itself is inlined.
//!
//! ```mlir
//! func.func private @f(%t: !cfb.adt<@Tree>) -> tensor<8xf32> { … cfb.match %t … }
//! %l = cfb.construct "Leaf"(%x) : (tensor<8xf32>) -> !cfb.adt<@Tree>
//! %h = func.call @f(%l) : (!cfb.adt<@Tree>) -> tensor<8xf32>
//! // becomes
//! func.func private @f_Leaf(%x: tensor<8xf32>) -> tensor<8xf32> {
//!   %t = cfb.construct "Leaf"(%x) : (tensor<8xf32>) -> !cfb.adt<@Tree>
//!   … cfb.match %t …
//! }
//! %h = func.call @f_Leaf(%x) : (tensor<8xf32>) -> tensor<8xf32>
//! ```
//!
//! A constructor is known of a value that `cfb.construct` has built in the same function, and of one that a match around the
//! call takes apart.
//!
//! Done where it pays: the copy's products do not run with those of the function itself. So an arm that multiplies
//! 4,096 times or more stays where all calls share it, unless the constructor is known at every call, so that the
//! function itself is not called any more. A remark says so; what such an arm makes of constants is left to
//! `specialise-kernels`.
//!
//! Requires: level 0 after inlining, so that functions that remain are recursive or large. Leaves: level 0. A function
//! gets seven copies at most; further calls stay as they are. Left alone: functions that may be called from
//! outside.

use std::collections::{HashMap, HashSet, VecDeque};

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend, extend_block, extend_op, operands_of, operations_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::adt_name;
use melior::{
    Context,
    ir::{
        BlockLike, OperationRef, ValueLike,
        attribute::{FlatSymbolRefAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::functions::{change_type, erase_arguments, replace};
use crate::support::ir::{
    blocks_of, callee_of, calls_in, clone_op, defining_op, function_arguments, functions_of,
    is_private, key, name_attribute, nested_ops, remove_attribute, replace_uses, set_attribute,
    strings, symbol_of, top_level,
};
use crate::support::products::{multiplies, size};
use crate::support::symbols::Symbols;

/// The pass `specialise-constructors`.
pub const PASS: PassInfo = PassInfo {
    name: "specialise-constructors",
    summary: "Copy functions that are called with values just built, to take their fields (level 0)",
    description: include_str!("specialise_constructors.rs"),
    run,
};

/// Multiplications of an arm from which on it is left where all calls share it.
const FEWEST_SHARED: u64 = 4096;

/// The most copies of a function, the original not among them.
const MOST_COPIES: usize = 7;

/// For each argument of a function, the constructor that made what it is given, by number, where that is known.
type Case = Vec<Option<usize>>;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut program = Program::new(context, module);
    let functions = functions_of(module).into_iter();
    let mut calls: VecDeque<OperationRef<'c, 'c>> = functions.flat_map(calls_in).collect();
    while let Some(call) = calls.pop_front() {
        if program.is_dead(call) {
            continue;
        }
        let Some((callee, known)) = program.case_of(call) else {
            continue;
        };
        let case: Case = (known.iter())
            .map(|known| known.as_ref().map(|known| known.constructor))
            .collect();
        let symbol = match program.copies.get(&(callee.clone(), case.clone())) {
            Some(symbol) => symbol.clone(),
            None => {
                let Some((symbol, copy)) = program.copy(&callee, case, &known) else {
                    continue;
                };
                calls.extend(calls_in(copy));
                symbol
            }
        };
        replace_call(context, call, &symbol, known);
    }
    Ok(())
}

/// What is known of a value: which constructor made it, of which fields.
struct Known<'c> {
    constructor: usize,
    fields: Vec<Val<'c>>,
}

struct Program<'c> {
    context: &'c Context,
    /// Those that may be copied.
    functions: HashMap<String, OperationRef<'c, 'c>>,
    /// The constructors of each type.
    constructors: HashMap<String, Vec<String>>,
    /// Functions with the numbers of those arguments that some call gives a value of which nothing is known.
    unknown: HashSet<(String, usize)>,
    /// The copies made, and how many of each function.
    copies: HashMap<(String, Case), String>,
    counts: HashMap<String, usize>,
    /// Functions and constructors that a remark has told of.
    told: HashSet<(String, usize)>,
    symbols: Symbols,
}

impl<'c> Program<'c> {
    fn new(context: &'c Context, module: OperationRef<'c, 'c>) -> Program<'c> {
        let has_arguments_alone = |function: &OperationRef<'c, 'c>| {
            let attributes = [keys::ARG_ATTRS, keys::RES_ATTRS];
            is_private(*function) && !attributes.iter().any(|of| function.has_attribute(of))
        };
        let functions = functions_of(module).into_iter();
        let functions = functions.filter(has_arguments_alone);
        let types = top_level(module).into_iter();
        let types = types.filter(|operation| Op::CfbAdt.is(*operation));
        let mut program = Program {
            context,
            functions: functions
                .filter_map(|function| Some((symbol_of(function)?, function)))
                .collect(),
            constructors: types
                .filter_map(|adt| {
                    let constructors = adt.attribute(&keys::CONSTRUCTORS);
                    Some((symbol_of(adt)?, constructors.map_or(vec![], strings)))
                })
                .collect(),
            unknown: HashSet::new(),
            copies: HashMap::new(),
            counts: HashMap::new(),
            told: HashSet::new(),
            symbols: Symbols::of(module),
        };
        for call in functions_of(module).into_iter().flat_map(calls_in) {
            let Some(callee) = callee_of(call) else {
                continue;
            };
            for (number, operand) in operands_of(call).into_iter().enumerate() {
                if program.known(operand, call).is_none() {
                    program.unknown.insert((callee.clone(), number));
                }
            }
        }
        program
    }

    fn constructors_of(&self, value: Val<'c>) -> &[String] {
        let name = adt_name(value.r#type());
        let constructors = name.and_then(|name| self.constructors.get(&name));
        constructors.map_or(&[], Vec::as_slice)
    }

    fn built(&self, value: Val<'c>) -> Option<Known<'c>> {
        let construct = defining_op(value).filter(|made| Op::CfbConstruct.is(*made))?;
        let name = name_attribute(construct, keys::CONSTRUCTOR)?;
        let mut constructors = self.constructors_of(value).iter();
        Some(Known {
            constructor: constructors.position(|constructor| *constructor == name)?,
            fields: operands_of(construct),
        })
    }

    /// What is known of a value where an operation uses it.
    fn known(&self, value: Val<'c>, at: OperationRef<'c, 'c>) -> Option<Known<'c>> {
        self.built(value).or_else(|| {
            let (matching, constructor) = arms_around(at)
                .into_iter()
                .find(|(matching, _)| key(operands_of(*matching)[0]) == key(value))?;
            Some(Known {
                constructor,
                fields: arguments_of(*blocks_of(matching).get(constructor)?),
            })
        })
    }

    /// Whether an operation is in an arm that is never taken, as the match is of a value built.
    fn is_dead(&self, operation: OperationRef<'c, 'c>) -> bool {
        arms_around(operation).into_iter().any(|(matching, arm)| {
            let built = self.built(operands_of(matching)[0]);
            built.is_some_and(|built| built.constructor != arm)
        })
    }

    /// The function that a call calls, and what is known of the arguments for which that pays, if of any.
    fn case_of(&mut self, call: OperationRef<'c, 'c>) -> Option<(String, Vec<Option<Known<'c>>>)> {
        let callee = callee_of(call)?;
        let function = *self.functions.get(&callee)?;
        let arguments = function_arguments(function).into_iter().enumerate();
        let known: Vec<Option<Known<'c>>> = arguments
            .zip(operands_of(call))
            .map(|((number, argument), operand)| {
                let known = self.known(operand, call)?;
                let is_always_known = !self.unknown.contains(&(callee.clone(), number));
                self.pays(&callee, argument, known.constructor, is_always_known)
                    .then_some(known)
            })
            .collect();
        known.iter().any(Option::is_some).then_some((callee, known))
    }

    /// Whether a function takes an argument apart, and does little where this constructor made it, or is not
    /// needed for others.
    fn pays(
        &mut self,
        callee: &str,
        argument: Val<'c>,
        constructor: usize,
        is_always_known: bool,
    ) -> bool {
        let Some(function) = self.functions.get(callee).copied() else {
            return false;
        };
        let matches = nested_ops(function).into_iter().filter(|operation| {
            Op::CfbMatch.is(*operation) && key(operands_of(*operation)[0]) == key(argument)
        });
        let mut arms = matches
            .filter_map(|matching| blocks_of(matching).get(constructor).copied())
            .peekable();
        if arms.peek().is_none() {
            return false;
        }
        let inside = arms
            .flat_map(operations_of)
            .flat_map(|operation| std::iter::once(operation).chain(nested_ops(operation)));
        let products = inside.filter(|operation| multiplies(*operation));
        let multiplications: u64 = products.map(size).fold(0, u64::saturating_add);
        if is_always_known || multiplications < FEWEST_SHARED {
            return true;
        }
        if self.told.insert((callee.to_owned(), constructor)) {
            let name = &self.constructors_of(argument)[constructor];
            let message = format!(
                "`{callee}` is not copied for calls with `{name}`, where it multiplies \
                 {multiplications} times: all calls share that"
            );
            remark(function, &message);
        }
        false
    }

    /// A copy of a function for a case, and its name.
    fn copy(
        &mut self,
        callee: &str,
        case: Case,
        known: &[Option<Known<'c>>],
    ) -> Option<(String, OperationRef<'c, 'c>)> {
        let function = *self.functions.get(callee)?;
        let count = self.counts.entry(callee.to_owned()).or_default();
        if *count == MOST_COPIES {
            *count += 1;
            let message = format!(
                "`{callee}` is called with more than {MOST_COPIES} combinations of constructors; \
                 further calls share the function itself"
            );
            remark(function, &message);
        }
        if *count > MOST_COPIES {
            return None;
        }
        *count += 1;
        let arguments = function_arguments(function);
        let names = arguments
            .iter()
            .zip(&case)
            .filter_map(|(argument, constructor)| {
                Some(self.constructors_of(*argument)[(*constructor)?].clone())
            });
        let names: Vec<String> = std::iter::once(callee.to_owned()).chain(names).collect();
        let symbol = self.symbols.free_like(&names.join("_"));
        let copy = Builder::before(self.context, function)?.insert(clone_op(function));
        set_attribute(
            copy,
            keys::SYM_NAME,
            StringAttribute::new(self.context, &symbol).into(),
        );
        // Whether it still calls itself is found anew.
        remove_attribute(copy, keys::NO_INLINE);
        self.take_fields(copy, &names[1..], known)?;
        self.copies
            .insert((callee.to_owned(), case), symbol.clone());
        Some((symbol, copy))
    }

    /// Lets a function take the fields of what is known, behind its other arguments, and build it.
    fn take_fields(
        &self,
        function: OperationRef<'c, 'c>,
        constructors: &[String],
        known: &[Option<Known<'c>>],
    ) -> Option<()> {
        let body = *blocks_of(function).first()?;
        let arguments = arguments_of(body);
        let first = operations_of(body).into_iter().next()?;
        let before = Builder::before(self.context, first)?.at(function.location());
        let mut constructors = constructors.iter();
        let mut built = Vec::new();
        for (number, known) in known.iter().enumerate() {
            let Some(known) = known else { continue };
            let fields: Vec<Val<'c>> = (known.fields.iter())
                .map(|field| extend(body.add_argument(field.r#type(), function.location())))
                .collect();
            let argument = arguments[number];
            let value = before.cfb_construct(constructors.next()?, &fields, argument.r#type());
            replace_uses(argument, value);
            built.push(number);
        }
        erase_arguments(body, &built);
        change_type(self.context, function);
        Some(())
    }
}

/// Lets a call call a copy: what is known is given as its fields, behind the other operands.
fn replace_call<'c>(
    context: &'c Context,
    call: OperationRef<'c, 'c>,
    symbol: &str,
    known: Vec<Option<Known<'c>>>,
) {
    let Some(before) = Builder::before(context, call) else {
        return;
    };
    let operands = operands_of(call).into_iter().zip(&known);
    let others = operands.filter(|(_, known)| known.is_none());
    let others = others.map(|(operand, _)| operand);
    let fields = known
        .iter()
        .flatten()
        .flat_map(|known| known.fields.iter().copied());
    let operands: Vec<Val<'c>> = others.chain(fields).collect();
    set_attribute(
        call,
        keys::CALLEE,
        FlatSymbolRefAttribute::new(context, symbol).into(),
    );
    replace(&before, call, &operands);
}

/// The matches around an operation, innermost first, and the number of the arm of each that it is in.
fn arms_around<'c>(operation: OperationRef<'c, 'c>) -> Vec<(OperationRef<'c, 'c>, usize)> {
    let mut around = Vec::new();
    let mut inner = operation;
    while let (Some(block), Some(parent)) = (inner.block(), inner.parent_operation()) {
        let parent = extend_op(parent);
        if Op::CfbMatch.is(parent) {
            let block = extend_block(block);
            let arms = blocks_of(parent);
            around.extend(
                arms.iter()
                    .position(|arm| *arm == block)
                    .map(|arm| (parent, arm)),
            );
        }
        inner = parent;
    }
    around
}
