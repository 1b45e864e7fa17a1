//! Plans a kernel whose unit is the call, for the CPU or a GPU: declares the memory that it touches, and writes
//! each part of its results as the first of these that fits:
//!
//! * a product and anything elementwise behind it ([`matmul`]);
//! * a nest of loops over the dims of a call, with folds where their index is known.

mod matmul;
mod parts;

use std::cell::RefCell;
use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Extent;
use cohort_dialects::builder::{Builder, Op, region_with_block};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::affine::Var;
use cohort_passes::kernel::calls::graph::{Form, Graph, Kind, NodeId};
use cohort_passes::kernel::calls::lanes::{Layouts, dense};
use cohort_passes::kernel::calls::memory::extent;
use cohort_passes::kernel::calls::padding;
use cohort_passes::kernel::calls::sides::Target;
use cohort_passes::kernel::calls::stages::{Nest, Store};
use cohort_passes::kernel::calls::write::{Declared, Given, Writer, names_of, sizes};
use cohort_passes::kernel::loop_level::{Memory, OperandKind};
use cohort_passes::kernel::schedule::Processor;
use cohort_passes::pass::{Failed, Outcome};
use cohort_passes::support::dims::length_names;
use cohort_passes::support::ir::attributes_without;
use melior::ir::{Attribute, OperationRef, operation::OperationLike};

use parts::{Window, index_of, sizes_of};

/// What a kernel is planned for.
#[derive(Clone, Copy)]
pub struct Aim {
    pub target: Target,
    /// Of products, for a GPU.
    pub precision: Precision,
    /// The CPU.
    pub processor: Processor,
}

impl Aim {
    pub fn cpu(processor: Processor) -> Aim {
        Aim {
            target: Target::Cpu,
            precision: Precision::F32,
            processor,
        }
    }

    pub fn gpu(precision: Precision) -> Aim {
        Aim {
            target: Target::Gpu,
            precision,
            processor: Processor::default(),
        }
    }
}

/// Adds a kernel of level 2 at the loop level; `scalars` tells which of its records' operands are host scalars.
pub fn plan<'c>(
    to: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
    aim: Aim,
) -> Outcome {
    let context = to.context();
    let (graph, parts) = parts::plan(kernel, scalars, aim)?;
    let (region, block) = region_with_block(&[], kernel.location());
    let (calls, stages) = region_with_block(&[], kernel.location());
    let names = length_names(kernel);
    let b = Builder::at_end(context, block, kernel.location());
    let memory = declare(&b, &graph, &names);
    let given = RefCell::new(Given::new(graph.lengths));
    let writer = Writer {
        b: Builder::at_end(context, stages, kernel.location()),
        graph: &graph,
        names: &names,
        memory: &memory,
        given: &given,
    };
    for part in &parts {
        let windows = &part.windows[..];
        match &part.product {
            Some(product) => product.write(&writer, part.result, windows),
            None => writer.nest(&nest_of(&graph, part.result, windows, aim.target)),
        }
    }
    let mut attributes = match aim.target {
        Target::Cpu => counted(&b, kernel, &graph, &names)?,
        // They are cut into tiles, and counted as the CPU's are.
        Target::Gpu => vec![],
    };
    let given = given.borrow().attribute(context);
    attributes.extend(given.map(|given| (keys::GIVEN, given)));
    b.op(Op::RaggedCalls, &[], &[], &attributes, vec![calls]);
    let mut attributes = attributes_without(kernel, &[keys::SYM_NAME]);
    attributes.push((keys::SYM_NAME, b.string(name)));
    to.at(kernel.location())
        .op(Op::RaggedKernel, &[], &[], &attributes, vec![region]);
    Ok(())
}

/// How the calls of a kernel are counted, and how its results are padded.
fn counted<'c>(
    b: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    graph: &Graph<'c>,
    names: &[String],
) -> Result<Vec<(Key<'static>, Attribute<'c>)>, Failed> {
    let mut attributes = vec![];
    // The product of lengths and a number.
    let extent = |extent: Extent| {
        let lengths = extent.lengths.into_iter();
        let lengths = lengths.map(|length| b.symbol(&names[length]));
        let factors: Vec<_> = lengths.chain([b.i64_attr(extent.times as i64)]).collect();
        b.array(&factors)
    };
    let flops: Vec<_> = flops(graph).into_iter().map(extent).collect();
    if !flops.is_empty() {
        attributes.push((keys::FLOPS, b.array(&flops)));
    }
    if let Some(padding) = padding::of(kernel)? {
        let padding = [padding.rows, padding.bulk].map(i64::from);
        attributes.push((keys::PADDING, b.i64s(&padding)));
    }
    Ok(attributes)
}

/// Operations of the products that are needed, a call.
fn flops(graph: &Graph<'_>) -> Vec<Extent> {
    let mut found = vec![];
    let mut all: Vec<NodeId> = vec![];
    let mut roots = graph.results.clone();
    while let Some(root) = roots.pop() {
        for fold in graph.folds(root, &[]) {
            if all.contains(&fold) {
                continue;
            }
            all.push(fold);
            if let Kind::Reduce { input, init, .. } = &graph.nodes[fold].kind {
                if graph.product(fold).is_some() {
                    found.push(extent(&graph.nodes[*input].shape, 2));
                }
                roots.extend([*input, *init]);
            }
        }
    }
    found
}

/// The nest that computes a part of a result, with vectors where they are stored side by side.
fn nest_of(graph: &Graph<'_>, result: usize, windows: &[Window], target: Target) -> Nest {
    let value = graph.results[result];
    let over = sizes_of(windows);
    let known: Vec<_> = over.iter().map(|size| size.known()).collect();
    let below = |var: Var| windows.get(var)?.size.known();
    let layouts = Layouts::new(graph, HashMap::new());
    let of_result = dense(&graph.nodes[value].shape);
    let at = index_of(windows);
    let lanes = || layouts.lanes_of_stores((value, &at), &known, &of_result, &below);
    Nest {
        over,
        store: Store {
            lanes: target.has_vectors().then(lanes).flatten(),
            value,
            at: at.clone(),
            result,
            to: index_of(windows),
        },
    }
}

/// Declares the memory of a kernel: operands, results, parameters and constants.
fn declare<'c>(b: &Builder<'c>, graph: &Graph<'c>, names: &[String]) -> Declared<'c> {
    let memory = |kind: Op, node: NodeId, rows, attribute: Option<(Key<'_>, Attribute<'c>)>| {
        let of_node = &graph.nodes[node];
        let memory = Memory {
            rows,
            shape: sizes(&of_node.shape),
            elem: of_node.elem,
        };
        let dims = names_of(b, names, &of_node.shape).map(|names| (keys::DIMS, names));
        let attributes: Vec<_> = attribute.into_iter().chain(dims).collect();
        b.value_with(kind, &[], memory.to_type(b.context()), &attributes)
    };
    let mut declared = Declared::default();
    for (node, form) in &graph.operands {
        let kind = match form {
            Form::Length => OperandKind::Length,
            Form::Scalar => OperandKind::Scalar,
            Form::Row => OperandKind::Row,
            Form::Ragged => OperandKind::Expanded,
        };
        let kind = (keys::KIND, b.i32_attr(kind as i32));
        let value = memory(Op::RaggedOperand, *node, true, Some(kind));
        declared.of_node.insert(*node, value);
    }
    let results = graph.results.iter();
    let results = results.map(|node| memory(Op::RaggedResult, *node, true, None));
    declared.results = results.collect();
    for (node, of_node) in graph.nodes.iter().enumerate() {
        let (kind, key, value) = match &of_node.kind {
            Kind::Param(param) => (Op::RaggedParam, keys::PARAM, b.symbol(param)),
            Kind::Dense(_) => match of_node.op.attribute(&keys::VALUE) {
                Ok(value) => (Op::RaggedConstant, keys::VALUE, value),
                Err(_) => continue,
            },
            _ => continue,
        };
        let value = memory(kind, node, false, Some((key, value)));
        declared.of_node.insert(node, value);
    }
    declared
}
