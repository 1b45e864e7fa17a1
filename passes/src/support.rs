//! What passes of every level ask of the IR.

pub mod copies;
pub mod dims;
pub(crate) mod extents;
pub mod ir;
pub mod levels;
pub(crate) mod origins;
pub mod symbols;
