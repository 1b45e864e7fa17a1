//! Changes of text in words, numbers and brackets, of `.coh` and MLIR alike.

use cohort_e2e::Rng;
use cohort_tools::reduce::tokens::{closing, is_blank, tokens};

use super::{NUMBERS, bytes};

pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let (Ok(text), Ok(other_text)) = (std::str::from_utf8(input), std::str::from_utf8(other))
    else {
        return bytes::mutate(input, other, rng);
    };
    let mut mine = tokens(text);
    let others = tokens(other_text);
    let Some(at) = pick(&mine, rng, |token| !is_blank(token)) else {
        return other.to_vec();
    };
    let deep: String;
    match rng.below(16) {
        0 => drop(mine.remove(at)),
        1 => mine.insert(at, mine[at]),
        2 => {
            if let Some(with) = pick(&mine, rng, |token| !is_blank(token)) {
                mine.swap(at, with);
            }
        }
        // Another of its kind, from here or from the other text.
        3..=6 => {
            let from = if rng.one_in(2) { mine.clone() } else { others };
            let kind = kind(mine[at]);
            if let Some(found) = pick(&from, rng, |token| self::kind(token) == kind) {
                mine[at] = from[found];
            }
        }
        7 | 8 => {
            if let Some(number) = pick(&mine, rng, |token| kind(token) == Kind::Number) {
                mine[number] = *rng.pick(&NUMBERS);
            }
        }
        // Whole bracketed parts: gone, twice, or exchanged.
        9 => {
            if let Some((start, end)) = group(&mine, rng) {
                mine.drain(start + 1..end);
            }
        }
        10 => {
            if let Some((start, end)) = group(&mine, rng) {
                let copy = mine[start..=end].to_vec();
                mine.splice(end + 1..end + 1, copy);
            }
        }
        11 | 12 => {
            let from = if rng.one_in(2) { mine.clone() } else { others };
            let source = group(&from, rng);
            if let (Some((start, end)), Some((first, last))) = (group(&mine, rng), source) {
                mine.splice(start..=end, from[first..=last].iter().copied());
            }
        }
        // A line, gone or elsewhere.
        13 => {
            let line = line(&mine, at);
            mine.drain(line);
        }
        14 => {
            let line = line(&mine, at);
            let copy: Vec<&str> = mine[line].to_vec();
            let to = rng.below(mine.len() + 1);
            mine.splice(to..to, copy);
        }
        _ => {
            let times = 1 << rng.below(10);
            deep = match group(&mine, rng) {
                Some((start, _)) => mine[start].repeat(times),
                None => mine[at].repeat(times),
            };
            mine[at] = &deep;
        }
    }
    mine.concat().into_bytes()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Number,
    Text,
    /// By the sigil that a name begins with; capitals are types and constructors.
    Name(char),
    Symbol,
}

fn kind(token: &str) -> Kind {
    match token.chars().next() {
        None => Kind::Blank,
        Some(c) if c.is_whitespace() || token.starts_with("//") => Kind::Blank,
        Some('"') => Kind::Text,
        Some(c) if c.is_ascii_digit() => Kind::Number,
        Some(c @ ('%' | '#' | '!' | '^')) if token.len() > 1 => Kind::Name(c),
        Some(c) if c.is_ascii_uppercase() => Kind::Name('A'),
        Some(c) if c.is_alphabetic() || c == '_' => Kind::Name('a'),
        Some(_) => Kind::Symbol,
    }
}

/// The place of a random token of some kind.
fn pick(tokens: &[&str], rng: &mut Rng, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    if tokens.is_empty() {
        return None;
    }
    let start = rng.below(tokens.len());
    let places = (start..tokens.len()).chain(0..start);
    places.into_iter().find(|place| wanted(tokens[*place]))
}

/// The places of a bracket and of the one that closes it.
fn group(tokens: &[&str], rng: &mut Rng) -> Option<(usize, usize)> {
    let start = pick(tokens, rng, |token| matches!(token, "(" | "[" | "{"))?;
    Some((start, closing(tokens, start)?))
}

/// The tokens of the line that a token stands in.
fn line(tokens: &[&str], at: usize) -> std::ops::Range<usize> {
    let ends = |token: &&str| token.contains('\n');
    let start = tokens[..at].iter().rposition(ends).map_or(0, |end| end + 1);
    let end = tokens[at..].iter().position(ends);
    start..end.map_or(tokens.len(), |end| at + end + 1)
}
