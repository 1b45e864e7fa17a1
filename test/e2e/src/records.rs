//! Lines of output: what they say, and how they compare.

use cohort_oracle::{Tolerance, compare_outputs};
use serde_json::Value as Json;

/// One line of output.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The `id` of the instance.
    pub id: Json,
    /// Its `output`, or what went wrong.
    pub result: Result<Json, RecordError>,
}

/// The error record of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The kind of error, such as `bad_input`.
    pub kind: String,
    /// What people read.
    pub message: String,
}

impl Record {
    /// Parses a line, which must be of one of the two forms that a record has.
    pub fn parse(line: &str) -> Result<Record, String> {
        let json: Json =
            serde_json::from_str(line).map_err(|error| format!("{error} in `{line}`"))?;
        let members = json
            .as_object()
            .ok_or_else(|| format!("no object: `{line}`"))?;
        let malformed = || format!("neither an output nor an error record: `{line}`");
        let id = members.get("id").ok_or_else(malformed)?.clone();
        if members.len() != 2 {
            return Err(malformed());
        }
        if let Some(output) = members.get("output") {
            return Ok(Record {
                id,
                result: Ok(output.clone()),
            });
        }
        let text = |name: &str| -> Option<String> {
            Some(members.get("error")?.get(name)?.as_str()?.to_string())
        };
        match (text("kind"), text("message")) {
            (Some(kind), Some(message)) => Ok(Record {
                id,
                result: Err(RecordError { kind, message }),
            }),
            _ => Err(malformed()),
        }
    }
}

/// How much of a value's magnitude two implementations may differ by.
#[derive(Clone, Copy, Debug)]
pub enum Closeness {
    /// Of each number by itself, and this much around zero.
    EachNumber(f64),
    /// Of the largest number of the instance's output.
    WholeOutput(f64),
}

/// Compares the records of two runs, line by line.
pub fn compare_records(
    expected: &[String],
    actual: &[String],
    closeness: Closeness,
) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!(
            "{} records expected, {} found",
            expected.len(),
            actual.len()
        ));
    }
    for (line, (expected, actual)) in expected.iter().zip(actual).enumerate() {
        let expected = Record::parse(expected)?;
        let actual = Record::parse(actual)?;
        let place = format!("record {} (id {})", line + 1, expected.id);
        if expected.id != actual.id {
            return Err(format!("{place}: found the id {}", actual.id));
        }
        match (&expected.result, &actual.result) {
            (Ok(expected), Ok(actual)) => {
                compare_outputs(expected, actual, tolerance(closeness, expected))
                    .map_err(|difference| format!("{place}: {difference}"))?;
            }
            (Err(expected), Err(actual)) if expected.kind == actual.kind => {}
            (expected, actual) => {
                return Err(format!("{place}: {expected:?} expected, {actual:?} found"));
            }
        }
    }
    Ok(())
}

fn tolerance(closeness: Closeness, expected: &Json) -> Tolerance {
    match closeness {
        Closeness::EachNumber(part) => Tolerance {
            relative: part,
            absolute: part,
        },
        Closeness::WholeOutput(part) => Tolerance {
            relative: 0.0,
            absolute: part * largest(expected).max(0.1),
        },
    }
}

fn largest(json: &Json) -> f64 {
    match json {
        // Integers are exact, and no measure for what is not.
        Json::Number(number) if number.is_f64() => number.as_f64().unwrap_or(0.0).abs(),
        Json::Array(elements) => elements.iter().map(largest).fold(0.0, f64::max),
        Json::Object(members) => members.values().map(largest).fold(0.0, f64::max),
        _ => 0.0,
    }
}

/// The lines of a text that are not blank.
pub fn lines(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_string)
        .collect()
}
