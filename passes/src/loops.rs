//! The loop level: passes that transform kernels there, and those that transform and lower loops which a program
//! has as such.

pub mod apply_tuning;
pub mod bound_masks;
pub mod divide_calls;
pub mod fuse_rows;
pub mod hoist_lengths;
mod index;
mod launches;
mod layout;
mod nest;
pub mod online_folds;
pub mod ragged_fuse_loops;
pub mod ragged_hfuse_loops;
pub mod ragged_lower_loops;
pub mod ragged_lower_prelude;
pub mod ragged_lower_storage;
pub mod ragged_remap_loops;
pub mod ragged_split_loops;
mod rules;
pub mod split_tails;
mod tables;
