//! `divide-calls`: a call's rows may be divided between threads.
//!
//! Every element of a result is computed by itself, so a range of a call's first dim can be computed without the
//! others. What must not change with the range is how rows fall into tiles and blocks, so a work item begins at a
//! multiple of all of them; and what all rows share, as a product's packed right side, should not be made too often,
//! so it is written down how many rows it is worth. Where products end at a mask, later rows cost more.
//!
//! ```mlir
//! ragged.calls flops [[@n, @n, 128], [@n, @n, 128]] {
//!   ragged.online_softmax over [@n, 64] keys [@n] depth 64 blocks [96, 256] … until 1 masked -1.0e30 …
//! }
//! // becomes
//! ragged.calls grain 96 shared 0 flops [[@n, @n, 128], [@n, @n, 128]] rising [0, 1] {
//!   …
//! ```
//!
//! From this and a batch's lengths the runtime makes work items of equal work, which threads take, the heaviest first.
//! Without it a call is computed by one thread. Bits are the same either way. A call is not divided where its rows
//! have no dim of the instance, or share more than they compute. On a GPU calls are cut into tiles instead.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1 and §5.2: thread remapping. Requires: the loop level, after
//! `online-folds` and `bound-masks`. Leaves: the loop level.

use cohort_abi::manifest::Extent;
use cohort_dialects::builder::{Builder, Op};
use cohort_dialects::keys;
use melior::{Context, ir::OperationRef};

use crate::kernel::affine::Var;
use crate::kernel::calls::graph::{Graph, NodeId, Size};
use crate::kernel::calls::loops::{self, Kernel};
use crate::kernel::calls::memory::extent;
use crate::kernel::calls::neighbours::is_in_memory;
use crate::kernel::calls::stages::{Matmul, Nest, Side, Stage};
use crate::kernel::loop_level::kernels;
use crate::kernel::rows::layout::LANES;
use crate::kernel::rows::stage::TILE_ROWS;
use crate::pass::{Outcome, PassInfo, error};
use crate::support::ir::set_attribute;

/// The pass `divide-calls`.
pub const PASS: PassInfo = PassInfo {
    name: "divide-calls",
    summary: "Let threads divide the rows of a call between them (loop level)",
    description: include_str!("divide_calls.rs"),
    run,
};

/// What it takes to pack the right side of a product, in rows of the left side.
const PACKING: i64 = 16;
/// The same where it is computed while it is packed.
const COMPUTING: i64 = 32;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for [op, stages] in kernels(module) {
        if !Op::RaggedCalls.is(stages) {
            continue;
        }
        let kernel = loops::read(op)?;
        let Some(division) = division(&kernel) else {
            continue;
        };
        let b = Builder::before(context, stages)
            .ok_or_else(|| error(stages, "expected stages of a kernel"))?;
        set_attribute(stages, keys::GRAIN, b.i64_attr(division.rows));
        set_attribute(stages, keys::SHARED, b.i64_attr(division.shared));
        let rising = rising(&kernel);
        if !rising.is_empty() {
            set_attribute(stages, keys::RISING, b.i64s(&rising));
        }
    }
    Ok(())
}

struct Division {
    /// What work items begin at multiples of.
    rows: i64,
    shared: i64,
}

/// The division of a kernel's calls; none where rows have no dim of the instance, or share more than
/// they compute.
fn division(kernel: &Kernel<'_>) -> Option<Division> {
    let graph = &kernel.graph;
    let Some(Size::Length(_)) = graph.rows.first() else {
        return None;
    };
    let (mut rows, mut shared) = (1, 0);
    for (number, stage) in kernel.stages.iter().enumerate() {
        match stage {
            // Where the first dim is not that of a product's rows, each of its indices is a matrix.
            Stage::Matmul(matmul) if matmul.over.len() == 2 => {
                rows = multiple(rows, TILE_ROWS);
                shared = shared.max(packing(graph, &matmul.right));
            }
            // A block of rows is computed again as a whole where what is masked counts.
            Stage::Online(online) if online.over.len() == 2 => {
                rows = multiple(rows, online.blocks[0]);
            }
            Stage::Nest(nest) if !is_start(nest, &kernel.stages[number + 1..]) => {
                if is_shared(graph, nest) {
                    return None;
                }
                rows = multiple(rows, LANES);
            }
            Stage::Matmul(_) | Stage::Online(_) | Stage::Nest(_) => {}
        }
    }
    Some(Division { rows, shared })
}

/// Whether a nest is what a product's sums start from, and runs as that does.
fn is_start(nest: &Nest, then: &[Stage]) -> bool {
    let is_onto = |matmul: &Matmul| {
        matmul.onto && matmul.result == nest.store.result && matmul.to == nest.store.to
    };
    matches!(then.first(), Some(Stage::Matmul(matmul)) if is_onto(matmul))
}

/// Whether a nest has folds that all of its first dim needs.
fn is_shared(graph: &Graph<'_>, nest: &Nest) -> bool {
    let below = |var: Var| nest.over.get(var)?.known();
    let reads = graph.reads(nest.store.value, &nest.store.at, &below);
    let mut reads = reads.iter();
    reads.any(|(node, at): &(NodeId, _)| !graph.depends(*node, at).contains(&0))
}

fn packing(graph: &Graph<'_>, right: &Side) -> i64 {
    let (node, _) = graph.resolve(right.value, &right.at);
    match is_in_memory(graph, node) {
        true => PACKING,
        false => COMPUTING,
    }
}

/// Which of a call's products have more to sum in later rows: those of stages that end at a mask, which are known
/// by their extent. Products of one extent cost the same, whichever is counted.
fn rising(kernel: &Kernel<'_>) -> Vec<i64> {
    let mut rising = vec![];
    for stage in &kernel.stages {
        let products = match stage {
            Stage::Matmul(matmul) if matmul.until.is_some() && matmul.over.len() == 2 => {
                vec![[&matmul.over[..], &[matmul.depth]].concat()]
            }
            Stage::Online(online) if online.until.is_some() && online.over.len() == 2 => vec![
                vec![online.over[0], online.keys, Size::Known(online.depth)],
                [&online.over[..], &[online.keys]].concat(),
            ],
            _ => continue,
        };
        for product in products {
            let product = sorted(extent(&product, 2));
            let mut all = kernel.calls.flops.iter().enumerate();
            let found = all.find(|(number, flops)| {
                !rising.contains(&(*number as i64)) && sorted((*flops).clone()) == product
            });
            rising.extend(found.map(|(number, _)| number as i64));
        }
    }
    rising.sort_unstable();
    rising
}

fn sorted(mut extent: Extent) -> Extent {
    extent.lengths.sort_unstable();
    extent
}

/// The least common multiple.
fn multiple(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
