//! What every family of expressions means, by programs built by hand and results computed by
//! hand; and how the oracle reads, limits and writes instances.

mod arrays;
mod build;
mod control;
mod encodings;
mod gradient_goldens;
mod gradients;
mod limits;
mod models;
mod scalars;
mod tensors;
mod weights;
