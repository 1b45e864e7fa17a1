//! What is wrong with an instance, in the user's terms.

use cohort_abi::Failure;
use cohort_abi::manifest::{Constructor, Elem, LeadingDim, Type};

use super::builder::Builder;
use super::ragged::Seen;
use super::source::Source;
use super::walk::Frame;
use crate::failure::InstanceError;
use crate::program::weights::{describe, dtype_name};

/// Segments of a path that a message shows at each end; those between are only counted.
const PATH_ENDS: usize = 8;
/// Constructors that a message lists.
const LISTED_CONSTRUCTORS: usize = 8;

/// How messages call what is at hand where a list ends.
pub(super) const END_OF_LIST: &str = "the end of the list";

/// What is wrong with an instance.
#[derive(Debug)]
pub enum Problem {
    /// Something else was expected at the current path.
    Value {
        /// What the type asks for, in words.
        expected: String,
        /// What is there, in words.
        found: String,
    },
    /// About the instance as a whole.
    Line(String),
    /// An instance dim, an index into the manifest's, is not the same everywhere.
    Dims {
        /// Which dim.
        dim: usize,
        /// Two places where it has different lengths.
        seen: Box<[Seen; 2]>,
    },
    /// It needs more than it may.
    Memory,
}

impl Builder<'_> {
    pub(super) fn mismatch(&self, source: &mut impl Source, ty: &Type) -> Problem {
        Problem::Value {
            expected: self.expected(ty),
            found: source.found(),
        }
    }

    /// A type in the user's terms.
    pub(super) fn expected(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(elem) => expected_scalar(*elem).to_owned(),
            Type::Tensor { pool } => self.expected_part(*pool, 0),
            Type::Tuple(types) => format!("a list of {}", types.len()),
            Type::Array(_) => "a list".to_owned(),
            Type::Str => "a string".to_owned(),
            Type::Ragged { pool, dims } => self.expected_ragged(*pool, dims),
            Type::Stacked { pool } => {
                let pool = &self.manifest.row_pools[*pool];
                let row = describe(dtype_name(pool.elem), &pool.shape);
                format!("a list of {row}")
            }
            Type::Adt(adt) => {
                let adt = &self.manifest.adts[*adt];
                let names: Vec<&str> = adt
                    .constructors
                    .iter()
                    .take(LISTED_CONSTRUCTORS)
                    .map(|constructor| constructor.name.as_str())
                    .collect();
                let more = if adt.constructors.len() > LISTED_CONSTRUCTORS {
                    ", …"
                } else {
                    ""
                };
                format!("a {} ({}{more})", adt.name, names.join(", "))
            }
        }
    }

    /// A part of a ragged tensor that has these leading dims.
    pub(super) fn expected_ragged(&self, pool: usize, dims: &[LeadingDim]) -> String {
        let pool = &self.manifest.row_pools[pool];
        let leading = dims.iter().map(|dim| match dim {
            LeadingDim::Known(length) => length.to_string(),
            LeadingDim::Named(dim) => self.manifest.dims[*dim].clone(),
            LeadingDim::Any => "_".to_owned(),
        });
        let of_row = pool.shape.iter().map(u64::to_string);
        let shape: Vec<String> = leading.chain(of_row).collect();
        format!("a list ({}[{}])", dtype_name(pool.elem), shape.join(", "))
    }

    /// A part of a tensor, below its first `level` dims.
    pub(super) fn expected_part(&self, pool: usize, level: usize) -> String {
        let pool = &self.manifest.row_pools[pool];
        match pool.shape.get(level) {
            None => expected_scalar(pool.elem).to_owned(),
            Some(length) => format!(
                "a list of {length} ({})",
                describe(dtype_name(pool.elem), &pool.shape[level..])
            ),
        }
    }

    pub(super) fn describe(&self, problem: Problem) -> InstanceError {
        InstanceError::bad_input(match problem {
            Problem::Value { expected, found } => {
                let path = self.path();
                let at = if path.is_empty() {
                    String::new()
                } else {
                    format!("at {path}: ")
                };
                let argument = &self.manifest.arguments[self.argument].name;
                format!("argument {argument}: {at}expected {expected}, found {found}")
            }
            Problem::Line(message) => message,
            Problem::Dims { dim, seen } => {
                let [before, then] = *seen;
                return InstanceError {
                    kind: Failure::ShapeMismatch.kind(),
                    message: format!(
                        "dim {} is {} in {}, and {} in {}",
                        self.manifest.dims[dim],
                        before.length,
                        self.place(&before),
                        then.length,
                        self.place(&then)
                    ),
                };
            }
            Problem::Memory => return InstanceError::memory_limit("the input", self.max_memory),
        })
    }

    /// Where a dim was seen.
    fn place(&self, seen: &Seen) -> String {
        let argument = &self.manifest.arguments[seen.argument].name;
        let at = match seen.path.as_str() {
            "" => String::new(),
            path => format!(" at {path}"),
        };
        format!("argument {argument}{at}, axis {}", seen.axis)
    }

    /// Where the value at hand is in the argument: `.Node[1].Leaf[0]`.
    pub(super) fn path(&self) -> String {
        let (frames, leading) = (self.frames.len(), self.leading.len());
        let segments = frames + leading + self.counters.len();
        let mut path = String::new();
        for segment in 0..segments {
            if segment >= PATH_ENDS && segment + PATH_ENDS < segments {
                if segment == PATH_ENDS {
                    path.push_str(&format!("…({} more)…", segments - 2 * PATH_ENDS));
                }
                continue;
            }
            path.push_str(&match self.frames.get(segment) {
                Some(Frame::Tuple { index, .. }) => format!("[{index}]"),
                Some(Frame::Array { index, .. }) => format!("[{index}]"),
                Some(Frame::Fields {
                    constructor, index, ..
                }) => format!(".{}[{index}]", constructor.name),
                Some(Frame::ByName {
                    constructor, field, ..
                }) => match field.and_then(|field| constructor.names.get(field)) {
                    Some(field) => format!(".{}.{field}", constructor.name),
                    None => format!(".{}", constructor.name),
                },
                None => {
                    let position = segment - frames;
                    let index = (self.leading.get(position))
                        .unwrap_or_else(|| &self.counters[position - leading]);
                    format!("[{index}]")
                }
            });
        }
        path
    }
}

pub(super) fn expected_scalar(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "an f32",
        Elem::I32 => "an i32",
        Elem::Bool => "a bool",
    }
}

/// How a value of the constructor is written.
pub(super) fn form(constructor: &Constructor) -> String {
    let Constructor { name, fields, .. } = constructor;
    match fields.len() {
        0 => format!("\"{name}\", a constructor without fields"),
        count => format!("{{\"{name}\": [{}]}}", vec!["…"; count].join(", ")),
    }
}

/// What stands where a field of the constructor should.
pub(super) fn field_of(constructor: &Constructor) -> String {
    let names = constructor.names.join(", ");
    format!("a field of {} ({names})", constructor.name)
}

/// Another element behind the last of `length` parts.
pub(super) fn too_many(source: &mut impl Source, length: usize) -> Problem {
    Problem::Value {
        expected: format!("the end of the list after {length}"),
        found: source.found(),
    }
}
