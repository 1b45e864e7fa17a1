//! Stacks and threads: the fibers that compiled code runs on, and the pool that launches are divided over.

pub mod fiber;
pub mod share;
pub mod thread;
pub(crate) mod thread_pool;
