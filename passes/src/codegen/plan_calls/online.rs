//! Plans a part of a result that is a softmax-like chain between two products, where `online-folds` has asked
//! for it: block by block of keys, with rescaled sums, so that no score is stored.

use melior::ir::operation::OperationLike;

use super::matmul::{Folded, in_folds, shifted, side};
use super::parts::{Window, find_root, index_of, sizes_of};
use super::{Shifted, Target};
use crate::kernel::calls::bounds::{self, Mask};
use crate::kernel::calls::chain::{self, ONLINE};
use crate::kernel::calls::graph::{Graph, Index, NodeId, Var, identity};
use crate::kernel::calls::lanes::{Layouts, dense};
use crate::kernel::calls::stages::{OnlineSoftmax, Stage, Store};

pub struct Plan {
    node: NodeId,
    shift: Vec<i64>,
    target: Target,
    /// The mask behind which scores need not be looked at.
    until: Option<Mask>,
}

/// Finds the chain that a part of a result ends in.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window], target: Target) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| {
        graph.nodes[node].op.attribute(ONLINE).is_ok() && chain::find(graph, node).is_some()
    })?;
    windows.last()?.size.known()?;
    // Only the sums of a block of rows are there; on a GPU folds compute again what they read.
    let folded = in_folds(graph, root, windows, node, &shift);
    if target == Target::Cpu && matches!(folded, Folded::Otherwise) {
        return None;
    }
    let until = bounds::after(graph, node).and_then(|after| {
        let (mask, _) = bounds::of_product(graph, node)?;
        (mask.after == after).then_some(mask)
    });
    Some(Plan {
        node,
        shift,
        target,
        until,
    })
}

impl Plan {
    /// Whether a row's cost grows with its index.
    pub fn is_triangle(&self) -> bool {
        self.until.is_some()
    }

    /// The two products of the chain.
    pub fn products(&self, graph: &Graph<'_>) -> Vec<NodeId> {
        let first = chain::find(graph, self.node).map(|chain| chain.first.0);
        first.into_iter().chain([self.node]).collect()
    }

    /// What stands for the second product in what is computed of it.
    pub fn sums(&self) -> Shifted {
        Shifted {
            node: self.node,
            by: self.shift.iter().map(|shift| -shift).collect(),
            own: (self.target != Target::Cpu).then(|| identity(self.shift.len())),
        }
    }

    pub fn stage(&self, graph: &Graph<'_>, result: usize, windows: &[Window]) -> Option<Stage> {
        let chain = chain::find(graph, self.node)?;
        let first = graph.product(chain.first.0)?;
        let (rank, target) = (windows.len(), self.target);
        let over = sizes_of(windows);
        let (row, column, key, depth) = (rank - 2, rank - 1, rank, rank + 1);
        let mut domain = shifted(&self.shift);
        domain.push(Index::var(key));
        let of = |index: &[Index]| -> Vec<Index> {
            index.iter().map(|index| index.at(&domain)).collect()
        };
        let mut of_first = of(&chain.first.1);
        let first_row = of_first[of_first.len() - 2].constant;
        of_first.push(Index::var(depth));
        let at: Vec<Index> = first.at.iter().map(|index| index.at(&of_first)).collect();
        let mut sizes = over.clone();
        sizes.extend([chain.second.depth, first.depth]);
        let values = (chain.second.b, of(&chain.second.at));
        Some(Stage::Online(OnlineSoftmax {
            keys: chain.second.depth,
            depth: first.depth.known()?,
            left: side(
                graph,
                (first.a, at.clone()),
                &sizes,
                [row, depth],
                (target, false),
            ),
            right: side(graph, (first.b, at), &sizes, [key, depth], (target, true)),
            scores: (chain.scores.0, of(&chain.scores.1)),
            product: chain.first.0,
            values: side(graph, values, &sizes, [column, key], (target, true)),
            until: self.until.map(|mask| (first_row + mask.after, mask.other)),
            finish: self.finish(graph, result, windows),
            sums: self.node,
            over,
        }))
    }

    fn finish(&self, graph: &Graph<'_>, result: usize, windows: &[Window]) -> Store {
        let rank = windows.len();
        let value = graph.results[result];
        let of_result = dense(&graph.nodes[value].shape);
        // Rows of sums lie one after another.
        let mut of_sums = vec![Some(0); rank];
        of_sums[rank - 2] = windows[rank - 1].size.known();
        of_sums[rank - 1] = Some(1);
        let known = windows.iter().enumerate().map(|(dim, window)| match dim {
            dim if dim + 2 < rank => Some(1),
            dim if dim + 2 == rank => None,
            _ => window.size.known(),
        });
        let known: Vec<_> = known.collect();
        let layouts = Layouts::new(graph, [(self.node, of_sums)].into());
        let below = |var: Var| windows.get(var)?.size.known();
        let lanes = || layouts.lanes_of_stores(value, &known, &of_result, &below);
        Store {
            lanes: self.target.has_vectors().then(lanes).flatten(),
            value,
            at: index_of(windows),
            result,
            to: index_of(windows),
        }
    }

    /// The product whose elements scores are made of, and where it is read.
    pub fn product(&self, graph: &Graph<'_>, rank: usize) -> Option<(NodeId, Vec<Index>)> {
        let chain = chain::find(graph, self.node)?;
        let mut domain = shifted(&self.shift);
        domain.push(Index::var(rank));
        let index = chain.first.1.iter().map(|index| index.at(&domain));
        Some((chain.first.0, index.collect()))
    }
}
