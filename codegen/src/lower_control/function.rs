//! One function of the control program, rebuilt operation by operation.

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Dialect, Op, Val, arguments_of, name_of, operands_of, operations_of,
    results_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{ValueKey, blocks_of, callee_of, key, nested_ops, symbol_of};
use std::collections::{HashMap, HashSet};

use cohort_abi::{Failure, symbols};
use melior::dialect::llvm;
use melior::ir::{
    BlockRef, OperationRef, Type, ValueLike, attribute::StringAttribute, operation::OperationLike,
};

use super::Program;
use super::emit::{
    call, fail, function, i32_constant, i64_constant, load_slot, module_end, slot_address, step,
    when,
};
use super::strands::scope_slots;
use super::types::{lowered, lowered_value};
use crate::powers;

/// In front of the names of the program's functions, so that none is taken for a function of C.
pub const PREFIX: &str = "coh.";

/// The slot of the runtime's context that counts steps down.
const STEPS_LEFT: i32 = (std::mem::offset_of!(cohort_abi::Context, steps_left) / 8) as i32;

/// A function that is being rebuilt.
pub struct Lowering<'c, 'p> {
    pub program: &'p mut Program<'c>,
    /// The runtime's context, the function's first parameter.
    pub runtime: Val<'c>,
    /// Room for the operands of a record.
    pub operand_slots: Option<Val<'c>>,
    /// Room for the scope of strands.
    pub scope_slots: Option<Val<'c>>,
    /// The depth at which the function was called, when it counts.
    depth: Option<Val<'c>>,
    /// What each value of the source became, a value a slot.
    values: HashMap<ValueKey, Vec<Val<'c>>>,
    /// Pushes to an array that may grow in place, by operation.
    pub in_place: HashSet<usize>,
}

/// Adds the lowered form of a function to the module.
pub fn lower<'c>(program: &mut Program<'c>, source: OperationRef<'c, 'c>) -> Outcome {
    let name = symbol_of(source).unwrap_or_default();
    let blocks = blocks_of(source);
    let &[body] = blocks.as_slice() else {
        return Err(error(
            source,
            "not supported yet: a function of several basic blocks",
        ));
    };
    let terminator = operations_of(body).pop();
    let results = terminator.map(operands_of).unwrap_or_default();
    let result_types = lowered_types(program, source, &results)?;
    let mut inputs = vec![llvm::r#type::pointer(program.context, 0)];
    inputs.extend(lowered_types(program, source, &arguments_of(body))?);

    let module = module_end(program).at(source.location());
    let attributes = [
        (
            keys::SYM_VISIBILITY,
            StringAttribute::new(program.context, "private").into(),
        ),
        (marks::LINKAGE, module.internal_linkage()),
    ];
    let symbol = format!("{PREFIX}{name}");
    let b = function(&module, &symbol, &inputs, &result_types, &attributes);

    let arguments = arguments_of(b.block());
    let mut lowering = Lowering::new(&b, program, source, arguments[0]);
    lowering.bind_all(source, &arguments_of(body), &arguments[1..])?;
    if lowering.program.calls.is_called(&name) {
        lowering.count_call(&b);
    }
    if lowering.program.calls.is_recursive(&name) {
        lowering.enter(&b);
    }
    lowering.block(&b, body)?;
    Ok(())
}

/// One stack slot for each operand of the record that has most, and of values that are shown.
fn operand_slots<'c>(
    b: &Builder<'c>,
    program: &Program<'c>,
    source: OperationRef<'c, 'c>,
) -> Option<Val<'c>> {
    let slots = |op: OperationRef<'c, 'c>| match Op::of(op) {
        Some(Op::CfbRecord) => op.operand_count(),
        Some(Op::CfbDebug) => {
            lowered_types(program, op, &operands_of(op)).map_or(0, |types| types.len())
        }
        _ => 0,
    };
    stack_slots(b, nested_ops(source).into_iter().map(slots).max())
}

/// Consecutive slots of the function's frame.
pub fn stack_slots<'c>(b: &Builder<'c>, count: Option<usize>) -> Option<Val<'c>> {
    let most = count.filter(|count| *count > 0)?;
    let count = i64_constant(b, most as i64);
    let element = melior::ir::attribute::TypeAttribute::new(b.i64()).into();
    Some(b.value_with(
        Op::LlvmAlloca,
        &[count],
        b.pointer(),
        &[(keys::ELEM_TYPE, element)],
    ))
}

pub fn lowered_types<'c>(
    program: &Program<'c>,
    at: OperationRef<'c, 'c>,
    values: &[Val<'c>],
) -> Result<Vec<Type<'c>>, Failed> {
    let mut types = Vec::new();
    for value in values {
        let own = lowered_value(program.context, *value);
        types.extend(own.ok_or_else(|| unsupported_type(at, *value))?);
    }
    Ok(types)
}

fn unsupported_type(at: OperationRef<'_, '_>, value: Val<'_>) -> Failed {
    error(
        at,
        &format!("not supported yet: a value of type {} here", value.r#type()),
    )
}

impl<'c, 'p> Lowering<'c, 'p> {
    /// At the beginning of a function that is made of what `source` holds.
    pub fn new(
        b: &Builder<'c>,
        program: &'p mut Program<'c>,
        source: OperationRef<'c, 'c>,
        runtime: Val<'c>,
    ) -> Lowering<'c, 'p> {
        Lowering {
            runtime,
            operand_slots: operand_slots(b, program, source),
            scope_slots: scope_slots(b, program, source),
            depth: None,
            values: HashMap::new(),
            in_place: HashSet::new(),
            program,
        }
    }
}

impl<'c> Lowering<'c, '_> {
    /// What a value of the source became; of several slots the first, a tensor's handle.
    pub fn value(&self, value: Val<'c>) -> Val<'c> {
        self.slots(value)[0]
    }

    /// What a value of the source became, a value a slot.
    pub fn slots(&self, value: Val<'c>) -> Vec<Val<'c>> {
        // A value is bound before it is used, since it dominates its uses.
        let known = self.values.get(&key(value));
        known.cloned().unwrap_or_else(|| vec![value])
    }

    /// The slots of several values, one after another.
    pub fn values(&self, values: &[Val<'c>]) -> Vec<Val<'c>> {
        values.iter().flat_map(|value| self.slots(*value)).collect()
    }

    pub fn bind(&mut self, source: Val<'c>, value: Val<'c>) {
        self.bind_slots(source, vec![value]);
    }

    pub fn bind_slots(&mut self, source: Val<'c>, slots: Vec<Val<'c>>) {
        self.values.insert(key(source), slots);
    }

    /// Binds values of the source to slots, which lie one after another.
    pub fn bind_all(
        &mut self,
        at: OperationRef<'c, 'c>,
        sources: &[Val<'c>],
        slots: &[Val<'c>],
    ) -> Outcome {
        let mut rest = slots;
        for source in sources {
            let width = lowered_types(self.program, at, &[*source])?.len();
            let Some((own, after)) = rest.split_at_checked(width) else {
                return Err(error(at, "internal error: values without slots"));
            };
            self.bind_slots(*source, own.to_vec());
            rest = after;
        }
        Ok(())
    }

    /// Binds an operation's results; a shorter list of slots leaves the last ones unbound.
    pub fn bind_results(&mut self, source: OperationRef<'c, 'c>, slots: &[Val<'c>]) {
        let mut rest = slots;
        for result in results_of(source) {
            let types = lowered_value(self.program.context, result);
            let width = types.map_or(1, |types| types.len());
            let Some((own, after)) = rest.split_at_checked(width) else {
                return;
            };
            self.bind_slots(result, own.to_vec());
            rest = after;
        }
    }

    /// The types of an operation's results, lowered.
    pub fn result_types(&self, source: OperationRef<'c, 'c>) -> Result<Vec<Type<'c>>, Failed> {
        lowered_types(self.program, source, &results_of(source))
    }

    pub fn types_of(
        &self,
        at: OperationRef<'c, 'c>,
        values: &[Val<'c>],
    ) -> Result<Vec<Type<'c>>, Failed> {
        lowered_types(self.program, at, values)
    }

    /// The slots of a type that must have a lowered form, for an operation.
    pub fn lowered_type(
        &self,
        at: OperationRef<'c, 'c>,
        ty: Type<'c>,
    ) -> Result<Vec<Type<'c>>, Failed> {
        lowered(self.program.context, ty)
            .ok_or_else(|| error(at, &format!("not supported yet: a value of type {ty} here")))
    }

    /// The number of an operation's place in the source.
    pub fn location(&mut self, source: OperationRef<'c, 'c>) -> u32 {
        self.program.manifest.location(source.location())
    }

    /// Gives the instance up where `condition` holds.
    pub fn fail_when(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        condition: Val<'c>,
        failure: Failure,
        (a, bound): (Val<'c>, Val<'c>),
    ) {
        let location = self.location(source);
        let runtime = self.runtime;
        when(b, condition, |b| {
            fail(b, runtime, failure, a, bound, location)
        });
    }

    /// Rebuilds the operations of a block at `b`. Returns what a `cfb.yield` or `cfb.join` at its end gives;
    /// every other terminator is rebuilt itself.
    pub fn block(
        &mut self,
        b: &Builder<'c>,
        source: BlockRef<'c, 'c>,
    ) -> Result<Vec<Val<'c>>, Failed> {
        for operation in operations_of(source) {
            let b = b.at(operation.location());
            if matches!(Op::of(operation), Some(Op::CfbYield | Op::CfbJoin)) {
                return Ok(self.values(&operands_of(operation)));
            }
            self.operation(&b, operation)?;
        }
        Ok(Vec::new())
    }

    fn operation(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        match Op::of(source) {
            Some(Op::FuncCall) => self.call(b, source),
            Some(Op::FuncReturn) => {
                self.leave(b);
                let results = self.values(&operands_of(source));
                b.return_(&results);
                Ok(())
            }
            Some(Op::CfbMatch) => self.match_(b, source),
            Some(Op::CfbConstruct) => self.construct(b, source),
            Some(Op::CfbRecord) => self.record(b, source),
            Some(Op::CfbParam) => self.param(b, source),
            Some(Op::CfbParamRow) => self.param_row(b, source),
            Some(Op::CfbConstant) => self.constant(b, source),
            Some(Op::CfbDim) => self.dim(b, source),
            Some(Op::CfbRow) => self.row(b, source),
            Some(Op::CfbWithin) => self.within(b, source),
            Some(Op::CfbQuotient) => self.quotient(b, source),
            Some(Op::CfbLength) => {
                let values = self.values(&operands_of(source));
                self.bind_results(source, &values);
                Ok(())
            }
            Some(Op::CfbView) => self.view(b, source),
            Some(Op::ArithSelect) => self.select(b, source),
            Some(Op::CfbArrayCreate) => self.array_create(b, source),
            Some(Op::CfbArrayLen) => self.array_len(b, source),
            Some(Op::CfbArrayGet) => self.array_get(b, source),
            Some(Op::CfbArrayPush) => self.array_push(b, source),
            Some(Op::CfbArrayReverse) => self.array_reverse(b, source),
            Some(Op::CfbArrayRange) => self.array_range(b, source),
            Some(Op::CfbForce) => self.force(b, source),
            Some(Op::CfbPhase) => self.phase(b, source),
            Some(Op::CfbStrConstant) => self.str_constant(b, source),
            Some(Op::CfbStrEqual) => {
                let texts = self.values(&operands_of(source));
                let same = call(b, symbols::STR_EQUAL, &texts, &[b.i32()])[0];
                let same = b.cmpi(CmpiPredicate::Ne, same, i32_constant(b, 0));
                self.bind_results(source, &[same]);
                Ok(())
            }
            Some(Op::CfbDebug) => self.debug(b, source),
            Some(Op::CfbInstanceKey) => {
                self.instance_key(b, source);
                Ok(())
            }
            Some(Op::CfbGhost) => self.ghost(b, source),
            Some(Op::CfbSame) => {
                let handles = self.values(&operands_of(source));
                let same = b.cmpi(CmpiPredicate::Eq, handles[0], handles[1]);
                self.bind_results(source, &[same]);
                Ok(())
            }
            Some(Op::CfbStack) => self.stack(b, source),
            Some(Op::CfbMap) => self.map(b, source),
            Some(Op::CfbFork) => self.fork(b, source),
            Some(Op::CfbFold) => self.fold(b, source),
            Some(Op::ScfWhile) => self.while_(b, source),
            Some(Op::CfbTurn) => {
                self.turn(b);
                Ok(())
            }
            Some(Op::ArithDivsi | Op::ArithRemsi) => self.divide(b, source),
            Some(Op::MathIpowi) => {
                let operands = self.values(&operands_of(source));
                let power = powers::power(b, operands[0], operands[1]);
                self.bind_results(source, &[power]);
                Ok(())
            }
            _ if is_kept(source) => self.rebuild(b, source),
            _ => Err(error(
                source,
                &format!(
                    "not supported yet: `{}` in the control program",
                    name_of(source)
                ),
            )),
        }
    }

    fn call(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let callee = callee_of(source).unwrap_or_default();
        if !self.program.calls.contains(&callee) {
            return Err(error(
                source,
                &format!("`{callee}` is not a function of the control program"),
            ));
        }
        let mut operands = vec![self.runtime];
        operands.extend(self.values(&operands_of(source)));
        let types = self.result_types(source)?;
        let results = call(b, &format!("{PREFIX}{callee}"), &operands, &types);
        self.bind_results(source, &results);
        Ok(())
    }

    /// Counts the call as a step: what recurses without recording anything must end too. Steps come in
    /// parts; where one is used up, the runtime counts the step and gives the next part.
    fn count_call(&mut self, b: &Builder<'c>) {
        let word = b.i64();
        let address = slot_address(b, self.runtime, STEPS_LEFT);
        let left = load_slot(b, address, word);
        let (zero, one) = (i64_constant(b, 0), i64_constant(b, 1));
        let none = b.cmpi(CmpiPredicate::Eq, left, zero);
        let runtime = self.runtime;
        when(b, none, |b| step(b, runtime, one));
        let left = load_slot(b, address, word);
        let count = b.select(none, zero, one);
        let left = b.subi(left, count);
        b.llvm_store(left, address);
    }

    /// Counts how deep the call is and checks what is left of the stack.
    fn enter(&mut self, b: &Builder<'c>) {
        let word = b.i64();
        let depth = load_slot(b, self.runtime, word);
        let max_depth = load_slot(b, slot_address(b, self.runtime, 1), word);
        let stack_limit = load_slot(b, slot_address(b, self.runtime, 2), word);
        let stack = b.value(Op::LlvmIntrStacksave, &[], b.pointer());
        let stack = b.value(Op::LlvmPtrtoint, &[stack], word);
        let too_deep = b.cmpi(CmpiPredicate::Uge, depth, max_depth);
        let too_low = b.cmpi(CmpiPredicate::Ult, stack, stack_limit);
        let stop = b.ori(too_deep, too_low);
        let location = self.program.manifest.location(b.location);
        let runtime = self.runtime;
        when(b, stop, |b| {
            fail(b, runtime, Failure::DepthLimit, depth, max_depth, location);
        });
        let deeper = b.addi(depth, i64_constant(b, 1));
        b.llvm_store(deeper, self.runtime);
        self.depth = Some(depth);
    }

    fn leave(&mut self, b: &Builder<'c>) {
        if let Some(depth) = self.depth {
            b.llvm_store(depth, self.runtime);
        }
    }
}

/// Whether an operation stays what it is, on lowered types.
fn is_kept(operation: OperationRef<'_, '_>) -> bool {
    use Dialect::{Arith, Index, Llvm, Math, Scf, Ub};
    matches!(
        Dialect::of(operation),
        Some(Arith | Index | Llvm | Math | Scf | Ub)
    )
}
