//! Declares the memory of a kernel: operands, results, parameters and constants, scratch.

use std::collections::{BTreeMap, HashMap};

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::call_shape::{self, Taken};
use cohort_passes::kernel::loop_level::{Memory, OperandKind};
use cohort_passes::kernel::rows::graph::{Graph, Kind, NodeId};
use cohort_passes::kernel::rows::layout::{Layouts, Place, round_up};
use cohort_passes::kernel::rows::stage::{PANEL, Stage, Start, Weight};
use melior::ir::{
    Attribute, OperationRef,
    attribute::{AttributeLike, FlatSymbolRefAttribute, IntegerAttribute},
    operation::OperationLike,
    r#type::IntegerType,
};

use crate::emit::Emitter;

/// The values that are the memory of a kernel.
pub struct Declared<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub layouts: &'a Layouts,
    pub operands: Vec<Val<'c>>,
    results: Vec<Val<'c>>,
    plain: HashMap<NodeId, Val<'c>>,
    /// Packed panels of a parameter.
    pub panels: HashMap<NodeId, Val<'c>>,
    slots: HashMap<usize, Val<'c>>,
}

impl<'c> Declared<'_, 'c> {
    pub fn of_place(&self, place: Place) -> Val<'c> {
        match place {
            Place::Operand(operand) => self.operands[operand],
            Place::Result(result) => self.results[result],
            Place::Constant(node) => self.plain[&node],
            Place::Slot(slot) => self.slots[&slot],
            Place::Sum(_) => unreachable!("sums are in no memory"),
        }
    }

    /// The memory of a node.
    pub fn of_node(&self, node: NodeId) -> Val<'c> {
        let layout = self.layouts.of_node[node].as_ref();
        let layout = layout.unwrap_or_else(|| unreachable!("node {node} has memory"));
        self.of_place(layout.place)
    }
}

/// Writes the declarations, in the order of what the kernel's function gets.
pub fn declare<'a, 'c>(
    e: &Emitter<'c>,
    kernel: OperationRef<'c, 'c>,
    graph: &'a Graph<'c>,
    layouts: &'a Layouts,
    stages: impl Iterator<Item = &'a Stage<'c>> + Clone,
) -> Declared<'a, 'c>
where
    'c: 'a,
{
    let mut declared = Declared::of_rows(e, kernel, graph, layouts);
    let mut constants = Constants {
        e,
        declared: &mut declared,
        known: HashMap::new(),
    };
    for stage in stages.clone() {
        constants.of_stage(stage);
    }
    declared.slots = slots(e, graph, layouts, stages);
    declared
}

impl<'a, 'c> Declared<'a, 'c> {
    /// Declares operands and results.
    pub fn of_rows(
        e: &Emitter<'c>,
        kernel: OperationRef<'c, 'c>,
        graph: &'a Graph<'c>,
        layouts: &'a Layouts,
    ) -> Self {
        let taken = call_shape::of(kernel);
        let operands = graph.operands.iter().enumerate().map(|(number, id)| {
            let kind = match (taken.taken(number), &graph.nodes[*id].kind) {
                (Taken::Length, _) => OperandKind::Length,
                (Taken::Expanded, _) => OperandKind::Expanded,
                (Taken::Stacked, _) => OperandKind::Stacked,
                (Taken::Once, Kind::HostScalar(_)) => OperandKind::Scalar,
                (Taken::Once, Kind::List(_)) => OperandKind::List,
                (Taken::Once, _) => OperandKind::Row,
            };
            let i32 = IntegerType::new(e.b.context(), 32).into();
            let kind = IntegerAttribute::new(i32, kind as i64).into();
            memory(
                e,
                Op::RaggedOperand,
                &row_of(graph, *id),
                &[(keys::KIND, kind)],
            )
        });
        let operands = operands.collect();
        let results = graph.results.iter();
        let results = results.map(|id| memory(e, Op::RaggedResult, &row_of(graph, *id), &[]));
        let results = results.collect();
        Declared {
            graph,
            layouts,
            operands,
            results,
            plain: HashMap::new(),
            panels: HashMap::new(),
            slots: HashMap::new(),
        }
    }

    /// Declares constants as they are.
    pub fn constants(&mut self, e: &Emitter<'c>, nodes: &[NodeId]) {
        let mut constants = Constants {
            e,
            declared: self,
            known: HashMap::new(),
        };
        for node in nodes {
            let plain = constants.of_node(*node, None);
            constants
                .declared
                .plain
                .extend(plain.map(|value| (*node, value)));
        }
    }

    /// Declares the scratch of which something is known, with the attributes that say it.
    pub fn scratch(
        &mut self,
        e: &Emitter<'c>,
        known: impl Fn(usize) -> Option<Vec<(Key<'static>, Attribute<'c>)>>,
    ) {
        let contents = contents(self.graph, self.layouts);
        for (slot, mut content) in contents {
            if let Some(attributes) = known(slot) {
                content.rows = self.layouts.slots[slot].rows;
                let value = memory(e, Op::RaggedScratch, &content, &attributes);
                self.slots.insert(slot, value);
            }
        }
    }
}

fn memory<'c>(
    e: &Emitter<'c>,
    kind: Op,
    memory: &Memory,
    attributes: &[(Key<'_>, Attribute<'c>)],
) -> Val<'c> {
    let ty = memory.to_type(e.b.context());
    e.b.value_with(kind, &[], ty, attributes)
}

/// The rows of an operand or of a result.
fn row_of(graph: &Graph<'_>, id: NodeId) -> Memory {
    let node = &graph.nodes[id];
    Memory {
        rows: true,
        shape: node.shape.clone(),
        elem: node.elem,
    }
}

/// Declares the constants that the kernel's stages touch, each once.
struct Constants<'s, 'a, 'c> {
    e: &'s Emitter<'c>,
    declared: &'s mut Declared<'a, 'c>,
    /// By their attribute, and the columns of their panels.
    known: HashMap<(usize, Option<i64>), Val<'c>>,
}

impl<'c> Constants<'_, '_, 'c> {
    fn of_stage(&mut self, stage: &Stage<'c>) {
        let (graph, layouts) = (self.declared.graph, self.declared.layouts);
        let mut buffers: Vec<NodeId> = match stage {
            Stage::Group(body) | Stage::Pack { body, .. } => body.buffers().collect(),
            Stage::Loops { body, node, .. } => {
                let inits = match &graph.nodes[*node].kind {
                    Kind::Loops(loops) => loops.inits.as_slice(),
                    _ => &[],
                };
                let views = inits.iter().filter_map(|init| layouts.view(graph, *init));
                let views = views.map(|view| view.buffer);
                body.buffers().chain(views).collect()
            }
            Stage::ReduceRows(stage) => stage.init.buffers().collect(),
            Stage::Fold(fold) => fold.body.buffers().chain(fold.init.buffers()).collect(),
            Stage::Product(product) => {
                if let Weight::Panels { param, width, .. } = product.weight {
                    let panels = self.of_node(param, Some(width));
                    self.declared
                        .panels
                        .extend(panels.map(|value| (param, value)));
                }
                let start = match product.start {
                    Start::Shared { buffer, .. } => Some(buffer),
                    _ => None,
                };
                start.into_iter().chain([product.a.buffer]).collect()
            }
        };
        buffers.sort_unstable();
        for buffer in buffers {
            let layout = layouts.of_node[buffer].as_ref();
            if layout.is_some_and(|layout| matches!(layout.place, Place::Constant(_))) {
                let plain = self.of_node(buffer, None);
                self.declared
                    .plain
                    .extend(plain.map(|value| (buffer, value)));
            }
        }
    }

    fn of_node(&mut self, id: NodeId, panels: Option<i64>) -> Option<Val<'c>> {
        let e = self.e;
        let node = &self.declared.graph.nodes[id];
        let (name, key, value): (_, _, Attribute<'c>) = match &node.kind {
            Kind::Param(param) => {
                let symbol = FlatSymbolRefAttribute::new(e.b.context(), param);
                (Op::RaggedParam, keys::PARAM, symbol.into())
            }
            Kind::Dense => (
                Op::RaggedConstant,
                keys::VALUE,
                node.op.attribute(&keys::VALUE).ok()?,
            ),
            _ => return None,
        };
        let shared = Memory {
            rows: false,
            shape: node.shape.clone(),
            elem: node.elem,
        };
        let panels_attribute = panels.map(|width| IntegerAttribute::new(e.i64, width).into());
        let attributes: Vec<_> = [(key, value)]
            .into_iter()
            .chain(panels_attribute.map(|width| (keys::PANELS, width)))
            .collect();
        let known = (value.to_raw().ptr as usize, panels);
        let declare = || memory(e, name, &shared, &attributes);
        Some(*self.known.entry(known).or_insert_with(declare))
    }
}

/// Scratch has the shape of what is in it: of a product with padded rows.
fn contents(graph: &Graph<'_>, layouts: &Layouts) -> BTreeMap<usize, Memory> {
    let mut contents = BTreeMap::new();
    for (node, layout) in graph.nodes.iter().zip(&layouts.of_node) {
        let Some(Place::Slot(slot)) = layout.as_ref().map(|layout| layout.place) else {
            continue;
        };
        let mut shape = node.shape.clone();
        if let (Kind::Product { .. }, Some(last)) = (&node.kind, shape.last_mut()) {
            *last = round_up(*last, cohort_passes::kernel::rows::layout::LANES);
        }
        contents.entry(slot).or_insert(Memory {
            rows: node.rows,
            shape,
            elem: node.elem,
        });
    }
    contents
}

/// The scratch of a kernel, packed weights as whole panels.
fn slots<'a, 'c: 'a>(
    e: &Emitter<'c>,
    graph: &Graph<'c>,
    layouts: &Layouts,
    stages: impl Iterator<Item = &'a Stage<'c>>,
) -> HashMap<usize, Val<'c>> {
    let mut contents = contents(graph, layouts);
    for stage in stages {
        if let Stage::Pack { body, slot } = stage {
            let [k, columns] = body.domain[..] else {
                continue;
            };
            contents.insert(
                *slot,
                Memory {
                    rows: false,
                    shape: vec![k, round_up(columns, PANEL)],
                    elem: Elem::F32,
                },
            );
        }
    }
    let slots = contents.into_iter().map(|(number, content)| {
        let product_rows = layouts.slots[number].product_rows;
        let products = IntegerAttribute::new(e.i64, product_rows).into();
        let attributes: &[_] = match product_rows {
            0 => &[],
            _ => &[(keys::PRODUCTS, products)],
        };
        (number, memory(e, Op::RaggedScratch, &content, attributes))
    });
    slots.collect()
}
