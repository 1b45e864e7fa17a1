//! `fuse-rows`: the rows of all calls of a row-wise kernel are one loop.
//!
//! A kernel whose unit is the row computes rows that do not need each other, some number for each call:
//! a loop over the calls of a batch, and in it one over a call's rows, block by block. The two are fused:
//!
//! ```mlir
//! ragged.blocks of 96 tile 12 { … }
//! // becomes
//! ragged.blocks fused of 96 tile 12 { … }
//! ```
//!
//! `lower-kernels` passes it on in the kernel's description (`fused` of `CallShape`), and the runtime
//! launches the kernel over the rows of all calls at once. Without it it does so call by call: what
//! does not fill a tile at the end of each call is computed by narrower code, and weights go through the
//! cache once a call. The maps between a fused index and a call's own are the index lists that the
//! runtime writes where rows do not lie one behind another. Bits are the same either way. On a GPU rows are
//! always fused.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1 and §5.1: fusing two loops of which the inner one's
//! length depends on the outer. Requires: the loop level, of `plan-kernels`. Leaves: the loop level.

use cohort_dialects::builder::Op;
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::kernel::loop_level::kernels;
use crate::pass::{Outcome, PassInfo};
use crate::support::dims;
use crate::support::ir::set_attribute;

/// The pass `fuse-rows`.
pub const PASS: PassInfo = PassInfo {
    name: "fuse-rows",
    summary: "Fuse the loops over calls and over their rows in row-wise kernels (loop level)",
    description: include_str!("fuse_rows.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for [kernel, blocks] in kernels(module) {
        let lengths = dims::lengths(kernel);
        if Op::RaggedBlocks.is(blocks) && !lengths.is_empty() {
            set_attribute(blocks, keys::FUSED, Attribute::unit(context));
        }
    }
    Ok(())
}
