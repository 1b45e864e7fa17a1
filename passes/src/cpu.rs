//! Passes for the CPU.

mod lower_calls;
pub mod lower_kernels;
