//! Below level 2: kernels and the control program become code, on the host ([`cpu`]) and as CUBIN ([`gpu`]).

pub mod cpu;
pub(crate) mod emit;
pub(crate) mod generic_body;
pub mod gpu;
pub mod lower_control;
pub(crate) mod plan_calls;
mod plan_rows;
pub(crate) mod powers;
mod read_rows;
pub(crate) mod variables;
