//! The integration tests of the passes: one executable, because each links all of MLIR.

mod ragged;
mod ragged_storage;
