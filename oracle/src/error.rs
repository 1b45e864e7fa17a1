//! What can go wrong, by whose fault it is: one instance's, or the weights file's.

use std::fmt;

/// The `kind` of an error record. The names are shared with the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The input line is not JSON, or not what the entry's types ask for.
    BadInput,
    IndexOutOfRange,
    LengthMismatch,
    /// Dims that must be equal are not.
    ShapeMismatch,
    DivisionByZero,
    /// A tensor that decides the instance's path is not a number, or was made by comparing one.
    NanDecision,
    DepthLimit,
    StepLimit,
    /// What should be differentiated is not a number, or infinite.
    LossNotFinite,
    /// The program contradicts itself: a fault of the checker or of the oracle, not of the input.
    Internal,
}

impl ErrorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::BadInput => "bad_input",
            ErrorKind::IndexOutOfRange => "index_out_of_range",
            ErrorKind::LengthMismatch => "length_mismatch",
            ErrorKind::ShapeMismatch => "shape_mismatch",
            ErrorKind::DivisionByZero => "division_by_zero",
            ErrorKind::NanDecision => "nan_decision",
            ErrorKind::DepthLimit => "depth_limit",
            ErrorKind::StepLimit => "step_limit",
            ErrorKind::LossNotFinite => "loss_not_finite",
            ErrorKind::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why one instance has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct InstanceError {
    pub kind: ErrorKind,
    pub message: String,
}

impl InstanceError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> InstanceError {
        InstanceError {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn internal(message: impl Into<String>) -> InstanceError {
        InstanceError::new(ErrorKind::Internal, message)
    }
}

/// Why a weights file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error("cannot read {path}: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    #[error("tensor `{name}` has the type {found}, which no parameter can have")]
    UnsupportedType { name: String, found: String },
    #[error("tensor `{name}` holds {value}, which {elem} does not hold exactly")]
    Inexact {
        name: String,
        value: String,
        elem: &'static str,
    },
    #[error("the weights have no tensor `{name}`")]
    Missing { name: String },
    #[error("tensor `{name}` is {found}, but the program declares {expected}")]
    Mismatch {
        name: String,
        expected: String,
        found: String,
    },
}
