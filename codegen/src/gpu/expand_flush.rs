//! `expand-flush`: what the function that runs a flush calls, for a card (level 3).
//!
//! The functions that run one block, which `persistence` has declared, become copies of the kernels'
//! functions: their arguments are loaded from the list, which is in shared memory, their places in the grid are given, and
//! their shared memory is the flush's own, from `cfb.shared_from` on. Those that are run in flushes only
//! (`cfb.only_in_flush`) are gone then. A barrier of the grid becomes a count in the device's memory: each block adds itself
//! to it where it arrives, and waits for all others later. A barrier of a cluster is an instruction for each half.
//!
//! ```mlir
//! func.func private @cohort_grid_arrive(!llvm.ptr<1>)
//! func.func private @cohort_grid_wait(!llvm.ptr<1>, i64)
//! func.func private @cohort_cluster_arrive()
//! func.func private @cohort_cluster_wait()
//! func.func private @k$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @k$0}
//! gpu.func @k$0(%rows: i64, %out: !llvm.ptr<1>) kernel {
//!   %x = gpu.block_id x
//!   …
//!   gpu.return
//! }
//! // becomes
//! llvm.func internal @cohort_grid_arrive(%arrived: !llvm.ptr<1>) {
//!   gpu.barrier
//!   scf.if %is_first_thread {
//!     llvm.fence syncscope("device") acq_rel
//!     %before = llvm.atomicrmw add %arrived, %one syncscope("device") monotonic : !llvm.ptr<1>, i32
//!   }
//!   llvm.return
//! }
//! llvm.func internal @cohort_grid_wait(%arrived: !llvm.ptr<1>, %arrivals: i64) {
//!   scf.if %is_first_thread {
//!     scf.while … // until as many have arrived
//!     llvm.fence syncscope("device") acq_rel
//!   }
//!   gpu.barrier
//!   llvm.return
//! }
//! llvm.func internal @cohort_cluster_arrive() {
//!   gpu.barrier
//!   nvvm.cluster.arrive {aligned}
//!   llvm.return
//! }
//! llvm.func internal @cohort_cluster_wait() {
//!   nvvm.cluster.wait {aligned}
//!   gpu.barrier
//!   llvm.return
//! }
//! llvm.func internal @k$0$block(%arguments: !llvm.ptr<3>, %x: i64, %y: i64) {
//!   %rows = llvm.load %arguments : !llvm.ptr<3> -> i64
//!   …
//!   llvm.return
//! }
//! gpu.func @k$0(…) kernel { … }
//! ```
//!
//! A long body is marked `always_inline`: LLVM would leave it a function, which is called, and the flush's shared memory
//! one of the module. Short ones it writes out without that, and optimises before it does.
//!
//! The number of the thread is masked by what is always zero, so that what each function makes of it stays
//! with that function; see `thread_of_block`.
//!
//! What a block wrote before it arrived, all blocks see behind the wait: the block's own barrier orders it before
//! the fence of its first thread, the count orders that before the fence of the first threads of the others,
//! and these before what their blocks read. Loads that a cache may keep from before (`ld.global.nc`) there
//! are none. What is read between arriving and waiting nobody writes.
//!
//! Part of the way to PTX, not of the pipeline: the simulator calls the kernels' functions themselves.
//! Requires: what `persistence` leaves. Leaves: level 3; a module without such functions as it is.

use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, extend_block, extend_op, operands_of,
    region_with_block, result_of,
};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks::ONLY_IN_FLUSH;
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{
    callee_of, clone_region, defining_op, erase, integer_attribute, move_before, name_attribute,
    nested_ops, replace_uses, replace_uses_except, set_attribute, symbol_of, top_level,
};
use melior::{
    Context,
    dialect::llvm::r#type,
    ir::{
        Attribute, BlockLike, OperationRef, Region, RegionLike, Type, ValueLike,
        attribute::{
            DenseI32ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute, StringAttribute,
            TypeAttribute,
        },
        operation::OperationLike,
    },
};

use super::lower_kernels_to_gpu::function::shared_of;
use super::lower_kernels_to_gpu::ops::{barrier, thread};
use super::lower_kernels_to_gpu::site::memory;
use super::persistence::{
    BLOCK_OF, CLUSTER_ARRIVE, CLUSTER_WAIT, CLUSTERS, FLUSH, GRID_ARRIVE, GRID_WAIT, IN_CLUSTER,
    SHARED_FROM,
};
use crate::emit::Emitter;

/// The pass `expand-flush`.
pub const PASS: PassInfo = PassInfo {
    name: "expand-flush",
    summary: "Write out what the function that runs a flush calls, for a card (level 3)",
    description: include_str!("expand_flush.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let modules = top_level(module).into_iter();
    for gpu in modules.filter(|op| Op::GpuModule.is(*op)) {
        let operations = nested_ops(gpu).into_iter();
        let is_call = |op: &OperationRef<'_, '_>| Op::FuncCall.is(*op);
        operations
            .filter(is_call)
            .try_for_each(|call| lower_call(context, call))?;
        for function in top_level(gpu) {
            if !Op::FuncFunc.is(function) {
                continue;
            }
            let of = name_attribute(function, BLOCK_OF);
            match (of, symbol_of(function).as_deref()) {
                (Some(of), _) => write_block(context, gpu, function, &of)?,
                (None, Some(GRID_ARRIVE)) => write_arrive(context, function)?,
                (None, Some(GRID_WAIT)) => write_wait(context, function)?,
                (None, Some(CLUSTER_ARRIVE)) => write_cluster_arrive(context, function)?,
                (None, Some(CLUSTER_WAIT)) => write_cluster_wait(context, function)?,
                (None, _) => {}
            }
        }
        let functions = top_level(gpu).into_iter();
        let only = functions.filter(|op| Op::GpuFunc.is(*op) && op.has_attribute(&ONLY_IN_FLUSH));
        only.for_each(erase);
    }
    Ok(())
}

/// Of operations, from which on LLVM is told to write a body out. It does so unasked up to some 3,500 instructions where
/// a function is called once; loops that it unrolls count as often.
const LONG: usize = 3000;

/// Gives a function that was declared its body. It is one of the `llvm` dialect, which no other module can
/// call: LLVM writes it out where it is called, and nowhere else.
fn define<'c>(
    context: &'c Context,
    declared: OperationRef<'c, 'c>,
    types: &[Type<'c>],
    body: Region<'c>,
) -> Outcome {
    let b = Builder::before(context, declared)
        .ok_or_else(|| error(declared, "expected a function in a module"))?;
    let name = symbol_of(declared).unwrap_or_default();
    let ty = r#type::function(r#type::void(context), types, false);
    let attributes = [
        (keys::SYM_NAME, StringAttribute::new(context, &name).into()),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        (keys::LINKAGE, b.internal_linkage()),
    ];
    let function = b.op(Op::LlvmFunc, &[], &[], &attributes, vec![body]);
    if nested_ops(function).len() > LONG {
        set_attribute(function, keys::ALWAYS_INLINE, b.unit_attr());
    }
    erase(declared);
    Ok(())
}

/// Makes a call one of the `llvm` dialect.
fn lower_call<'c>(context: &'c Context, call: OperationRef<'c, 'c>) -> Outcome {
    let b = Builder::before(context, call);
    let b = b.ok_or_else(|| error(call, "expected a call in a block"))?;
    let operands = operands_of(call);
    let callee = callee_of(call).unwrap_or_default();
    let attributes = [
        (keys::CALLEE, b.symbol(&callee)),
        (
            keys::OPERAND_SEGMENT_SIZES,
            b.i32s(&[operands.len() as i32, 0]),
        ),
        (keys::OP_BUNDLE_SIZES, b.i32s(&[])),
    ];
    b.op(Op::LlvmCall, &operands, &[], &attributes, vec![]);
    erase(call);
    Ok(())
}

fn write_block<'c>(
    context: &'c Context,
    gpu: OperationRef<'c, 'c>,
    declared: OperationRef<'c, 'c>,
    of: &str,
) -> Outcome {
    let mut functions = top_level(gpu).into_iter();
    let found = functions.find(|op| symbol_of(*op).as_deref() == Some(of));
    let function = found.filter(|op| Op::GpuFunc.is(*op));
    let function = function.ok_or_else(|| {
        error(
            declared,
            &format!("expected a function `{of}` in the gpu.module"),
        )
    })?;
    let body = clone_region(function, 0);
    let entry = body.first_block().map(extend_block);
    let first = entry.and_then(|entry| entry.first_operation());
    let (Some(entry), Some(first)) = (entry, first) else {
        return Err(error(function, "expected a function with a body"));
    };
    let b = Builder::before(context, extend_op(first));
    let b = b.ok_or_else(|| error(function, "expected a body"))?;
    let pointer = b.pointer_in(1);
    let e = Emitter {
        pointer,
        ..Emitter::new(b)
    };
    let old = arguments_of(entry);
    let types = [b.pointer_in(3), e.i64, e.i64];
    for ty in types {
        entry.add_argument(ty, function.location());
    }
    let [list, x, y] = arguments_of(entry)[old.len()..] else {
        return Err(error(
            function,
            "internal error: a block without its arguments",
        ));
    };
    let mut operations = Vec::new();
    let mut next = entry.first_operation();
    while let Some(operation) = next {
        let operation = extend_op(operation);
        operations.push(operation);
        operations.extend(nested_ops(operation));
        next = operation.next_in_block();
    }
    let size = function.attribute(&keys::KNOWN_BLOCK_SIZE).ok();
    let size = size.and_then(|size| DenseI32ArrayAttribute::try_from(size).ok());
    let threads = size.and_then(|size| size.element(0).ok()).map(i64::from);
    let thread = thread_of_block(&e, list, threads);
    for (number, argument) in old.iter().enumerate() {
        let at = memory(&e, true).offset_by(list, 8 * number as i64);
        replace_uses(*argument, e.load(at, argument.r#type(), 8));
    }
    for number in (0..old.len()).rev() {
        // SAFETY: the block is alive, and the argument has no uses left.
        unsafe { mlir_sys::mlirBlockEraseArgument(entry.to_raw(), number as u32) };
    }
    let from = integer_attribute(declared, SHARED_FROM).unwrap_or(0);
    let flush = match declared.has_attribute(&IN_CLUSTER) {
        true => CLUSTERS,
        false => FLUSH,
    };
    let shared = [shared_of(of), shared_of(flush)];
    for operation in operations {
        place(context, operation, [x, y, thread], (&shared, from))?;
    }
    define(context, declared, &types, body)
}

/// The number of the thread, of which nobody knows that it is the same for every block: what is computed of
/// it would be taken out of the loop over the blocks, for all functions at once, and there are no registers
/// for all of that.
fn thread_of_block<'c>(e: &Emitter<'c>, list: Val<'c>, threads: Option<i64>) -> Val<'c> {
    let first = memory(e, true).load(list, e.i64, 8);
    // Neither are there as many rows, nor is an address as high.
    let zero = e.shift_right(first, 63);
    // And no block as large. That is known of the number in a function of its own, too.
    let threads = threads
        .filter(|threads| *threads > 0)
        .unwrap_or(MOST_THREADS);
    let mask = threads.unsigned_abs().next_power_of_two() as i64 - 1;
    e.and(e.add(thread(e), zero), mask)
}

/// Makes an operation one of a block that is given its place and its shared memory.
fn place<'c>(
    context: &'c Context,
    operation: OperationRef<'c, 'c>,
    [x, y, thread]: [Val<'c>; 3],
    ([shared, of_flush], from): (&[String; 2], i64),
) -> Outcome {
    let b = Builder::before(context, operation);
    let b = b.ok_or_else(|| error(operation, "expected an operation in a block"))?;
    match Op::of(operation) {
        Some(kind @ (Op::GpuBlockId | Op::GpuThreadId)) => {
            let at = match (kind, GpuDim::of(operation)) {
                (Op::GpuThreadId, Some(GpuDim::X)) => thread,
                (Op::GpuBlockId, Some(GpuDim::X)) => x,
                (Op::GpuBlockId, Some(GpuDim::Y)) => y,
                _ => return Err(error(operation, "not supported yet in a flush: this dim")),
            };
            let result = result_of(operation, 0);
            replace_uses(result, b.index_cast(at, result.r#type()));
            erase(operation);
        }
        Some(Op::LlvmMlirAddressof)
            if name_attribute(operation, keys::GLOBAL_NAME).as_deref() == Some(shared.as_str()) =>
        {
            let flush = FlatSymbolRefAttribute::new(context, of_flush);
            set_attribute(operation, keys::GLOBAL_NAME, flush.into());
            if from > 0 {
                behind(operation, b, from);
            }
        }
        Some(Op::GpuReturn) => {
            b.llvm_return();
            erase(operation);
        }
        _ => {}
    }
    Ok(())
}

/// Makes an address that is given one that lies `bytes` bytes behind it.
fn behind<'c>(operation: OperationRef<'c, 'c>, before: Builder<'c>, bytes: i64) {
    let address = result_of(operation, 0);
    let e = Emitter {
        pointer: address.r#type(),
        ..Emitter::new(before)
    };
    let place = e.offset_by(address, bytes);
    let Some(made) = defining_op(place) else {
        return;
    };
    replace_uses_except(address, place, &[made]);
    move_before(operation, made);
}

/// Of a block.
const MOST_THREADS: i64 = 1024;

/// Gives a function of a barrier of the grid its body, of which the first thread of each block runs a part.
fn write_arrive<'c>(context: &'c Context, declared: OperationRef<'c, 'c>) -> Outcome {
    let b = Builder::before(context, declared)
        .ok_or_else(|| error(declared, "expected a function in a module"))?;
    let types = [b.pointer_in(1)];
    let (region, block) = region_with_block(&types, declared.location());
    let e = Emitter::new(Builder::at_end(context, block, declared.location()));
    let arrived = arguments_of(block)[0];
    barrier(&e);
    e.if_then(is_first_thread(&e), |e| {
        fence(e);
        let add = [
            (keys::BIN_OP, e.b.i64_attr(ADD)),
            (keys::ORDERING, e.b.i64_attr(MONOTONIC)),
            (keys::SYNCSCOPE, device(e)),
        ];
        let one = e.b.integer(1, e.i32);
        e.b.value_with(Op::LlvmAtomicrmw, &[arrived, one], e.i32, &add);
    });
    e.b.llvm_return();
    define(context, declared, &types, region)
}

fn write_wait<'c>(context: &'c Context, declared: OperationRef<'c, 'c>) -> Outcome {
    let b = Builder::before(context, declared)
        .ok_or_else(|| error(declared, "expected a function in a module"))?;
    let types = [b.pointer_in(1), b.i64()];
    let (region, block) = region_with_block(&types, declared.location());
    let e = Emitter::new(Builder::at_end(context, block, declared.location()));
    let arguments = arguments_of(block);
    let (arrived, arrivals) = (arguments[0], arguments[1]);
    e.if_then(is_first_thread(&e), |e| {
        wait(e, arrived, arrivals);
        fence(e);
    });
    barrier(&e);
    e.b.llvm_return();
    define(context, declared, &types, region)
}

/// All threads of a warp come to it together.
fn aligned<'c>(e: &Emitter<'c>) -> (Key<'static>, Attribute<'c>) {
    (keys::ALIGNED, e.b.unit_attr())
}

/// The same of a cluster's barrier, which counts by itself, and orders what threads write and read as their fences would.
fn write_cluster_arrive<'c>(context: &'c Context, declared: OperationRef<'c, 'c>) -> Outcome {
    write_cluster(context, declared, |e| {
        barrier(e);
        e.b.op(Op::NvvmClusterArrive, &[], &[], &[aligned(e)], vec![]);
    })
}

fn write_cluster_wait<'c>(context: &'c Context, declared: OperationRef<'c, 'c>) -> Outcome {
    write_cluster(context, declared, |e| {
        e.b.op(Op::NvvmClusterWait, &[], &[], &[aligned(e)], vec![]);
        barrier(e);
    })
}

fn write_cluster<'c>(
    context: &'c Context,
    declared: OperationRef<'c, 'c>,
    body: impl FnOnce(&Emitter<'c>),
) -> Outcome {
    let b = Builder::before(context, declared)
        .ok_or_else(|| error(declared, "expected a function in a module"))?;
    let (region, block) = region_with_block(&[], declared.location());
    let e = Emitter::new(Builder::at_end(context, block, b.location));
    body(&e);
    e.b.llvm_return();
    define(context, declared, &[], region)
}

fn is_first_thread<'c>(e: &Emitter<'c>) -> Val<'c> {
    e.b.cmpi(CmpiPredicate::Eq, thread(e), e.int(0))
}

/// Of the `llvm` dialect: an addition, and orderings of memory.
const ADD: i64 = 1;
const MONOTONIC: i64 = 2;
const ACQUIRE_RELEASE: i64 = 6;

fn device<'c>(e: &Emitter<'c>) -> Attribute<'c> {
    StringAttribute::new(e.b.context(), "device").into()
}

fn fence(e: &Emitter<'_>) {
    let attributes = [
        (keys::ORDERING, e.b.i64_attr(ACQUIRE_RELEASE)),
        (keys::SYNCSCOPE, device(e)),
    ];
    e.b.op(Op::LlvmFence, &[], &[], &attributes, vec![]);
}

/// Waits until as many blocks have arrived. The fence behind it orders what is read then: a load that acquires would
/// empty the processor's first cache at each turn.
fn wait<'c>(e: &Emitter<'c>, arrived: Val<'c>, arrivals: Val<'c>) {
    let (before, block) = region_with_block(&[], e.b.location);
    let inner = e.within(block);
    let load = [
        (keys::ORDERING, e.b.i64_attr(MONOTONIC)),
        (keys::SYNCSCOPE, device(e)),
        (keys::ALIGNMENT, IntegerAttribute::new(e.i64, 4).into()),
    ];
    let now = inner.b.value_with(Op::LlvmLoad, &[arrived], e.i32, &load);
    let now = inner.b.extui(now, e.i64);
    let is_early = inner.b.cmpi(CmpiPredicate::Slt, now, arrivals);
    inner.b.scf_condition(is_early, &[]);
    let (after, block) = region_with_block(&[], e.b.location);
    e.within(block).b.scf_yield(&[]);
    e.b.scf_while(&[], &[], [before, after]);
}
