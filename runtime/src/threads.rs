//! Stacks and threads: fibers of instances, strands within one, and the pool that launches are divided over.

pub mod fiber;
pub mod share;
pub(crate) mod strands;
pub mod thread;
pub(crate) mod thread_pool;
