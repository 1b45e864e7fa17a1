//! The cotangents of outputs, given by the caller where the entry does not return a loss.
//!
//! What is differentiated is the sum of all numbers that an instance gives, each times its own
//! *cotangent*. These come as JSON of the output's form ([`Cotangent::Text`]) or as numbers by its parts
//! ([`Cotangent::Parts`]). The output is walked as it is when it is written, and what it is
//! weighed by is read along with it.

use std::borrow::Cow;
use std::collections::HashMap;

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, Manifest, Type};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::input::InputStream;
use crate::input::cursor::{Cursor, Peek, unescape};
use crate::input::lines::{Line, Lines, Next};
use crate::output::columns::parts;
use crate::output::{Group, Problem, Tensor, TooLong, Walk, Writer, bits};
use crate::validate::ID_KEY;

/// Knows by what the outputs of instances are weighed.
pub trait Cotangents {
    /// Of the instance of that number, from 0 in the order of the input, whose id is that JSON text.
    fn of(&mut self, number: u64, id: &str) -> Result<Cotangent<'_>, InstanceError>;
}

/// By what one output is weighed.
#[derive(Clone, Copy, Debug)]
pub enum Cotangent<'a> {
    /// JSON of the output's form: a number for each f32, and `null` for a part that does not count, or is
    /// not of f32.
    Text(&'a str),
    /// For each of the output's [`parts`] a number for each f32 of it, in its
    /// order, or nothing where the part does not count.
    Parts(&'a [Option<Vec<f32>>]),
}

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

/// What an output is weighed by: its tensors that count, and where in the numbers each has its own.
#[derive(Debug, Default)]
pub struct Weighed {
    pub tensors: Vec<(Wanted, usize)>,
    pub numbers: Vec<f32>,
}

/// Weighs the output of an instance.
///
/// # Safety
///
/// `slots` is what the program's entry left for an instance of the executor's last flush, and everything
/// it points to is still there.
pub unsafe fn weigh(
    manifest: &Manifest,
    executor: &Executor,
    slots: *const u64,
    by: Cotangent<'_>,
) -> Result<Result<Weighed, InstanceError>, Error> {
    let mut weighing = Weighing {
        source: Source::Numbers(&[]),
        at_hand: None,
        weighed: Weighed::default(),
        total: 0.0,
        problem: None,
    };
    let mut walk = Walk::new(manifest);
    match by {
        Cotangent::Text(text) => {
            let source = Source::Text(Text::new(text));
            // SAFETY: the caller's promise.
            unsafe { weighing.part(&mut walk, source, &manifest.result, slots, executor)? };
        }
        Cotangent::Parts(given) => {
            let parts = parts(&manifest.result);
            if parts.len() != given.len() {
                weighing.problem = Some(format!("of {} parts", parts.len()));
            }
            for ((ty, slot), numbers) in parts.into_iter().zip(given) {
                if let Some(numbers) = numbers {
                    let source = Source::Numbers(numbers);
                    // SAFETY: the caller's promise; the part begins at that slot.
                    unsafe { weighing.part(&mut walk, source, ty, slots.add(slot), executor)? };
                }
            }
        }
    }
    Ok(weighing.done())
}

/// A walk along an output.
struct Weighing<'c> {
    source: Source<'c>,
    /// The tensor that comes next.
    at_hand: Option<Wanted>,
    weighed: Weighed,
    /// The sum of what counts.
    total: f64,
    /// What should be there, where it is not.
    problem: Option<String>,
}

impl<'c> Weighing<'c> {
    /// Weighs a part of the output.
    ///
    /// # Safety
    ///
    /// As [`weigh`].
    unsafe fn part<'m>(
        &mut self,
        walk: &mut Walk<'m>,
        source: Source<'c>,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(), Error> {
        if self.problem.is_some() {
            return Ok(());
        }
        self.source = source;
        // SAFETY: the caller's promise.
        let walked = unsafe { walk.value(ty, slots, executor, self) };
        if let (Err(Problem::Broken(what)), None) = (walked, &self.problem) {
            return Err(Error::Internal(format!("a result has {what}")));
        }
        if self.problem.is_none() {
            let read = self.source.end();
            self.note(read);
        }
        Ok(())
    }

    fn done(self) -> Result<Weighed, InstanceError> {
        if let Some(expected) = self.problem {
            return Err(InstanceError::bad_input(format!(
                "the cotangent is not of the output's form: it should be {expected}"
            )));
        }
        match self.total.is_finite() {
            true => Ok(self.weighed),
            false => Err(InstanceError::not_finite(
                "the output, weighed by its cotangents,",
                self.total,
            )),
        }
    }

    fn note(&mut self, read: Result<(), String>) {
        if self.problem.is_none() {
            self.problem = read.err();
        }
    }

    /// Reads what weighs a number or a tensor; `at` is where its rows are, if it has some.
    fn leaf(&mut self, elem: Elem, shape: &[u64], bytes: &[u8], at: Option<Wanted>) {
        if elem != Elem::F32 {
            let read = self.source.nothing(elem);
            return self.note(read);
        }
        let first = self.weighed.numbers.len();
        match self.source.numbers(shape, &mut self.weighed.numbers) {
            Err(expected) => self.note(Err(expected)),
            Ok(false) => {}
            Ok(true) => {
                let given = bytes.chunks_exact(4).map(|element| bits(elem, element));
                for (number, weight) in given.zip(&self.weighed.numbers[first..]) {
                    // What does not count may be anything.
                    if *weight != 0.0 {
                        self.total += f64::from(f32::from_bits(number)) * f64::from(*weight);
                    }
                }
                match at {
                    Some(at) if at.rows > 0 => self.weighed.tensors.push((at, first)),
                    _ => self.weighed.numbers.truncate(first),
                }
            }
        }
    }
}

impl Writer for Weighing<'_> {
    fn scalar(&mut self, elem: Elem, bits: u32) {
        // It is of the host, and nothing flows from it.
        self.leaf(elem, &[], &bits.to_le_bytes(), None);
    }

    fn text(&mut self, _: &str) {
        let read = self.source.text();
        self.note(read);
    }

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        let at = self.at_hand.take();
        self.leaf(tensor.elem, tensor.shape, tensor.bytes, at);
        Ok(())
    }

    fn begin(&mut self, group: Group<'_>) {
        let read = self.source.begin(group);
        self.note(read);
    }

    fn separate(&mut self) {
        let read = self.source.separate();
        self.note(read);
    }

    fn field(&mut self, name: &str) {
        let read = self.source.field(name);
        self.note(read);
    }

    fn end(&mut self, group: Group<'_>) {
        let read = self.source.leave(group);
        self.note(read);
    }

    fn is_full(&self) -> bool {
        self.problem.is_some()
    }

    fn rows(&mut self, wanted: Wanted) -> bool {
        self.at_hand = Some(wanted);
        false
    }
}

/// Where weights come from. What is wrong is told as what it should be.
enum Source<'c> {
    Text(Text<'c>),
    Numbers(&'c [f32]),
}

impl Source<'_> {
    fn begin(&mut self, group: Group<'_>) -> Result<(), String> {
        match self {
            Source::Text(text) => text.begin(group),
            Source::Numbers(_) => Ok(()),
        }
    }

    fn separate(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.separate(),
            Source::Numbers(_) => Ok(()),
        }
    }

    fn field(&mut self, name: &str) -> Result<(), String> {
        match self {
            Source::Text(text) => text.field(name),
            Source::Numbers(_) => Ok(()),
        }
    }

    fn leave(&mut self, group: Group<'_>) -> Result<(), String> {
        match self {
            Source::Text(text) => text.leave(group),
            Source::Numbers(_) => Ok(()),
        }
    }

    /// Appends a number for each element of a tensor; `false` where it does not count.
    fn numbers(&mut self, shape: &[u64], to: &mut Vec<f32>) -> Result<bool, String> {
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

    fn nothing(&mut self, elem: Elem) -> Result<(), String> {
        match self {
            Source::Text(text) => text.nothing(elem),
            Source::Numbers(_) => Ok(()),
        }
    }

    fn text(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.text(),
            Source::Numbers(_) => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self {
            Source::Text(text) => text.end(),
            Source::Numbers([]) => Ok(()),
            Source::Numbers(_) => Err("no more than a number for each f32 of a part".to_owned()),
        }
    }
}

/// JSON of the output's form, read along with the output.
struct Text<'t> {
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
    fn new(text: &'t str) -> Text<'t> {
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
                    crate::weights::dtype_name(elem)
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

/// Where the numbers that weigh a tensor are, once they are rows: from the handle of its first row on as
/// many as it has.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    pub handle: Handle,
    pub rows: u64,
    /// The first row of its cotangent; without, that is the number 1.
    pub cotangent: Option<Handle>,
}
