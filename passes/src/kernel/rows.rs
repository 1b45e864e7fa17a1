//! Row-wise kernels: a graph of the values of one row ([`graph`], made by [`read`]), where values lie
//! ([`layout`]), what a pass over the rows computes ([`body`]), and the walk that a planner makes ([`walk`]).

pub(crate) mod body;
pub(crate) mod constants;
pub(crate) mod graph;
pub(crate) mod layout;
pub(crate) mod maps;
pub(crate) mod read;
pub(crate) mod scalar_body;
pub(crate) mod stage;
mod structured;
mod tensor_ops;
pub(crate) mod walk;
