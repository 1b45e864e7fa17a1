//! The loop level: passes that transform kernels there.

pub mod apply_tuning;
pub mod bound_masks;
pub mod divide_calls;
pub mod fuse_launches;
pub mod fuse_rows;
pub mod hoist_lengths;
pub mod online_folds;
pub mod split_tails;
