//! `batch-run --expect FILE`: the results against those of another run.
//!
//! Lines are compared as they are written, so a run of any length needs no memory for it. What the
//! other run was (the oracle, another device or precision, another machine) does not matter.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::exit::Stop;

/// Passes results on and compares each line with the next expected one.
pub struct Comparison<W> {
    output: W,
    expected: Lines<BufReader<File>>,
    tolerance: f64,
    /// What was written since the last line ended.
    line: Vec<u8>,
    records: u64,
    /// The largest difference of two numbers, as a part of the largest number expected there.
    worst: f64,
    different: u64,
    first: Option<String>,
}

/// What a comparison found.
pub struct Outcome {
    pub records: u64,
    pub worst: f64,
    pub different: u64,
    /// Of the first record that differs: which, and how.
    pub first: Option<String>,
}

impl<W: Write> Comparison<W> {
    pub fn new(output: W, path: &Path, tolerance: f64) -> Result<Comparison<W>, Stop> {
        let file = File::open(path)
            .map_err(|error| Stop::usage(format!("cannot read {}: {error}", path.display())))?;
        Ok(Comparison {
            output,
            expected: BufReader::new(file).lines(),
            tolerance,
            line: Vec::new(),
            records: 0,
            worst: 0.0,
            different: 0,
            first: None,
        })
    }

    /// After the last line: what was expected beyond it is missing.
    pub fn finish(mut self) -> Outcome {
        if let Some(line) = self.next_expected() {
            self.found(Err(format!("missing, expected {}", shorten(&line))));
        }
        Outcome {
            records: self.records,
            worst: self.worst,
            different: self.different,
            first: self.first,
        }
    }

    /// The next line that is not blank. A line that cannot be read is one that nothing equals.
    fn next_expected(&mut self) -> Option<String> {
        self.expected
            .by_ref()
            .map(|line| line.unwrap_or_else(|error| format!("(cannot be read: {error})")))
            .find(|line| !line.trim().is_empty())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let found = String::from_utf8_lossy(&line);
        if found.trim().is_empty() {
            return;
        }
        self.records += 1;
        let compared = match self.next_expected() {
            None => Err(format!("nothing was expected, found {}", shorten(&found))),
            Some(expected) => compare_lines(&expected, &found),
        };
        self.found(compared);
    }

    fn found(&mut self, compared: Result<f64, String>) {
        let problem = match compared {
            Ok(difference) => {
                self.worst = self.worst.max(difference);
                if difference <= self.tolerance {
                    return;
                }
                format!("numbers differ by {difference:.3e} of the largest")
            }
            Err(problem) => problem,
        };
        self.different += 1;
        let record = self.records;
        self.first
            .get_or_insert_with(|| format!("record {record}: {problem}"));
    }
}

impl<W: Write> Write for Comparison<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.output.write(bytes)?;
        let mut rest = &bytes[..written];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.end_line();
        }
        self.line.extend_from_slice(rest);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(default)]
    id: Json,
    /// As it is written: an output may be nested more deeply than a parser's stack would bear.
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    kind: String,
}

/// How far the numbers of two records differ, as a part of the largest; an error for any other
/// difference. Of errors, the kinds must be equal.
fn compare_lines(expected: &str, found: &str) -> Result<f64, String> {
    fn parse(line: &str) -> Result<Record<'_>, String> {
        serde_json::from_str(line).map_err(|error| format!("{error} in {}", shorten(line)))
    }
    let (expected, found) = (parse(expected)?, parse(found)?);
    if expected.id != found.id {
        return Err(format!(
            "expected the id {}, found {}",
            expected.id, found.id
        ));
    }
    match (expected, found) {
        (
            Record {
                output: Some(expected),
                ..
            },
            Record {
                output: Some(found),
                ..
            },
        ) => compare_outputs(expected.get(), found.get()),
        (
            Record {
                error: Some(expected),
                ..
            },
            Record {
                error: Some(found), ..
            },
        ) if expected.kind == found.kind => Ok(0.0),
        (expected, found) => Err(format!("expected {expected}, found {found}")),
    }
}

impl std::fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.output, &self.error) {
            (Some(output), _) => write!(f, "the output {}", shorten(output.get())),
            (_, Some(error)) => write!(f, "the error `{}`", error.kind),
            _ => write!(f, "neither output nor error"),
        }
    }
}

/// Compares two JSON values token by token. Integers must be equal: they count or name something.
fn compare_outputs(expected: &str, found: &str) -> Result<f64, String> {
    let (mut most, mut largest) = (0.0f64, 0.0f64);
    let (mut expected_tokens, mut found_tokens) = (Tokens(expected), Tokens(found));
    loop {
        let (a, b) = match (expected_tokens.next(), found_tokens.next()) {
            (None, None) => break,
            (a, b) => (a.unwrap_or("its end"), b.unwrap_or("its end")),
        };
        let (x, y) = (number(a), number(b));
        let (Some(x), Some(y)) = (x, y) else {
            if a != b {
                return Err(format!("expected {}, found {}", shorten(a), shorten(b)));
            }
            continue;
        };
        let integers = (a.parse::<i64>(), b.parse::<i64>());
        if let (Ok(a), Ok(b)) = integers
            && a != b
        {
            return Err(format!("expected {a}, found {b}"));
        }
        most = most.max((x - y).abs());
        largest = largest.max(x.abs());
    }
    // A result that is zero everywhere is compared with what rounding makes of small numbers.
    Ok(most / largest.max(1e-3))
}

fn number(token: &str) -> Option<f64> {
    let begins_one = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    begins_one.then(|| token.parse().ok()).flatten()
}

/// The tokens of a JSON text that is known to be valid, without the space between them.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let end = match text.as_bytes().first()? {
            b'[' | b']' | b'{' | b'}' | b',' | b':' => 1,
            b'"' => {
                let mut escaped = false;
                let end = text.bytes().skip(1).position(|byte| {
                    let is_end = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    is_end
                });
                end.map_or(text.len(), |end| end + 2)
            }
            _ => text
                .find(|c: char| c.is_ascii_whitespace() || "[]{},:\"".contains(c))
                .unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn shorten(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_a_part_of_the_largest() {
        assert_eq!(compare_outputs("[0.5, 200.0]", "[0.5,200.0]"), Ok(0.0));
        assert_eq!(compare_outputs("[0.5, 200.0]", "[2.5, 200.0]"), Ok(0.01));
        assert_eq!(compare_outputs("[2.0]", "[2]"), Ok(0.0));
        assert_eq!(compare_outputs("[-1e-3]", "[-2e-3]"), Ok(1.0));
    }

    #[test]
    fn what_is_no_number_must_be_equal() {
        for (expected, found) in [
            ("[1, 2]", "[1, 3]"),
            ("[1.0]", "[1.0, 1.0]"),
            ("[[1.0], []]", "[[1.0, []]]"),
            (r#"{"N": [1, "Empty"]}"#, r#"{"N": [1, "Full"]}"#),
            (r#""a \" b""#, r#""a \" c""#),
            ("null", "0.5"),
        ] {
            assert!(
                compare_outputs(expected, found).is_err(),
                "{expected} {found}"
            );
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let deep = "[".repeat(100_000) + "1.5" + &"]".repeat(100_000);
        let record = format!(r#"{{"id": 1, "output": {deep}}}"#);
        assert_eq!(compare_lines(&record, &record), Ok(0.0));
    }

    #[test]
    fn errors_are_compared_by_kind() {
        let error =
            |kind: &str| format!(r#"{{"id": 1, "error": {{"kind": "{kind}", "message": ""}}}}"#);
        let output = |id: u32| format!(r#"{{"id": {id}, "output": 2.5}}"#);
        assert_eq!(compare_lines(&error("input"), &error("input")), Ok(0.0));
        assert!(compare_lines(&error("input"), &error("depth_limit")).is_err());
        assert!(compare_lines(&error("input"), &output(1)).is_err());
        assert!(compare_lines(&output(1), &output(2)).is_err());
    }
}
