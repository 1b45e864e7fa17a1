//! Writes the stages of a plan as operations of the loop level.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::loop_level::map_attribute;
use cohort_passes::kernel::rows::body::{Body, Instruction, ValueId};
use cohort_passes::kernel::rows::graph::{Kind, NodeId};
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::kernel::rows::stage::{
    Combiner, Fold, Product, ReduceRows, Stage, Start, TILE_ROWS, Weight,
};
use cohort_passes::support::ir::blocks_of;
use melior::ir::{
    Attribute, Region, Type,
    attribute::{ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute},
    operation::OperationLike,
};

use super::Schedule;
use super::declare::Declared;
use crate::cpu::plan_kernels::NARROW_ROW_TILE;
use crate::emit::{Emitter, Index, Width};
use crate::generic_body::{address, copy_block, copy_body, indices_in, results_of_loops};

pub fn write<'c>(
    e: &Emitter<'c>,
    memory: &Declared<'_, 'c>,
    schedule: &dyn Schedule<'c>,
    stage: &Stage<'c>,
) {
    let writer = Writer {
        e,
        memory,
        schedule,
    };
    match stage {
        Stage::Group(body) => writer.nest(body),
        Stage::Fold(fold) => writer.fold(fold),
        Stage::ReduceRows(stage) => writer.fold_list(stage),
        Stage::Loops { node, body, inputs } => writer.loops(*node, body, inputs),
        Stage::Pack { body, slot } => writer.pack(body, *slot),
        Stage::Product(product) => writer.product(product),
    }
}

struct Writer<'s, 'a, 'c> {
    e: &'s Emitter<'c>,
    memory: &'s Declared<'a, 'c>,
    schedule: &'s dyn Schedule<'c>,
}

impl<'c> Writer<'_, '_, 'c> {
    fn number(&self, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.e.i64, value).into()
    }

    fn numbers(&self, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(self.e.b.context(), values).into()
    }

    fn map(&self, address: &Affine, rank: usize) -> Attribute<'c> {
        map_attribute(self.e.b.context(), address, rank)
    }

    fn across_rows(&self, chosen: bool) -> Option<(Key<'static>, Attribute<'c>)> {
        chosen.then(|| (keys::ACROSS_ROWS, Attribute::unit(self.e.b.context())))
    }

    fn stage(
        &self,
        kind: Op,
        operands: &[Val<'c>],
        attributes: &[(Key<'_>, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) {
        self.e.b.op(kind, operands, &[], attributes, regions);
    }

    /// A region of scalars that takes such elements and yields what `body` returns.
    fn region(
        &self,
        takes: &[Type<'c>],
        body: impl FnOnce(&Emitter<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Region<'c> {
        let (region, block) = region_with_block(takes, self.e.b.location);
        let inner = self.e.within(block);
        let yields = body(&inner, &arguments_of(block));
        inner.b.ragged_yield(&yields);
        region
    }

    fn values(&self, e: &Emitter<'c>, body: &Body<'c>) -> Vec<Val<'c>> {
        values(e, self.memory, body, &|_, _| None)
    }

    /// A region that yields one value of a body.
    fn value_region(&self, body: &Body<'c>, value: ValueId) -> Region<'c> {
        self.region(&[], |e, _| vec![self.values(e, body)[value]])
    }

    fn nest(&self, body: &Body<'c>) {
        let chosen = self.schedule.nest(body);
        let body = chosen.body;
        let region = self.region(&[], |e, _| {
            let values = self.values(e, &body);
            store(e, self.memory, &body, &values);
            vec![]
        });
        let mut attributes = vec![(keys::OVER, self.numbers(&body.domain))];
        attributes.extend(
            chosen
                .lanes
                .map(|dim| (keys::LANES, self.number(dim as i64))),
        );
        attributes.extend(chosen.by.map(|by| (keys::BY, self.number(by))));
        attributes.extend(self.across_rows(chosen.across_rows));
        self.stage(Op::RaggedNest, &[], &attributes, vec![region]);
    }

    /// Where a node with memory of its own is stored.
    fn whole(&self, node: NodeId) -> (Val<'c>, Attribute<'c>) {
        let layout = self.memory.layouts.of_node[node].as_ref();
        let layout = layout.unwrap_or_else(|| unreachable!("node {node} has memory"));
        let address = Affine::strided(0, &layout.strides);
        let map = self.map(&address, layout.strides.len());
        (self.memory.of_place(layout.place), map)
    }

    fn fold(&self, fold: &Fold<'c>) {
        let (memory, address) = self.whole(fold.node);
        let start = self.value_region(&fold.init, fold.init_value);
        let element = self
            .e
            .elem_type(fold.body.values[fold.input].1, Width::Scalar);
        let step = self.region(&[element], |e, folded| {
            let values = self.values(e, &fold.body);
            let value = values[fold.input];
            vec![match fold.combiner {
                Combiner::Operation(op) => e.repeat(op, &[folded[0], value], element),
                Combiner::Product(op, factor) => {
                    let b = e.b.at(op.location());
                    let product = b.mulf(value, values[factor]);
                    b.addf(folded[0], product)
                }
            }]
        });
        let dims: Vec<i64> = fold.dims.iter().map(|dim| *dim as i64).collect();
        let chosen = self.schedule.fold(fold);
        let mut attributes = vec![
            (keys::OVER, self.numbers(&fold.body.domain)),
            (keys::FOLDING, self.numbers(&dims)),
            (keys::ADDRESS, address),
            (keys::VECTORS, self.number(chosen.vectors)),
            (keys::NEIGHBOURS, self.number(chosen.neighbours)),
        ];
        if let Some(lanes) = chosen.lanes {
            attributes.push((keys::LANES, self.number(lanes as i64)));
        }
        attributes.extend(self.across_rows(chosen.across_rows));
        self.stage(Op::RaggedFold, &[memory], &attributes, vec![start, step]);
    }

    fn fold_list(&self, stage: &ReduceRows<'c>) {
        let (memory, address) = self.whole(stage.node);
        let node = &self.memory.graph.nodes[stage.node];
        let start = self.value_region(&stage.init, stage.init_value);
        let element = self.e.elem_type(node.elem, Width::Scalar);
        let step = self.region(&[element, element], |e, arguments| {
            let body = blocks_of(stage.op).first().copied();
            body.map_or(vec![], |body| copy_block(e, body, arguments, &|_| e.int(0)))
        });
        let vectors = self.schedule.list(stage, &node.shape);
        let attributes = [
            (keys::OVER, self.numbers(&node.shape)),
            (keys::ADDRESS, address),
            (keys::VECTORS, self.number(vectors)),
        ];
        let operands = [self.memory.operands[stage.list], memory];
        self.stage(
            Op::RaggedFoldList,
            &operands,
            &attributes,
            vec![start, step],
        );
    }

    fn loops(&self, id: NodeId, body: &Body<'c>, inputs: &[usize]) {
        let (graph, layouts) = (self.memory.graph, self.memory.layouts);
        let Kind::Loops(loops) = &graph.nodes[id].kind else {
            return;
        };
        let rank = loops.domain.len();
        let elements = loops.inits.iter().map(|init| graph.nodes[*init].elem);
        let elements: Vec<Elem> = elements.collect();
        let start = self.region(&[], |e, _| {
            let starts = loops.inits.iter().zip(&loops.results).zip(&elements);
            let starts = starts.map(|((init, map), elem)| {
                if let Kind::Splat(bits) = graph.nodes[*init].kind {
                    return e.bits(bits, *elem, Width::Scalar);
                }
                let view = layouts.view(graph, *init);
                let view = view.unwrap_or_else(|| unreachable!("a start has memory"));
                let address = address(map, view.offset, &view.strides);
                load(e, self.memory.of_node(view.buffer), (&address, rank), *elem)
            });
            starts.collect()
        });
        let types: Vec<_> = elements
            .iter()
            .map(|elem| self.e.elem_type(*elem, Width::Scalar))
            .collect();
        let step = self.region(&types, |e, folded| {
            let values = self.values(e, body);
            let mut arguments: Vec<_> = inputs.iter().map(|input| values[*input]).collect();
            arguments.extend(folded);
            let asked = indices_in(loops.op);
            let index: Vec<_> = (0..rank)
                .map(|dim| Index {
                    value: asked.contains(&loops.loop_of_dim[dim]).then(|| {
                        let attributes = [(keys::DIM, self.number(dim as i64))];
                        e.b.value_with(Op::RaggedIndex, &[], e.i64, &attributes)
                    }),
                    constant: 0,
                })
                .collect();
            copy_body(e, loops, &arguments, &index)
        });
        let (mut memories, mut addresses, mut stored) = (vec![], vec![], vec![]);
        let results = results_of_loops(graph, layouts, id);
        for (number, (result, map)) in results.iter().zip(&loops.results).enumerate() {
            let layout = result.and_then(|node| layouts.of_node[node].as_ref());
            let Some(layout) = layout else { continue };
            memories.push(self.memory.of_place(layout.place));
            addresses.push(self.map(&address(map, 0, &layout.strides), rank));
            stored.push(number as i64);
        }
        let folding: Vec<i64> = (0..rank)
            .filter(|dim| loops.folds[*dim])
            .map(|dim| dim as i64)
            .collect();
        let context = self.e.b.context();
        let attributes = [
            (keys::OVER, self.numbers(&loops.domain)),
            (keys::FOLDING, self.numbers(&folding)),
            (
                keys::ADDRESSES,
                ArrayAttribute::new(context, &addresses).into(),
            ),
            (keys::STORED, self.numbers(&stored)),
        ];
        self.stage(Op::RaggedLoops, &memories, &attributes, vec![start, step]);
    }

    fn pack(&self, body: &Body<'c>, slot: usize) {
        let Some(store) = body.stores.first() else {
            return;
        };
        let memory = self.memory.of_place(Place::Slot(slot));
        let attributes = [(keys::OVER, self.numbers(&body.domain))];
        let region = self.value_region(body, store.value);
        self.stage(Op::RaggedPackPanels, &[memory], &attributes, vec![region]);
    }

    fn product(&self, product: &Product) {
        let left = self.memory.of_node(product.a.buffer);
        let stride = match product.rows {
            1 => 0,
            _ => product.a_stride,
        };
        let address = Affine::strided(product.a.offset, &[stride]);
        let (right, row, tile) = match &product.weight {
            Weight::Panels {
                param,
                offset,
                width,
                ..
            } => {
                let tile = match width {
                    1 => NARROW_ROW_TILE,
                    _ => TILE_ROWS,
                };
                (self.memory.panels[param], *offset, tile)
            }
            Weight::Packed { slot } => {
                let slot = Place::Slot(*slot);
                (self.memory.of_place(slot), 0, TILE_ROWS)
            }
        };
        let mut operands = vec![left, right];
        let mut attributes = vec![
            (keys::ADDRESS, self.map(&address, 1)),
            (keys::ROWS, self.number(product.rows)),
            (keys::K, self.number(product.k)),
            (keys::COLUMNS, self.number(product.columns)),
            (keys::ROW, self.number(row)),
            (keys::TILE, self.number(tile)),
        ];
        match &product.start {
            Start::Zero => {}
            Start::InPlace => attributes.push((keys::ONTO, Attribute::unit(self.e.b.context()))),
            Start::Shared { buffer, offset } => {
                operands.push(self.memory.of_node(*buffer));
                attributes.push((keys::OFFSET, self.number(*offset)));
            }
        }
        operands.push(self.memory.of_place(product.c));
        self.stage(Op::RaggedProduct, &operands, &attributes, vec![]);
    }
}

/// All values of a body. `held` tells of loads whose values are in no memory.
pub fn values<'c>(
    e: &Emitter<'c>,
    memory: &Declared<'_, 'c>,
    body: &Body<'c>,
    held: &dyn Fn(NodeId, &Affine) -> Option<Val<'c>>,
) -> Vec<Val<'c>> {
    let mut values: Vec<Val<'c>> = Vec::new();
    let load = |memory, address: &Affine, elem| load(e, memory, (address, body.domain.len()), elem);
    for (instruction, elem) in &body.values {
        values.push(match instruction {
            Instruction::Splat(bits) => e.bits(*bits, *elem, Width::Scalar),
            Instruction::HostScalar(operand) => {
                let only = Affine::constant(0);
                load(memory.operands[*operand], &only, *elem)
            }
            Instruction::Load { buffer, address } => held(*buffer, address)
                .unwrap_or_else(|| load(memory.of_node(*buffer), address, *elem)),
            Instruction::Pointwise { op, inputs } => {
                let inputs: Vec<_> = inputs.iter().map(|input| values[*input]).collect();
                e.repeat(*op, &inputs, e.elem_type(*elem, Width::Scalar))
            }
        });
    }
    values
}

/// Loads the element at an address over a number of dims.
fn load<'c>(
    e: &Emitter<'c>,
    memory: Val<'c>,
    (address, rank): (&Affine, usize),
    elem: Elem,
) -> Val<'c> {
    let ty = e.elem_type(elem, Width::Scalar);
    let map = map_attribute(e.b.context(), address, rank);
    e.b.value_with(Op::RaggedLoad, &[memory], ty, &[(keys::ADDRESS, map)])
}

/// Stores what a body stores of its values.
pub fn store<'c>(e: &Emitter<'c>, memory: &Declared<'_, 'c>, body: &Body<'c>, values: &[Val<'c>]) {
    for store in &body.stores {
        let operands = [values[store.value], memory.of_place(store.place)];
        let address = map_attribute(e.b.context(), &store.address, body.domain.len());
        e.b.op(
            Op::RaggedStore,
            &operands,
            &[],
            &[(keys::ADDRESS, address)],
            vec![],
        );
    }
}
