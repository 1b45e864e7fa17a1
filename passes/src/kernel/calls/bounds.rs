//! Triangles: what a mask leaves of a fold.
//!
//! `select(row >= column, x, other)` is `x` for the first `row + 1` columns. A fold to which `other`
//! adds nothing may end there. The end is written as the rule of a dim, `lengths (i) -> (i + 1)`.

use cohort_dialects::builder::name_of;
use melior::ir::{OperationRef, operation::OperationLike};

use super::chain;
use super::graph::{Graph, Index, Kind, NodeId, Var};
use crate::support::ir::{affine_map, integer_attribute, name_attribute, top_level};

/// The attribute of a product that names the dim its fold runs over, for each row of its result.
pub const UNTIL: &str = "ragged.until";

/// Masks what is behind a row's first `row + after` columns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mask {
    pub after: i64,
    /// The bits of what stands there instead.
    pub other: u32,
}

/// The mask of a value that is read at an index.
pub fn mask_of(
    graph: &Graph<'_>,
    (node, at): (NodeId, &[Index]),
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
    if name_of(*op) != "arith.select" {
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
    if name_of(*op) != "arith.cmpi" {
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
    let is = |index: &Index, var: Var| index.terms == [(var, 1)];
    let (turned, distance) = if is(&left, row) && is(&right, column) {
        (false, left.constant - right.constant)
    } else if is(&left, column) && is(&right, row) {
        (true, right.constant - left.constant)
    } else {
        return None;
    };
    // Indices are never negative, so signs do not matter.
    let (mut less, mut equal) = match integer_attribute(*op, "predicate")? {
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

/// The mask of a product's sum, where it can end at it; and the name of the row's length.
pub fn of_product(graph: &Graph<'_>, node: NodeId) -> Option<(Mask, usize)> {
    let rank = graph.nodes[node].shape.len();
    let (row, summed) = (rank.checked_sub(2)?, rank);
    let length = match graph.nodes[node].shape[row] {
        super::graph::Size::Length(length) => length,
        super::graph::Size::Known(_) => return None,
    };
    if let Some(chain) = chain::find(graph, node) {
        let (scores, at) = &chain.scores;
        return Some((mask_of(graph, (*scores, at), row, summed)?, length));
    }
    let product = graph.product(node)?;
    let mask = mask_of(graph, (product.a, &product.at), row, summed)?;
    (mask.other == 0).then_some((mask, length))
}

/// How many entries more than its index a row has, by the dim that a product's attribute names.
pub fn after(graph: &Graph<'_>, node: NodeId) -> Option<i64> {
    let op = graph.nodes[node].op;
    let name = name_attribute(op, UNTIL)?;
    let mut parent = op.parent_operation()?;
    while name_of(parent) != "builtin.module" {
        parent = parent.parent_operation()?;
    }
    let dim = top_level(parent).into_iter().find(|op| {
        name_of(*op) == "ragged.dim" && name_attribute(*op, "sym_name").as_deref() == Some(&name)
    })?;
    rule_of(dim)
}

/// The 1 of `lengths (i) -> (i + 1)`.
fn rule_of(dim: OperationRef<'_, '_>) -> Option<i64> {
    let map = affine_map(dim.attribute("rule").ok()?)?;
    if [map.dim_count(), map.symbol_count(), map.result_count()] != [1, 0, 1] {
        return None;
    }
    let result = map.result(0).ok()?;
    if result.is_dim() {
        return Some(0);
    }
    let is_sum = result.is_add() && result.lhs().is_dim() && result.rhs().is_constant();
    is_sum.then(|| result.rhs().constant_value())
}
