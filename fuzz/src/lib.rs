//! Mutated inputs and random programs: what the tools make of what nobody wrote.
//!
//! ```text
//! targets    classes of inputs, each with its corpus: the repository's own examples and tests
//! mutate     changes of an input that know its form: tokens, JSON values, headers, bytes
//! child      one run of a tool in a process of its own, limited in time and memory
//! client     a run of `batch-serve`, and what clients send to it
//! judge      how a run may end, and whether it did
//! programs   random programs, run in every way that there is, which must agree
//! findings   what failed, on disk, as files and a command that repeat it
//! ```
//!
//! `docs/reliability.md` says what is promised and how to run this.

pub mod case;
pub mod child;
pub mod client;
pub mod findings;
pub mod judge;
pub mod mutate;
pub mod programs;
pub mod targets;
