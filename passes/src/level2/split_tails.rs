//! `split-tails`: loops over what differs in length have a main part without masks, and a tail.
//!
//! In a kernel over calls a loop's end is a call's own, and rarely a multiple of what is computed at
//! once. Every vector would have a mask, and every tile of a product would be one at the edge. Loops
//! are split: whole vectors and whole tiles first, then what is left. The kernel says so, with how many
//! elements a vector has:
//!
//! ```mlir
//! cfb.kernel @attend attributes {lengths = [@n], rows = [@n], unit = "calls"} { … }
//! // becomes
//! cfb.kernel @attend attributes {lengths = [@n], ragged.split = 16 : i64, rows = [@n], unit = "calls"} { … }
//! ```
//!
//! `lower-kernels` writes both parts; without the mark there is one loop, with masks throughout. What is
//! computed is the same, bit for bit: a masked lane adds nothing, and a tile at the edge sums in the
//! order of any other.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1: loop splitting and operation splitting.
//! `ragged-split-loops` does the same to loops that programs have as such. Requires: level 2.
//! Leaves: level 2.

use cohort_dialects::builder::name_of;
use melior::{
    Context,
    ir::{OperationRef, attribute::IntegerAttribute, r#type::IntegerType},
};

use crate::kernel::calls::{self, SPLIT};
use crate::kernel::rows::layout::LANES;
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{set_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "split-tails",
    summary: "Split loops of differing length into a main part without masks and a tail",
    description: include_str!("split_tails.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for kernel in top_level(module) {
        if name_of(kernel) == "cfb.kernel" && calls::is_over_calls(kernel) {
            let ty = IntegerType::new(context, 64).into();
            set_attribute(kernel, SPLIT, IntegerAttribute::new(ty, LANES).into());
        }
    }
    Ok(())
}
