//! Runs compiled programs; knows nothing of MLIR.
//!
//! # From a file of instances to a file of results
//!
//! ```text
//! Session
//!  ├ input     JSON Lines, or another source -> slots and rows that the control program reads
//!  ├ fiber     a stack of its own, on which compiled code runs and may be given up
//!  ├ engine    the instances that are alive, when tensors decide their paths
//!  ├ recorder  what compiled code calls: kernel calls become entries of a log, grouped in buckets
//!  ├ schedule  the order of the buckets
//!  ├ execute   handles -> row indices, kernels over ranges of rows, threads
//!  ├ device    the same on a graphics card, or on a simulator of one
//!  ├ arena     the rows: parameters, inputs, results, one growing block a row pool
//!  ├ output    slots and rows -> JSON Lines, or numbers as they lie in memory
//!  └ reorder   lines that wait for those of earlier instances
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

mod align;
pub mod arena;
pub mod artifact;
pub mod backward;
mod blame;
pub mod bump;
pub mod call_cache;
pub mod call_form;
pub mod code;
mod computed;
pub mod device;
mod draw;
pub mod engine;
pub mod error;
pub mod execute;
pub mod explain;
pub mod failure;
pub mod feed;
pub mod fiber;
pub mod input;
pub mod instance;
pub mod late;
pub mod limits;
pub mod memory;
#[cfg(any(feature = "arrow", test))]
mod nodes;
mod numbering;
pub mod output;
pub mod pack;
mod parameters;
pub mod profile;
pub mod recorder;
pub mod reorder;
mod reuse;
pub mod rounding;
mod rows;
pub mod schedule;

pub mod serving;
pub mod session;
mod sharing;
mod shown;
pub mod sink;
pub mod slot;
pub mod stats;
mod strands;
mod structure;
pub mod symbols;
pub mod thread;
mod thread_pool;
pub mod trace;
mod validate;
pub mod verify;
pub mod weights;
pub mod workers;

pub use artifact::Artifact;
pub use code::{CompiledCode, Program};
pub use cohort_abi as abi;
pub use error::{Error, Fault};
pub use failure::InstanceError;
pub use input::InputStream;
pub use limits::Limits;
pub use pack::Changed;
pub use schedule::Policy;
pub use session::{Batch, Config, Progress, Session};
pub use stats::Stats;
pub use symbols::abi_symbols;
pub use weights::{WeightShape, WeightShapes, Weights};
