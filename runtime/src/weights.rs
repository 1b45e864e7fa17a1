//! The weights file: safetensors, memory-mapped, checked against what the program asks for.

mod convert;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_abi::manifest::{Elem, Manifest};
use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, Metadata};

use crate::error::Error;

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

/// The bytes of a weights file.
enum Bytes {
    Mapped(Mmap),
    Shared(Arc<[u8]>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

/// An open weights file.
pub struct Weights {
    path: PathBuf,
    bytes: Option<Bytes>,
    metadata: Option<Metadata>,
    /// Where the tensors' bytes begin in the map.
    data_start: usize,
}

impl Weights {
    /// For a program without parameters.
    pub fn none() -> Weights {
        Weights {
            path: PathBuf::new(),
            bytes: None,
            metadata: None,
            data_start: 0,
        }
    }

    pub fn open(path: &Path) -> Result<Weights, Error> {
        let cannot_open = |source| Error::OpenWeights {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(cannot_open)?;
        let is_empty = file.metadata().map_err(cannot_open)?.len() == 0;
        let bad = |reason: String| Error::BadWeights {
            path: path.to_owned(),
            reason,
        };
        if is_empty {
            return Err(bad("the file is empty".to_owned()));
        }
        // SAFETY: the map is only read, as bytes. Another process that truncates the file while it
        // is read would end this one with SIGBUS; weights are not written while they are used.
        let map = unsafe { Mmap::map(&file) }.map_err(cannot_open)?;
        Weights::read(path, Bytes::Mapped(map))
    }

    /// A weights file that is in memory.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<Weights, Error> {
        Weights::read(Path::new(""), Bytes::Shared(bytes))
    }

    fn read(path: &Path, bytes: Bytes) -> Result<Weights, Error> {
        let bad = |reason: String| Error::BadWeights {
            path: path.to_owned(),
            reason,
        };
        let (header_bytes, metadata) =
            SafeTensors::read_metadata(&bytes).map_err(|error| bad(error.to_string()))?;
        Ok(Weights {
            path: path.to_owned(),
            bytes: Some(bytes),
            metadata: Some(metadata),
            data_start: 8 + header_bytes,
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
            let bytes = self.bytes.as_deref().and_then(|map| {
                map.get(self.data_start.checked_add(begin)?..self.data_start.checked_add(end)?)
            });
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
