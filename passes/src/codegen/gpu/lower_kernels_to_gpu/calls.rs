//! Kernels whose unit is the call: tensors with ragged dims.
//!
//! What a call computes is the graph of values that the CPU reads as well (`passes/src/kernel/calls.rs`). Each
//! part of a result is a launch of its own, written by the first of these that fits:
//!
//! * a product of weights that are softmax-like folds of another product, where `online-folds` has
//!   asked for it: block by block of keys, with rescaled sums ([`online`]);
//! * a product, with what is elementwise before and behind it: tiles in shared memory ([`product`]);
//! * anything else: a thread an element, or a warp a row ([`generic`]).
//!
//! A factor of a product comes to shared memory in tiles ([`block`]). Whether it can be copied there
//! asynchronously, and in which layout, its type says ([`side`]); all else is computed by the thread that
//! stores it ([`source`]). With a precision that the module names, products are computed by tensor cores.
//!
//! A block has one tile of one call. Which, it reads from a list that the host makes of the calls'
//! lengths (`abi/src/gpu.rs`); so calls of any lengths, none included, are one launch. Tiles
//! and the order of every fold are counted from the call's own first row, so a call's bits do not
//! depend on the calls around it.

mod block;
mod eval;
mod generic;
mod online;
mod product;
mod side;
mod source;

use std::collections::HashSet;

use cohort_abi::gpu::{CallTiles, GpuFunction, GpuLaunch, Precision, TiledDim};
use cohort_dialects::builder::{Builder, Val};
use melior::{
    Context,
    ir::{OperationRef, operation::OperationLike},
};

use super::Result;
use super::function::{ARGUMENT_BYTES, Lowered, SHARED, add_function, is_foreign};
use super::ops::{THREADS, block as block_id, store_neighbours};
use crate::codegen::emit::{Emitter, Width};
use crate::kernel::calls::graph::{Form, Graph, Index, Kind, NodeId, Var};
use crate::kernel::calls::memory::{constants, extent, result_row_bytes, row_bytes};
use crate::kernel::calls::parts::{self, Window};
use crate::kernel::description::{ConstantDescription, GpuDescription};
use crate::pass::remark;
use eval::{Call, Memory};

/// How a part of a result is computed.
enum Plan {
    Online(online::Plan),
    Product(product::Plan),
    Generic(generic::Plan),
}

type Part = parts::Part<Plan>;

/// What a block computes: from where on in each dim of a plan's tiles. And its shared memory.
struct Tile<'c> {
    first: Vec<Val<'c>>,
    shared: Val<'c>,
    /// Zero, which LLVM cannot tell: it unrolls loops of few steps otherwise, and has the addresses of
    /// all steps in registers.
    zero: Val<'c>,
}

/// Adds a kernel's functions at the end of the `gpu.module`.
pub fn lower<'c>(
    context: &'c Context,
    module: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    scalars: &[bool],
    precision: Precision,
) -> Result<Lowered<'c>> {
    let (graph, parts) = parts::plan(kernel, scalars, |graph, node, windows| {
        Plan::new(graph, node, windows, precision)
    })?;
    let operations = graph.nodes.iter().filter_map(|node| match &node.kind {
        Kind::Pointwise { op, .. } => Some(*op),
        _ => None,
    });
    if let Some((op, reason)) = operations.into_iter().find_map(is_foreign) {
        return Ok(Lowered::Refused { op, reason });
    }
    let constants = constants(&graph);
    let arguments = 3 + 3 * graph.operands.len() + graph.results.len() + parts.len();
    if (arguments + constants.len()) * 8 > ARGUMENT_BYTES {
        return Ok(Lowered::Refused {
            op: kernel,
            reason: "it has too many arguments".to_owned(),
        });
    }
    let writer = Writer {
        context,
        module: module.at(kernel.location()),
        graph: &graph,
        constants: &constants,
        launches: parts.len(),
    };
    let launches = parts.iter().enumerate();
    let launches =
        launches.map(|(number, part)| writer.launch(&format!("{name}${number}"), number, part));
    let multiplied: Vec<NodeId> = parts.iter().flat_map(|part| part.plan.products()).collect();
    if precision != Precision::F32 {
        for node in products(&graph) {
            if !multiplied.contains(&node) {
                let message =
                    format!("a product of f32, not {precision}: it is no tile of a result");
                remark(graph.nodes[node].op, &message);
            }
        }
    }
    let description = GpuDescription {
        precision: match multiplied.is_empty() {
            true => Precision::F32,
            false => precision,
        },
        launches: launches.collect(),
        constants: constants
            .iter()
            .map(|(_, described)| described.clone())
            .collect(),
        scratch_bytes: 0,
        scratch_bytes_per_row: 0,
    };
    Ok(Lowered::Functions(description.to_json()))
}

impl Plan {
    fn new(graph: &Graph<'_>, node: NodeId, windows: &[Window], precision: Precision) -> Plan {
        let online = online::plan(graph, node, windows, precision).map(Plan::Online);
        let product = || product::plan(graph, node, windows, precision).map(Plan::Product);
        online
            .or_else(product)
            .unwrap_or_else(|| Plan::Generic(generic::plan(graph, node, windows)))
    }

    /// The products that are tiles.
    fn products(&self) -> Vec<NodeId> {
        match self {
            Plan::Online(plan) => plan.nodes(),
            Plan::Product(plan) => plan.nodes(),
            Plan::Generic(_) => vec![],
        }
    }
}

/// The sums of products that results are made of.
fn products(graph: &Graph<'_>) -> Vec<NodeId> {
    let (mut found, mut seen) = (vec![], HashSet::new());
    let mut roots = graph.results.clone();
    while let Some(root) = roots.pop() {
        for fold in graph.folds(root, &[]) {
            if !seen.insert(fold) {
                continue;
            }
            if let Kind::Reduce { input, init, .. } = &graph.nodes[fold].kind {
                roots.extend([*input, *init]);
            }
            if graph.is_sum_of_products(fold) {
                found.push(fold);
            }
        }
    }
    found
}

/// A part's dim, cut into tiles.
fn tiled(window: &Window, tile: i64) -> TiledDim {
    TiledDim {
        length: extent(&[window.size], 1),
        tile: tile as u64,
    }
}

fn size_of<'c>(e: &Emitter<'c>, call: &Call<'_, 'c>, window: &Window) -> Val<'c> {
    call.size(e, window.size)
}

/// Computes a part's elements at variables of its dims, and stores them at once: neighbours along the last.
fn store<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    elements: &[Vec<Var>],
    memory: &Memory<'c>,
) {
    let index = |vars: &[Var]| -> Vec<Index> {
        let dims = vars.iter().zip(windows);
        dims.map(|(var, window)| Index::var(*var).plus(&Index::constant(window.from)))
            .collect()
    };
    let values: Vec<_> = elements
        .iter()
        .map(|vars| call.value(e, root, &index(vars)))
        .collect();
    let address = call.address(e, memory, &index(&elements[0]));
    store_neighbours(e, &values, address, call.graph.nodes[root].elem);
}

struct Writer<'a, 'c> {
    context: &'c Context,
    module: Builder<'c>,
    graph: &'a Graph<'c>,
    constants: &'a [(NodeId, ConstantDescription)],
    launches: usize,
}

/// What is written of a tile: the part's root and windows are those of a result.
type Body<'b, 'c> =
    dyn FnMut(&Emitter<'c>, &mut Call<'_, 'c>, (NodeId, &[Window]), &Tile<'c>, &Memory<'c>) + 'b;

/// A function of a launch.
struct Function<'a> {
    symbol: String,
    part: &'a Part,
    /// The number of the launch.
    number: usize,
    from_blocks: u64,
    shared_bytes: i64,
    tiles: CallTiles,
}

impl<'c> Writer<'_, 'c> {
    fn launch(&self, name: &str, number: usize, part: &Part) -> GpuLaunch {
        let graph = self.graph;
        let windows = &part.windows[..];
        let function = |symbol: String, shared_bytes: i64, tiles: CallTiles| Function {
            symbol,
            part,
            number,
            from_blocks: 0,
            shared_bytes,
            tiles,
        };
        let symbol = name.to_owned();
        let functions = match &part.plan {
            Plan::Online(plan) => {
                let function = function(symbol, plan.shared_bytes(), plan.tiles(graph, windows));
                vec![self.function(function, &mut |e, call, root, tile, memory| {
                    online::write(e, call, root, plan, tile, memory);
                })]
            }
            Plan::Product(plan) => {
                let sizes = plan.sizes(windows).into_iter().zip(["small", "large"]);
                sizes
                    .map(|((sizes, from_blocks), suffix)| {
                        let symbol = format!("{name}_{suffix}");
                        let tiles = plan.tiles(graph, windows, sizes);
                        let function = Function {
                            from_blocks,
                            ..function(symbol, plan.shared_bytes(sizes), tiles)
                        };
                        self.function(function, &mut |e, call, root, tile, memory| {
                            product::write(e, call, root, (plan, sizes), tile, memory);
                        })
                    })
                    .collect()
            }
            Plan::Generic(plan) => {
                let tiles = plan.tiles(graph, graph.results[part.result], windows);
                let function = function(symbol, plan.shared_bytes(), tiles);
                vec![self.function(function, &mut |e, call, root, tile, memory| {
                    generic::write(e, call, root, *plan, tile, memory);
                })]
            }
        };
        GpuLaunch { functions }
    }

    fn function(&self, function: Function<'_>, body: &mut Body<'_, 'c>) -> GpuFunction {
        debug_assert!(function.shared_bytes <= SHARED);
        let graph = self.graph;
        let pointers = 3 * graph.operands.len() + graph.results.len() + 2;
        let pointers = pointers + self.constants.len() + self.launches;
        let module = (self.context, &self.module);
        let shared = function.shared_bytes;
        add_function(
            module,
            &function.symbol,
            pointers,
            shared,
            |e, arguments, memory| {
                // Where there is no shared memory, nobody asks for it.
                let shared = memory.unwrap_or_else(|| e.int(0));
                self.body(e, arguments, shared, &function, body);
            },
        );
        GpuFunction {
            symbol: function.symbol,
            from_rows: function.from_blocks,
            threads: THREADS as u32,
            tile_rows_per_row: 0,
            tile_rows: 1,
            column_blocks: 1,
            shared_bytes: shared as u32,
            calls: Some(function.tiles),
        }
    }

    fn body(
        &self,
        e: &Emitter<'c>,
        arguments: &[Val<'c>],
        shared: Val<'c>,
        function: &Function<'_>,
        body: &mut Body<'_, 'c>,
    ) {
        let graph = self.graph;
        let (operands, rest) = arguments[1..].split_at(3 * graph.operands.len());
        let (firsts, rest) = rest.split_at(1);
        let (results, rest) = rest.split_at(graph.results.len());
        let (constants, rest) = rest.split_at(self.constants.len());
        // Behind the scratch, which no function needs.
        let blocks = rest[1 + function.number];

        let entry = e.offset(blocks, e.times(block_id(e, "x"), 8));
        let of_call = e.times(e.load_u32(entry), 4);
        let tile = e.load_u32(e.offset_by(entry, 4));
        let mut call = Call::new(graph);
        let operand = |at: usize| e.offset(operands[3 * at + 1], of_call);
        for at in 0..graph.lengths {
            call.lengths.push(e.load_u32(operand(at)));
        }
        for (at, (node, form)) in graph.operands.iter().enumerate() {
            match form {
                Form::Length => {
                    let value = e.b.value("arith.trunci", &[call.lengths[at]], e.i32);
                    call.scalars.insert(*node, value);
                }
                Form::Scalar => {
                    let elem = graph.nodes[*node].elem;
                    let value = e.load_elem(operand(at), elem, Width::Scalar, None);
                    call.scalars.insert(*node, value);
                }
                Form::Row | Form::Ragged => {
                    let row = e.load_u32(operand(at));
                    let base = e.offset(operands[3 * at], e.times(row, row_bytes(graph, *node)));
                    let memory = call.dense(e, base, *node);
                    call.memory.insert(*node, memory);
                }
            }
        }
        for ((node, _), base) in self.constants.iter().zip(constants) {
            let memory = call.dense(e, *base, *node);
            call.memory.insert(*node, memory);
        }
        let part = function.part;
        let root = graph.results[part.result];
        let first = e.load_u32(e.offset(firsts[0], of_call));
        let bytes = e.times(first, result_row_bytes(graph, root));
        let memory = call.dense(e, e.offset(results[part.result], bytes), root);
        let tile = Tile {
            first: firsts_of(e, &call, &function.tiles, tile),
            shared,
            // There are never so many calls.
            zero: e.shift_right(arguments[0], 62),
        };
        body(e, &mut call, (root, &part.windows), &tile, &memory);
    }
}

/// Where a tile begins in each dim of a call's tiles.
fn firsts_of<'c>(
    e: &Emitter<'c>,
    call: &Call<'_, 'c>,
    tiles: &CallTiles,
    number: Val<'c>,
) -> Vec<Val<'c>> {
    let counts: Vec<Val<'c>> = tiles
        .dims
        .iter()
        .map(|dim| {
            let lengths = dim.length.lengths.iter();
            let times = e.int(dim.length.times as i64);
            let length = lengths.fold(times, |product, at| e.mul(product, call.lengths[*at]));
            let tile = dim.tile as i64;
            let up = e.add(length, e.int(tile - 1));
            e.b.value("arith.divui", &[up, e.int(tile)], e.i64)
        })
        .collect();
    let places = split(e, number, &counts).into_iter().zip(&tiles.dims);
    places
        .map(|(at, dim)| e.times(at, dim.tile as i64))
        .collect()
}

/// The index of an entry of dims of these sizes, row-major.
fn split<'c>(e: &Emitter<'c>, at: Val<'c>, sizes: &[Val<'c>]) -> Vec<Val<'c>> {
    let mut rest = at;
    let mut index = vec![];
    for (dim, size) in sizes.iter().enumerate().rev() {
        if dim == 0 {
            index.push(rest);
        } else {
            index.push(e.b.value("arith.remui", &[rest, *size], e.i64));
            rest = e.b.value("arith.divui", &[rest, *size], e.i64);
        }
    }
    index.reverse();
    index
}
