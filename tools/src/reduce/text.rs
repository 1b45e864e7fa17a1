//! Makes a text small: delta debugging (Zeller and Hildebrandt, Simplifying and Isolating
//! Failure-Inducing Input, 2002) over the brackets of its text, from the outside in, as hierarchical
//! delta debugging does over a syntax tree.
//!
//! Nothing here knows a language but by its brackets: a program that does not check is one of which
//! the command does not hold, and is passed over like any other.

use std::ops::Range;

use super::shrink::{Budget, shrink};
use super::tokens::{closing, is_blank, parts, sequences, tokens};

/// How many neighbours are left out at once.
const MOST_NEIGHBOURS: usize = 4;

/// Whether a text still has what it is reduced for.
pub type Holds<'a> = &'a mut dyn FnMut(&str) -> bool;

/// The smallest text that was found; no part of it can be left out, if the budget was large enough.
pub fn reduce(text: &str, budget: &mut Budget, holds: Holds<'_>) -> String {
    let mut text = text.to_owned();
    let bare = without_comments(&text);
    try_text(&mut text, bare, budget, holds);
    loop {
        let before = text.len();
        leave_out_parts(&mut text, budget, holds);
        replace_by_inner(&mut text, budget, holds);
        leave_out_operands(&mut text, budget, holds);
        replace_results(&mut text, budget, holds);
        simplify_numbers(&mut text, budget, holds);
        if text.len() >= before || budget.is_spent() {
            return text;
        }
    }
}

fn try_text(text: &mut String, candidate: String, budget: &mut Budget, holds: Holds<'_>) -> bool {
    let is_smaller = candidate != *text && budget.take() && holds(&candidate);
    if is_smaller {
        *text = candidate;
    }
    is_smaller
}

fn without_comments(text: &str) -> String {
    let kept = tokens(text)
        .into_iter()
        .filter(|token| !token.starts_with("//"));
    let lines: String = kept.collect();
    let lines = lines
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Leaves out items, then statements, arms, arguments: the parts of each sequence, outer ones first.
fn leave_out_parts(text: &mut String, budget: &mut Budget, holds: Holds<'_>) {
    let mut at = 0;
    loop {
        let split = tokens(text);
        let Some(sequence) = sequences(&split).get(at).cloned() else {
            return;
        };
        let units = parts(&split, &sequence);
        let with = |units: &[Range<usize>]| -> String {
            let middle = units.iter().flat_map(|part| &split[part.clone()]);
            let (before, behind) = (&split[..sequence.start], &split[sequence.end..]);
            before.iter().chain(middle).chain(behind).copied().collect()
        };
        let smaller = shrink(&units, budget, |units| holds(&with(units)));
        if smaller.len() < units.len() {
            *text = with(&smaller);
        }
        if budget.is_spent() {
            return;
        }
        at += 1;
    }
}

/// Puts in the place of a part one of those that it holds: an argument for its call, an arm for its
/// match.
fn replace_by_inner(text: &mut String, budget: &mut Budget, holds: Holds<'_>) {
    let mut at = 0;
    'sequences: loop {
        let current = text.clone();
        let split = tokens(&current);
        let all = sequences(&split);
        let Some(sequence) = all.get(at) else {
            return;
        };
        for part in parts(&split, sequence) {
            let is_inside =
                |inner: &&Range<usize>| part.start < inner.start && inner.end < part.end;
            for inner in all.iter().filter(is_inside) {
                let bodies = |each: Range<usize>| {
                    let arrow = split[each.clone()].iter().position(|token| *token == "=>");
                    let body = arrow.map(|arrow| each.start + arrow + 1..each.end);
                    [Some(each), body].into_iter().flatten()
                };
                for each in parts(&split, inner).into_iter().flat_map(bodies) {
                    let each = trimmed(&split, each);
                    let hull = trimmed(&split, part.clone());
                    if each.is_empty() || *sequence == (0..split.len()) {
                        continue;
                    }
                    let (before, behind) = (&split[..hull.start], &split[hull.end..]);
                    let candidate = [before, &split[each], behind].concat().concat();
                    if try_text(text, candidate, budget, holds) {
                        continue 'sequences;
                    }
                    if budget.is_spent() {
                        return;
                    }
                }
            }
        }
        at += 1;
    }
}

/// Leaves out a few neighbouring words and bracketed groups: an operator and its operand, a method.
fn leave_out_operands(text: &mut String, budget: &mut Budget, holds: Holds<'_>) {
    for count in (1..=MOST_NEIGHBOURS).rev() {
        let mut at = 0;
        loop {
            let split = tokens(text);
            let words: Vec<usize> = (0..split.len())
                .filter(|place| !is_blank(split[*place]))
                .collect();
            let Some(start) = words.get(at).copied() else {
                break;
            };
            at += 1;
            let mut end = start;
            for _ in 0..count {
                while end < split.len() && is_blank(split[end]) {
                    end += 1;
                }
                end = closing(&split, end).unwrap_or(end) + 1;
            }
            if end > split.len() {
                continue;
            }
            let candidate = [&split[..start], &split[end..]].concat().concat();
            if try_text(text, candidate, budget, holds) {
                at -= 1;
            }
            if budget.is_spent() {
                return;
            }
        }
    }
}

/// Puts an operand in the place of an operation's result, for a text of SSA form: `%a` for `%b` where
/// there is a line `%b = … %a …`.
fn replace_results(text: &mut String, budget: &mut Budget, holds: Holds<'_>) {
    let is_name = |token: &&str| token.starts_with('%');
    let mut at = 0;
    'lines: loop {
        let current = text.clone();
        let Some(line) = current.lines().nth(at) else {
            return;
        };
        let words = tokens(line);
        let mut names = words.iter().copied().filter(is_name);
        let is_definition = line.trim_start().starts_with('%') && words.contains(&"=");
        let (Some(result), true) = (names.next(), is_definition) else {
            at += 1;
            continue;
        };
        for operand in names {
            let others = current
                .lines()
                .enumerate()
                .filter(|(number, _)| *number != at);
            let renamed = others.flat_map(|(_, line)| {
                let words = tokens(line).into_iter();
                let words = words.map(|word| if word == result { operand } else { word });
                words.chain(["\n"])
            });
            let candidate = renamed.collect();
            if try_text(text, candidate, budget, holds) {
                continue 'lines;
            }
            if budget.is_spent() {
                return;
            }
        }
        at += 1;
    }
}

/// A part without blanks around it and without what separates it from the next.
fn trimmed(tokens: &[&str], part: Range<usize>) -> Range<usize> {
    let is_edge = |token: &&str| is_blank(token) || matches!(*token, ";" | ",");
    let inside = &tokens[part.clone()];
    let front = inside.iter().take_while(|token| is_edge(token)).count();
    let back = inside[front..]
        .iter()
        .rev()
        .take_while(|token| is_edge(token))
        .count();
    part.start + front..part.end - back
}

/// Puts small numbers in the place of others.
fn simplify_numbers(text: &mut String, budget: &mut Budget, holds: Holds<'_>) {
    let mut at = 0;
    loop {
        let split = tokens(text);
        let mut numbers = (split.iter().enumerate())
            .filter(|(_, token)| token.starts_with(|c: char| c.is_ascii_digit()));
        let Some((place, number)) = numbers.nth(at) else {
            return;
        };
        let simple: &[&str] = match number.contains('.') {
            true => &["0.0", "1.0"],
            false => &["0", "1"],
        };
        at += 1;
        if simple.contains(number) {
            continue;
        }
        let candidates_of_place: Vec<String> = simple
            .iter()
            .map(|simple| {
                [&split[..place], &[*simple], &split[place + 1..]]
                    .concat()
                    .concat()
            })
            .collect();
        for candidate in candidates_of_place {
            if try_text(text, candidate, budget, holds) {
                break;
            }
        }
        if budget.is_spent() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reduced(text: &str, needed: &[&str]) -> String {
        let mut budget = Budget::new(10_000, Duration::from_secs(60));
        reduce(text, &mut budget, &mut |text| {
            let balanced = |open, close| text.matches(open).count() == text.matches(close).count();
            let has_all = needed.iter().all(|word| text.contains(word));
            balanced('(', ')') && balanced('{', '}') && has_all
        })
    }

    const PROGRAM: &str = "// A model.\ndim H\nparam w: f32[H, H]\n\n\
        fn other(x: i32) -> i32 { x + 1 }\n\
        fn main(x: f32[H], k: i32) -> f32[H] {\n  \
        let y = tanh(x @ w); // once\n  \
        match k { 0 => f(y, other(17)), _ => y }\n}\n";

    #[test]
    fn what_is_not_needed_goes() {
        assert_eq!(reduced(PROGRAM, &["dim H"]), "dim H\n");
        let text = reduced(PROGRAM, &["fn main", "tanh"]);
        assert!(!text.contains("other") && !text.contains("match"), "{text}");
    }

    #[test]
    fn a_part_takes_the_place_of_what_it_is_in() {
        let text = reduced(PROGRAM, &["fn main", "other("]);
        assert!(!text.contains("match") && !text.contains("17"), "{text}");
    }

    #[test]
    fn an_operand_takes_the_place_of_a_result() {
        let text = "%0 = load\n%1 = add %0, %0\n%2 = mul %1, %0\nyield %2\n";
        let mut budget = Budget::new(10_000, Duration::from_secs(60));
        let is_valid = |text: &str| {
            let uses = text
                .lines()
                .last()
                .and_then(|line| line.strip_prefix("yield "));
            uses.is_some_and(|name| text.contains(&format!("{name} = ")))
        };
        let small = reduce(text, &mut budget, &mut |text| is_valid(text));
        assert!(!small.contains("mul") && !small.contains("add"), "{small}");
    }

    #[test]
    fn nothing_happens_without_a_budget() {
        let mut budget = Budget::new(0, Duration::from_secs(60));
        assert_eq!(reduce(PROGRAM, &mut budget, &mut |_| true), PROGRAM);
    }
}
