//! The part of `lower-kernels` for kernels whose unit is the call: tensors with ragged dims.
//!
//! The function of such a kernel is a loop over calls. What a call computes is read as a graph of
//! values ([`graph`]) and a list of stages:
//!
//! * a product on register blocks, over panels of both operands that are packed into scratch ([`packing`]), with
//!   whatever is elementwise before it and behind it ([`product`]);
//! * softmax-like weights of a product times values, block by block with rescaled sums ([`online`]);
//! * loops over the result's dims, with folds where their index is known ([`eval`]).
//!
//! A call's loops begin at the call's own first row, and the order of every fold depends on the
//! call's lengths and on the program alone. So a call's bits do not depend on the calls around it.
//!
//! Where a call can be computed in work items, the function is a loop over work items: each
//! is a call and a range of the first of the dims that count its rows.

mod eval;
mod online;
mod packing;
mod polls;
mod product;

use std::collections::HashMap;

use cohort_abi::manifest::{CallShape, Unit};
use cohort_dialects::builder::{Builder, Op, Val, arguments_of, operations_of, region_with_block};
use cohort_dialects::keys;
use cohort_passes::kernel::calls::memory::{constants, extent, result_row_bytes, row_bytes};
use cohort_passes::kernel::calls::stages::Stage;
use cohort_passes::kernel::calls::{graph, loops};
use cohort_passes::kernel::description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, OperandDescription, RowType, to_json,
};
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{name_attribute, symbol_of};
use melior::{
    Context,
    ir::{
        OperationRef, Type,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use crate::emit::{Emitter, Width};
use eval::{Base, Call, Held};
use graph::{Form, NodeId, Size};
use loops::Kernel;

pub use polls::declare as declare_polls;

/// Adds the function of a kernel at the loop level before it; tells whether it multiplies blocks.
pub fn lower<'c>(context: &'c Context, op: OperationRef<'c, 'c>) -> Result<bool, Failed> {
    let name = symbol_of(op).ok_or_else(|| error(op, "expected a kernel with a name"))?;
    let kernel = loops::read(op)?;
    add_function(context, op, &name, &kernel)?;
    Ok(has_blocks(&kernel))
}

fn add_function<'c>(
    context: &'c Context,
    op: OperationRef<'c, 'c>,
    name: &str,
    kernel: &Kernel<'c>,
) -> Outcome {
    let before =
        Builder::before(context, op).ok_or_else(|| error(op, "expected a kernel in a module"))?;
    let (pointer, int) = (before.pointer(), before.i64());
    let arguments = [int, int, pointer, pointer, pointer, pointer];
    let (region, entry) = region_with_block(&arguments, op.location());
    let e = Emitter::new(Builder::at_end(context, entry, op.location()));
    let constants = constants(&kernel.graph);
    write(&e, kernel, &constants, &arguments_of(entry));
    e.b.return_(&[]);

    let description = describe(op, name, kernel, &constants);
    let ty: Type<'c> = FunctionType::new(context, &arguments, &[]).into();
    let attributes = [
        (keys::SYM_NAME, StringAttribute::new(context, name).into()),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        (
            ATTRIBUTE,
            StringAttribute::new(context, &to_json(&description)).into(),
        ),
    ];
    before.op(Op::FuncFunc, &[], &[], &attributes, vec![region]);
    Ok(())
}

fn has_blocks(kernel: &Kernel<'_>) -> bool {
    let mut stages = kernel.stages.iter();
    stages.any(|stage| !matches!(stage, Stage::Nest(_)))
}

/// Bytes of the scratch that a kernel's stages share.
fn scratch_bytes(kernel: &Kernel<'_>) -> i64 {
    let stages = kernel.stages.iter().map(|stage| match stage {
        Stage::Nest(_) => 0,
        Stage::Matmul(matmul) => product::scratch_bytes(matmul),
        Stage::Online(online) => online::scratch_bytes(online),
    });
    stages.max().unwrap_or(0)
}

fn write<'c>(
    e: &Emitter<'c>,
    kernel: &Kernel<'c>,
    constants: &[(NodeId, ConstantDescription)],
    arguments: &[Val<'c>],
) {
    let (graph, how) = (&kernel.graph, &kernel.calls);
    let is_divided = how.division.is_some();
    let &[begin, end, operands, results, table, scratch] = arguments else {
        return;
    };
    let constants: HashMap<NodeId, Val<'c>> = constants
        .iter()
        .enumerate()
        .map(|(at, (node, _))| (*node, e.load_pointer(table, at as i64)))
        .collect();
    let count = graph.operands.len() as i64;
    let extra = i64::from(!graph.rows.is_empty()) + i64::from(is_divided);
    let bases: Vec<_> = (0..count)
        .map(|i| e.load_pointer(operands, 3 * i))
        .collect();
    let indices: Vec<_> = (0..count + extra)
        .map(|i| e.load_pointer(operands, 3 * i + 1))
        .collect();
    let results: Vec<_> = (0..graph.results.len() as i64)
        .map(|i| e.load_pointer(results, i))
        .collect();
    if has_blocks(kernel) {
        product::start(e, scratch);
    }
    let mut is_long = None;
    e.for_loop(begin, end, 1, &[], |e, number, _| {
        let mut call = Call::new(graph, how.split);
        let number = match indices.last() {
            Some(items) if is_divided => {
                let item = e.offset(*items, e.times(number, 12));
                let [number, from, to] = [0, 4, 8].map(|at| e.load_u32(e.offset_by(item, at)));
                call.item = Some([from, to]);
                number
            }
            _ => number,
        };
        let entry = |at: usize| e.offset(indices[at], e.times(number, 4));
        for at in 0..graph.lengths {
            call.lengths.push(Held::new(e, entry(at), how.hoisted));
        }
        is_long = Some(polls::is_long(e, &call));
        for (at, (node, form)) in graph.operands.iter().enumerate() {
            match form {
                Form::Length => {
                    if let Held::Value(length) = call.lengths[at] {
                        let value = e.b.trunci(length, e.i32);
                        call.scalars.insert(*node, value);
                    }
                }
                Form::Scalar => {
                    let elem = graph.nodes[*node].elem;
                    let value = e.load_elem(entry(at), elem, Width::Scalar, None);
                    call.scalars.insert(*node, value);
                }
                Form::Row | Form::Ragged => {
                    let bytes = row_bytes(graph, *node);
                    let row = Held::new(e, entry(at), how.hoisted);
                    let base = Base::of_row(e, bases[at], row, bytes);
                    let memory = call.dense(e, base, *node, false);
                    call.memory.insert(*node, memory);
                }
            }
        }
        for (node, base) in &constants {
            let memory = call.dense(e, Base::Address(*base), *node, true);
            call.memory.insert(*node, memory);
        }
        let first = match graph.rows.is_empty() {
            true => Held::Value(number),
            false => Held::new(e, entry(graph.operands.len()), how.hoisted),
        };
        for stage in &kernel.stages {
            let result = match stage {
                Stage::Nest(nest) => nest.store.result,
                Stage::Matmul(matmul) => matmul.result,
                Stage::Online(online) => online.finish.result,
            };
            let node = graph.results[result];
            let bytes = result_row_bytes(graph, node);
            let base = Base::of_row(e, results[result], first, bytes);
            let memory = call.dense(e, base, node, false);
            call.scope(|call| match stage {
                Stage::Nest(nest) => {
                    let ranges = call.ranges(e, &nest.over);
                    call.store_all(e, &nest.store, &ranges, &memory);
                }
                Stage::Matmul(matmul) => product::write(e, call, matmul, &memory, scratch),
                Stage::Online(online) => online::write(e, call, online, &memory, scratch),
            });
        }
        vec![]
    });
    if let (Some(calls), Some(is_long)) = (operations_of(e.b.block()).pop(), is_long) {
        polls::add(e.b.context(), calls, is_long);
    }
}

fn describe(
    op: OperationRef<'_, '_>,
    name: &str,
    kernel: &Kernel<'_>,
    constants: &[(NodeId, ConstantDescription)],
) -> KernelDescription {
    let (graph, work) = (&kernel.graph, &kernel.calls);
    let mut call = CallShape {
        unit: Unit::Calls,
        ..CallShape::default()
    };
    let mut extent_of = |lead: &[Size]| {
        let extent = extent(lead, 1);
        let known = call.extents.iter().position(|other| *other == extent);
        known.unwrap_or_else(|| {
            call.extents.push(extent);
            call.extents.len() - 1
        })
    };
    let rows = (!graph.rows.is_empty()).then(|| extent_of(&graph.rows));
    let row_type = |node: NodeId, lead: usize| RowType {
        elem: graph.nodes[node].elem,
        shape: graph.nodes[node].shape[lead..]
            .iter()
            .map(|size| match size {
                Size::Known(size) => *size as u64,
                Size::Length(_) => 1,
            })
            .collect(),
    };
    let operands = graph.operands.iter().map(|(node, form)| {
        let shape = &graph.nodes[*node].shape;
        let lead = shape.len() - graph.row_shape(shape).len();
        match form {
            Form::Length => OperandDescription::Length,
            Form::Scalar => OperandDescription::Scalar(graph.nodes[*node].elem),
            Form::Row => OperandDescription::Row {
                pool: row_type(*node, 0),
            },
            Form::Ragged => OperandDescription::Ragged {
                pool: row_type(*node, lead),
                extent: extent_of(&shape[..lead]),
            },
        }
    });
    let operands = operands.collect();
    call.rows = rows;
    call.flops = work.flops.clone();
    call.division = work.division.clone();
    call.padding = work.padding;
    let results = graph
        .results
        .iter()
        .map(|node| row_type(*node, graph.rows.len()));
    let location = cohort_dialects::location::file_line_col(op.location());
    KernelDescription {
        name: name_attribute(op, keys::SOURCE).unwrap_or_else(|| name.to_owned()),
        symbol: name.to_owned(),
        location: location.map_or(String::new(), |(file, line, column)| {
            format!("{file}:{line}:{column}")
        }),
        operands,
        results: results.collect(),
        constants: constants
            .iter()
            .map(|(_, description)| description.clone())
            .collect(),
        scratch_bytes: scratch_bytes(kernel) as u64,
        row_tile: 1,
        flops_per_row: 0,
        row_products: vec![],
        call,
        gpu: None,
    }
}
