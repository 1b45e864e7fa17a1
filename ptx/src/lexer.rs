//! The words of a text: names and numbers as they stand, and single characters.

use crate::Error;

/// A word or a character, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: u32,
}

/// What belongs to one word: names of registers, symbols and instructions, directives, numbers.
pub fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

/// Splits a text; comments are left out.
pub fn split(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let until = |end: &[u8]| rest.windows(end.len()).position(|window| window == end);
        let length = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => 1,
            _ if rest.starts_with(b"//") => until(b"\n").unwrap_or(rest.len()),
            _ if rest.starts_with(b"/*") => match until(b"*/") {
                Some(end) => end + 2,
                None => return Err(Error::new(line, "a comment has no end")),
            },
            b'"' => match rest[1..].iter().position(|byte| *byte == b'"') {
                Some(end) => end + 2,
                None => return Err(Error::new(line, "a string has no end")),
            },
            _ if is_of_word(byte) => word(rest),
            _ if byte.is_ascii_graphic() => 1,
            _ => return Err(Error::new(line, format!("a byte {byte:#x} is in no PTX"))),
        };
        let is_comment = rest.starts_with(b"//") || rest.starts_with(b"/*");
        if !byte.is_ascii_whitespace() && !is_comment {
            // All bytes so far are of ASCII, but for those within strings, whose ends are.
            let word = &text[at..at + length];
            tokens.push(Token { text: word, line });
        }
        line += rest[..length].iter().filter(|byte| **byte == b'\n').count() as u32;
        at += length;
    }
    Ok(tokens)
}

/// The length of the word that a text begins with; it may have `::` within, as `.shared::cta` has.
fn word(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        at += rest.iter().take_while(|byte| is_of_word(**byte)).count();
        match bytes.get(at..) {
            Some([b':', b':', next, ..]) if is_of_word(*next) => at += 2,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_lines() {
        let tokens = split("// a\n@%p1 bra $L; /* b\n */ add.s64 %rd1, -5;").unwrap();
        let found: Vec<_> = tokens.iter().map(|t| (t.text, t.line)).collect();
        assert_eq!(
            found,
            [
                ("@", 2),
                ("%p1", 2),
                ("bra", 2),
                ("$L", 2),
                (";", 2),
                ("add.s64", 3),
                ("%rd1", 3),
                (",", 3),
                ("-", 3),
                ("5", 3),
                (";", 3)
            ]
        );
    }

    #[test]
    fn a_word_may_name_a_space_of_a_space() {
        let words = |text| {
            let tokens = split(text).unwrap();
            tokens.iter().map(|t| t.text).collect::<Vec<_>>()
        };
        assert_eq!(
            words("fence.proxy.async.shared::cta;"),
            ["fence.proxy.async.shared::cta", ";"]
        );
        assert_eq!(words("$L: ret"), ["$L", ":", "ret"]);
        assert_eq!(words("$L::"), ["$L", ":", ":"]);
    }

    #[test]
    fn what_has_no_end_is_told() {
        for text in ["/* a", "\"a", "ä"] {
            assert_eq!(split(text).unwrap_err().line, 1);
        }
    }
}
