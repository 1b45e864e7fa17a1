//! `--sarif`: what there is to say of a program, as SARIF 2.1.0, which code hosts and editors show at the lines
//! it is about.
//!
//! As with stderr there is one log of a process: whoever shows a diagnostic adds it. Nothing is kept where
//! nobody asked for a log.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use cohort_runtime::locks::locked;
use serde_json::{Value, json};

use crate::exit::{SUCCESS, Stop};
use crate::output::Document;

/// A place in a file: lines and columns from 1, columns in characters, the end behind the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRegion {
    /// The file, as the command line names it.
    pub file: String,
    /// Line and column of the first character, from 1.
    pub start: (usize, usize),
    /// Line and column behind the last character.
    pub end: Option<(usize, usize)>,
    /// What is said of this place.
    pub message: Option<String>,
}

/// `error`, `warning`, or `note` for what a run could do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What stops the compiler.
    Error,
    /// What is likely not meant.
    Warning,
    /// What is worth to know.
    Note,
}

/// One thing to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A stable name of its kind, such as `E0301`.
    pub rule: String,
    /// How bad it is.
    pub level: Level,
    /// What people read.
    pub message: String,
    /// Where it is, and places that explain it.
    pub places: Vec<FileRegion>,
    /// Places that explain it.
    pub related: Vec<FileRegion>,
    /// Figures, or nothing.
    pub properties: Value,
}

static FOUND: Mutex<Option<Vec<Finding>>> = Mutex::new(None);

fn found() -> MutexGuard<'static, Option<Vec<Finding>>> {
    locked(&FOUND)
}

/// Adds a finding to the log, if there is one.
pub fn add(finding: impl FnOnce() -> Finding) {
    if let Some(found) = found().as_mut() {
        found.push(finding());
    }
}

/// Whether there is a log.
#[cfg(feature = "compiler")]
pub fn is_kept() -> bool {
    found().is_some()
}

/// The log of a tool's run, in the file that it goes to.
pub struct Log {
    tool: &'static str,
    file: Document,
}

impl Log {
    /// From now on findings are kept.
    pub fn begin(tool: &'static str, path: &Path) -> Result<Log, Stop> {
        let file = Document::open(path)?;
        *found() = Some(Vec::new());
        Ok(Log { tool, file })
    }

    /// Writes the log, and how the run ended; returns that.
    pub fn end(self, result: Result<u8, Stop>) -> Result<u8, Stop> {
        let findings = found().take().unwrap_or_default();
        let problem = result.as_ref().err().map(|stop| stop.message.as_str());
        let code = match &result {
            Ok(code) => *code,
            Err(stop) => stop.code,
        };
        let log = log(self.tool, &findings, code, problem);
        let written = serde_json::to_vec_pretty(&log)
            .map_err(|error| Stop::usage(format!("cannot write the findings: {error}")))
            .and_then(|mut json| {
                json.push(b'\n');
                self.file.write(&json)
            });
        // Why the run itself ended comes first.
        result.and_then(|code| written.map(|()| code))
    }
}

fn log(tool: &str, findings: &[Finding], code: u8, problem: Option<&str>) -> Value {
    let mut rules: Vec<&str> = Vec::new();
    let mut results = Vec::new();
    for finding in findings {
        let known = rules.iter().position(|rule| *rule == finding.rule);
        let index = known.unwrap_or_else(|| {
            rules.push(&finding.rule);
            rules.len() - 1
        });
        results.push(result(finding, index));
    }
    let rules: Vec<Value> = rules.iter().map(|rule| json!({ "id": rule })).collect();
    let notifications: Vec<Value> = problem
        .filter(|problem| !problem.is_empty())
        .map(|problem| json!({ "level": "error", "message": { "text": problem } }))
        .into_iter()
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": tool,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": code == SUCCESS,
                "exitCode": code,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

fn result(finding: &Finding, rule: usize) -> Value {
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": level,
        "message": { "text": finding.message },
        "locations": finding.places.iter().map(location).collect::<Vec<_>>(),
    });
    if !finding.related.is_empty() {
        let related = finding.related.iter().map(location);
        result["relatedLocations"] = related.collect();
    }
    if !finding.properties.is_null() {
        result["properties"] = finding.properties.clone();
    }
    result
}

fn location(place: &FileRegion) -> Value {
    let mut region = json!({ "startLine": place.start.0, "startColumn": place.start.1 });
    if let Some((line, column)) = place.end {
        region["endLine"] = line.into();
        region["endColumn"] = column.into();
    }
    let mut location = json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&place.file) },
        "region": region,
    } });
    if let Some(message) = &place.message {
        location["message"] = json!({ "text": message });
    }
    location
}

/// A path as a reference: relative as it was given, or of a file of this machine.
fn uri(path: &str) -> String {
    let mut uri = match path.starts_with('/') {
        true => "file://".to_owned(),
        false => String::new(),
    };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_references() {
        assert_eq!(uri("models/a b.coh"), "models/a%20b.coh");
        assert_eq!(uri("/tmp/ä:1.coh"), "file:///tmp/%C3%A4%3A1.coh");
    }

    #[test]
    fn a_log_names_each_rule_once_and_says_how_the_run_ended() {
        let finding = |rule: &str| Finding {
            rule: rule.to_owned(),
            level: Level::Warning,
            message: "odd".to_owned(),
            places: vec![FileRegion {
                file: "a.coh".to_owned(),
                start: (3, 5),
                end: Some((3, 9)),
                message: None,
            }],
            related: Vec::new(),
            properties: Value::Null,
        };
        let findings = [finding("W1"), finding("W2"), finding("W1")];
        let log = log("batch-run", &findings, 2, Some("no weights"));
        let run = &log["runs"][0];
        assert_eq!(
            run["tool"]["driver"]["rules"],
            json!([{ "id": "W1" }, { "id": "W2" }])
        );
        let indices: Vec<&Value> = (0..3)
            .map(|index| &run["results"][index]["ruleIndex"])
            .collect();
        assert_eq!(indices, [0, 1, 0]);
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(notification["message"]["text"], "no weights");
    }
}
