//! `import "file.coh"`: reads the files that a program names, each once.
//!
//! Checking works on texts alone, so that it needs no files; what could not be read is kept with
//! the import and becomes an error there.

use std::fs;
use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::source::Sources;
use crate::syntax;

/// A program is made of at most this many files of this size.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 1 << 24;

/// What an import of one file stands for: another file, or why there is none.
#[derive(Clone, Debug)]
pub struct Import {
    pub from: usize,
    pub path: String,
    pub to: Result<usize, String>,
}

impl Sources {
    /// Reads all that a file imports, and what that imports in turn. Paths are relative to the file
    /// that names them; `path` is where the first one was read.
    pub fn read_imports(&mut self, file: usize, path: &Path) {
        let mut known: FxHashMap<PathBuf, usize> = FxHashMap::default();
        if let Ok(own) = path.canonicalize() {
            known.insert(own, file);
        }
        let mut pending = vec![(file, path.to_path_buf())];
        while let Some((from, path)) = pending.pop() {
            let text = self.get(from).map_or("", |source| source.text.as_str());
            for written in syntax::imports(text) {
                if self.imported(from, &written).is_some() {
                    continue;
                }
                let folder = path.parent().unwrap_or(Path::new(""));
                let to = self.read_import(folder, &written, &mut known, &mut pending);
                self.add_import(Import {
                    from,
                    path: written,
                    to,
                });
            }
        }
    }

    fn read_import(
        &mut self,
        folder: &Path,
        written: &str,
        known: &mut FxHashMap<PathBuf, usize>,
        pending: &mut Vec<(usize, PathBuf)>,
    ) -> Result<usize, String> {
        let relative = Path::new(written);
        let from_root = |part| matches!(part, Component::RootDir | Component::Prefix(_));
        if relative.components().any(from_root) {
            return Err("a path is relative to the file that names it".to_owned());
        }
        if relative
            .extension()
            .is_none_or(|extension| extension != "coh")
        {
            return Err("the names of programs end in `.coh`".to_owned());
        }
        let path = folder.join(relative);
        let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
        let own = path.canonicalize().map_err(cannot)?;
        if let Some(file) = known.get(&own) {
            return Ok(*file);
        }
        let about = fs::metadata(&own).map_err(cannot)?;
        if !about.is_file() {
            return Err("it is not a file".to_owned());
        }
        if about.len() > MAX_BYTES || known.len() >= MAX_FILES {
            return Err(format!(
                "a program has at most {MAX_FILES} files of {MAX_BYTES} bytes"
            ));
        }
        let bytes = fs::read(&own).map_err(cannot)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let place = error.utf8_error().valid_up_to();
            format!("it is not UTF-8 text, see byte {place}")
        })?;
        let file = self.add(path.to_string_lossy(), text);
        known.insert(own, file);
        pending.push((file, path));
        Ok(file)
    }
}
