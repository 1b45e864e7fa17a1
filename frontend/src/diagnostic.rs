//! What the frontend has to say to the user: a message, labels in the source, notes on mending.
//!
//! Diagnostics are data. Only [`render`] knows how they look on a terminal.

use std::io::Write;

use codespan_reporting::diagnostic as codespan;
use codespan_reporting::term;
use codespan_reporting::term::termcolor::Ansi;

use crate::excerpt::Excerpts;
use crate::program::Span;
use crate::source::Sources;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is compiled.
    Error,
    /// It is compiled, and may not be what was meant.
    Warning,
}

/// A place in the source and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What is marked in the excerpt.
    pub span: Span,
    /// Stands beside the mark; may be empty.
    pub message: String,
    /// Whether this is the place of the mistake itself, not one that explains it.
    pub primary: bool,
}

/// One finding about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it keeps the program from being compiled.
    pub severity: Severity,
    /// A stable code such as `E0301`; `docs/language.md` lists them all.
    pub code: &'static str,
    /// One line without a full stop at its end.
    pub message: String,
    /// Places in the order in which they were added; none for what has no place in the source.
    pub labels: Vec<Label>,
    /// What may mend it or explains it, shown below the excerpts.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error that has neither labels nor notes yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning that has neither labels nor notes yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Marks the place of the mistake.
    #[must_use]
    pub fn at(mut self, span: &Span, message: impl Into<String>) -> Self {
        self.labels.push(Label {
            span: span.clone(),
            message: message.into(),
            primary: true,
        });
        self
    }

    /// Marks a place that explains the mistake.
    #[must_use]
    pub fn see(mut self, span: &Span, message: impl Into<String>) -> Self {
        self.labels.push(Label {
            span: span.clone(),
            message: message.into(),
            primary: false,
        });
        self
    }

    /// Adds a note below the excerpts.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// So many diagnostics are shown; who mends these runs the compiler again.
const MOST_SHOWN: usize = 30;

/// Writes diagnostics for a person, the first ones where there are very many. Writing stops at the first
/// error of `out`.
pub fn render(
    diagnostics: &[Diagnostic],
    sources: &Sources,
    out: &mut dyn Write,
    color: bool,
) -> std::io::Result<()> {
    let config = term::Config {
        tab_width: 4,
        ..term::Config::default()
    };
    for diagnostic in diagnostics.iter().take(MOST_SHOWN) {
        let files = Excerpts::new(sources, diagnostic);
        let shown = to_codespan(diagnostic, &files, sources);
        let result = if color {
            let mut writer = Ansi::new(&mut *out);
            term::emit_to_write_style(&mut writer, &config, &files, &shown)
        } else {
            term::emit_to_io_write(&mut *out, &config, &files, &shown)
        };
        match result {
            Ok(()) => {}
            Err(codespan_reporting::files::Error::Io(error)) => return Err(error),
            // A span outside its file would be a mistake of ours; the message still gets out.
            Err(_) => writeln!(out, "error[{}]: {}", diagnostic.code, diagnostic.message)?,
        }
    }
    match diagnostics.len().saturating_sub(MOST_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}

fn to_codespan(
    diagnostic: &Diagnostic,
    files: &Excerpts<'_>,
    sources: &Sources,
) -> codespan::Diagnostic<usize> {
    let severity = match diagnostic.severity {
        Severity::Error => codespan::Severity::Error,
        Severity::Warning => codespan::Severity::Warning,
    };
    let labels = diagnostic
        .labels
        .iter()
        .filter(|label| sources.get(label.span.file).is_some())
        .map(|label| {
            let style = if label.primary {
                codespan::LabelStyle::Primary
            } else {
                codespan::LabelStyle::Secondary
            };
            let place = |at| files.place(label.span.file, at);
            let range = place(label.span.range.start)..place(label.span.range.end);
            codespan::Label::new(style, label.span.file, range).with_message(&label.message)
        })
        .collect();
    codespan::Diagnostic::new(severity)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message)
        .with_labels(labels)
        .with_notes(diagnostic.notes.clone())
}
