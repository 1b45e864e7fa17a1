//! Level 2 to level 3 for a GPU.

pub mod binary;
pub mod lower_gpu_to_host;
pub mod lower_kernels_to_gpu;
