//! Files as diagnostics show them: of lines that are very long only what labels point at.

use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use crate::diagnostic::Diagnostic;
use crate::source::Sources;

/// Lines up to this length are shown as they are.
const LONG: usize = 400;
/// What of a long line is shown around the ends of a label.
const AROUND: usize = 60;
/// Labels up to this length are shown whole.
const WHOLE: usize = 160;
/// What stands for text that is left out.
const GAP: &str = " … ";

/// The files of a program for one diagnostic.
pub struct Excerpts<'s> {
    files: Vec<Excerpt<'s>>,
}

struct Excerpt<'s> {
    name: &'s str,
    source: &'s str,
    text: String,
    /// Where lines begin in the text.
    lines: Vec<usize>,
    /// What is shown: where it begins in the text, and its range of the source; in order.
    parts: Vec<(usize, Range<usize>)>,
}

impl<'s> Excerpts<'s> {
    /// Files without a label are empty.
    pub fn new(sources: &'s Sources, diagnostic: &Diagnostic) -> Excerpts<'s> {
        let files = sources.files().iter().enumerate().map(|(file, source)| {
            let labels = diagnostic.labels.iter().filter(|l| l.span.file == file);
            let labels: Vec<Range<usize>> = labels.map(|l| l.span.range.clone()).collect();
            let text = match labels.is_empty() {
                true => "",
                false => source.text.as_str(),
            };
            Excerpt::new(&source.name, text, &labels)
        });
        Excerpts {
            files: files.collect(),
        }
    }

    /// Where a place of a file's source is in what is shown of it.
    pub fn place(&self, file: usize, at: usize) -> usize {
        self.files.get(file).map_or(at, |file| file.place(at))
    }

    fn file(&self, id: usize) -> Result<&Excerpt<'s>, Error> {
        self.files.get(id).ok_or(Error::FileMissing)
    }
}

impl<'s> Excerpt<'s> {
    fn new(name: &'s str, source: &'s str, labels: &[Range<usize>]) -> Excerpt<'s> {
        let mut excerpt = Excerpt {
            name,
            source,
            text: String::new(),
            lines: Vec::new(),
            parts: Vec::new(),
        };
        let mut start = 0;
        for line in source.split_inclusive('\n') {
            excerpt.lines.push(excerpt.text.len());
            let range = start..start + line.len();
            start = range.end;
            let mut shown = range.start;
            for part in parts(source, range.clone(), labels) {
                if part.start > shown {
                    excerpt.text.push_str(GAP);
                }
                excerpt.parts.push((excerpt.text.len(), part.clone()));
                excerpt.text.push_str(&source[part.clone()]);
                shown = part.end;
            }
            if shown < range.end {
                excerpt.text.push_str(GAP.trim_end());
                excerpt.text.push('\n');
            }
        }
        if source.is_empty() || source.ends_with('\n') {
            excerpt.lines.push(excerpt.text.len());
        }
        excerpt
    }

    fn place(&self, at: usize) -> usize {
        let after = self.parts.partition_point(|(_, of)| of.start <= at);
        match after.checked_sub(1).and_then(|part| self.parts.get(part)) {
            Some((begin, of)) => begin + (at.min(of.end) - of.start),
            None => 0,
        }
    }

    /// Where a place of what is shown is in the source.
    fn origin(&self, at: usize) -> usize {
        let after = self.parts.partition_point(|(begin, _)| *begin <= at);
        match after.checked_sub(1).and_then(|part| self.parts.get(part)) {
            Some((begin, of)) => (of.start + (at - begin)).min(of.end),
            None => 0,
        }
    }
}

/// What is shown of a line.
fn parts(source: &str, line: Range<usize>, labels: &[Range<usize>]) -> Vec<Range<usize>> {
    if line.len() <= LONG {
        return vec![line];
    }
    let mut wanted: Vec<Range<usize>> = Vec::new();
    for label in labels {
        let (start, end) = (label.start.max(line.start), label.end.min(line.end));
        if start > end || label.start > line.end || label.end < line.start {
            continue;
        }
        let around = |from: usize, to: usize| {
            let from = from.saturating_sub(AROUND).max(line.start);
            from..to.saturating_add(AROUND).min(line.end)
        };
        match end - start <= WHOLE {
            true => wanted.push(around(start, end)),
            false => wanted.extend([around(start, start), around(end, end)]),
        }
    }
    if wanted.is_empty() {
        wanted.push(line.start..line.start + AROUND);
    }
    wanted.sort_by_key(|part| part.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for part in wanted {
        let part = boundary(source, part.start)..boundary(source, part.end);
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined
}

/// The nearest boundary of characters, at or before a place.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl<'a> Files<'a> for Excerpts<'_> {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(self.file(id)?.name)
    }

    fn source(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(&self.file(id)?.text)
    }

    fn line_index(&'a self, id: usize, at: usize) -> Result<usize, Error> {
        let after = self.file(id)?.lines.partition_point(|start| *start <= at);
        Ok(after.saturating_sub(1))
    }

    fn line_range(&'a self, id: usize, line: usize) -> Result<Range<usize>, Error> {
        let file = self.file(id)?;
        let max = file.lines.len();
        let start = *file
            .lines
            .get(line)
            .ok_or(Error::LineTooLarge { given: line, max })?;
        let end = file.lines.get(line + 1).copied();
        Ok(start..end.unwrap_or(file.text.len()))
    }

    /// As the source has it.
    fn column_number(&'a self, id: usize, line: usize, at: usize) -> Result<usize, Error> {
        let file = self.file(id)?;
        let start = file.origin(self.line_range(id, line)?.start);
        let line = file.source.get(..start).unwrap_or_default();
        let start = line.rfind('\n').map_or(0, |newline| newline + 1);
        let before = file.source.get(start..file.origin(at)).unwrap_or_default();
        Ok(before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_long_lines_are_found_again() {
        let line = "é".repeat(5000);
        let source = format!("short\n{line}\nend");
        let labels = [1006..1010, 4000..9000, 3..4];
        let excerpt = Excerpt::new("x", &source, &labels);
        assert!(excerpt.text.len() < 1000, "{}", excerpt.text);
        for at in [0, 3, 4, 5, 6, 1006, 1010, 4000, 9000, 10007, 10008] {
            let shown = excerpt.place(at);
            assert!(excerpt.text.is_char_boundary(shown));
            let is_shown = excerpt
                .parts
                .iter()
                .any(|(_, of)| (of.start..=of.end).contains(&at));
            assert!(!is_shown || excerpt.origin(shown) == at, "{at}");
        }
        assert_eq!(excerpt.lines.len(), 3);
        assert!(excerpt.text.starts_with("short\n … é"));
        assert!(excerpt.text.ends_with(" …\nend"));
    }
}
