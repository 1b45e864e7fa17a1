//! `keep-operators`: each tensor operation is a unit of scheduling by itself (level 0).
//!
//! Writes the module's attribute `cfb.granularity = #cfb<granularity operator>`, which makes `form-blocks` put each
//! tensor operation into a block of its own, with the constants, slices, reshapes and broadcasts
//! that only say how its operands are read. Nothing is fused, as in a framework that batches
//! operator by operator.
//!
//! ```mlir
//! module { … }
//! // becomes
//! module attributes {cfb.granularity = #cfb<granularity operator>} { … }
//! ```
//!
//! Part of the pipeline with `--granularity operator` only. Requires: level 0. After "just-in-time
//! dynamic batching" (granularity of batching).

use cohort_dialects::enums::{DialectEnum, Granularity};
use melior::{Context, ir::OperationRef};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::set_attribute;
use cohort_dialects::marks::GRANULARITY;

/// The pass `keep-operators`.
pub const PASS: PassInfo = PassInfo {
    name: "keep-operators",
    summary: "Make each tensor operation a unit of scheduling (level 0)",
    description: include_str!("keep_operators.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    set_attribute(
        module,
        GRANULARITY,
        Granularity::Operator.attribute(context),
    );
    Ok(())
}
