//! What weighs an output, read along with it: what stands in the one comes when the other has it.

use std::borrow::Cow;

use cohort_abi::manifest::Elem;

use crate::io::input::cursor::{Cursor, Peek, unescape};
use crate::io::output::Group;

/// Where weights come from. What is wrong is told as what it should be.
pub enum Source<'c> {
    Text(Text<'c>),
    Numbers(&'c [f32]),
}

impl Source<'_> {
    pub fn begin(&mut self, group: Group<'_>) -> Result<(), String> {
        match self {
            Source::Text(text) => text.begin(group),
            Source::Numbers(_) => Ok(()),
        }
    }

    pub fn separate(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.separate(),
            Source::Numbers(_) => Ok(()),
        }
    }

    pub fn field(&mut self, name: &str) -> Result<(), String> {
        match self {
            Source::Text(text) => text.field(name),
            Source::Numbers(_) => Ok(()),
        }
    }

    pub fn leave(&mut self, group: Group<'_>) -> Result<(), String> {
        match self {
            Source::Text(text) => text.leave(group),
            Source::Numbers(_) => Ok(()),
        }
    }

    /// Appends a number for each element of a tensor; `false` where it does not count.
    pub fn numbers(&mut self, shape: &[u64], to: &mut Vec<f32>) -> Result<bool, String> {
        match self {
            Source::Text(text) => text.numbers(shape, to),
            Source::Numbers(numbers) => {
                let count = shape.iter().product::<u64>() as usize;
                let more = || "a number for each f32 of a part".to_owned();
                let (own, rest) = numbers.split_at_checked(count).ok_or_else(more)?;
                *numbers = rest;
                to.extend(own);
                Ok(true)
            }
        }
    }

    pub fn nothing(&mut self, elem: Elem) -> Result<(), String> {
        match self {
            Source::Text(text) => text.nothing(elem),
            Source::Numbers(_) => Ok(()),
        }
    }

    pub fn text(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.text(),
            Source::Numbers(_) => Ok(()),
        }
    }

    pub fn end(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.end(),
            Source::Numbers([]) => Ok(()),
            Source::Numbers(_) => Err("no more than a number for each f32 of a part".to_owned()),
        }
    }
}

/// JSON of the output's form, read along with the output.
pub struct Text<'t> {
    cursor: Cursor<'t>,
    open: Vec<Open<'t>>,
    /// How many groups are open of one that does not count.
    skipped: usize,
}

/// What is being read.
enum Open<'t> {
    List,
    /// Fields by name: where the value of each is, and where all of it ends.
    Fields(Vec<(Cow<'t, str>, Cursor<'t>)>, Cursor<'t>),
    /// What has no parts.
    Word,
}

impl<'t> Text<'t> {
    pub fn new(text: &'t str) -> Text<'t> {
        Text {
            cursor: Cursor::new(text),
            open: Vec::new(),
            skipped: 0,
        }
    }

    fn takes_null(&mut self) -> bool {
        let is_null = self.cursor.peek() == Peek::Null;
        if is_null {
            self.cursor.skip_word(4);
        }
        is_null
    }

    fn begin(&mut self, group: Group<'_>) -> Result<(), String> {
        if self.skipped > 0 || self.takes_null() {
            self.skipped += 1;
            return Ok(());
        }
        let is_begun = match group {
            Group::Tuple | Group::Array { .. } => self.cursor.take(b'['),
            Group::Node {
                name, fields: 0, ..
            } => {
                self.open.push(Open::Word);
                return match self.takes_string(name) {
                    true => Ok(()),
                    false => Err(form(group)),
                };
            }
            Group::Node { name, names, .. } => {
                if !self.cursor.take(b'{') || !self.takes_string(name) || !self.cursor.take(b':') {
                    return Err(form(group));
                }
                if !names.is_empty() && self.cursor.peek() == Peek::ObjectBegin {
                    let fields = self.fields().map_err(|()| form(group))?;
                    self.open.push(fields);
                    return Ok(());
                }
                self.cursor.take(b'[')
            }
        };
        self.open.push(Open::List);
        match is_begun {
            true => Ok(()),
            false => Err(form(group)),
        }
    }

    fn takes_string(&mut self, name: &str) -> bool {
        self.cursor.peek() == Peek::String
            && (self.cursor.string()).is_ok_and(|token| unescape(token) == name)
    }

    /// Finds the fields of an object.
    fn fields(&mut self) -> Result<Open<'t>, ()> {
        let mut fields = Vec::new();
        self.cursor.take(b'{');
        let mut is_open = !self.cursor.take(b'}');
        while is_open {
            let key = self.cursor.key().map_err(drop)?;
            fields.push((unescape(key), self.cursor));
            self.cursor.skip_value().map_err(drop)?;
            is_open = self.cursor.take(b',');
            if !is_open && !self.cursor.take(b'}') {
                return Err(());
            }
        }
        Ok(Open::Fields(fields, self.cursor))
    }

    fn separate(&mut self) -> Result<(), String> {
        match self.open.last() {
            Some(Open::List) if self.skipped == 0 && !self.cursor.take(b',') => {
                Err("as long as the output's list".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn field(&mut self, name: &str) -> Result<(), String> {
        if let (Some(Open::Fields(fields, _)), 0) = (self.open.last(), self.skipped) {
            let place = fields.iter().find(|(own, _)| own == name);
            let (_, place) = place.ok_or_else(|| format!("a value with the field `{name}`"))?;
            self.cursor = *place;
        }
        Ok(())
    }

    fn leave(&mut self, group: Group<'_>) -> Result<(), String> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        let is_ended = match self.open.pop() {
            Some(Open::List) => self.cursor.take(b']'),
            Some(Open::Fields(_, end)) => {
                self.cursor = end;
                true
            }
            Some(Open::Word) => return Ok(()),
            None => false,
        };
        let is_closed = match group {
            Group::Node { .. } => is_ended && self.cursor.take(b'}'),
            _ => is_ended,
        };
        match is_closed {
            true => Ok(()),
            false => Err(form(group)),
        }
    }

    /// Appends the numbers of nested lists.
    fn numbers(&mut self, shape: &[u64], to: &mut Vec<f32>) -> Result<bool, String> {
        if self.skipped > 0 || self.takes_null() {
            return Ok(false);
        }
        let wrong = || match shape {
            [] => "a number, or null".to_owned(),
            _ => format!("numbers in lists of the lengths {shape:?}, or null"),
        };
        let mut counters: Vec<u64> = Vec::with_capacity(shape.len());
        loop {
            // Down to the next number, or to an empty list.
            while let Some(length) = shape.get(counters.len()) {
                if !self.cursor.take(b'[') {
                    return Err(wrong());
                }
                if *length == 0 {
                    if !self.cursor.take(b']') {
                        return Err(wrong());
                    }
                    break;
                }
                counters.push(0);
            }
            if counters.len() == shape.len() {
                to.push(self.number().ok_or_else(wrong)?);
            }
            // Up, as long as the part that just ended is the last.
            loop {
                let Some(counter) = counters.last_mut() else {
                    return Ok(true);
                };
                *counter += 1;
                let is_last = *counter == shape[counters.len() - 1];
                if !self.cursor.take(if is_last { b']' } else { b',' }) {
                    return Err(wrong());
                }
                if !is_last {
                    break;
                }
                counters.pop();
            }
        }
    }

    fn number(&mut self) -> Option<f32> {
        if self.cursor.peek() != Peek::Number {
            return None;
        }
        let number = self.cursor.number().ok()?.parse::<f32>().ok()?;
        number.is_finite().then_some(number)
    }

    /// `null`, of one thing or of each in nested lists.
    fn nothing(&mut self, elem: Elem) -> Result<(), String> {
        if self.skipped > 0 {
            return Ok(());
        }
        let mut depth = 0_usize;
        loop {
            if self.cursor.take(b'[') {
                depth += 1;
                if !self.cursor.take(b']') {
                    continue;
                }
                depth -= 1;
            } else if !self.takes_null() {
                return Err(format!(
                    "`null` for what is of {}",
                    crate::program::weights::dtype_name(elem)
                ));
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                if self.cursor.take(b',') {
                    break;
                }
                if !self.cursor.take(b']') {
                    return Err("`null`, or lists of it".to_owned());
                }
                depth -= 1;
            }
        }
    }

    fn text(&mut self) -> Result<(), String> {
        let is_there = self.skipped > 0
            || self.takes_null()
            || self.cursor.peek() == Peek::String && self.cursor.string().is_ok();
        match is_there {
            true => Ok(()),
            false => Err("`null` for a text".to_owned()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.cursor.peek() {
            Peek::End => Ok(()),
            _ => Err("no longer than the output".to_owned()),
        }
    }
}

/// What a group should look like.
fn form(group: Group<'_>) -> String {
    match group {
        Group::Tuple => "a list with a part for each of the tuple's".to_owned(),
        Group::Array { length } => format!("a list of {length}"),
        Group::Node { name, fields, .. } => match fields {
            0 => format!("\"{name}\", or null"),
            fields => format!("a `{name}` with its {fields} fields"),
        },
    }
}
