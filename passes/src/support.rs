//! What passes of every level ask of the IR.

pub(crate) mod concatenations;
pub mod copies;
pub(crate) mod dim_equality;
pub mod dims;
pub(crate) mod ends;
pub(crate) mod functions;
pub mod ir;
pub(crate) mod known;
pub(crate) mod origins;
pub(crate) mod products;
pub mod symbols;
pub mod waves;
