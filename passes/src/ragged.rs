//! Passes over the `ragged` dialect.

pub mod bound_masks;
pub mod fuse_rows;
pub mod hoist_lengths;
mod index;
mod launches;
mod layout;
mod loops;
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
