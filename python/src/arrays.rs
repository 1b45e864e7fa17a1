//! Whatever has a buffer (NumPy's arrays and many others), of any strides and byte order, as the
//! elements of a tensor.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use cohort_runtime::abi::manifest::Elem;
use cohort_runtime::io::input::narrow;
use half::f16;
use pyo3::ffi;
use pyo3::prelude::*;

/// An array: its shape, and once they are read its elements, as compiled code reads them.
#[derive(Default)]
pub struct Array {
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
    /// Until its elements are read.
    begun: Option<Begun>,
}

/// An array whose elements may be read.
struct Begun {
    view: View,
    kind: Kind,
    is_swapped: bool,
}

/// What came of reading elements.
pub enum Outcome {
    Read,
    /// An element has no equal in the type: a fraction or what is too large.
    DoesNotFit,
    NoMemory,
}

/// A view of a buffer, released when dropped.
struct View(ffi::Py_buffer);

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the buffer was got and is released once; whoever has a view is attached.
        unsafe { ffi::PyBuffer_Release(&mut self.0) }
    }
}

/// The types of elements.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
}

/// Whether an object has a buffer.
pub fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// An object with a buffer, where it becomes one by `__array__`, as tensors of PyTorch do.
pub fn plain<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if is_array(object) {
        return Ok(Some(object.clone()));
    }
    if !matches!(object.hasattr("__array__"), Ok(true)) {
        return Ok(None);
    }
    let module = object.py().import("cohort._arrays")?;
    let array = module.call_method1("plain", (object,))?;
    Ok(is_array(&array).then_some(array))
}

impl Array {
    /// Begins with an object that has a buffer: its shape is known then, and nothing of it is copied. Whether its
    /// elements are taken for the type: an integer is for a float, and a float of another width; nothing else is unless it
    /// stays what it is.
    pub fn begin(&mut self, object: &Bound<'_, PyAny>, elem: Elem) -> PyResult<bool> {
        self.release();
        let mut view = MaybeUninit::<ffi::Py_buffer>::uninit();
        // SAFETY: the call fills the view if it succeeds.
        let got = unsafe {
            ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_FULL_RO)
        };
        if got != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: as above.
        let view = View(unsafe { view.assume_init() });
        let buffer = &view.0;
        let Some((kind, is_swapped)) = kind(buffer, buffer.itemsize as usize) else {
            return Ok(false);
        };
        let fits = match elem {
            Elem::F32 => kind != Kind::Bool,
            Elem::I32 => matches!(kind, Kind::Signed | Kind::Unsigned),
            Elem::Bool => kind == Kind::Bool,
        };
        if !fits || !buffer.suboffsets.is_null() {
            return Ok(false);
        }
        // SAFETY: the shape has an element for each dim.
        let shape = unsafe { list(buffer.shape, buffer.ndim as usize) };
        self.shape.extend(shape.iter().map(|length| *length as u64));
        self.begun = Some(Begun {
            view,
            kind,
            is_swapped,
        });
        Ok(true)
    }

    /// Lets the object go.
    pub fn release(&mut self) {
        self.begun = None;
        self.shape.clear();
        self.bytes.clear();
    }

    /// Reads the elements of what was begun with, whose size the caller has checked. A float is rounded.
    pub fn elements(&mut self, elem: Elem) -> Outcome {
        self.bytes.clear();
        let Some(Begun {
            view,
            kind,
            is_swapped,
        }) = self.begun.take()
        else {
            return Outcome::Read;
        };
        let buffer = &view.0;
        let rank = buffer.ndim as usize;
        let size = buffer.itemsize as usize;
        // SAFETY: shape and strides have an element for each dim; a full view has both.
        let (shape, strides) = unsafe { (list(buffer.shape, rank), list(buffer.strides, rank)) };
        if shape.contains(&0) {
            return Outcome::Read;
        }
        let mut lengths = shape.iter();
        let count = lengths.try_fold(1_usize, |count, length| count.checked_mul(*length as usize));
        let bytes = count.and_then(|count| count.checked_mul(elem.bytes()));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Outcome::NoMemory;
        };
        if self.bytes.try_reserve_exact(bytes).is_err() {
            return Outcome::NoMemory;
        }
        let is_same = !is_swapped
            && match (elem, kind) {
                (Elem::F32, Kind::Float) | (Elem::I32, Kind::Signed) => size == 4,
                _ => false,
            };
        if is_same && is_contiguous(shape, strides, size) {
            // SAFETY: the elements lie next to each other from the buffer's beginning on.
            let bytes =
                unsafe { std::slice::from_raw_parts(buffer.buf.cast::<u8>(), count * size) };
            self.bytes.extend_from_slice(bytes);
            return Outcome::Read;
        }
        if !is_swapped && is_contiguous(shape, strides, size) {
            // SAFETY: as above.
            let bytes =
                unsafe { std::slice::from_raw_parts(buffer.buf.cast::<u8>(), count * size) };
            return match self.convert_all(bytes, kind, size, elem) {
                true => Outcome::Read,
                false => Outcome::DoesNotFit,
            };
        }
        let mut position = vec![0_isize; rank];
        let mut place = buffer.buf.cast_const().cast::<u8>();
        for _ in 0..count {
            let mut element = [0_u8; 8];
            // SAFETY: the strides lead to an element of the buffer, which has that many bytes.
            unsafe { std::ptr::copy_nonoverlapping(place, element.as_mut_ptr(), size) };
            if is_swapped {
                element[..size].reverse();
            }
            let Some(bits) = convert(element, kind, size, elem) else {
                return Outcome::DoesNotFit;
            };
            self.bytes
                .extend_from_slice(&bits.to_le_bytes()[..elem.bytes()]);
            for axis in (0..rank).rev() {
                position[axis] += 1;
                place = place.wrapping_offset(strides[axis]);
                if position[axis] < shape[axis] {
                    break;
                }
                place = place.wrapping_offset(-strides[axis] * shape[axis]);
                position[axis] = 0;
            }
        }
        Outcome::Read
    }

    /// Appends elements that lie next to each other; whether all have an equal in the type.
    fn convert_all(&mut self, bytes: &[u8], kind: Kind, size: usize, elem: Elem) -> bool {
        match size {
            1 => self.convert_each::<1>(bytes, kind, elem),
            2 => self.convert_each::<2>(bytes, kind, elem),
            4 => self.convert_each::<4>(bytes, kind, elem),
            _ => self.convert_each::<8>(bytes, kind, elem),
        }
    }

    fn convert_each<const SIZE: usize>(&mut self, bytes: &[u8], kind: Kind, elem: Elem) -> bool {
        let elements = bytes.as_chunks::<SIZE>().0.iter().map(|bytes| {
            let mut element = [0; 8];
            element[..SIZE].copy_from_slice(bytes);
            element
        });
        let bytes = &mut self.bytes;
        match elem {
            Elem::Bool => {
                bytes.extend(elements.map(|element| u8::from(element[0] != 0)));
                true
            }
            _ => {
                for element in elements {
                    let Some(bits) = convert(element, kind, SIZE, elem) else {
                        return false;
                    };
                    bytes.extend_from_slice(&bits.to_le_bytes());
                }
                true
            }
        }
    }
}

/// # Safety
///
/// There are `rank` elements, if any.
unsafe fn list<'a>(elements: *const ffi::Py_ssize_t, rank: usize) -> &'a [ffi::Py_ssize_t] {
    match rank {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(elements, rank) },
    }
}

/// What the elements are, and whether their bytes are in the other order; nothing for types that are
/// not one of these numbers.
fn kind(buffer: &ffi::Py_buffer, size: usize) -> Option<(Kind, bool)> {
    let format = match buffer.format.is_null() {
        true => c"B",
        // SAFETY: a format is a string that lives as long as the view.
        false => unsafe { CStr::from_ptr(buffer.format) },
    };
    let (is_swapped, letter) = match format.to_bytes() {
        [letter] => (false, letter),
        [b'@' | b'=' | b'<', letter] => (false, letter),
        [b'>' | b'!', letter] => (true, letter),
        _ => return None,
    };
    let kind = match letter {
        b'e' | b'f' | b'd' => Kind::Float,
        b'b' | b'h' | b'i' | b'l' | b'q' | b'n' => Kind::Signed,
        b'B' | b'H' | b'I' | b'L' | b'Q' | b'N' => Kind::Unsigned,
        b'?' => Kind::Bool,
        _ => return None,
    };
    matches!(size, 1 | 2 | 4 | 8).then_some((kind, is_swapped))
}

fn is_contiguous(shape: &[isize], strides: &[isize], size: usize) -> bool {
    let mut expected = size as isize;
    for (length, stride) in shape.iter().zip(strides).rev() {
        if *length > 1 && *stride != expected {
            return false;
        }
        expected *= length;
    }
    true
}

/// An element, whose bytes are at the begin of eight.
#[inline]
fn convert(bytes: [u8; 8], kind: Kind, size: usize, elem: Elem) -> Option<u32> {
    let unsigned = u64::from_le_bytes(bytes);
    let unused = 64 - 8 * size as u32;
    let signed = (unsigned << unused) as i64 >> unused;
    let float = match (kind, size) {
        (Kind::Float, 2) => f16::from_bits(unsigned as u16).to_f64(),
        (Kind::Float, 4) => f64::from(f32::from_bits(unsigned as u32)),
        (Kind::Float, _) => f64::from_bits(unsigned),
        (Kind::Signed, _) => signed as f64,
        (Kind::Unsigned, _) => unsigned as f64,
        (Kind::Bool, _) => return Some(u32::from(unsigned != 0)),
    };
    match (elem, kind) {
        // The same bits also where it is not a number.
        (Elem::F32, Kind::Float) if size == 4 => Some(unsigned as u32),
        (Elem::F32, _) => narrow(float),
        (Elem::I32, Kind::Signed) => i32::try_from(signed).ok().map(|value| value as u32),
        (Elem::I32, Kind::Unsigned) => i32::try_from(unsigned).ok().map(|value| value as u32),
        _ => None,
    }
}
