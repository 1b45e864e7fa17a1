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

mod blocks;
mod bounds;
mod eval;
mod graph;
mod online;
mod product;
mod read;

use std::collections::HashMap;

use cohort_abi::manifest::{CallShape, Extent, Unit};
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

use crate::cpu::lower_kernels::emit::{Emitter, Width};
use crate::cpu::lower_kernels::layout::elem_bytes;
use crate::ir::name_attribute;
use crate::kernel_description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, OperandDescription, RowType,
};
use crate::pass::{Failed, Outcome, error};
use eval::{Call, Memory, Window};
use graph::{Form, Graph, Index, Kind, NodeId, Size, identity};

pub use blocks::module as blocks;
pub use bounds::UNTIL;
pub use online::ONLINE;

/// The last operations of the chains that [`online`] can compute.
pub fn online_chains<'c>(
    kernel: OperationRef<'c, 'c>,
) -> Result<Vec<OperationRef<'c, 'c>>, Failed> {
    let graph = read::read(kernel, &[])?;
    let ends = (0..graph.nodes.len()).filter(|node| online::find(&graph, *node).is_some());
    Ok(ends.map(|node| graph.nodes[node].op).collect())
}

/// Whether a kernel's unit is the call.
pub fn is_over_calls(kernel: OperationRef<'_, '_>) -> bool {
    name_attribute(kernel, "unit").as_deref() == Some("calls")
}

/// A product that a mask makes a triangle.
pub struct Bound<'c> {
    pub operation: OperationRef<'c, 'c>,
    /// The dim of its rows.
    pub row: String,
    /// How many terms more than its index a row has.
    pub after: i64,
}

/// The products whose sums may end before their dim does. Of softmax-like folds, those that are
/// computed online.
pub fn bounded_folds<'c>(kernel: OperationRef<'c, 'c>) -> Result<Vec<Bound<'c>>, Failed> {
    let graph = read::read(kernel, &[])?;
    let mut found = vec![];
    for (node, of) in graph.nodes.iter().enumerate() {
        let Some((mask, length)) = bounds::of_product(&graph, node) else {
            continue;
        };
        let is_online = of.op.attribute(ONLINE).is_ok();
        if online::find(&graph, node).is_none() || is_online {
            found.push(Bound {
                operation: of.op,
                row: read::length_names(kernel)[length].clone(),
                after: mask.after,
            });
        }
    }
    Ok(found)
}

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

/// A part of a result, and how it is computed.
struct Piece {
    result: usize,
    windows: Vec<Window>,
    plan: Option<Plan>,
}

/// Adds the function before the kernel; tells whether it calls what [`blocks`] has.
pub fn lower<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
) -> Result<bool, Failed> {
    let graph = read::read(kernel, scalars)?;
    check(kernel, &graph)?;
    let mut pieces = vec![];
    for (result, node) in graph.results.iter().enumerate() {
        for windows in windows(&graph, *node) {
            check_parts(&graph, *node, &windows)?;
            let plan = Plan::new(&graph, *node, &windows);
            pieces.push(Piece {
                result,
                windows,
                plan,
            });
        }
    }
    let scratch = pieces
        .iter()
        .filter_map(|piece| piece.plan.as_ref())
        .map(Plan::scratch_bytes)
        .max();

    let before = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let (pointer, int) = (before.ty("!llvm.ptr"), before.ty("i64"));
    let arguments = [int, int, pointer, pointer, pointer, pointer];
    let (region, entry) = region_with_block(&arguments, kernel.location());
    let e = Emitter::new(Builder::at_end(context, entry, kernel.location()));
    let constants = constants(&graph);
    write(&e, &graph, &pieces, &constants, &arguments_of(entry));
    e.b.op("func.return", &[], &[], &[], vec![]);

    let description = describe(kernel, name, &graph, &constants, scratch.unwrap_or(0));
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
    Ok(pieces.iter().any(|piece| piece.plan.is_some()))
}

/// Results have the dims that the kernel says they have.
fn check<'c>(kernel: OperationRef<'c, 'c>, graph: &Graph<'c>) -> Outcome {
    for result in &graph.results {
        let shape = &graph.nodes[*result].shape;
        let lead = shape.len() - graph.row_shape(shape).len();
        if !shape.starts_with(&graph.rows) || lead > graph.rows.len() {
            return Err(error(
                kernel,
                "expected every result to begin with the dims of `rows`",
            ));
        }
    }
    Ok(())
}

/// Where a result is cut so that each part reads one input of a concatenation only.
fn windows(graph: &Graph<'_>, root: NodeId) -> Vec<Vec<Window>> {
    let rank = graph.nodes[root].shape.len();
    let mut cuts: Vec<Vec<i64>> = vec![vec![0]; rank];
    let mut stack = vec![(root, identity(rank))];
    while let Some((node, at)) = stack.pop() {
        let (node, at) = graph.resolve(node, &at);
        match &graph.nodes[node].kind {
            Kind::Pointwise { inputs, .. } => {
                stack.extend(inputs.iter().map(|input| (*input, at.clone())));
            }
            Kind::Concat { inputs, dim } => {
                let mut start = 0;
                for input in inputs {
                    if let [(var, 1)] = at[*dim].terms[..] {
                        cuts[var].push(start - at[*dim].constant);
                    }
                    let mut at = at.clone();
                    at[*dim].constant -= start;
                    stack.push((*input, at));
                    if let Size::Known(size) = graph.nodes[*input].shape[*dim] {
                        start += size;
                    }
                }
            }
            _ => {}
        }
    }
    let mut all = vec![vec![]];
    for (dim, size) in graph.nodes[root].shape.iter().enumerate() {
        let parts: Vec<Window> = match size {
            Size::Length(_) => vec![Window {
                from: 0,
                size: *size,
            }],
            Size::Known(size) => {
                let mut cuts: Vec<i64> = cuts[dim]
                    .iter()
                    .copied()
                    .filter(|cut| (0..*size).contains(cut))
                    .collect();
                cuts.sort_unstable();
                cuts.dedup();
                let ends = cuts.iter().skip(1).chain([size]);
                cuts.iter()
                    .zip(ends)
                    .map(|(from, end)| Window {
                        from: *from,
                        size: Size::Known(end - from),
                    })
                    .collect()
            }
        };
        all = all
            .into_iter()
            .flat_map(|windows: Vec<Window>| {
                parts.iter().map(move |part| {
                    let mut windows = windows.clone();
                    windows.push(*part);
                    windows
                })
            })
            .collect();
    }
    all
}

/// Every concatenation is read in one of its inputs at a time.
fn check_parts(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Outcome {
    let mut below: Vec<Option<i64>> = vec![];
    let mut at = vec![];
    for (var, window) in windows.iter().enumerate() {
        below.push(window.size.known());
        at.push(Index::var(var).plus(&Index::constant(window.from)));
    }
    let mut seen = std::collections::HashSet::new();
    let mut stack = vec![(root, at)];
    while let Some((node, at)) = stack.pop() {
        let (node, at) = graph.resolve(node, &at);
        if !seen.insert((node, at.clone())) {
            continue;
        }
        match &graph.nodes[node].kind {
            Kind::Pointwise { inputs, .. } => {
                stack.extend(inputs.iter().map(|input| (*input, at.clone())));
            }
            Kind::Concat { inputs, dim } => {
                let part = graph::part_of(graph, inputs, *dim, &at, |var| below[var]);
                let Some(part) = part else {
                    return Err(error(
                        graph.nodes[node].op,
                        "not supported yet: a concatenation that is read across its parts",
                    ));
                };
                stack.push(part);
            }
            Kind::Reduce {
                input, dims, init, ..
            } => {
                let mut kept = at.iter();
                let mut domain = vec![];
                for (dim, size) in graph.nodes[*input].shape.iter().enumerate() {
                    if dims.contains(&dim) {
                        domain.push(Index::var(below.len()));
                        below.push(size.known());
                    } else {
                        domain.extend(kept.next().cloned());
                    }
                }
                stack.push((*input, domain));
                stack.push((*init, at.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What lies in memory made at load, by node, in the order of the function's table.
fn constants(graph: &Graph<'_>) -> Vec<(NodeId, ConstantDescription)> {
    let nodes = graph.nodes.iter().enumerate();
    nodes
        .filter_map(|(id, node)| match &node.kind {
            Kind::Param(param) => Some((
                id,
                ConstantDescription::Plain {
                    param: param.clone(),
                },
            )),
            Kind::Dense(bits) => Some((
                id,
                ConstantDescription::Dense {
                    elem: node.elem,
                    bits: bits.clone(),
                },
            )),
            _ => None,
        })
        .collect()
}

/// Bytes of one row of the space that a value of this node lives in.
fn row_bytes(graph: &Graph<'_>, node: NodeId) -> i64 {
    let node = &graph.nodes[node];
    graph.row_shape(&node.shape).iter().product::<u64>() as i64 * elem_bytes(node.elem)
}

/// Bytes of one row of a result's space: the dims behind those that count rows.
fn result_row_bytes(graph: &Graph<'_>, node: NodeId) -> i64 {
    let bytes = elem_bytes(graph.nodes[node].elem);
    let behind = &graph.nodes[node].shape[graph.rows.len()..];
    behind.iter().fold(bytes, |bytes, size| match size {
        Size::Known(size) => bytes * size,
        Size::Length(_) => bytes,
    })
}

fn write<'c>(
    e: &Emitter<'c>,
    graph: &Graph<'c>,
    pieces: &[Piece],
    constants: &[(NodeId, ConstantDescription)],
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
    let extra = i64::from(!graph.rows.is_empty());
    let bases: Vec<_> = (0..count)
        .map(|i| e.load_pointer(operands, 3 * i))
        .collect();
    let indices: Vec<_> = (0..count + extra)
        .map(|i| e.load_pointer(operands, 3 * i + 1))
        .collect();
    let results: Vec<_> = (0..graph.results.len() as i64)
        .map(|i| e.load_pointer(results, i))
        .collect();
    if pieces.iter().any(|piece| piece.plan.is_some()) {
        product::start(e, scratch);
    }
    e.for_loop(begin, end, 1, &[], |e, number, _| {
        let mut call = Call::new(graph);
        let entry = |at: usize| e.offset(indices[at], e.times(number, 4));
        for at in 0..graph.lengths {
            call.lengths.push(e.load_u32(entry(at)));
        }
        for (at, (node, form)) in graph.operands.iter().enumerate() {
            match form {
                Form::Length => {
                    let value = e.b.value("arith.trunci", &[call.lengths[at]], e.i32);
                    call.scalars.insert(*node, value);
                }
                Form::Scalar => {
                    let elem = graph.nodes[*node].elem;
                    let value = e.load_elem(entry(at), elem, Width::Scalar, None);
                    call.scalars.insert(*node, value);
                }
                Form::Row | Form::Ragged => {
                    let bytes = row_bytes(graph, *node);
                    let base = e.offset(bases[at], e.times(e.load_u32(entry(at)), bytes));
                    let memory = call.dense(e, base, *node, false);
                    call.memory.insert(*node, memory);
                }
            }
        }
        for (node, base) in &constants {
            let memory = call.dense(e, *base, *node, true);
            call.memory.insert(*node, memory);
        }
        let first = match graph.rows.is_empty() {
            true => number,
            false => e.load_u32(entry(graph.operands.len())),
        };
        for piece in pieces {
            let node = graph.results[piece.result];
            let bytes = result_row_bytes(graph, node);
            let base = e.offset(results[piece.result], e.times(first, bytes));
            let memory = call.dense(e, base, node, false);
            write_piece(e, &mut call, node, piece, &memory, scratch);
        }
        vec![]
    });
}

fn write_piece<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    node: NodeId,
    piece: &Piece,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    call.scope(|call| match &piece.plan {
        Some(Plan::Product(plan)) => {
            product::write(e, call, node, &piece.windows, plan, memory, scratch);
        }
        Some(Plan::Online(plan)) => {
            online::write(e, call, node, &piece.windows, plan, memory, scratch);
        }
        None => {
            let ranges: Vec<_> = piece
                .windows
                .iter()
                .map(|window| call.range(e, *window))
                .collect();
            call.store_all(e, node, &ranges, memory);
        }
    });
}

fn describe(
    kernel: OperationRef<'_, '_>,
    name: &str,
    graph: &Graph<'_>,
    constants: &[(NodeId, ConstantDescription)],
    scratch: i64,
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
    call.flops = flops(graph);
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
        scratch_bytes: scratch as u64,
        row_tile: 1,
        flops_per_row: 0,
        row_products: vec![],
        call,
    }
}

fn extent(sizes: &[Size], times: u64) -> Extent {
    let mut extent = Extent {
        lengths: vec![],
        times,
    };
    for size in sizes {
        match size {
            Size::Known(size) => extent.times *= *size as u64,
            Size::Length(length) => extent.lengths.push(*length),
        }
    }
    extent.lengths.sort_unstable();
    extent
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
