//! Words, numbers, operators and brackets of `.coh` and MLIR alike: text as those see it who change it.

use std::ops::Range;

/// Splits a text into words, numbers, strings, operators and blanks; together they are the text.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        let length = if first.is_whitespace() {
            rest.find(|c: char| !c.is_whitespace())
        } else if first == '"' {
            rest[1..].find('"').map(|end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n')
        } else if first.is_ascii_digit() {
            rest.find(|c: char| !(c.is_alphanumeric() || c == '.'))
        } else if is_word(first) || matches!(first, '%' | '#' | '!' | '^') {
            let name = rest[first.len_utf8()..].find(|c: char| !is_word(c));
            name.map(|end| end + first.len_utf8())
        } else {
            let pair = ["->", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "::"];
            let is_pair = pair.iter().any(|pair| rest.starts_with(pair));
            Some(if is_pair { 2 } else { first.len_utf8() })
        };
        let (token, behind) = rest.split_at(length.unwrap_or(rest.len()));
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// Whether a token is space or a comment.
pub fn is_blank(token: &str) -> bool {
    token.starts_with(char::is_whitespace) || token.starts_with("//")
}

/// The place of the bracket that closes the one at `start`, if one begins there and is closed.
pub fn closing(tokens: &[&str], start: usize) -> Option<usize> {
    matches!(*tokens.get(start)?, "(" | "[" | "{").then_some(())?;
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(start) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

/// What lies between the brackets of each pair, the outer ones first, after the text as a whole.
pub fn sequences(tokens: &[&str]) -> Vec<Range<usize>> {
    let inner = tokens.iter().enumerate().filter_map(|(start, token)| {
        matches!(*token, "(" | "[" | "{").then_some(())?;
        Some(start + 1..closing(tokens, start)?)
    });
    std::iter::once(0..tokens.len()).chain(inner).collect()
}

/// A sequence's parts: items, which begin a line without indentation, of the whole text; elsewhere
/// what `;`, `,` and line ends separate. Together they are the sequence.
pub fn parts(tokens: &[&str], sequence: &Range<usize>) -> Vec<Range<usize>> {
    let is_whole = *sequence == (0..tokens.len());
    let mut parts = Vec::new();
    let (mut start, mut place) = (sequence.start, sequence.start);
    while place < sequence.end {
        let token = tokens[place];
        if matches!(token, "(" | "[" | "{")
            && let Some(end) = closing(tokens, place)
        {
            place = end.min(sequence.end - 1);
        }
        let ends = match is_whole {
            true => token.ends_with('\n') && is_blank(token),
            false => matches!(token, ";" | ",") || (is_blank(token) && token.contains('\n')),
        };
        place += 1;
        if ends || place == sequence.end {
            parts.push(start..place);
            start = place;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_whole_text() {
        let text = "fn f(x: f32[n, 2*H]) -> i32 { %a = cfb.map \"ä\" ^bb0 x[0..2] } // ß\n !t #a";
        let split = tokens(text);
        assert_eq!(split.concat(), text);
        for token in ["f32", "->", "%a", "cfb.map", "\"ä\"", "^bb0", "// ß", "!t"] {
            assert!(split.contains(&token), "{token} in {split:?}");
        }
    }

    #[test]
    fn parts_end_where_items_and_statements_do() {
        let text = "dim H\nfn f(x: f32[H], y: i32) {\n  let a = g(x, y); a\n}\nfn g() {}\n";
        let split = tokens(text);
        let texts = |sequence: &Range<usize>| -> Vec<String> {
            let parts = parts(&split, sequence);
            parts.into_iter().map(|part| split[part].concat()).collect()
        };
        let sequences = sequences(&split);
        assert_eq!(texts(&sequences[0]).concat(), text);
        assert_eq!(texts(&sequences[0])[0], "dim H\n");
        assert_eq!(texts(&sequences[0])[2], "fn g() {}\n");
        assert_eq!(texts(&sequences[1]), ["x: f32[H],", " y: i32"]);
        assert!(
            sequences
                .iter()
                .any(|sequence| texts(sequence) == ["x,", " y"])
        );
    }

    #[test]
    fn brackets_that_do_not_match_are_no_sequence() {
        for text in ["(", ")", "f(]", "}{"] {
            let split = tokens(text);
            for sequence in sequences(&split) {
                assert_eq!(
                    parts(&split, &sequence)
                        .into_iter()
                        .map(|part| part.len())
                        .sum::<usize>(),
                    sequence.len()
                );
            }
        }
    }
}
