//! The passes of the compiler: one file a pass, one file a pipeline.
//!
//! A pass `foo-bar` is `foo_bar.rs` and is tested in `test/passes/foo-bar/`.

pub mod accumulate_products;
pub mod balance_branches;
pub mod batch_blocks;
pub mod calls;
pub mod cpu;
pub mod differentiate_blocks;
pub mod explain_batching;
pub mod extents;
pub mod find_phases;
pub mod fork_join;
pub mod form_blocks;
pub mod fuse_products;
pub mod gpu;
pub mod guard_decisions;
pub mod hoist_constants;
pub mod hoist_invariants;
pub mod hoist_operators;
pub mod ir;
pub mod keep_functions;
pub mod keep_operators;
pub mod kernel_description;
pub mod levels;
pub mod limit_inlining;
pub mod lower_control;
pub mod mark_recursive;
pub mod operand_reuse;
pub mod pass;
pub mod pipeline;
pub mod powers;
pub mod ragged;
pub mod recognise_reductions;
pub mod resolve_dims;
pub mod row_products;
pub mod share_slices;
pub mod specialise_functions;
pub mod split_products;
pub mod static_depth;
pub mod unroll_loops;
