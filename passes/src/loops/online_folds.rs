//! `online-folds`: products with softmax-like weights are computed block by block of keys.
//!
//! In a per-instance kernel, `Σ_j exp(s - max_j s) / Σ_j exp(s - max_j s) · v[j]`, where `s` is computed
//! element by element from a product (a scale, a mask, a bias), is planned as a product whose left side folds
//! the scores of a row twice for each of its elements. Scores are needed only a block at a time, if what was summed
//! is rescaled whenever a block raises the maximum. So the stage becomes another one:
//!
//! ```mlir
//! ragged.matmul over [@n, 64] depth [@n] rows 96 blocks [64, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x64xf32> left along_depth {
//!   %most = ragged.reduce over [@n] from %low : f32 { … arith.maximumf … }
//!   %sum = ragged.reduce over [@n] from %zero : f32 { … math.exp … }
//!   %p = ragged.reduce over [16] from %zero : f32 { … }
//!   %s = arith.mulf %p, %scale : f32
//!   %w = arith.divf %exp, %sum : f32
//!   ragged.yield %w : f32
//! } right { … }
//! // becomes
//! ragged.online_softmax over [@n, 64] keys [@n] depth 16 blocks [96, 256] into %r (d0, d1) -> (d0, d1) lanes 1 : memref<?x?x64xf32>
//! left along_depth { … } right along_depth { … } scores {
//! ^bb0(%p: f32):
//!   %s = arith.mulf %p, %scale : f32
//!   ragged.yield %s : f32
//! } values { … } finish { … }
//! ```
//!
//! The chain is found by its operations and by what they read. No score is ever in memory then.
//!
//! The first product's depth and the second's columns are known numbers; the folds start from zero
//! and from minus infinity. Sums are added block by block, counted from the call's own first row, so
//! a row's bits depend on its call alone.
//!
//! After Milakov and Gimelshein (Online Normalizer Calculation for Softmax, 2018, algorithm 3) and
//! Dao et al. (FlashAttention, 2022, algorithm 1). Requires: the loop level, of `plan-kernels` or
//! `plan-kernels-for-gpu`. Leaves: the loop level.

mod chain;

use std::cell::RefCell;
use std::collections::HashMap;

use cohort_dialects::builder::{Builder, Op};
use cohort_dialects::enums::{DialectEnum, Precision};
use melior::{
    Context,
    ir::{OperationRef, operation::OperationLike},
};

use crate::kernel::affine::{Affine, Var};
use crate::kernel::calls::graph::{Graph, NodeId};
use crate::kernel::calls::lanes::{Layouts, dense};
use crate::kernel::calls::loops::{self, Kernel};
use crate::kernel::calls::sides::{Target, side};
use crate::kernel::calls::stages::{Matmul, OnlineSoftmax, Stage, Store};
use crate::kernel::calls::write::{Given, Shifted, Writer};
use crate::kernel::loop_level::{kernels, kernels_for_gpu};
use crate::kernel::schedule::{Processor, gpu_softmax_blocks};
use crate::pass::{Outcome, PassInfo, error};
use crate::support::dims::length_names;
use crate::support::ir::erase;
use chain::Chain;
use cohort_dialects::marks::PRECISION;

/// The pass `online-folds`.
pub const PASS: PassInfo = PassInfo {
    name: "online-folds",
    summary: "Compute products with softmax-like weights block by block (loop level)",
    description: include_str!("online_folds.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let aim = Aim {
        of_cpu: Processor::of_module(module)?.softmax_blocks(),
        is_on_tensor_cores: module
            .attribute(&PRECISION)
            .is_ok_and(|precision| Precision::of(precision) != Some(Precision::F32)),
    };
    for (kernels, target) in [
        (kernels(module), Target::Cpu),
        (kernels_for_gpu(module), Target::Gpu),
    ] {
        for [kernel, stages] in kernels {
            if Op::RaggedCalls.is(stages) {
                rewrite(context, kernel, target, &aim)?;
            }
        }
    }
    Ok(())
}

/// What the rows and keys of blocks follow from.
struct Aim {
    of_cpu: [i64; 2],
    /// Whether products are multiplied on a GPU's tensor cores.
    is_on_tensor_cores: bool,
}

impl Aim {
    fn blocks(&self, target: Target, depth: i64) -> [i64; 2] {
        match target {
            Target::Cpu => self.of_cpu,
            Target::Gpu => gpu_softmax_blocks(self.is_on_tensor_cores, depth),
        }
    }
}

fn rewrite<'c>(
    context: &'c Context,
    op: OperationRef<'c, 'c>,
    target: Target,
    aim: &Aim,
) -> Outcome {
    let kernel = loops::read(op)?;
    let names = length_names(op);
    // What maps take for granted is what those of the product took: they lead to the same elements.
    let given = RefCell::new(Given::new(names.len()));
    for (stage, operation) in kernel.stages.iter().zip(&kernel.operations) {
        let Stage::Matmul(matmul) = stage else {
            continue;
        };
        let Some(chain) = chain::find(&kernel.graph, matmul) else {
            continue;
        };
        let b = Builder::before(context, *operation)
            .ok_or_else(|| error(*operation, "expected a stage of a kernel"))?;
        let writer = Writer {
            b,
            graph: &kernel.graph,
            names: &names,
            memory: &kernel.memory,
            given: &given,
        };
        let online = online(&kernel, matmul, &chain, (target, aim));
        // A block of rows has sums of its own; until here these were the result's.
        let sums = Shifted {
            node: kernel.graph.results[matmul.result],
            by: matmul.to.iter().map(|index| -index.constant).collect(),
            own: None,
        };
        writer.online(&online, chain.first.clone(), sums);
        erase(*operation);
    }
    Ok(())
}

/// The stage of a chain. Its loops are those over the result, then the keys, then the depth.
fn online(
    kernel: &Kernel<'_>,
    matmul: &Matmul,
    chain: &Chain,
    (target, aim): (Target, &Aim),
) -> OnlineSoftmax {
    let graph = &kernel.graph;
    let over = matmul.over.clone();
    let (row, key, depth) = (over.len() - 2, over.len(), over.len() + 1);
    let mut of_first = chain.first.1.clone();
    of_first.push(Affine::var(depth));
    let at = chain.product.at.iter();
    let at: Vec<Affine> = at.map(|index| index.at(&of_first)).collect();
    let mut sizes = over.clone();
    sizes.extend([matmul.depth, chain.product.depth]);
    let sums = graph.results[matmul.result];
    let known = chain.product.depth.known().unwrap_or(1);
    OnlineSoftmax {
        keys: matmul.depth,
        depth: known,
        blocks: aim.blocks(target, known),
        left: side(
            graph,
            (chain.product.a, at.clone()),
            &sizes,
            [row, depth],
            (target, false),
        ),
        right: side(
            graph,
            (chain.product.b, at),
            &sizes,
            [key, depth],
            (target, true),
        ),
        scores: chain.scores.clone(),
        product: chain.first.0,
        values: matmul.right.clone(),
        until: None,
        finish: finish(graph, matmul, sums, target),
        sums,
        over,
    }
}

/// What is computed of the sums of a block of rows.
fn finish(graph: &Graph<'_>, matmul: &Matmul, sums: NodeId, target: Target) -> Store {
    let of_product = matmul.finish.as_ref();
    let (value, at) = match of_product {
        Some(finish) => (finish.value, finish.at.clone()),
        None => (sums, matmul.to.clone()),
    };
    let rank = matmul.over.len();
    // Rows of sums lie one after another.
    let mut of_sums = vec![Some(0); rank];
    of_sums[rank - 2] = matmul.over[rank - 1].known();
    of_sums[rank - 1] = Some(1);
    let known = matmul.over.iter().enumerate().map(|(dim, size)| match dim {
        dim if dim + 2 < rank => Some(1),
        dim if dim + 2 == rank => None,
        _ => size.known(),
    });
    let known: Vec<_> = known.collect();
    let of_result = dense(&graph.nodes[sums].shape);
    let layouts = Layouts::new(graph, HashMap::from([(sums, of_sums)]));
    let below = |var: Var| matmul.over.get(var)?.known();
    let lanes = || layouts.lanes_of_stores((value, &at), &known, &of_result, &below);
    Store {
        lanes: target.has_vectors().then(lanes).flatten(),
        value,
        at: at.clone(),
        result: matmul.result,
        to: matmul.to.clone(),
    }
}
