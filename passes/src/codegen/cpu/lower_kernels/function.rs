//! Writes the function of one kernel.

use std::collections::HashMap;

use cohort_abi::manifest::{Elem, RowProduct};
use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block};
use melior::{
    Context,
    ir::{
        OperationRef, Type,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use super::call_shape::{self, Taken};
use super::frame::{Block, Frame, Operand};
use super::plan::{Plan, plan};
use super::scratch::ScratchMap;
use super::{compute, fold, loops, product, reduce_rows};
use crate::codegen::emit::Emitter;
use crate::kernel::description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, OperandDescription, RowType,
};
use crate::kernel::row_products::row_products;
use crate::kernel::rows::graph::{Graph, Kind, NodeId};
use crate::kernel::rows::layout::Place;
use crate::kernel::rows::read;
use crate::kernel::rows::stage::{Stage, Start, Weight};
use crate::pass::{Failed, error};
use crate::support::ir::{blocks_of, name_attribute};

/// Adds the function before the kernel; tells whether it calls the micro-kernels.
pub fn lower<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
) -> Result<bool, Failed> {
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let graph = read::read(block, scalars)?;
    for node in &graph.nodes {
        if let Kind::Loops(of_node) = &node.kind {
            loops::check(of_node.op, &of_node.loop_of_dim)?;
        }
    }
    let plan = plan(&graph)?;
    let map = ScratchMap::new(&graph, &plan);
    let constants = Constants::collect(&graph, &plan);

    let before = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let pointer = before.ty("!llvm.ptr");
    let arguments = [
        before.ty("i64"),
        before.ty("i64"),
        pointer,
        pointer,
        pointer,
        pointer,
    ];
    let (region, entry) = region_with_block(&arguments, kernel.location());
    let e = Emitter::new(Builder::at_end(context, entry, kernel.location()));
    write(&e, &graph, &plan, &map, &constants, &arguments_of(entry));
    e.b.op("func.return", &[], &[], &[], vec![]);

    let description = describe(kernel, name, &graph, &plan, &map, constants.descriptions);
    let ty: Type<'c> = FunctionType::new(context, &arguments, &[]).into();
    before.op(
        "func.func",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(context, name).into()),
            ("function_type", TypeAttribute::new(ty).into()),
            (
                ATTRIBUTE,
                StringAttribute::new(context, &description.to_json()).into(),
            ),
        ],
        vec![region],
    );
    let is_product = |stage: &Stage<'c>| matches!(stage, Stage::Product(_));
    Ok(plan.rows.iter().any(is_product))
}

/// The constants that the kernel's stages touch.
struct Constants {
    descriptions: Vec<ConstantDescription>,
    plain: HashMap<NodeId, usize>,
    panels: HashMap<NodeId, usize>,
}

impl Constants {
    fn collect(graph: &Graph<'_>, plan: &Plan<'_>) -> Constants {
        let mut constants = Constants {
            descriptions: vec![],
            plain: HashMap::new(),
            panels: HashMap::new(),
        };
        for stage in plan.shared.iter().chain(&plan.rows) {
            let mut buffers: Vec<NodeId> = match stage {
                Stage::Group(body) | Stage::Pack { body, .. } => body.buffers().collect(),
                Stage::Loops { body, node, .. } => {
                    let inits = match &graph.nodes[*node].kind {
                        Kind::Loops(loops) => loops.inits.as_slice(),
                        _ => &[],
                    };
                    let views = inits
                        .iter()
                        .filter_map(|init| plan.layouts.view(graph, *init));
                    body.buffers()
                        .chain(views.map(|view| view.buffer))
                        .collect()
                }
                Stage::ReduceRows(stage) => stage.init.buffers().collect(),
                Stage::Fold(fold) => fold.body.buffers().chain(fold.init.buffers()).collect(),
                Stage::Product(product) => {
                    if let Weight::Panels { param, width, .. } = product.weight {
                        constants.add_panels(graph, param, width);
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
                constants.add_plain(graph, plan, buffer);
            }
        }
        constants
    }

    fn add(&mut self, description: ConstantDescription) -> usize {
        let known = self
            .descriptions
            .iter()
            .position(|other| *other == description);
        known.unwrap_or_else(|| {
            self.descriptions.push(description);
            self.descriptions.len() - 1
        })
    }

    fn add_plain(&mut self, graph: &Graph<'_>, plan: &Plan<'_>, node: NodeId) {
        let is_constant = plan.layouts.of_node[node]
            .as_ref()
            .is_some_and(|layout| matches!(layout.place, Place::Constant(_)));
        if !is_constant {
            return;
        }
        let description = match &graph.nodes[node].kind {
            Kind::Param(name) => ConstantDescription::Plain {
                param: name.clone(),
            },
            Kind::Dense(bits) => ConstantDescription::Dense {
                elem: graph.nodes[node].elem,
                bits: bits.clone(),
            },
            _ => return,
        };
        let index = self.add(description);
        self.plain.insert(node, index);
    }

    fn add_panels(&mut self, graph: &Graph<'_>, node: NodeId, width: i64) {
        if let Kind::Param(name) = &graph.nodes[node].kind {
            let panels = ConstantDescription::Panels {
                param: name.clone(),
                width: width as u64,
            };
            let index = self.add(panels);
            self.panels.insert(node, index);
        }
    }
}

fn write<'c>(
    e: &Emitter<'c>,
    graph: &Graph<'c>,
    plan: &Plan<'c>,
    map: &ScratchMap,
    constants: &Constants,
    arguments: &[Val<'c>],
) {
    let &[begin, end, operands, results, table, scratch] = arguments else {
        return;
    };
    let pointers: Vec<_> = (0..constants.descriptions.len())
        .map(|index| e.load_pointer(table, index as i64))
        .collect();
    let of = |entries: &HashMap<NodeId, usize>| {
        entries
            .iter()
            .map(|(node, index)| (*node, pointers[*index]))
            .collect()
    };
    let frame = Frame {
        graph,
        layouts: &plan.layouts,
        map,
        scratch,
        operands: (0..graph.operands.len() as i64)
            .map(|i| Operand {
                base: e.load_pointer(operands, 3 * i),
                index: e.load_pointer(operands, 3 * i + 1),
                offsets: e.load_pointer(operands, 3 * i + 2),
            })
            .collect(),
        results: (0..graph.results.len() as i64)
            .map(|i| e.load_pointer(results, i))
            .collect(),
        constants: of(&constants.plain),
        panels: of(&constants.panels),
    };
    let zero = e.bits(0, Elem::F32, crate::codegen::emit::Width::Vector);
    e.store(zero, e.offset_by(scratch, map.zeros), 4);
    for stage in &plan.shared {
        write_stage(e, &frame, stage, None);
    }
    e.for_loop(begin, end, map.block_rows, &[], |e, first, _| {
        let count = e.min(e.sub(end, first), e.int(map.block_rows));
        for stage in &plan.rows {
            write_stage(e, &frame, stage, Some(Block { first, count }));
        }
        vec![]
    });
}

fn write_stage<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: &Stage<'c>,
    block: Option<Block<'c>>,
) {
    match (stage, block) {
        (Stage::Group(body), _) => compute::group(e, frame, body, block),
        (Stage::Fold(of_stage), _) => fold::fold(e, frame, of_stage, block),
        (Stage::ReduceRows(of_stage), _) => reduce_rows::reduce(e, frame, of_stage, block),
        (Stage::Loops { node, body, inputs }, _) => {
            loops::loops(e, frame, *node, body, inputs, block);
        }
        (Stage::Pack { body, slot }, _) => product::pack(e, frame, body, *slot),
        (Stage::Product(of_stage), Some(block)) => product::product(e, frame, of_stage, block),
        (Stage::Product(_), None) => unreachable!("a product belongs to rows"),
    }
}

fn describe(
    kernel: OperationRef<'_, '_>,
    name: &str,
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    map: &ScratchMap,
    constants: Vec<ConstantDescription>,
) -> KernelDescription {
    let row_type = |id: &NodeId| {
        let node = &graph.nodes[*id];
        RowType {
            elem: node.elem,
            shape: node.shape.iter().map(|size| *size as u64).collect(),
        }
    };
    let shape = call_shape::of(kernel);
    let operands = graph.operands.iter().enumerate().map(|(number, id)| {
        match (shape.taken(number), &graph.nodes[*id].kind) {
            (Taken::Length, _) => OperandDescription::Length,
            (Taken::Expanded, _) => OperandDescription::Ragged {
                row: row_type(id),
                extent: 0,
            },
            (Taken::Stacked, _) => OperandDescription::Stacked {
                row: row_type(id),
                extent: 0,
            },
            (_, Kind::HostScalar(_)) => OperandDescription::Scalar(graph.nodes[*id].elem),
            (_, Kind::List(_)) => OperandDescription::Rows(row_type(id)),
            _ => OperandDescription::Row(row_type(id)),
        }
    });
    let location = cohort_dialects::location::file_line_col(kernel.location());
    KernelDescription {
        name: name_attribute(kernel, "source").unwrap_or_else(|| name.to_owned()),
        symbol: name.to_owned(),
        location: location.map_or(String::new(), |(file, line, column)| {
            format!("{file}:{line}:{column}")
        }),
        operands: operands.collect(),
        results: graph.results.iter().map(row_type).collect(),
        constants,
        scratch_bytes: map.bytes as u64,
        row_tile: map.row_tile as u64,
        flops_per_row: plan.flops as u64,
        row_products: row_products(kernel)
            .into_iter()
            .filter_map(|product| {
                Some(RowProduct {
                    operand: product.operand?,
                    flops: product.flops?,
                })
            })
            .collect(),
        call: shape.call,
    }
}
