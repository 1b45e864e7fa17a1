//! `hoist-operators`: work that need not wait for the recursion leaves what does (level 0).
//!
//! A product or a reduction that needs no result of a call, a loop or a match, nor a value that a
//! loop or a recursive function carries from step to step, but is used only by what does, would run
//! with its users, step after step. It is marked `cfb.hoisted`, and `form-blocks` makes it part of a
//! block of its own: the block has a static depth, so that it is batched over all steps and
//! instances at once, and only its result is stored. Operations that are cheaper to repeat than to
//! store are left with their users.
//!
//! ```mlir
//! %r = func.call @f(%x, %n) : (tensor<8xf32>, i32) -> tensor<8xf32>
//! %p = linalg.vecmat ins(%x, %w : …) outs(%z : tensor<8xf32>) -> tensor<8xf32>
//! %s = arith.addf %p, %r : tensor<8xf32>
//! // becomes
//! %r = func.call @f(%x, %n) : (tensor<8xf32>, i32) -> tensor<8xf32>
//! %p = linalg.vecmat {cfb.hoisted} ins(%x, %w : …) outs(%z : tensor<8xf32>) -> tensor<8xf32>
//! %s = arith.addf %p, %r : tensor<8xf32>
//! ```
//!
//! Where tensors decide how a loop or a recursion goes on (`cfb.force`), its steps are recorded one
//! by one, so nothing could be batched over them: there, what is carried counts as known.
//!
//! Requires: level 0 after inlining. Leaves: level 0. After ACRoBat, "operator hoisting" (section
//! on static optimisations).

use std::collections::HashSet;

use cohort_dialects::builder::results_of;
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{op_key, set_attribute, users_of};
use crate::support::waves::{BasicBlock, Role, is_expensive, walk_blocks};
use cohort_dialects::marks::HOISTED;

/// The pass `hoist-operators`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-operators",
    summary: "Mark work that need not wait for the recursion to be a block of its own (level 0)",
    description: include_str!("hoist_operators.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    walk_blocks(module, &mut |block| mark_in(context, block));
    Ok(())
}

fn mark_in<'c>(context: &'c Context, block: &mut BasicBlock<'c>) {
    block.sink(is_expensive);
    let mark = |operation: OperationRef<'c, 'c>| {
        set_attribute(operation, HOISTED, Attribute::unit(context));
    };
    let expensive = |operation: &&OperationRef<'c, 'c>| {
        block.role(**operation) == Some(Role::Tensor) && is_expensive(**operation)
    };
    let wave = |operation: &OperationRef<'c, 'c>| block.waves.get(&op_key(*operation)).copied();
    let mut waves = HashSet::new();
    for operation in block.operations.iter().filter(expensive) {
        if block.first_use(*operation) > wave(operation) {
            mark(*operation);
            waves.insert(wave(operation));
        }
    }
    // What control needs at such a wave, as in a loop, joins the block that is made anyway.
    for operation in block.operations.iter().filter(expensive) {
        let users = results_of(*operation).into_iter().flat_map(users_of);
        let by_control = users
            .into_iter()
            .all(|user| block.role(user) != Some(Role::Tensor));
        if waves.contains(&wave(operation)) && by_control {
            mark(*operation);
        }
    }
}
