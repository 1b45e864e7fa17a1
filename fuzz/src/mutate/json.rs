//! Changes of JSON values: a part becomes another, is left out, repeated or nested.

use cohort_e2e::Rng;
use serde_json::{Value as Json, json};

use super::{NUMBERS, bytes};

/// Texts that are not JSON, or whose meaning is disputed.
const ODD: [&str; 12] = [
    "NaN",
    "Infinity",
    "-0",
    "01",
    "+1",
    ".5",
    "1.",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "tru",
    "'a'",
    "\u{feff}1",
];

/// Changes each of the lines between the first and the last.
pub fn mutate_lines(input: &[u8], rng: &mut Rng) -> Vec<u8> {
    let lines: Vec<&[u8]> = input
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let last = lines.len().saturating_sub(1);
    let mut text = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match at == 0 || at == last {
            true => text.extend_from_slice(line),
            false => {
                let other = *rng.pick(&lines);
                text.extend(mutate_line(line, other, rng));
            }
        }
        text.push(b'\n');
    }
    text
}

/// One instance stays one line, and a line that is empty is none.
fn mutate_line(line: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut changed = match rng.below(8) {
        0 => bytes::mutate(line, other, rng),
        _ => mutate_text(line, other, rng),
    };
    changed.retain(|byte| *byte != b'\n');
    if changed.trim_ascii().is_empty() {
        changed = b"{}".to_vec();
    }
    changed
}

/// Changes a text that is JSON; one that is not, byte by byte.
pub fn mutate_text(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Json>(input) else {
        return bytes::mutate(input, other, rng);
    };
    let other = serde_json::from_slice::<Json>(other).unwrap_or(Json::Null);
    mutate(&mut value, &other, rng);
    let mut text = value.to_string();
    if rng.one_in(10)
        && let Some(at) = text.find(|c: char| c.is_ascii_digit())
    {
        let odd = *rng.pick(&ODD);
        text.replace_range(at..at + 1, odd);
    }
    text.into_bytes()
}

pub fn mutate(value: &mut Json, other: &Json, rng: &mut Rng) {
    let donor = node(&mut other.clone(), rng).clone();
    let target = node(value, rng);
    match rng.below(12) {
        0..=2 => {
            let number = *rng.pick(&NUMBERS);
            let number = serde_json::from_str(number);
            *target = number.unwrap_or_else(|_| json!(0));
        }
        3 => {
            *target = rng
                .pick(&[
                    Json::Null,
                    json!(true),
                    json!(""),
                    json!([]),
                    json!({}),
                    json!("NaN"),
                ])
                .clone()
        }
        4 | 5 => *target = donor,
        6 => *target = json!([target.take()]),
        7 => {
            let mut nested = target.take();
            // Deeper nesting than that serde_json's own values cannot print.
            for _ in 0..1 << rng.below(7) {
                nested = if rng.one_in(2) {
                    json!([nested])
                } else {
                    json!({ "Node": [nested] })
                };
            }
            *target = nested;
        }
        _ => change_parts(target, donor, rng),
    }
}

/// Changes how many parts a list or an object has, or its names.
fn change_parts(target: &mut Json, donor: Json, rng: &mut Rng) {
    match target {
        Json::Array(elements) if !elements.is_empty() => {
            let at = rng.below(elements.len());
            match rng.below(5) {
                0 => drop(elements.remove(at)),
                1 => elements.insert(at, elements[at].clone()),
                2 => elements.push(donor),
                3 => elements.truncate(at),
                _ => {
                    let copy = elements[at].clone();
                    elements.extend(std::iter::repeat_n(copy, 1 << rng.below(8)));
                }
            }
        }
        Json::Object(members) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = rng.pick(&names).clone();
            match rng.below(4) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert("unknown".into(), donor)),
                2 => {
                    let value = members.remove(&name).unwrap_or_default();
                    members.insert(format!("{name}x"), value);
                }
                _ => {
                    let value = members.remove(&name).unwrap_or_default();
                    let to = rng.pick(&names).clone();
                    members.insert(to, value);
                }
            }
        }
        Json::String(text) => match rng.below(3) {
            0 => text.clear(),
            1 => *text = text.repeat(1 << rng.below(12)),
            _ => text.push_str("\u{0}\"\u{202e}é"),
        },
        Json::Number(number) => {
            let value = number.as_i64().unwrap_or(0);
            *target = json!(value.wrapping_add(*rng.pick(&[-1, 1, 8, 64, -64])));
        }
        other => *other = donor,
    }
}

/// A random part, deep ones as often as others.
fn node<'v>(value: &'v mut Json, rng: &mut Rng) -> &'v mut Json {
    let size = size(value);
    let mut index = rng.below(size);
    nth(value, &mut index).expect("there are as many parts")
}

fn size(value: &Json) -> usize {
    1 + match value {
        Json::Array(elements) => elements.iter().map(size).sum(),
        Json::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

fn nth<'v>(value: &'v mut Json, index: &mut usize) -> Option<&'v mut Json> {
    if *index == 0 {
        return Some(value);
    }
    *index -= 1;
    match value {
        Json::Array(elements) => elements.iter_mut().find_map(|part| nth(part, index)),
        Json::Object(members) => members.values_mut().find_map(|part| nth(part, index)),
        _ => None,
    }
}
