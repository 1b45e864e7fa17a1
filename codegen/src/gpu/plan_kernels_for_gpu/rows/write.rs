//! Declares the memory of a row-wise kernel, and writes tiles of products.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{Builder, Op, Val, region_with_block, results_of};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::loop_level::map_attribute;
use cohort_passes::kernel::rows::graph::Graph;
use cohort_passes::kernel::rows::layout::{Place, View, elem_bytes};
use melior::ir::{
    Attribute, OperationRef, Type, ValueLike,
    attribute::{DenseI64ArrayAttribute, IntegerAttribute},
    operation::OperationLike,
};

use super::chip::Chip;
use super::plan::{LaunchPlan, Segment, Tile};
use super::sizes::sizes;
use crate::emit::Emitter;
use crate::gpu::precision;
use crate::plan_rows::declare::Declared;
use crate::plan_rows::stages;

/// Writes the declarations: what launches touch, and of scratch where it is.
pub fn declare<'a, 'c>(
    e: &Emitter<'c>,
    kernel: OperationRef<'c, 'c>,
    graph: &'a Graph<'c>,
    plan: &'a LaunchPlan<'c>,
    chip: &Chip,
) -> Declared<'a, 'c> {
    let mut declared = Declared::of_rows(e, kernel, graph, &plan.layouts);
    declared.constants(e, &chip.constants);
    declared.scratch(e, |slot| {
        chip.homes[slot].map(|on_chip| match on_chip {
            true => vec![(keys::ON_CHIP, Attribute::unit(e.b.context()))],
            false => vec![],
        })
    });
    declared
}

struct Writer<'s, 'a, 'c> {
    memory: &'s Declared<'a, 'c>,
    tile: &'s Tile<'c>,
    is_rounded: bool,
}

/// Writes the tiles of a launch: sums of products, and what is made of them.
pub fn tiles<'c>(
    e: &Emitter<'c>,
    memory: &Declared<'_, 'c>,
    tile: &Tile<'c>,
    precision: Precision,
) {
    let is_rounded = tile.is_rounded(memory.graph, precision);
    let writer = Writer {
        memory,
        tile,
        is_rounded,
    };
    let (region, block) = region_with_block(&[], e.b.location);
    writer.body(&e.within(block));
    let context = e.b.context();
    let numbers = |values: &[i64]| DenseI64ArrayAttribute::new(context, values).into();
    let number = |value: i64| IntegerAttribute::new(e.i64, value).into();
    let sizes = sizes(tile, precision, is_rounded);
    let (large, from) = sizes.large;
    let mut attributes = vec![
        (keys::OVER, numbers(&tile.domain)),
        (keys::SMALL, numbers(&sizes.small.numbers()[..4])),
        (keys::LARGE, numbers(&large.numbers()[..4])),
        (keys::FROM, number(from)),
    ];
    if let Some((largest, above)) = sizes.largest {
        attributes.extend([
            (keys::LARGEST, numbers(&largest.numbers())),
            (keys::ABOVE, number(above)),
        ]);
    }
    if precision != Precision::F32 {
        attributes.push((keys::ROUNDED, precision::attribute(context, precision)));
    }
    if is_rounded {
        attributes.push((keys::WEIGHTS, Attribute::unit(context)));
    }
    e.b.op(Op::RaggedTiles, &[], &[], &attributes, vec![region]);
}

impl<'c> Writer<'_, '_, 'c> {
    fn body(&self, e: &Emitter<'c>) {
        let sums: Vec<Vec<Val<'c>>> = (self.tile.chains.iter())
            .map(|chain| {
                let values = stages::values(e, self.memory, &chain.init, &|_, _| None);
                let starts: Vec<Val<'c>> =
                    chain.gates.iter().map(|gate| values[gate.init]).collect();
                let gates: Vec<i64> = chain.gates.iter().map(|gate| gate.offset).collect();
                chain.segments.iter().fold(starts, |sums, segment| {
                    self.products(e, segment, &gates, &sums)
                })
            })
            .collect();
        let body = &self.tile.body;
        let values = stages::values(e, self.memory, body, &|buffer, address| {
            let (chain, gate) = self.tile.gate(buffer, address)?;
            Some(sums[chain][gate])
        });
        stages::store(e, self.memory, body, &values);
        e.b.ragged_yield(&[]);
    }

    fn products(
        &self,
        e: &Emitter<'c>,
        segment: &Segment,
        gates: &[i64],
        from: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let graph = self.memory.graph;
        let node = &graph.nodes[segment.product];
        let b: Builder<'c> = e.b.at(node.op.location());
        let context = b.context();
        let columns = node.shape.last().copied().unwrap_or(1);
        let mut copies = vec![self.left_width(segment)];
        copies.extend(
            gates
                .iter()
                .map(|gate| self.right_width(segment, columns, *gate)),
        );
        let number = |value: i64| IntegerAttribute::new(e.i64, value).into();
        let numbers = |values: &[i64]| DenseI64ArrayAttribute::new(context, values).into();
        let map = |offset: i64, strides: &[i64]| {
            map_attribute(context, &Affine::strided(offset, strides), strides.len())
        };
        let left = map(segment.a.offset, &self.outer_strides(&segment.a));
        let right = map(segment.weight.offset, &segment.weight.strides);
        let attributes = [
            (keys::LEFT_ADDRESS, left),
            (keys::RIGHT_ADDRESS, right),
            (keys::K, number(segment.k)),
            (keys::COLUMNS, number(columns)),
            (keys::GATES, numbers(gates)),
            (keys::COPIES, numbers(&copies)),
        ];
        let mut operands = vec![
            self.memory.of_node(segment.a.buffer),
            self.memory.of_node(segment.weight.buffer),
        ];
        operands.extend(from);
        let types: Vec<Type<'c>> = from.iter().map(|value| value.r#type()).collect();
        results_of(b.op(Op::RaggedProducts, &operands, &types, &attributes, vec![]))
    }

    /// How far apart what a view selects is along the loops before the columns.
    fn outer_strides(&self, view: &View) -> Vec<i64> {
        let rank = self.tile.domain.len().saturating_sub(1);
        let strides = view
            .strides
            .split_last()
            .map_or(&[][..], |(_, outer)| outer);
        let mut strides = strides.to_vec();
        strides.resize(rank, 0);
        strides
    }

    /// Elements of a copy of the left side: four neighbouring k where they are 16 aligned bytes.
    fn left_width(&self, segment: &Segment) -> i64 {
        let graph = self.memory.graph;
        let view = &segment.a;
        let row = |id: usize| graph.nodes[id].elements() * elem_bytes(graph.nodes[id].elem);
        let layout = self.memory.layouts.of_node[view.buffer].as_ref();
        let is_aligned = match layout.map(|layout| layout.place) {
            Some(Place::Operand(operand)) => row(graph.operands[operand]) % 16 == 0,
            Some(Place::Result(result)) => row(graph.results[result]) % 16 == 0,
            _ => true,
        };
        let outer = view
            .strides
            .split_last()
            .map_or(&[][..], |(_, outer)| outer);
        let is_wide = is_aligned
            && segment.k % 4 == 0
            && view.offset % 4 == 0
            && outer.iter().all(|stride| stride % 4 == 0);
        if is_wide { 4 } else { 1 }
    }

    /// The same of the columns of a gate. Weights that are rounded are dense.
    fn right_width(&self, segment: &Segment, columns: i64, gate: i64) -> i64 {
        let view = &segment.weight;
        let (first, strides) = match self.is_rounded {
            true => (0, [columns, 1]),
            false => (view.offset, [view.strides[0], view.strides[1]]),
        };
        let is_wide = strides[1] == 1
            && strides[0] % 4 == 0
            && (first + gate) % 4 == 0
            && self.tile.columns() % 4 == 0;
        if is_wide { 4 } else { 1 }
    }
}
