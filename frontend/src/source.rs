//! Source files by index. File 0 is always the prelude, which every program may use.

use crate::import::Import;
use crate::program::Span;

/// The text of the prelude, compiled into the library.
pub const PRELUDE: &str = include_str!("../prelude/prelude.coh");

/// The index of the prelude among the sources.
pub const PRELUDE_FILE: usize = 0;

/// One named source text.
#[derive(Clone, Debug)]
pub struct Source {
    /// What messages call it, such as its path.
    pub name: String,
    /// All of it, as UTF-8.
    pub text: String,
}

/// Every text that a diagnostic can point into.
#[derive(Clone, Debug)]
pub struct Sources {
    files: Vec<Source>,
    imports: Vec<Import>,
}

impl Default for Sources {
    fn default() -> Self {
        Self::new()
    }
}

impl Sources {
    /// Sources that hold the prelude alone.
    pub fn new() -> Self {
        let prelude = Source {
            name: "prelude.coh".to_owned(),
            text: PRELUDE.to_owned(),
        };
        Self {
            files: vec![prelude],
            imports: Vec::new(),
        }
    }

    /// Adds a file and returns its index, the one that spans carry.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.files.push(Source {
            name: name.into(),
            text: text.into(),
        });
        self.files.len() - 1
    }

    pub(crate) fn add_import(&mut self, import: Import) {
        self.imports.push(import);
    }

    /// What an import of a file stands for, once [`Sources::read_imports`] has looked for it.
    pub(crate) fn imported(&self, from: usize, path: &str) -> Option<&Import> {
        let is_it = |import: &&Import| import.from == from && import.path == path;
        self.imports.iter().find(is_it)
    }

    /// The file of an index that [`Sources::add`] returned; `None` if there is none.
    pub fn get(&self, file: usize) -> Option<&Source> {
        self.files.get(file)
    }

    /// All files by index, the prelude first.
    pub fn files(&self) -> &[Source] {
        &self.files
    }

    /// The line and column, both from 1, of a byte offset; columns count characters.
    pub fn line_column(&self, span: &Span) -> Option<(usize, usize)> {
        let text = &self.files.get(span.file)?.text;
        let before = text.get(..span.range.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Some((line, column))
    }
}
