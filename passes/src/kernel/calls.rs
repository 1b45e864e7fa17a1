//! Kernels whose unit is the call, as every target reads them: a graph of the values of one call
//! ([`graph`], made by [`read`]), where values lie ([`memory`], [`neighbours`]) and how they are padded. At the loop
//! level they are a graph and a list of [`stages`], which [`loops`] reads and [`mod@write`] writes.

pub mod graph;
pub mod lanes;
pub mod loops;
pub mod memory;
pub mod neighbours;
pub mod padding;
pub mod read;
pub mod sides;
pub mod stages;
pub mod write;

use cohort_dialects::builder::name_of;
use melior::ir::OperationRef;

use crate::support::ir::name_attribute;

/// Whether a kernel's unit is the call.
pub fn is_over_calls(kernel: OperationRef<'_, '_>) -> bool {
    name_attribute(kernel, "unit").as_deref() == Some("calls")
}

/// The bits of what changes nothing when it is folded in.
pub fn neutral(combiner: OperationRef<'_, '_>) -> u32 {
    match name_of(combiner).as_str() {
        "arith.addf" => (-0.0_f32).to_bits(),
        "arith.mulf" => 1.0_f32.to_bits(),
        "arith.maximumf" | "arith.maxnumf" => f32::NEG_INFINITY.to_bits(),
        "arith.minimumf" | "arith.minnumf" => f32::INFINITY.to_bits(),
        "arith.muli" => 1,
        "arith.maxsi" => i32::MIN as u32,
        "arith.minsi" => i32::MAX as u32,
        "arith.minui" | "arith.andi" => u32::MAX,
        _ => 0,
    }
}
