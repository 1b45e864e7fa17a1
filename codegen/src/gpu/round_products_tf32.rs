//! `round-products-tf32`: GPUs may round the factors of products to tf32 (level 2).
//!
//! Writes the module's attribute `cfb.precision = #cfb<precision tf32>`, with which `lower-kernels-to-gpu` computes
//! products on tensor cores: their factors are rounded to 11 bits (a sign, 8 bits of exponent and 10 of fraction),
//! and added up in `f32`. Nothing else of the program is rounded, and the host's code not at all.
//!
//! ```mlir
//! module { … }
//! // becomes
//! module attributes {cfb.precision = #cfb<precision tf32>} { … }
//! ```
//!
//! Part of the pipeline with `--precision tf32` only. Requires: nothing. A module that says another
//! precision, or whose code for GPUs is made already, is refused.

use cohort_passes::pass::{Outcome, PassInfo};
use melior::{Context, ir::OperationRef};

use super::precision;
use cohort_abi::gpu::Precision;

/// The pass `round-products-tf32`.
pub const PASS: PassInfo = PassInfo {
    name: "round-products-tf32",
    summary: "Let GPUs round the factors of products to tf32 (level 2)",
    description: include_str!("round_products_tf32.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    precision::set(context, module, Precision::Tf32)
}
