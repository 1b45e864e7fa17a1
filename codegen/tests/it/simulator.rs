//! Runs the functions of a `gpu.module` on the host, by the threads of the runtime's simulator, in any
//! order between two barriers, over shared memory that is poisoned with NaNs.

use std::collections::HashMap;

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::gpu::{GpuFlush, GpuFunction, GpuLaunch, SimFn, dynamic_shared_bytes};
use cohort_abi::manifest::Elem;
use cohort_codegen::gpu::binary::{self, Architecture};
use cohort_codegen::gpu::{
    form_warpgroups, keep_rows_bf16, lower_gpu_to_host, lower_kernels_to_gpu, persistence,
    plan_kernels_for_gpu,
};
use cohort_codegen::pipeline;
use cohort_passes::kernel::description::{
    ConstantDescription, GpuDescription, KernelDescription, OperandDescription, parse,
};
use cohort_passes::level2::accumulate_products;
use cohort_passes::loops::{bound_masks, online_folds};
use cohort_passes::pass;
use cohort_passes::support::ir::{name_attribute, top_level};
use cohort_runtime::device::queue::Launch;
use cohort_runtime::device::sim::{self, Threads};
use melior::{
    ExecutionEngine,
    ir::{Module, attribute::StringAttribute, operation::OperationLike},
    pass::PassManager,
    utility::parse_pass_pipeline,
};

pub use cohort_runtime::device::sim::Order;

use crate::jit::{Aligned, Bits, Operand, constant_memory, get, lower, put};

#[derive(Clone, Copy, Debug)]
pub struct How {
    pub order: Order,
    pub tiles: Tiles,
}

/// Which size of a tile is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// The one for the number of rows.
    ByRows,
    /// The largest that all cards have.
    Largest,
    /// The one for warpgroups, where there is one, or else the largest.
    Warpgroups,
}

impl Tiles {
    fn function(self, launch: &GpuLaunch, rows: u64) -> &GpuFunction {
        let largest = launch.functions.last();
        let function = match self {
            Tiles::ByRows => launch.function(rows),
            Tiles::Largest => largest,
            Tiles::Warpgroups => launch.grouped.as_ref().or(largest),
        };
        function.expect("a function")
    }
}

/// Elements of a row: their type and number.
pub type Row = (Elem, usize);

/// A kernel with what it reads; the types of row operands and of results.
pub struct Call<'a> {
    pub kernel: &'a str,
    pub params: &'a HashMap<&'a str, Bits>,
    pub operands: &'a [Operand],
    pub types: &'a [Option<Row>],
    pub results: &'a [Row],
}

/// Calls of a kernel whose unit is the call.
pub struct Calls<'a> {
    pub kernel: &'a KernelDescription,
    /// An entry of each index a call.
    pub operands: &'a [Operand],
    /// Where the results of each begin, and how many rows there are in all.
    pub firsts: &'a [u32],
    pub rows: usize,
}

/// What a kernel is called with: the arguments, the memory that they point to, and the results', with their elements.
struct Prepared {
    arguments: Vec<u64>,
    memories: Vec<Aligned>,
    outputs: Vec<(Aligned, usize, Elem)>,
}

pub struct Simulator {
    engine: ExecutionEngine,
    pub kernels: HashMap<String, GpuDescription>,
    /// What runs a whole flush, where there is such a function.
    pub flush: Option<GpuFlush>,
}

/// The GPU form of level-2 text; `None` when a pass failed.
pub fn gpu_text(text: &str) -> Option<String> {
    gpu_text_of_loops(&loops_text(text)?)
}

/// The loops of level-2 text, planned for a GPU.
pub fn loops_text(text: &str) -> Option<String> {
    let context = cohort_dialects::new_context();
    lower(
        &context,
        &planned_text(text)?,
        &[keep_rows_bf16::PASS, form_warpgroups::PASS],
    )
}

/// The same, with rows as they are planned.
pub fn planned_text(text: &str) -> Option<String> {
    let context = cohort_dialects::new_context();
    let passes = [
        accumulate_products::PASS,
        plan_kernels_for_gpu::PASS,
        online_folds::PASS,
        bound_masks::PASS,
    ];
    lower(&context, text, &passes)
}

/// The GPU form of these.
pub fn gpu_text_of_loops(loops: &str) -> Option<String> {
    let context = cohort_dialects::new_context();
    lower(&context, loops, &[lower_kernels_to_gpu::PASS])
}

/// The same with a function that runs a whole flush.
pub fn flush_text(gpu: &str) -> Option<String> {
    let context = cohort_dialects::new_context();
    lower(&context, gpu, &[persistence::PASS])
}

impl Simulator {
    /// Compiles what `lower-kernels-to-gpu` left.
    pub fn new(gpu: &str) -> Simulator {
        let context = cohort_dialects::new_context();
        let mut module = Module::parse(&context, gpu).expect("level 3 parses");
        let mut kernels = HashMap::new();
        let mut flush = None;
        for operation in top_level(module.as_operation()) {
            let Ok(entries) = operation.attribute(&lower_kernels_to_gpu::ATTRIBUTE) else {
                if name_attribute(operation, cohort_dialects::keys::SYM_NAME).as_deref()
                    != Some("cohort_gpu")
                {
                    // Kernels for the CPU, records, parameters.
                    cohort_passes::support::ir::erase(operation);
                }
                continue;
            };
            for (name, json) in lower_kernels_to_gpu::descriptions(entries) {
                let json = StringAttribute::try_from(json).expect("a string");
                let description = parse::<GpuDescription>(json.value()).expect("a description");
                kernels.insert(name, description);
            }
            if let Ok(json) = operation.attribute(&persistence::ATTRIBUTE) {
                let json = StringAttribute::try_from(json).expect("a string");
                flush = Some(serde_json::from_str(json.value()).expect("a description"));
            }
        }
        let manager = PassManager::new(&context);
        manager.add_pass(pass::create(lower_gpu_to_host::PASS));
        manager.run(&mut module).expect("the host's form");
        for step in pipeline::steps(pipeline::Stage::Llvm) {
            if let pipeline::Step::Upstream(text) = step {
                let manager = PassManager::new(&context);
                let text = format!("builtin.module({text})");
                parse_pass_pipeline(manager.as_operation_pass_manager(), &text)
                    .expect("a pipeline");
                manager.run(&mut module).expect("the conversions");
            }
        }
        let engine = ExecutionEngine::new(&module, 1, &[], false, false);
        for (name, function) in sim::symbols() {
            // SAFETY: the function has the signature of the symbol.
            unsafe { engine.register_symbol(name, function.cast_mut()) };
        }
        Simulator {
            engine,
            kernels,
            flush,
        }
    }

    /// Runs a kernel for `rows` rows; the results' bits. Panics where threads of a block meet
    /// another number of barriers, or those of a warp another number of products.
    pub fn run(&self, call: &Call<'_>, rows: usize, how: How) -> Vec<Bits> {
        let mut prepared = self.prepare(call, rows);
        for launch in &self.kernels[call.kernel].launches {
            let function = how.tiles.function(launch, rows as u64);
            let grid = function.grid_within(rows as u64, 1);
            self.launch(function, &prepared.arguments, grid, how.order);
        }
        read_outputs(&mut prepared.outputs)
    }

    /// The same of the functions in PTX, interpreted; or what was wrong.
    pub fn interpret(
        &self,
        ptx: &cohort_ptx::Module,
        call: &Call<'_>,
        rows: usize,
        tiles: Tiles,
    ) -> Result<Vec<Bits>, String> {
        let mut prepared = self.prepare(call, rows);
        for launch in &self.kernels[call.kernel].launches {
            let function = tiles.function(launch, rows as u64);
            let (x, y) = function.grid_within(rows as u64, 1);
            let launch = cohort_ptx::Launch {
                grid: (x as u32, y),
                threads: function.threads,
                dynamic_shared_bytes: dynamic_shared_bytes(function.shared_bytes),
                is_together: false,
                blocks_of_cluster: 1,
                poison: 0xFF,
                order: by_turns,
                tensor_cores: cohort_ptx::TensorCores::default(),
            };
            let outputs = prepared.outputs.iter_mut().map(|(memory, ..)| memory);
            let memories = prepared.memories.iter_mut().chain(outputs);
            let mut memory = regions(memories.map(Aligned::bytes).collect());
            ptx.run(&function.symbol, &prepared.arguments, &launch, &mut memory)
                .map_err(|problem| format!("`{}`: {problem}", function.symbol))?;
        }
        Ok(read_outputs(&mut prepared.outputs))
    }

    fn prepare(&self, call: &Call<'_>, rows: usize) -> Prepared {
        let kernel = &self.kernels[call.kernel];
        let mut memories: Vec<Aligned> = Vec::new();
        let mut arguments = vec![rows as u64];
        for (operand, ty) in call.operands.iter().zip(call.types) {
            let mut memory = Aligned::new(match ty {
                Some((elem, _)) => operand.pool.len() * elem.bytes(),
                None => 0,
            });
            if let Some((elem, _)) = ty {
                for (at, bits) in operand.pool.iter().enumerate() {
                    put(&mut memory, *elem, at, *bits);
                }
            }
            arguments.push(memory.pointer() as u64);
            memories.push(memory);
            for words in [&operand.index, &operand.offsets] {
                let mut memory = Aligned::new(4 * words.len());
                put_words(&mut memory, words);
                arguments.push(memory.pointer() as u64);
                memories.push(memory);
            }
        }
        let outputs: Vec<_> = call
            .results
            .iter()
            .map(|(elem, elements)| {
                let mut memory = Aligned::new((elements * rows + 16) * elem.bytes());
                memory.bytes().fill(0x5A);
                arguments.push(memory.pointer() as u64);
                (memory, elements * rows, *elem)
            })
            .collect();
        for constant in &kernel.constants {
            assert!(!matches!(constant, ConstantDescription::Panels { .. }));
            let mut memory = constant_memory(constant, call.params);
            arguments.push(memory.pointer() as u64);
            memories.push(memory);
        }
        let scratch = kernel.scratch_bytes as usize + rows * kernel.scratch_bytes_per_row as usize;
        let mut scratch = Aligned::new(scratch);
        scratch.bytes().fill(0xFF);
        arguments.push(scratch.pointer() as u64);
        memories.push(scratch);
        Prepared {
            arguments,
            memories,
            outputs,
        }
    }

    /// Runs a kernel for some calls; the results' bits. The blocks are in the order of the threads.
    pub fn run_calls(&self, calls: &Calls<'_>, how: How) -> Vec<Bits> {
        let kernel = &self.kernels[&calls.kernel.symbol];
        let mut memories: Vec<Aligned> = Vec::new();
        let mut arguments = vec![calls.firsts.len() as u64];
        for (operand, description) in calls.operands.iter().zip(&calls.kernel.operands) {
            let mut base = 0;
            if let OperandDescription::Ragged { pool: row, .. }
            | OperandDescription::Row { pool: row } = description
            {
                let mut memory = Aligned::new(operand.pool.len() * row.elem.bytes());
                for (at, bits) in operand.pool.iter().enumerate() {
                    put(&mut memory, row.elem, at, *bits);
                }
                base = memory.pointer() as u64;
                memories.push(memory);
            }
            arguments.extend([base, operand.index.as_ptr() as u64, 0]);
        }
        arguments.push(calls.firsts.as_ptr() as u64);
        let mut outputs: Vec<_> = calls
            .kernel
            .results
            .iter()
            .map(|row| {
                let elements = calls.rows * row.shape.iter().product::<u64>() as usize;
                let mut memory = Aligned::new((elements + 16) * row.elem.bytes());
                memory.bytes().fill(0x5A);
                arguments.push(memory.pointer() as u64);
                (memory, elements, row.elem)
            })
            .collect();
        for constant in &kernel.constants {
            let mut memory = constant_memory(constant, &HashMap::new());
            arguments.push(memory.pointer() as u64);
            memories.push(memory);
        }
        arguments.push(0);
        let length =
            |operand: usize, call: u64| u64::from(calls.operands[operand].index[call as usize]);
        let all = calls.firsts.len() as u64;
        let mut lists: Vec<Vec<u32>> = Vec::new();
        let mut chosen = Vec::new();
        for launch in &kernel.launches {
            let function = how.tiles.function(launch, 0);
            let tiles = function.calls.as_ref().expect("tiles of calls");
            let blocks = (0..all).flat_map(|call| {
                let count = tiles.count(|operand| length(operand, call));
                (0..count).map(move |tile| [call as u32, tile as u32])
            });
            let blocks: Vec<_> = blocks.collect();
            let order = how.order.numbers(blocks.len(), false).into_iter();
            lists.push(order.flat_map(|at| blocks[at]).collect());
            chosen.push(function);
        }
        arguments.extend(lists.iter().map(|list| list.as_ptr() as u64));
        for (function, list) in chosen.into_iter().zip(&lists) {
            let grid = (list.len() as u64 / 2, 1);
            self.launch(function, &arguments, grid, how.order);
        }
        read_outputs(&mut outputs)
    }

    /// Runs a flush by `blocks` blocks, whose number is in the schedule too; says what was wrong.
    pub fn run_flush(&self, schedule: &[u64], blocks: u32, order: Order) -> Result<(), String> {
        let flush = self.flush.as_ref().expect("a function that runs flushes");
        let grid = (blocks, blocks, flush.threads);
        self.run_together(&flush.symbol, flush.shared_bytes, schedule, grid, order)
    }

    /// Runs a flush on `count` clusters; says what was wrong.
    pub fn run_clusters(&self, schedule: &[u64], count: u32, order: Order) -> Result<(), String> {
        let flush = self.flush.as_ref().expect("a function that runs flushes");
        let clusters = flush.clusters.as_ref().expect("one for clusters");
        let grid = (count * CLUSTER_BLOCKS, CLUSTER_BLOCKS, flush.threads);
        let shared = clusters.shared_bytes;
        self.run_together(&clusters.symbol, shared, schedule, grid, order)
    }

    fn run_together(
        &self,
        symbol: &str,
        shared_bytes: u32,
        schedule: &[u64],
        grid: (u32, u32, u32),
        order: Order,
    ) -> Result<(), String> {
        let found = self.engine.lookup(symbol);
        assert!(!found.is_null(), "no function `{symbol}`");
        // SAFETY: the pass gives it this signature.
        let code = unsafe { std::mem::transmute::<*mut (), SimFn>(found) };
        let mut threads = Threads::default();
        threads.order = order;
        let arguments = [schedule.as_ptr() as u64];
        // SAFETY: the schedule is one for the functions of this module.
        unsafe { threads.run_together(code, grid, &arguments, shared_bytes as usize, 0xFF) }
    }

    fn launch(&self, function: &GpuFunction, arguments: &[u64], (x, y): (u64, u32), order: Order) {
        let symbol = self.engine.lookup(&function.symbol);
        assert!(!symbol.is_null(), "no function `{}`", function.symbol);
        // SAFETY: the pass gives every function this signature.
        let code = unsafe { std::mem::transmute::<*mut (), SimFn>(symbol) };
        let mut threads = Threads::default();
        threads.order = order;
        let launch = Launch {
            function: 0,
            grid: (x as u32, y),
            threads: function.threads,
            beside: false,
        };
        // SAFETY: the arguments are those of the kernel. Bits of a NaN fill the shared memory.
        let ended = unsafe {
            let shared_bytes = function.shared_bytes as usize;
            threads.run(code, &launch, arguments, shared_bytes, 0xFF)
        };
        ended.unwrap_or_else(|problem| panic!("`{}`: {problem}", function.symbol));
    }
}

/// Writes words at the beginning of memory.
pub fn put_words(memory: &mut Aligned, words: &[u32]) {
    for (place, word) in memory.bytes().chunks_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

/// The PTX of a module with GPU code, for an architecture.
pub fn ptx(text: &str, architecture: &str) -> String {
    let context = cohort_dialects::new_context();
    let module = Module::parse(&context, text).expect("it parses");
    let architecture = Architecture::parse(architecture).expect("an architecture");
    binary::ptx(&context, module.as_operation(), &architecture).expect("it lowers")
}

/// Interprets the PTX of a function that runs flushes; `blocks` are those of the grid and of a cluster, and the text may
/// touch `memories` and the schedule alone.
pub fn interpret_flush<'a>(
    text: &str,
    (symbol, shared_bytes, threads): (&str, u32, u32),
    blocks: [u32; 2],
    memories: impl Iterator<Item = &'a mut Aligned>,
    schedule: &mut [u64],
) -> Result<(), String> {
    let ptx = cohort_ptx::Module::parse(&ptx(text, "sm_90")).expect("PTX");
    let launch = cohort_ptx::Launch {
        grid: (blocks[0], 1),
        threads,
        dynamic_shared_bytes: dynamic_shared_bytes(shared_bytes),
        is_together: true,
        blocks_of_cluster: blocks[1],
        poison: 0xFF,
        order: by_turns,
        tensor_cores: cohort_ptx::TensorCores::default(),
    };
    let argument = schedule.as_ptr() as u64;
    let mut all: Vec<&mut [u8]> = memories.map(Aligned::bytes).collect();
    // SAFETY: the slice has these bytes, and any of them may be in a word.
    all.push(unsafe {
        std::slice::from_raw_parts_mut(schedule.as_mut_ptr().cast(), 8 * schedule.len())
    });
    let mut memory = regions(all);
    ptx.run(symbol, &[argument], &launch, &mut memory)
        .map_err(|problem| problem.to_string())
}

/// Threads forward and backward by turns.
fn by_turns(count: usize, is_turned: bool) -> Vec<usize> {
    match is_turned {
        true => (0..count).rev().collect(),
        false => (0..count).collect(),
    }
}

/// Memory that interpreted text may touch.
fn regions(all: Vec<&mut [u8]>) -> cohort_ptx::Memory<'_> {
    let regions = all.into_iter().map(|bytes| cohort_ptx::Region {
        address: bytes.as_ptr() as u64,
        writable: bytes.len(),
        bytes,
    });
    cohort_ptx::Memory::new(regions.collect())
}

/// The bits of results, behind which nothing was written.
fn read_outputs(outputs: &mut [(Aligned, usize, Elem)]) -> Vec<Bits> {
    outputs
        .iter_mut()
        .map(|(memory, elements, elem)| {
            let behind = &memory.bytes()[*elements * elem.bytes()..];
            assert!(
                behind.iter().all(|byte| *byte == 0x5A),
                "a write behind the last row"
            );
            (0..*elements).map(|at| get(memory, *elem, at)).collect()
        })
        .collect()
}
