//! From spans to MLIR locations.

use cohort_frontend::Sources;
use cohort_frontend::program::Span;
use melior::{Context, ir::Location};

/// Finds lines without walking a file's text for each span.
pub struct Locations<'a, 'c> {
    context: &'c Context,
    sources: &'a Sources,
    /// The offset of each line's first byte, a file.
    lines: Vec<Vec<usize>>,
}

impl<'a, 'c> Locations<'a, 'c> {
    pub fn new(context: &'c Context, sources: &'a Sources) -> Self {
        let lines = sources
            .files()
            .iter()
            .map(|source| line_starts(&source.text))
            .collect();
        Locations {
            context,
            sources,
            lines,
        }
    }

    /// Where a span begins; lines and columns count from 1, columns in characters.
    pub fn of(&self, span: &Span) -> Location<'c> {
        let found = self.sources.get(span.file).zip(self.lines.get(span.file));
        let Some((source, starts)) = found else {
            return Location::unknown(self.context);
        };
        let line = starts
            .partition_point(|start| *start <= span.range.start)
            .max(1);
        let before = source
            .text
            .get(starts[line - 1]..span.range.start)
            .unwrap_or_default();
        Location::new(self.context, &source.name, line, before.chars().count() + 1)
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
    std::iter::once(0).chain(breaks).collect()
}
