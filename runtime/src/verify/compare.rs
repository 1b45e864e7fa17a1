//! Records of two runs, and traces of two runs, side by side.

use cohort_abi::manifest::{Elem, Manifest};
use serde_json::Value;

use super::report::{Divergence, OutputDifference};
use crate::report::trace::{Event, Trace};

/// A line of the output, its id apart: ids may be line numbers, which differ between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// As JSON text.
    pub id: String,
    /// What follows the id: the output or the error.
    body: String,
}

impl Record {
    /// `None` when the line is not one that [`crate::io::output`] writes.
    pub fn parse(line: &[u8]) -> Option<Record> {
        let text = std::str::from_utf8(line).ok()?.strip_prefix("{\"id\": ")?;
        let id_end = match text.strip_prefix('"') {
            Some(string) => 1 + end_of_string(string)?,
            None => text.find(',')?,
        };
        let (id, body) = text.split_at(id_end);
        Some(Record {
            id: id.to_owned(),
            body: body.strip_prefix(", ")?.strip_suffix('}')?.to_owned(),
        })
    }

    pub fn is_error(&self) -> bool {
        self.body.starts_with("\"error\"")
    }

    /// Whether both say the same. What is wrong with a line may be told by its number, so of two
    /// lines that are not instances only that counts.
    pub fn same(&self, other: &Record) -> bool {
        let is_bad_input = |record: &Record| {
            record
                .body
                .starts_with("\"error\": {\"kind\": \"bad_input\"")
        };
        self.body == other.body || is_bad_input(self) && is_bad_input(other)
    }

    /// The first number that differs.
    pub fn output_difference(&self, then: &Record) -> OutputDifference {
        let parse = |record: &Record| -> Value {
            serde_json::from_str(&format!("{{{}}}", record.body))
                // Too deep for this reader.
                .unwrap_or_else(|_| Value::String(record.body.clone()))
        };
        let mut path = String::new();
        let (first, then) = first_leaf(&parse(self), &parse(then), &mut path);
        OutputDifference { path, first, then }
    }
}

/// Where a string that began before `text` ends, behind its closing quote.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some(end + 1)
}

/// Finds the first parts that differ and are not both lists of one length; leaves where that is in
/// `path`. Outputs may nest deeply, so nothing recurses.
fn first_leaf(first: &Value, then: &Value, path: &mut String) -> (String, String) {
    let (mut first, mut then) = (first, then);
    loop {
        let step = match (first, then) {
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (a.iter().zip(b))
                .enumerate()
                .find(|(_, (a, b))| a != b)
                .map(|(index, pair)| (format!("[{index}]"), pair)),
            (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => (a.iter().zip(b))
                .find(|((_, a), (_, b))| a != b)
                .map(|((key, a), (_, b))| (format!(".{key}"), (a, b))),
            _ => None,
        };
        let Some((name, (a, b))) = step else {
            return (leaf(first), leaf(then));
        };
        path.push_str(if path.is_empty() { &name[1..] } else { &name });
        (first, then) = (a, b);
    }
}

fn leaf(value: &Value) -> String {
    const SHOWN: usize = 120;
    match value.as_f64() {
        Some(number) if !value.is_i64() && !value.is_u64() => {
            format!("{value} (0x{:08x})", (number as f32).to_bits())
        }
        _ => {
            let text = value.to_string();
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

/// The first event that is not the same in both.
pub fn first_difference(manifest: &Manifest, first: &Trace, then: &Trace) -> Divergence {
    let mut calls = 0;
    for (a, b) in first.events.iter().zip(&then.events) {
        match (a, b) {
            (
                Event::Call { kernel, rows },
                Event::Call {
                    kernel: other,
                    rows: others,
                },
            ) if kernel == other => {
                calls += 1;
                if let Some(place) = row_difference(manifest, *kernel, calls, rows, others) {
                    return place;
                }
            }
            (
                Event::Decision { force, bits },
                Event::Decision {
                    force: other,
                    bits: others,
                },
            ) if force == other => {
                if bits != others {
                    let force = manifest.forces.get(*force as usize);
                    return Divergence::Decision {
                        location: force.map_or(String::new(), |force| force.location.clone()),
                        first: *bits,
                        then: *others,
                    };
                }
            }
            _ => return Divergence::Path { calls },
        }
    }
    if first.events.len() == then.events.len() {
        Divergence::Unstable
    } else {
        Divergence::Path { calls }
    }
}

fn row_difference(
    manifest: &Manifest,
    kernel: u32,
    call: usize,
    first: &[Box<[u8]>],
    then: &[Box<[u8]>],
) -> Option<Divergence> {
    let result = (0..first.len().max(then.len())).find(|i| first.get(*i) != then.get(*i))?;
    let empty: &[u8] = &[];
    let row = |rows: &[Box<[u8]>]| rows.get(result).map_or(empty.to_vec(), |row| row.to_vec());
    let (first, then) = (row(first), row(then));
    let kernel = manifest.kernels.get(kernel as usize)?;
    let elem = manifest.row_pools[*kernel.results.get(result)?].elem;
    let bytes = elem.bytes();
    let element = (0..first.len().min(then.len()))
        .find(|i| first[*i] != then[*i])
        .map_or(0, |byte| byte / bytes);
    let bits = |row: &[u8]| {
        let mut word = [0; 4];
        if let Some(found) = row.get(element * bytes..(element + 1) * bytes) {
            word[..bytes].copy_from_slice(found);
        }
        u32::from_le_bytes(word)
    };
    Some(Divergence::Row {
        kernel: kernel.name.clone(),
        location: kernel.location.clone(),
        call,
        result,
        element,
        is_float: elem == Elem::F32,
        first: bits(&first),
        then: bits(&then),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Record {
        Record::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn ids_do_not_count_whatever_is_in_them() {
        let odd = record(r#"{"id": "a\", \"output\": [1]", "output": [2.5]}"#);
        assert_eq!(odd.id, r#""a\", \"output\": [1]""#);
        assert!(odd.same(&record(r#"{"id": 7, "output": [2.5]}"#)));
        assert!(!odd.same(&record(r#"{"id": 7, "output": [2.75]}"#)));
        assert!(Record::parse(b"{\"id\": 7}").is_none());
    }

    #[test]
    fn the_first_differing_number_is_shown_with_its_bits() {
        let first = record(r#"{"id": 1, "output": {"Node": [[1.5, 2.0], 3]}}"#);
        let then = record(r#"{"id": 1, "output": {"Node": [[1.5, 2.25], 4]}}"#);
        let OutputDifference { path, first, then } = first.output_difference(&then);
        assert_eq!(path, "output.Node[0][1]");
        assert_eq!(
            (first.as_str(), then.as_str()),
            ("2.0 (0x40000000)", "2.25 (0x40100000)")
        );
    }
}
