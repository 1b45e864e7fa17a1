//! `bound-masks`: a fold that a mask makes a triangle ends where the mask begins.
//!
//! In a per-instance kernel, `Σ_k select(i >= k, a, 0) · b` has `i + 1` terms in row `i` that are not
//! zero, and a softmax-like fold of scores that are masked by a large negative constant as many
//! weights. The stage says so:
//!
//! ```mlir
//! ragged.matmul over [@n, 16] depth [@n] rows 96 blocks [16, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x16xf32> left along_depth {
//!   %row = ragged.position (d0, d1, d2) -> (d0) : i32
//!   %column = ragged.position (d0, d1, d2) -> (d2) : i32
//!   %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x?xf32>
//!   %is_below = arith.cmpi sge, %row, %column : i32
//!   %t = arith.select %is_below, %a, %zero : f32
//!   ragged.yield %t : f32
//! } right { … }
//! // becomes
//! ragged.matmul over [@n, 16] depth [@n] rows 96 blocks [16, 256] into %r (d0, d1) -> (d0, d1) until 1 : memref<?x?x16xf32> left along_depth {
//!   …
//! ```
//!
//! Such products are computed tile by tile up to the end; within the tiles that the
//! diagonal cuts, the mask stays. Of scores, those of `ragged.online_softmax` alone (`online-folds`) are
//! bounded, and the constant need not be minus infinity: where a row's scores are so low that masked
//! ones would have weight beside them, the rows of its block are computed in full. A product skips
//! zeros times whatever the other factor holds, so infinities behind the diagonal are not seen.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4: triangles are ragged, with lengths that are a function
//! of the row. Requires: the loop level, after `online-folds`. Leaves: the loop level.

use cohort_dialects::builder::{Builder, Op};
use cohort_dialects::keys;
use melior::{Context, ir::OperationRef};

use crate::kernel::affine::{Affine, Var};
use crate::kernel::calls::graph::{Graph, Kind, NodeId, Size};
use crate::kernel::calls::loops;
use crate::kernel::calls::stages::Stage;
use crate::kernel::loop_level::{kernels, kernels_for_gpu};
use crate::pass::{Outcome, PassInfo, error};
use crate::support::ir::{integer_attribute, set_attribute};

/// The pass `bound-masks`.
pub const PASS: PassInfo = PassInfo {
    name: "bound-masks",
    summary: "End folds where a mask makes them triangles (loop level)",
    description: include_str!("bound_masks.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let kernels = kernels(module).into_iter().chain(kernels_for_gpu(module));
    for [op, stages] in kernels.filter(|[_, stages]| Op::RaggedCalls.is(*stages)) {
        let kernel = loops::read(op)?;
        let b = Builder::before(context, stages)
            .ok_or_else(|| error(stages, "expected stages of a kernel"))?;
        for (stage, operation) in kernel.stages.iter().zip(&kernel.operations) {
            let Some(mask) = mask_of_stage(&kernel.graph, stage) else {
                continue;
            };
            set_attribute(*operation, keys::UNTIL, b.i64_attr(mask.after));
            if let Stage::Online(_) = stage {
                let masked = b.f32_attr(f32::from_bits(mask.other));
                set_attribute(*operation, keys::MASKED, masked);
            }
        }
    }
    Ok(())
}

/// The mask behind which a stage has nothing to sum, for rows as many as a length says.
fn mask_of_stage(graph: &Graph<'_>, stage: &Stage) -> Option<Mask> {
    let (over, (value, at)) = match stage {
        Stage::Matmul(matmul) => (&matmul.over, matmul.left.read()),
        Stage::Online(online) => (&online.over, (online.scores.0, &online.scores.1[..])),
        Stage::Nest(_) => return None,
    };
    let (row, summed) = (over.len() - 2, over.len());
    let is_length = matches!(over[row], Size::Length(_));
    let mask = mask_of(graph, (value, at), row, summed).filter(|_| is_length)?;
    let counts = matches!(stage, Stage::Online(_)) || mask.other == 0;
    counts.then_some(mask)
}

/// Masks what is behind a row's first `row + after` columns.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mask {
    after: i64,
    /// The bits of what stands there instead.
    other: u32,
}

/// The mask of a value that is read at an index.
fn mask_of(
    graph: &Graph<'_>,
    (node, at): (NodeId, &[Affine]),
    row: Var,
    column: Var,
) -> Option<Mask> {
    let (node, at) = graph.resolve(node, at);
    let Kind::Pointwise { op, inputs } = &graph.nodes[node].kind else {
        return None;
    };
    let [condition, yes, no] = inputs[..] else {
        return None;
    };
    if !Op::ArithSelect.is(*op) {
        return None;
    }
    let splat = |node: NodeId| match graph.nodes[graph.resolve(node, &at).0].kind {
        Kind::Splat(bits) => Some(bits),
        _ => None,
    };
    let (condition, at) = graph.resolve(condition, &at);
    let Kind::Pointwise { op, inputs } = &graph.nodes[condition].kind else {
        return None;
    };
    let [left, right] = inputs[..] else {
        return None;
    };
    if !Op::ArithCmpi.is(*op) {
        return None;
    }
    let index = |node: NodeId| {
        let (node, at) = graph.resolve(node, &at);
        match graph.nodes[node].kind {
            Kind::Iota(dim) => Some(at[dim].clone()),
            _ => None,
        }
    };
    let (left, right) = (index(left)?, index(right)?);
    // `left - right` as a comparison with the row's index minus the column's.
    let is = |index: &Affine, var: Var| index.terms == [(var, 1)];
    let (turned, distance) = if is(&left, row) && is(&right, column) {
        (false, left.constant - right.constant)
    } else if is(&left, column) && is(&right, row) {
        (true, right.constant - left.constant)
    } else {
        return None;
    };
    // Indices are never negative, so signs do not matter.
    let (mut less, mut equal) = match integer_attribute(*op, keys::PREDICATE)? {
        2 | 6 => (true, false),
        3 | 7 => (true, true),
        4 | 8 => (false, false),
        5 | 9 => (false, true),
        _ => return None,
    };
    if turned {
        less = !less;
    }
    // Where the condition says that a column is behind its row's end, the value is the other one.
    let other = match less {
        false => splat(no)?,
        true => {
            equal = !equal;
            splat(yes)?
        }
    };
    let after = distance + i64::from(equal);
    (0..1 << 30)
        .contains(&after)
        .then_some(Mask { after, other })
}
