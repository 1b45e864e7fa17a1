//! Plans a row-wise kernel and writes it at the loop level.

mod chip;
mod plan;
mod sizes;
mod threads;
mod write;

pub use sizes::{buffers, rows_from};

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{Builder, Op, arguments_of, region_with_block};
use cohort_dialects::keys;
use cohort_passes::kernel::rows::graph::{Graph, Kind};
use cohort_passes::kernel::rows::read;
use cohort_passes::kernel::rows::stage::{Combiner, Stage};
use cohort_passes::pass::{Outcome, error, remark};
use cohort_passes::support::ir::{TensorType, attributes_without, blocks_of, nested_ops};
use melior::ir::{
    OperationRef,
    attribute::{IntegerAttribute, StringAttribute},
    operation::OperationLike,
};

use super::super::lower_kernels_to_gpu::{is_foreign, refuse};
use crate::emit::Emitter;
use crate::generic_body;
use crate::plan_rows::stages;
use chip::Chip;
use plan::{Launch, LaunchPlan, Refused};
use threads::{Threads, block_rows};

/// Adds the kernel at the loop level, or says why it has no code for a GPU.
pub fn plan<'c>(
    inside: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
    precision: Precision,
) -> Outcome {
    if differs_in_shape(kernel) {
        refuse(kernel, "an operand whose rows differ in shape");
        return Ok(());
    }
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let graph = read::read(block, scalars)?;
    for node in &graph.nodes {
        if let Kind::Loops(of_node) = &node.kind {
            generic_body::check(of_node.op, &of_node.loop_of_dim)?;
        }
    }
    if let Some((op, reason)) = foreign(&graph) {
        refuse(op, &reason);
        return Ok(());
    }
    match plan::plan(&graph) {
        Ok(plan) => {
            if precision != Precision::F32 {
                tell_of_folds(&graph, &plan, precision);
            }
            write(inside, kernel, name, (&graph, &plan), precision);
        }
        Err(Refused { op, reason }) => refuse(op, reason),
    }
    Ok(())
}

fn write<'c>(
    inside: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    (graph, plan): (&Graph<'c>, &LaunchPlan<'c>),
    precision: Precision,
) {
    let context = inside.context();
    let (region, block) = region_with_block(&[], kernel.location());
    let e = Emitter::new(Builder::at_end(context, block, kernel.location()));
    let chip = Chip::new(graph, plan);
    let memory = write::declare(&e, kernel, graph, plan, &chip);
    let threads = Threads { graph, plan };
    for launch in &plan.launches {
        match launch {
            Launch::Tile(tile) => write::tiles(&e, &memory, tile, precision),
            Launch::Rows(rows) if rows.once => {
                for stage in &rows.stages {
                    stages::write(&e, &memory, &threads, stage);
                }
            }
            Launch::Rows(rows) => {
                let (region, block) = region_with_block(&[], kernel.location());
                for stage in &rows.stages {
                    stages::write(&e.within(block), &memory, &threads, stage);
                }
                let number = |value: i64| IntegerAttribute::new(e.i64, value).into();
                let attributes = [
                    (keys::OF, number(block_rows(graph, rows))),
                    (keys::TILE, number(1)),
                ];
                e.b.op(Op::RaggedBlocks, &[], &[], &attributes, vec![region]);
            }
        }
    }
    let mut attributes = attributes_without(kernel, &[keys::SYM_NAME]);
    attributes.push((keys::SYM_NAME, StringAttribute::new(context, name).into()));
    let inside = inside.at(kernel.location());
    inside.op(Op::RaggedKernel, &[], &[], &attributes, vec![region]);
}

/// An operation of the kernel that no instruction or polynomial does.
fn foreign<'c>(graph: &Graph<'c>) -> Option<(OperationRef<'c, 'c>, String)> {
    let operations = graph.nodes.iter().flat_map(|node| match &node.kind {
        Kind::Pointwise { op, .. } => vec![*op],
        Kind::ReduceRows { op, .. } => nested_ops(*op),
        Kind::Loops(loops) => nested_ops(loops.op),
        _ => vec![],
    });
    operations.into_iter().find_map(is_foreign)
}

/// Whether a kernel over rows has an operand whose rows differ in shape.
fn differs_in_shape(kernel: OperationRef<'_, '_>) -> bool {
    let arguments = blocks_of(kernel).into_iter().flat_map(arguments_of);
    let mut types = arguments.skip(1).filter_map(TensorType::of_value);
    types.any(|ty| ty.shape.iter().skip(1).any(Option::is_none))
}

/// Says which products keep `f32` although the module asks for less.
fn tell_of_folds(graph: &Graph<'_>, plan: &LaunchPlan<'_>, precision: Precision) {
    let stages = plan.launches.iter().flat_map(|launch| match launch {
        Launch::Rows(rows) => &rows.stages[..],
        Launch::Tile(_) => &[],
    });
    for stage in stages {
        let Stage::Fold(fold) = stage else { continue };
        if let Combiner::Product(op, _) = fold.combiner {
            let message = format!(
                "this product is of f32, not {precision}: it has {} columns, too few for tensor cores",
                graph.nodes[fold.node].shape.last().copied().unwrap_or(1)
            );
            remark(op, &message);
        }
    }
}
