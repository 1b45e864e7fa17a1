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

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::Op;
use melior::ir::OperationRef;

use crate::support::dims;

/// Whether a kernel's unit is the call.
pub fn is_over_calls(kernel: OperationRef<'_, '_>) -> bool {
    dims::unit(kernel) == Some(Unit::Calls)
}

/// The bits of what changes nothing when it is folded in.
pub fn neutral(combiner: OperationRef<'_, '_>) -> u32 {
    match Op::of(combiner) {
        Some(Op::ArithAddf) => (-0.0_f32).to_bits(),
        Some(Op::ArithMulf) => 1.0_f32.to_bits(),
        Some(Op::ArithMaximumf | Op::ArithMaxnumf) => f32::NEG_INFINITY.to_bits(),
        Some(Op::ArithMinimumf | Op::ArithMinnumf) => f32::INFINITY.to_bits(),
        Some(Op::ArithMuli) => 1,
        Some(Op::ArithMaxsi) => i32::MIN as u32,
        Some(Op::ArithMinsi) => i32::MAX as u32,
        Some(Op::ArithMinui | Op::ArithAndi) => u32::MAX,
        _ => 0,
    }
}
