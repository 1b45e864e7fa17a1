//! Why training cannot begin or go on.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings make no sense, alone or with this program.
    #[error("{0}")]
    Setting(String),
    /// The data, or a file of weights.
    #[error("{0}")]
    Data(String),
    #[error("cannot read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
    /// The file stays as it was.
    #[error("cannot write the checkpoint `{path}`: {source}; the one that was there before stays")]
    Save { path: PathBuf, source: io::Error },
    /// What the checkpoint is not.
    #[error("cannot resume from `{path}`: {reason}")]
    Checkpoint { path: PathBuf, reason: String },
    /// Who computes gradients cannot go on.
    #[error("{0}")]
    Engine(String),
    /// The losses or gradients leave nothing to go on with.
    #[error("{0}")]
    Diverged(String),
}

impl Error {
    pub fn read(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        Error::Read { path, source }
    }

    pub fn write(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        Error::Write { path, source }
    }
}
