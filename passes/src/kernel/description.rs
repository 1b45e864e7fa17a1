//! What `lower-kernels` tells `lower-control` of a kernel.
//!
//! It is the manifest's [`Kernel`] before row pools and parameters have numbers: a row is described by its type, a
//! parameter by the name of its `ml_program.global`. `lower-kernels` leaves it on each kernel's `func.func` as the
//! string attribute [`ATTRIBUTE`], in JSON; `lower-control` gives every [`RowType`] a row pool and every name its
//! parameter, and removes the attribute. `lower-kernels-to-gpu` does the same for a `gpu.module`.

use cohort_abi::gpu::GpuKernel;
use cohort_abi::manifest::{Constant, Elem, Kernel, Operand};
pub use cohort_dialects::marks::KERNEL as ATTRIBUTE;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A kernel as its attribute describes it: row pools by the type of a row, parameters by name.
pub type KernelDescription = Kernel<RowType, String>;
/// An operand of such a kernel.
pub type OperandDescription = Operand<RowType>;
/// A constant of such a kernel.
pub type ConstantDescription = Constant<String>;
/// How such a kernel runs on a GPU.
pub type GpuDescription = GpuKernel<String>;

/// The type of one row: the row pool that it lives in is the one of this element type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowType {
    /// The type of its elements.
    pub elem: Elem,
    /// Without the batch dim; empty for a tensor of rank 0.
    pub shape: Vec<u64>,
}

/// What a description in JSON says.
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json)
}

/// A description as JSON.
pub fn to_json<T: Serialize>(description: &T) -> String {
    serde_json::to_string(description)
        .unwrap_or_else(|error| unreachable!("a description is plain data: {error}"))
}

#[cfg(test)]
mod tests {
    use cohort_abi::manifest::{CallShape, RowProduct, WeightFormat};

    use super::*;

    #[test]
    fn comes_back_from_json() {
        let description = KernelDescription {
            name: "cell".into(),
            symbol: "cell_1".into(),
            location: String::new(),
            operands: vec![
                OperandDescription::Row {
                    pool: RowType {
                        elem: Elem::F32,
                        shape: vec![28],
                    },
                },
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
                    format: WeightFormat::Bf16,
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
            gpu: None,
        };
        assert_eq!(
            parse::<KernelDescription>(&to_json(&description)).unwrap(),
            description
        );
    }
}
