//! The bodies of structured operations that no stage of its own computes, copied as they are.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Op, Val, arguments_of, extend_block, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::graph::{Graph, Kind, Loops, NodeId};
use cohort_passes::kernel::rows::layout::Layouts;
use cohort_passes::pass::{Outcome, error};
use cohort_passes::support::ir::{clone_op, defining_op, key, set_operand};
use melior::ir::{
    BlockRef, OperationRef, RegionLike, ValueLike, attribute::IntegerAttribute,
    operation::OperationLike,
};

use crate::emit::{Emitter, Index};

/// Refuses what cannot be copied into scalar loops; `loops` are those of the domain.
pub fn check<'c>(op: OperationRef<'c, 'c>, loops: &[usize]) -> Outcome {
    let Some(block) = op.regions().next().and_then(|region| region.first_block()) else {
        return Ok(());
    };
    for inner in operations_of(extend_block(block)) {
        if inner.regions().next().is_some() {
            return Err(error(
                inner,
                "not supported yet: regions in the body of a loop",
            ));
        }
        if Op::LinalgIndex.is(inner) && !loops.contains(&loop_of(inner)) {
            return Err(error(
                inner,
                "not supported yet: the number of the row as a value",
            ));
        }
    }
    Ok(())
}

fn loop_of(index: OperationRef<'_, '_>) -> usize {
    let dim = index
        .attribute(&keys::DIM)
        .ok()
        .and_then(|dim| IntegerAttribute::try_from(dim).ok());
    dim.map_or(0, |dim| dim.value() as usize)
}

/// For each result the node that holds it, if anything reads it.
pub fn results_of_loops(graph: &Graph<'_>, layouts: &Layouts, node: NodeId) -> Vec<Option<NodeId>> {
    let mut results = match &graph.nodes[node].kind {
        Kind::Loops(loops) => vec![None; loops.results.len()],
        _ => vec![],
    };
    for (id, candidate) in graph.nodes.iter().enumerate() {
        match candidate.kind {
            Kind::LoopsResult { loops, result }
                if loops == node && layouts.of_node[id].is_some() =>
            {
                results[result] = Some(id);
            }
            _ => {}
        }
    }
    results
}

pub fn address(map: &[Affine], offset: i64, strides: &[i64]) -> Affine {
    let mut sum = Affine::constant(offset);
    for (linear, stride) in map.iter().zip(strides) {
        sum = sum.plus(&linear.times(*stride));
    }
    sum
}

/// A constant that a body uses from outside of it, which does not outlive the kernel.
fn copy_constant<'c>(e: &Emitter<'c>, value: Val<'c>) -> Option<Val<'c>> {
    let constant = defining_op(value).filter(|op| Op::ArithConstant.is(*op))?;
    Some(result_of(e.b.insert(clone_op(constant)), 0))
}

/// The operations of a loop's body on the given values; what it yields.
pub fn copy_body<'c>(
    e: &Emitter<'c>,
    loops: &Loops<'c>,
    arguments: &[Val<'c>],
    index: &[Index<'c>],
) -> Vec<Val<'c>> {
    let block = loops.op.regions().next();
    let Some(block) = block.and_then(|region| region.first_block()) else {
        return vec![];
    };
    copy_block(e, extend_block(block), arguments, &|number| {
        let mut dims = loops.loop_of_dim.iter();
        let dim = dims.position(|of_dim| *of_dim == number);
        e.index_value(dim.map_or(Index::constant(0), |dim| index[dim]))
    })
}

/// The operations of a block of scalars on the given values, where loops have these indices; what its
/// terminator takes.
pub fn copy_block<'c>(
    e: &Emitter<'c>,
    block: BlockRef<'c, 'c>,
    arguments: &[Val<'c>],
    index: &dyn Fn(usize) -> Val<'c>,
) -> Vec<Val<'c>> {
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (old, new) in arguments_of(block).into_iter().zip(arguments) {
        values.insert(key(old), *new);
    }
    let operations = operations_of(block);
    let last = operations.len().saturating_sub(1);
    for (number, op) in operations.into_iter().enumerate() {
        let operands: Vec<_> = operands_of(op)
            .into_iter()
            .map(|operand| {
                let known = values.get(&key(operand)).copied();
                let value = known.or_else(|| copy_constant(e, operand));
                let value = value.unwrap_or(operand);
                values.insert(key(operand), value);
                value
            })
            .collect();
        if number == last {
            return operands;
        }
        if Op::LinalgIndex.is(op) {
            let result = results_of(op)[0];
            let at = index(loop_of(op));
            values.insert(key(result), e.b.index_cast(at, result.r#type()));
            continue;
        }
        let copy = e.b.insert(clone_op(op));
        for (position, operand) in operands.iter().enumerate() {
            set_operand(copy, position, *operand);
        }
        for (old, new) in results_of(op).into_iter().zip(results_of(copy)) {
            values.insert(key(old), new);
        }
    }
    vec![]
}

/// The loops whose index a body asks for.
pub fn indices_in(op: OperationRef<'_, '_>) -> Vec<usize> {
    let nested = cohort_passes::support::ir::nested_ops(op).into_iter();
    nested
        .filter(|op| Op::LinalgIndex.is(*op))
        .map(loop_of)
        .collect()
}
