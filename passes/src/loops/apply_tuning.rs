//! `apply-tuning`: kernels get the numbers that were measured to be the best for them.
//!
//! What `plan-kernels` chooses of a kernel's schedule follows from a description of the processor. Where somebody has
//! measured, with `batch-opt --tune` or by hand, the module's attribute `cfb.tuning` says what to choose in its place:
//!
//! ```mlir
//! module attributes {cfb.tuning = {cell_1 = {rows = 48 : i64, tile = 6 : i64}}} {
//!   ragged.kernel @cell_1 {
//!     …
//!     ragged.blocks of 96 tile 12 {
//!       ragged.product … tile 12 : …
//! // becomes
//! module {
//!   ragged.kernel @cell_1 {
//!     …
//!     ragged.blocks of 48 tile 12 {
//!       ragged.product … tile 6 : …
//! ```
//!
//! | choice | what it sets |
//! |---|---|
//! | `rows` | `of` of `ragged.blocks` |
//! | `tile` | `tile` of each `ragged.product`, but for panels of one column |
//! | `width` | `by` of each `ragged.nest` that has vectors of 32 elements |
//! | `product_rows`, `product_columns`, `product_terms` | `rows` and `blocks` of each `ragged.matmul` |
//! | `softmax_rows` | the rows in `blocks` of each `ragged.online_softmax` |
//! | `fused_columns` | how wide `fuse-products` makes products of the same rows; it has done so by now |
//! | `fused_rows` | `fused` of `ragged.blocks`: 1, or 0 for none |
//! | `tails` | `split` of `ragged.calls`: 16, or 0 for none |
//!
//! None of them changes a bit of a result. Kernels are named as in statistics. A choice for a kernel that is not there,
//! or has no place for it, is passed over with a warning: the program is another one than was measured. A number that
//! cannot be is an error.
//!
//! Requires: the loop level, after `online-folds`, `fuse-rows` and `split-tails`; for the CPU's kernels. Leaves: the loop level, for `divide-calls`,
//! whose work items are multiples of the rows of blocks.

use melior::{Context, ir::OperationRef};

use crate::kernel::loop_level::kernels;
use crate::kernel::tuning::{TUNING, Tuning, name_of_kernel};
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::remove_attribute;
use cohort_dialects::diagnostics::emit_warning;

/// The pass `apply-tuning`.
pub const PASS: PassInfo = PassInfo {
    name: "apply-tuning",
    summary: "Give kernels the numbers that were measured to be the best for them (loop level)",
    description: include_str!("apply_tuning.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let tuning = Tuning::of(module)?;
    let kernels = kernels(module);
    for (name, choices) in &tuning.0 {
        let named = kernels.iter().map(|[kernel, _]| *kernel);
        let named: Vec<_> = named
            .filter(|kernel| name_of_kernel(*kernel) == *name)
            .collect();
        if named.is_empty() {
            let message = format!("the tuning is of another program: there is no kernel `{name}`");
            emit_warning(module, &message);
        }
        for (choice, number) in choices {
            let set = named
                .iter()
                .map(|kernel| choice.set(context, *kernel, *number));
            // All of them are set, whichever has a place for it.
            let places = set.filter(|has_place| *has_place).count();
            if let (Some(kernel), 0) = (named.first(), places) {
                let choice = choice.name();
                let message =
                    format!("the tuning is of another program: `{name}` has no `{choice}`");
                emit_warning(*kernel, &message);
            }
        }
    }
    remove_attribute(module, TUNING);
    Ok(())
}
