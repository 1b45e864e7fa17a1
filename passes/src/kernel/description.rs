//! What `lower-kernels` tells `lower-control` of a kernel.
//!
//! It is the manifest's [`Kernel`](cohort_abi::manifest::Kernel) before spaces and parameters have
//! numbers: a row is described by its type, a parameter by the name of its `ml_program.global`.
//! `lower-kernels` leaves it on each kernel's `func.func` as the string attribute [`ATTRIBUTE`],
//! in JSON; `lower-control` reads it with [`KernelDescription::parse`], gives every [`RowType`] a
//! space and every name its parameter, and removes the attribute.

use cohort_abi::gpu::{GpuLaunch, Precision};
use cohort_abi::manifest::{CallShape, Elem, RowProduct};
pub use cohort_dialects::marks::KERNEL as ATTRIBUTE;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelDescription {
    /// The name in reports: the `source` attribute of the `cfb.kernel`, or its symbol.
    pub name: String,
    /// Symbol of the function.
    pub symbol: String,
    /// `file:line:column`, or empty when it is not known.
    pub location: String,
    /// One for each operand of the kernel's `cfb.record`s, in order.
    pub operands: Vec<OperandDescription>,
    /// One for each result of the kernel, in order.
    pub results: Vec<RowType>,
    /// What the function's `constants` argument points to, in order. A parameter may occur more
    /// than once, in different forms.
    pub constants: Vec<ConstantDescription>,
    pub scratch_bytes: u64,
    pub row_tile: u64,
    pub flops_per_row: u64,
    #[serde(default)]
    pub row_products: Vec<RowProduct>,
    #[serde(default)]
    pub call: CallShape,
}

/// The type of one row: the space that it lives in is the one of this element type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowType {
    pub elem: Elem,
    /// Without the batch dim; empty for a tensor of rank 0.
    pub shape: Vec<u64>,
}

/// See [`cohort_abi::manifest::Operand`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperandDescription {
    Row(RowType),
    Rows(RowType),
    Scalar(Elem),
    Length,
    Ragged { row: RowType, extent: usize },
    Stacked { row: RowType, extent: usize },
}

/// See [`cohort_abi::manifest::Constant`]; `param` is the symbol of the parameter's global.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstantDescription {
    Plain {
        param: String,
    },
    /// A parameter of rank 2 or more; all its dims but the last count as rows of the panels.
    Panels {
        param: String,
        width: u64,
    },
    Dense {
        elem: Elem,
        bits: Vec<u32>,
    },
    Part {
        of: Box<ConstantDescription>,
        from: u64,
    },
    Rounded {
        precision: Precision,
        param: String,
        offset: u64,
        strides: [u64; 2],
        k: u64,
        columns: u64,
    },
}

impl KernelDescription {
    pub fn parse(json: &str) -> Result<KernelDescription, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self)
            .unwrap_or_else(|error| unreachable!("a description is plain data: {error}"))
    }
}

/// What `lower-kernels-to-gpu` tells of a kernel's functions: the manifest's
/// [`GpuKernel`](cohort_abi::gpu::GpuKernel) before parameters have numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDescription {
    pub constants: Vec<ConstantDescription>,
    pub scratch_bytes: u64,
    pub scratch_bytes_per_row: u64,
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
    pub launches: Vec<GpuLaunch>,
}

impl GpuDescription {
    pub fn parse(json: &str) -> Result<GpuDescription, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self)
            .unwrap_or_else(|error| unreachable!("a description is plain data: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_from_json() {
        let description = KernelDescription {
            name: "cell".into(),
            symbol: "cell_1".into(),
            location: String::new(),
            operands: vec![
                OperandDescription::Row(RowType {
                    elem: Elem::F32,
                    shape: vec![28],
                }),
                OperandDescription::Scalar(Elem::I32),
            ],
            results: vec![RowType {
                elem: Elem::Bool,
                shape: vec![],
            }],
            constants: vec![
                ConstantDescription::Panels {
                    param: "ul".into(),
                    width: 32,
                },
                ConstantDescription::Dense {
                    elem: Elem::F32,
                    bits: vec![0x3f80_0000],
                },
            ],
            scratch_bytes: 4096,
            row_tile: 12,
            flops_per_row: 7840,
            row_products: vec![RowProduct {
                operand: 0,
                flops: 1568,
            }],
            call: CallShape::default(),
        };
        assert_eq!(
            KernelDescription::parse(&description.to_json()).unwrap(),
            description
        );
    }
}
