//! Level 2 to level 3 for a GPU.

pub mod binary;
pub mod expand_flush;
pub mod form_clusters;
pub mod form_warpgroups;
pub mod hold_weights;
pub mod keep_rows_bf16;
pub mod lower_gpu_to_host;
pub mod lower_kernels_to_gpu;
mod neighbours;
pub mod persistence;
pub mod plan_kernels_for_gpu;
mod precision;
pub mod round_products_bf16;
pub mod round_products_tf32;
