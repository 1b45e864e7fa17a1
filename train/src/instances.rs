//! The instances of a data set, as lines of JSON that each know their id.
//!
//! Mini-batches take lines out of their places, so an id that is the number of a line is written into it.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A line that is one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// As JSON writes it, `7` or `"s1"`.
    pub id: String,
    /// An object that has the id.
    pub line: String,
}

/// A line that is none.
#[derive(Clone, Debug, PartialEq)]
pub struct BadLine {
    /// Of the line, counted from 1.
    pub number: usize,
    /// What was expected, or what is wrong.
    pub reason: String,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// Also `null` is there.
fn present<'de, D: Deserializer<'de>>(text: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(text).map(Some)
}

/// The instances of a text, and the lines of it that are none. Blank lines count for nothing but numbers.
pub fn read(bytes: &[u8]) -> (Vec<Instance>, Vec<BadLine>) {
    let (mut instances, mut bad) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = index + 1;
        match instance(line, number) {
            Ok(instance) => instances.push(instance),
            Err(reason) => bad.push(BadLine { number, reason }),
        }
    }
    (instances, bad)
}

fn instance(line: &[u8], number: usize) -> Result<Instance, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let text = text.trim();
    if !text.starts_with('{') {
        return Err("expected an object, one member for each argument".to_owned());
    }
    // What is not asked for is skipped without recursion, however deep it is.
    let members: Members = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let id = members.id.map(RawValue::get);
    match id {
        Some(id) if id.starts_with(['"', '-']) || id.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(Instance {
                id: id.to_owned(),
                line: text.to_owned(),
            })
        }
        Some(_) => Err("id: expected a string or a number".to_owned()),
        None => {
            let rest = text[1..].trim_start();
            let comma = if rest.starts_with('}') { "" } else { "," };
            Ok(Instance {
                id: number.to_string(),
                line: format!("{{\"id\":{number}{comma}{rest}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_missing_is_the_number_of_the_line() {
        let deep = format!(
            "{{\"id\": \"deep\", \"t\": {}{}}}",
            "[".repeat(9999),
            "]".repeat(9999)
        );
        let text =
            format!("{{\"x\": 1}}\n\n {{ }}\n{{\"x\": {{\"id\": 9}}, \"id\": \"s\"}}\r\n{deep}");
        let (instances, bad) = read(text.as_bytes());
        assert_eq!(bad, []);
        let lines: Vec<(&str, &str)> = instances
            .iter()
            .map(|i| (i.id.as_str(), i.line.as_str()))
            .collect();
        assert_eq!(
            lines,
            [
                ("1", "{\"id\":1,\"x\": 1}"),
                ("3", "{\"id\":3}"),
                ("\"s\"", "{\"x\": {\"id\": 9}, \"id\": \"s\"}"),
                ("\"deep\"", deep.as_str()),
            ]
        );
    }

    #[test]
    fn lines_that_are_no_instances_are_told_by_number() {
        let text = b"{\"x\": 1\n[1]\n\xff\n{\"id\": [1]}\n{\"id\": null}\n{\"id\": 1, \"id\": 2}\n";
        let (instances, bad) = read(text);
        let numbers: Vec<usize> = bad.iter().map(|bad| bad.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert_eq!(instances, []);
    }
}
