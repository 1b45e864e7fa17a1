//! The manifest: what the runtime must know of a compiled program, as plain data.
//!
//! The compiler writes it as the module attribute `cfb.manifest` (JSON) and, later, into artifacts.

mod gradients;
mod kernel;

use serde::{Deserialize, Serialize};

use crate::gpu::{GpuFlush, Precision};

pub use gradients::*;
pub use kernel::*;

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`crate::VERSION`] of the compiler.
    pub version: u32,
    /// Symbol of the [`crate::EntryFn`].
    pub entry: String,
    /// What an instance gives, in the order of the entry's slots.
    pub arguments: Vec<Argument>,
    /// What an instance has as its output.
    pub result: Type,
    /// Names of the entry's instance dims, for [`LeadingDim::Named`].
    #[serde(default)]
    pub dims: Vec<String>,
    /// The algebraic data types, for [`Type::Adt`].
    pub adts: Vec<Adt>,
    /// Every tensor that the weights file must hold, used or not.
    pub params: Vec<Param>,
    /// One arena a row shape and element type.
    pub row_pools: Vec<RowPool>,
    /// Source `s` is bucket `s`: rows that exist before anything is computed.
    pub sources: Vec<Source>,
    /// What calls are recorded of, and what runs at load.
    pub kernels: Vec<Kernel>,
    /// `file:line:column` of places that compiled code can name in a failure.
    pub locations: Vec<String>,
    /// Every place where a tensor decides; none means that no instance is ever suspended.
    #[serde(default)]
    pub forces: Vec<Force>,
    /// Whether lists grow in place while instances may wait: what is written then is not as it was if an instance goes
    /// back to where it waited. Anything else in an instance's memory is written once, before it is read.
    #[serde(default)]
    pub grows_in_place: bool,
    /// Every place where a value is shown to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debugs: Vec<Debug>,
    /// Made once when the weights are loaded, in this order.
    #[serde(default)]
    pub computed: Vec<Computed>,
    /// How gradients are computed, where the program was compiled for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradients: Option<Gradients>,
    /// What the calls of an instance depend on, where no tensor decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
    /// How a flush is one launch on a GPU, where the program was compiled for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_flush: Option<GpuFlush>,
}

impl Manifest {
    /// Whether instances can wait for what they have not computed yet.
    pub fn waits(&self) -> bool {
        !self.forces.is_empty() || !self.debugs.is_empty()
    }

    /// The lowest precision that a kernel's products have on a GPU. Code for the host has `f32`.
    pub fn precision(&self) -> Precision {
        let kernels = self.kernels.iter().filter_map(|kernel| kernel.gpu.as_ref());
        kernels.map(|gpu| gpu.precision).max().unwrap_or_default()
    }

    /// A parameter or, from `params.len()` on, what is computed from them at load. Wherever the
    /// manifest has the number of a `param`, it may be either.
    pub fn weight(&self, number: usize) -> Option<&Param> {
        match number.checked_sub(self.params.len()) {
            None => self.params.get(number),
            Some(computed) => self.computed.get(computed).map(|computed| &computed.weight),
        }
    }

    /// Whether a kernel runs at load and is never recorded.
    pub fn is_load_time(&self, kernel: usize) -> bool {
        self.computed
            .iter()
            .any(|computed| computed.kernel == kernel)
    }
}

/// Which calls an instance makes, and what they read from each other, follows from its structure: from
/// all that is given of it but the tensors' elements and the numbers listed here. Each of these, an `i32` or
/// an array of them, only chooses rows of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Structure {
    /// Arguments, by number.
    pub arguments: Vec<usize>,
    /// Fields, each by the numbers of its data type, of the constructor and of the field.
    pub fields: Vec<[usize; 3]>,
}

/// A tensor made of parameters and constants alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// What it is called, and its type.
    pub weight: Param,
    /// It has no operands, and the weight is its one result for one row. Its constants are made of
    /// parameters and of what was computed before.
    pub kernel: usize,
}

/// A place where the control program shows a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Debug {
    /// What the program says of it.
    pub text: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
}

/// A place where the control program waits for a tensor's one element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Force {
    /// Place in the source, `file:line:column`.
    pub location: String,
    /// The row pool of the row, whose rows have one element.
    pub pool: usize,
}

/// A parameter of the entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// Its key in an instance.
    pub name: String,
    /// What its value must be.
    #[serde(rename = "type")]
    pub ty: Type,
}

/// The type of an element, or of a host scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Elem {
    /// IEEE 754, 32 bits.
    F32,
    /// Two's complement, 32 bits.
    I32,
    /// 0 or 1.
    Bool,
}

impl Elem {
    /// Bytes of one element in an arena; a `bool` takes one.
    pub fn bytes(self) -> usize {
        match self {
            Elem::F32 | Elem::I32 => 4,
            Elem::Bool => 1,
        }
    }
}

/// The type of an argument, a field or the result; see the crate's page for its slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// A number of the host.
    Scalar(Elem),
    /// A row of a row pool.
    Tensor {
        /// Index into [`Manifest::row_pools`].
        pool: usize,
    },
    /// Its parts, in their order.
    Tuple(Vec<Type>),
    /// Any number of elements of one type.
    Array(Box<Type>),
    /// Index into [`Manifest::adts`].
    Adt(usize),
    /// Text, which no kernel reads.
    Str,
    /// A tensor with a leading instance dim, held as an array of handles of its rows; in JSON it
    /// is an array of them, exactly like an array of tensors.
    Stacked {
        /// Of each row.
        pool: usize,
    },
    /// A tensor with instance dims: these leading ones, the last of which is an instance dim, then
    /// those of the row pool.
    Ragged {
        /// Of each row.
        pool: usize,
        /// The dims that count the rows, the outermost first.
        dims: Vec<LeadingDim>,
    },
}

/// One of the dims of a ragged tensor that count its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeadingDim {
    /// The same for every instance; has no slot.
    Known(u64),
    /// Index into [`Manifest::dims`]: in one instance, dims of one name are equal.
    Named(usize),
    /// Any length.
    Any,
}

/// An algebraic data type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adt {
    /// As the program calls it.
    pub name: String,
    /// At least one; a value is of one of them.
    pub constructors: Vec<Constructor>,
}

/// The tag is the constructor's index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constructor {
    /// As the program and JSON call it.
    pub name: String,
    /// The types of its fields, in their order.
    pub fields: Vec<Type>,
    /// The names of the fields: one a field, or none at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A tensor of the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// As the program calls it.
    pub name: String,
    /// The type of its elements.
    pub elem: Elem,
    /// Its dims, the outermost first.
    pub shape: Vec<u64>,
    /// Where a weights file has it, if not under its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
}

/// The names under which a parameter is stored, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Each `{}` stands for the numbers of one of the parameter's first axes: there is a tensor for each.
    pub name: String,
    /// The last two axes of each tensor are swapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transposed: bool,
}

impl Stored {
    /// How many of the parameter's first axes are numbers in names.
    pub fn axes(&self) -> usize {
        self.name.matches("{}").count()
    }

    /// The name of each tensor of a parameter of this shape, in its order.
    pub fn names(&self, shape: &[u64]) -> impl Iterator<Item = String> {
        let lengths = &shape[..self.axes().min(shape.len())];
        let count = lengths.iter().copied().fold(1, u64::saturating_mul);
        (0..count).map(move |number| self.name_of(number, lengths))
    }

    /// The name of the tensor of that number, where the last of the axes counts fastest.
    fn name_of(&self, mut number: u64, lengths: &[u64]) -> String {
        let index = lengths.iter().rev().map(|length| {
            let here = number % length;
            number /= length;
            here
        });
        let index: Vec<u64> = index.collect();
        let mut pieces = self.name.split("{}");
        let mut name = pieces.next().unwrap_or_default().to_owned();
        for (here, piece) in index.iter().rev().zip(pieces) {
            name += &format!("{here}{piece}");
        }
        name
    }

    /// The shape of each tensor of a parameter of this shape.
    pub fn shape_of_each(&self, shape: &[u64]) -> Vec<u64> {
        let mut each = shape.get(self.axes()..).unwrap_or_default().to_vec();
        if let (true, [.., rows, columns]) = (self.transposed, each.as_mut_slice()) {
            std::mem::swap(rows, columns);
        }
        each
    }
}

/// Rows of one type: tensors of the same shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowPool {
    /// The type of a row's elements.
    pub elem: Elem,
    /// The dims of a row, the outermost first; none for one number.
    pub shape: Vec<u64>,
}

impl RowPool {
    /// Elements of one row.
    pub fn row_elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes of one row in an arena.
    pub fn row_bytes(&self) -> u64 {
        self.row_elements() * self.elem.bytes() as u64
    }
}

/// Rows that exist before anything is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The parameter's leading dim counts rows of the row pool: `emb[w]`.
    Table {
        /// See [`Manifest::weight`].
        param: usize,
        /// Of a row.
        pool: usize,
    },
    /// The whole parameter is one row.
    Whole {
        /// See [`Manifest::weight`].
        param: usize,
        /// Of the row.
        pool: usize,
    },
    /// One row with every element of the same bits.
    Splat {
        /// Of each element; those of a `bool` are 0 or 1.
        bits: u32,
        /// Of the row.
        pool: usize,
    },
    /// One row of the given elements' bits.
    Dense {
        /// Of each element, row-major.
        bits: Vec<u32>,
        /// Of the row.
        pool: usize,
    },
}

impl Source {
    /// The row pool that its rows are of.
    pub fn pool(&self) -> usize {
        match self {
            Source::Table { pool, .. }
            | Source::Whole { pool, .. }
            | Source::Splat { pool, .. }
            | Source::Dense { pool, .. } => *pool,
        }
    }
}
