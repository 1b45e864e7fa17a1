//! Instances as JSON: an object is one, a list of them or lines are many.

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::input::{Decoder, Inputs};
use cohort_runtime::io::output::columns::Columns;
use cohort_runtime::io::output::json::record;
use serde_json::value::RawValue;

use super::infer::work;
use super::refusal::Refusal;

/// The texts of a list's elements.
pub fn elements(list: &[u8]) -> Result<Vec<&str>, Refusal> {
    let wrong = |error: serde_json::Error| Refusal::bad(format!("malformed JSON: {error}"));
    let elements: Vec<&RawValue> = serde_json::from_slice(list).map_err(wrong)?;
    Ok(elements.into_iter().map(RawValue::get).collect())
}

/// The lines that have an instance, with their numbers from 1 on.
pub fn lines(body: &[u8]) -> Vec<(u64, &[u8])> {
    let lines = body.split(|byte| *byte == b'\n').zip(1..);
    let is_blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
    lines
        .filter(|(line, _)| !is_blank(line))
        .map(|(line, number)| (number, line))
        .collect()
}

/// The instance of a text; without an id of its own it has the number.
pub fn instance(manifest: &Manifest, max_memory: u64, number: u64, text: &[u8]) -> Inputs {
    work(text.len(), || {
        let mut inputs = Inputs::default();
        inputs.reset(manifest, 0);
        Decoder::new(manifest, max_memory).decode(number, text, &mut inputs);
        inputs
    })
}

/// The record of an instance, with the end of its line.
pub fn line(
    manifest: &Manifest,
    columns: &Columns,
    instance: usize,
    max_memory: u64,
) -> Result<Vec<u8>, Refusal> {
    let record = work(columns.size(), || {
        record(manifest, columns, instance, max_memory)
    });
    record.map_err(|error| Refusal::internal(error.to_string()))
}

/// All records, as lines or as a list.
pub fn records(
    manifest: &Manifest,
    columns: &Columns,
    max_memory: u64,
    is_list: bool,
) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    for number in 0..columns.instances.len() {
        let mut line = line(manifest, columns, number, max_memory)?;
        if is_list {
            line.pop();
            text.extend_from_slice(if number == 0 { b"[" } else { b",\n " });
        }
        text.append(&mut line);
    }
    if is_list {
        text.extend_from_slice(if text.is_empty() { b"[]\n" } else { b"]\n" });
    }
    Ok(text)
}
