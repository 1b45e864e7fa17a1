//! The part of `lower-kernels` for kernels whose unit is the call: tensors with ragged dims.
//!
//! The function of such a kernel is a loop over calls. What a call computes is read as a graph of
//! values ([`graph`]), and each result is written by the first of these that fits:
//!
//! * a product (`Σ a · b` and anything elementwise behind it) on register blocks, over panels of
//!   both operands that are packed into scratch, with whatever is elementwise before it ([`product`]);
//! * a product of weights that are softmax-like folds of another product, where `online-folds` has
//!   asked for it: block by block with rescaled sums ([`online`]);
//! * anything else by loops over the result's dims, with folds where their index is known ([`eval`]).
//!
//! A call's loops begin at the call's own first row, and the order of every fold depends on the
//! call's lengths and on the program alone. So a call's bits do not depend on the calls around it.
//!
//! Where a call can be computed in pieces ([`division`]), the function is a loop over pieces: each
//! is a call and a range of the first of the dims that count its rows.

mod blocks;
mod division;
mod eval;
mod online;
mod polls;
mod product;

use std::collections::HashMap;

use cohort_abi::manifest::{CallShape, Division, Extent, Padding, Unit};
use cohort_dialects::builder::{Builder, Val, arguments_of, operations_of, region_with_block};
use melior::{
    Context,
    ir::{
        OperationRef, Type,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use crate::codegen::emit::{Emitter, Width};
use crate::kernel::calls::memory::{constants, extent, result_row_bytes, row_bytes};
use crate::kernel::calls::parts::{self, Window};
use crate::kernel::calls::{HOISTED, SPLIT, bounds, graph, padding};
use crate::kernel::description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, OperandDescription, RowType,
};
use crate::kernel::rows::layout::LANES;
use crate::pass::{Failed, error};
use crate::support::ir::{integer_attribute, name_attribute};
use eval::{Base, Call, Held, Memory};
use graph::{Form, Graph, NodeId, Size};

pub use blocks::module as blocks;
pub use polls::module as polls;

/// How a part of a result is computed, where not by loops over its dims.
enum Plan {
    Product(product::Plan),
    Online(online::Plan),
}

impl Plan {
    fn new(graph: &Graph<'_>, node: NodeId, windows: &[Window]) -> Option<Plan> {
        let online = online::plan(graph, node, windows).map(Plan::Online);
        online.or_else(|| product::plan(graph, node, windows).map(Plan::Product))
    }

    fn scratch_bytes(&self) -> i64 {
        match self {
            Plan::Product(plan) => plan.scratch_bytes(),
            Plan::Online(plan) => plan.scratch_bytes(),
        }
    }
}

/// A part of a result, and how it is computed where not by loops.
type Part = parts::Part<Option<Plan>>;

/// Adds the function before the kernel; tells whether it calls what [`blocks`] has.
pub fn lower<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
) -> Result<bool, Failed> {
    let (graph, parts) = parts::plan(kernel, scalars, Plan::new)?;
    let scratch = parts
        .iter()
        .filter_map(|part| part.plan.as_ref())
        .map(Plan::scratch_bytes)
        .max();

    let before = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let (pointer, int) = (before.ty("!llvm.ptr"), before.ty("i64"));
    let arguments = [int, int, pointer, pointer, pointer, pointer];
    let (region, entry) = region_with_block(&arguments, kernel.location());
    let e = Emitter::new(Builder::at_end(context, entry, kernel.location()));
    let constants = constants(&graph);
    let how = How::of(kernel)?;
    let flops = division::flops(&graph);
    let division = division::of(&graph, &parts, &flops);
    let is_divided = division.is_some();
    let given = arguments_of(entry);
    write(&e, &graph, &parts, is_divided, &constants, how, &given);
    e.b.op("func.return", &[], &[], &[], vec![]);

    let work = Work {
        flops: flops.into_iter().map(|(_, flops)| flops).collect(),
        division,
        scratch_bytes: scratch.unwrap_or(0),
        padding: padding::of(kernel)?,
    };
    let description = describe(kernel, name, &graph, &constants, work);
    let ty: Type<'c> = FunctionType::new(context, &arguments, &[]).into();
    let attributes = [
        ("sym_name", StringAttribute::new(context, name).into()),
        ("function_type", TypeAttribute::new(ty).into()),
        (
            ATTRIBUTE,
            StringAttribute::new(context, &description.to_json()).into(),
        ),
    ];
    before.op("func.func", &[], &[], &attributes, vec![region]);
    Ok(parts.iter().any(|part| part.plan.is_some()))
}

/// What passes before have asked for.
#[derive(Clone, Copy)]
struct How {
    /// [`SPLIT`]
    split: bool,
    /// [`HOISTED`]
    hoisted: bool,
}

impl How {
    fn of(kernel: OperationRef<'_, '_>) -> Result<How, Failed> {
        let split = kernel.attribute(SPLIT).ok();
        if split.is_some() && integer_attribute(kernel, SPLIT) != Some(LANES) {
            let message = format!("not supported yet: loops split at other than {LANES}");
            return Err(error(kernel, &message));
        }
        Ok(How {
            split: split.is_some(),
            hoisted: kernel.attribute(HOISTED).is_ok(),
        })
    }
}

fn write<'c>(
    e: &Emitter<'c>,
    graph: &Graph<'c>,
    parts: &[Part],
    is_divided: bool,
    constants: &[(NodeId, ConstantDescription)],
    how: How,
    arguments: &[Val<'c>],
) {
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
    if parts.iter().any(|part| part.plan.is_some()) {
        product::start(e, scratch);
    }
    let mut is_long = None;
    e.for_loop(begin, end, 1, &[], |e, number, _| {
        let mut call = Call::new(graph, how.split);
        let number = match indices.last() {
            Some(pieces) if is_divided => {
                let piece = e.offset(*pieces, e.times(number, 12));
                let [number, from, to] = [0, 4, 8].map(|at| e.load_u32(e.offset_by(piece, at)));
                call.piece = Some([from, to]);
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
                        let value = e.b.value("arith.trunci", &[length], e.i32);
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
        for part in parts {
            let node = graph.results[part.result];
            let bytes = result_row_bytes(graph, node);
            let base = Base::of_row(e, results[part.result], first, bytes);
            let memory = call.dense(e, base, node, false);
            write_part(e, &mut call, node, part, &memory, scratch);
        }
        vec![]
    });
    if let (Some(calls), Some(is_long)) = (operations_of(e.b.block()).pop(), is_long) {
        polls::add(e.b.context(), calls, is_long);
    }
}

fn write_part<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    node: NodeId,
    part: &Part,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    call.scope(|call| match &part.plan {
        Some(Plan::Product(plan)) => {
            product::write(e, call, node, &part.windows, plan, memory, scratch);
        }
        Some(Plan::Online(plan)) => {
            online::write(e, call, node, &part.windows, plan, memory, scratch);
        }
        None => {
            let ranges = call.ranges(e, &part.windows);
            call.store_all(e, node, &ranges, memory);
        }
    });
}

/// What a call takes.
struct Work {
    flops: Vec<Extent>,
    division: Option<Division>,
    scratch_bytes: i64,
    padding: Option<Padding>,
}

fn describe(
    kernel: OperationRef<'_, '_>,
    name: &str,
    graph: &Graph<'_>,
    constants: &[(NodeId, ConstantDescription)],
    work: Work,
) -> KernelDescription {
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
            Form::Row => OperandDescription::Row(row_type(*node, 0)),
            Form::Ragged => OperandDescription::Ragged {
                row: row_type(*node, lead),
                extent: extent_of(&shape[..lead]),
            },
        }
    });
    let operands = operands.collect();
    call.rows = rows;
    call.flops = work.flops;
    call.division = work.division;
    call.padding = work.padding;
    let results = graph
        .results
        .iter()
        .map(|node| row_type(*node, graph.rows.len()));
    let location = cohort_dialects::location::file_line_col(kernel.location());
    KernelDescription {
        name: name_attribute(kernel, "source").unwrap_or_else(|| name.to_owned()),
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
        scratch_bytes: work.scratch_bytes as u64,
        row_tile: 1,
        flops_per_row: 0,
        row_products: vec![],
        call,
    }
}
