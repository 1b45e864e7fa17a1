//! Kernels compiled by `lower-kernels`, against sums in `f64`, and bit for bit against themselves
//! on other cuts and orders of the rows.

mod attention;
mod batches;
mod calls;
mod check;
mod clusters;
mod elementwise;
mod flushes;
mod folds;
mod gpu;
mod lists;
mod products;
mod warpgroups;
