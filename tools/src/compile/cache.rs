//! Compiled programs on disk: what was compiled before is not compiled again. Nor is what a program has in common with
//! others before it: the code of libraries, and what a GPU runs.
//!
//! An artifact is kept under a name that is a digest of all that it was made of: the compiler itself, the texts of
//! the program and of what it imports, the sizes that its dims are bound to, every option, and the processor. So an
//! entry is never out of date, only unused, and the least recently used go when there are too many bytes.
//!
//! A file appears as a whole, by being renamed, and its reader checks every byte of it, so any number of processes may
//! share the folder, and what is damaged is compiled again. What cannot be read or written is not an error: then
//! there is no cache.

use std::fmt::{Debug, Write as _};
use std::fs::{self, DirBuilder, File, FileTimes};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cohort_codegen::gpu::binary::Architecture;
use cohort_files::{NewFile, UNFINISHED};
use cohort_frontend::Sources;
use cohort_runtime::Artifact;
use sha2::{Digest, Sha256};

use super::Job;
use super::gpu::Effort;
use super::object::Target;

/// How many bytes are kept.
const MOST_BYTES: u64 = 512 << 20;
/// What the names of artifacts and of code that they are made of end with, and of what Python keeps beside artifacts.
const ARTIFACT: &str = ".cohort";
const CODE: &str = ".code";
const WARNINGS: &str = ".warnings";
/// The digest behind code.
const DIGEST_BYTES: usize = 32;
/// Nobody writes a file for longer: one that is still unfinished is what a process left that died.
const LONGEST_WRITE: Duration = Duration::from_secs(3600);

/// A folder of artifacts.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    most_bytes: u64,
}

/// What an artifact is made of, as a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Cache {
    /// The user's: `COHORT_CACHE`, or `cohort` in the folder for caches. None where these are not known, where
    /// `COHORT_CACHE` is empty, and where others may write, since artifacts are code.
    pub fn of_user() -> Option<Cache> {
        let named = |name| std::env::var_os(name).map(PathBuf::from);
        let folder = named("COHORT_CACHE").or_else(|| {
            let caches = named("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            let caches = caches.or_else(|| Some(named("HOME")?.join(".cache")))?;
            Some(caches.join("cohort"))
        });
        folder
            .filter(|path| path.is_absolute())
            .map(|folder| Cache {
                folder,
                most_bytes: MOST_BYTES,
            })
    }

    /// The artifact that was kept under a key.
    pub fn find(&self, key: &Key) -> Option<Artifact> {
        if !is_private(&self.folder) {
            return None;
        }
        let path = self.path(key, ARTIFACT);
        let artifact = Artifact::from_bytes(&fs::read(&path).ok()?).ok()?;
        note_use(&path);
        Some(artifact)
    }

    /// The code that was kept under a key: the object file of a library, or PTX.
    pub fn find_code(&self, key: &Key) -> Option<Vec<u8>> {
        if !is_private(&self.folder) {
            return None;
        }
        let path = self.path(key, CODE);
        let mut bytes = fs::read(&path).ok()?;
        let digest = bytes.split_off(bytes.len().checked_sub(DIGEST_BYTES)?);
        let is_whole = Sha256::digest(&bytes)[..] == digest[..];
        is_whole.then(|| note_use(&path)).map(|()| bytes)
    }

    /// Keeps code, if that is possible.
    pub fn keep_code(&self, key: &Key, code: &[u8]) {
        self.write(
            &self.path(key, CODE),
            &[code, &Sha256::digest(code)[..]].concat(),
        );
    }

    /// Keeps an artifact, if that is possible.
    pub fn keep(&self, key: &Key, artifact: &Artifact) {
        if let Ok(bytes) = artifact.to_bytes() {
            self.write(&self.path(key, ARTIFACT), &bytes);
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        if made.is_err() || !is_private(&self.folder) {
            return;
        }
        let written = NewFile::create_private(path)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.settle()));
        if written.is_ok() {
            self.make_room();
        }
    }

    fn path(&self, key: &Key, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", key.0))
    }

    /// Removes what was not used for the longest time, and what a process that died left.
    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut kept = Vec::new();
        for entry in entries.flatten() {
            let (path, Ok(about)) = (entry.path(), entry.metadata()) else {
                continue;
            };
            let Ok(used) = about.modified() else { continue };
            let name = path.to_string_lossy();
            let age = used.elapsed().unwrap_or_default();
            if [ARTIFACT, CODE, WARNINGS]
                .iter()
                .any(|ending| name.ends_with(ending))
            {
                kept.push((used, about.len(), path));
            } else if name.ends_with(UNFINISHED) && age > LONGEST_WRITE {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort();
        let mut bytes: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, path) in kept {
            if bytes <= self.most_bytes {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            bytes -= length;
        }
    }
}

/// What was used is the last to go; where that cannot be said, it goes earlier.
fn note_use(path: &Path) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
    }
}

/// Whether a folder is this user's and nobody else may write there.
fn is_private(folder: &Path) -> bool {
    // SAFETY: the call has no condition and cannot fail.
    let user = unsafe { libc::geteuid() };
    fs::metadata(folder)
        .is_ok_and(|about| about.is_dir() && about.uid() == user && about.mode() & 0o022 == 0)
}

impl Key {
    /// That of a job for a program of these texts; none where the compiler cannot tell itself from another.
    pub fn new(job: &Job<'_>, sources: &Sources) -> Option<Key> {
        let mut parts = Parts::of_compiler()?;
        for source in sources.files() {
            // Places that messages show have the name in them.
            parts.add(&(&source.name, &source.text));
        }
        parts.add(&job.entry);
        parts.add(&job.dims.named);
        let weights = job.dims.weights.iter().flat_map(|weights| weights.shapes());
        for (name, shape) in weights {
            parts.add(&(name, shape));
        }
        parts.add(job.pipeline);
        parts.add(job.target);
        parts.add(job.gpu);
        parts.add(&job.options);
        Some(Key(parts.name()))
    }

    /// That of the object file of a library, which this is the text of.
    pub fn of_library(text: &str, target: &Target, effort: Effort) -> Option<Key> {
        let mut parts = Parts::of_compiler()?;
        parts.add(&(text, target, effort));
        Some(Key(parts.name()))
    }

    /// That of the PTX of kernels, which this is the text of at level 3.
    pub fn of_ptx(text: &str, architecture: &Architecture) -> Option<Key> {
        let mut parts = Parts::of_compiler()?;
        parts.add(&("ptx", text, architecture));
        Some(Key(parts.name()))
    }
}

/// What a digest is made of, each part with its length before it.
struct Parts(Sha256);

impl Parts {
    /// With what tells this compiler from others, if anything does.
    fn of_compiler() -> Option<Parts> {
        let compiler = fs::metadata(std::env::current_exe().ok()?).ok()?;
        let mut parts = Parts(Sha256::new());
        parts.add(&(
            env!("CARGO_PKG_VERSION"),
            compiler.len(),
            compiler.mtime(),
            compiler.mtime_nsec(),
        ));
        Some(parts)
    }

    fn add(&mut self, part: &impl Debug) {
        let text = format!("{part:?}");
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }

    fn name(self) -> String {
        let mut name = String::new();
        for byte in self.0.finalize() {
            // Writing into a text cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name
    }
}
