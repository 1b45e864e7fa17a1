//! Code for a target: what plans kernels as loops for it, what makes code of loops, on the host ([`cpu`]) and as
//! CUBIN ([`gpu`]), and of the control program ([`lower_control`]); and the [`pipeline`] that puts these passes
//! behind those of `cohort-passes`, which know no target.
//!
//! ```text
//! level 2 --plan-kernels--> loops --lower-kernels--> level 3
//!    \--------------------------------lower-control--/
//! ```

pub mod cpu;
mod emit;
mod generic_body;
pub mod gpu;
pub mod lower_control;
pub mod math;
pub mod pipeline;
mod plan_calls;
mod plan_rows;
mod powers;
mod read_rows;
mod variables;
