//! Training: changes a program's parameters by the gradients of its losses. Knows neither compiler nor
//! runtime; gradients are computed behind the trait [`Step`].
//!
//! ```text
//! instances ──order──► mini-batch ──Step──► losses, gradients ──clip──► optimiser ──► parameters
//!                          ▲                    │                                        │
//!                          └───────── Trainer ──┴─► Record (log, plot)    checkpoint ◄───┘
//! ```
//!
//! Everything that is computed here is a function of the settings, the data and the gradients alone: numbers
//! that look random are counted out by [`random`], sums are added up in one order, and no function of
//! the system's mathematical library is called.

pub mod checkpoint;
pub mod criterion;
mod error;
pub mod fingerprint;
pub mod gradients;
pub mod groups;
pub mod init;
pub mod instances;
pub mod log;
pub mod optimiser;
pub mod order;
pub mod parameters;
pub mod plot;
pub mod random;
pub mod schedule;
pub mod scores;
pub mod settings;
pub mod state;
pub mod step;
pub mod trainer;

pub use error::Error;
pub use gradients::{Gradient, Gradients};
pub use instances::Instance;
pub use parameters::{Changed, Data, Parameter, Parameters};
pub use scores::{Outcome, Scores, Totals};
pub use settings::Settings;
pub use state::State;
pub use step::{Evaluate, Interrupt, Step, StepError};
pub use trainer::{Ending, Trainer, Watcher};
