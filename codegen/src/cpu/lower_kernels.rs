//! `lower-kernels`: kernels at the loop level to loops and vectors for the CPU (level 3).
//!
//! Each `ragged.kernel` becomes a `func.func` of the ABI's `KernelFn` signature, with the attribute
//! `cfb.kernel`: a description in JSON (`passes/src/kernel/description.rs`) that `lower-control`
//! moves into the manifest.
//!
//! ```mlir
//! ragged.kernel @cell {
//!   %x = ragged.operand row : memref<?x28xf32>
//!   %h = ragged.result : memref<?x28xf32>
//!   %w = ragged.param @w panels 32 : memref<28x28xf32>
//!   %p = ragged.scratch products 1 : memref<?x32xf32>
//!   ragged.blocks of 96 tile 12 {
//!     ragged.product %x (d0) -> (0) rows 1 k 28 columns 28 with %w row 0 into %p tile 12 : …
//!     ragged.nest over [28] lanes 0 { … }
//!   }
//! }
//! // becomes
//! func.func @cell(%begin: i64, %end: i64, %operands: !llvm.ptr, %results: !llvm.ptr,
//!                 %constants: !llvm.ptr, %scratch: !llvm.ptr) attributes {cfb.kernel = "{…}"} {
//!   scf.for %block = %begin to %end step %c96 : i64 {
//!     // the addresses of the rows of %x, read through its index list, then the product
//!     llvm.call @cohort_product(…)
//!     // the nest, in vectors of sixteen
//!     scf.for %row = … { scf.for %column = … { … vector<16xf32> … } }
//!   }
//!   return
//! }
//! ```
//!
//! Nothing is chosen here: each stage has a file that writes what its operation says, in blocks of as
//! many rows, tiles, vectors and neighbours as it says. Scratch is laid out, and shared by what is not
//! needed at the same time. Products run on micro-kernels, `cohort_product` and what it calls, which are
//! added to the module once.
//!
//! The same row gives the same bits whatever other rows it is computed with: the order of every
//! fold and product depends on nothing but the program.
//!
//! A kernel whose unit is the call (`ragged.calls`) has tensors with ragged dims, and its function goes over
//! calls: each result is written by loops over its dims, which end at the call's own
//! lengths, with folds where their index is known; a product runs on register blocks over panels
//! that are packed into scratch, after Goto and van de Geijn (Anatomy of High-Performance Matrix
//! Multiplication, 2008). See `codegen/src/cpu/lower_calls.rs`.
//!
//! Products are computed by tiles whose sums the processor's registers hold. How many vectors of 16 numbers that is, the
//! module's attribute `cfb.vector_registers` says: 32 (AVX-512) without it, 8 for AVX2 and NEON. Bits do not depend
//! on it. They follow from the target alone, so programs have their code in common: each has the attribute `cfb.library`.
//! A launch of few rows is one thread's, but its products may be shared: where the rows and the weight are large enough,
//! `cohort_share_product` of the runtime is called with the address of the product, and threads that have nothing else to do
//! compute some of the panels. Each panel is computed by one thread, so no bit depends on how many there are.
//! Panels in `bf16` (`keep-weights-bf16`) have tiles of their own, which widen each number as they read it.
//!
//! Requires: the loop level, of `plan-kernels`. Leaves: no kernels; `func`, `scf`, `arith`, `vector`,
//! `llvm`, and of `math` only what the stock conversions lower.

mod compute;
mod fold;
mod frame;
mod function;
mod host_math;
mod loops;
pub(super) mod product;
mod reduce_rows;
pub(super) mod scratch;

use cohort_abi::manifest::WeightFormat;
use cohort_dialects::builder::{Builder, Op};
use cohort_passes::kernel::calls::is_over_calls;
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{blocks_of, erase, top_level};
use melior::{
    Context,
    ir::{OperationRef, operation::OperationLike},
};

use super::{lower_calls, micro_kernels, registers};
use crate::emit::Emitter;

/// The pass `lower-kernels`.
pub const PASS: PassInfo = PassInfo {
    name: "lower-kernels",
    summary: "Make kernels loops and vectors for the CPU (the loop level to level 3)",
    description: include_str!("lower_kernels.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let registers = registers::of_module(module);
    let mut products = Vec::new();
    let mut has_blocks = false;
    let mut has_calls = false;
    for kernel in top_level(module) {
        match Op::of(kernel) {
            Some(Op::RaggedKernel) if is_over_calls(kernel) => {
                has_calls = true;
                has_blocks |= lower_calls::lower(context, kernel)?;
            }
            Some(Op::RaggedKernel) => products.extend(function::lower(context, kernel)?),
            Some(Op::CfbKernel) => {
                return Err(error(
                    kernel,
                    "a kernel is lowered from the loop level; run `plan-kernels` first",
                ));
            }
            _ => continue,
        }
        erase(kernel);
    }
    let body = blocks_of(module).first().copied();
    let end = body.map(|body| Builder::at_end(context, body, module.location()));
    if let Some(end) = end {
        let e = Emitter::new(end);
        for format in [WeightFormat::F32, WeightFormat::Bf16] {
            if products.iter().any(|product| product.format == format) {
                micro_kernels::add_products(&e, registers, format);
            }
        }
        if products.iter().any(|product| product.is_shared) {
            micro_kernels::declare_sharing(&e);
        }
        if has_calls {
            lower_calls::declare_polls(&e);
        }
        if has_blocks {
            micro_kernels::add_blocks(&e, registers);
        }
        host_math::share(&e, module);
    }
    if !crate::math::expand_polynomials(module) {
        return Err(error(
            module,
            "the expansion of transcendental functions did not end",
        ));
    }
    Ok(())
}
