//! Why a run as a whole stopped, and whose fault that is.
//!
//! What goes wrong in one instance is not here: it becomes that instance's error record, see
//! [`crate::failure`].

use std::path::{Path, PathBuf};

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

/// Why a run stopped, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading the input failed.
    #[error("cannot read the input: {0}")]
    ReadInput(std::io::Error),
    /// Writing the output failed.
    #[error("cannot write the output: {0}")]
    WriteOutput(std::io::Error),
    /// A weights file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    OpenWeights {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A weights file is not safetensors, or is damaged.
    #[error("{} a usable safetensors file: {reason}", is_not(path))]
    BadWeights {
        /// The file; empty where the weights were in memory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Weights are missing, are not asked for, or have another shape or type.
    #[error("the weights do not fit the program:\n{}", problems.join("\n"))]
    WeightsMismatch {
        /// What is wrong, a line each.
        problems: Vec<String>,
    },
    /// Options or files that do not go together, or are wrong in themselves; in words.
    #[error("{0}")]
    Usage(String),
    /// The system refuses memory.
    #[error("cannot get {bytes} bytes of memory for {purpose}: {source}")]
    OutOfMemory {
        /// What it was for, in words.
        purpose: &'static str,
        /// How much was asked for at once.
        bytes: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// Compiler and runtime are of different versions of the ABI.
    #[error(
        "the program was compiled for version {found} of the runtime, this is version {expected}"
    )]
    Version {
        /// The runtime's version.
        expected: u32,
        /// The version that the program was compiled for.
        found: u32,
    },
    /// Compiled code lacks a function that the manifest promises.
    #[error("the compiled program has no symbol `{symbol}` for {purpose}")]
    MissingSymbol {
        /// The name of the function.
        symbol: String,
        /// What it is there for, in words.
        purpose: String,
    },
    /// An artifact cannot be used.
    #[error("{} {problem}", path.display())]
    Artifact {
        /// The artifact.
        path: PathBuf,
        /// What is wrong with it.
        problem: Box<crate::program::artifact::Problem>,
    },
    /// A device cannot be used, or has failed.
    #[error("cannot run on {device}: {problem}")]
    Device {
        /// Its name, as [`device::Device::name`] has it.
        device: String,
        /// What it reports.
        problem: device::Problem,
    },
    /// Instances were recorded together that cannot be computed together.
    #[error("not supported: {0}")]
    BatchTooLarge(String),
    /// The time of a batch is over.
    #[error("the time of a batch is over")]
    Late,
    /// Nobody waits for the run any more, see [`crate::late::Interrupt`].
    #[error("the run was interrupted")]
    Interrupted,
    /// The request is correct, but this version cannot serve it; in words.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A promise between compiler and runtime is broken; in words.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

fn is_not(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "the weights are not".to_owned(),
        false => format!("{} is not", path.display()),
    }
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

    /// Who can mend it.
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
            | Error::Interrupted
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
