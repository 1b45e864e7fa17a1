//! Results and error records as JSON Lines.
//!
//! A result is walked with a stack of its own, so its depth does not matter. Numbers are printed
//! so that they read back to the same bits. JSON has no number that is not finite: those are
//! written as the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, LeadingDim, Manifest, Type};

use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;

/// Slots of a value of the type.
pub fn slot_count(ty: &Type) -> usize {
    match ty {
        Type::Tuple(types) => types.iter().map(slot_count).sum(),
        Type::Ragged { dims, .. } => {
            let is_free = |dim: &&LeadingDim| !matches!(dim, LeadingDim::Known(_));
            1 + dims.iter().filter(is_free).count()
        }
        _ => 1,
    }
}

/// A list of which a part is written.
enum Frame<'m> {
    /// Values of different types, next to each other.
    Parts {
        types: &'m [Type],
        next: usize,
        slots: *const u64,
        close: &'static str,
    },
    /// Values of one type, next to each other.
    Elements {
        ty: &'m Type,
        slots: *const u64,
        left: u64,
        is_first: bool,
    },
    Rows {
        space: usize,
        slots: *const u64,
        left: u64,
        is_first: bool,
    },
}

/// Writes results of one program.
pub struct Formatter<'m> {
    manifest: &'m Manifest,
    max_bytes: u64,
    frames: Vec<Frame<'m>>,
    text: Vec<u8>,
    /// Where the rows are noted, in place of their numbers in the text.
    wanted: Option<Vec<Wanted>>,
}

/// Why a result cannot be written.
enum Problem {
    TooLong,
    Broken(&'static str),
}

impl<'m> Formatter<'m> {
    /// `max_bytes` limits the text of one result: a value with shared parts can be far bigger
    /// written out than in memory.
    pub fn new(manifest: &'m Manifest, max_bytes: u64) -> Formatter<'m> {
        Formatter {
            manifest,
            max_bytes,
            frames: Vec::new(),
            text: Vec::new(),
            wanted: None,
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
        self.text.clear();
        self.text.extend_from_slice(b"{\"id\": ");
        self.text.extend_from_slice(id.as_bytes());
        self.text.extend_from_slice(b", \"output\": ");
        // SAFETY: the caller's promise.
        match unsafe { self.value(&self.manifest.result, slots, executor) } {
            Ok(()) => {
                self.text.extend_from_slice(b"}\n");
                Ok((&self.text, true))
            }
            Err(Problem::TooLong) => {
                let error = InstanceError::memory_limit("the text of the result", self.max_bytes);
                // Do not keep what one giant result took.
                self.text = Vec::new();
                Ok((self.error(id, &error)?, false))
            }
            Err(Problem::Broken(what)) => Err(Error::Internal(format!("a result has {what}"))),
        }
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
        self.text.clear();
        self.wanted = Some(std::mem::take(wanted));
        // What is wrong with the result is told when it is written.
        // SAFETY: the caller's promise.
        let _ = unsafe { self.value(&self.manifest.result, slots, executor) };
        *wanted = self.wanted.take().unwrap_or_default();
    }

    /// The line of an instance without a result.
    pub fn error(&mut self, id: &str, error: &InstanceError) -> Result<&[u8], Error> {
        self.text.clear();
        self.text.extend_from_slice(b"{\"id\": ");
        self.text.extend_from_slice(id.as_bytes());
        self.text.extend_from_slice(b", \"error\": {\"kind\": ");
        let internal = |error: serde_json::Error| Error::Internal(error.to_string());
        serde_json::to_writer(&mut self.text, error.kind).map_err(internal)?;
        self.text.extend_from_slice(b", \"message\": ");
        serde_json::to_writer(&mut self.text, &error.message).map_err(internal)?;
        self.text.extend_from_slice(b"}}\n");
        Ok(&self.text)
    }

    /// # Safety
    ///
    /// As [`Formatter::result`], for a value of any type.
    unsafe fn value(
        &mut self,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(), Problem> {
        self.frames.clear();
        // SAFETY: the caller's promise.
        unsafe { self.begin(ty, slots, executor)? };
        while let Some(frame) = self.frames.last_mut() {
            if self.text.len() as u64 > self.max_bytes {
                return Err(Problem::TooLong);
            }
            match frame {
                Frame::Parts {
                    types,
                    next,
                    slots,
                    close,
                } => {
                    let Some(ty) = types.get(*next) else {
                        self.text.extend_from_slice(close.as_bytes());
                        self.frames.pop();
                        continue;
                    };
                    if *next > 0 {
                        self.text.extend_from_slice(b", ");
                    }
                    *next += 1;
                    let part = *slots;
                    // SAFETY: the slots of the parts lie next to each other, in this order; after
                    // the last this is one past the end.
                    *slots = unsafe { part.add(slot_count(ty)) };
                    // SAFETY: a part of a valid value is valid.
                    unsafe { self.begin(ty, part, executor)? };
                }
                Frame::Elements {
                    ty,
                    slots,
                    left,
                    is_first,
                } => {
                    if *left == 0 {
                        self.text.push(b']');
                        self.frames.pop();
                        continue;
                    }
                    if !std::mem::replace(is_first, false) {
                        self.text.extend_from_slice(b", ");
                    }
                    *left -= 1;
                    let (ty, element) = (*ty, *slots);
                    // SAFETY: as for parts; an array's elements lie next to each other.
                    *slots = unsafe { element.add(slot_count(ty)) };
                    // SAFETY: an element of a valid value is valid.
                    unsafe { self.begin(ty, element, executor)? };
                }
                Frame::Rows {
                    space,
                    slots,
                    left,
                    is_first,
                } => {
                    if *left == 0 {
                        self.text.push(b']');
                        self.frames.pop();
                        continue;
                    }
                    if !std::mem::replace(is_first, false) {
                        self.text.extend_from_slice(b", ");
                    }
                    *left -= 1;
                    let space = *space;
                    // SAFETY: a stacked tensor is an array of handles, of which some are left.
                    let handle = unsafe { slots.read() };
                    // SAFETY: as above.
                    *slots = unsafe { slots.add(1) };
                    self.tensor(space, Handle(handle), executor)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a value that has no parts, or pushes the frame of one that has.
    ///
    /// # Safety
    ///
    /// As [`Formatter::result`], for a value of any type.
    unsafe fn begin(
        &mut self,
        ty: &'m Type,
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(), Problem> {
        if let Type::Tuple(types) = ty {
            self.text.push(b'[');
            self.frames.push(Frame::Parts {
                types,
                next: 0,
                slots,
                close: "]",
            });
            return Ok(());
        }
        if let Type::Ragged { space, dims } = ty {
            // SAFETY: the caller's promise.
            return unsafe { self.ragged(*space, dims, slots, executor) };
        }
        // SAFETY: every other type has one slot.
        let slot = unsafe { slots.read() };
        let pointer = slot as *const u64;
        match ty {
            Type::Scalar(elem) => write_scalar(&mut self.text, *elem, slot as u32),
            Type::Tensor { space } => self.tensor(*space, Handle(slot), executor)?,
            Type::Tuple(_) | Type::Ragged { .. } => {}
            Type::Adt(adt) => {
                if pointer.is_null() {
                    return Err(Problem::Broken("a null pointer"));
                }
                // SAFETY: a value of a data type points to its tag.
                let tag = unsafe { pointer.read() };
                let constructors = &self.manifest.adts[*adt].constructors;
                let Some(constructor) = constructors.get(tag as usize) else {
                    return Err(Problem::Broken("a constructor that does not exist"));
                };
                if constructor.fields.is_empty() {
                    write_string(&mut self.text, &constructor.name);
                } else {
                    self.text.push(b'{');
                    write_string(&mut self.text, &constructor.name);
                    self.text.extend_from_slice(b": [");
                    self.frames.push(Frame::Parts {
                        types: &constructor.fields,
                        next: 0,
                        // SAFETY: the fields' slots come after the tag.
                        slots: unsafe { pointer.add(1) },
                        close: "]}",
                    });
                }
            }
            Type::Array(_) | Type::Stacked { .. } => {
                if pointer.is_null() {
                    return Err(Problem::Broken("a null pointer"));
                }
                // SAFETY: an array points to its length, and its elements come after it.
                let (left, slots) = unsafe { (pointer.read(), pointer.add(1)) };
                self.text.push(b'[');
                self.frames.push(match ty {
                    Type::Stacked { space } => Frame::Rows {
                        space: *space,
                        slots,
                        left,
                        is_first: true,
                    },
                    Type::Array(element) => Frame::Elements {
                        ty: element,
                        slots,
                        left,
                        is_first: true,
                    },
                    _ => return Err(Problem::Broken("an impossible type")),
                });
            }
        }
        Ok(())
    }

    fn tensor(&mut self, space: usize, handle: Handle, executor: &Executor) -> Result<(), Problem> {
        if self.note(handle, space, 1) {
            return Ok(());
        }
        let manifest = self.manifest;
        let Some(row) = executor.row(handle, space) else {
            return Err(Problem::Broken("a handle of no row"));
        };
        let space = &manifest.spaces[space];
        self.write_tensor(space.elem, &space.shape, row)
    }

    /// Writes a tensor with instance dims.
    ///
    /// # Safety
    ///
    /// `slots` are its handle and its lengths.
    unsafe fn ragged(
        &mut self,
        space: usize,
        dims: &[LeadingDim],
        slots: *const u64,
        executor: &Executor,
    ) -> Result<(), Problem> {
        let manifest = self.manifest;
        let of_row = &manifest.spaces[space];
        let mut shape = Vec::with_capacity(dims.len() + of_row.shape.len());
        let mut slot = 0;
        for dim in dims {
            shape.push(match dim {
                LeadingDim::Known(length) => *length,
                LeadingDim::Named(_) | LeadingDim::Any => {
                    slot += 1;
                    // SAFETY: the caller's promise.
                    unsafe { slots.add(slot).read() }
                }
            });
        }
        let rows = match shape.contains(&0) {
            true => Some(0),
            false => (shape.iter()).try_fold(1_u64, |rows, dim| rows.checked_mul(*dim)),
        };
        // SAFETY: as above.
        let handle = Handle(unsafe { slots.read() });
        if rows.is_some_and(|rows| self.note(handle, space, rows)) {
            return Ok(());
        }
        let rows = rows.and_then(|rows| executor.rows(handle, space, rows));
        let Some(rows) = rows else {
            return Err(Problem::Broken("a handle of no rows"));
        };
        shape.extend_from_slice(&of_row.shape);
        self.write_tensor(of_row.elem, &shape, rows)
    }

    /// Whether rows are noted and not written.
    fn note(&mut self, handle: Handle, space: usize, rows: u64) -> bool {
        let Some(wanted) = &mut self.wanted else {
            return false;
        };
        wanted.push(Wanted {
            handle,
            space,
            rows,
        });
        // Every tensor has some text, which ends what would otherwise never end.
        self.text.push(b' ');
        true
    }

    fn write_tensor(&mut self, elem: Elem, shape: &[u64], data: &[u8]) -> Result<(), Problem> {
        match write_tensor(&mut self.text, elem, shape, data, self.max_bytes) {
            true => Ok(()),
            false => Err(Problem::TooLong),
        }
    }
}

/// Nested lists of the elements of a row, or of several; whether all of it was written before the
/// text was longer than `max_bytes`.
fn write_tensor(text: &mut Vec<u8>, elem: Elem, shape: &[u64], row: &[u8], max_bytes: u64) -> bool {
    let mut elements = row.chunks_exact(elem.bytes()).map(|element| match elem {
        Elem::F32 | Elem::I32 => {
            u32::from_le_bytes([element[0], element[1], element[2], element[3]])
        }
        Elem::Bool => u32::from(element[0]),
    });
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
