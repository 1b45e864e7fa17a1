//! A line of JSON as a source, and as an instance: its keys and its id.

use std::borrow::Cow;

use cohort_abi::manifest::{Adt, Constructor, Elem, Manifest};

use super::Inputs;
use super::builder::Builder;
use super::cursor::{Cursor, Malformed, Peek, shorten, unescape};
use super::message::Problem;
use super::source::{Source, Tag};
use crate::failure::InstanceError;
use crate::program::validate::ID_KEY;

/// The strings that stand for numbers which JSON cannot write.
const NOT_FINITE: [(&str, f32); 3] = [
    ("\"NaN\"", f32::NAN),
    ("\"Infinity\"", f32::INFINITY),
    ("\"-Infinity\"", f32::NEG_INFINITY),
];

/// Lines to instances.
pub struct Decoder<'m> {
    builder: Builder<'m>,
}

impl<'m> Decoder<'m> {
    /// Decodes instances of this program, each of at most `max_memory` bytes.
    pub fn new(manifest: &'m Manifest, max_memory: u64) -> Decoder<'m> {
        Decoder {
            builder: Builder::new(manifest, max_memory),
        }
    }

    /// The manifest of the program whose instances are decoded.
    pub fn manifest(&self) -> &'m Manifest {
        self.builder.manifest()
    }

    /// Appends the instance of the line to the inputs, or its error.
    pub fn decode(&mut self, number: u64, line: &[u8], inputs: &mut Inputs) {
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            Err(error) => {
                let column = String::from_utf8_lossy(&line[..error.valid_up_to()])
                    .chars()
                    .count()
                    + 1;
                let error = InstanceError::bad_input(format!("invalid UTF-8 at column {column}"));
                inputs.push(&number.to_string(), Err(error));
                return;
            }
        };
        let mut id = None;
        let outcome = self.builder.instance(inputs, |builder, inputs| {
            id = None;
            arguments(builder, text, &mut id, inputs)
        });
        if outcome.is_err() {
            id = find_id(text);
        }
        match id {
            Some(id) => inputs.push(id, outcome),
            None => inputs.push(&number.to_string(), outcome),
        }
    }
}

/// Reads all arguments, and the id as it stands.
fn arguments<'t>(
    builder: &mut Builder<'_>,
    text: &'t str,
    id: &mut Option<&'t str>,
    inputs: &mut Inputs,
) -> Result<(), Problem> {
    let mut cursor = Cursor::new(text);
    if cursor.peek() != Peek::ObjectBegin {
        return Err(Problem::Line(format!(
            "expected an object with an instance, found {}",
            cursor.found()
        )));
    }
    cursor.take(b'{');
    let mut is_open = !cursor.take(b'}');
    while is_open {
        let key = cursor
            .key()
            .map_err(|malformed| cursor.problem(malformed))?;
        let name = unescape(key);
        if name == ID_KEY {
            if id.is_some() {
                return Err(Problem::Line("two keys \"id\"".to_owned()));
            }
            *id = Some(read_id(&mut cursor)?);
        } else if let Some(argument) = builder.find(&name) {
            builder.argument(argument, || shorten(key), &mut cursor, inputs)?;
        } else {
            return Err(builder.unknown_key(&shorten(key)));
        }
        if !cursor.take(b',') {
            cursor.close(b'}', "`,` or `}`")?;
            is_open = false;
        }
    }
    match cursor.peek() {
        Peek::End => Ok(()),
        _ => {
            let malformed = cursor.malformed("the end of the line");
            Err(cursor.problem(malformed))
        }
    }
}

/// The id as it stands: a string or a number.
fn read_id<'t>(cursor: &mut Cursor<'t>) -> Result<&'t str, Problem> {
    match cursor.peek() {
        Peek::String => cursor.string(),
        Peek::Number => cursor.number(),
        _ => {
            return Err(Problem::Line(format!(
                "id: expected a string or a number, found {}",
                cursor.found()
            )));
        }
    }
    .map_err(|malformed| cursor.problem(malformed))
}

/// The id of a line that could not be decoded, if it has one before the JSON breaks.
fn find_id(text: &str) -> Option<&str> {
    let mut cursor = Cursor::new(text);
    if !cursor.take(b'{') {
        return None;
    }
    loop {
        let key = cursor.key().ok()?;
        if unescape(key) == ID_KEY {
            return read_id(&mut cursor).ok();
        }
        cursor.skip_value().ok()?;
        if !cursor.take(b',') {
            return None;
        }
    }
}

impl Cursor<'_> {
    fn problem(&self, malformed: Malformed) -> Problem {
        let text = self.text();
        let before = text.get(..malformed.at).unwrap_or(text);
        let found = Cursor::new(text.get(malformed.at..).unwrap_or_default()).found();
        Problem::Line(format!(
            "malformed JSON at column {}: expected {}, found {found}",
            before.chars().count() + 1,
            malformed.expected
        ))
    }

    #[inline]
    fn close(&mut self, punctuation: u8, expected: &'static str) -> Result<(), Problem> {
        (self.expect(punctuation, expected)).map_err(|malformed| self.problem(malformed))
    }
}

impl Source for Cursor<'_> {
    fn begin_list(&mut self) -> Result<bool, Problem> {
        Ok(self.take(b'['))
    }

    #[inline]
    fn next(&mut self, is_first: bool) -> Result<bool, Problem> {
        if is_first {
            return Ok(!self.take(b']'));
        }
        if self.take(b',') {
            return Ok(true);
        }
        self.close(b']', "`,` or `]`")?;
        Ok(false)
    }

    fn skip_rest(&mut self) -> Result<u64, Problem> {
        let mut count = 0;
        loop {
            self.skip_value()
                .map_err(|malformed| self.problem(malformed))?;
            count += 1;
            if !self.next(false)? {
                return Ok(count);
            }
        }
    }

    #[inline]
    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem> {
        // A token of the wrong kind stays where it is, for the message.
        let mut look = *self;
        let malformed = |malformed: Malformed| self.problem(malformed);
        let bits = match (elem, look.peek()) {
            (Elem::F32, Peek::Number) => {
                let value = look.number().map_err(malformed)?.parse::<f32>().ok();
                value.filter(|value| value.is_finite()).map(f32::to_bits)
            }
            (Elem::F32, Peek::String) => {
                let token = look.string().map_err(malformed)?;
                let named = NOT_FINITE.iter().find(|(name, _)| *name == token);
                named.map(|(_, value)| value.to_bits())
            }
            (Elem::I32, Peek::Number) => {
                let value = look.number().map_err(malformed)?;
                // A zero with a sign is of floats.
                let value = value.parse::<i32>().ok().filter(|_| value != "-0");
                value.map(|value| value as u32)
            }
            (Elem::Bool, Peek::True) => {
                look.skip_word(4);
                Some(1)
            }
            (Elem::Bool, Peek::False) => {
                look.skip_word(5);
                Some(0)
            }
            _ => None,
        };
        if bits.is_some() {
            *self = look;
        }
        Ok(bits)
    }

    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem> {
        if self.peek() != Peek::String {
            return Ok(None);
        }
        let token = self.string().map_err(|malformed| self.problem(malformed))?;
        Ok(Some(unescape(token)))
    }

    fn constructor(&mut self, _: usize, adt: &Adt) -> Result<Tag, Problem> {
        let mut look = *self;
        let is_object = look.take(b'{');
        if look.peek() != Peek::String {
            let found = if is_object {
                look.found()
            } else {
                self.found()
            };
            return Ok(Tag::Other(found));
        }
        let token = look.string().map_err(|malformed| self.problem(malformed))?;
        let name = unescape(token);
        let Some(tag) = adt.constructors.iter().position(|c| c.name == name) else {
            return Ok(Tag::Other(shorten(token)));
        };
        let constructor = &adt.constructors[tag];
        match (constructor.fields.is_empty(), is_object) {
            (true, true) => {
                let found = format!("an object {{{}: …}}", shorten(token));
                return Ok(Tag::Misused { tag, found });
            }
            (false, false) => {
                let found = shorten(token);
                return Ok(Tag::Misused { tag, found });
            }
            (true, false) => *self = look,
            (false, true) => {
                *self = look;
                self.close(b':', "`:`")?;
                let has_names = !constructor.names.is_empty();
                if has_names && self.take(b'{') {
                    return Ok(Tag::ByName(tag));
                }
                if !self.take(b'[') {
                    let or_by_name = if has_names { " or an object" } else { "" };
                    return Err(Problem::Value {
                        expected: format!(
                            "a list{or_by_name} of the fields of {}",
                            constructor.name
                        ),
                        found: self.found(),
                    });
                }
            }
        }
        Ok(Tag::Of(tag))
    }

    fn field(
        &mut self,
        is_first: bool,
        constructor: &Constructor,
    ) -> Result<Option<usize>, Problem> {
        if is_first {
            if self.take(b'}') {
                return Ok(None);
            }
        } else if !self.take(b',') {
            self.close(b'}', "`,` or `}`")?;
            return Ok(None);
        }
        let key = self.key().map_err(|malformed| self.problem(malformed))?;
        let name = unescape(key);
        match constructor.names.iter().position(|own| *own == name) {
            Some(place) => Ok(Some(place)),
            None => Err(Problem::Value {
                expected: super::message::field_of(constructor),
                found: shorten(key),
            }),
        }
    }

    fn end_fields(&mut self) -> Result<(), Problem> {
        self.close(b'}', "`}`, as a value has one constructor")
    }

    fn found(&mut self) -> String {
        Cursor::found(self)
    }
}
