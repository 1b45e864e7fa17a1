//! Errors of the runtime as exceptions, whose classes `cohort._errors` has.

use cohort_runtime::Error;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The exception that an error of a run or of a load is.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::OpenWeights { .. } | Error::BadWeights { .. } | Error::WeightsMismatch { .. } => {
            of_class(py, "WeightsError", message)
        }
        Error::Artifact { .. } | Error::Version { .. } | Error::MissingSymbol { .. } => {
            of_class(py, "ArtifactError", message)
        }
        Error::Device { .. } => of_class(py, "DeviceError", message),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::Unsupported(_) => PyNotImplementedError::new_err(message),
        Error::Usage(_) => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

fn of_class(py: Python<'_>, name: &str, message: String) -> PyErr {
    let class = py
        .import("cohort._errors")
        .and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1((message,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The thread of the session is gone, which only a bug can do.
pub fn owner_ended() -> PyErr {
    PyRuntimeError::new_err("internal error, please report it: the thread of the model ended")
}
