//! What the end-to-end tests are made of; the tests themselves are in `tests/it/`.
//!
//! They run the built tools as subprocesses, as a user does, and compare what comes out with
//! goldens and with the oracle. Nothing here links MLIR. Inputs, weights and whole programs come
//! from generators with a seed, so a failure can be repeated.

pub mod browser;
pub mod differences;
pub mod http;
pub mod instances;
pub mod losses;
pub mod model;
pub mod operations;
pub mod paths;
pub mod programs;
pub mod records;
pub mod rng;
pub mod running;
pub mod tools;
pub mod weights;

pub use model::{Compiled, Model};
pub use rng::Rng;
pub use running::Running;
pub use tools::{BatchRun, Outcome};
