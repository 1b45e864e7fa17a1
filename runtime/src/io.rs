//! Instances as they come, results as they go.

pub mod feed;
pub mod input;
#[cfg(any(feature = "arrow", test))]
pub(crate) mod nodes;
pub mod output;
pub mod reorder;
pub(crate) mod shown;
pub mod sink;
