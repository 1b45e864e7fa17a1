//! Plans a kernel whose unit is the call, for the CPU or a GPU: declares the memory that it touches, and writes
//! each part of its results as the first of these that fits:
//!
//! * a softmax-like chain between two products, where `online-folds` has asked for it ([`online`]);
//! * a product and anything elementwise behind it ([`matmul`]);
//! * a nest of loops over the dims of a call, with folds where their index is known.

mod division;
mod given;
mod matmul;
mod online;
mod parts;
mod scalars;

use std::cell::RefCell;
use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::{Elem, Extent};
use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block};
use melior::ir::{
    Attribute, OperationRef, Region, Type,
    attribute::{
        ArrayAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute,
        StringAttribute,
    },
    operation::OperationLike,
    r#type::IntegerType,
};

use crate::codegen::emit::{Emitter, Width};
use crate::kernel::calls::graph::{Form, Graph, Index, Kind, NodeId, Size, Var};
use crate::kernel::calls::lanes::{Layouts, dense};
use crate::kernel::calls::stages::{Calls, Matmul, Nest, OnlineSoftmax, Side, Stage, Store};
use crate::kernel::calls::{padding, read};
use crate::kernel::loop_level::{KERNEL, Memory, OperandKind};
use crate::kernel::rows::layout::LANES;
use crate::pass::{Failed, Outcome};
use crate::support::ir::attributes_without;
use given::Given;
use parts::{Part, Window, index_of, sizes_of};
use scalars::Scalars;

/// What a kernel is planned for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Cpu,
    /// With products in this precision.
    Gpu(Precision),
}

impl Target {
    /// Whether a loop may run in vectors, rather than in threads.
    fn has_vectors(self) -> bool {
        self == Target::Cpu
    }
}

/// How a part of a result is computed.
enum Plan {
    Loops,
    Matmul(matmul::Plan),
    Online(online::Plan),
}

impl Plan {
    fn new(graph: &Graph<'_>, node: NodeId, windows: &[Window], target: Target) -> Plan {
        let online = online::plan(graph, node, windows, target).map(Plan::Online);
        let plan = online.or_else(|| matmul::plan(graph, node, windows, target).map(Plan::Matmul));
        plan.unwrap_or(Plan::Loops)
    }
}

/// A node that lies in memory, and what is added to its index there.
struct Shifted {
    node: NodeId,
    by: Vec<i64>,
    /// The only index there that may be read, where others are not at hand.
    own: Option<Vec<Index>>,
}

impl Shifted {
    /// Where the node's element lies.
    fn index(&self, at: &[Index]) -> Vec<Index> {
        let by = at.iter().zip(&self.by);
        by.map(|(index, by)| index.clone().plus(&Index::constant(*by)))
            .collect()
    }

    /// Whether a node's element lies there, and need not be computed.
    fn stands_for(&self, node: NodeId, at: &[Index]) -> bool {
        let is_at_hand = |own: &Vec<Index>| *own == self.index(at);
        self.node == node && self.own.as_ref().is_none_or(is_at_hand)
    }
}

/// Adds a kernel of level 2 at the loop level; `scalars` tells which of its records' operands are host scalars.
pub fn plan<'c>(
    to: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
    target: Target,
) -> Outcome {
    let context = to.context();
    let (graph, parts) = parts::plan(kernel, scalars, |graph, node, windows| {
        Plan::new(graph, node, windows, target)
    })?;
    let calls = match target {
        Target::Cpu => calls(kernel, &graph, &parts)?,
        // They are cut into tiles, and counted as the CPU's are.
        Target::Gpu(_) => Calls::default(),
    };
    let (region, block) = region_with_block(&[], kernel.location());
    let (calls_region, stages) = region_with_block(&[], kernel.location());
    let names = read::length_names(kernel);
    let writer = Writer {
        e: Emitter::new(Builder::at_end(context, block, kernel.location())),
        graph: &graph,
        names: &names,
        given: &RefCell::new(Given::new(graph.lengths)),
        target,
    };
    let (memory, results) = writer.declare();
    let within = Writer {
        e: writer.e.within(stages),
        ..writer
    };
    let memory = Declared { memory, results };
    for part in &parts {
        within.part(part, &memory);
    }
    let mut attributes = writer.attributes_of_calls(&calls);
    let given = writer.given.borrow().attribute(context);
    attributes.extend(given.map(|given| ("given", given)));
    writer
        .e
        .b
        .op("ragged.calls", &[], &[], &attributes, vec![calls_region]);
    let mut attributes = attributes_without(kernel, &["sym_name"]);
    attributes.push((
        "sym_name".into(),
        StringAttribute::new(context, name).into(),
    ));
    let attributes: Vec<_> = attributes
        .iter()
        .map(|(name, attribute)| (name.as_str(), *attribute))
        .collect();
    to.at(kernel.location())
        .op(KERNEL, &[], &[], &attributes, vec![region]);
    Ok(())
}

/// How the calls of a kernel are computed and counted.
fn calls<'c>(
    kernel: OperationRef<'c, 'c>,
    graph: &Graph<'c>,
    parts: &[Part],
) -> Result<Calls, Failed> {
    let flops = division::flops(graph);
    Ok(Calls {
        division: division::of(graph, parts, &flops),
        flops: flops.into_iter().map(|(_, flops)| flops).collect(),
        padding: padding::of(kernel)?,
        ..Calls::default()
    })
}

/// The nest that computes a part of a result, with vectors where they are stored side by side.
fn nest_of(graph: &Graph<'_>, result: usize, windows: &[Window], target: Target) -> Nest {
    let value = graph.results[result];
    let over = sizes_of(windows);
    let known: Vec<_> = over.iter().map(|size| size.known()).collect();
    let below = |var: Var| windows.get(var)?.size.known();
    let layouts = Layouts::new(graph, HashMap::new());
    let of_result = dense(&graph.nodes[value].shape);
    let lanes = || layouts.lanes_of_stores(value, &known, &of_result, &below);
    Nest {
        over,
        store: Store {
            lanes: target.has_vectors().then(lanes).flatten(),
            value,
            at: index_of(windows),
            result,
            to: index_of(windows),
        },
    }
}

/// The memory of each node, and of each result.
struct Declared<'c> {
    memory: HashMap<NodeId, Val<'c>>,
    results: Vec<Val<'c>>,
}

struct Writer<'a, 'c> {
    e: Emitter<'c>,
    graph: &'a Graph<'c>,
    names: &'a [String],
    /// What maps take for granted.
    given: &'a RefCell<Given>,
    target: Target,
}

impl<'c> Writer<'_, 'c> {
    fn number(&self, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.e.i64, value).into()
    }

    fn numbers(&self, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(self.e.b.context(), values).into()
    }

    fn name(&self, length: usize) -> Attribute<'c> {
        FlatSymbolRefAttribute::new(self.e.b.context(), &self.names[length]).into()
    }

    /// The names of those of a call's dims that are lengths, if there are any.
    fn names_of(&self, shape: &[Size]) -> Option<Attribute<'c>> {
        let lengths = shape.iter().filter_map(|size| match size {
            Size::Length(length) => Some(self.name(*length)),
            Size::Known(_) => None,
        });
        let names: Vec<_> = lengths.collect();
        let names = || ArrayAttribute::new(self.e.b.context(), &names).into();
        (!names_is_empty(shape)).then(names)
    }

    /// Loops over dims: their sizes, and the names of lengths.
    fn extents(&self, over: &[Size]) -> Vec<(&'static str, Attribute<'c>)> {
        let mut attributes = vec![("over", self.numbers(&sizes(over)))];
        attributes.extend(self.names_of(over).map(|names| ("dims", names)));
        attributes
    }

    /// Declares the memory of the kernel: that of each node, and of each result.
    fn declare(&self) -> (HashMap<NodeId, Val<'c>>, Vec<Val<'c>>) {
        let mut memory = HashMap::new();
        for (node, form) in &self.graph.operands {
            let kind = match form {
                Form::Length => OperandKind::Length,
                Form::Scalar => OperandKind::Scalar,
                Form::Row => OperandKind::Row,
                Form::Ragged => OperandKind::Expanded,
            };
            let i32 = IntegerType::new(self.e.b.context(), 32).into();
            let kind = IntegerAttribute::new(i32, kind as i64).into();
            memory.insert(
                *node,
                self.memory("ragged.operand", *node, true, Some(("kind", kind))),
            );
        }
        let results = self.graph.results.iter();
        let results = results.map(|node| self.memory("ragged.result", *node, true, None));
        let results = results.collect();
        for (node, of_node) in self.graph.nodes.iter().enumerate() {
            let (name, key, value) = match &of_node.kind {
                Kind::Param(param) => {
                    let symbol = FlatSymbolRefAttribute::new(self.e.b.context(), param);
                    ("ragged.param", "param", symbol.into())
                }
                Kind::Dense(_) => match of_node.op.attribute("value") {
                    Ok(value) => ("ragged.constant", "value", value),
                    Err(_) => continue,
                },
                _ => continue,
            };
            memory.insert(node, self.memory(name, node, false, Some((key, value))));
        }
        (memory, results)
    }

    fn memory(
        &self,
        name: &str,
        node: NodeId,
        rows: bool,
        attribute: Option<(&str, Attribute<'c>)>,
    ) -> Val<'c> {
        let of_node = &self.graph.nodes[node];
        let memory = Memory {
            rows,
            shape: sizes(&of_node.shape),
            elem: of_node.elem,
        };
        let names = self.names_of(&of_node.shape).map(|names| ("dims", names));
        let attributes: Vec<_> = attribute.into_iter().chain(names).collect();
        self.e
            .b
            .value_with(name, &[], memory.to_type(self.e.b.context()), &attributes)
    }

    fn part(&self, part: &Part, memory: &Declared<'c>) {
        let (graph, windows) = (self.graph, &part.windows[..]);
        match &part.plan {
            Plan::Loops => {
                self.nest(&nest_of(graph, part.result, windows, self.target), memory);
            }
            Plan::Matmul(plan) => {
                for stage in plan.stages(graph, part.result, windows) {
                    match stage {
                        Stage::Nest(nest) => self.nest(&nest, memory),
                        Stage::Matmul(matmul) => self.matmul(&matmul, plan.sums(windows), memory),
                        Stage::Online(_) => {}
                    }
                }
            }
            Plan::Online(plan) => {
                let product = plan.product(graph, windows.len());
                let stage = plan.stage(graph, part.result, windows);
                if let (Some(Stage::Online(online)), Some(product)) = (stage, product) {
                    self.online(&online, product, plan.sums(), memory);
                }
            }
        }
    }

    /// A region over loops that takes such values, and yields what `body` returns.
    fn region(
        &self,
        memory: &Declared<'c>,
        over: &[Size],
        takes: &[Type<'c>],
        body: impl FnOnce(&mut Scalars<'_, 'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Region<'c> {
        let (region, block) = region_with_block(takes, self.e.b.location);
        let inner = self.e.within(block);
        let mut scalars = Scalars::new(self, inner, &memory.memory, over);
        let yields = body(&mut scalars, &arguments_of(block));
        inner.b.ragged_yield(&yields);
        region
    }

    fn side(&self, memory: &Declared<'c>, over: &[Size], side: &Side) -> Region<'c> {
        self.region(memory, over, &[], |scalars, _| {
            vec![scalars.value(side.value, &side.at)]
        })
    }

    /// The map to an element of a result from such loops.
    fn address(&self, result: usize, at: &[Index], over: &[Size]) -> Attribute<'c> {
        let vars: Vec<Var> = (0..over.len()).collect();
        self.given.borrow_mut().take(self.shape(result), at, over);
        scalars::map(self.e.b.context(), at, &vars)
    }

    fn shape(&self, result: usize) -> &[Size] {
        &self.graph.nodes[self.graph.results[result]].shape
    }

    fn nest(&self, nest: &Nest, memory: &Declared<'c>) {
        let store = &nest.store;
        let to = ("address", self.address(store.result, &store.to, &nest.over));
        let region = self.region(memory, &nest.over, &[], |scalars, _| {
            let value = scalars.value(store.value, &store.at);
            let operands = [value, memory.results[store.result]];
            let b = scalars.outermost().b;
            b.op("ragged.store", &operands, &[], &[to], vec![]);
            vec![]
        });
        let mut attributes = self.extents(&nest.over);
        attributes.push(("by", self.number(LANES)));
        attributes.extend(
            store
                .lanes
                .map(|lanes| ("lanes", self.number(lanes as i64))),
        );
        self.e
            .b
            .op("ragged.nest", &[], &[], &attributes, vec![region]);
    }

    /// What is set, of marks of a stage.
    fn marks(&self, marks: &[(&'static str, bool)]) -> Vec<(&'static str, Attribute<'c>)> {
        let unit = Attribute::unit(self.e.b.context());
        let set = marks.iter().filter(|(_, set)| *set);
        set.map(|(name, _)| (*name, unit)).collect()
    }

    fn matmul(&self, matmul: &Matmul, sums: Shifted, memory: &Declared<'c>) {
        let result = memory.results[matmul.result];
        let mut over = matmul.over.clone();
        over.push(matmul.depth);
        let left = self.side(memory, &over, &matmul.left);
        let right = self.side(memory, &over, &matmul.right);
        let finish = matmul.finish.as_ref().map(|finish| {
            self.region(memory, &matmul.over, &[], |scalars, _| {
                scalars.sums(sums, result, self.shape(matmul.result));
                vec![scalars.value(finish.value, &finish.at)]
            })
        });
        let mut attributes = self.extents(&matmul.over);
        attributes.push(("depth", self.numbers(&sizes(&[matmul.depth]))));
        let names = self.names_of(&[matmul.depth]);
        attributes.extend(names.map(|names| ("depth_dims", names)));
        attributes.push(("blocks", self.numbers(&matmul.blocks)));
        attributes.push((
            "address",
            self.address(matmul.result, &matmul.to, &matmul.over),
        ));
        attributes.extend(matmul.until.map(|until| ("until", self.number(until))));
        let lanes = matmul.finish.as_ref().and_then(|finish| finish.lanes);
        attributes.extend(lanes.map(|lanes| ("lanes", self.number(lanes as i64))));
        attributes.extend(self.marks(&[
            ("onto", matmul.onto),
            ("left_along_depth", matmul.left.along_depth),
            ("right_along_depth", matmul.right.along_depth),
            ("by_rows", matmul.by_rows),
        ]));
        let regions = vec![left, right, finish.unwrap_or_default()];
        self.e
            .b
            .op("ragged.matmul", &[result], &[], &attributes, regions);
    }

    fn online(
        &self,
        online: &OnlineSoftmax,
        product: (NodeId, Vec<Index>),
        sums: Shifted,
        memory: &Declared<'c>,
    ) {
        let mut of_keys = online.over.clone();
        of_keys.push(online.keys);
        let mut of_terms = of_keys.clone();
        of_terms.push(Size::Known(online.depth));
        let left = self.side(memory, &of_terms, &online.left);
        let right = self.side(memory, &of_terms, &online.right);
        let element = self.e.elem_type(Elem::F32, Width::Scalar);
        let scores = self.region(memory, &of_keys, &[element], |scalars, product_of| {
            scalars.know(product, product_of[0]);
            vec![scalars.value(online.scores.0, &online.scores.1)]
        });
        let values = self.side(memory, &of_keys, &online.values);
        let of_sums = Memory {
            rows: true,
            shape: sizes(&online.over),
            elem: Elem::F32,
        };
        let of_sums = of_sums.to_type(self.e.b.context());
        let finish = self.region(memory, &online.over, &[of_sums], |scalars, memory_of| {
            scalars.sums(sums, memory_of[0], &online.over);
            vec![scalars.value(online.finish.value, &online.finish.at)]
        });
        let mut attributes = self.extents(&online.over);
        let finish_of = &online.finish;
        attributes.push(("keys", self.numbers(&sizes(&[online.keys]))));
        let names = self.names_of(&[online.keys]);
        attributes.extend(names.map(|names| ("key_dims", names)));
        attributes.push(("depth", self.number(online.depth)));
        attributes.push((
            "address",
            self.address(finish_of.result, &finish_of.to, &online.over),
        ));
        if let Some((until, masked)) = online.until {
            let bits = self.e.b.f32_attr(f32::from_bits(masked));
            attributes.extend([("until", self.number(until)), ("masked", bits)]);
        }
        let lanes = online.finish.lanes;
        attributes.extend(lanes.map(|lanes| ("lanes", self.number(lanes as i64))));
        attributes.extend(self.marks(&[
            ("left_along_depth", online.left.along_depth),
            ("right_along_depth", online.right.along_depth),
            ("values_along_keys", online.values.along_depth),
        ]));
        let regions = vec![left, right, scores, values, finish];
        let result = memory.results[online.finish.result];
        self.e.b.op(
            "ragged.online_softmax",
            &[result],
            &[],
            &attributes,
            regions,
        );
    }

    fn attributes_of_calls(&self, work: &Calls) -> Vec<(&'static str, Attribute<'c>)> {
        let context = self.e.b.context();
        let mut attributes = vec![];
        if let Some(division) = &work.division {
            attributes.push(("pieces", self.number(division.tile as i64)));
            attributes.push(("shared", self.number(division.shared as i64)));
            let rising: Vec<i64> = division.rising.iter().map(|at| *at as i64).collect();
            if !rising.is_empty() {
                attributes.push(("rising", self.numbers(&rising)));
            }
        }
        if !work.flops.is_empty() {
            let flops = work.flops.iter().map(|flops| self.extent(flops));
            let flops: Vec<_> = flops.collect();
            attributes.push(("flops", ArrayAttribute::new(context, &flops).into()));
        }
        if let Some(padding) = work.padding {
            let padding = [padding.rows, padding.bulk].map(i64::from);
            attributes.push(("padding", self.numbers(&padding)));
        }
        attributes
    }

    /// The product of lengths and a number.
    fn extent(&self, extent: &Extent) -> Attribute<'c> {
        let lengths = extent.lengths.iter().map(|length| self.name(*length));
        let factors: Vec<_> = lengths.chain([self.number(extent.times as i64)]).collect();
        ArrayAttribute::new(self.e.b.context(), &factors).into()
    }
}

fn names_is_empty(shape: &[Size]) -> bool {
    shape.iter().all(|size| size.known().is_some())
}

/// Sizes as a type has them.
fn sizes(shape: &[Size]) -> Vec<i64> {
    shape
        .iter()
        .map(|size| size.known().unwrap_or(i64::MIN))
        .collect()
}
