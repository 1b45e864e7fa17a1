//! What can go wrong, by whose fault it is: one instance's, or the weights file's.

use std::fmt;

/// The `kind` of an error record. The names are shared with the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The input line is not JSON, or not what the entry's types ask for.
    BadInput,
    /// An index is below zero, or not below the length; the message has both.
    IndexOutOfRange,
    /// Two arrays that are gone through together differ in length.
    LengthMismatch,
    /// Dims that must be equal are not.
    ShapeMismatch,
    /// A division of integers by zero.
    DivisionByZero,
    /// A tensor that decides the instance's path is not a number, or was made by comparing one.
    NanDecision,
    /// A call is nested too deeply, see [`crate::Limits`].
    DepthLimit,
    /// Too many turns of loops and calls, see [`crate::Limits`].
    StepLimit,
    /// A tensor or an array is too large, see [`crate::Limits`].
    MemoryLimit,
    /// What should be differentiated is not a number, or infinite.
    LossNotFinite,
    /// The program contradicts itself: a fault of the checker or of the oracle, not of the input.
    Internal,
}

impl ErrorKind {
    /// Its name in an error record.
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
            ErrorKind::MemoryLimit => "memory_limit",
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
    /// Which of the errors that a program can meet.
    pub kind: ErrorKind,
    /// What was wrong, with the numbers that were.
    pub message: String,
}

impl InstanceError {
    /// An error of this kind.
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
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Its name.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file has another format.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// A tensor's elements have no counterpart in the language.
    #[error("tensor `{name}` has the type {found}, which no parameter can have")]
    UnsupportedType {
        /// The tensor's name.
        name: String,
        /// Its type, as the file has it.
        found: String,
    },
    /// A number is lost where it is held as the parameter's type.
    #[error("tensor `{name}` holds {value}, which {elem} does not hold exactly")]
    Inexact {
        /// The tensor's name.
        name: String,
        /// The first such number.
        value: String,
        /// The parameter's type.
        elem: &'static str,
    },
    /// A parameter has no tensor in the file.
    #[error("the weights have no tensor `{name}`")]
    Missing {
        /// The tensor's name.
        name: String,
    },
    /// A parameter's tensor has another shape or type.
    #[error("tensor `{name}` is {found}, but the program declares {expected}")]
    Mismatch {
        /// The tensor's name.
        name: String,
        /// Type and shape of the parameter.
        expected: String,
        /// Those of the tensor.
        found: String,
    },
}
