//! The manifest: what the runtime must know of a compiled program, as plain data.
//!
//! The compiler writes it as the module attribute `cfb.manifest` (JSON) and, later, into artifacts.

use serde::{Deserialize, Serialize};

use crate::gpu::{GpuFlush, Precision};

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
    pub spaces: Vec<Space>,
    /// Source `s` is bucket `s`: rows that exist before anything is computed.
    pub sources: Vec<Source>,
    /// What calls are recorded of, and what runs at load.
    pub kernels: Vec<Kernel>,
    /// `file:line:column` of places that compiled code can name in a failure.
    pub locations: Vec<String>,
    /// Every place where a tensor decides; none means that no instance is ever suspended.
    #[serde(default)]
    pub forces: Vec<Force>,
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
    /// The space of the row, whose rows have one element.
    pub space: usize,
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
    /// A row of a space.
    Tensor {
        /// Index into [`Manifest::spaces`].
        space: usize,
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
        space: usize,
    },
    /// A tensor with instance dims: these leading ones, the last of which is an instance dim, then
    /// those of the space.
    Ragged {
        /// Of each row.
        space: usize,
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
pub struct Space {
    /// The type of a row's elements.
    pub elem: Elem,
    /// The dims of a row, the outermost first; none for one number.
    pub shape: Vec<u64>,
}

impl Space {
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
    /// The parameter's leading dim counts rows of the space: `emb[w]`.
    Table {
        /// See [`Manifest::weight`].
        param: usize,
        /// Of a row.
        space: usize,
    },
    /// The whole parameter is one row.
    Whole {
        /// See [`Manifest::weight`].
        param: usize,
        /// Of the row.
        space: usize,
    },
    /// One row with every element of the same bits.
    Splat {
        /// Of each element; those of a `bool` are 0 or 1.
        bits: u32,
        /// Of the row.
        space: usize,
    },
    /// One row of the given elements' bits.
    Dense {
        /// Of each element, row-major.
        bits: Vec<u32>,
        /// Of the row.
        space: usize,
    },
}

impl Source {
    /// The space that its rows are of.
    pub fn space(&self) -> usize {
        match self {
            Source::Table { space, .. }
            | Source::Whole { space, .. }
            | Source::Splat { space, .. }
            | Source::Dense { space, .. } => *space,
        }
    }
}

/// A function that computes rows of a launch, and what its calls take and give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name in reports: the function of the source it comes from.
    pub name: String,
    /// Symbol of the [`crate::KernelFn`].
    pub symbol: String,
    /// Place in the source, `file:line:column`.
    pub location: String,
    /// What a call takes, in the order of the function's operands.
    pub operands: Vec<Operand>,
    /// The space of each result.
    pub results: Vec<usize>,
    /// What `constants` points to, in order.
    pub constants: Vec<Constant>,
    /// Bytes that a thread needs for itself while it computes.
    pub scratch_bytes: u64,
    /// A range of rows should be a multiple of this, but for the last.
    pub row_tile: u64,
    /// Floating-point operations of products a row, for reports.
    pub flops_per_row: u64,
    /// Of these, the products whose matrix is an operand, one a row; for reports.
    #[serde(default)]
    pub row_products: Vec<RowProduct>,
    /// What instance dims make of a call.
    #[serde(default)]
    pub call: CallShape,
    /// How it runs on a GPU, where the program was compiled for one and the kernel can.
    #[serde(default)]
    pub gpu: Option<crate::gpu::GpuKernel>,
}

/// How a call of a kernel becomes rows; by default it is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallShape {
    /// The numbers of rows that operands and results have.
    #[serde(default)]
    pub extents: Vec<Extent>,
    /// The rows that a call has in its bucket, an index into `extents`; without, it has one. All
    /// results have as many.
    #[serde(default)]
    pub rows: Option<usize>,
    /// What the function counts.
    #[serde(default)]
    pub unit: Unit,
    /// Where the unit is the row: whether the rows of all calls may be one range. If not, a range never
    /// has rows of two calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fused: bool,
    /// Floating-point operations of products a call, the sum of these, for reports; besides those a
    /// row.
    #[serde(default)]
    pub flops: Vec<Extent>,
    /// How one call may be divided between threads, where the unit is the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
    /// How the storage of the results is padded; without, a call's rows lie behind those of the one
    /// before it. On a device storage is never padded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padding: Option<Padding>,
}

/// Rows of storage that no call has computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Padding {
    /// Each call's rows are rounded up to a multiple of this.
    pub rows: u32,
    /// The rows of all calls of a launch together are.
    pub bulk: u32,
}

/// A call can be computed in *pieces*: ranges of the first of the dims that count its rows. What is
/// computed of a piece does not depend on the others.
///
/// The function counts pieces then, see [`crate::KernelFn`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    /// The operand that is the dim's length.
    pub length: usize,
    /// A piece begins at a multiple of this, which keeps every bit where it is.
    pub tile: u64,
    /// What a piece costs besides, as if its range were so much longer: what all of a call's rows
    /// share is made for each piece.
    pub shared: u64,
    /// Those of the call's `flops` that are triangles: what they cost at an index grows with it, from
    /// nothing to twice the mean.
    pub rising: Vec<usize>,
}

/// A number of rows, or of operations, that depends on the instance: `times` the product of the
/// lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Operands of the kernel, each an [`Operand::Length`]; one may occur twice.
    pub lengths: Vec<usize>,
    /// The number that the lengths are multiplied by.
    pub times: u64,
}

impl Extent {
    /// For lengths given by operand; the largest number where it is larger.
    #[inline]
    pub fn count(&self, length: impl Fn(usize) -> u64) -> u64 {
        // A product with 0 is 0, however large the others are.
        let mut product = self.times;
        for operand in &self.lengths {
            match length(*operand) {
                0 => return 0,
                length => product = product.saturating_mul(length),
            }
        }
        product
    }
}

/// What a kernel's function counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Rows of the bucket: what is computed of a row needs that row of its operands only. Operands
    /// that a call has once are repeated for each of its rows.
    #[default]
    Rows,
    /// Calls: a call's rows are computed together.
    Calls,
}

/// A product with a matrix a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowProduct {
    /// The matrix.
    pub operand: usize,
    /// Floating-point operations a row.
    pub flops: u64,
}

impl Kernel {
    /// How many operands are lists.
    pub fn lists(&self) -> usize {
        let is_list = |operand: &&Operand| matches!(operand, Operand::Rows { .. });
        self.operands.iter().filter(is_list).count()
    }
}

/// What a call takes: a slot, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operand {
    /// A handle, resolved to a row of the space.
    Row {
        /// Of the row.
        space: usize,
    },
    /// A list: an array of handles, each resolved to a row of the space.
    Rows {
        /// Of each row.
        space: usize,
    },
    /// The low 32 bits of the slot, passed as they are.
    Scalar(Elem),
    /// The length of an instance dim, at most 2³¹ − 1; passed like a scalar.
    Length,
    /// The handle of the first of consecutive rows, as many as that extent of the kernel.
    Ragged {
        /// Of each row.
        space: usize,
        /// Index into [`CallShape::extents`].
        extent: usize,
    },
    /// An array of as many handles as that extent, one for each row. The unit is the row.
    Stacked {
        /// Of each row.
        space: usize,
        /// Index into [`CallShape::extents`].
        extent: usize,
    },
}

/// A parameter as a kernel wants it, made once at load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constant {
    /// Row-major as in the file, 64-byte aligned, followed by at least 64 zero bytes.
    Plain {
        /// See [`Manifest::weight`].
        param: usize,
    },
    /// An `f32[k, n]` parameter in column panels: `[ceil(n / width)][k][width]`, the last panel
    /// padded with zeros; 64-byte aligned. Of a parameter of higher rank, all dims but the last
    /// count as `k`.
    Panels {
        /// See [`Manifest::weight`].
        param: usize,
        /// Columns of a panel.
        width: u64,
    },
    /// Another one from some byte on. It begins where an element does.
    Part {
        /// The other one, which is no part itself.
        of: Box<Constant>,
        /// The byte.
        from: u64,
    },
    /// Elements' bits known to the compiler, 64-byte aligned, followed by at least 64 zero bytes.
    Dense {
        /// The type of each element.
        elem: Elem,
        /// Of each element; those of a `bool` are 0 or 1.
        bits: Vec<u32>,
    },
    /// `[k, columns]` elements of an `f32` parameter, rounded as tensor cores want them, which is not
    /// `f32`. Row-major words of 4 bytes, 64-byte aligned, followed by at least 64 zero bytes: in `tf32`
    /// a word is an element, in `bf16` those of two neighbouring `k` of a column, the first in the lower
    /// half, and a zero behind the last of an odd number.
    Rounded {
        /// `tf32` or `bf16`.
        precision: Precision,
        /// See [`Manifest::weight`].
        param: usize,
        /// Where the first element is, in elements from the parameter's first.
        offset: u64,
        /// How many elements lie between one `k` and the next, and between one column and the next.
        strides: [u64; 2],
        /// What a product sums over.
        k: u64,
        /// Columns of the product.
        columns: u64,
    },
}

impl Constant {
    /// The one that it is a part of, or itself, and the first byte.
    pub fn whole(&self) -> (&Constant, u64) {
        match self {
            Constant::Part { of, from } => (of, *from),
            _ => (self, 0),
        }
    }

    /// The number of the parameter that it is made of.
    pub fn param(&self) -> Option<usize> {
        match self {
            Constant::Plain { param }
            | Constant::Panels { param, .. }
            | Constant::Rounded { param, .. } => Some(*param),
            Constant::Part { of, .. } => of.param(),
            Constant::Dense { .. } => None,
        }
    }
}

/// The functions of the control program that gradients are computed by. They are called like the entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gradients {
    /// One for each kernel that is recorded.
    pub functions: Vec<GradientFunction>,
    /// What cotangents are added up and begun by.
    pub helpers: Vec<GradientHelper>,
    /// Whether only those of parameters are computed, and none of inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parameters_only: bool,
}

/// The backward of a kernel's calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientFunction {
    /// Index into [`Manifest::kernels`].
    pub kernel: usize,
    /// Symbol of an [`crate::EntryFn`], which records what one call's backward takes.
    pub symbol: String,
    /// What it is called with.
    pub arguments: Vec<GradientArgument>,
    /// What it gives.
    pub results: Vec<GradientResult>,
    /// How the gradients of parameters follow from these.
    pub sites: Vec<Site>,
    /// What of the kernel has no derivative, and where; then there is no function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// An argument of a gradient function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientArgument {
    /// Where it comes from.
    pub of: OfCall,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Of a tensor with instance dims, the operand of the call that is the length of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<usize>,
}

/// What of a call an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OfCall {
    /// What the call took, by its number.
    Operand(usize),
    /// What the call gave, by its number.
    Result(usize),
    /// The cotangent of a result.
    Cotangent(usize),
}

/// A result of a gradient function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientResult {
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The operand whose cotangent it is, of a list that of each tensor in it; none for what only sites
    /// need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operand: Option<usize>,
}

/// A use of a parameter: the gradient of these elements is, over all calls of the kernel, the sum of
/// `leftᵀ right` over the rows of both, or of the rows of `right` alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// A parameter, as everywhere.
    pub param: usize,
    /// Where the first element is, in elements from the parameter's first.
    pub offset: u64,
    /// The number of elements along each dim.
    pub shape: Vec<u64>,
    /// How many elements lie between neighbours along each dim.
    pub strides: Vec<u64>,
    /// The left factor, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<SiteValue>,
    /// The right factor.
    pub right: SiteValue,
}

impl Site {
    /// The numbers of a row of the left factor, if there is one, and of the right one.
    pub fn sides(&self) -> (Option<u64>, u64) {
        match (self.left, &self.shape[..]) {
            (Some(_), [height, width]) => (Some(*height), *width),
            _ => (None, self.shape.iter().product()),
        }
    }
}

/// A value that a gradient function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SiteValue {
    /// An argument, by its number.
    Argument(usize),
    /// A result, by its number.
    Result(usize),
}

/// A function that backward needs besides, for each space that has cotangents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientHelper {
    /// What it computes.
    pub kind: HelperKind,
    /// The space whose rows it takes and gives.
    pub space: usize,
    /// Symbol of an [`crate::EntryFn`].
    pub symbol: String,
}

/// What a helper of backward computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperKind {
    /// Of two rows their sum.
    Add,
    /// Of two runs of rows of one length their sum.
    AddRuns,
    /// Of an array of rows a run of them.
    Stack,
    /// A row of zeros, of nothing.
    Zero,
    /// The number 1, of nothing.
    One,
}
