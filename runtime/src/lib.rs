//! Runs compiled programs; knows nothing of MLIR.
//!
//! # From a file of instances to a file of results
//!
//! ```text
//! Session
//!  ├ program   what was compiled, its manifest and its weights, all checked before they are used
//!  ├ io        JSON Lines, or another source -> slots and rows that the control program reads, and back
//!  ├ threads   fibers, on which compiled code runs and may be given up; the threads that share work
//!  ├ engine    the instances that are alive, when tensors decide their paths
//!  ├ instance  one of them: its strands, its decisions, what it guesses
//!  ├ recorder  what compiled code calls: kernel calls become entries of a log, grouped in buckets
//!  ├ call_cache  calls on rows of parameters, which are computed once
//!  ├ reuse     recordings of instances by their structure
//!  ├ schedule  the order of the buckets
//!  ├ execute   handles -> row indices, kernels over ranges of rows, threads
//!  ├ device    the same on a graphics card, or on a simulator of one
//!  ├ memory    the rows: parameters, inputs, results, one growing block a row pool
//!  └ report    statistics, profiles, what may be explained of a run
//!
//! serving::Engine, a session in a thread of its own: instances one at a time, from any thread
//! ```
//!
//! # Vocabulary
//!
//! * An *instance* is one line of the input; a *batch* is as many of them as are recorded before
//!   one *flush*, which runs every recorded call.
//! * A *call* is one application of a kernel to operands; a *bucket* is all calls of a batch with
//!   the same kernel and depth; a *launch* is one bucket handed to its kernel.
//! * A *row pool* is all rows of one shape and element type; a *handle* names a row that may not be
//!   computed yet ([`cohort_abi::Handle`]).
//!
//! Start at [`Session`]; [`CompiledCode`] is what the compiler, an artifact or a test provides.

pub mod backward;
pub mod call_cache;
pub mod device;
pub mod engine;
pub mod error;
pub mod execute;
pub mod failure;
pub mod instance;
pub mod io;
pub mod late;
pub mod limits;
pub mod locks;
pub mod memory;
pub mod program;
pub mod recorder;
pub mod report;
mod reuse;
pub mod schedule;
pub mod serving;
pub mod session;
pub mod speculation;
pub mod symbols;
pub mod threads;
pub mod verify;

pub use cohort_abi as abi;
pub use error::{Error, Fault};
pub use failure::InstanceError;
pub use io::input::InputStream;
pub use limits::Limits;
pub use program::Artifact;
pub use program::code::{CompiledCode, Program};
pub use program::pack::Changed;
pub use program::weights::{WeightShape, WeightShapes, Weights};
pub use report::Progress;
pub use report::stats::Stats;
pub use schedule::Policy;
pub use session::{Batch, Config, Session};
pub use symbols::abi_symbols;
