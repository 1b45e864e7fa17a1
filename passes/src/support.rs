//! What passes of every level ask of the IR.

pub mod copies;
pub mod dims;
pub mod extents;
pub mod ir;
pub mod levels;
pub mod origins;
pub mod symbols;
