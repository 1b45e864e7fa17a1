//! `lower-gpu-to-host`: the functions of the `gpu.module` as functions of the host (level 3).
//!
//! The very code that would run on a GPU runs here without one: each `gpu.func` becomes a function
//! that runs *one thread*, of the ABI's `SimFn` signature (`abi/src/gpu.rs`). Whoever calls
//! it keeps a fiber for each thread of a block and goes on to the next thread wherever one calls
//! `cohort_sim_barrier`. So indices, barriers and numbers can be checked on any machine; speed can
//! not.
//!
//! Asynchronous copies, waits for them, roundings, shuffles and the products of a warp are calls too: an
//! `nvvm.mma.sync` leaves the thread's registers in memory and calls `cohort_sim_multiply`, which goes
//! on to the next thread until all of the warp are there, as a named barrier does until its threads are. An `nvvm.wgmma.mma_async` does so for a warpgroup, and is done at once:
//! fences and waits for it are nothing here. An address of shared memory as a number counts from the block's first byte.
//!
//! ```mlir
//! gpu.module @cohort_gpu {
//!   llvm.mlir.global internal @cell$0$shared() {addr_space = 3 : i32} : !llvm.array<9728 x i8>
//!   gpu.func @cell$0(%rows: i64, %base: !llvm.ptr<1>, …) kernel {
//!     %thread = gpu.thread_id x
//!     %memory = llvm.mlir.addressof @cell$0$shared : !llvm.ptr<3>
//!     …
//!     gpu.barrier
//!     …
//!     gpu.return
//!   }
//! }
//! // becomes
//! func.func private @cohort_sim_barrier(!llvm.ptr)
//! func.func @cell$0(%arguments: !llvm.ptr, %x: i64, %y: i64, %thread: i64, %shared: !llvm.ptr,
//!                   %context: !llvm.ptr) {
//!   %rows = llvm.load %arguments : !llvm.ptr -> i64
//!   …
//!   call @cohort_sim_barrier(%context) : (!llvm.ptr) -> ()
//!   …
//!   return
//! }
//! ```
//!
//! The function that runs a flush, where `persistence` has added one, calls those of the kernels for its
//! blocks, and `cohort_sim_grid_barrier` where all blocks wait for each other, `cohort_sim_cluster_barrier` where those of a cluster
//! do; where a block arrives at such a barrier, its threads wait for each other.
//!
//! Requires: what `lower-kernels-to-gpu` and `persistence` leave, the descriptions taken off by `lower-control` or not.
//! Leaves: no `gpu` or `nvvm` operation and one address space. Limits: other operations of these than
//! what `lower-kernels-to-gpu` writes are refused.

use std::collections::HashMap;
use std::ops::Range;

use cohort_abi::gpu::{
    BARRIER, CLUSTER_BARRIER, COMMIT, COPY, GRID_BARRIER, GRID_DIM, MULTIPLY, MULTIPLY_GROUP,
    NAMED_BARRIER, SHUFFLE, TO_BF16_PAIR, TO_TF32, WAIT,
};
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, arguments_of, extend_block, name_of, operands_of, result_of,
    results_of,
};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::types::is_pointer;
use cohort_passes::pass::{Failed, Outcome, PassInfo, error};
use cohort_passes::support::ir::{
    blocks_of, callee_of, clone_region, erase, integer_attribute, name_attribute, nested_ops,
    replace_uses, set_type, symbol_of, text_of, top_level,
};
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, BlockRef, OperationRef, RegionLike, Type, ValueLike,
        attribute::{DenseI32ArrayAttribute, IntegerAttribute, StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::{FunctionType, TypeLike},
    },
};

use super::lower_kernels_to_gpu::tile::WAIT as WAIT_FOR_PRODUCTS;
use super::persistence::{self, BLOCK_OF, SHARED_FROM};
use crate::emit::Emitter;

/// The pass `lower-gpu-to-host`.
pub const PASS: PassInfo = PassInfo {
    name: "lower-gpu-to-host",
    summary: "Make functions of a gpu.module run one thread on the host (level 3)",
    description: include_str!("lower_gpu_to_host.rs"),
    run,
};

/// The new function's arguments, in order.
#[derive(Clone, Copy)]
struct Arguments<'c> {
    arguments: Val<'c>,
    x: Val<'c>,
    y: Val<'c>,
    thread: Val<'c>,
    shared: Val<'c>,
    context: Val<'c>,
    /// Memory for the registers of a product of a warp or of a warpgroup, where there is one.
    registers: Option<Val<'c>>,
}

/// What a warp's product takes and gives: two factors' registers, then the sums.
const REGISTERS: i64 = 10;
const SUMS: i64 = 4;

/// How many registers go through memory for an operation, if some do.
fn registers(operation: OperationRef<'_, '_>) -> Option<i64> {
    match Op::of(operation)? {
        Op::NvvmMmaSync => Some(REGISTERS),
        Op::NvvmWgmmaMmaAsync => struct_fields(result_of(operation, 0).r#type()),
        _ => None,
    }
}

/// The functions of the runtime.
const CALLED: [&str; 13] = [
    BARRIER,
    NAMED_BARRIER,
    GRID_DIM,
    GRID_BARRIER,
    CLUSTER_BARRIER,
    COPY,
    COMMIT,
    WAIT,
    MULTIPLY,
    MULTIPLY_GROUP,
    SHUFFLE,
    TO_TF32,
    TO_BF16_PAIR,
];

/// The type of a function of the runtime.
fn type_of<'c>(b: &Builder<'c>, called: &str) -> Type<'c> {
    let (pointer, int, float) = (b.pointer(), b.i64(), b.f32());
    match called {
        COPY => b.function_type(&[pointer, pointer, pointer, int, int], &[]),
        WAIT => b.function_type(&[pointer, int], &[]),
        MULTIPLY => b.function_type(&[pointer, int, pointer], &[]),
        MULTIPLY_GROUP => b.function_type(&[pointer, int, int, int, pointer], &[]),
        SHUFFLE => b.function_type(&[pointer, float, int], &[float]),
        GRID_DIM => b.function_type(&[pointer], &[int]),
        NAMED_BARRIER => b.function_type(&[pointer, int, int], &[]),
        TO_TF32 => b.function_type(&[float], &[b.i32()]),
        TO_BF16_PAIR => b.function_type(&[float, float], &[b.i32()]),
        _ => b.function_type(&[pointer], &[]),
    }
}

/// The function of the runtime that an operation calls.
fn called(operation: OperationRef<'_, '_>) -> Option<&'static str> {
    Some(match Op::of(operation) {
        // Where a block arrives its threads have done what comes before.
        Some(Op::FuncCall) => match callee(operation).as_str() {
            persistence::GRID_ARRIVE | persistence::CLUSTER_ARRIVE => BARRIER,
            persistence::GRID_WAIT => GRID_BARRIER,
            persistence::CLUSTER_WAIT => CLUSTER_BARRIER,
            _ => return None,
        },
        Some(Op::GpuBarrier) => BARRIER,
        Some(Op::NvvmBarrier) => NAMED_BARRIER,
        Some(Op::GpuGridDim) if GpuDim::of(operation) == Some(GpuDim::X) => GRID_DIM,
        Some(Op::NvvmCpAsyncSharedGlobal) => COPY,
        Some(Op::NvvmCpAsyncCommitGroup) => COMMIT,
        Some(Op::NvvmCpAsyncWaitGroup) => WAIT,
        Some(Op::NvvmMmaSync) => MULTIPLY,
        Some(Op::NvvmWgmmaMmaAsync) => MULTIPLY_GROUP,
        Some(Op::GpuShuffle) => SHUFFLE,
        Some(Op::NvvmConvertFloatToTf32) => TO_TF32,
        Some(Op::NvvmConvertF32x2ToBf16x2) => TO_BF16_PAIR,
        _ => return None,
    })
}

fn callee(call: OperationRef<'_, '_>) -> String {
    callee_of(call).unwrap_or_default()
}

/// The functions that run a block of another: their names, those of the others, and where these have their shared memory
/// in that of the flush.
type Blocks = HashMap<String, (String, i64)>;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let modules: Vec<_> = top_level(module)
        .into_iter()
        .filter(|op| Op::GpuModule.is(*op))
        .collect();
    let nested = modules.iter().flat_map(|gpu| nested_ops(*gpu));
    let used: Vec<&str> = nested.filter_map(called).collect();
    for (number, gpu) in modules.into_iter().enumerate() {
        let builder = Builder::before(context, gpu)
            .ok_or_else(|| error(gpu, "expected a gpu.module in a module"))?;
        let declared = CALLED.iter().filter(|symbol| used.contains(symbol));
        for symbol in declared.filter(|_| number == 0) {
            declare(&builder, symbol);
        }
        let blocks: Blocks = top_level(gpu)
            .into_iter()
            .filter_map(|op| {
                let from = integer_attribute(op, SHARED_FROM).unwrap_or(0);
                Some((symbol_of(op)?, (name_attribute(op, BLOCK_OF)?, from)))
            })
            .collect();
        for function in top_level(gpu) {
            match Op::of(function) {
                Some(Op::GpuFunc) => lower(context, &builder, function, &blocks)?,
                // What the function that runs a flush calls.
                Some(Op::FuncFunc) if blocks_of(function).is_empty() => {}
                // Shared memory, which the caller gives.
                Some(Op::LlvmMlirGlobal) => {}
                _ => {
                    let name = name_of(function);
                    let message = format!("not supported yet on the host: `{name}`");
                    return Err(error(function, &message));
                }
            }
        }
        erase(gpu);
    }
    Ok(())
}

fn declare(builder: &Builder<'_>, symbol: &str) {
    let context = builder.context();
    let ty = type_of(builder, symbol);
    builder.op(
        Op::FuncFunc,
        &[],
        &[],
        &[
            (keys::SYM_NAME, StringAttribute::new(context, symbol).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (
                keys::SYM_VISIBILITY,
                StringAttribute::new(context, "private").into(),
            ),
        ],
        vec![melior::ir::Region::new()],
    );
}

fn lower<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    function: OperationRef<'c, 'c>,
    blocks: &Blocks,
) -> Outcome {
    let name = symbol_of(function).unwrap_or_default();
    let pointer = builder.pointer();
    let i64 = builder.i64();
    let types = [pointer, i64, i64, i64, pointer, pointer];
    let ty: Type<'c> = FunctionType::new(context, &types, &[]).into();
    let region = clone_region(function, 0);
    let entry = region.first_block().map(extend_block);
    let entry = entry.ok_or_else(|| error(function, "expected a function with a body"))?;
    let lowered = builder.at(function.location()).op(
        Op::FuncFunc,
        &[],
        &[],
        &[
            (keys::SYM_NAME, StringAttribute::new(context, &name).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        ],
        vec![region],
    );
    replace_arguments(context, entry, &types, lowered, blocks)
}

/// Gives the body the new arguments, and what it had as arguments, loaded from their list.
fn replace_arguments<'c>(
    context: &'c Context,
    entry: BlockRef<'c, 'c>,
    types: &[Type<'c>],
    function: OperationRef<'c, 'c>,
    blocks: &Blocks,
) -> Outcome {
    let location = function.location();
    let old = arguments_of(entry);
    for ty in types {
        entry.add_argument(*ty, location);
    }
    let [arguments, x, y, thread, shared, context_pointer] = arguments_of(entry)[old.len()..]
    else {
        return Err(error(
            function,
            "internal error: a block without its arguments",
        ));
    };
    let new = Arguments {
        arguments,
        x,
        y,
        thread,
        shared,
        context: context_pointer,
        registers: None,
    };
    let Some(first) = entry.first_operation() else {
        return Err(error(function, "expected a function with a body"));
    };
    let b = Builder::before(context, cohort_dialects::builder::extend_op(first))
        .ok_or_else(|| error(function, "expected a body"))?;
    for (number, argument) in old.iter().enumerate() {
        let is_integer = argument.r#type().is_integer();
        let ty = if is_integer {
            argument.r#type()
        } else {
            types[0]
        };
        let offset = DenseI32ArrayAttribute::new(context, &[8 * number as i32]).into();
        let elem = TypeAttribute::new(b.i8()).into();
        let attributes = [
            (keys::ELEM_TYPE, elem),
            (keys::RAW_CONSTANT_INDICES, offset),
        ];
        let at = b.value_with(
            Op::LlvmGetelementptr,
            &[new.arguments],
            types[0],
            &attributes,
        );
        let alignment = IntegerAttribute::new(types[1], 8).into();
        let value = b.value_with(Op::LlvmLoad, &[at], ty, &[(keys::ALIGNMENT, alignment)]);
        replace_uses(*argument, value);
    }
    for number in (0..old.len()).rev() {
        // SAFETY: the block is alive, and the argument has no uses left.
        unsafe { mlir_sys::mlirBlockEraseArgument(entry.to_raw(), number as u32) };
    }
    let operations = nested_ops(function);
    let new = Arguments {
        registers: operations
            .iter()
            .filter_map(|operation| registers(*operation))
            .max()
            .map(|most| {
                let count = b.integer(most, types[1]);
                let elem = [(keys::ELEM_TYPE, TypeAttribute::new(b.i32()).into())];
                b.value_with(Op::LlvmAlloca, &[count], types[0], &elem)
            }),
        ..new
    };
    for operation in operations {
        lower_operation(context, operation, new, blocks)?;
    }
    Ok(())
}

fn lower_operation<'c>(
    context: &'c Context,
    operation: OperationRef<'c, 'c>,
    new: Arguments<'c>,
    blocks: &Blocks,
) -> Outcome {
    let b = Builder::before(context, operation)
        .ok_or_else(|| error(operation, "expected an operation in a block"))?;
    let replacement = match Op::of(operation) {
        Some(kind @ (Op::GpuThreadId | Op::GpuBlockId)) => {
            let at = match (kind, GpuDim::of(operation)) {
                (Op::GpuThreadId, Some(GpuDim::X)) => new.thread,
                (Op::GpuBlockId, Some(GpuDim::X)) => new.x,
                (Op::GpuBlockId, Some(GpuDim::Y)) => new.y,
                _ => return Err(error(operation, "not supported yet on the host: this dim")),
            };
            let index = result_of(operation, 0).r#type();
            Some(b.index_cast(at, index))
        }
        Some(Op::LlvmMlirAddressof) => Some(new.shared),
        // Shared memory begins at 0 there.
        Some(Op::LlvmPtrtoint) => {
            let ty = result_of(operation, 0).r#type();
            let [at, base] = [operands_of(operation)[0], new.shared]
                .map(|pointer| b.value(Op::LlvmPtrtoint, &[pointer], ty));
            Some(b.subi(at, base))
        }
        // What is computed is there at once, and in the order in which it is written down.
        Some(Op::NvvmFenceProxy | Op::NvvmWgmmaFence | Op::NvvmWgmmaCommitGroup) => {
            erase(operation);
            return Ok(());
        }
        Some(Op::LlvmInlineAsm) if is_wait(operation) => {
            Some(b.pack_struct(&operands_of(operation)))
        }
        Some(Op::GpuReturn) => {
            b.return_(&operands_of(operation));
            erase(operation);
            return Ok(());
        }
        Some(Op::FuncCall) if blocks.contains_key(&callee(operation)) => {
            let function = &blocks[&callee(operation)];
            return call_block(&b, operation, function, new);
        }
        _ if called(operation).is_some() => return lower_call(&b, operation, new),
        _ if matches!(Dialect::of(operation), Some(Dialect::Gpu | Dialect::Nvvm)) => {
            let name = name_of(operation);
            let message = format!("not supported yet on the host: `{name}`");
            return Err(error(operation, &message));
        }
        _ => None,
    };
    if let Some(value) = replacement {
        replace_uses(result_of(operation, 0), value);
        erase(operation);
        return Ok(());
    }
    for result in results_of(operation) {
        one_space(&b, result);
    }
    for argument in blocks_of(operation).into_iter().flat_map(arguments_of) {
        one_space(&b, argument);
    }
    Ok(())
}

/// Makes a call for a block one of the function whose block it is, as the same thread.
fn call_block<'c>(
    b: &Builder<'c>,
    operation: OperationRef<'c, 'c>,
    (function, from): &(String, i64),
    new: Arguments<'c>,
) -> Outcome {
    let [arguments, x, y] = operands_of(operation)[..] else {
        return Err(error(operation, "expected a list of arguments and a place"));
    };
    let shared = match from {
        0 => new.shared,
        from => Emitter::new(*b).offset_by(new.shared, *from),
    };
    let operands = [arguments, x, y, new.thread, shared, new.context];
    b.func_call(function, &operands, &[]);
    erase(operation);
    Ok(())
}

/// Makes an operation a call of the runtime.
fn lower_call<'c>(b: &Builder<'c>, operation: OperationRef<'c, 'c>, new: Arguments<'c>) -> Outcome {
    let i64 = b.i64();
    let attribute = |name: Key<'_>| -> std::result::Result<i64, Failed> {
        let value = operation.attribute(&name).ok();
        let value = value.and_then(|value| IntegerAttribute::try_from(value).ok());
        let value = value.ok_or_else(|| error(operation, &format!("expected `{name}`")))?;
        Ok(value.value())
    };
    let operands = operands_of(operation);
    let result = match called(operation).unwrap_or_default() {
        COPY => {
            let bytes = b.integer(attribute(keys::SIZE)?, i64);
            let copied = match operands.get(2) {
                Some(copied) => b.extui(*copied, i64),
                None => bytes,
            };
            b.func_call(
                COPY,
                &[new.context, operands[0], operands[1], bytes, copied],
                &[],
            );
            None
        }
        WAIT => {
            let pending = b.integer(attribute(keys::N)?, i64);
            b.func_call(WAIT, &[new.context, pending], &[]);
            None
        }
        MULTIPLY => Some(lower_product(b, operation, &operands, new)?),
        MULTIPLY_GROUP => Some(lower_product_of_group(b, operation, &operands, new)?),
        SHUFFLE => Some(lower_shuffle(b, operation, &operands, new)?),
        NAMED_BARRIER => {
            let [barrier, threads] = operands[..] else {
                let message = "expected the number of a barrier, and of its threads";
                return Err(error(operation, message));
            };
            let [barrier, threads] = [barrier, threads].map(|number| b.extui(number, i64));
            b.func_call(NAMED_BARRIER, &[new.context, barrier, threads], &[]);
            None
        }
        GRID_DIM => {
            let blocks = result_of(b.func_call(GRID_DIM, &[new.context], &[i64]), 0);
            Some(b.index_cast(blocks, result_of(operation, 0).r#type()))
        }
        TO_TF32 => Some(result_of(b.func_call(TO_TF32, &operands, &[b.i32()]), 0)),
        TO_BF16_PAIR => {
            let bits = result_of(b.func_call(TO_BF16_PAIR, &operands, &[b.i32()]), 0);
            Some(b.value(Op::LlvmBitcast, &[bits], result_of(operation, 0).r#type()))
        }
        symbol => {
            b.func_call(symbol, &[new.context], &[]);
            None
        }
    };
    if let Some(result) = result {
        replace_uses(result_of(operation, 0), result);
    }
    erase(operation);
    Ok(())
}

/// A warp's product: the sums, as the operation gives them.
fn lower_product<'c>(
    b: &Builder<'c>,
    operation: OperationRef<'c, 'c>,
    operands: &[Val<'c>],
    new: Arguments<'c>,
) -> std::result::Result<Val<'c>, Failed> {
    let shape = operation.attribute(&keys::SHAPE).ok();
    let known = [8, 16].into_iter();
    let k = known.into_iter().find(|k| Some(b.mma_shape(*k)) == shape);
    let k = k.ok_or_else(|| error(operation, "not supported yet on the host: this shape"))?;
    let (Some(registers), true) = (new.registers, operands.len() as i64 == REGISTERS) else {
        return Err(error(
            operation,
            "not supported yet on the host: these factors",
        ));
    };
    leave(b, registers, operands);
    let k = b.integer(i64::from(k), b.i64());
    b.func_call(MULTIPLY, &[new.context, k, registers], &[]);
    Ok(b.pack_struct(&take(b, registers, REGISTERS - SUMS..REGISTERS)))
}

/// The same of a warpgroup's product.
fn lower_product_of_group<'c>(
    b: &Builder<'c>,
    operation: OperationRef<'c, 'c>,
    operands: &[Val<'c>],
    new: Arguments<'c>,
) -> std::result::Result<Val<'c>, Failed> {
    let sums = registers(operation);
    let (Some(sums), Some(registers), [before, left, right]) = (sums, new.registers, operands)
    else {
        return Err(error(
            operation,
            "not supported yet on the host: these factors",
        ));
    };
    leave(
        b,
        registers,
        &b.unpack_struct(*before, sums as usize, b.f32()),
    );
    let columns = b.integer(2 * sums, b.i64());
    let given = [new.context, columns, *left, *right, registers];
    b.func_call(MULTIPLY_GROUP, &given, &[]);
    Ok(b.pack_struct(&take(b, registers, 0..sums)))
}

/// What a lane gets of another one, an `f32` of the lane whose number differs in some bits.
fn lower_shuffle<'c>(
    b: &Builder<'c>,
    operation: OperationRef<'c, 'c>,
    operands: &[Val<'c>],
    new: Arguments<'c>,
) -> std::result::Result<Val<'c>, Failed> {
    let is_xor = operation.attribute(&keys::MODE).ok() == Some(b.shuffle_xor());
    match operands {
        [value, lanes, _] if is_xor && value.r#type() == b.f32() => {
            let lanes = b.extui(*lanes, b.i64());
            let call = b.func_call(SHUFFLE, &[new.context, *value, lanes], &[b.f32()]);
            Ok(result_of(call, 0))
        }
        _ => Err(error(
            operation,
            "not supported yet on the host: this shuffle",
        )),
    }
}

/// Leaves values in the memory for registers, from its beginning on.
fn leave<'c>(b: &Builder<'c>, registers: Val<'c>, values: &[Val<'c>]) {
    for (number, value) in (0..).zip(values) {
        let at = Emitter::new(*b).offset_by(registers, 4 * number);
        b.op(Op::LlvmStore, &[*value, at], &[], &[aligned(b)], vec![]);
    }
}

/// Takes floats from there.
fn take<'c>(b: &Builder<'c>, registers: Val<'c>, numbers: Range<i64>) -> Vec<Val<'c>> {
    let load = |number: i64| {
        let at = Emitter::new(*b).offset_by(registers, 4 * number);
        b.value_with(Op::LlvmLoad, &[at], b.f32(), &[aligned(b)])
    };
    numbers.map(load).collect()
}

fn aligned<'c>(b: &Builder<'c>) -> (Key<'static>, Attribute<'c>) {
    (keys::ALIGNMENT, b.i64_attr(4))
}

/// Whether assembly is what waits for products of warpgroups.
fn is_wait(operation: OperationRef<'_, '_>) -> bool {
    let text = operation.attribute(&keys::ASM_STRING).ok();
    text.and_then(text_of).as_deref() == Some(WAIT_FOR_PRODUCTS)
}

/// How many fields a structure has.
fn struct_fields(ty: Type<'_>) -> Option<i64> {
    // SAFETY: the type is alive, and its kind is asked first.
    unsafe {
        let raw = ty.to_raw();
        mlir_sys::mlirTypeIsALLVMStructType(raw)
            .then(|| mlir_sys::mlirLLVMStructTypeGetNumElementTypes(raw) as i64)
    }
}

/// Makes a pointer of any address space one of the host's.
fn one_space<'c>(b: &Builder<'c>, value: Val<'c>) {
    if is_pointer(value.r#type()) {
        set_type(value, b.pointer());
    }
}
