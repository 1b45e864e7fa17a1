//! What every target reads of a batched kernel, before any code is written: row-wise kernels as a graph of the
//! values of one row ([`rows`]), per-instance kernels as a graph of the values of one call ([`calls`]).

pub mod calls;
pub mod description;
pub mod reference;
pub mod row_products;
pub(crate) mod rows;
