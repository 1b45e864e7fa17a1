//! JSON Lines in, JSON Lines out: one instance a line, in order.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};

use serde::de::DeserializeSeed;
use serde_json::{Deserializer, Value as Json};

use crate::error::{ErrorKind, InstanceError};
use crate::limits::Limits;
use crate::oracle::Oracle;
use crate::stack::on_large_stack;
use crate::unique::Reader;

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
    /// Lines that are instances, failed ones included.
    pub instances: u64,
    /// Those with an error record.
    pub failed: u64,
}

/// An instance that was read: its id, and what its line holds.
pub(crate) struct Instance {
    pub(crate) id: Json,
    pub(crate) members: Result<Json, InstanceError>,
}

impl Oracle<'_> {
    /// Runs every line of `reader`, and writes a record for each but the blank ones. A missing
    /// id is the line's number, from 1.
    pub fn run_stream(
        &self,
        reader: impl BufRead + Send,
        mut writer: impl Write + Send,
        limits: Limits,
    ) -> io::Result<StreamSummary> {
        let summary = each_instance(reader, limits, |Instance { id, members }| {
            let result = members.and_then(|members| self.run_as(&id, &members, limits));
            let record = Record { id, result };
            record.write(&mut writer)?;
            Ok(record.result.is_ok())
        })?;
        writer.flush()?;
        Ok(summary)
    }
}

/// Calls `run`, which says whether all went well, with each line but the blank ones.
pub(crate) fn each_instance(
    reader: impl BufRead + Send,
    limits: Limits,
    mut run: impl FnMut(Instance) -> io::Result<bool> + Send,
) -> io::Result<StreamSummary> {
    on_large_stack(|| {
        let mut summary = StreamSummary::default();
        for (index, line) in reader.split(b'\n').enumerate() {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let succeeded = run(Instance::read(&line, Json::from(index + 1), limits))?;
            summary.instances += 1;
            summary.failed += u64::from(!succeeded);
        }
        Ok(summary)
    })?
}

impl Instance {
    /// Reads a line; `default_id` is the id if the line has none.
    fn read(line: &[u8], default_id: Json, limits: Limits) -> Instance {
        let text = std::str::from_utf8(line).map_err(|error| malformed(&error.to_string()));
        let members = text.and_then(|text| parse_all(text, limits));
        let (id, members) = match members {
            Ok((members, twice)) => {
                let id = members.get("id").cloned();
                (id, twice.map_or(Ok(members), Err))
            }
            Err(error) => (None, Err(error)),
        };
        match id {
            Some(id) if !id.is_string() && !id.is_number() => Instance {
                id: default_id,
                members: Err(InstanceError::new(
                    ErrorKind::BadInput,
                    "id: expected a string or a number",
                )),
            },
            id => Instance {
                id: id.unwrap_or(default_id),
                members,
            },
        }
    }
}

/// An id as what it is known by: 7 and "7" are the same.
pub(crate) fn id_text(id: &Json) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

impl Record {
    /// Writes the record as one line.
    pub fn write(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.write_as("output", writer)
    }

    /// Writes the record as one line, with the result as a member of some name.
    pub(crate) fn write_as(
        &self,
        name: &str,
        writer: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        write!(writer, "{{\"id\":{},", self.id)?;
        match &self.result {
            Ok(output) => {
                write!(writer, "\"{name}\":")?;
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

/// Parses JSON that nests no deeper than the limits allow; where the stack is large, see
/// [`on_large_stack`].
pub fn parse(text: &str, limits: Limits) -> Result<Json, InstanceError> {
    let (value, twice) = parse_all(text, limits)?;
    twice.map_or(Ok(value), Err)
}

/// What a text of JSON has, and what is wrong where an object has a member twice.
fn parse_all(text: &str, limits: Limits) -> Result<(Json, Option<InstanceError>), InstanceError> {
    let nesting = nesting_of(text);
    if nesting > limits.max_nesting() {
        let message = format!("the input nests {nesting} levels deep, see --max-depth");
        return Err(InstanceError::new(ErrorKind::DepthLimit, message));
    }
    let mut deserializer = Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let twice = RefCell::new(None);
    let value = Reader { twice: &twice }.deserialize(&mut deserializer);
    let value = value
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| malformed(&error.to_string()))?;
    let twice = twice
        .into_inner()
        .map(|name: String| InstanceError::new(ErrorKind::BadInput, format!("two keys {name:?}")));
    Ok((value, twice))
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
    fn a_member_that_is_there_twice_is_refused() {
        for (text, name) in [
            (r#"{"id":"a","x":1,"id":"b"}"#, "id"),
            (r#"{"x":[{"N":{"a":[1,true,null],"a":2}}]}"#, "a"),
        ] {
            let error = parse(text, Limits::default()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadInput);
            assert_eq!(error.message, format!("two keys \"{name}\""));
        }
        let line = br#"{"id":"a","x":1,"id":"b"}"#;
        let instance = Instance::read(line, Json::from(1), Limits::default());
        assert_eq!(instance.id, "a");
        assert!(instance.members.is_err());
        let text = r#"{"x":[{"a":-1},{"a":1.5}],"y":"a","z":[18446744073709551615]}"#;
        let plain: Json = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text, Limits::default()), Ok(plain));
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
