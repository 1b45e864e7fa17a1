//! The parts of a result: cut where concatenations are, and what each is computed from.

use std::collections::HashSet;

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::affine::{Affine, Var, identity};
use cohort_passes::kernel::calls::graph::{Graph, Kind, NodeId, Size};
use cohort_passes::kernel::calls::{memory, read};
use cohort_passes::pass::{Failed, Outcome, error};

use melior::ir::OperationRef;

use super::{Aim, matmul};

/// A part of a result, and how it is computed.
pub struct Part {
    /// The number of the result.
    pub result: usize,
    pub windows: Vec<Window>,
    /// The product that is made first, if there is one.
    pub product: Option<matmul::MatmulPlan>,
}

/// Reads a kernel, and plans each part of its results; `scalars` tells which of its records' operands
/// are host scalars.
pub fn plan<'c>(
    kernel: OperationRef<'c, 'c>,
    scalars: &[bool],
    aim: Aim,
) -> Result<(Graph<'c>, Vec<Part>), Failed> {
    let graph = read::read(kernel, scalars)?;
    memory::check(kernel, &graph)?;
    let mut parts = vec![];
    for (result, node) in graph.results.iter().enumerate() {
        for windows in windows(&graph, *node) {
            check_parts(&graph, *node, &windows)?;
            let product = matmul::plan(&graph, *node, &windows, aim);
            parts.push(Part {
                result,
                windows,
                product,
            });
        }
    }
    Ok((graph, parts))
}

/// A dim of what is written: the entries `from..from + size`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: i64,
    pub size: Size,
}

/// Where a result is cut so that each part reads one input of a concatenation only.
fn windows(graph: &Graph<'_>, root: NodeId) -> Vec<Vec<Window>> {
    let rank = graph.nodes[root].shape.len();
    let mut cuts: Vec<Vec<i64>> = vec![vec![0]; rank];
    let mut seen = HashSet::new();
    let mut stack = vec![(root, identity(rank))];
    while let Some((node, at)) = stack.pop() {
        let (node, at) = graph.resolve(node, &at);
        if !seen.insert((node, at.clone())) {
            continue;
        }
        match &graph.nodes[node].kind {
            Kind::Pointwise { inputs, .. } => {
                stack.extend(inputs.iter().map(|input| (*input, at.clone())));
            }
            Kind::Concat { inputs, dim } => {
                let mut start = 0;
                for input in inputs {
                    if let [(var, 1)] = at[*dim].terms[..] {
                        cuts[var].push(start - at[*dim].constant);
                    }
                    let mut at = at.clone();
                    at[*dim].constant -= start;
                    stack.push((*input, at));
                    if let Size::Known(size) = graph.nodes[*input].shape[*dim] {
                        start += size;
                    }
                }
            }
            _ => {}
        }
    }
    let mut all = vec![vec![]];
    for dim in 0..rank {
        let parts: Vec<Window> = match size_of(graph, root, dim) {
            size @ Size::Length(_) => vec![Window { from: 0, size }],
            Size::Known(size) => {
                let mut cuts: Vec<i64> = cuts[dim]
                    .iter()
                    .copied()
                    .filter(|cut| (0..size).contains(cut))
                    .collect();
                cuts.sort_unstable();
                cuts.dedup();
                let ends = cuts.iter().skip(1).chain([&size]);
                cuts.iter()
                    .zip(ends)
                    .map(|(from, end)| Window {
                        from: *from,
                        size: Size::Known(end - from),
                    })
                    .collect()
            }
        };
        all = all
            .into_iter()
            .flat_map(|windows: Vec<Window>| {
                parts.iter().map(move |part| {
                    let mut windows = windows.clone();
                    windows.push(*part);
                    windows
                })
            })
            .collect();
    }
    all
}

/// The size of a dim: what has a length may be made of what has a known one, and is no longer.
fn size_of(graph: &Graph<'_>, root: NodeId, dim: usize) -> Size {
    let mut seen = HashSet::new();
    let mut stack = vec![(root, dim)];
    while let Some((node, dim)) = stack.pop() {
        if !seen.insert((node, dim)) {
            continue;
        }
        if let size @ Size::Known(_) = graph.nodes[node].shape[dim] {
            return size;
        }
        match &graph.nodes[node].kind {
            Kind::Pointwise { inputs, .. } => {
                stack.extend(inputs.iter().map(|input| (*input, dim)));
            }
            Kind::Concat { inputs, dim: along } if *along != dim => {
                stack.extend(inputs.iter().map(|input| (*input, dim)));
            }
            // All of a length is read, and of a dim of one element always that one.
            Kind::Access { source, index } => {
                let whole = Affine::var(dim);
                let of = index.iter().position(|index| *index == whole);
                stack.extend(of.map(|dim| (*source, dim)));
            }
            _ => {}
        }
    }
    graph.nodes[root].shape[dim]
}

/// Every concatenation is read in one of its inputs at a time.
fn check_parts(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Outcome {
    let below = |var: Var| windows[var].size.known();
    let at = index_of(windows);
    let across = graph.walk((root, &at), windows.len(), &below, &mut |_, _, _| true);
    across.map_or(Ok(()), |concatenation| {
        Err(error(
            graph.nodes[concatenation].op,
            "not supported yet: a concatenation that is read across its parts",
        ))
    })
}

pub fn sizes_of(windows: &[Window]) -> Vec<Size> {
    windows.iter().map(|window| window.size).collect()
}

pub fn index_of(windows: &[Window]) -> Vec<Affine> {
    windows
        .iter()
        .enumerate()
        .map(|(var, window)| Affine::var(var).plus(&Affine::constant(window.from)))
        .collect()
}

/// A fold of which every element of a part of a result reads one: that of the same index plus a
/// constant a dim.
pub fn find_root(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    fits: &dyn Fn(NodeId) -> bool,
) -> Option<(NodeId, Vec<i64>)> {
    if graph.nodes[root].elem != Elem::F32 || windows.len() < 2 {
        return None;
    }
    let below = |var: Var| windows.get(var)?.size.known();
    let reads = graph.reads(root, &index_of(windows), &below);
    let is_whole = |index: (usize, &Affine)| index.1.terms == [(index.0, 1)];
    let (node, read) = reads.iter().find(|(node, at)| {
        let once = reads.iter().filter(|(other, _)| other == node).count() == 1;
        let same = at.len() == windows.len() && graph.nodes[*node].elem == Elem::F32;
        same && once && at.iter().enumerate().all(is_whole) && fits(*node)
    })?;
    Some((*node, read.iter().map(|index| index.constant).collect()))
}
