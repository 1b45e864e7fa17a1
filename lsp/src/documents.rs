//! What an editor has open, checked.

use std::collections::HashMap;
use std::path::PathBuf;

use cohort_frontend::{Checked, Diagnostic, Severity, Sources, check};
use lsp_types::{DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Url};

use crate::positions;

/// A program that an editor shows.
pub struct Document {
    pub text: String,
    pub file: usize,
    pub sources: Sources,
    /// Of the text as it is, or as it was when it was last right.
    pub checked: Option<Checked>,
    /// Whether `checked` is of this text.
    pub is_current: bool,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Default)]
pub struct Documents {
    pub open: HashMap<Url, Document>,
}

impl Documents {
    /// Takes a new text.
    pub fn set(&mut self, url: &Url, text: String) {
        let path = url
            .to_file_path()
            .unwrap_or_else(|()| PathBuf::from(url.path()));
        let mut sources = Sources::new();
        let file = sources.add(path.to_string_lossy(), &text);
        sources.read_imports(file, &path);
        let before = self.open.remove(url);
        let (checked, is_current, diagnostics) = match check(&sources, file) {
            Ok(checked) => {
                let warnings = checked.warnings().to_vec();
                (Some(checked), true, warnings)
            }
            Err(mistakes) => (before.and_then(|before| before.checked), false, mistakes),
        };
        let document = Document {
            text,
            file,
            sources,
            checked,
            is_current,
            diagnostics,
        };
        self.open.insert(url.clone(), document);
    }
}

impl Document {
    /// The place of a span, unless it is in the prelude.
    pub fn location(&self, url: &Url, span: &cohort_frontend::program::Span) -> Option<Location> {
        let source = self.sources.get(span.file)?;
        let uri = match span.file == self.file {
            true => url.clone(),
            false => Url::from_file_path(std::path::absolute(&source.name).ok()?).ok()?,
        };
        let range = positions::range(&source.text, &span.range);
        Some(Location { uri, range })
    }

    /// What is to be said of this text, as the protocol has it.
    pub fn published(&self, url: &Url) -> Vec<lsp_types::Diagnostic> {
        self.diagnostics
            .iter()
            .map(|diagnostic| self.publish(url, diagnostic))
            .collect()
    }

    fn publish(&self, url: &Url, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
        let here = |label: &&cohort_frontend::Label| label.span.file == self.file;
        let labels = &diagnostic.labels;
        let primary = labels
            .iter()
            .filter(|label| label.primary)
            .find(here)
            .or(labels.iter().find(here));
        let mut message = diagnostic.message.clone();
        if let Some(label) = primary.filter(|label| !label.message.is_empty()) {
            message += &format!(": {}", label.message);
        }
        for note in &diagnostic.notes {
            message += &format!("\n{note}");
        }
        let others = labels.iter().filter(|label| Some(*label) != primary);
        let others = others.filter_map(|label| {
            Some(DiagnosticRelatedInformation {
                location: self.location(url, &label.span)?,
                message: label.message.clone(),
            })
        });
        lsp_types::Diagnostic {
            // What has no place here stands at the beginning.
            range: primary
                .map(|label| positions::range(&self.text, &label.span.range))
                .unwrap_or_default(),
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.to_owned())),
            source: Some("cohort".to_owned()),
            message,
            related_information: Some(others.collect()),
            ..lsp_types::Diagnostic::default()
        }
    }
}
