//! Why a run as a whole stopped, and whose fault that is.
//!
//! What goes wrong in one instance is not here: it becomes that instance's error record, see
//! [`crate::failure`].

use std::path::PathBuf;

use crate::device;

/// Who can mend an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A file, an option or the program's weights are not as they must be.
    User,
    /// A correct request that this version cannot serve.
    Unsupported,
    /// A broken promise between the compiler and the runtime: a bug in Cohort.
    Internal,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the input: {0}")]
    ReadInput(std::io::Error),
    #[error("cannot write the output: {0}")]
    WriteOutput(std::io::Error),
    #[error("cannot open {}: {source}", path.display())]
    OpenWeights {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is not a usable safetensors file: {reason}", path.display())]
    BadWeights { path: PathBuf, reason: String },
    #[error("the weights do not fit the program:\n{}", problems.join("\n"))]
    WeightsMismatch { problems: Vec<String> },
    #[error("{0}")]
    Usage(String),
    #[error("cannot get {bytes} bytes of memory for {purpose}: {source}")]
    OutOfMemory {
        purpose: &'static str,
        bytes: u64,
        source: std::io::Error,
    },
    #[error(
        "the program was compiled for version {found} of the runtime, this is version {expected}"
    )]
    Version { expected: u32, found: u32 },
    #[error("the compiled program has no symbol `{symbol}` for {purpose}")]
    MissingSymbol { symbol: String, purpose: String },
    #[error("{} {problem}", path.display())]
    Artifact {
        path: PathBuf,
        problem: Box<crate::artifact::Problem>,
    },
    #[error("cannot run on {device}: {problem}")]
    Device {
        device: String,
        problem: device::Problem,
    },
    /// Instances were recorded together that cannot be computed together.
    #[error("not supported: {0}")]
    BatchTooLarge(String),
    /// The time of a batch is over.
    #[error("the time of a batch is over")]
    Late,
    #[error("not supported: {0}")]
    Unsupported(String),
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

impl Error {
    /// Whether fewer instances at once may well have none.
    pub fn is_of_batch(&self) -> bool {
        matches!(
            self,
            Error::OutOfMemory { .. }
                | Error::BatchTooLarge(_)
                | Error::Late
                | Error::Device {
                    problem: device::Problem::OutOfMemory { .. },
                    ..
                }
        )
    }

    pub fn fault(&self) -> Fault {
        match self {
            Error::ReadInput(_)
            | Error::WriteOutput(_)
            | Error::OpenWeights { .. }
            | Error::BadWeights { .. }
            | Error::WeightsMismatch { .. }
            | Error::Usage(_)
            | Error::OutOfMemory { .. }
            | Error::Artifact { .. }
            | Error::Device { .. }
            | Error::Version { .. } => Fault::User,
            Error::Unsupported(_) | Error::BatchTooLarge(_) => Fault::Unsupported,
            Error::Late | Error::MissingSymbol { .. } | Error::Internal(_) => Fault::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_mismatch_names_both_versions() {
        let error = Error::Version {
            expected: 1,
            found: 7,
        };
        assert_eq!(error.fault(), Fault::User);
        assert_eq!(
            error.to_string(),
            "the program was compiled for version 7 of the runtime, this is version 1"
        );
    }
}
