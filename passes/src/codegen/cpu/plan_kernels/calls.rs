//! Plans a kernel whose unit is the call: declares the memory that it touches, and writes each part of its
//! results as a nest of loops over the dims of a call.

mod scalars;

use std::collections::HashMap;

use cohort_abi::manifest::Extent;
use cohort_dialects::builder::{Builder, Val, region_with_block};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef,
        attribute::{
            ArrayAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute,
            StringAttribute,
        },
        operation::OperationLike,
        r#type::IntegerType,
    },
};

use super::kept_attributes;
use crate::codegen::cpu::lower_calls;
use crate::codegen::emit::Emitter;
use crate::kernel::calls::graph::{Form, Graph, Kind, NodeId, Size, Var};
use crate::kernel::calls::lanes::{Layouts, dense};
use crate::kernel::calls::parts::{index_of, sizes_of};
use crate::kernel::calls::stages::{Calls, Nest};
use crate::kernel::calls::{HOISTED, SPLIT, parts, read};
use crate::kernel::loop_level::{KERNEL, Memory, OperandKind};
use crate::kernel::rows::layout::LANES;
use crate::pass::{Failed, Outcome, error};
use scalars::Scalars;

/// Whether every part of a kernel's results is computed by loops, as the loop level can say.
pub fn covers<'c>(kernel: OperationRef<'c, 'c>) -> Result<bool, Failed> {
    let (graph, parts) = lower_calls::plan(kernel, &[])?;
    let nests = parts.iter().all(|part| part.plan.is_none());
    Ok(nests
        && parts
            .iter()
            .all(|part| scalars::covers(&graph, graph.results[part.result], &part.windows)))
}

/// Adds the kernel at the loop level before the one at level 2.
pub fn plan<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
) -> Outcome {
    let (graph, parts) = lower_calls::plan(kernel, scalars)?;
    let work = lower_calls::calls(kernel, &graph, &parts)?;
    let before = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let (region, block) = region_with_block(&[], kernel.location());
    let (calls_region, stages) = region_with_block(&[], kernel.location());
    let names = read::length_names(kernel);
    let writer = Writer {
        e: Emitter::new(Builder::at_end(context, block, kernel.location())),
        graph: &graph,
        names: &names,
    };
    let (memory, results) = writer.declare();
    let within = Writer {
        e: writer.e.within(stages),
        ..writer
    };
    for part in &parts {
        let nest = nest_of(&graph, part);
        within.nest(&nest, &memory, results[nest.result]);
    }
    let attributes = writer.attributes_of_calls(kernel, &work);
    writer
        .e
        .b
        .op("ragged.calls", &[], &[], &attributes, vec![calls_region]);
    let mut attributes = kept_attributes(kernel, &["sym_name", SPLIT, HOISTED]);
    attributes.push((
        "sym_name".into(),
        StringAttribute::new(context, name).into(),
    ));
    let attributes: Vec<_> = attributes
        .iter()
        .map(|(name, attribute)| (name.as_str(), *attribute))
        .collect();
    before.op(KERNEL, &[], &[], &attributes, vec![region]);
    Ok(())
}

/// The nest that computes a part of a result, with vectors where they are stored side by side.
pub fn nest_of<Plan>(graph: &Graph<'_>, part: &parts::Part<Plan>) -> Nest {
    let value = graph.results[part.result];
    let over = sizes_of(&part.windows);
    let known: Vec<_> = over.iter().map(|size| size.known()).collect();
    let below = |var: Var| part.windows.get(var)?.size.known();
    let layouts = Layouts::new(graph, HashMap::new());
    let of_result = dense(&graph.nodes[value].shape);
    Nest {
        lanes: layouts.lanes_of_stores(value, &known, &of_result, &below),
        over,
        value,
        at: index_of(&part.windows),
        result: part.result,
        store: index_of(&part.windows),
    }
}

struct Writer<'a, 'c> {
    e: Emitter<'c>,
    graph: &'a Graph<'c>,
    names: &'a [String],
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

    fn nest(&self, nest: &Nest, memory: &HashMap<NodeId, Val<'c>>, result: Val<'c>) {
        let (region, block) = region_with_block(&[], self.e.b.location);
        let inner = self.e.within(block);
        let mut scalars = Scalars::new(self, inner, memory, &nest.over);
        let value = scalars.value(nest.value, &nest.at);
        let store = [("address", scalars.map(&nest.store, 0))];
        inner
            .b
            .op("ragged.store", &[value, result], &[], &store, vec![]);
        inner.b.op("ragged.yield", &[], &[], &[], vec![]);
        let mut attributes = self.extents(&nest.over);
        attributes.push(("by", self.number(LANES)));
        attributes.extend(nest.lanes.map(|lanes| ("lanes", self.number(lanes as i64))));
        self.e
            .b
            .op("ragged.nest", &[], &[], &attributes, vec![region]);
    }

    fn attributes_of_calls(
        &self,
        kernel: OperationRef<'c, 'c>,
        work: &Calls,
    ) -> Vec<(&'static str, Attribute<'c>)> {
        let context = self.e.b.context();
        let mut attributes = vec![];
        attributes.extend(kernel.attribute(SPLIT).map(|split| ("split", split)));
        attributes.extend(kernel.attribute(HOISTED).map(|unit| ("hoisted", unit)));
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
