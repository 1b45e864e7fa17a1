//! Kernels whose unit is the call, as every target reads them: a graph of the values of one call
//! ([`graph`], made by [`read`]), what a mask leaves of its folds ([`bounds`]), the softmax-like
//! chains in it ([`chain`]), where values lie ([`memory`], [`neighbours`]) and how they are padded. At the loop
//! level they are a graph and a list of stages ([`loops`], [`stages`]).

pub mod bounds;
pub mod chain;
pub mod graph;
pub mod lanes;
pub mod loops;
pub mod memory;
pub mod neighbours;
pub mod padding;
pub mod read;
pub mod stages;

use cohort_dialects::builder::name_of;
use melior::ir::{OperationRef, operation::OperationLike};

use crate::pass::Failed;
use crate::support::ir::name_attribute;

pub use bounds::UNTIL;
pub use chain::ONLINE;

/// The attribute of a kernel over rows that runs over those of all calls at once.
pub const FUSED: &str = "ragged.fused";

/// The last operations of the chains that are computed online.
pub fn online_chains<'c>(
    kernel: OperationRef<'c, 'c>,
) -> Result<Vec<OperationRef<'c, 'c>>, Failed> {
    let graph = read::read(kernel, &[])?;
    let ends = (0..graph.nodes.len()).filter(|node| chain::find(&graph, *node).is_some());
    Ok(ends.map(|node| graph.nodes[node].op).collect())
}

/// Whether a kernel's unit is the call.
pub fn is_over_calls(kernel: OperationRef<'_, '_>) -> bool {
    name_attribute(kernel, "unit").as_deref() == Some("calls")
}

/// A product that a mask makes a triangle.
pub struct Bound<'c> {
    pub operation: OperationRef<'c, 'c>,
    /// The dim of its rows.
    pub row: String,
    /// How many terms more than its index a row has.
    pub after: i64,
}

/// The products whose sums may end before their dim does. Of softmax-like folds, those that are
/// computed online.
pub fn bounded_folds<'c>(kernel: OperationRef<'c, 'c>) -> Result<Vec<Bound<'c>>, Failed> {
    let graph = read::read(kernel, &[])?;
    let mut found = vec![];
    for (node, of) in graph.nodes.iter().enumerate() {
        let Some((mask, length)) = bounds::of_product(&graph, node) else {
            continue;
        };
        let is_online = of.op.attribute(ONLINE).is_ok();
        if chain::find(&graph, node).is_none() || is_online {
            found.push(Bound {
                operation: of.op,
                row: read::length_names(kernel)[length].clone(),
                after: mask.after,
            });
        }
    }
    Ok(found)
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
