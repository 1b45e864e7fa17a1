//! Writes a `linalg.generic` of any body as it is: one element after another.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Val, arguments_of, extend_block, name_of, operands_of, operations_of, result_of, results_of,
};
use melior::ir::{
    OperationRef, RegionLike, ValueLike, attribute::IntegerAttribute, operation::OperationLike,
};

use super::compute::{Computer, Known, Lanes, element_address, place_of};
use super::frame::{Block, Frame};
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::rows::body::{Body, Store};
use crate::kernel::rows::graph::{Graph, Kind, Linear, Loops, NodeId};
use crate::kernel::rows::layout::Layouts;
use crate::pass::{Outcome, error};
use crate::support::ir::{clone_op, defining_op, key, set_operand};

const SCALAR: Lanes<'static> = Lanes {
    width: Width::Scalar,
    dim: None,
    mask: None,
};

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
        if name_of(inner) == "linalg.index" && !loops.contains(&loop_of(inner)) {
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
        .attribute("dim")
        .ok()
        .and_then(|dim| IntegerAttribute::try_from(dim).ok());
    dim.map_or(0, |dim| dim.value() as usize)
}

pub fn loops<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    node: NodeId,
    body: &Body<'c>,
    inputs: &[usize],
    block: Option<Block<'c>>,
) {
    let Kind::Loops(loops) = &frame.graph.nodes[node].kind else {
        return;
    };
    let results = results_of_loops(frame.graph, frame.layouts, node);
    frame.for_rows(e, block, |e, row| {
        let mut computer = Computer::new(e, frame, body, row);
        for result in results.iter().flatten() {
            computer.touch(e, place_of(frame, *result));
        }
        let starts: Vec<_> = loops
            .inits
            .iter()
            .map(|init| Start::new(e, frame, *init, row))
            .collect();
        let kept: Vec<usize> = (0..loops.domain.len())
            .filter(|dim| !loops.folds[*dim])
            .collect();
        let folded: Vec<usize> = (0..loops.domain.len())
            .filter(|dim| loops.folds[*dim])
            .collect();
        let sizes = |dims: &[usize]| {
            dims.iter()
                .map(|dim| loops.domain[*dim])
                .collect::<Vec<_>>()
        };
        e.for_nest(&sizes(&kept), &[], &mut |e, outer, _| {
            let mut index = vec![Index::constant(0); loops.domain.len()];
            for (dim, at) in kept.iter().zip(outer) {
                index[*dim] = *at;
            }
            let starts: Vec<_> = starts
                .iter()
                .zip(&loops.results)
                .map(|(start, map)| start.load(e, frame, map, &index))
                .collect();
            let ends = e.for_nest(&sizes(&folded), &starts, &mut |e, inner, carried| {
                for (dim, at) in folded.iter().zip(inner) {
                    index[*dim] = *at;
                }
                let mut known = Known::new();
                let mut arguments: Vec<_> = inputs
                    .iter()
                    .map(|input| computer.value(e, *input, &index, SCALAR, &mut known))
                    .collect();
                arguments.extend(carried);
                copy_body(e, loops, &arguments, &index)
            });
            for dim in &folded {
                index[*dim] = Index::constant(0);
            }
            for ((end, map), result) in ends.iter().zip(&loops.results).zip(&results) {
                let Some(result) = result else { continue };
                let Some(layout) = &frame.layouts.of_node[*result] else {
                    continue;
                };
                let address = address(map, 0, &layout.strides, loops.domain.len());
                let elem = frame.graph.nodes[*result].elem;
                let store = Store {
                    place: layout.place,
                    address,
                    value: 0,
                };
                computer.store(e, &store, *end, elem, &index, SCALAR);
            }
            vec![]
        });
    });
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

/// What a result starts from.
enum Start<'c> {
    Constant(Val<'c>),
    Memory { node: NodeId, base: Val<'c> },
}

impl<'c> Start<'c> {
    fn new(
        e: &Emitter<'c>,
        frame: &Frame<'_, 'c>,
        init: NodeId,
        row: Option<super::frame::Row<'c>>,
    ) -> Self {
        let node = &frame.graph.nodes[init];
        if let Kind::Splat(bits) = node.kind {
            return Start::Constant(e.bits(bits, node.elem, Width::Scalar));
        }
        let view = frame.layouts.view(frame.graph, init);
        let view = view.unwrap_or_else(|| unreachable!("a start has memory"));
        let place = place_of(frame, view.buffer);
        let rows = frame.graph.nodes[view.buffer].rows;
        Start::Memory {
            node: init,
            base: frame.address(e, place, row.filter(|_| rows)),
        }
    }

    fn load(
        &self,
        e: &Emitter<'c>,
        frame: &Frame<'_, 'c>,
        map: &[Linear],
        index: &[Index<'c>],
    ) -> Val<'c> {
        match self {
            Start::Constant(value) => *value,
            Start::Memory { node, base } => {
                let elem = frame.graph.nodes[*node].elem;
                let view = frame.layouts.view(frame.graph, *node);
                let view = view.unwrap_or_else(|| unreachable!("a start has memory"));
                let address = address(map, view.offset, &view.strides, index.len());
                let at = element_address(e, *base, &address, elem.bytes() as i64, index);
                e.load_elem(at, elem, Width::Scalar, None)
            }
        }
    }
}

pub fn address(map: &[Linear], offset: i64, strides: &[i64], rank: usize) -> Linear {
    let mut sum = Linear::constant(offset, rank);
    for (linear, stride) in map.iter().zip(strides) {
        sum = sum.plus(&linear.times(*stride));
    }
    sum
}

/// A constant that a body uses from outside of it, which does not outlive the kernel.
fn copy_constant<'c>(e: &Emitter<'c>, value: Val<'c>) -> Option<Val<'c>> {
    let constant = defining_op(value).filter(|op| name_of(*op) == "arith.constant")?;
    Some(result_of(e.b.insert(clone_op(constant)), 0))
}

/// The body's operations on the given values; what it yields.
pub fn copy_body<'c>(
    e: &Emitter<'c>,
    loops: &Loops<'c>,
    arguments: &[Val<'c>],
    index: &[Index<'c>],
) -> Vec<Val<'c>> {
    let Some(block) = loops
        .op
        .regions()
        .next()
        .and_then(|region| region.first_block())
    else {
        return vec![];
    };
    let block = extend_block(block);
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (old, new) in arguments_of(block).into_iter().zip(arguments) {
        values.insert(key(old), *new);
    }
    for op in operations_of(block) {
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
        match name_of(op).as_str() {
            "linalg.yield" => return operands,
            "linalg.index" => {
                let number = loop_of(op);
                let dim = loops
                    .loop_of_dim
                    .iter()
                    .position(|of_dim| *of_dim == number);
                let at = e.index_value(dim.map_or(Index::constant(0), |dim| index[dim]));
                let ty = results_of(op)[0].r#type();
                values.insert(
                    key(results_of(op)[0]),
                    e.b.value("arith.index_cast", &[at], ty),
                );
            }
            _ => {
                let copy = e.b.insert(clone_op(op));
                for (position, operand) in operands.iter().enumerate() {
                    set_operand(copy, position, *operand);
                }
                for (old, new) in results_of(op).into_iter().zip(results_of(copy)) {
                    values.insert(key(old), new);
                }
            }
        }
    }
    vec![]
}
