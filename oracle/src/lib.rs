//! The oracle: a slow, obvious interpreter of the typed program, in f64.
//!
//! It says what a program means. Everything else that runs a program (batched or not, on any
//! device) is compared with it, so it shares no code with the compiler below
//! [`cohort_frontend::program`] and prefers the plain way to the fast one: one instance, one
//! expression at a time, every value checked against its type.
//!
//! ```text
//! text line --decode--> values --eval--> value --encode--> text line
//! ```
//!
//! Floats are f64 throughout, while inputs and weights are the f32 numbers that the compiled
//! program also sees. Integers are i32 and wrap, as in compiled code.

mod compare;
mod decode;
mod encode;
mod error;
mod eval;
mod gradient;
mod limits;
mod oracle;
mod reverse;
mod scalar;
mod seeds;
mod stack;
mod stream;
mod sums;
mod tensor;
mod unique;
mod value;
mod weights;

pub use compare::{Tolerance, compare_outputs};
pub use error::{ErrorKind, InstanceError, WeightsError};
pub use gradient::{Gradient, Question};
pub use limits::Limits;
pub use oracle::Oracle;
pub use scalar::Scalar;
pub use stack::on_large_stack;
pub use stream::{Record, StreamSummary, parse};
pub use sums::{Cotangents, GradientSum};
pub use tensor::{Data, Tensor};
pub use value::Value;
pub use weights::{named_weights, parse_weights, read_weights, unused_weights, weight_shapes};
