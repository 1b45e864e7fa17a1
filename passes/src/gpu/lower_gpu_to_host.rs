//! `lower-gpu-to-host`: the functions of the `gpu.module` as functions of the host (level 3).
//!
//! The very code that would run on a GPU runs here without one: each `gpu.func` becomes a function
//! that runs *one thread*, of the ABI's `SimFn` signature (`runtime/abi/src/gpu.rs`). Whoever calls
//! it keeps a fiber for each thread of a block and goes on to the next thread wherever one calls
//! `cohort_sim_barrier`. So indices, barriers and numbers can be checked on any machine; speed can
//! not.
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
//! Requires: what `lower-kernels-to-gpu` leaves, the descriptions taken off by `lower-control` or not.
//! Leaves: no `gpu` operation and one address space. Limits: other operations of `gpu` than those
//! above are refused.

use cohort_abi::gpu::BARRIER;
use cohort_dialects::builder::{
    Builder, Val, arguments_of, extend_block, name_of, operands_of, result_of, results_of,
};
use melior::{
    Context,
    ir::{
        BlockLike, BlockRef, OperationRef, RegionLike, Type, ValueLike,
        attribute::{
            DenseI32ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute, StringAttribute,
            TypeAttribute,
        },
        operation::OperationLike,
        r#type::{FunctionType, TypeLike},
    },
};

use crate::ir::{
    blocks_of, clone_region, erase, name_attribute, nested_ops, replace_uses, set_type, top_level,
};
use crate::pass::{Outcome, PassInfo, error};

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
}

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let modules: Vec<_> = top_level(module)
        .into_iter()
        .filter(|op| name_of(*op) == "gpu.module")
        .collect();
    let mut declared = false;
    for gpu in modules {
        let builder = Builder::before(context, gpu)
            .ok_or_else(|| error(gpu, "expected a gpu.module in a module"))?;
        for function in top_level(gpu) {
            match name_of(function).as_str() {
                "gpu.func" => {
                    if !std::mem::replace(&mut declared, true) {
                        declare_barrier(context, &builder);
                    }
                    lower(context, &builder, function)?;
                }
                // Shared memory, which the caller gives.
                "llvm.mlir.global" => {}
                name => {
                    let message = format!("not supported yet on the host: `{name}`");
                    return Err(error(function, &message));
                }
            }
        }
        erase(gpu);
    }
    Ok(())
}

fn declare_barrier<'c>(context: &'c Context, builder: &Builder<'c>) {
    let ty: Type<'c> = FunctionType::new(context, &[builder.ty("!llvm.ptr")], &[]).into();
    builder.op(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(context, BARRIER).into()),
            ("function_type", TypeAttribute::new(ty).into()),
            (
                "sym_visibility",
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
) -> Outcome {
    let name = name_attribute(function, "sym_name").unwrap_or_default();
    let pointer = builder.ty("!llvm.ptr");
    let i64 = builder.ty("i64");
    let types = [pointer, i64, i64, i64, pointer, pointer];
    let ty: Type<'c> = FunctionType::new(context, &types, &[]).into();
    let region = clone_region(function, 0);
    let entry = region.first_block().map(extend_block);
    let entry = entry.ok_or_else(|| error(function, "expected a function with a body"))?;
    let lowered = builder.at(function.location()).op(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(context, &name).into()),
            ("function_type", TypeAttribute::new(ty).into()),
        ],
        vec![region],
    );
    replace_arguments(context, entry, &types, lowered)
}

/// Gives the body the new arguments, and what it had as arguments, loaded from their list.
fn replace_arguments<'c>(
    context: &'c Context,
    entry: BlockRef<'c, 'c>,
    types: &[Type<'c>],
    function: OperationRef<'c, 'c>,
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
        let elem = TypeAttribute::new(b.ty("i8")).into();
        let attributes = [("elem_type", elem), ("rawConstantIndices", offset)];
        let at = b.value_with(
            "llvm.getelementptr",
            &[new.arguments],
            types[0],
            &attributes,
        );
        let alignment = IntegerAttribute::new(types[1], 8).into();
        let value = b.value_with("llvm.load", &[at], ty, &[("alignment", alignment)]);
        replace_uses(*argument, value);
    }
    for number in (0..old.len()).rev() {
        // SAFETY: the block is alive, and the argument has no uses left.
        unsafe { mlir_sys::mlirBlockEraseArgument(entry.to_raw(), number as u32) };
    }
    for operation in nested_ops(function) {
        lower_operation(context, operation, new)?;
    }
    Ok(())
}

fn lower_operation<'c>(
    context: &'c Context,
    operation: OperationRef<'c, 'c>,
    new: Arguments<'c>,
) -> Outcome {
    let name = name_of(operation);
    let b = Builder::before(context, operation)
        .ok_or_else(|| error(operation, "expected an operation in a block"))?;
    let replacement = match name.as_str() {
        "gpu.thread_id" | "gpu.block_id" => {
            let dim = operation.attribute("dimension");
            let dim = dim.map(|dim| dim.to_string()).unwrap_or_default();
            let at = match (name.as_str(), dim.as_str()) {
                ("gpu.thread_id", "#gpu<dim x>") => new.thread,
                ("gpu.block_id", "#gpu<dim x>") => new.x,
                ("gpu.block_id", "#gpu<dim y>") => new.y,
                _ => return Err(error(operation, "not supported yet on the host: this dim")),
            };
            let index = result_of(operation, 0).r#type();
            Some(b.value("arith.index_cast", &[at], index))
        }
        "llvm.mlir.addressof" => Some(new.shared),
        "gpu.barrier" => {
            let callee = FlatSymbolRefAttribute::new(context, BARRIER).into();
            b.op(
                "func.call",
                &[new.context],
                &[],
                &[("callee", callee)],
                vec![],
            );
            erase(operation);
            return Ok(());
        }
        "gpu.return" => {
            b.op("func.return", &operands_of(operation), &[], &[], vec![]);
            erase(operation);
            return Ok(());
        }
        _ if name.starts_with("gpu.") => {
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

/// Makes a pointer of any address space one of the host's.
fn one_space<'c>(b: &Builder<'c>, value: Val<'c>) {
    if value.r#type().to_string().starts_with("!llvm.ptr<") {
        set_type(value, b.ty("!llvm.ptr"));
    }
}
