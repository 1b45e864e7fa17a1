//! `fuse-rows`: the rows of all calls of a kernel over rows are one loop.
//!
//! A kernel whose unit is the row computes rows that do not need each other, some number for each call:
//! a loop over the calls of a batch, and in it one over a call's rows. The two are fused, and the
//! kernel says so:
//!
//! ```mlir
//! cfb.kernel @ff attributes {lengths = [@n], operands = ["ragged"], rows = [@n], unit = "rows"} { … }
//! // becomes
//! cfb.kernel @ff attributes {lengths = [@n], operands = ["ragged"], ragged.fused, rows = [@n], unit = "rows"} { … }
//! ```
//!
//! `lower-kernels` passes it on in the kernel's description (`fused` of `CallShape`), and the runtime
//! launches the kernel over the rows of all calls at once. Without the mark it does so call by call: what
//! does not fill a tile at the end of each call is computed by narrower code, and weights go through the
//! cache once a call. The maps between a fused index and a call's own are the index lists that the
//! runtime writes where rows do not lie one behind another. Bits are the same either way.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1 and §5.1: fusing two loops of which the inner one's
//! length depends on the outer. `ragged-fuse-loops` does the same to loops that programs have as such.
//! Requires: level 2. Leaves: level 2.

use cohort_dialects::builder::name_of;
use melior::{
    Context,
    ir::{Attribute, OperationRef, operation::OperationLike},
};

use crate::kernel::calls::FUSED;
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{name_attribute, set_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "fuse-rows",
    summary: "Fuse the loops over calls and over their rows in kernels over rows",
    description: include_str!("fuse_rows.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for kernel in top_level(module) {
        let ragged = kernel.has_attribute("lengths");
        let by_row = name_attribute(kernel, "unit").as_deref() == Some("rows");
        if name_of(kernel) == "cfb.kernel" && ragged && by_row {
            set_attribute(kernel, FUSED, Attribute::unit(context));
        }
    }
    Ok(())
}
