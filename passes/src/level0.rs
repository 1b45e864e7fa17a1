//! Level 0: passes over the program of one instance, from those that the frontend makes to its static blocks.

pub mod form_blocks;
pub mod guard_decisions;
pub mod hoist_constants;
pub mod hoist_invariants;
pub mod hoist_lookups;
pub mod hoist_operators;
pub mod keep_functions;
pub mod keep_operators;
pub mod limit_inlining;
pub mod mark_recursive;
pub mod recognise_reductions;
pub mod refactor_recursion;
pub mod resolve_dims;
pub mod share_leaf_products;
pub mod share_slices;
pub mod specialise_constructors;
pub mod specialise_functions;
pub mod split_products;
pub mod unroll_counters;
pub mod unroll_loops;
pub mod unroll_recursion;
