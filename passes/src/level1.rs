//! Level 1: passes over static blocks: what is known of their operands and of when they run, their gradients,
//! and the way to batched kernels.

pub mod batch_blocks;
pub mod differentiate_blocks;
pub mod find_phases;
pub mod operand_reuse;
pub mod static_depth;
