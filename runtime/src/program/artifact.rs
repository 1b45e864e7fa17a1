//! Compiled programs as files: what `batch-opt --emit artifact` writes and `batch-run` loads.
//!
//! ```text
//! container   bytes <-> a header and sections, every byte of them checked
//! target      the machine that the host code needs, against the one that runs
//! object      relocatable object files -> functions in memory
//! imports     the functions that host code may call
//! signature   who made it, and whom a user trusts
//! ```
//!
//! `docs/artifact.md` describes the format. Weights are not part of an artifact.
//!
//! The checks tell damage and mismatch, not malice: an artifact is code, and whoever runs it trusts
//! who made it. A signature says who that is.

mod container;
mod imports;
mod object;
mod signature;
mod target;

use std::fmt;
use std::path::{Path, PathBuf};

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::program::code::Program;

pub use container::{DeviceFormat, FORMAT_VERSION, MAGIC};
pub use object::LoadedObject;
pub use signature::{SecretKey, TrustedKeys};
pub use target::{HostTarget, known_features};

/// A compiled program with everything that it takes to run it but its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Version of the compiler that made it.
    pub compiler: String,
    /// How the compiler was told to differ from its default, for people: `--granularity function`.
    pub options: Vec<String>,
    /// What the machine that runs `objects` must be.
    pub target: HostTarget,
    /// What the runtime knows of the program.
    pub manifest: Manifest,
    /// The entry and the kernels: relocatable object files, which may refer to each other's functions.
    pub objects: Vec<Vec<u8>>,
    /// The kernels for devices; may be empty.
    pub device_code: Vec<DeviceCode>,
}

/// All kernels of a program for one kind of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// As the device's vendor calls it: `sm_90`.
    pub target: String,
    /// What `bytes` are written in.
    pub format: DeviceFormat,
    /// The code itself.
    pub bytes: Vec<u8>,
}

/// Why an artifact cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which kind of problem it is.
    pub kind: ProblemKind,
    /// Which part of the artifact, in words and bytes.
    pub place: String,
    /// What should be there, in words.
    pub expected: String,
    /// What is there instead.
    pub found: String,
}

/// In which way an artifact cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Some other file.
    Foreign,
    /// It was an artifact once.
    Damaged,
    /// A good artifact for another version or machine.
    Mismatched,
    /// A good artifact of somebody whom the user does not trust.
    Untrusted,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProblemKind::Foreign => "is not an artifact",
            ProblemKind::Damaged => "is damaged",
            ProblemKind::Mismatched => "cannot run here",
            ProblemKind::Untrusted => "is not trusted",
        };
        let Problem {
            place,
            expected,
            found,
            ..
        } = self;
        write!(f, "{kind}: {place}: expected {expected}, found {found}")
    }
}

impl Problem {
    fn new(
        kind: ProblemKind,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Problem {
        Problem {
            kind,
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn damaged(
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Problem {
        Problem::new(ProblemKind::Damaged, place, expected, found)
    }
}

/// A symbol that host code has beside its functions: it names the manifest that the code was compiled
/// with. Code relies on what its manifest says of it, so it runs with no other.
pub fn manifest_mark(manifest: &Manifest) -> Result<String, Error> {
    let json = serde_json::to_vec(manifest).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(format!("{}{}", object::MARK, container::digest(&json)))
}

impl Artifact {
    /// Whether bytes begin like an artifact.
    pub fn is_artifact(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The artifact as a file, without a signature.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        container::write(self).map_err(|error| Error::Internal(error.to_string()))
    }

    /// Checks every byte, and that the artifact is for this version and machine.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artifact, Problem> {
        container::read(bytes)
    }

    /// The functions of the host code, in memory; `path` is for messages.
    pub fn load(self, path: &Path) -> Result<Program, Error> {
        let refused = |problem| Error::Artifact {
            path: PathBuf::from(path),
            problem: Box::new(problem),
        };
        let code = LoadedObject::load(&self.objects).map_err(refused)?;
        if code.manifest() != Some(&manifest_mark(&self.manifest)?) {
            return Err(refused(Problem::damaged(
                "the manifest",
                "the one that the host code was compiled with",
                "another",
            )));
        }
        Ok(Program::new(self.manifest, Box::new(code))?.with_device_code(self.device_code))
    }

    /// Checks an artifact's bytes and loads its program; `path` is for messages.
    pub fn open(path: &Path, bytes: &[u8]) -> Result<Program, Error> {
        Artifact::from_bytes(bytes)
            .map_err(|problem| Error::Artifact {
                path: PathBuf::from(path),
                problem: Box::new(problem),
            })?
            .load(path)
    }
}
