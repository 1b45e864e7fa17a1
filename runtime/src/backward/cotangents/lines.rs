//! Cotangents that come as lines, each with the id of its instance.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Cotangent, Cotangents};
use crate::error::Error;
use crate::failure::InstanceError;
use crate::io::input::InputStream;
use crate::io::input::cursor::{Cursor, Peek, unescape};
use crate::io::input::lines::{Line, Lines, Next};
use crate::program::validate::ID_KEY;

/// Cotangents that were read from lines.
#[derive(Debug, Default)]
pub struct CotangentLines {
    by_id: HashMap<Box<str>, Box<str>>,
}

const MEMBER: &str = "cotangent";

impl CotangentLines {
    /// Reads lines of the form `{"id": …, "cotangent": …}`, in any order; a missing id is the line's
    /// number, from 1. A line that has no cotangent, or an id for the second time, is an error of the run.
    pub fn read(input: impl InputStream, max_line_bytes: usize) -> Result<CotangentLines, Error> {
        let mut lines = Lines::new(input, max_line_bytes);
        let mut all = CotangentLines::default();
        loop {
            let (number, text) = match lines.next_line(true).map_err(Error::ReadInput)? {
                Next::Line(number, Line::Text(text)) => (number, text),
                Next::Line(number, Line::TooLong { limit }) => {
                    return Err(wrong(number, &format!("it is longer than {limit} bytes")));
                }
                Next::Later => continue,
                Next::End => return Ok(all),
            };
            let text = std::str::from_utf8(text).map_err(|_| wrong(number, "invalid UTF-8"))?;
            let (id, cotangent) = members(text).map_err(|what| wrong(number, &what))?;
            let id = id.map_or_else(|| number.to_string().into(), name);
            let cotangent = cotangent.ok_or_else(|| wrong(number, "no member `cotangent`"))?;
            if all
                .by_id
                .insert(id.as_ref().into(), cotangent.into())
                .is_some()
            {
                return Err(wrong(number, &format!("the second cotangent of {id:?}")));
            }
        }
    }
}

fn wrong(number: u64, what: &str) -> Error {
    Error::Usage(format!("line {number} of the cotangents: {what}"))
}

/// What an id is found by: its text, or its digits.
fn name(id: &str) -> Cow<'_, str> {
    match id.starts_with('"') {
        true => unescape(id),
        false => id.into(),
    }
}

/// The id and the cotangent of a line, as they stand.
fn members(text: &str) -> Result<(Option<&str>, Option<&str>), String> {
    let mut cursor = Cursor::new(text);
    let malformed = |cursor: &mut Cursor<'_>| format!("malformed JSON at {}", cursor.found());
    if !cursor.take(b'{') {
        return Err("no object".to_owned());
    }
    let (mut id, mut cotangent) = (None, None);
    let mut is_open = !cursor.take(b'}');
    while is_open {
        let key = cursor.key().map_err(|_| malformed(&mut cursor))?;
        let value = cursor.value().map_err(|_| malformed(&mut cursor))?;
        let place = match &*unescape(key) {
            ID_KEY if value.starts_with(['"', '-']) || value.as_bytes()[0].is_ascii_digit() => {
                &mut id
            }
            ID_KEY => return Err("an id that is neither a string nor a number".to_owned()),
            MEMBER => &mut cotangent,
            _ => {
                return Err(format!(
                    "the key {key}, where `id` and `cotangent` are known"
                ));
            }
        };
        if place.replace(value).is_some() {
            return Err(format!("two keys {key}"));
        }
        is_open = cursor.take(b',');
        if !is_open && !cursor.take(b'}') {
            return Err(malformed(&mut cursor));
        }
    }
    match cursor.peek() {
        Peek::End => Ok((id, cotangent)),
        _ => Err(malformed(&mut cursor)),
    }
}

impl CotangentLines {
    /// Of an instance whose id is that JSON text.
    pub fn find(&self, id: &str) -> Result<Cotangent<'_>, InstanceError> {
        let id = name(id);
        match self.by_id.get(&*id) {
            Some(text) => Ok(Cotangent::Text(text)),
            None => Err(InstanceError::bad_input(format!(
                "no cotangent was given for the instance {id:?}"
            ))),
        }
    }
}

impl Cotangents for CotangentLines {
    fn of(&mut self, _: u64, id: &str) -> Result<Cotangent<'_>, InstanceError> {
        self.find(id)
    }
}
