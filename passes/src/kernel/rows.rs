//! Row-wise kernels: a graph of the values of one row ([`graph`], made by [`read`]), where values lie
//! ([`layout`]), what a pass over the rows computes ([`body`]), and the walk that a planner makes ([`walk`]).

pub mod body;
pub mod constants;
pub mod graph;
pub mod layout;
pub(crate) mod maps;
pub mod read;
pub(crate) mod scalar_body;
pub mod stage;
mod structured;
mod tensor_ops;
pub mod walk;
