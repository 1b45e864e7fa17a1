//! Reads row-wise kernels at the loop level, for every target: what they declare, and the stages that all have.

pub mod body;
pub mod folds;
pub mod kernel;
pub mod loops;
pub mod memory;
