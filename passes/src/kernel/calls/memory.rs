//! What a call's values take in memory, and what they are counted by.

use cohort_abi::manifest::Extent;
use melior::ir::OperationRef;

use super::graph::{Graph, Kind, NodeId, Size};
use crate::kernel::description::ConstantDescription;
use crate::kernel::rows::layout::elem_bytes;
use crate::pass::{Outcome, error};

/// Results have the dims that the kernel says they have.
pub fn check<'c>(kernel: OperationRef<'c, 'c>, graph: &Graph<'c>) -> Outcome {
    for result in &graph.results {
        let shape = &graph.nodes[*result].shape;
        let lead = shape.len() - graph.row_shape(shape).len();
        if !shape.starts_with(&graph.rows) || lead > graph.rows.len() {
            return Err(error(
                kernel,
                "expected every result to begin with the dims of `rows`",
            ));
        }
    }
    Ok(())
}

/// What lies in memory made at load, by node, in the order of the function's table.
pub fn constants(graph: &Graph<'_>) -> Vec<(NodeId, ConstantDescription)> {
    let nodes = graph.nodes.iter().enumerate();
    nodes
        .filter_map(|(id, node)| match &node.kind {
            Kind::Param(param) => Some((
                id,
                ConstantDescription::Plain {
                    param: param.clone(),
                },
            )),
            Kind::Dense(bits) => Some((
                id,
                ConstantDescription::Dense {
                    elem: node.elem,
                    bits: bits.clone(),
                },
            )),
            _ => None,
        })
        .collect()
}

/// Bytes of one row of the row pool that a value of this node lives in.
pub fn row_bytes(graph: &Graph<'_>, node: NodeId) -> i64 {
    let node = &graph.nodes[node];
    graph.row_shape(&node.shape).iter().product::<u64>() as i64 * elem_bytes(node.elem)
}

/// Bytes of one row of a result's row pool: the dims behind those that count rows.
pub fn result_row_bytes(graph: &Graph<'_>, node: NodeId) -> i64 {
    let bytes = elem_bytes(graph.nodes[node].elem);
    let behind = &graph.nodes[node].shape[graph.rows.len()..];
    behind.iter().fold(bytes, |bytes, size| match size {
        Size::Known(size) => bytes * size,
        Size::Length(_) => bytes,
    })
}

/// How many entries dims have, times a number. Lengths stay in the order of the dims: those of a
/// call's rows are the shape of its result.
pub fn extent(sizes: &[Size], times: u64) -> Extent {
    let mut extent = Extent {
        lengths: vec![],
        times,
    };
    for size in sizes {
        match size {
            Size::Known(size) => extent.times *= *size as u64,
            Size::Length(length) => extent.lengths.push(*length),
        }
    }
    extent
}
