//! A line as a whole: its keys, its id, and what is undone when it turns out to be bad.

use super::cursor::{Cursor, Malformed, Peek, shorten, unescape};
use super::decode::Decoder;
use super::message::Problem;
use super::{Arguments, Inputs};
use crate::bump;
use crate::failure::InstanceError;
use crate::validate::ID_KEY;

/// The state of the inputs before an instance.
struct Before {
    memory: bump::Mark,
    slots: usize,
    rows: Vec<(usize, u64)>,
}

impl Before {
    /// Takes back what was decoded since.
    fn restore(&self, inputs: &mut Inputs) {
        inputs.memory.rollback(self.memory);
        inputs.slots.truncate(self.slots);
        for (block, (bytes, rows)) in inputs.rows.spaces.iter_mut().zip(&self.rows) {
            block.bytes.truncate(*bytes);
            block.rows = *rows;
        }
    }
}

impl Decoder<'_> {
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
        let before = Before {
            memory: inputs.memory.mark(),
            slots: inputs.slots.len(),
            rows: inputs
                .rows
                .spaces
                .iter()
                .map(|block| (block.bytes.len(), block.rows))
                .collect(),
        };
        self.dims.begin();
        let instance = loop {
            let instance = self.instance(text, inputs);
            if instance.is_err() || !self.dims.is_guess_wrong() {
                break instance;
            }
            before.restore(inputs);
        };
        match instance {
            Ok(id) => {
                let arguments = Arguments {
                    first_slot: before.slots,
                    bytes: self.used + 8 * self.slots as u64,
                };
                match id {
                    Some(id) => inputs.push(id, Ok(arguments)),
                    None => inputs.push(&number.to_string(), Ok(arguments)),
                }
            }
            Err((argument, problem)) => {
                let error = self.describe(text, argument, problem);
                before.restore(inputs);
                match find_id(text) {
                    Some(id) => inputs.push(id, Err(error)),
                    None => inputs.push(&number.to_string(), Err(error)),
                }
            }
        }
    }

    /// Decodes all arguments; gives the id as it stands. An error comes with the argument in
    /// which it is.
    fn instance<'t>(
        &mut self,
        text: &'t str,
        inputs: &mut Inputs,
    ) -> Result<Option<&'t str>, (Option<usize>, Problem)> {
        self.used = 0;
        let manifest = self.manifest;
        let first_slot = inputs.slots.len();
        inputs.slots.resize(first_slot + self.slots, 0);
        let mut cursor = Cursor::new(text);
        let line = |problem: Problem| (None, problem);
        let malformed = |malformed: Malformed| (None, Problem::Malformed(malformed));
        if cursor.peek() != Peek::ObjectBegin {
            let found = cursor.found();
            return Err(line(Problem::Line(format!(
                "expected an object with an instance, found {found}"
            ))));
        }
        cursor.take(b'{');
        let mut id = None;
        let mut seen = vec![false; manifest.arguments.len()];
        let mut is_open = !cursor.take(b'}');
        while is_open {
            let key = cursor.key().map_err(malformed)?;
            let name = unescape(key);
            let argument = manifest
                .arguments
                .iter()
                .position(|argument| argument.name == name);
            if name == ID_KEY {
                if id.is_some() {
                    return Err(line(Problem::Line("two keys \"id\"".to_owned())));
                }
                id = Some(read_id(&mut cursor).map_err(line)?);
            } else if let Some(argument) = argument {
                if std::mem::replace(&mut seen[argument], true) {
                    return Err(line(Problem::Line(format!("two keys {}", shorten(key)))));
                }
                self.argument = argument;
                self.value(&mut cursor, &manifest.arguments[argument].ty, inputs)
                    .map_err(|problem| (Some(argument), problem))?;
                let slot = first_slot + self.offsets[argument];
                inputs.slots[slot..slot + self.values.len()].copy_from_slice(&self.values);
            } else {
                let names: Vec<&str> = manifest
                    .arguments
                    .iter()
                    .map(|argument| argument.name.as_str())
                    .collect();
                return Err(line(Problem::Line(format!(
                    "unknown key {}: expected the arguments of the program ({}) or \"id\"",
                    shorten(key),
                    names.join(", ")
                ))));
            }
            if !cursor.take(b',') {
                cursor.expect(b'}', "`,` or `}`").map_err(malformed)?;
                is_open = false;
            }
        }
        if cursor.peek() != Peek::End {
            return Err(malformed(cursor.malformed("the end of the line")));
        }
        if let Some(argument) = seen.iter().position(|seen| !seen) {
            let expected = self.expected(&manifest.arguments[argument].ty);
            let found = "no such key".to_owned();
            self.frames.clear();
            self.counters.clear();
            self.leading.clear();
            return Err((Some(argument), Problem::Value { expected, found }));
        }
        Ok(id)
    }
}

/// The id as it stands: a string or a number.
fn read_id<'t>(cursor: &mut Cursor<'t>) -> Result<&'t str, Problem> {
    match cursor.peek() {
        Peek::String => Ok(cursor.string()?),
        Peek::Number => Ok(cursor.number()?),
        _ => Err(Problem::Line(format!(
            "id: expected a string or a number, found {}",
            cursor.found()
        ))),
    }
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
