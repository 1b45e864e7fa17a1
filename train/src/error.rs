//! Why training cannot begin or go on.

use std::io;
use std::path::{Path, PathBuf};

/// Why training cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings make no sense, alone or with this program.
    #[error("{0}")]
    Setting(String),
    /// The data, or a file of weights.
    #[error("{0}")]
    Data(String),
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file's name.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Write {
        /// The file's name.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file stays as it was.
    #[error("cannot write the checkpoint `{path}`: {source}; the one that was there before stays")]
    Save {
        /// The file's name.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What the checkpoint is not.
    #[error("cannot resume from `{path}`: {reason}")]
    Checkpoint {
        /// The file's name.
        path: PathBuf,
        /// What it is not, or lacks.
        reason: String,
    },
    /// Gradients cannot be computed any more.
    #[error("{0}")]
    Engine(String),
    /// The losses or gradients leave nothing to go on with.
    #[error("{0}")]
    Diverged(String),
}

impl Error {
    /// The file cannot be read.
    pub fn read(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        Error::Read { path, source }
    }

    /// The file cannot be written.
    pub fn write(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        Error::Write { path, source }
    }
}
