//! `split-tails`: loops over what differs in length have a main part without masks, and a tail.
//!
//! In a per-instance kernel a loop's end is a call's own, and rarely a multiple of what is computed at
//! once. Every vector would have a mask, and every tile of a product would be one at the edge. Loops
//! are split: whole vectors and whole tiles first, then what is left. The stages of a call say so, with how many
//! elements a vector has:
//!
//! ```mlir
//! ragged.calls grain 16 shared 0 { … }
//! // becomes
//! ragged.calls split 16 grain 16 shared 0 { … }
//! ```
//!
//! `lower-kernels` writes both parts; without it there is one loop, with masks throughout. What is
//! computed is the same, bit for bit: a masked lane adds nothing, and a tile at the edge sums in the
//! order of any other. On a GPU calls are cut into tiles, and nothing is split.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1: loop splitting and operation splitting. Requires: the
//! loop level, of `plan-kernels`. Leaves: the loop level.

use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, attribute::IntegerAttribute, r#type::IntegerType},
};

use crate::kernel::loop_level::stages_of_calls;
use crate::kernel::rows::layout::LANES;
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::set_attribute;

/// The pass `split-tails`.
pub const PASS: PassInfo = PassInfo {
    name: "split-tails",
    summary: "Split loops of differing length into a main part without masks and a tail (loop level)",
    description: include_str!("split_tails.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for calls in stages_of_calls(module) {
        let ty = IntegerType::new(context, 64).into();
        set_attribute(calls, keys::SPLIT, IntegerAttribute::new(ty, LANES).into());
    }
    Ok(())
}
