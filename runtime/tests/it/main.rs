//! The runtime with hand-written functions in the place of compiled code.
//!
//! One executable, one module a subject; [`program`] holds the programs.

mod artifacts;
mod batching;
mod call_cache;
mod deciding;
mod devices;
mod engines;
mod explain;
mod failures;
mod flushes;
mod inputs;
mod manifests;
mod outputs;
mod program;
mod programs_and_weights;
mod ragged;
mod ragged_program;
mod serving;
mod smoke;
mod strands;
mod verify;
mod walk;
