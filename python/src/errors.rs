//! Errors of the runtime as exceptions, whose classes `cohort._errors` has.

use cohort_runtime::{Error, InstanceError};
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The exception that an error of a run or of a load is.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = in_python(&error.to_string());
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

/// The exception that the error of an instance without an id of its own is, by its place.
pub fn instance_exception(py: Python<'_>, error: &InstanceError, index: usize) -> PyErr {
    let arguments = (error.kind, index + 1, in_python(&error.message), index);
    made(class(py, "InstanceError").and_then(|class| class.call1(arguments)))
}

/// The options of `batch-opt` and `batch-run` that are arguments in Python, and these.
const ARGUMENTS: [(&str, &str); 14] = [
    ("allow-unused-weights", "allow_unused_weights=True"),
    ("batch", "batch="),
    ("device", "device="),
    ("dim", "dims="),
    ("draw", "draw="),
    ("entry", "entry="),
    ("gpu-arch", "gpu_arch="),
    ("gradients", "gradients=True"),
    ("keep-weights", "keep_weights="),
    ("max-depth", "max_depth="),
    ("max-memory", "max_memory="),
    ("max-nodes", "max_nodes="),
    ("max-steps", "max_steps="),
    ("threads", "threads="),
];

/// A message whose options are as Python has them: `--device cuda` is `device="cuda"`.
#[pyfunction]
pub fn in_python(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("--") {
        let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let end = after.find(|letter| !is_of_name(letter));
        let (option, then) = after.split_at(end.unwrap_or(after.len()));
        text.push_str(before);
        rest = then;
        let Some((_, argument)) = ARGUMENTS.iter().find(|(name, _)| *name == option) else {
            text.push_str(&format!("--{option}"));
            continue;
        };
        text.push_str(argument);
        // Where the option is quoted as a whole, its value is too.
        let value = then
            .strip_prefix([' ', '='])
            .filter(|_| before.ends_with('`'));
        if let Some((value, _)) = value.and_then(|value| value.split_once('`')) {
            text.push_str(&match value.split_once('=') {
                Some((name, number)) => format!("{{\"{name}\": {number}}}"),
                None => format!("\"{value}\""),
            });
            rest = &then[1 + value.len()..];
        }
    }
    text + rest
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("cohort._errors")?.getattr(name)
}

fn of_class(py: Python<'_>, name: &str, message: String) -> PyErr {
    made(class(py, name).and_then(|class| class.call1((message,))))
}

fn made(exception: PyResult<Bound<'_, PyAny>>) -> PyErr {
    match exception {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The thread of the session is gone, which only a bug can do.
pub fn owner_ended() -> PyErr {
    PyRuntimeError::new_err("internal error, please report it: the thread of the model ended")
}
