//! Kernels: how they are called, what a call takes and gives, what rows and work it is, and their constants.

use serde::{Deserialize, Serialize};

use super::Elem;
use crate::gpu::Precision;

/// A function that computes rows of a launch, and what its calls take and give.
///
/// Row pools and parameters are numbers of the manifest; the compiler says the same of a kernel before there is one,
/// with rows' types and parameters' names in their place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel<RowPool = usize, Param = usize> {
    /// The name in reports: the function of the source it comes from.
    pub name: String,
    /// Symbol of the [`crate::KernelFn`].
    pub symbol: String,
    /// Place in the source, `file:line:column`.
    pub location: String,
    /// What a call takes, in the order of the function's operands.
    pub operands: Vec<Operand<RowPool>>,
    /// The row pool of each result.
    pub results: Vec<RowPool>,
    /// What `constants` points to, in order.
    pub constants: Vec<Constant<Param>>,
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
    pub gpu: Option<crate::gpu::GpuKernel<Param>>,
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

/// A call can be computed in *work items*: ranges of the first of the dims that count its rows. What is
/// computed of a work item does not depend on the others.
///
/// The function counts work items then, see [`crate::KernelFn`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    /// The operand that is the dim's length.
    pub length: usize,
    /// A work item begins at a multiple of this, which keeps every bit where it is.
    pub tile: u64,
    /// What a work item costs besides, as if its range were so much longer: what all of a call's rows
    /// share is made for each work item.
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

impl<RowPool, Param> Kernel<RowPool, Param> {
    /// The same kernel, with something else for each row pool and parameter.
    pub fn with<S, P, E>(
        self,
        mut pool: impl FnMut(RowPool) -> S,
        param: impl Fn(Param) -> Result<P, E>,
    ) -> Result<Kernel<S, P>, E> {
        let operands = self.operands.into_iter();
        let operands = operands.map(|operand| operand.with(&mut pool)).collect();
        Ok(Kernel {
            name: self.name,
            symbol: self.symbol,
            location: self.location,
            operands,
            results: self.results.into_iter().map(pool).collect(),
            constants: constants_with(self.constants, &param)?,
            scratch_bytes: self.scratch_bytes,
            row_tile: self.row_tile,
            flops_per_row: self.flops_per_row,
            row_products: self.row_products,
            call: self.call,
            gpu: self.gpu.map(|gpu| gpu.with(&param)).transpose()?,
        })
    }

    /// How many operands are lists.
    pub fn lists(&self) -> usize {
        let is_list = |operand: &&Operand<RowPool>| matches!(operand, Operand::Rows { .. });
        self.operands.iter().filter(is_list).count()
    }
}

/// What a call takes: a slot, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operand<RowPool = usize> {
    /// A handle, resolved to a row of the row pool.
    Row {
        /// Of the row.
        pool: RowPool,
    },
    /// A list: an array of handles, each resolved to a row of the row pool.
    Rows {
        /// Of each row.
        pool: RowPool,
    },
    /// The low 32 bits of the slot, passed as they are.
    Scalar(Elem),
    /// The length of an instance dim, at most 2³¹ − 1; passed like a scalar.
    Length,
    /// The handle of the first of consecutive rows, as many as that extent of the kernel.
    Ragged {
        /// Of each row.
        pool: RowPool,
        /// Index into [`CallShape::extents`].
        extent: usize,
    },
    /// An array of as many handles as that extent, one for each row. The unit is the row.
    Stacked {
        /// Of each row.
        pool: RowPool,
        /// Index into [`CallShape::extents`].
        extent: usize,
    },
}

/// A parameter as a kernel wants it, made once at load.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constant<Param = usize> {
    /// Row-major as in the file, 64-byte aligned, followed by at least 64 zero bytes.
    Plain {
        /// See [`super::Manifest::weight`].
        param: Param,
    },
    /// An `f32[k, n]` parameter in column panels: `[ceil(n / width)][k][width]`, the last panel
    /// padded with zeros; 64-byte aligned, followed by at least 64 zero bytes. Of a parameter of
    /// higher rank, all dims but the last count as `k`.
    Panels {
        /// See [`super::Manifest::weight`].
        param: Param,
        /// Columns of a panel.
        width: u64,
        /// What each number is kept in. In `bf16` a panel's row is as many numbers of 2 bytes. Where the width is even
        /// they lie in pairs: a column, then the one that is half a panel behind it, so that a word of 4 bytes is
        /// widened to either by one operation.
        #[serde(default, skip_serializing_if = "WeightFormat::is_f32")]
        format: WeightFormat,
    },
    /// Another one from some byte on. It begins where an element does.
    Part {
        /// The other one, which is not a part itself.
        of: Box<Constant<Param>>,
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
        /// See [`super::Manifest::weight`].
        param: Param,
        /// Where the first element is, in elements from the parameter's first.
        offset: u64,
        /// How many elements lie between one `k` and the next, and between one column and the next.
        strides: [u64; 2],
        /// What a product sums over.
        k: u64,
        /// Columns of the product.
        columns: u64,
        /// Column after column, as warpgroups multiply them: of bf16 alone, and an even `k`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_columns: bool,
    },
}

/// What the numbers of a packed weight are kept in. Products widen them, and compute in `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightFormat {
    /// As they are.
    #[default]
    F32,
    /// Rounded to the nearest of 16 bits, halves to even: a sign, 8 bits of exponent and 7 of fraction.
    Bf16,
}

impl WeightFormat {
    /// Those that can be asked for, for messages.
    pub const NAMES: &'static str = "f32 and bf16";

    /// The one of that name; `None` where there is none.
    pub fn parse(name: &str) -> Option<WeightFormat> {
        [WeightFormat::F32, WeightFormat::Bf16]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// As `--keep-weights` takes it.
    pub fn name(self) -> &'static str {
        match self {
            WeightFormat::F32 => "f32",
            WeightFormat::Bf16 => "bf16",
        }
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            WeightFormat::F32 => 4,
            WeightFormat::Bf16 => 2,
        }
    }

    /// Whether nothing is rounded.
    pub fn is_f32(&self) -> bool {
        *self == WeightFormat::F32
    }
}

impl<RowPool: Copy> Operand<RowPool> {
    /// The row pool of its rows, if it has rows.
    pub fn pool(&self) -> Option<RowPool> {
        match *self {
            Operand::Row { pool }
            | Operand::Rows { pool }
            | Operand::Ragged { pool, .. }
            | Operand::Stacked { pool, .. } => Some(pool),
            Operand::Scalar(_) | Operand::Length => None,
        }
    }
}

impl<RowPool> Operand<RowPool> {
    fn with<S>(self, pool: &mut impl FnMut(RowPool) -> S) -> Operand<S> {
        match self {
            Operand::Row { pool: own } => Operand::Row { pool: pool(own) },
            Operand::Rows { pool: own } => Operand::Rows { pool: pool(own) },
            Operand::Scalar(elem) => Operand::Scalar(elem),
            Operand::Length => Operand::Length,
            Operand::Ragged { pool: own, extent } => Operand::Ragged {
                pool: pool(own),
                extent,
            },
            Operand::Stacked { pool: own, extent } => Operand::Stacked {
                pool: pool(own),
                extent,
            },
        }
    }
}

/// The same constants, with something else for each parameter.
pub(crate) fn constants_with<Param, P, E>(
    constants: Vec<Constant<Param>>,
    param: &impl Fn(Param) -> Result<P, E>,
) -> Result<Vec<Constant<P>>, E> {
    let constants = constants.into_iter();
    constants.map(|constant| constant.with(param)).collect()
}

impl<Param> Constant<Param> {
    fn with<P, E>(self, param: &impl Fn(Param) -> Result<P, E>) -> Result<Constant<P>, E> {
        Ok(match self {
            Constant::Plain { param: own } => Constant::Plain { param: param(own)? },
            Constant::Panels {
                param: own,
                width,
                format,
            } => Constant::Panels {
                param: param(own)?,
                width,
                format,
            },
            Constant::Part { of, from } => Constant::Part {
                of: Box::new(of.with(param)?),
                from,
            },
            Constant::Dense { elem, bits } => Constant::Dense { elem, bits },
            Constant::Rounded {
                precision,
                param: own,
                offset,
                strides,
                k,
                columns,
                by_columns,
            } => Constant::Rounded {
                precision,
                param: param(own)?,
                offset,
                strides,
                k,
                columns,
                by_columns,
            },
        })
    }
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
