//! Loops of the `ragged` dialect: passes that transform them, and those that lower them.

mod index;
mod launches;
mod layout;
mod nest;
pub mod ragged_fuse_loops;
pub mod ragged_hfuse_loops;
pub mod ragged_lower_loops;
pub mod ragged_lower_prelude;
pub mod ragged_lower_storage;
pub mod ragged_remap_loops;
pub mod ragged_split_loops;
mod rules;
mod tables;
