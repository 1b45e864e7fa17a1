//! What every target reads of a batched kernel, before any code is written: row-wise kernels as a graph of the
//! values of one row ([`rows`]), per-instance kernels as a graph of the values of one call ([`calls`]), and
//! what a kernel at the loop level says of its memory ([`loop_level`]).

pub mod affine;
pub mod call_shape;
pub mod calls;
pub mod description;
pub mod loop_level;
pub mod reference;
pub mod row_products;
pub mod rows;
pub mod schedule;
pub mod tuning;
pub mod variants;
