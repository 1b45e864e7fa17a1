//! `round-products-bf16`: GPUs may round the factors of products to bf16 (level 2).
//!
//! Writes the module's attribute `cfb.precision = #cfb<precision bf16>`, with which `lower-kernels-to-gpu` computes
//! products on tensor cores: their factors are rounded to 8 bits (a sign, 8 bits of exponent and 7 of fraction),
//! and added up in `f32`. Nothing else of the program is rounded, and the host's code not at all.
//!
//! ```mlir
//! module { … }
//! // becomes
//! module attributes {cfb.precision = #cfb<precision bf16>} { … }
//! ```
//!
//! Part of the pipeline with `--precision bf16` only. Requires: nothing. A module that says another
//! precision, or whose code for GPUs is made already, is refused.

use cohort_passes::pass::{Outcome, PassInfo};
use melior::{Context, ir::OperationRef};

use super::precision;
use cohort_abi::gpu::Precision;

/// The pass `round-products-bf16`.
pub const PASS: PassInfo = PassInfo {
    name: "round-products-bf16",
    summary: "Let GPUs round the factors of products to bf16 (level 2)",
    description: include_str!("round_products_bf16.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    precision::set(context, module, Precision::Bf16)
}
