//! JSON Lines in, JSON Lines out: one instance a line, in order.

use std::io::{self, BufRead, Write};

use serde_json::{Deserializer, Value as Json};

use crate::error::{ErrorKind, InstanceError};
use crate::limits::Limits;
use crate::oracle::Oracle;
use crate::stack::on_large_stack;

/// What one line gave.
#[derive(Debug)]
pub struct Record {
    /// The instance's own id, or the default one.
    pub id: Json,
    /// Deep as the limits allow: drop it where the stack is large, see [`on_large_stack`].
    pub result: Result<Json, InstanceError>,
}

/// How many instances a stream had, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    pub instances: u64,
    pub failed: u64,
}

impl Oracle<'_> {
    /// Runs the instance that one line of text describes; `default_id` is its id if the line has
    /// none.
    pub fn run_line(&self, line: &str, default_id: Json, limits: Limits) -> Record {
        let outcome = on_large_stack(|| self.run_line_here(line, default_id, limits));
        outcome.unwrap_or_else(|error| Record {
            id: Json::Null,
            result: Err(InstanceError::internal(format!(
                "no stack to run on: {error}"
            ))),
        })
    }

    /// Runs every line of `reader`, and writes a record for each but the blank ones. A missing
    /// id is the line's number, from 1.
    pub fn run_stream(
        &self,
        reader: impl BufRead + Send,
        mut writer: impl Write + Send,
        limits: Limits,
    ) -> io::Result<StreamSummary> {
        on_large_stack(|| {
            let mut summary = StreamSummary::default();
            for (index, line) in reader.split(b'\n').enumerate() {
                let line = line?;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let id = Json::from(index + 1);
                let record = match std::str::from_utf8(&line) {
                    Ok(line) => self.run_line(line, id, limits),
                    Err(error) => Record {
                        id,
                        result: Err(malformed(&error.to_string())),
                    },
                };
                summary.instances += 1;
                summary.failed += u64::from(record.result.is_err());
                record.write(&mut writer)?;
            }
            writer.flush()?;
            Ok(summary)
        })?
    }

    fn run_line_here(&self, line: &str, default_id: Json, limits: Limits) -> Record {
        let instance = match parse(line, limits) {
            Ok(instance) => instance,
            Err(error) => {
                return Record {
                    id: default_id,
                    result: Err(error),
                };
            }
        };
        let id = match instance.get("id") {
            None => default_id,
            Some(id) if id.is_string() || id.is_number() => id.clone(),
            Some(_) => {
                let message = "id: expected a string or a number";
                let error = InstanceError::new(ErrorKind::BadInput, message);
                return Record {
                    id: default_id,
                    result: Err(error),
                };
            }
        };
        let result = self.run_as(&id, &instance, limits);
        Record { id, result }
    }
}

impl Record {
    /// Writes the record as one line.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        write!(writer, "{{\"id\":{},", self.id)?;
        match &self.result {
            Ok(output) => {
                write!(writer, "\"output\":")?;
                serde_json::to_writer(&mut *writer, output)?;
            }
            Err(InstanceError { kind, message }) => {
                let message = Json::from(message.as_str());
                write!(
                    writer,
                    "\"error\":{{\"kind\":\"{kind}\",\"message\":{message}}}"
                )?;
            }
        }
        writeln!(writer, "}}")
    }
}

/// Parses JSON that nests no deeper than the limits allow.
fn parse(text: &str, limits: Limits) -> Result<Json, InstanceError> {
    let nesting = nesting_of(text);
    if nesting > limits.max_nesting() {
        let message = format!("the input nests {nesting} levels deep, see --max-depth");
        return Err(InstanceError::new(ErrorKind::DepthLimit, message));
    }
    let mut deserializer = Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = serde::Deserialize::deserialize(&mut deserializer);
    value
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| malformed(&error.to_string()))
}

/// How deep the brackets of a JSON text nest, found without parsing it.
fn nesting_of(text: &str) -> u64 {
    let mut deepest = 0_u64;
    let mut depth = 0_u64;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn malformed(reason: &str) -> InstanceError {
    InstanceError::new(
        ErrorKind::BadInput,
        format!("the line is not valid JSON: {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(nesting_of(r#"{"a":["[[[\"[[", [1]]}"#), 3);
        assert_eq!(nesting_of("]]]["), 1);
    }

    #[test]
    fn text_that_nests_deeper_than_allowed_is_refused_before_it_is_parsed() {
        let limits = Limits {
            max_depth: 10,
            ..Limits::default()
        };
        let text = "[".repeat(1_000_000);
        assert_eq!(
            parse(&text, limits).unwrap_err().kind,
            ErrorKind::DepthLimit
        );
    }
}
