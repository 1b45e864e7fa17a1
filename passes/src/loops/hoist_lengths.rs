//! `hoist-lengths`: a call's lengths and first rows are read once, before its loops.
//!
//! Where the values of a call lie, and how long they are, stands in tables that the runtime makes for
//! each batch. In a per-instance kernel, every index into a tensor and every end of a loop needs them,
//! and no compiler behind takes these loads out of loops by itself: what the kernel stores might change
//! the tables, for all that it can see. The stages of a call say that it does not:
//!
//! ```mlir
//! ragged.calls split 16 { … }
//! // becomes
//! ragged.calls split 16 hoisted { … }
//! ```
//!
//! `lower-kernels` then reads both at the start of a call, with the strides that follow from them;
//! without it, at each use. On a GPU each block reads those of its call at its start.
//!
//! After CoRa (Fegade et al., MLSys 2022), §5 and §7.3: accesses to auxiliary data structures are
//! hoisted out of loops. Requires: the loop level, of `plan-kernels`. Leaves: the loop level.

use cohort_dialects::keys;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::kernel::loop_level::stages_of_calls;
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::set_attribute;

/// The pass `hoist-lengths`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-lengths",
    summary: "Read a call's lengths and first rows before its loops (loop level)",
    description: include_str!("hoist_lengths.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for calls in stages_of_calls(module) {
        set_attribute(calls, keys::HOISTED, Attribute::unit(context));
    }
    Ok(())
}
