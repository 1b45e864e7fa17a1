//! Roles and waves: what waits for what in a basic block of the control program.
//!
//! An operation that needs no call of its basic block is in wave 0; what needs the result of a call,
//! a loop or a match is one above it, unless the result has no tensor in it and no tensor decides on it:
//! such a number is known when the instance is recorded. Operations of one wave never wait for each
//! other's calls. What stands behind a `cfb.phase` is above all that stands before it.
//! [`walk_blocks`] also knows what waits from outside of a basic block: the tensors that a loop or a
//! recursive function carries from step to step are in wave 1.

use cohort_dialects::keys;
use cohort_dialects::marks::{CHECKED, HOISTED};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use cohort_dialects::builder::{
    Dialect, Op, Val, arguments_of, operands_of, operations_of, results_of,
};
use cohort_dialects::types::{adt_name, array_element, flatten, lazy_tensor, rows_tensor};
use melior::ir::{
    BlockLike, BlockRef, OperationRef, Type, ValueLike, attribute::TypeAttribute,
    operation::OperationLike,
};

use crate::support::ir::{
    array, blocks_of, callee_of, defining_op, elements_of, functions_of, is_tensor, key,
    nested_ops, op_key, symbol_of, top_level, users_of,
};

/// What an operation is to the control program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Costs nothing and depends on nothing: copied into each block that uses it.
    Constant,
    /// A read of a parameter: an operand of the blocks that use it.
    Parameter,
    /// A computation on tensors: it goes into a block.
    Tensor,
    /// A step of the control program, which the host runs.
    Control,
}

/// What an operation is to the control program.
pub fn role(operation: OperationRef<'_, '_>) -> Role {
    match Dialect::of(operation) {
        Some(Dialect::MlProgram) => Role::Parameter,
        Some(Dialect::Arith | Dialect::Math) => {
            let tensors = operands_of(operation)
                .into_iter()
                .chain(results_of(operation))
                .any(|value| is_tensor(value.r#type()));
            // A host condition picks one of two handles, whatever they stand for.
            let picks = Op::ArithSelect.is(operation)
                && operands_of(operation)
                    .first()
                    .is_some_and(|first| !is_tensor(first.r#type()));
            match (Op::ArithConstant.is(operation), tensors && !picks) {
                (true, _) => Role::Constant,
                (false, true) => Role::Tensor,
                (false, false) => Role::Control,
            }
        }
        _ if matches!(Op::of(operation), Some(Op::CfbReduceRows | Op::CfbWiden)) => Role::Tensor,
        // Lengths are known before anything is computed.
        _ if Op::TensorDim.is(operation) => Role::Control,
        Some(Dialect::Tensor | Dialect::Linalg) => {
            let constant = operands_of(operation).into_iter().all(|operand| {
                defining_op(operand).is_some_and(|producer| role(producer) == Role::Constant)
            });
            if constant {
                Role::Constant
            } else {
                Role::Tensor
            }
        }
        _ => Role::Control,
    }
}

/// Whether an operation is expensive, so that its result is stored rather than computed again later.
pub fn is_expensive(operation: OperationRef<'_, '_>) -> bool {
    match Op::of(operation) {
        // Any number of rows become one.
        Some(Op::CfbReduceRows) => true,
        Some(
            Op::LinalgBroadcast
            | Op::LinalgFill
            | Op::LinalgTranspose
            | Op::LinalgMap
            | Op::LinalgCopy,
        ) => false,
        _ => Dialect::Linalg.has(operation),
    }
}

/// Whether an operation only says how a value is read, and computes nothing of its own.
pub fn is_view(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(operation),
        Some(
            Op::LinalgBroadcast
                | Op::LinalgFill
                | Op::TensorEmpty
                | Op::TensorExtractSlice
                | Op::TensorExpandShape
                | Op::TensorCollapseShape
                | Op::TensorFromElements
        )
    )
}

/// The operands of an operation and whatever its regions use from outside of it.
pub fn used_values<'c>(operation: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let mut values = operands_of(operation);
    for nested in nested_ops(operation) {
        values.extend(operands_of(nested));
    }
    values
}

/// One basic block of the control program and what is known of its operations.
pub(crate) struct BasicBlock<'c> {
    pub terminator: Option<OperationRef<'c, 'c>>,
    pub operations: Vec<OperationRef<'c, 'c>>,
    pub roles: HashMap<usize, Role>,
    pub waves: HashMap<usize, usize>,
    /// The waves of values, those from outside of the basic block included; 0 if not here.
    value_waves: HashMap<usize, usize>,
    /// Tensor operations that are copied into each block that uses them.
    pub copied: HashSet<usize>,
    effects: Rc<Effects>,
}

/// The functions that do more than compute, by themselves or through what they call, and the types of
/// what they compute.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Those that show values: others must see it in the order of the program.
    showing: HashSet<String>,
    /// Those that an instance may end in with an error, but for limits, which end it anywhere.
    failing: HashSet<String>,
    /// Those in which an instance waits until tensors are computed.
    deciding: HashSet<String>,
    /// The algebraic data types that hold tensors.
    holding: HashSet<String>,
}

impl Effects {
    pub fn new(module: OperationRef<'_, '_>) -> Effects {
        Effects {
            showing: reaching(module, &|op| Op::CfbDebug.is(op)),
            failing: reaching(module, &may_fail),
            deciding: reaching(module, &|op| waits(op)),
            holding: types_with_tensors(module),
        }
    }

    /// Whether tensors decide how often or on what way the regions of an operation run, or what it calls.
    fn decides(&self, operation: OperationRef<'_, '_>) -> bool {
        reaches(operation, &|op| waits(op), &self.deciding)
    }

    fn holds_tensors(&self, ty: Type<'_>) -> bool {
        has_tensors(ty, &self.holding)
    }

    /// Whether an instance shows a value in an operation, or in what that calls.
    pub fn shows(&self, operation: OperationRef<'_, '_>) -> bool {
        reaches(operation, &|op| Op::CfbDebug.is(op), &self.showing)
    }

    /// Whether an instance may end in an operation, or in what that calls, with an error.
    pub fn fails(&self, operation: OperationRef<'_, '_>) -> bool {
        reaches(operation, &may_fail, &self.failing)
    }
}

/// Whether an instance may end at an operation of the control program itself with an error.
fn may_fail(operation: OperationRef<'_, '_>) -> bool {
    match Op::of(operation) {
        Some(Op::CfbArrayGet | Op::CfbLookup | Op::CfbWithin | Op::CfbQuotient | Op::CfbView) => {
            true
        }
        // The second operand says where a decision is none.
        Some(Op::CfbForce) => operands_of(operation).len() > 1,
        // Arrays of differing lengths.
        Some(Op::CfbMap) => operands_of(operation).len() > 1,
        Some(Op::ArithDivsi | Op::ArithRemsi) => operation.has_attribute(&CHECKED),
        _ => false,
    }
}

fn reaches(
    operation: OperationRef<'_, '_>,
    here: &dyn Fn(OperationRef<'_, '_>) -> bool,
    functions: &HashSet<String>,
) -> bool {
    let found = |op: OperationRef<'_, '_>| {
        here(op) || callee_of(op).is_some_and(|name| functions.contains(&name))
    };
    found(operation) || operation.region_count() > 0 && nested_ops(operation).into_iter().any(found)
}

/// The functions that have such an operation, or call one that has.
fn reaching(
    module: OperationRef<'_, '_>,
    here: &dyn Fn(OperationRef<'_, '_>) -> bool,
) -> HashSet<String> {
    let functions: Vec<_> = functions_of(module)
        .into_iter()
        .filter_map(|function| Some((symbol_of(function)?, function)))
        .collect();
    let mut found = HashSet::new();
    loop {
        let before = found.len();
        for (name, function) in &functions {
            if !found.contains(name) && reaches(*function, here, &found) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

impl<'c> BasicBlock<'c> {
    pub fn new(block: BlockRef<'c, 'c>, effects: &Rc<Effects>) -> Self {
        let mut operations = operations_of(block);
        let terminator = block.terminator().and_then(|_| operations.pop());
        let roles = operations
            .iter()
            .map(|op| (op_key(*op), role(*op)))
            .collect();
        BasicBlock {
            terminator,
            operations,
            roles,
            waves: HashMap::new(),
            value_waves: HashMap::new(),
            copied: HashSet::new(),
            effects: Rc::clone(effects),
        }
    }

    pub fn role(&self, operation: OperationRef<'c, 'c>) -> Option<Role> {
        self.roles.get(&op_key(operation)).copied()
    }

    /// How long a value must be waited for.
    pub fn value_wave(&self, value: Val<'c>) -> usize {
        self.value_waves.get(&key(value)).copied().unwrap_or(0)
    }

    /// Gives each operation its earliest wave. What uses an operation marked [`HOISTED`] is in a
    /// later block than that.
    pub fn find_waves(&mut self) {
        // What stands behind a phase stays behind all that stands before it, what an instance shows stays
        // where it is, and what may end it stays behind what may end it before.
        let (mut first, mut last, mut last_failing) = (0, 0, 0);
        for operation in &self.operations {
            let role = self.roles[&op_key(*operation)];
            if Op::CfbPhase.is(*operation) {
                first = last + 1;
            }
            let shows = self.effects.shows(*operation);
            if shows {
                first = last;
            }
            let mut wave = first;
            let fails = role == Role::Control && self.effects.fails(*operation);
            if fails {
                wave = wave.max(last_failing);
            }
            for operand in used_values(*operation) {
                let from_tensor = defining_op(operand)
                    .is_some_and(|producer| self.role(producer) == Some(Role::Tensor));
                let wait = usize::from(from_tensor && role == Role::Control);
                wave = wave.max(self.value_wave(operand) + wait);
            }
            self.waves.insert(op_key(*operation), wave);
            if shows {
                first = wave;
            }
            if fails {
                last_failing = wave;
            }
            let waits = Op::FuncCall.is(*operation) || operation.region_count() > 0;
            let ends = role == Role::Control && waits || operation.has_attribute(&HOISTED);
            last = last.max(wave + usize::from(ends));
            let decides = waits && self.effects.decides(*operation);
            for result in results_of(*operation) {
                let is_late = !waits || decides || self.effects.holds_tensors(result.r#type());
                let after = wave + usize::from(ends && is_late);
                self.value_waves.insert(key(result), after);
            }
        }
    }

    /// Moves tensor operations that only later ones use to the wave of the first of those, but
    /// for operations that `stays` keeps where they are.
    pub fn sink(&mut self, stays: impl Fn(OperationRef<'c, 'c>) -> bool) {
        for operation in self.operations.iter().rev() {
            if self.role(*operation) != Some(Role::Tensor) || stays(*operation) {
                continue;
            }
            if let Some(first) = self.first_use(*operation) {
                self.waves.insert(op_key(*operation), first);
            }
        }
    }

    /// The lowest wave of an operation's users; `None` unless all are tensor operations of this
    /// basic block.
    pub fn first_use(&self, operation: OperationRef<'c, 'c>) -> Option<usize> {
        let users = results_of(operation).into_iter().flat_map(users_of);
        let waves: Option<Vec<usize>> = users
            .map(|user| match self.role(user) {
                Some(Role::Tensor) => self.waves.get(&op_key(user)).copied(),
                _ => None,
            })
            .collect();
        waves?.into_iter().min()
    }
}

/// Visits every basic block of the control program from the outermost in, with its waves.
pub(crate) fn walk_blocks<'c>(
    module: OperationRef<'c, 'c>,
    visit: &mut dyn FnMut(&mut BasicBlock<'c>),
) {
    let walk = Walk::new(module);
    for function in functions_of(module) {
        let name = symbol_of(function).unwrap_or_default();
        for body in blocks_of(function) {
            let mut waves = HashMap::new();
            if walk.callees(&name).contains(&name) && !walk.effects.deciding.contains(&name) {
                for (index, argument) in arguments_of(body).into_iter().enumerate() {
                    if walk.effects.holds_tensors(argument.r#type())
                        && walk.changes(function, index)
                    {
                        waves.insert(key(argument), 1);
                    }
                }
            }
            walk.block(body, waves, visit);
        }
    }
}

/// What is known of the module while its basic blocks are visited.
struct Walk {
    /// The functions that each function reaches by calls.
    reached: HashMap<String, HashSet<String>>,
    effects: Rc<Effects>,
}

impl Walk {
    fn new(module: OperationRef<'_, '_>) -> Walk {
        let mut reached: HashMap<String, HashSet<String>> = HashMap::new();
        for function in functions_of(module) {
            let callees = nested_ops(function);
            let callees = callees.iter().filter_map(|op| callee_of(*op));
            reached.insert(symbol_of(function).unwrap_or_default(), callees.collect());
        }
        close(&mut reached);
        Walk {
            reached,
            effects: Rc::new(Effects::new(module)),
        }
    }

    fn callees(&self, function: &str) -> HashSet<String> {
        self.reached.get(function).cloned().unwrap_or_default()
    }

    /// Whether a call by which a function reaches itself gives it another argument than its own.
    fn changes<'c>(&self, function: OperationRef<'c, 'c>, index: usize) -> bool {
        let name = symbol_of(function).unwrap_or_default();
        let own = blocks_of(function)
            .first()
            .and_then(|body| arguments_of(*body).get(index).copied());
        nested_ops(function).into_iter().any(|op| {
            let Some(callee) = callee_of(op) else {
                return false;
            };
            if callee == name {
                let given = operands_of(op).get(index).copied();
                return given.map(key) != own.map(key);
            }
            // By way of other functions, any argument may come back.
            self.callees(&callee).contains(&name)
        })
    }

    fn block<'c>(
        &self,
        block: BlockRef<'c, 'c>,
        outside: HashMap<usize, usize>,
        visit: &mut dyn FnMut(&mut BasicBlock<'c>),
    ) {
        let mut block = BasicBlock::new(block, &self.effects);
        block.value_waves = outside;
        block.find_waves();
        let inner: Vec<_> = block
            .operations
            .iter()
            .filter(|op| block.role(**op) == Some(Role::Control))
            .flat_map(|op| blocks_of(*op).into_iter().map(|body| (*op, body)))
            .map(|(op, body)| (body, self.waves_inside(&block, op, body)))
            .collect();
        visit(&mut block);
        for (body, waves) in inner {
            self.block(body, waves, visit);
        }
    }

    /// The waves of values in a region of an operation: 1 for what waits there.
    fn waves_inside<'c>(
        &self,
        outer: &BasicBlock<'c>,
        operation: OperationRef<'c, 'c>,
        body: BlockRef<'c, 'c>,
    ) -> HashMap<usize, usize> {
        let kind = Op::of(operation);
        let loops = matches!(kind, Some(Op::CfbFold | Op::ScfWhile | Op::ScfFor));
        if loops && self.effects.decides(operation) {
            return HashMap::new();
        }
        let mut waves: HashMap<usize, usize> = outer
            .value_waves
            .iter()
            .map(|(value, wave)| (*value, (*wave).min(1)))
            .collect();
        let operands = operands_of(operation);
        let waits = operands.iter().any(|value| outer.value_wave(*value) > 0);
        let carried = match kind {
            Some(Op::CfbFold) => operands.len().saturating_sub(1),
            Some(Op::ScfWhile | Op::ScfFor) => usize::MAX,
            _ => 0,
        };
        for (index, argument) in arguments_of(body).into_iter().enumerate() {
            if (index < carried || waits) && self.effects.holds_tensors(argument.r#type()) {
                waves.insert(key(argument), 1);
            }
        }
        waves
    }
}

/// Whether the instance waits here until tensors are computed.
pub fn waits(operation: OperationRef<'_, '_>) -> bool {
    matches!(Op::of(operation), Some(Op::CfbForce | Op::CfbDebug))
}

/// Adds to each function what it reaches by several calls.
pub fn close(reached: &mut HashMap<String, HashSet<String>>) {
    let names: Vec<String> = reached.keys().cloned().collect();
    for through in &names {
        let further = reached.get(through).cloned().unwrap_or_default();
        for callees in reached.values_mut() {
            if callees.contains(through) {
                callees.extend(further.iter().cloned());
            }
        }
    }
}

/// The algebraic data types that have a tensor in a field, or a type that has.
fn types_with_tensors(module: OperationRef<'_, '_>) -> HashSet<String> {
    let declared = top_level(module).into_iter();
    let declared: Vec<_> = declared
        .filter(|op| Op::CfbAdt.is(*op))
        .filter_map(|op| {
            let fields = array(op, keys::FIELDS).into_iter().flat_map(elements_of);
            let fields = fields.filter_map(|field| TypeAttribute::try_from(field).ok());
            let fields: Vec<_> = fields.map(|field| field.value()).collect();
            Some((symbol_of(op)?, fields))
        })
        .collect();
    let mut holding = HashSet::new();
    loop {
        let before = holding.len();
        for (name, fields) in &declared {
            if fields.iter().any(|field| has_tensors(*field, &holding)) {
                holding.insert(name.clone());
            }
        }
        if holding.len() == before {
            return holding;
        }
    }
}

/// Whether a type is that of a tensor, or has one in it, or one of these algebraic data types.
fn has_tensors(ty: Type<'_>, holding: &HashSet<String>) -> bool {
    flatten(ty)
        .into_iter()
        .any(|part| match array_element(part) {
            Some(element) => has_tensors(element, holding),
            None => {
                is_tensor(part)
                    || lazy_tensor(part).is_some()
                    || rows_tensor(part).is_some()
                    || adt_name(part).is_some_and(|name| holding.contains(&name))
            }
        })
}
