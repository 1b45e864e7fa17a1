//! `online-folds`: softmax-like folds between two products are marked to be computed online.
//!
//! In a kernel over calls, `Σ_j exp(s - max_j s) / Σ_j exp(s - max_j s) · v[j]`, where `s` is computed
//! element by element from a product (a scale, a mask, a bias), needs the scores `s` of a call only
//! a block at a time, if what was summed is rescaled whenever a block raises the maximum. The chain
//! is found by its operations and by what they read; the last product says so then:
//!
//! ```mlir
//! %p = linalg.batch_matmul ins(%q, %kt : …) outs(%zero : …) -> tensor<?x?x?xf32, #s>
//! %s = arith.mulf %p, %scale : tensor<?x?x?xf32, #s>
//! %m = linalg.reduce { arith.maximumf } ins(%s : …) outs(%low : …) dimensions = [2]
//! … exp(%s - %m) / its sum over dim 2 …
//! %o = linalg.batch_matmul ins(%w, %v : …) outs(%zero : …) -> tensor<?x?x64xf32, #o>
//! // becomes
//! %o = linalg.batch_matmul {ragged.online} ins(%w, %v : …) outs(%zero : …) -> tensor<?x?x64xf32, #o>
//! ```
//!
//! `lower-kernels` computes such a product without the scores ever being in memory. Without the
//! mark, the folds are computed for each row where they are read, scores and all.
//!
//! The first product's depth and the second's columns are known numbers; the folds start from zero
//! and from minus infinity. Sums are added block by block, counted from the call's own first row, so
//! a row's bits depend on its call alone.
//!
//! After Milakov and Gimelshein (Online Normalizer Calculation for Softmax, 2018, algorithm 3) and
//! Dao et al. (FlashAttention, 2022, algorithm 1). Requires: level 2. Leaves: level 2.

use cohort_dialects::builder::name_of;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::kernel::calls;
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{set_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "online-folds",
    summary: "Mark softmax-like folds between products to be computed block by block",
    description: include_str!("online_folds.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for kernel in top_level(module) {
        if name_of(kernel) != "cfb.kernel" || !calls::is_over_calls(kernel) {
            continue;
        }
        for operation in calls::online_chains(kernel)? {
            set_attribute(operation, calls::ONLINE, Attribute::unit(context));
        }
    }
    Ok(())
}
