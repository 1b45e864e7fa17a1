//! Small pieces of level-3 code: memory, integers, calls of the runtime.

use cohort_abi::{Failure, symbols};
use cohort_dialects::builder::{Builder, Op, Val, region_with_block, results_of};
use cohort_dialects::keys::{self, Key};
use melior::ir::{
    Attribute, Region, Type, TypeLike, ValueLike,
    attribute::{StringAttribute, TypeAttribute},
    operation::OperationLike,
    r#type::{FunctionType, IntegerType},
};

use super::Program;
use super::strands::strand_type;

pub fn i64_constant<'c>(b: &Builder<'c>, value: i64) -> Val<'c> {
    b.integer(value, b.i64())
}

pub fn i32_constant<'c>(b: &Builder<'c>, value: i64) -> Val<'c> {
    b.integer(value, b.i32())
}

/// The address `slots` after `base`.
pub fn slot_address<'c>(b: &Builder<'c>, base: Val<'c>, slots: i32) -> Val<'c> {
    if slots == 0 {
        return base;
    }
    let indices = b.i32s(&[slots]);
    address(b, &[base], indices)
}

/// The address a computed number of slots after `base`.
pub fn slot_address_at<'c>(b: &Builder<'c>, base: Val<'c>, slots: Val<'c>) -> Val<'c> {
    // MLIR's mark for an index that is an operand.
    let indices = b.i32s(&[i32::MIN]);
    address(b, &[base, slots], indices)
}

fn address<'c>(b: &Builder<'c>, operands: &[Val<'c>], indices: Attribute<'c>) -> Val<'c> {
    let attributes = [
        (keys::ELEM_TYPE, TypeAttribute::new(b.i64()).into()),
        (keys::RAW_CONSTANT_INDICES, indices),
        (keys::NO_WRAP_FLAGS, b.i32_attr(0)),
    ];
    b.value_with(Op::LlvmGetelementptr, operands, b.pointer(), &attributes)
}

/// Reads a value of a lowered type from a slot.
pub fn load_slot<'c>(b: &Builder<'c>, address: Val<'c>, ty: Type<'c>) -> Val<'c> {
    if ty == b.i1() {
        let slot = b.llvm_load(address, b.i32());
        return b.trunci(slot, ty);
    }
    if ty == b.index_type() {
        let slot = b.llvm_load(address, b.i64());
        return b.index_cast(slot, b.index_type());
    }
    b.llvm_load(address, ty)
}

/// Writes a value of a lowered type to a slot; all 64 bits of it.
pub fn store_slot<'c>(b: &Builder<'c>, value: Val<'c>, address: Val<'c>) {
    let bits = slot_bits(b, value);
    b.llvm_store(bits, address);
}

/// What a slot holds for a value: a pointer, or 64 bits.
fn slot_bits<'c>(b: &Builder<'c>, value: Val<'c>) -> Val<'c> {
    let ty = value.r#type();
    if ty.is_f32() {
        let bits = b.bitcast(value, b.i32());
        return b.extui(bits, b.i64());
    }
    match IntegerType::try_from(ty) {
        Ok(integer) if integer.width() < 64 => b.extui(value, b.i64()),
        _ if ty.is_index() => b.index_cast(value, b.i64()),
        _ => value,
    }
}

/// `then` where `condition` holds.
pub fn when<'c>(b: &Builder<'c>, condition: Val<'c>, then: impl FnOnce(&Builder<'c>)) {
    let (region, block) = region_with_block(&[], b.location);
    let inner = Builder::at_end(b.context(), block, b.location);
    then(&inner);
    inner.scf_yield(&[]);
    b.scf_if(condition, &[], [region, Region::new()]);
}

/// A loop over `0..count` (an `i64`) whose body gets the index as an `i64` and the carried values,
/// and gives the next ones.
pub fn count_loop<'c, E>(
    b: &Builder<'c>,
    count: Val<'c>,
    inits: &[Val<'c>],
    body: impl FnOnce(&Builder<'c>, Val<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, E>,
) -> Result<Vec<Val<'c>>, E> {
    let types = inits.iter().map(|init| init.r#type());
    let arguments: Vec<Type<'c>> = std::iter::once(b.i64()).chain(types).collect();
    let (region, block) = region_with_block(&arguments, b.location);
    let inner = Builder::at_end(b.context(), block, b.location);
    let arguments = cohort_dialects::builder::arguments_of(block);
    let next = body(&inner, arguments[0], &arguments[1..])?;
    inner.scf_yield(&next);
    let bounds = [i64_constant(b, 0), count, i64_constant(b, 1)];
    Ok(results_of(b.scf_for(bounds, inits, region)))
}

pub fn call<'c>(
    b: &Builder<'c>,
    callee: &str,
    operands: &[Val<'c>],
    results: &[Type<'c>],
) -> Vec<Val<'c>> {
    results_of(b.func_call(callee, operands, results))
}

/// Memory of the instance for a known number of slots.
pub fn allocate<'c>(b: &Builder<'c>, context: Val<'c>, slots: i64) -> Val<'c> {
    let slots = i64_constant(b, slots);
    allocate_slots(b, context, slots)
}

pub fn allocate_slots<'c>(b: &Builder<'c>, context: Val<'c>, slots: Val<'c>) -> Val<'c> {
    call(b, symbols::ALLOC, &[context, slots], &[b.pointer()])[0]
}

pub fn step<'c>(b: &Builder<'c>, context: Val<'c>, count: Val<'c>) {
    call(b, symbols::STEP, &[context, count], &[]);
}

/// Gives the instance up; `a` and `bound` are what the message shows.
pub fn fail<'c>(
    b: &Builder<'c>,
    context: Val<'c>,
    failure: Failure,
    a: Val<'c>,
    bound: Val<'c>,
    location: u32,
) {
    let code = i32_constant(b, i64::from(failure as u32));
    let location = i32_constant(b, i64::from(location));
    call(b, symbols::FAIL, &[context, code, a, bound, location], &[]);
}

/// A function of the runtime: its symbol, what it takes and gives, and what LLVM may take for granted of it.
type Declaration<'a> = (&'a str, &'a [Type<'a>], &'a [Type<'a>], &'a [&'a str]);

/// Declares what the runtime offers.
pub fn declare_runtime(program: &Program<'_>) {
    let b = module_end(program);
    let (pointer, int, word) = (b.pointer(), b.i64(), b.i32());
    let usual: &[&str] = &["nounwind"];
    let ends: &[&str] = &["nounwind", "noreturn", "cold"];
    let declarations: [Declaration<'_>; _] = [
        (symbols::RECORD, &[pointer, word, pointer], &[int], usual),
        (symbols::ALLOC, &[pointer, int], &[pointer], usual),
        (symbols::FAIL, &[pointer, word, int, int, word], &[], ends),
        (symbols::STEP, &[pointer, int], &[], usual),
        (symbols::FORCE, &[pointer, int, word], &[word], usual),
        (symbols::STR_EQUAL, &[pointer, pointer], &[word], usual),
        (symbols::DEBUG, &[pointer, word, pointer], &[], usual),
        (
            symbols::FORK,
            &[pointer, strand_type(&b), pointer, int],
            &[word],
            usual,
        ),
        (symbols::JOIN, &[pointer, pointer], &[], usual),
        (symbols::AWAIT, &[pointer, pointer, int], &[], usual),
        (symbols::GHOST, &[pointer, int, word], &[int], usual),
    ];
    for (name, inputs, results, attributes) in declarations {
        let ty = b.function_type(inputs, results);
        let name_attribute = StringAttribute::new(b.context(), name).into();
        let attributes = [
            (keys::SYM_NAME, name_attribute),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (
                keys::SYM_VISIBILITY,
                StringAttribute::new(b.context(), "private").into(),
            ),
            (keys::PASSTHROUGH, b.strings(attributes.iter())),
        ];
        b.op(Op::FuncFunc, &[], &[], &attributes, vec![Region::new()]);
    }
}

/// A builder for new functions, at the end of the module.
pub fn module_end<'c>(program: &Program<'c>) -> Builder<'c> {
    let body = cohort_passes::support::ir::blocks_of(program.module)[0];
    Builder::at_end(program.context, body, program.module.location())
}

/// Adds a function and gives a builder in its body.
pub fn function<'c>(
    b: &Builder<'c>,
    name: &str,
    inputs: &[Type<'c>],
    results: &[Type<'c>],
    attributes: &[(Key<'_>, Attribute<'c>)],
) -> Builder<'c> {
    let ty = FunctionType::new(b.context(), inputs, results).into();
    let (region, block) = region_with_block(inputs, b.location);
    let mut all = vec![
        (
            keys::SYM_NAME,
            StringAttribute::new(b.context(), name).into(),
        ),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
    ];
    all.extend_from_slice(attributes);
    b.op(Op::FuncFunc, &[], &[], &all, vec![region]);
    Builder::at_end(b.context(), block, b.location)
}
