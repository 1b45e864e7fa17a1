//! `hoist-lengths`: a call's lengths and first rows are read once, before its loops.
//!
//! Where the values of a call lie, and how long they are, stands in tables that the runtime makes for
//! each batch. In a kernel over calls, every index into a tensor and every end of a loop needs them,
//! and no compiler behind takes these loads out of loops by itself: what the kernel stores might change
//! the tables, for all that it can see. The kernel says that it does not:
//!
//! ```mlir
//! cfb.kernel @attend attributes {lengths = [@n], rows = [@n], unit = "calls"} { … }
//! // becomes
//! cfb.kernel @attend attributes {lengths = [@n], ragged.hoisted, rows = [@n], unit = "calls"} { … }
//! ```
//!
//! `lower-kernels` then reads both at the start of a call, with the strides that follow from them;
//! without the mark, at each use.
//!
//! After CoRa (Fegade et al., MLSys 2022), §5 and §7.3: accesses to auxiliary data structures are
//! hoisted out of loops. Requires: level 2. Leaves: level 2.

use cohort_dialects::builder::name_of;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::kernel::calls::{self, HOISTED};
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{set_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "hoist-lengths",
    summary: "Read a call's lengths and first rows before its loops",
    description: include_str!("hoist_lengths.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for kernel in top_level(module) {
        if name_of(kernel) == "cfb.kernel" && calls::is_over_calls(kernel) {
            set_attribute(kernel, HOISTED, Attribute::unit(context));
        }
    }
    Ok(())
}
