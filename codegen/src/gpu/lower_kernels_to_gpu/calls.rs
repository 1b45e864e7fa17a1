//! Kernels whose unit is the call: tensors with ragged dims.
//!
//! What a call computes is read from the loop level, as for the CPU (`passes/src/kernel/calls/loops.rs`). Each stage
//! of `ragged.calls` is a launch of its own, but those that go on from sums are one with the stages before
//! ([`launches()`]):
//!
//! * `ragged.online_softmax`: block by block of keys, with rescaled sums ([`online`]);
//! * `ragged.matmul`: tiles in shared memory ([`product`]);
//! * `ragged.nest`: a thread an element, or a warp a row ([`generic`]).
//!
//! A factor of a product comes to shared memory in tiles ([`block`]). Which neighbours are neighbours there the stage
//! says, and whether they can be copied asynchronously their memory ([`side`]); all else is computed by the thread that
//! stores it ([`source`]). With a precision that the module names, products are computed by tensor cores.
//!
//! A block has one tile of one call. Which, it reads from a list that the host makes of the calls'
//! lengths (`abi/src/gpu.rs`); so calls of any lengths, none included, are one launch. Tiles
//! and the order of every fold are counted from the call's own first row, so a call's bits do not
//! depend on the calls around it.

mod block;
mod eval;
mod generic;
mod launches;
mod online;
mod product;
mod side;
mod source;
mod warps;

use std::collections::HashSet;

use cohort_abi::gpu::{ARGUMENT_BYTES, CallTiles, GpuFunction, Precision, TiledDim};
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{Builder, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::graph::{Form, Graph, Kind, NodeId, Size};
use cohort_passes::kernel::calls::loops::{self, Kernel};
use cohort_passes::kernel::calls::memory::{constants, extent, result_row_bytes, row_bytes};
use cohort_passes::kernel::calls::stages::Store;
use cohort_passes::kernel::description::{ConstantDescription, GpuDescription, to_json};
use cohort_passes::pass::remark;
use melior::{
    Context,
    ir::{OperationRef, operation::OperationLike},
};

use super::Result;
use super::function::{Block, Lowered, SHARED, add_function, in_waves, is_foreign};
use super::ops::{THREADS, block as block_id, store_neighbours};
use crate::emit::{Emitter, Width};
use eval::{Call, Memory};
use launches::{Launch, launches};

/// What a block computes: from where on in each dim of a plan's tiles. And its shared memory.
struct Tile<'c> {
    first: Vec<Val<'c>>,
    shared: Val<'c>,
    /// Zero, which LLVM cannot tell: it unrolls loops of few steps otherwise, and has the addresses of
    /// all steps in registers.
    zero: Val<'c>,
}

/// Adds the functions of a kernel at the loop level at the end of the `gpu.module`.
pub fn lower<'c>(
    context: &'c Context,
    module: &Builder<'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    precision: Precision,
) -> Result<Lowered<'c>> {
    let Kernel {
        graph,
        stages,
        waves,
        ..
    } = loops::read(kernel)?;
    let values = stages.iter().flat_map(|stage| stage.values());
    let values: Vec<NodeId> = values.map(|(node, _)| node).collect();
    let operations = graph.nodes.iter().filter_map(|node| match &node.kind {
        Kind::Pointwise { op, .. } => Some(*op),
        _ => None,
    });
    if let Some((op, reason)) = operations.into_iter().find_map(is_foreign) {
        return Ok(Lowered::Refused { op, reason });
    }
    let launches = launches(&graph, waves.into_iter().zip(stages), precision);
    let (waves, launches): (Vec<_>, Vec<_>) = match launches {
        Ok(launches) => launches.into_iter().unzip(),
        Err(reason) => return Ok(Lowered::Refused { op: kernel, reason }),
    };
    let constants = constants(&graph);
    let arguments = 3 + 3 * graph.operands.len() + graph.results.len() + launches.len();
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
        launches: launches.len(),
    };
    if precision != Precision::F32 {
        for operation in products(&graph, values) {
            let message = format!(
                "a product of f32, not {precision}: it does not compute a tile of a result"
            );
            remark(operation, &message);
        }
    }
    let is_multiplied = launches
        .iter()
        .any(|launch| !matches!(launch, Launch::Loops(_)));
    let functions = launches.iter().enumerate();
    let functions = functions.map(|(number, launch)| writer.launch(name, number, launch));
    let description = GpuDescription {
        precision: match is_multiplied {
            true => precision,
            false => Precision::F32,
        },
        launches: in_waves(functions.collect(), &waves),
        constants: constants
            .iter()
            .map(|(_, described)| described.clone())
            .collect(),
        scratch_bytes: 0,
        scratch_bytes_per_row: 0,
    };
    Ok(Lowered::Functions(to_json(&description)))
}

/// The sums of products that values are made of, which are not tiles; one that several stages compute counts once.
fn products<'c>(graph: &Graph<'c>, mut roots: Vec<NodeId>) -> Vec<OperationRef<'c, 'c>> {
    let (mut found, mut seen, mut places) = (vec![], HashSet::new(), HashSet::new());
    while let Some(root) = roots.pop() {
        for fold in graph.folds(root, &[]) {
            if !seen.insert(fold) {
                continue;
            }
            if let Kind::Reduce { input, init, .. } = &graph.nodes[fold].kind {
                roots.extend([*input, *init]);
            }
            let operation = graph.nodes[fold].op;
            if graph.is_sum_of_products(fold)
                && places.insert(operation.location().to_raw().ptr as usize)
            {
                found.push(operation);
            }
        }
    }
    found
}

/// A stage's dim, cut into tiles.
fn tiled(size: Size, tile: i64) -> TiledDim {
    TiledDim {
        length: extent(&[size], 1),
        tile: tile as u64,
    }
}

/// An index of a stage's loops, where these are variables.
fn at(index: &[Affine], vars: &[Var]) -> Vec<Affine> {
    let vars: Vec<Affine> = vars.iter().copied().map(Affine::var).collect();
    index.iter().map(|index| index.at(&vars)).collect()
}

/// Computes what is stored for some indices of loops, and stores it at once: neighbours along the last loop.
fn store<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    store: &Store,
    elements: &[Vec<Var>],
    memory: &Memory<'c>,
) {
    let values: Vec<_> = elements
        .iter()
        .map(|vars| call.value(e, store.value, &at(&store.at, vars)))
        .collect();
    let address = call.address(e, memory, &at(&store.to, &elements[0]));
    let result = call.graph.results[store.result];
    store_neighbours(e, &values, address, call.graph.nodes[result].elem);
}

struct Writer<'a, 'c> {
    context: &'c Context,
    module: Builder<'c>,
    graph: &'a Graph<'c>,
    constants: &'a [(NodeId, ConstantDescription)],
    launches: usize,
}

/// What is written of a tile, into the memory of a result.
type Body<'b, 'c> = dyn FnMut(&Emitter<'c>, &mut Call<'_, 'c>, &Tile<'c>, &Memory<'c>) + 'b;

/// A function of a launch.
struct Function {
    symbol: String,
    /// The numbers of the launch and of the result.
    number: usize,
    result: usize,
    from_blocks: u64,
    shared_bytes: i64,
    tiles: CallTiles,
}

impl<'c> Writer<'_, 'c> {
    fn launch(&self, name: &str, number: usize, launch: &Launch) -> Vec<GpuFunction> {
        let graph = self.graph;
        let function = |suffix: &str, shared_bytes: i64, tiles: CallTiles| Function {
            symbol: format!("{name}${number}{suffix}"),
            number,
            result: launch.store().result,
            from_blocks: 0,
            shared_bytes,
            tiles,
        };
        match launch {
            Launch::Online(plan) => {
                let function = function("", plan.shared_bytes(), plan.tiles());
                vec![self.function(function, &mut |e, call, tile, memory| {
                    online::write(e, call, plan, tile, memory);
                })]
            }
            Launch::Product(plan) => {
                let sizes = plan.sizes().into_iter().zip(["_small", "_large"]);
                sizes
                    .map(|((cells, from_blocks), suffix)| {
                        let tiles = plan.tiles(cells);
                        let function = Function {
                            from_blocks,
                            ..function(suffix, plan.shared_bytes(cells), tiles)
                        };
                        self.function(function, &mut |e, call, tile, memory| {
                            product::write(e, call, (plan, cells), tile, memory);
                        })
                    })
                    .collect()
            }
            Launch::Loops(plan) => {
                let function = function("", plan.shared_bytes(), plan.tiles(graph));
                vec![self.function(function, &mut |e, call, tile, memory| {
                    generic::write(e, call, plan, tile, memory);
                })]
            }
        }
    }

    fn function(&self, function: Function, body: &mut Body<'_, 'c>) -> GpuFunction {
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
            Block::new(THREADS, shared),
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
            grid_stride: false,
            calls: Some(function.tiles),
        }
    }

    fn body(
        &self,
        e: &Emitter<'c>,
        arguments: &[Val<'c>],
        shared: Val<'c>,
        function: &Function,
        body: &mut Body<'_, 'c>,
    ) {
        let graph = self.graph;
        let (operands, rest) = arguments[1..].split_at(3 * graph.operands.len());
        let (firsts, rest) = rest.split_at(1);
        let (results, rest) = rest.split_at(graph.results.len());
        let (constants, rest) = rest.split_at(self.constants.len());
        // Behind the scratch, which no function needs.
        let blocks = rest[1 + function.number];

        let entry = e.offset(blocks, e.times(block_id(e, GpuDim::X), 8));
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
                    let value = e.b.trunci(call.lengths[at], e.i32);
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
        let result = graph.results[function.result];
        let first = e.load_u32(e.offset(firsts[0], of_call));
        let bytes = e.times(first, result_row_bytes(graph, result));
        let memory = call.dense(e, e.offset(results[function.result], bytes), result);
        let tile = Tile {
            first: firsts_of(e, &call, &function.tiles, tile),
            shared,
            // There are never as many calls as would make this more.
            zero: e.shift_right(arguments[0], 62),
        };
        body(e, &mut call, &tile, &memory);
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
            e.b.divui(up, e.int(tile))
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
            index.push(e.b.remui(rest, *size));
            rest = e.b.divui(rest, *size);
        }
    }
    index.reverse();
    index
}
