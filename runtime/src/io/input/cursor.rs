//! Tokens of one line of JSON.

/// What the text at the cursor begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// `[`
    ListBegin,
    /// `]`
    ListEnd,
    /// `{`
    ObjectBegin,
    /// `}`
    ObjectEnd,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// A text in quotes.
    String,
    /// A digit or a minus sign.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
    /// No token of JSON begins so.
    Garbage,
    /// The end of the line.
    End,
}

/// The text is not JSON at this place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Byte in the line.
    pub at: usize,
    /// What should be there, in words.
    pub expected: &'static str,
}

/// A place in a line. Every method first skips white space.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of a line.
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// All of the line.
    pub fn text(&self) -> &'a str {
        self.text
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes().get(self.at) {
            self.at += 1;
        }
    }

    /// What comes next; takes nothing.
    #[inline]
    pub fn peek(&mut self) -> Peek {
        self.skip_space();
        match self.bytes().get(self.at) {
            None => Peek::End,
            Some(b'[') => Peek::ListBegin,
            Some(b']') => Peek::ListEnd,
            Some(b'{') => Peek::ObjectBegin,
            Some(b'}') => Peek::ObjectEnd,
            Some(b',') => Peek::Comma,
            Some(b':') => Peek::Colon,
            Some(b'"') => Peek::String,
            Some(b'-' | b'0'..=b'9') => Peek::Number,
            Some(b't') if self.rest().starts_with("true") => Peek::True,
            Some(b'f') if self.rest().starts_with("false") => Peek::False,
            Some(b'n') if self.rest().starts_with("null") => Peek::Null,
            Some(_) => Peek::Garbage,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// An error at this place, where something else was expected.
    pub fn malformed(&mut self, expected: &'static str) -> Malformed {
        self.skip_space();
        Malformed {
            at: self.at,
            expected,
        }
    }

    /// Takes the punctuation if it comes next.
    #[inline]
    pub fn take(&mut self, punctuation: u8) -> bool {
        self.skip_space();
        let found = self.bytes().get(self.at) == Some(&punctuation);
        self.at += usize::from(found);
        found
    }

    /// Takes the punctuation, which must come next; `expected` is for the message if it does not.
    #[inline]
    pub fn expect(&mut self, punctuation: u8, expected: &'static str) -> Result<(), Malformed> {
        if self.take(punctuation) {
            Ok(())
        } else {
            Err(self.malformed(expected))
        }
    }

    /// `true`, `false` or `null`, of the given length; after a [`Cursor::peek`] that found it.
    pub fn skip_word(&mut self, length: usize) {
        self.at = (self.at + length).min(self.text.len());
    }

    /// The text of a number.
    #[inline]
    pub fn number(&mut self) -> Result<&'a str, Malformed> {
        self.skip_space();
        let start = self.at;
        let bytes = self.bytes();
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let digits = |mut at: usize, expected| {
            let first = at;
            while let Some(b'0'..=b'9') = bytes.get(at) {
                at += 1;
            }
            if at == first {
                Err(Malformed { at, expected })
            } else {
                Ok(at)
            }
        };
        let integer = at;
        at = digits(at, "a number")?;
        if bytes[integer] == b'0' && at > integer + 1 {
            return Err(Malformed {
                at: integer + 1,
                expected: "a number without leading zeros",
            });
        }
        if bytes.get(at) == Some(&b'.') {
            at = digits(at + 1, "a digit after the point")?;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = bytes.get(at) {
                at += 1;
            }
            at = digits(at, "a digit of the exponent")?;
        }
        self.at = at;
        Ok(&self.text[start..at])
    }

    /// The text of a string, with its quotes and escapes as they stand.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        self.expect(b'"', "a string")?;
        let start = self.at - 1;
        let bytes = self.bytes();
        let mut at = self.at;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at = escape(bytes, at)?,
                Some(0..0x20) => {
                    return Err(Malformed {
                        at,
                        expected: "no control character in a string",
                    });
                }
                Some(_) => at += 1,
                None => {
                    return Err(Malformed {
                        at,
                        expected: "the end of the string",
                    });
                }
            }
        }
        self.at = at + 1;
        Ok(&self.text[start..self.at])
    }

    /// Passes over one value of any kind, however deep it is.
    pub fn skip_value(&mut self) -> Result<(), Malformed> {
        // One byte for each open bracket.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Peek::ListBegin => {
                    self.at += 1;
                    if !self.take(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Peek::ObjectBegin => {
                    self.at += 1;
                    if !self.take(b'}') {
                        self.key()?;
                        open.push(b'}');
                        continue;
                    }
                }
                Peek::String => {
                    self.string()?;
                }
                Peek::Number => {
                    self.number()?;
                }
                Peek::True | Peek::Null => self.skip_word(4),
                Peek::False => self.skip_word(5),
                _ => return Err(self.malformed("a value")),
            }
            loop {
                let Some(close) = open.last().copied() else {
                    return Ok(());
                };
                if self.take(b',') {
                    if close == b'}' {
                        self.key()?;
                    }
                    break;
                }
                self.expect(
                    close,
                    if close == b'}' {
                        "`,` or `}`"
                    } else {
                        "`,` or `]`"
                    },
                )?;
                open.pop();
            }
        }
    }

    /// The text of one value of any kind.
    pub fn value(&mut self) -> Result<&'a str, Malformed> {
        self.skip_space();
        let start = self.at;
        self.skip_value()?;
        Ok(&self.text[start..self.at])
    }

    /// A key of an object and the colon behind it.
    pub fn key(&mut self) -> Result<&'a str, Malformed> {
        if self.peek() != Peek::String {
            return Err(self.malformed("a key"));
        }
        let key = self.string()?;
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    /// What stands at the cursor, for a message.
    pub fn found(&mut self) -> String {
        match self.peek() {
            Peek::End => "the end of the line".to_owned(),
            Peek::ListBegin => "a list".to_owned(),
            Peek::ListEnd => "the end of the list".to_owned(),
            Peek::ObjectBegin => "an object".to_owned(),
            Peek::String => match (*self).string() {
                Ok(text) => shorten(text),
                Err(_) => "an unfinished string".to_owned(),
            },
            Peek::Number => match (*self).number() {
                Ok(text) => shorten(text),
                Err(_) => self.word(),
            },
            _ => self.word(),
        }
    }

    /// The letters and digits at the cursor, or one other character.
    fn word(&self) -> String {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && !"+-._".contains(c))
            .unwrap_or(rest.len());
        if length > 0 {
            return shorten(&rest[..length]);
        }
        // An escape is shown as it is written.
        if let Some(behind) = rest.strip_prefix('\\') {
            let digits = behind.strip_prefix('u').map_or(0, |digits| {
                let digits = digits.bytes().take(4);
                digits.take_while(u8::is_ascii_hexdigit).count()
            });
            let first = behind.chars().next().map_or(0, char::len_utf8);
            return format!("`{}`", &rest[..1 + first + digits]);
        }
        match rest.chars().next() {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "the end of the line".to_owned(),
        }
    }
}

/// Past the escape that begins at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let bad = Malformed {
        at,
        expected: "an escape of JSON",
    };
    let half = Malformed {
        at,
        expected: "both halves of a surrogate pair",
    };
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        // Half of a pair has no text, and what repeats it is read by nobody.
        Some(b'u') => match code_unit(bytes, at + 2) {
            Some(0xd800..0xdc00) => match (bytes.get(at + 6..at + 8), code_unit(bytes, at + 8)) {
                (Some(b"\\u"), Some(0xdc00..0xe000)) => Ok(at + 12),
                _ => Err(half),
            },
            Some(0xdc00..0xe000) => Err(half),
            None => Err(bad),
            Some(_) => Ok(at + 6),
        },
        _ => Err(bad),
    }
}

/// The number of four hexadecimal digits.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

/// The text behind the quotes of a string token.
pub fn unescape(token: &str) -> std::borrow::Cow<'_, str> {
    let inner = &token[1..token.len() - 1];
    if !inner.contains('\\') {
        return inner.into();
    }
    // A lone surrogate has no text; as it stands, it equals no name.
    match serde_json::from_str::<String>(token) {
        Ok(text) => text.into(),
        Err(_) => inner.into(),
    }
}

/// At most forty characters.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_grammar_of_json() {
        for good in ["0", "-0", "12", "1.5", "-1e9", "2E+3", "1.0e-7"] {
            assert_eq!(Cursor::new(good).number(), Ok(good));
        }
        for bad in ["-", "01", "1.", "1e", "1e+", "-x"] {
            assert!(Cursor::new(bad).number().is_err(), "{bad}");
        }
    }

    #[test]
    fn skipping_agrees_with_serde_json() {
        let texts = [
            "[]",
            "{}",
            "[1, [2, {\"a\": [true, false, null]}], \"x\\u0041\\\"\"]",
            "{\"a\": {\"b\": []}, \"c\": 1}",
            "[1,]",
            "{\"a\"}",
            "{\"a\": 1,}",
            "[1 2]",
            "\"a\\q\"",
            "\"a",
            "[",
            "nul",
        ];
        for text in texts {
            let mut cursor = Cursor::new(text);
            let skipped = cursor.skip_value().is_ok() && cursor.peek() == Peek::End;
            let parsed = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(skipped, parsed, "{text}");
        }
    }

    #[test]
    fn an_escape_that_is_none_is_shown_and_what_it_lacks_is_told() {
        let half = "both halves of a surrogate pair";
        for (text, expected, found) in [
            (r#""\ud800""#, half, r"`\ud800`"),
            (r#""\udc00x""#, half, r"`\udc00`"),
            (r#""\ud800\u0041""#, half, r"`\ud800`"),
            (r#""\x41""#, "an escape of JSON", r"`\x`"),
            (r#""\u12""#, "an escape of JSON", r"`\u12`"),
            ("\"\\é\"", "an escape of JSON", r"`\é`"),
        ] {
            let malformed = Cursor::new(text).string().unwrap_err();
            assert_eq!(malformed.expected, expected, "{text}");
            assert_eq!(Cursor::new(&text[malformed.at..]).found(), found);
        }
        assert!(Cursor::new(r#""\ud83d\ude00""#).string().is_ok());
    }

    #[test]
    fn deep_values_are_skipped_without_recursion() {
        let text = "[".repeat(500_000) + &"]".repeat(500_000);
        assert!(Cursor::new(&text).skip_value().is_ok());
    }
}
