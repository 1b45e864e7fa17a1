//! Level 2: passes over batched kernels and the control program that calls them.

pub mod accumulate_products;
pub mod balance_branches;
pub mod explain_batching;
pub mod fork_join;
pub mod fuse_products;
pub mod hoist_arguments;
pub mod specialise_kernels;
pub mod structure_only;
