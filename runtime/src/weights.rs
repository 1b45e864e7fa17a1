//! The weights file: safetensors, checked against what the program asks for.
//!
//! Its header is read when it is opened, the tensors when they are needed. They are read into memory
//! and not mapped: a file that another process makes shorter meanwhile is an error, and no signal.

mod convert;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cohort_abi::manifest::{Elem, Manifest};
use safetensors::tensor::{Dtype, Metadata};

use crate::error::Error;
use crate::memory::AlignedBuffer;

/// What a weights file says of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightShape {
    /// The type of its elements in the file, such as `bf16`.
    pub dtype: String,
    /// The type that they have in a program, if there is one.
    pub elem: Option<Elem>,
    pub shape: Vec<u64>,
}

/// The tensors of a weights file by name. The program's dims are bound from these before it is
/// compiled.
pub struct WeightShapes;

impl WeightShapes {
    pub fn read(path: &Path) -> Result<BTreeMap<String, WeightShape>, Error> {
        Ok(Weights::open(path)?.shapes())
    }
}

/// The bytes of all tensors.
#[derive(Debug)]
enum Data {
    Read(AlignedBuffer),
    /// From there on.
    Shared(Arc<[u8]>, usize),
}

/// An open weights file.
#[derive(Debug)]
pub struct Weights {
    path: PathBuf,
    metadata: Option<Metadata>,
    /// Bytes of the tensors, which the file still has to give unless they are in `data`.
    length: usize,
    file: Option<File>,
    data: OnceLock<Data>,
}

/// No header is longer, says the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;

impl Weights {
    /// For a program without parameters.
    pub fn none() -> Weights {
        Weights {
            path: PathBuf::new(),
            metadata: None,
            length: 0,
            file: None,
            data: OnceLock::new(),
        }
    }

    /// Opens a file; a pipe is read to its end.
    pub fn open(path: &Path) -> Result<Weights, Error> {
        let cannot_open = |source| Error::OpenWeights {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(cannot_open)?;
        let about = file.metadata().map_err(cannot_open)?;
        if !about.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(cannot_open)?;
            return Weights::of(path, bytes.into());
        }
        let header = read_header(&mut file, about.len());
        let (metadata, length) = header.map_err(|reason| bad(path, reason))?;
        Ok(Weights {
            path: path.to_owned(),
            metadata: Some(metadata),
            length,
            file: Some(file),
            data: OnceLock::new(),
        })
    }

    /// A weights file that is in memory.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<Weights, Error> {
        Weights::of(Path::new(""), bytes)
    }

    /// What was read of a file, whose path is for messages.
    pub fn of(path: &Path, bytes: Arc<[u8]>) -> Result<Weights, Error> {
        let header = read_header(&mut &bytes[..], bytes.len() as u64);
        let (metadata, length) = header.map_err(|reason| bad(path, reason))?;
        let start = bytes.len() - length;
        Ok(Weights {
            path: path.to_owned(),
            metadata: Some(metadata),
            length,
            file: None,
            data: OnceLock::from(Data::Shared(bytes, start)),
        })
    }

    /// Of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of all tensors.
    fn data(&self) -> Result<&[u8], Error> {
        if let (None, Some(file)) = (self.data.get(), &self.file) {
            let data = read_data(&self.path, file, self.length)?;
            // Who was faster read the same.
            let _ = self.data.set(Data::Read(data));
        }
        Ok(match self.data.get() {
            None => &[],
            Some(Data::Read(data)) => &data.bytes()[..self.length],
            Some(Data::Shared(bytes, start)) => &bytes[*start..],
        })
    }

    pub fn shapes(&self) -> BTreeMap<String, WeightShape> {
        let Some(metadata) = &self.metadata else {
            return BTreeMap::new();
        };
        metadata
            .tensors()
            .into_iter()
            .map(|(name, info)| {
                let found = WeightShape {
                    dtype: file_type(info.dtype),
                    elem: convert::elem_of(info.dtype),
                    shape: info.shape.iter().map(|dim| *dim as u64).collect(),
                };
                (name, found)
            })
            .collect()
    }

    /// A sentence for each type of the file's that the program's parameters do not have.
    pub fn conversions(&self, manifest: &Manifest) -> Vec<String> {
        const MOST_NAMES: usize = 3;
        let mut converted: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        for param in &manifest.params {
            let info = self
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.info(&param.name));
            if let Some(info) = info.filter(|info| convert::is_converted(info.dtype)) {
                let types = (file_type(info.dtype), dtype_name(param.elem));
                converted.entry(types).or_default().push(&param.name);
            }
        }
        let sentence = |((from, to), names): ((String, &str), Vec<&str>)| {
            let shown: Vec<String> = names
                .iter()
                .take(MOST_NAMES)
                .map(|name| format!("`{}`", name.escape_debug()))
                .collect();
            let more = match names.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let shown = shown.join(", ");
            format!("weights of {from} are read as {to}, each number as it is: {shown}{more}")
        };
        converted.into_iter().map(sentence).collect()
    }

    /// The bytes of each parameter of the manifest, or everything that is wrong with the file.
    pub fn params(
        &self,
        manifest: &Manifest,
        allow_unused: bool,
    ) -> Result<Vec<Cow<'_, [u8]>>, Error> {
        let mut problems = Vec::new();
        let mut params = Vec::with_capacity(manifest.params.len());
        let data = match manifest.params.is_empty() {
            true => &[],
            false => self.data()?,
        };
        for param in &manifest.params {
            let expected = describe(dtype_name(param.elem), &param.shape);
            let info = self
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.info(&param.name));
            let Some(info) = info else {
                problems.push(format!("`{}`: expected {expected}, found none", param.name));
                continue;
            };
            let shape: Vec<u64> = info.shape.iter().map(|dim| *dim as u64).collect();
            if convert::elem_of(info.dtype) != Some(param.elem) || shape != param.shape {
                let found = describe(&file_type(info.dtype), &shape);
                problems.push(format!(
                    "`{}`: expected {expected}, found {found}",
                    param.name
                ));
                continue;
            }
            let (begin, end) = info.data_offsets;
            let bytes = data.get(begin..end);
            // The metadata was checked: the length is that of the shape.
            let Some(bytes) = bytes else {
                problems.push(format!("`{}`: its bytes are not in the file", param.name));
                continue;
            };
            match convert::converted(bytes, info.dtype) {
                Ok(bytes) => params.push(bytes),
                Err(inexact) => {
                    let (elem, dtype) = (dtype_name(param.elem), file_type(info.dtype));
                    let place = place_of(inexact.position, &shape);
                    problems.push(format!(
                        "`{}`: element {place} is {}, which {elem} does not hold exactly; the file \
                         has {dtype}: store it as {elem}",
                        param.name, inexact.value
                    ));
                }
            }
        }
        if !allow_unused {
            let shapes = self.shapes();
            let unused = shapes
                .keys()
                .filter(|name| manifest.params.iter().all(|param| param.name != **name));
            for name in unused {
                problems.push(format!(
                    "`{name}`: the program has no such parameter (allow it with \
                     --allow-unused-weights)"
                ));
            }
        }
        if problems.is_empty() {
            Ok(params)
        } else {
            if !self.path.as_os_str().is_empty() {
                problems.insert(0, format!("in {}:", self.path.display()));
            }
            Err(Error::WeightsMismatch { problems })
        }
    }
}

fn bad(path: &Path, reason: impl ToString) -> Error {
    Error::BadWeights {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Reads what a file of so many bytes begins with; the bytes of the tensors behind it are the rest.
fn read_header(file: &mut impl Read, length: u64) -> Result<(Metadata, usize), String> {
    if length == 0 {
        return Err("the file is empty".to_owned());
    }
    let mut size = [0; 8];
    let cannot_read = |error: io::Error| format!("its header cannot be read: {error}");
    file.read_exact(&mut size).map_err(cannot_read)?;
    let size = u64::from_le_bytes(size);
    let rest = length
        .checked_sub(8)
        .and_then(|rest| rest.checked_sub(size));
    let Some(rest) = rest.filter(|_| size <= MAX_HEADER_BYTES) else {
        return Err(format!("a header of {size} bytes, in a file of {length}"));
    };
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(cannot_read)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| error.to_string())?;
    check_places(&metadata, rest)?;
    Ok((
        metadata,
        usize::try_from(rest).map_err(|error| error.to_string())?,
    ))
}

/// That tensors lie one behind another, as long as their shapes say, and fill the file.
fn check_places(metadata: &Metadata, length: u64) -> Result<(), String> {
    let tensors = metadata.tensors();
    let mut places: Vec<_> = tensors
        .iter()
        .map(|(name, info)| (info.data_offsets, name))
        .collect();
    places.sort_unstable();
    let mut next = 0;
    for ((begin, end), name) in places {
        let info = tensors[name];
        let elements = info
            .shape
            .iter()
            .try_fold(1_usize, |all, dim| all.checked_mul(*dim));
        let bits = elements.and_then(|elements| elements.checked_mul(info.dtype.bitsize()));
        let fits = bits.is_some_and(|bits| {
            Some(bits) == end.checked_sub(begin).and_then(|n| n.checked_mul(8))
        });
        if begin != next || !fits {
            return Err(format!(
                "`{name}` is not as long as its shape says, or not where it should be"
            ));
        }
        next = end;
    }
    match next as u64 == length {
        true => Ok(()),
        false => Err(format!(
            "its tensors have {next} bytes, and {length} are there"
        )),
    }
}

/// Reads the bytes of the tensors.
fn read_data(path: &Path, mut file: impl Read, length: usize) -> Result<AlignedBuffer, Error> {
    let mut data = AlignedBuffer::zeroed(length, "the weights file")?;
    let read = file.read_exact(&mut data.bytes_mut()[..length]);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => bad(path, "it became shorter while it was read"),
        _ => bad(path, error),
    })?;
    Ok(data)
}

/// An element type of safetensors as messages write it.
fn file_type(dtype: Dtype) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// The index of an element, `[3, 5]`.
fn place_of(position: usize, shape: &[u64]) -> String {
    let mut rest = position as u64;
    let mut index: Vec<String> = shape
        .iter()
        .rev()
        .map(|length| {
            let here = rest % (*length).max(1);
            rest /= (*length).max(1);
            here.to_string()
        })
        .collect();
    index.reverse();
    format!("[{}]", index.join(", "))
}

/// The element type as programs and messages write it.
pub(crate) fn dtype_name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

/// `f32[28, 140]`.
pub(crate) fn describe(elem: &str, shape: &[u64]) -> String {
    if shape.is_empty() {
        return elem.to_owned();
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{elem}[{}]", dims.join(", "))
}
