//! `plan-kernels`: kernels (level 2) to loops over memory (the loop level).
//!
//! Each row-wise `cfb.kernel` becomes a `ragged.kernel`: the memory that it touches, the stages that run
//! once a call, and those that run for every block of rows, in order.
//!
//! ```mlir
//! cfb.kernel @cell {
//! ^bb0(%rows: index, %x: tensor<?x28xf32>):
//!   %w = ml_program.global_load_const @w : tensor<28x28xf32>
//!   %p = linalg.matmul ins(%x, %w : …) outs(%zero : …) -> tensor<?x28xf32>
//!   %h = math.tanh %p : tensor<?x28xf32>
//!   cfb.yield %h : tensor<?x28xf32>
//! }
//! // becomes
//! ragged.kernel @cell {
//!   %x = ragged.operand row : memref<?x28xf32>
//!   %h = ragged.result : memref<?x28xf32>
//!   %w = ragged.param @w panels 32 : memref<28x28xf32>
//!   %p = ragged.scratch products 1 : memref<?x32xf32>
//!   ragged.blocks of 96 tile 12 {
//!     ragged.product %x (d0) -> (0) rows 1 k 28 columns 28 with %w row 0 into %p tile 12 : …
//!     ragged.nest over [28] lanes 0 {
//!       %0 = ragged.load %p (d0) -> (d0) : memref<?x32xf32>
//!       %1 = math.tanh %0 : f32
//!       ragged.store %1, %h (d0) -> (d0) : memref<?x28xf32>
//!     }
//!   }
//! }
//! ```
//!
//! The body is read as a graph of the values of one row and cut into stages that talk through memory.
//! What is only selected (slices, broadcasts, transpositions) vanishes into addresses; a pointwise value
//! is stored only if it is a result, if a stage must find it in memory, or if computing it again for every
//! reader would cost more than a store and loads. All that is chosen is written down: the rows of a
//! block, which follow from the processor's caches (`cfb.caches` of the module, or what a server usually has), row tiles
//! and panels of products, the loop that runs in vectors and how many of them, how many
//! neighbours a fold has. A person can change it; `lower-kernels` obeys, and the verifier refuses what
//! cannot be.
//!
//! A kernel whose unit is the call gets `ragged.calls` instead, with the stages of every call: loops over its
//! dims, and products on blocks that are packed into scratch. A part of a result that a concatenation cuts is a stage of
//! its own.
//!
//! A kernel that is recorded in several ways, with host scalars or without, becomes one kernel each.
//!
//! Requires: level 2, `accumulate-products` for speed. Leaves: the loop level. Limits: elements are `f32`, `i32`
//! or `i1`; dynamic dims are the batch dim and, where the unit is the call, the kernel's lengths; slices have
//! static bounds.

mod plan;
mod schedule;

pub(crate) use schedule::NARROW_ROW_TILE;

use cohort_dialects::builder::{Builder, Op, region_with_block};
use cohort_dialects::keys;
use cohort_passes::kernel::calls::is_over_calls;
use cohort_passes::kernel::row_products::row_products;
use cohort_passes::kernel::rows::graph::Kind;
use cohort_passes::kernel::rows::read;
use cohort_passes::kernel::schedule::Processor;
use cohort_passes::kernel::variants::{records_of, variants};
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{attributes_without, blocks_of, erase, set_attribute, top_level};
use melior::{
    Context,
    ir::{
        OperationRef,
        attribute::{DenseI64ArrayAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use crate::emit::Emitter;
use crate::generic_body;
use crate::plan_calls::{self, Aim};
use crate::plan_rows::{declare, stages};
use schedule::Vectors;

/// The pass `plan-kernels`.
pub const PASS: PassInfo = PassInfo {
    name: "plan-kernels",
    summary: "Make kernels loops over memory (level 2 to the loop level)",
    description: include_str!("plan_kernels.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let records = records_of(module);
    let processor = Processor::of_module(module)?;
    for kernel in top_level(module) {
        let is_over_calls = is_over_calls(kernel);
        if !Op::CfbKernel.is(kernel) {
            continue;
        }
        for (name, scalars) in variants(context, kernel, &records)? {
            match is_over_calls {
                true => {
                    let before = Builder::before(context, kernel)
                        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
                    plan_calls::plan(&before, kernel, &name, &scalars, Aim::cpu(processor))?;
                }
                false => plan_kernel(context, kernel, (&name, &scalars), &processor)?,
            }
        }
        erase(kernel);
    }
    Ok(())
}

/// Adds the kernel at the loop level before the one at level 2.
fn plan_kernel<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    (name, scalars): (&str, &[bool]),
    processor: &Processor,
) -> Outcome {
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let graph = read::read(block, scalars)?;
    for node in &graph.nodes {
        if let Kind::Loops(of_node) = &node.kind {
            generic_body::check(of_node.op, &of_node.loop_of_dim)?;
        }
    }
    let plan = plan::plan(&graph)?;

    let before = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let (region, block) = region_with_block(&[], kernel.location());
    let e = Emitter::new(Builder::at_end(context, block, kernel.location()));
    let stages_of_plan = plan.shared.iter().chain(&plan.rows);
    let memory = declare::declare(&e, kernel, &graph, &plan.layouts, stages_of_plan);
    for stage in &plan.shared {
        stages::write(&e, &memory, &Vectors, stage);
    }
    let (rows_region, rows) = region_with_block(&[], kernel.location());
    for stage in &plan.rows {
        stages::write(&e.within(rows), &memory, &Vectors, stage);
    }
    let tile = schedule::tile_of_rows(&plan.layouts.slots);
    // How many rows a block has is known when all stages are.
    let number = |value: i64| e.b.i64_attr(value);
    let blocks = e.b.op(
        Op::RaggedBlocks,
        &[],
        &[],
        &[(keys::OF, number(1)), (keys::TILE, number(tile))],
        vec![rows_region],
    );

    let mut attributes = attributes_without(kernel, &[keys::SYM_NAME]);
    attributes.push((keys::SYM_NAME, StringAttribute::new(context, name).into()));
    let products: Vec<i64> = row_products(kernel)
        .into_iter()
        .filter_map(|product| Some([product.operand? as i64, product.flops? as i64]))
        .flatten()
        .collect();
    if !products.is_empty() {
        let products = DenseI64ArrayAttribute::new(context, &products).into();
        attributes.push((keys::ROW_PRODUCTS, products));
    }
    let planned = before.op(Op::RaggedKernel, &[], &[], &attributes, vec![region]);
    let rows = schedule::rows_of_block(processor, planned)?;
    set_attribute(blocks, keys::OF, number(rows));
    Ok(())
}
