//! The tests of compiled kernels: one executable, because each links all of MLIR.

mod jit;
mod kernels;
mod math;
mod simulator;
