//! Diagnostics of passes, shown in the `.coh` source that their locations lead to.

use std::cell::Cell;
use std::rc::Rc;

use cohort_dialects::location::file_line_col;
use cohort_frontend::program::Span;
use cohort_frontend::{Diagnostic, Sources};
use melior::{Context, diagnostic::DiagnosticHandlerId, diagnostic::DiagnosticSeverity};

use crate::sarif::{FileRegion, Finding, Level};

/// What a pass refuses in a program that the checker accepted is a mistake of the compiler.
const INTERNAL: &str = "E0999";

/// What a pass says of a program that it compiles.
const WARNING: &str = "W0001";

/// What passes say of an input of `batch-opt`, by severity; remarks have no other name anywhere.
const PASS_ERROR: &str = "pass/error";
const PASS_REMARK: &str = "pass/remark";

/// Shows what passes say of a `.coh` program.
pub struct Reporter {
    sources: Rc<Sources>,
    has_spoken: Rc<Cell<bool>>,
}

impl Reporter {
    /// Shows places in these sources, of which it keeps a copy.
    pub fn with_sources(sources: &Sources) -> Reporter {
        Reporter {
            sources: Rc::new(sources.clone()),
            has_spoken: Rc::default(),
        }
    }

    /// Whether anything was shown.
    pub fn has_spoken(&self) -> bool {
        self.has_spoken.get()
    }

    /// Handles the diagnostics of a context until the result is dropped.
    pub fn attach<'c>(&self, context: &'c Context) -> Attached<'c> {
        let sources = Rc::clone(&self.sources);
        let has_spoken = Rc::clone(&self.has_spoken);
        let id = context.attach_diagnostic_handler(move |diagnostic| {
            if matches!(
                diagnostic.severity(),
                DiagnosticSeverity::Remark | DiagnosticSeverity::Note
            ) {
                log(&diagnostic);
                return true;
            }
            has_spoken.set(true);
            super::source::show(&[translate(&diagnostic, &sources)], &sources);
            true
        });
        Attached { context, id }
    }
}

/// Adds what passes say of any module to the log of findings, until the result is dropped; it is shown as
/// without.
pub fn attach_log(context: &Context) -> Attached<'_> {
    let id = context.attach_diagnostic_handler(|diagnostic| {
        log(&diagnostic);
        false
    });
    Attached { context, id }
}

/// Says nothing of what passes say, until the result is dropped: it was said of the program before.
pub fn attach_silence(context: &Context) -> Attached<'_> {
    let id = context.attach_diagnostic_handler(|_| true);
    Attached { context, id }
}

/// Adds what a pass says to the log of findings, if there is one.
pub fn log(diagnostic: &melior::diagnostic::Diagnostic<'_>) {
    let place = |diagnostic: &melior::diagnostic::Diagnostic<'_>, message| {
        let (file, line, column) = file_line_col(diagnostic.location())?;
        // MLIR counts from 1, and has 0 where it does not know.
        let start = ((line as usize).max(1), (column as usize).max(1));
        Some(FileRegion {
            file,
            start,
            end: None,
            message,
        })
    };
    crate::sarif::add(|| {
        let (rule, level) = match diagnostic.severity() {
            DiagnosticSeverity::Error => (PASS_ERROR, Level::Error),
            DiagnosticSeverity::Warning => (WARNING, Level::Warning),
            DiagnosticSeverity::Remark | DiagnosticSeverity::Note => (PASS_REMARK, Level::Note),
        };
        let notes = (0..diagnostic.note_count()).filter_map(|note| diagnostic.note(note).ok());
        Finding {
            rule: rule.to_owned(),
            level,
            message: diagnostic.to_string(),
            places: place(diagnostic, None).into_iter().collect(),
            related: notes
                .filter_map(|note| place(&note, Some(note.to_string())))
                .collect(),
            properties: serde_json::Value::Null,
        }
    });
}

/// Detaches its handler when dropped.
pub struct Attached<'c> {
    context: &'c Context,
    id: DiagnosticHandlerId,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.context.detach_diagnostic_handler(self.id);
    }
}

fn translate(diagnostic: &melior::diagnostic::Diagnostic<'_>, sources: &Sources) -> Diagnostic {
    let is_warning = matches!(diagnostic.severity(), DiagnosticSeverity::Warning);
    let shown = match is_warning {
        true => Diagnostic {
            severity: cohort_frontend::Severity::Warning,
            ..Diagnostic::error(WARNING, diagnostic.to_string())
        },
        false => Diagnostic::error(INTERNAL, format!("internal error: {diagnostic}"))
            .note("this is a bug of the compiler; please report it with the program"),
    };
    match (place(diagnostic, sources), is_warning) {
        (Some(span), true) => shown.at(&span, "here"),
        (Some(span), false) => shown.at(&span, "where this was compiled"),
        (None, _) => shown,
    }
}

/// The span of the character that a diagnostic points at, up to the end of its line's text.
fn place(diagnostic: &melior::diagnostic::Diagnostic<'_>, sources: &Sources) -> Option<Span> {
    let (name, line, column) = file_line_col(diagnostic.location())?;
    let file = sources
        .files()
        .iter()
        .position(|source| source.name == name)?;
    let text = &sources.get(file)?.text;
    let line_start: usize = text
        .split_inclusive('\n')
        .take((line as usize).checked_sub(1)?)
        .map(str::len)
        .sum();
    let rest = text.get(line_start..)?;
    let offset: usize = rest
        .chars()
        .take((column as usize).saturating_sub(1))
        .map(char::len_utf8)
        .sum();
    let start = line_start + offset;
    let length = text
        .get(start..)?
        .lines()
        .next()
        .map_or(0, |rest| rest.trim_end().len());
    Some(Span {
        file,
        range: start..start + length,
    })
}

/// A diagnostic for a log of findings.
pub fn finding(diagnostic: &Diagnostic, sources: &Sources) -> Finding {
    let places = |is_primary: bool| {
        let labels = diagnostic.labels.iter();
        labels
            .filter(|label| label.primary == is_primary)
            .filter_map(|label| {
                let point = |at| {
                    sources.line_column(&Span {
                        file: label.span.file,
                        range: at..at,
                    })
                };
                Some(FileRegion {
                    file: sources.get(label.span.file)?.name.clone(),
                    start: point(label.span.range.start)?,
                    end: point(label.span.range.end),
                    message: (!label.message.is_empty()).then(|| label.message.clone()),
                })
            })
            .collect()
    };
    let notes = diagnostic.notes.iter().map(String::as_str);
    let sentences: Vec<&str> = std::iter::once(diagnostic.message.as_str())
        .chain(notes)
        .collect();
    Finding {
        rule: diagnostic.code.to_owned(),
        level: match diagnostic.severity {
            cohort_frontend::Severity::Error => Level::Error,
            cohort_frontend::Severity::Warning => Level::Warning,
        },
        message: sentences.join("\n"),
        places: places(true),
        related: places(false),
        properties: serde_json::Value::Null,
    }
}
