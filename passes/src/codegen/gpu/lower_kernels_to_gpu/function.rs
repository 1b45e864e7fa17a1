//! Writes the functions of one kernel, and describes them.

use std::collections::{BTreeMap, HashMap};

use cohort_abi::gpu::{GpuFunction, GpuLaunch, Precision};
use cohort_dialects::builder::{
    Builder, Val, arguments_of, name_of, operands_of, region_with_block,
};
use cohort_dialects::math::EXPANDABLE;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{IntegerAttribute, StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use super::ops::THREADS;
use super::plan::{Launch, Plan, Rows, Stage, Tile, plan};
use super::site::{Frame, Home};
use super::{Result, rows, tile};
use crate::codegen::emit::Emitter;
use crate::codegen::generic_body as loops;
use crate::codegen::gpu::binary::SUPPORTED_MATH;
use crate::kernel::description::{ConstantDescription, GpuDescription};
use crate::kernel::rows::body::Body;
use crate::kernel::rows::graph::{Graph, Kind, NodeId};
use crate::kernel::rows::layout::{Layouts, Place, Slot, round_up};
use crate::kernel::rows::read;
use crate::pass::{error, remark};
use crate::support::ir::{blocks_of, nested_ops};

/// Shared memory that a block may have without asking.
pub const SHARED: i64 = 48 * 1024;

/// Of it, what slots may take, so that a processor has room for several blocks.
const SHARED_SLOTS: i64 = 16 * 1024;

/// Blocks that a processor should hold at least: as many registers as that leaves are a thread's.
/// Without saying so, the assembler may spill some to make room for more blocks.
const BLOCKS: i64 = 2;

/// Arguments' bytes that every GPU takes.
pub const ARGUMENT_BYTES: usize = 4096;

pub enum Lowered<'c> {
    /// The description in JSON.
    Functions(String),
    Refused {
        op: OperationRef<'c, 'c>,
        reason: String,
    },
}

/// An operation of the kernel that no instruction or polynomial does.
fn foreign<'c>(graph: &Graph<'c>) -> Option<(OperationRef<'c, 'c>, String)> {
    let operations = graph.nodes.iter().flat_map(|node| match &node.kind {
        Kind::Pointwise { op, .. } => vec![*op],
        Kind::ReduceRows { op, .. } => nested_ops(*op),
        Kind::Loops(loops) => nested_ops(loops.op),
        _ => vec![],
    });
    operations.into_iter().find_map(is_foreign)
}

/// The operation, and why, if no instruction or polynomial does it.
pub fn is_foreign<'c>(op: OperationRef<'c, 'c>) -> Option<(OperationRef<'c, 'c>, String)> {
    let name = name_of(op);
    let float = operands_of(op)
        .first()
        .is_some_and(|o| o.r#type().to_string().contains("f32"));
    let known = EXPANDABLE.contains(&name.as_str())
        || SUPPORTED_MATH.contains(&name.as_str())
        || !name.starts_with("math.") && name != "arith.remf";
    (!known && float).then(|| (op, format!("`{name}` is not supported there")))
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
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let graph = read::read(block, scalars)?;
    for node in &graph.nodes {
        if let Kind::Loops(of_node) = &node.kind {
            loops::check(of_node.op, &of_node.loop_of_dim)?;
        }
    }
    if let Some((op, reason)) = foreign(&graph) {
        return Ok(Lowered::Refused { op, reason });
    }
    let plan = match plan(&graph) {
        Ok(plan) => plan,
        Err(refused) => {
            return Ok(Lowered::Refused {
                op: refused.op,
                reason: refused.reason.to_owned(),
            });
        }
    };
    if precision != Precision::F32 {
        tell_of_folds(&graph, &plan, precision);
    }
    let mut constants = Constants::default();
    for launch in &plan.launches {
        for place in places_of(&graph, &plan.layouts, launch, precision) {
            constants.touch(&graph, place);
        }
        if let Launch::Tile(tile) = launch
            && tile.is_rounded(&graph, precision)
        {
            constants.round(&graph, tile, precision);
        }
    }
    let arguments = 2 + 3 * graph.operands.len() + graph.results.len();
    if (arguments + constants.descriptions.len()) * 8 > ARGUMENT_BYTES {
        return Ok(Lowered::Refused {
            op: kernel,
            reason: "it has too many arguments".to_owned(),
        });
    }
    let memory = Memory::new(&graph, &plan, precision);
    let writer = FunctionWriter {
        context,
        module: module.at(kernel.location()),
        graph: &graph,
        plan: &plan,
        memory: &memory,
        constants: &constants,
        precision,
    };
    let launches = plan
        .launches
        .iter()
        .enumerate()
        .map(|(number, launch)| match launch {
            Launch::Tile(tile) => writer.tile(&format!("{name}${number}"), tile),
            Launch::Rows(rows) => writer.rows(&format!("{name}${number}"), number, rows),
        })
        .collect();
    let description = GpuDescription {
        constants: constants.descriptions,
        scratch_bytes: memory.once_bytes as u64,
        scratch_bytes_per_row: memory.row_bytes as u64,
        precision: match plan.launches.iter().any(Launch::multiplies) {
            true => precision,
            false => Precision::F32,
        },
        launches,
    };
    Ok(Lowered::Functions(description.to_json()))
}

/// Says which products keep `f32` although the module asks for less.
fn tell_of_folds(graph: &Graph<'_>, plan: &Plan<'_>, precision: Precision) {
    let stages = plan.launches.iter().flat_map(|launch| match launch {
        Launch::Rows(rows) => &rows.stages[..],
        Launch::Tile(_) => &[],
    });
    for stage in stages {
        let Stage::Fold(fold) = stage else { continue };
        let node = &graph.nodes[fold.node];
        if let Kind::Product { .. } = node.kind {
            let message = format!(
                "this product is of f32, not {precision}: it has {} columns, too few for tensor cores",
                node.shape.last().copied().unwrap_or(1)
            );
            remark(node.op, &message);
        }
    }
}

/// The memory that a launch reads or writes, without rounded weights.
fn places_of(
    graph: &Graph<'_>,
    layouts: &Layouts,
    launch: &Launch<'_>,
    precision: Precision,
) -> Vec<Place> {
    let of_node = |id: NodeId| layouts.of_node[id].as_ref().map(|layout| layout.place);
    let mut places = Vec::new();
    let mut of_body = |body: &Body<'_>, tile: Option<&Tile<'_>>| {
        for (buffer, address) in super::plan::loads_of(body) {
            if tile.is_none_or(|tile| tile.gate(buffer, &address).is_none()) {
                places.extend(of_node(buffer));
            }
        }
        places.extend(body.stores.iter().map(|store| store.place));
    };
    match launch {
        Launch::Tile(tile) => {
            of_body(&tile.body, Some(tile));
            for chain in &tile.chains {
                of_body(&chain.init, None);
            }
            for segment in tile.chains.iter().flat_map(|chain| &chain.segments) {
                places.extend(of_node(segment.a.buffer));
                if !tile.is_rounded(graph, precision) {
                    places.extend(of_node(segment.weight.buffer));
                }
            }
        }
        Launch::Rows(rows) => {
            for stage in &rows.stages {
                for body in stage.bodies() {
                    of_body(body, None);
                }
            }
            for stage in &rows.stages {
                match stage {
                    Stage::Group(_) => {}
                    Stage::Fold(fold) => places.extend(of_node(fold.node)),
                    Stage::List(list) => places.extend(of_node(list.node)),
                    Stage::Loops { node, inits, .. } => {
                        let results = loops::results_of_loops(graph, layouts, *node);
                        places.extend(results.into_iter().flatten().filter_map(of_node));
                        let views = inits.iter().flatten();
                        places.extend(views.filter_map(|view| of_node(view.buffer)));
                    }
                }
            }
        }
    }
    places
}

/// The constants that a kernel's functions touch.
#[derive(Default)]
struct Constants {
    descriptions: Vec<ConstantDescription>,
    of_node: BTreeMap<NodeId, usize>,
    /// Rounded weights of products, by the product.
    of_product: BTreeMap<NodeId, usize>,
}

impl Constants {
    fn touch(&mut self, graph: &Graph<'_>, place: Place) {
        let Place::Constant(node) = place else { return };
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
        let number = self.number(description);
        self.of_node.insert(node, number);
    }

    /// The weights of a tile's products, rounded.
    fn round(&mut self, graph: &Graph<'_>, tile: &Tile<'_>, precision: Precision) {
        for segment in tile.chains.iter().flat_map(|chain| &chain.segments) {
            let view = &segment.weight;
            let (Kind::Param(name), [down, across]) =
                (&graph.nodes[view.buffer].kind, &view.strides[..])
            else {
                continue;
            };
            let columns = graph.nodes[segment.product].shape.last();
            let number = self.number(ConstantDescription::Rounded {
                precision,
                param: name.clone(),
                offset: view.offset as u64,
                strides: [*down as u64, *across as u64],
                k: segment.k as u64,
                columns: columns.copied().unwrap_or(1) as u64,
            });
            self.of_product.insert(segment.product, number);
        }
    }

    fn number(&mut self, description: ConstantDescription) -> usize {
        let known = self.descriptions.iter().position(|d| *d == description);
        known.unwrap_or_else(|| {
            self.descriptions.push(description);
            self.descriptions.len() - 1
        })
    }
}

/// Where the slots of the scratch are.
struct Memory {
    homes: Vec<Home>,
    once_bytes: i64,
    row_bytes: i64,
    /// Bytes of slots in shared memory, by launch.
    shared: Vec<i64>,
}

impl Memory {
    fn new(graph: &Graph<'_>, plan: &Plan<'_>, precision: Precision) -> Memory {
        let slots = &plan.layouts.slots;
        let mut users: Vec<Vec<usize>> = vec![vec![]; slots.len()];
        for (number, launch) in plan.launches.iter().enumerate() {
            for place in places_of(graph, &plan.layouts, launch, precision) {
                if let Place::Slot(slot) = place
                    && users[slot].last() != Some(&number)
                {
                    users[slot].push(number);
                }
            }
        }
        let mut memory = Memory {
            homes: vec![],
            once_bytes: 0,
            row_bytes: 0,
            shared: vec![0; plan.launches.len()],
        };
        for (slot, users) in slots.iter().zip(&users) {
            let home = memory.home(graph, plan, slot, users);
            memory.homes.push(home);
        }
        memory
    }

    fn home(&mut self, graph: &Graph<'_>, plan: &Plan<'_>, slot: &Slot, users: &[usize]) -> Home {
        let Some(first) = users.first().copied() else {
            return Home::Nowhere;
        };
        let bytes = round_up(slot.bytes, 64);
        if !slot.rows {
            self.once_bytes += bytes;
            return Home::Once(self.once_bytes - bytes);
        }
        if let (Launch::Rows(of_launch), [_]) = (&plan.launches[first], users) {
            // Rows need no padding to whole cache lines there.
            let bytes = round_up(slot.bytes, 4);
            let all = round_up(bytes * rows::block_rows(graph, of_launch), 16);
            if self.shared[first] + all <= SHARED_SLOTS {
                self.shared[first] += all;
                return Home::Shared {
                    offset: self.shared[first] - all,
                    bytes,
                };
            }
        }
        self.row_bytes += bytes;
        Home::Rows {
            before: self.row_bytes - bytes,
            bytes,
        }
    }
}

struct FunctionWriter<'a, 'c> {
    context: &'c Context,
    module: Builder<'c>,
    graph: &'a Graph<'c>,
    plan: &'a Plan<'c>,
    memory: &'a Memory,
    constants: &'a Constants,
    precision: Precision,
}

impl<'c> FunctionWriter<'_, 'c> {
    fn tile(&self, name: &str, tile: &Tile<'c>) -> GpuLaunch {
        let is_rounded = tile.is_rounded(self.graph, self.precision);
        let sizes = tile::sizes(tile, self.precision, is_rounded);
        let functions = sizes.into_iter().zip(["small", "large"]);
        let functions = functions.map(|((size, from_rows), suffix)| {
            let symbol = format!("{name}_{suffix}");
            let shared = size.shared_bytes(tile);
            debug_assert!(shared <= SHARED);
            self.function(&symbol, shared, |e, frame| {
                tile::write(e, frame, tile, size)
            });
            GpuFunction {
                symbol,
                from_rows: from_rows as u64,
                threads: THREADS as u32,
                tile_rows_per_row: tile::matrix_rows(tile) as u64,
                tile_rows: size.block_rows() as u64,
                column_blocks: size.column_blocks(tile) as u32,
                shared_bytes: shared as u32,
                calls: None,
            }
        });
        GpuLaunch {
            functions: functions.collect(),
        }
    }

    fn rows(&self, name: &str, number: usize, rows: &Rows<'c>) -> GpuLaunch {
        let block_rows = rows::block_rows(self.graph, rows);
        let slots = round_up(self.memory.shared[number], 16);
        let shared = slots + rows::lanes_bytes(rows, block_rows);
        debug_assert!(shared <= SHARED);
        self.function(name, shared, |e, frame| {
            rows::write(e, frame, rows, block_rows, slots);
        });
        GpuLaunch {
            functions: vec![GpuFunction {
                symbol: name.to_owned(),
                from_rows: 0,
                threads: THREADS as u32,
                tile_rows_per_row: u64::from(!rows.once),
                tile_rows: block_rows as u64,
                column_blocks: 1,
                shared_bytes: shared as u32,
                calls: None,
            }],
        }
    }

    /// Adds a function with so many bytes of shared memory.
    fn function(&self, symbol: &str, shared: i64, body: impl FnOnce(&Emitter<'c>, &Frame<'_, 'c>)) {
        let pointers = 3 * self.graph.operands.len()
            + self.graph.results.len()
            + self.constants.descriptions.len()
            + 1;
        let module = (self.context, &self.module);
        add_function(module, symbol, pointers, shared, |e, arguments, shared| {
            body(e, &self.frame(arguments, shared));
        });
    }

    fn frame(&self, arguments: &[Val<'c>], shared: Option<Val<'c>>) -> Frame<'_, 'c> {
        let (rows, rest) = arguments.split_at(1);
        let (operands, rest) = rest.split_at(3 * self.graph.operands.len());
        let (results, rest) = rest.split_at(self.graph.results.len());
        let (constants, scratch) = rest.split_at(self.constants.descriptions.len());
        let by_node = |numbers: &BTreeMap<NodeId, usize>| -> HashMap<NodeId, Val<'c>> {
            let pairs = numbers.iter();
            pairs
                .map(|(node, number)| (*node, constants[*number]))
                .collect()
        };
        Frame {
            graph: self.graph,
            layouts: &self.plan.layouts,
            homes: &self.memory.homes,
            once_bytes: self.memory.once_bytes,
            rows: rows[0],
            operands: operands.chunks(3).map(|o| [o[0], o[1], o[2]]).collect(),
            results: results.to_vec(),
            constants: by_node(&self.constants.of_node),
            weights: by_node(&self.constants.of_product),
            scratch: scratch[0],
            shared,
        }
    }
}

/// Adds a function of an integer and so many pointers at the end of the `gpu.module`. Its body is given
/// the arguments and, if there are bytes of it, shared memory.
pub fn add_function<'c>(
    (context, module): (&'c Context, &Builder<'c>),
    symbol: &str,
    pointers: usize,
    shared: i64,
    body: impl FnOnce(&Emitter<'c>, &[Val<'c>], Option<Val<'c>>),
) {
    let i64 = module.ty("i64");
    let pointer = module.ty("!llvm.ptr<1>");
    let mut arguments = vec![i64];
    arguments.extend(vec![pointer; pointers]);

    let memory = format!("{symbol}$shared");
    if shared > 0 {
        shared_memory((context, module), &memory, shared);
    }
    let (region, entry) = region_with_block(&arguments, module.location);
    let inside = Builder::at_end(context, entry, module.location);
    let e = Emitter {
        pointer,
        ..Emitter::new(inside)
    };
    let shared = (shared > 0).then(|| {
        let name = module.symbol(&memory);
        let pointer = module.ty("!llvm.ptr<3>");
        e.b.value_with(
            "llvm.mlir.addressof",
            &[],
            pointer,
            &[("global_name", name)],
        )
    });
    body(&e, &arguments_of(entry), shared);
    e.b.op("gpu.return", &[], &[], &[], vec![]);

    let ty: Type<'c> = FunctionType::new(context, &arguments, &[]).into();
    module.op(
        "gpu.func",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(context, symbol).into()),
            ("function_type", TypeAttribute::new(ty).into()),
            ("gpu.kernel", Attribute::unit(context)),
            (
                "nvvm.minctasm",
                IntegerAttribute::new(module.ty("i32"), BLOCKS).into(),
            ),
            ("known_block_size", module.i32s(&[THREADS as i32, 1, 1])),
        ],
        vec![region],
    );
}

fn shared_memory<'c>((context, module): (&'c Context, &Builder<'c>), symbol: &str, bytes: i64) {
    let ty = module.ty(&format!("!llvm.array<{bytes} x i8>"));
    let number = |value, ty: &str| IntegerAttribute::new(module.ty(ty), value).into();
    module.op(
        "llvm.mlir.global",
        &[],
        &[],
        &[
            ("sym_name", StringAttribute::new(context, symbol).into()),
            ("global_type", TypeAttribute::new(ty).into()),
            ("linkage", module.internal_linkage()),
            ("addr_space", number(3, "i32")),
            ("alignment", number(16, "i64")),
        ],
        vec![melior::ir::Region::new()],
    );
}
