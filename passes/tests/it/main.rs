//! The integration tests of the passes: one executable, because each links all of MLIR.

mod jit;
mod kernels;
mod ragged;
mod ragged_storage;
mod simulator;
