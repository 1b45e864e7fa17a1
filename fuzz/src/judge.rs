//! How a run may end: with 0, 1 or 2, with a message unless with 0, within limits, and without a word
//! about a mistake of the tool's own.

use std::fs;

use crate::case::{Case, Check};
use crate::child::{Ending, How, MOST_BYTES};
use crate::mutate::Form;

/// Texts of mistakes of the tools' own.
const INTERNAL: [&str; 6] = [
    "panicked at",
    "internal error",
    "LLVM ERROR",
    "Stack dump",
    "PLEASE submit",
    "Assertion",
];

/// What is wrong with a run; two runs of one signature are taken to fail for the same reason.
pub fn judge(case: &Case, ending: &Ending) -> Option<String> {
    let finding = |kind: String| Some(format!("{kind}: {}", essence(&ending.stderr)));
    match is_fit(ending) {
        // That a forged program is inconsistent may be told as if the compiler had made it.
        Err(kind) if kind == INCONSISTENT && is_forged(case) => return None,
        Err(kind) => return finding(kind),
        Ok(()) => {}
    }
    match &case.check {
        Check::Records { good } if ending.how != How::Code(2) => {
            records(case, good).and_then(finding)
        }
        _ => None,
    }
}

const INCONSISTENT: &str = "`internal error`";

fn is_forged(case: &Case) -> bool {
    matches!(case.form, Form::Manifest | Form::Object)
}

/// Whether a run ended as any may, or what is wrong.
pub fn is_fit(ending: &Ending) -> Result<(), String> {
    let code = match ending.how {
        How::Signal(libc::SIGXCPU | libc::SIGALRM) => return Err("no end".into()),
        How::Signal(signal) => return Err(format!("signal {signal}")),
        How::Code(code) => code,
    };
    if let Some(text) = INTERNAL.iter().find(|text| ending.stderr.contains(*text)) {
        return Err(format!("`{text}`"));
    }
    if !(0..=2).contains(&code) {
        return Err(format!("exit code {code}"));
    }
    if ending.peak_bytes > MOST_BYTES {
        return Err("memory".into());
    }
    match code != 0 && ending.stderr.trim().is_empty() {
        true => Err(format!("exit code {code} without a message")),
        false => Ok(()),
    }
}

/// What is wrong with the records of a run.
fn records(case: &Case, good: &str) -> Option<String> {
    let output = fs::read_to_string("output.jsonl").unwrap_or_default();
    let lines: Vec<&str> = output.lines().collect();
    let count = case.bytes.split(|byte| *byte == b'\n');
    let count = count.filter(|line| !line.trim_ascii().is_empty()).count();
    if lines.len() != count {
        return Some("a number of records other than that of instances".into());
    }
    if lines.first() != Some(&good) || lines.last() != Some(&good) {
        return Some("another instance changed a good one's record".into());
    }
    let is_record = |line: &&str| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|record| record.get("output").is_some() != record.get("error").is_some())
    };
    (!lines.iter().all(is_record)).then(|| "a line that is not a record".into())
}

/// The line of a message that says what happened, without what differs from input to input.
pub fn essence(stderr: &str) -> String {
    let line = INTERNAL
        .iter()
        .find_map(|text| stderr.lines().position(|line| line.contains(text)))
        .or_else(|| stderr.lines().position(|line| line.contains("error")))
        .and_then(|index| {
            let mut lines = stderr.lines().skip(index);
            let first = lines.next()?;
            // A panic says where in its first line, and why in its second.
            let second = lines.next().filter(|_| first.contains("panicked at"));
            Some(format!("{first} {}", second.unwrap_or_default()))
        })
        .unwrap_or_default();
    let is_panic = line.contains("panicked at");
    // Without the thread, which has another number in each process.
    let line = line.find("panicked at").map_or(&line[..], |at| &line[at..]);
    let mut plain = String::new();
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '`' | '"' | '\'') if !is_panic => {
                quote = Some(character);
                plain.push('_');
            }
            (None, _) if character.is_ascii_digit() && !is_panic => {
                if !plain.ends_with('0') {
                    plain.push('0');
                }
            }
            _ => plain.push(character),
        }
    }
    plain
        .chars()
        .take(160)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_names_and_numbers_are_one() {
        let (first, second) = (
            "a\nerror[E0201]: `foo` at 17",
            "error[E0201]: `bar` at 3\nb",
        );
        assert_eq!(essence(first), essence(second));
        assert_eq!(essence(first), "error[E0]: _ at 0");
        let other = "thread 'x' (81) panicked at a.rs:17:3:\nindex out of bounds";
        assert_eq!(essence(other), "panicked at a.rs:17:3: index out of bounds");
    }
}
