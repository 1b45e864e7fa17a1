//! Passes over the `ragged` dialect.

pub mod bound_masks;
mod index;
mod loops;
pub mod online_folds;
pub mod ragged_fuse_loops;
pub mod ragged_lower_loops;
pub mod ragged_lower_prelude;
pub mod ragged_split_loops;
mod rules;
