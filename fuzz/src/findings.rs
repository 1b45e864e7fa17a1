//! What failed, on disk: a folder a mistake, with the files, the command that repeats it from there, and
//! what it said.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The mistakes found so far, and how often each was.
#[derive(Debug)]
pub struct Findings {
    folder: PathBuf,
    counts: BTreeMap<String, u64>,
}

impl Findings {
    /// No findings yet; those to come are kept in the folder.
    pub fn new(folder: &Path) -> Findings {
        Findings {
            folder: folder.to_path_buf(),
            counts: BTreeMap::new(),
        }
    }

    /// Counts a mistake; how often there has been one like it by now.
    pub fn count(&mut self, target: &str, signature: &str) -> u64 {
        let count = self
            .counts
            .entry(format!("{target}: {signature}"))
            .or_default();
        *count += 1;
        *count
    }

    /// Writes what repeats the latest mistake; returns the folder.
    pub fn save(
        &self,
        target: &str,
        files: &[(&str, &[u8])],
        command: &str,
        message: &str,
    ) -> io::Result<PathBuf> {
        let folder = (1..)
            .map(|number| self.folder.join(format!("{target}-{number}")))
            .find(|folder| !folder.exists())
            .unwrap_or_else(|| self.folder.join(target));
        fs::create_dir_all(&folder)?;
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes)?;
        }
        fs::write(folder.join("command"), format!("{command}\n"))?;
        fs::write(folder.join("message"), message)?;
        Ok(folder)
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// A line a mistake.
    pub fn describe(&self) -> String {
        let line = |(what, count): (&String, &u64)| format!("  {count} x {what}\n");
        self.counts.iter().map(line).collect()
    }
}
