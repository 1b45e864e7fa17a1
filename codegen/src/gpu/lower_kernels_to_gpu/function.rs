//! Writes the functions of one kernel, and describes them.

use crate::math::EXPANDABLE;
use cohort_abi::gpu::{
    ARGUMENT_BYTES, GpuFunction, GpuLaunch, MOST_CLUSTER_SHARED_BYTES, MOST_SHARED_BYTES,
    Precision, STATIC_SHARED_BYTES, dynamic_shared_bytes,
};
use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, arguments_of, element_of, name_of, operands_of, region_with_block,
};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_passes::kernel::description::{ConstantDescription, GpuDescription, to_json};
use cohort_passes::kernel::rows::layout::{Place, Slot, round_up};
use cohort_passes::pass::error;
use cohort_passes::support::ir::{nested_ops, set_attribute};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, TypeLike, ValueLike,
        attribute::{IntegerAttribute, StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use super::launches::{self, Form, Launch, Rows, Stage, Tile};
use super::ops::THREADS;
use super::site::{Frame, Home, loads_of};
use super::tile::{Resident, resident};
use super::{Result, rows, tile};
use crate::emit::Emitter;
use crate::gpu::binary::SUPPORTED_MATH;
use crate::read_rows::body::Body;
use crate::read_rows::kernel::Kernel;
use crate::read_rows::memory::{Arguments, OperandFields};

/// Limits of shared memory per block, in bytes: static, dynamic, and dynamic in a cluster.
pub const SHARED: i64 = STATIC_SHARED_BYTES as i64;
pub const MOST_SHARED: i64 = MOST_SHARED_BYTES as i64;
pub const MOST_CLUSTER_SHARED: i64 = MOST_CLUSTER_SHARED_BYTES as i64;

/// Threads that a processor should hold at least: as many registers as that leaves are a thread's.
/// Without saying so, the assembler may spill some to make room for more blocks.
const THREADS_A_PROCESSOR: i64 = 256;

pub enum Lowered<'c> {
    /// The description in JSON.
    Functions(String),
    Refused {
        op: OperationRef<'c, 'c>,
        reason: String,
    },
}

/// The operation, and why, if no instruction or polynomial does it.
pub fn is_foreign<'c>(op: OperationRef<'c, 'c>) -> Option<(OperationRef<'c, 'c>, String)> {
    let float = operands_of(op)
        .first()
        .is_some_and(|operand| element_of(operand.r#type()).is_f32());
    let known = Op::of(op)
        .is_some_and(|kind| EXPANDABLE.contains(&kind) || SUPPORTED_MATH.contains(&kind))
        || !Dialect::Math.has(op) && !Op::ArithRemf.is(op);
    (!known && float).then(|| (op, format!("`{}` is not supported there", name_of(op))))
}

/// Adds a kernel's functions at the end of the `gpu.module`.
pub fn lower<'c>(
    context: &'c Context,
    module: &Builder<'c>,
    op: OperationRef<'c, 'c>,
    (name, number): (&str, usize),
) -> Result<Lowered<'c>> {
    let kernel = Kernel::read(op)?;
    let (waves, launches): (Vec<_>, Vec<_>) = launches::read(&kernel)?.into_iter().unzip();
    if let Some((op, reason)) = nested_ops(op).into_iter().find_map(is_foreign) {
        return Ok(Lowered::Refused { op, reason });
    }
    let constants = constants_of(&kernel, &launches);
    let arguments = 2 + 3 * kernel.operands.len() + kernel.results.len();
    if (arguments + constants.len()) * 8 > ARGUMENT_BYTES {
        let reason = "it has too many arguments".to_owned();
        return Ok(Lowered::Refused { op, reason });
    }
    let memory = Memory::new(&kernel, &launches)?;
    let writer = FunctionWriter {
        context,
        module: module.at(op.location()),
        kernel: &kernel,
        memory: &memory,
        constants: &constants,
        number,
    };
    let functions = launches.iter().enumerate();
    let functions: Result<Vec<Vec<GpuFunction>>> = functions
        .map(|(number, launch)| {
            let name = format!("{name}${number}");
            match launch {
                Launch::Tile(tile) => writer.tile(&name, tile),
                Launch::Rows(rows) => writer.rows(&name, number, rows),
            }
        })
        .collect();
    let held = launches
        .iter()
        .enumerate()
        .map(|(at, launch)| match launch {
            Launch::Tile(tile) => writer.held(&format!("{name}${at}"), tile),
            Launch::Rows(_) => Ok([None, None]),
        });
    let held: Result<Vec<[Option<GpuFunction>; 2]>> = held.collect();
    let grouped = launches
        .iter()
        .enumerate()
        .map(|(at, launch)| match launch {
            Launch::Tile(tile) => writer.grouped(&format!("{name}${at}"), tile),
            Launch::Rows(_) => Ok(None),
        });
    let grouped: Result<Vec<Option<GpuFunction>>> = grouped.collect();
    let precisions = launches.iter().map(|launch| match launch {
        Launch::Tile(tile) => tile.precision,
        Launch::Rows(_) => Precision::F32,
    });
    let precision = precisions.into_iter().find(|p| *p != Precision::F32);
    let mut launches = in_waves(functions?, &waves);
    for ((launch, held), grouped) in launches.iter_mut().zip(held?).zip(grouped?) {
        [launch.resident, launch.clustered] = held;
        launch.grouped = grouped;
    }
    let description = GpuDescription {
        scratch_bytes: memory.once_bytes as u64,
        scratch_bytes_per_row: memory.row_bytes as u64,
        precision: precision.unwrap_or(Precision::F32),
        launches,
        constants,
    };
    Ok(Lowered::Functions(to_json(&description)))
}

/// With each launch the shared memory that its function for most rows needs of those that a flush can run, in bytes.
pub fn shared_bytes<'c>(
    kernel: &Kernel<'c>,
    launches: Vec<Launch<'c>>,
) -> Result<Vec<(Launch<'c>, i64)>> {
    let memory = Memory::new(kernel, &launches)?;
    let of_launch = |(launch, slots): (Launch<'c>, i64)| {
        let bytes = match &launch {
            Launch::Tile(tile) => tile.large.0.shared_bytes(tile.gates()),
            Launch::Rows(rows) => round_up(slots, 16) + rows::lanes_bytes(rows),
        };
        (launch, bytes)
    };
    let all = launches.into_iter().zip(memory.shared);
    Ok(all.map(of_launch).collect())
}

/// Launches of these functions, which are beside those before them that have the same wave.
pub(super) fn in_waves(functions: Vec<Vec<GpuFunction>>, waves: &[usize]) -> Vec<GpuLaunch> {
    let launches = functions.into_iter().enumerate();
    let launches = launches.map(|(number, functions)| GpuLaunch {
        functions,
        grouped: None,
        resident: None,
        clustered: None,
        beside: number > 0 && waves[number] == waves[number - 1],
    });
    launches.collect()
}

/// The memory that a launch reads or writes, without rounded weights.
fn places_of(kernel: &Kernel<'_>, launch: &Launch<'_>) -> Vec<Place> {
    let of_body = |body: &Body<'_>| {
        let loads = loads_of(body).map(|(place, _)| place);
        let stores = body.stores.iter().map(|store| store.place);
        loads.chain(stores).collect::<Vec<Place>>()
    };
    let mut places = Vec::new();
    match launch {
        Launch::Tile(tile) => {
            places.extend(of_body(&tile.body));
            for chain in &tile.chains {
                places.extend(of_body(&chain.init));
            }
            for segment in tile.chains.iter().flat_map(|chain| &chain.segments) {
                places.push(segment.left);
                if segment.rounded.is_none() {
                    places.push(segment.right);
                }
            }
        }
        Launch::Rows(rows) => {
            for stage in &rows.stages {
                match stage {
                    Stage::Group(body, _) => places.extend(of_body(body)),
                    Stage::Fold(fold) => {
                        places.extend(of_body(&fold.body));
                        places.extend(of_body(&fold.init));
                    }
                    Stage::List(list) => places.extend(of_body(&list.init)),
                    Stage::Loops(loops) => places.extend(loops.places(kernel)),
                }
            }
            for stage in &rows.stages {
                match stage {
                    Stage::Fold(fold) => places.push(fold.store.place),
                    Stage::List(list) => places.push(list.store.place),
                    Stage::Group(..) | Stage::Loops(_) => {}
                }
            }
        }
    }
    places
}

/// The constants that a kernel's functions take: what they touch, each once.
fn constants_of(kernel: &Kernel<'_>, launches: &[Launch<'_>]) -> Vec<ConstantDescription> {
    let mut constants = vec![];
    let mut touch = |description: &ConstantDescription| {
        if !constants.contains(description) {
            constants.push(description.clone());
        }
    };
    for launch in launches {
        for place in places_of(kernel, launch) {
            if let Place::Constant(constant) = place {
                touch(&kernel.constants[constant]);
            }
        }
        if let Launch::Tile(tile) = launch {
            let segments = tile.chains.iter().flat_map(|chain| &chain.segments);
            segments
                .flat_map(|segment| segment.rounded.iter().chain(&segment.by_columns))
                .for_each(&mut touch);
        }
    }
    constants
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
    fn new(kernel: &Kernel<'_>, launches: &[Launch<'_>]) -> Result<Memory> {
        let mut memory = Memory {
            homes: vec![],
            once_bytes: 0,
            row_bytes: 0,
            shared: vec![0; launches.len()],
        };
        let places = launches.iter().map(|launch| places_of(kernel, launch));
        let places: Vec<_> = places.collect();
        for (number, slot) in kernel.slots.iter().enumerate() {
            let mut users = places.iter();
            let user = users.position(|places| places.contains(&Place::Slot(number)));
            let home = match user {
                Some(launch) if slot.on_chip => memory.on_chip(slot, launch, &launches[launch])?,
                Some(_) if slot.rows => {
                    memory.row_bytes += slot.bytes;
                    Home::Rows {
                        before: memory.row_bytes - slot.bytes,
                        bytes: slot.bytes,
                    }
                }
                Some(_) => {
                    memory.once_bytes += slot.bytes;
                    Home::Once(memory.once_bytes - slot.bytes)
                }
                None => Home::Nowhere,
            };
            memory.homes.push(home);
        }
        Ok(memory)
    }

    /// In the shared memory of the one launch that touches it.
    fn on_chip(&mut self, slot: &Slot, number: usize, launch: &Launch<'_>) -> Result<Home> {
        let rows = match launch {
            Launch::Rows(rows) => rows,
            Launch::Tile(tile) => return Err(error(tile.op, "expected scratch of the device")),
        };
        let offset = self.shared[number];
        self.shared[number] += round_up(slot.bytes * rows.block_rows, 16);
        fits(rows.op, self.shared[number], SHARED)?;
        Ok(Home::Shared {
            offset,
            bytes: slot.bytes,
        })
    }
}

/// Refuses a launch that needs more shared memory than a block has.
fn fits(op: OperationRef<'_, '_>, bytes: i64, most: i64) -> Result<()> {
    match bytes <= most {
        true => Ok(()),
        false => {
            let message = format!("a block needs {bytes} bytes of shared memory, and has {most}");
            Err(error(op, &message))
        }
    }
}

/// Threads of a block, and its shared memory: bytes, and what its address is a multiple of.
#[derive(Clone, Copy)]
pub struct Block {
    threads: i64,
    shared: i64,
    alignment: i64,
}

impl Block {
    /// With shared memory of which 16 bytes can be loaded at once.
    pub fn new(threads: i64, shared: i64) -> Block {
        Block {
            threads,
            shared,
            alignment: 16,
        }
    }
}

struct FunctionWriter<'a, 'c> {
    context: &'c Context,
    module: Builder<'c>,
    kernel: &'a Kernel<'c>,
    memory: &'a Memory,
    constants: &'a [ConstantDescription],
    /// Of the kernel in the module.
    number: usize,
}

impl<'c> FunctionWriter<'_, 'c> {
    fn tile(&self, name: &str, tile: &Tile<'c>) -> Result<Vec<GpuFunction>> {
        let mut sizes = vec![
            ("small", (tile.small, 0), SHARED),
            ("large", tile.large, SHARED),
        ];
        sizes.extend(tile.largest.map(|size| ("largest", size, MOST_SHARED)));
        let functions = sizes.into_iter().map(|(suffix, (size, from_rows), most)| {
            let form = (Form::Streamed(size), from_rows);
            let (_, described) = self.sized(format!("{name}_{suffix}"), tile, form, most)?;
            Ok(described)
        });
        functions.collect()
    }

    /// The function for cards whose warpgroups multiply, where there is one.
    fn grouped(&self, name: &str, tile: &Tile<'c>) -> Result<Option<GpuFunction>> {
        let Some((form, from_rows)) = tile.grouped else {
            return Ok(None);
        };
        let symbol = format!("{name}_warpgroups");
        let (function, described) =
            self.sized(symbol, tile, (form, from_rows), MOST_CLUSTER_SHARED)?;
        let only = Attribute::unit(self.context);
        set_attribute(function, marks::BY_WARPGROUPS, only);
        Ok(Some(described))
    }

    /// Writes the function of a tile of one size, used for at least `from_rows` rows, of whose shared memory a block may have `most`
    /// bytes.
    fn sized(
        &self,
        symbol: String,
        tile: &Tile<'c>,
        (form, from_rows): (Form, i64),
        most: i64,
    ) -> Result<(OperationRef<'c, 'c>, GpuFunction)> {
        let (size, shared) = match form {
            Form::Streamed(size) => (size, size.shared_bytes(tile.gates())),
            Form::Held(panels) => (panels.of_block(), panels.shared_bytes(tile)),
        };
        fits(tile.op, shared, most)?;
        let block = Block {
            alignment: size.alignment(),
            ..Block::new(size.threads(), shared)
        };
        let function = self.function(&symbol, block, |e, frame| {
            match form {
                Form::Streamed(size) => tile::write(e, frame, tile, size),
                Form::Held(panels) => tile::write_panels(e, frame, tile, panels),
            }
            Ok(())
        })?;
        let described = GpuFunction {
            symbol,
            from_rows: from_rows as u64,
            threads: size.threads() as u32,
            tile_rows_per_row: tile.matrix_rows() as u64,
            tile_rows: size.block_rows() as u64,
            column_blocks: size.column_blocks(tile.gates()) as u32,
            shared_bytes: shared as u32,
            grid_stride: matches!(form, Form::Held(_)),
            calls: None,
        };
        Ok((function, described))
    }

    /// The functions that flushes run in the place of the small one, where there are some: in blocks by themselves, and in
    /// clusters.
    fn held(&self, name: &str, tile: &Tile<'c>) -> Result<[Option<GpuFunction>; 2]> {
        let resident = tile.resident.map(|size| {
            let symbol = format!("{name}_resident");
            let blocks = tile.columns() / size.columns;
            self.resident(symbol, tile, size, (MOST_SHARED, blocks))
        });
        let clustered = tile.clustered.map(|size| {
            let symbol = format!("{name}_clustered");
            // A number that divides those of a cluster.
            let blocks = (tile.columns() / size.columns).unsigned_abs();
            let blocks = blocks.next_power_of_two() as i64;
            self.resident(symbol, tile, size, (MOST_CLUSTER_SHARED, blocks))
        });
        Ok([resident.transpose()?, clustered.transpose()?])
    }

    /// Writes a function that keeps its weights in shared memory, of which a block may use `most` bytes; `blocks` is the
    /// grid's extent along the columns.
    fn resident(
        &self,
        symbol: String,
        tile: &Tile<'c>,
        size: Resident,
        (most, blocks): (i64, i64),
    ) -> Result<GpuFunction> {
        let shared = size.shared_bytes(&tile.chains);
        fits(tile.op, shared, most)?;
        let function = self.function(&symbol, Block::new(THREADS, shared), |e, frame| {
            resident::write(e, frame, tile, (size, blocks, self.number));
            Ok(())
        })?;
        let only = Attribute::unit(self.context);
        set_attribute(function, marks::ONLY_IN_FLUSH, only);
        if let Some(at) = size.held_at {
            set_attribute(function, marks::HELD_AT, self.module.i64_attr(at));
        }
        Ok(GpuFunction {
            symbol,
            from_rows: 0,
            threads: THREADS as u32,
            tile_rows_per_row: tile.matrix_rows() as u64,
            tile_rows: size.rows() as u64,
            column_blocks: blocks as u32,
            shared_bytes: shared as u32,
            grid_stride: false,
            calls: None,
        })
    }

    fn rows(&self, name: &str, number: usize, rows: &Rows<'c>) -> Result<Vec<GpuFunction>> {
        let slots = round_up(self.memory.shared[number], 16);
        let shared = slots + rows::lanes_bytes(rows);
        fits(rows.op, shared, SHARED)?;
        self.function(name, Block::new(THREADS, shared), |e, frame| {
            rows::write(e, frame, rows, slots)
        })?;
        Ok(vec![GpuFunction {
            symbol: name.to_owned(),
            from_rows: 0,
            threads: THREADS as u32,
            tile_rows_per_row: u64::from(!rows.once),
            tile_rows: rows.block_rows as u64,
            column_blocks: 1,
            shared_bytes: shared as u32,
            grid_stride: false,
            calls: None,
        }])
    }

    /// Adds a function.
    fn function(
        &self,
        symbol: &str,
        block: Block,
        body: impl FnOnce(&Emitter<'c>, &Frame<'_, 'c>) -> Result<()>,
    ) -> Result<OperationRef<'c, 'c>> {
        let pointers =
            3 * self.kernel.operands.len() + self.kernel.results.len() + self.constants.len() + 1;
        let module = (self.context, &self.module);
        let mut written = Ok(());
        let function = add_function(module, symbol, pointers, block, |e, arguments, shared| {
            written = body(e, &self.frame(arguments, shared));
        });
        written.map(|()| function)
    }

    fn frame(&self, arguments: &[Val<'c>], shared: Option<Val<'c>>) -> Frame<'_, 'c> {
        let (rows, rest) = arguments.split_at(1);
        let (operands, rest) = rest.split_at(3 * self.kernel.operands.len());
        let (results, rest) = rest.split_at(self.kernel.results.len());
        let (constants, scratch) = rest.split_at(self.constants.len());
        let constants = self.constants.iter().zip(constants);
        let operands = operands.chunks(3).map(|fields| OperandFields {
            base: fields[0],
            index: fields[1],
            offsets: fields[2],
        });
        Frame {
            arguments: Arguments {
                kernel: self.kernel,
                operands: operands.collect(),
                results: results.to_vec(),
            },
            homes: &self.memory.homes,
            once_bytes: self.memory.once_bytes,
            rows: rows[0],
            constants: constants.map(|(what, value)| (what, *value)).collect(),
            scratch: scratch[0],
            shared,
        }
    }
}

/// Appends a function that takes an `i64` and `pointers` pointers to the `gpu.module`. `body` gets the arguments and, if there is any, the shared memory.
pub fn add_function<'c>(
    (context, module): (&'c Context, &Builder<'c>),
    symbol: &str,
    pointers: usize,
    block: Block,
    body: impl FnOnce(&Emitter<'c>, &[Val<'c>], Option<Val<'c>>),
) -> OperationRef<'c, 'c> {
    let mut arguments = vec![module.i64()];
    arguments.extend(vec![module.pointer_in(1); pointers]);
    add_kernel((context, module), symbol, &arguments, block, body)
}

/// The same of any arguments.
pub fn add_kernel<'c>(
    (context, module): (&'c Context, &Builder<'c>),
    symbol: &str,
    arguments: &[Type<'c>],
    block: Block,
    body: impl FnOnce(&Emitter<'c>, &[Val<'c>], Option<Val<'c>>),
) -> OperationRef<'c, 'c> {
    let pointer = module.pointer_in(1);
    let memory = shared_of(symbol);
    let has_memory = block.shared > 0;
    if has_memory {
        shared_memory((context, module), &memory, block);
    }
    let (region, entry) = region_with_block(arguments, module.location);
    let inside = Builder::at_end(context, entry, module.location);
    let e = Emitter {
        pointer,
        ..Emitter::new(inside)
    };
    let shared = has_memory.then(|| {
        let name = module.symbol(&memory);
        let pointer = module.pointer_in(3);
        e.b.value_with(
            Op::LlvmMlirAddressof,
            &[],
            pointer,
            &[(keys::GLOBAL_NAME, name)],
        )
    });
    body(&e, &arguments_of(entry), shared);
    e.b.op(Op::GpuReturn, &[], &[], &[], vec![]);

    let ty: Type<'c> = FunctionType::new(context, arguments, &[]).into();
    let blocks = THREADS_A_PROCESSOR / block.threads.clamp(1, THREADS_A_PROCESSOR);
    module.op(
        Op::GpuFunc,
        &[],
        &[],
        &[
            (keys::SYM_NAME, StringAttribute::new(context, symbol).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (marks::GPU_KERNEL, Attribute::unit(context)),
            (
                marks::BLOCKS_A_PROCESSOR,
                IntegerAttribute::new(module.i32(), blocks).into(),
            ),
            (
                keys::KNOWN_BLOCK_SIZE,
                module.i32s(&[block.threads as i32, 1, 1]),
            ),
        ],
        vec![region],
    )
}

/// The global that is the shared memory of a function.
pub fn shared_of(function: &str) -> String {
    format!("{function}$shared")
}

/// Shared memory of a function; of unknown size where whoever launches it gives it.
fn shared_memory<'c>((context, module): (&'c Context, &Builder<'c>), symbol: &str, block: Block) {
    let bytes = block.shared as u32;
    let is_dynamic = dynamic_shared_bytes(bytes) > 0;
    let (declared, linkage) = match is_dynamic {
        true => (0, module.external_linkage()),
        false => (bytes, module.internal_linkage()),
    };
    let ty = module.llvm_array(declared, module.i8());
    module.op(
        Op::LlvmMlirGlobal,
        &[],
        &[],
        &[
            (keys::SYM_NAME, StringAttribute::new(context, symbol).into()),
            (keys::GLOBAL_TYPE, TypeAttribute::new(ty).into()),
            (keys::LINKAGE, linkage),
            (keys::ADDR_SPACE, module.i32_attr(3)),
            (keys::ALIGNMENT, module.i64_attr(block.alignment)),
        ],
        vec![melior::ir::Region::new()],
    );
}
