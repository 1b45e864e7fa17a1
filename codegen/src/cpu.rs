//! Passes for the CPU.

pub mod keep_weights_bf16;
pub(crate) mod lower_calls;
pub mod lower_kernels;
pub(crate) mod micro_kernels;
pub mod plan_kernels;
mod registers;
pub mod round_separately;
pub mod unify_kernels;
