//! Weights: tensors of a safetensors file, or of several with an index, checked against what the program
//! asks for.
//!
//! They are read into memory and not mapped: a file that another process makes shorter meanwhile is an
//! error, and no signal.

mod convert;
mod file;
mod index;
mod layout;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_abi::manifest::{Elem, Manifest, Param, Stored};
use safetensors::tensor::{Dtype, TensorInfo};

use self::file::WeightsFile;
pub use self::index::shards;
use crate::error::Error;

/// What a weights file says of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightShape {
    /// The type of its elements in the file, such as `bf16`.
    pub dtype: String,
    /// The type that they have in a program, if there is one.
    pub elem: Option<Elem>,
    /// The length of each axis.
    pub shape: Vec<u64>,
}

/// The tensors of a weights file by name. The program's dims are bound from these before it is
/// compiled.
pub struct WeightShapes;

impl WeightShapes {
    /// Opens the weights at a path, as [`Weights::open`] does, and lists their tensors.
    pub fn read(path: &Path) -> Result<BTreeMap<String, WeightShape>, Error> {
        Ok(Weights::open(path)?.shapes())
    }
}

/// Open weights files.
#[derive(Debug)]
pub struct Weights {
    path: PathBuf,
    files: Vec<WeightsFile>,
    /// By name, with the file that each is in.
    tensors: BTreeMap<String, (usize, TensorInfo)>,
}

impl Weights {
    /// For a program without parameters.
    pub fn none() -> Weights {
        Weights {
            path: PathBuf::new(),
            files: Vec::new(),
            tensors: BTreeMap::new(),
        }
    }

    /// Opens a safetensors file or, by an index of several or by the folder of one, those of a checkpoint.
    pub fn open(path: &Path) -> Result<Weights, Error> {
        let files = shards(path)?;
        let files = files.iter().map(|path| WeightsFile::open(path));
        Weights::of_files(path, files.collect::<Result<_, _>>()?)
    }

    /// A weights file that is in memory.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<Weights, Error> {
        Weights::of(Path::new(""), vec![(PathBuf::new(), bytes)])
    }

    /// What was read of the files that [`shards`] names, whose paths are for messages.
    pub fn of(path: &Path, files: Vec<(PathBuf, Arc<[u8]>)>) -> Result<Weights, Error> {
        let files = files
            .into_iter()
            .map(|(path, bytes)| WeightsFile::of(&path, bytes));
        Weights::of_files(path, files.collect::<Result<_, _>>()?)
    }

    fn of_files(path: &Path, files: Vec<WeightsFile>) -> Result<Weights, Error> {
        let mut tensors = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            for (name, info) in file.metadata().tensors() {
                if let Some((other, _)) = tensors.insert(name.clone(), (number, info.clone())) {
                    let other: &WeightsFile = &files[other];
                    let reason = format!("`{name}` is also in {}", other.path().display());
                    return Err(file::bad(file.path(), reason));
                }
            }
        }
        Ok(Weights {
            path: path.to_owned(),
            files,
            tensors,
        })
    }

    /// Of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether these are the program's own names for its parameters, as a trained file has them, and not
    /// those by which it says that they are stored.
    fn are_own(&self, manifest: &Manifest) -> bool {
        let is_there = |name: &String| self.tensors.contains_key(name);
        let stored = |param: &Param| {
            let first = param.stored.as_ref()?.names(&param.shape).next()?;
            is_there(&first).then_some(())
        };
        manifest.params.iter().all(|param| is_there(&param.name))
            || manifest.params.iter().all(|param| stored(param).is_none())
    }

    /// The tensors that a parameter is read from.
    fn source<'m>(&self, param: &'m Param, own: bool) -> Source<'m> {
        let stored = param.stored.as_ref().filter(|_| !own);
        let Some(stored) = stored else {
            let names = vec![param.name.clone()];
            return Source { stored, names };
        };
        // Of more names than there are tensors one is missing, whatever the shape.
        let most = self.tensors.len() + 1;
        Source {
            stored: Some(stored),
            names: stored.names(&param.shape).take(most).collect(),
        }
    }

    /// What the files say of each tensor, by name.
    pub fn shapes(&self) -> BTreeMap<String, WeightShape> {
        let each = self.tensors.iter().map(|(name, (_, info))| {
            let found = WeightShape {
                dtype: file_type(info.dtype),
                elem: convert::elem_of(info.dtype),
                shape: info.shape.iter().map(|dim| *dim as u64).collect(),
            };
            (name.clone(), found)
        });
        each.collect()
    }

    /// A sentence for each type of the file's that the program's parameters do not have.
    pub fn conversions(&self, manifest: &Manifest) -> Vec<String> {
        const MOST_NAMES: usize = 3;
        let mut converted: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        let own = self.are_own(manifest);
        for param in &manifest.params {
            // One name will do where a type is that of many layers.
            let mut types: BTreeSet<String> = BTreeSet::new();
            for name in self.source(param, own).names {
                let info = self.tensors.get(&name).map(|(_, info)| info.dtype);
                types.extend(info.filter(|ty| convert::is_converted(*ty)).map(file_type));
            }
            for ty in types {
                let types = (ty, dtype_name(param.elem));
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
        let mut used = BTreeSet::new();
        let own = self.are_own(manifest);
        for param in &manifest.params {
            let source = self.source(param, own);
            match self.param(param, &source) {
                Ok(bytes) => params.push(bytes),
                Err(Wrong::Tensor(problem)) => problems.push(problem),
                Err(Wrong::File(error)) => return Err(error),
            }
            used.extend(source.names);
        }
        if !allow_unused {
            for name in self.tensors.keys().filter(|name| !used.contains(*name)) {
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

    /// The bytes of one parameter, of these tensors.
    fn param(&self, param: &Param, source: &Source<'_>) -> Result<Cow<'_, [u8]>, Wrong> {
        let Source { stored, names } = source;
        let shape = stored.map_or_else(
            || param.shape.clone(),
            |stored| stored.shape_of_each(&param.shape),
        );
        let transposed = stored.is_some_and(|stored| stored.transposed);
        // What is one tensor, and lies there as it is, is not copied.
        let is_whole = names.len() == 1 && !transposed;
        let mut whole = Vec::new();
        for name in names {
            let shown = match stored {
                Some(_) => format!("`{name}`, for `{}`", param.name),
                None => format!("`{name}`"),
            };
            let bytes = self.tensor(name, param.elem, &shape, &shown)?;
            match is_whole {
                true => return Ok(bytes),
                false if transposed => {
                    layout::transpose(&bytes, &shape, param.elem.bytes(), &mut whole);
                }
                false => whole.extend_from_slice(&bytes),
            }
        }
        Ok(Cow::Owned(whole))
    }

    /// The bytes of one tensor, in the program's type.
    fn tensor(
        &self,
        name: &str,
        elem: Elem,
        expected: &[u64],
        shown: &str,
    ) -> Result<Cow<'_, [u8]>, Wrong> {
        let wanted = describe(dtype_name(elem), expected);
        let Some((file, info)) = self.tensors.get(name) else {
            let problem = format!("{shown}: expected {wanted}, found none");
            return Err(Wrong::Tensor(problem));
        };
        let shape: Vec<u64> = info.shape.iter().map(|dim| *dim as u64).collect();
        if convert::elem_of(info.dtype) != Some(elem) || shape != expected {
            let found = describe(&file_type(info.dtype), &shape);
            let problem = format!("{shown}: expected {wanted}, found {found}");
            return Err(Wrong::Tensor(problem));
        }
        let bytes = self.files[*file].bytes_of(info).map_err(Wrong::File)?;
        convert::converted(bytes, info.dtype).map_err(|inexact| {
            let (elem, dtype) = (dtype_name(elem), file_type(info.dtype));
            let place = place_of(inexact.position, &shape);
            Wrong::Tensor(format!(
                "{shown}: element {place} is {}, which {elem} does not hold exactly; the file has \
                 {dtype}: store it as {elem}",
                inexact.value
            ))
        })
    }
}

/// The tensors of a parameter.
struct Source<'m> {
    /// As it is stored by other names than its own.
    stored: Option<&'m Stored>,
    names: Vec<String>,
}

/// Why a parameter cannot be read.
enum Wrong {
    Tensor(String),
    File(Error),
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
