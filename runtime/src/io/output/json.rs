//! Results and error records as JSON Lines.
//!
//! Numbers are printed so that they read back to the same bits. JSON has no number that is not finite:
//! those are written as the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, which inputs take too.

use cohort_abi::manifest::{Debug, Elem, Manifest};

use super::columns::Columns;
use super::replay::replay;
use super::{Group, Places, Problem, Tensor, TooLong, Walk, Writer};
use crate::backward::InputGradient;
use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;

/// Writes results of one program.
pub struct Formatter<'m> {
    walk: Walk<'m>,
    text: Text,
}

/// The line that is being written.
struct Text {
    bytes: Vec<u8>,
    most: u64,
}

/// The line of an instance of these columns: its result, or its error.
pub fn record(
    manifest: &Manifest,
    columns: &Columns,
    instance: usize,
    max_bytes: u64,
) -> Result<Vec<u8>, Error> {
    let done = &columns.instances[instance];
    if let Some(error) = &done.error {
        return error_record(&done.id, error);
    }
    let mut text = Text::new(max_bytes);
    text.result(&done.id, "output", |text| {
        replay(manifest, columns, instance, text)
    })?;
    Ok(text.bytes)
}

/// The line of the gradients of an instance's inputs, or of why there are none.
pub fn gradient_record(
    id: &str,
    gradient: Result<InputGradient<'_>, &InstanceError>,
    max_bytes: u64,
) -> Result<Vec<u8>, Error> {
    let gradient = match gradient {
        Ok(gradient) => gradient,
        Err(error) => return error_record(id, error),
    };
    let mut text = Text::new(max_bytes);
    text.result(id, "gradient", |text| {
        text.bytes.push(b'{');
        gradient.write(text, |text, number, name| {
            if number > 0 {
                text.bytes.extend_from_slice(b", ");
            }
            text.field(name);
        })?;
        text.bytes.push(b'}');
        Ok(())
    })?;
    Ok(text.bytes)
}

/// The line of an instance without a result.
pub fn error_record(id: &str, error: &InstanceError) -> Result<Vec<u8>, Error> {
    let mut text = Text::new(u64::MAX);
    text.error(id, error)?;
    Ok(text.bytes)
}

impl Text {
    fn new(most: u64) -> Text {
        Text {
            bytes: Vec::new(),
            most,
        }
    }

    /// Replaces what there is by the line of a result; if it would be too long, by the line of that error, and
    /// `false`.
    fn result(
        &mut self,
        id: &str,
        key: &str,
        write: impl FnOnce(&mut Text) -> Result<(), Problem>,
    ) -> Result<bool, Error> {
        self.bytes.clear();
        self.bytes.extend_from_slice(b"{\"id\": ");
        self.bytes.extend_from_slice(id.as_bytes());
        self.bytes.extend_from_slice(b", \"");
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(b"\": ");
        if let Err(problem) = write(self) {
            let TooLong = problem.into_too_long()?;
            let error = InstanceError::memory_limit("the text of the result", self.most);
            // Do not keep what one giant result took.
            self.bytes = Vec::new();
            self.error(id, &error)?;
            return Ok(false);
        }
        self.bytes.extend_from_slice(b"}\n");
        Ok(true)
    }

    /// Replaces what there is by the line of an instance without a result.
    fn error(&mut self, id: &str, error: &InstanceError) -> Result<(), Error> {
        let text = &mut self.bytes;
        text.clear();
        text.extend_from_slice(b"{\"id\": ");
        text.extend_from_slice(id.as_bytes());
        text.extend_from_slice(b", \"error\": {\"kind\": ");
        let internal = |error: serde_json::Error| Error::Internal(error.to_string());
        serde_json::to_writer(&mut *text, error.kind).map_err(internal)?;
        text.extend_from_slice(b", \"message\": ");
        serde_json::to_writer(&mut *text, &error.message).map_err(internal)?;
        text.extend_from_slice(b"}}\n");
        Ok(())
    }
}

impl<'m> Formatter<'m> {
    /// `max_bytes` limits the text of one result: a value with shared parts can be far bigger
    /// written out than in memory.
    pub fn new(manifest: &'m Manifest, max_bytes: u64) -> Formatter<'m> {
        Formatter {
            walk: Walk::new(manifest),
            text: Text::new(max_bytes),
        }
    }

    /// The line of an instance that has a result; if its text would be too long, the line of that
    /// error, and `false`.
    ///
    /// # Safety
    ///
    /// `slots` is what the program's entry left for an instance of the executor's last flush, and
    /// everything it points to is still there.
    pub unsafe fn result(
        &mut self,
        id: &str,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(&[u8], bool), Error> {
        let ty = &self.walk.manifest().result;
        let walk = &mut self.walk;
        // SAFETY: the caller's promise.
        let write = |text: &mut Text| unsafe { walk.value(ty, slots, executor, text) };
        let is_written = self.text.result(id, "output", write)?;
        Ok((&self.text.bytes, is_written))
    }

    /// A line that shows a value of the type, or that it is too long to be shown.
    ///
    /// # Safety
    ///
    /// As [`Formatter::result`], of any value of the instance.
    pub unsafe fn debug(
        &mut self,
        id: &str,
        debug: &'m Debug,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<&[u8], Error> {
        let begin = |text: &mut Vec<u8>, key: &[u8]| {
            text.clear();
            text.extend_from_slice(b"{\"id\": ");
            text.extend_from_slice(id.as_bytes());
            text.extend_from_slice(b", \"debug\": ");
            write_string(text, &debug.text);
            text.extend_from_slice(key);
        };
        begin(&mut self.text.bytes, b", \"value\": ");
        // SAFETY: the caller's promise.
        let shown = unsafe { (self.walk).value(&debug.ty, slots, executor, &mut self.text) };
        if let Err(problem) = shown {
            let TooLong = problem.into_too_long()?;
            begin(&mut self.text.bytes, b", \"error\": ");
            write_string(&mut self.text.bytes, "the value is too long to be shown");
        }
        self.text.bytes.extend_from_slice(b"}\n");
        Ok(&self.text.bytes)
    }

    /// Appends all rows that the line of an instance's result has, or, of one that is too long,
    /// more of them than are ever read.
    ///
    /// # Safety
    ///
    /// As [`Formatter::result`].
    pub unsafe fn wanted(
        &mut self,
        slots: *const u64,
        executor: &Executor,
        wanted: &mut Vec<Wanted>,
    ) {
        let ty = &self.walk.manifest().result;
        let mut places = Places::new(wanted, self.text.most);
        // What is wrong with the result is told when it is written.
        // SAFETY: the caller's promise.
        let _ = unsafe { self.walk.value(ty, slots, executor, &mut places) };
    }

    /// The line of an instance without a result.
    pub fn error(&mut self, id: &str, error: &InstanceError) -> Result<&[u8], Error> {
        self.text.error(id, error)?;
        Ok(&self.text.bytes)
    }
}

impl Writer for Text {
    fn scalar(&mut self, elem: Elem, bits: u32) {
        write_scalar(&mut self.bytes, elem, bits);
    }

    fn text(&mut self, text: &str) {
        write_string(&mut self.bytes, text);
    }

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        let Tensor {
            elem, shape, bytes, ..
        } = tensor;
        match write_tensor(&mut self.bytes, elem, shape, bytes, self.most) {
            true => Ok(()),
            false => Err(TooLong),
        }
    }

    fn nothing(&mut self) {
        self.bytes.extend_from_slice(b"null");
    }

    fn begin(&mut self, group: Group<'_>) {
        match group {
            Group::Tuple | Group::Array { .. } => self.bytes.push(b'['),
            Group::Node {
                name, fields: 0, ..
            } => write_string(&mut self.bytes, name),
            Group::Node { name, names, .. } => {
                let open = if names.is_empty() { b": [" } else { b": {" };
                self.bytes.push(b'{');
                write_string(&mut self.bytes, name);
                self.bytes.extend_from_slice(open);
            }
        }
    }

    fn separate(&mut self) {
        self.bytes.extend_from_slice(b", ");
    }

    fn field(&mut self, name: &str) {
        write_string(&mut self.bytes, name);
        self.bytes.extend_from_slice(b": ");
    }

    fn end(&mut self, group: Group<'_>) {
        match group {
            Group::Tuple | Group::Array { .. } => self.bytes.push(b']'),
            Group::Node { fields: 0, .. } => {}
            Group::Node { names: [], .. } => self.bytes.extend_from_slice(b"]}"),
            Group::Node { .. } => self.bytes.extend_from_slice(b"}}"),
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() as u64 > self.most
    }
}

/// Nested lists of the elements of a row, or of several; whether all of it was written before the
/// text was longer than `max_bytes`.
fn write_tensor(text: &mut Vec<u8>, elem: Elem, shape: &[u64], row: &[u8], max_bytes: u64) -> bool {
    let mut elements = (row.chunks_exact(elem.bytes())).map(|element| super::bits(elem, element));
    let mut counters: Vec<u64> = Vec::with_capacity(shape.len());
    loop {
        // Down to the next element, or to an empty list.
        while let Some(length) = shape.get(counters.len()) {
            text.push(b'[');
            if *length == 0 {
                text.push(b']');
                break;
            }
            counters.push(0);
        }
        if counters.len() == shape.len()
            && let Some(bits) = elements.next()
        {
            write_scalar(text, elem, bits);
        }
        // Up, as long as the part that just ended is the last.
        loop {
            let Some(counter) = counters.last_mut() else {
                return true;
            };
            if text.len() as u64 > max_bytes {
                return false;
            }
            *counter += 1;
            if *counter < shape[counters.len() - 1] {
                text.extend_from_slice(b", ");
                break;
            }
            text.push(b']');
            counters.pop();
        }
    }
}

fn write_scalar(text: &mut Vec<u8>, elem: Elem, bits: u32) {
    let value = f32::from_bits(bits);
    let written = match elem {
        Elem::F32 if value.is_finite() => serde_json::to_writer(&mut *text, &value),
        Elem::F32 if value.is_nan() => serde_json::to_writer(&mut *text, "NaN"),
        Elem::F32 if value > 0.0 => serde_json::to_writer(&mut *text, "Infinity"),
        Elem::F32 => serde_json::to_writer(&mut *text, "-Infinity"),
        Elem::I32 => serde_json::to_writer(&mut *text, &(bits as i32)),
        Elem::Bool => serde_json::to_writer(&mut *text, &(bits & 1 != 0)),
    };
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
}

fn write_string(text: &mut Vec<u8>, string: &str) {
    let written = serde_json::to_writer(text, string);
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(elem: Elem, shape: &[u64], bits: &[u32]) -> String {
        let row: Vec<u8> = match elem {
            Elem::Bool => bits.iter().map(|bits| *bits as u8).collect(),
            _ => bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
        };
        let mut text = Vec::new();
        assert!(write_tensor(&mut text, elem, shape, &row, 1 << 20));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn tensors_are_nested_lists() {
        let bits: Vec<u32> = (1..=6).collect();
        assert_eq!(written(Elem::I32, &[], &bits[..1]), "1");
        assert_eq!(written(Elem::I32, &[2, 3], &bits), "[[1, 2, 3], [4, 5, 6]]");
        assert_eq!(
            written(Elem::I32, &[3, 1, 2], &bits),
            "[[[1, 2]], [[3, 4]], [[5, 6]]]"
        );
        assert_eq!(written(Elem::I32, &[2, 0], &[]), "[[], []]");
        assert_eq!(written(Elem::I32, &[0, 2], &[]), "[]");
        assert_eq!(written(Elem::Bool, &[2], &[1, 0]), "[true, false]");
    }

    #[test]
    fn a_text_ends_where_it_may_be_no_longer() {
        let mut text = Vec::new();
        // Nothing in very many lists.
        assert!(!write_tensor(
            &mut text,
            Elem::F32,
            &[u64::MAX, 0],
            &[],
            1000
        ));
        assert!(text.len() < 1100);
    }

    #[test]
    fn floats_read_back_to_the_same_bits() {
        let mut bits = 0x1234_5678_u32;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            let text = written(Elem::F32, &[], &[bits]);
            if value.is_finite() {
                assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits, "{text}");
            }
        }
        for value in [0.0, -0.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::MIN] {
            let text = written(Elem::F32, &[], &[value.to_bits()]);
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), value.to_bits());
        }
        assert_eq!(written(Elem::F32, &[], &[f32::NAN.to_bits()]), "\"NaN\"");
        assert_eq!(
            written(Elem::F32, &[], &[f32::NEG_INFINITY.to_bits()]),
            "\"-Infinity\""
        );
    }
}
