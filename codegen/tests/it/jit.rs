//! Compiles kernels and calls them, with operands and constants prepared as the runtime would.

use std::collections::HashMap;
use std::ffi::c_void;

use cohort_abi::{KernelFn, OperandRef, manifest::Elem, symbols};
use cohort_codegen::cpu::{lower_kernels, plan_kernels};
use cohort_codegen::pipeline;
use cohort_dialects::builder::{extend_op, name_of};
use cohort_passes::kernel::description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, parse,
};
use cohort_passes::level2::accumulate_products;
use cohort_passes::loops::{bound_masks, divide_calls, online_folds};
use cohort_passes::loops::{hoist_lengths, split_tails};
use cohort_passes::pass;
use cohort_passes::support::ir::{erase, top_level};
use cohort_runtime::late::cohort_late;
use cohort_runtime::program::rounding;
use cohort_runtime::threads::share::cohort_share_product;
use melior::{
    Context, ExecutionEngine,
    ir::{Module, attribute::StringAttribute, operation::OperationLike},
    pass::PassManager,
    utility::parse_pass_pipeline,
};

/// Values of a kernel's operands, results and parameters, as 32-bit patterns.
pub type Bits = Vec<u32>;

pub struct Jit {
    engine: ExecutionEngine,
    pub kernels: HashMap<String, KernelDescription>,
}

/// Memory aligned as arenas, constants and scratch are.
pub struct Aligned {
    words: Vec<[u64; 8]>,
}

impl Aligned {
    pub fn new(bytes: usize) -> Self {
        Aligned {
            words: vec![[0; 8]; bytes.div_ceil(64)],
        }
    }

    pub fn pointer(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let length = self.words.len() * 64;
        // SAFETY: the vector owns this many bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), length) }
    }
}

pub fn put(memory: &mut Aligned, elem: Elem, at: usize, bits: u32) {
    match elem {
        Elem::Bool => memory.bytes()[at] = bits as u8,
        _ => memory.bytes()[at * 4..at * 4 + 4].copy_from_slice(&bits.to_ne_bytes()),
    }
}

pub fn get(memory: &mut Aligned, elem: Elem, at: usize) -> u32 {
    match elem {
        Elem::Bool => u32::from(memory.bytes()[at]),
        _ => {
            let bytes = &memory.bytes()[at * 4..at * 4 + 4];
            u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        }
    }
}

/// Runs passes of ours, then a textual pipeline.
pub fn lower(context: &Context, text: &str, passes: &[pass::PassInfo]) -> Option<String> {
    let mut module = Module::parse(context, text)?;
    for info in passes {
        let manager = PassManager::new(context);
        manager.add_pass(pass::create(*info));
        manager.run(&mut module).ok()?;
    }
    Some(module.as_operation().to_string())
}

impl Jit {
    /// Compiles level-2 text; panics when that fails.
    pub fn new(text: &str) -> Jit {
        Jit::with(text, &[split_tails::PASS, hoist_lengths::PASS])
    }

    /// The same, with these passes over the loop level alone.
    pub fn with(text: &str, over_loops: &[pass::PassInfo]) -> Jit {
        let context = cohort_dialects::new_context();
        let to_loops = [
            accumulate_products::PASS,
            plan_kernels::PASS,
            online_folds::PASS,
            bound_masks::PASS,
            divide_calls::PASS,
        ];
        let passes = [&to_loops, over_loops, &[lower_kernels::PASS]].concat();
        let lowered = lower(&context, text, &passes).expect("the kernels lower");
        Jit::from_target(&context, &lowered)
    }

    pub fn from_target(context: &Context, text: &str) -> Jit {
        let mut module = Module::parse(context, text).expect("level 3 parses");
        let mut kernels = HashMap::new();
        for operation in top_level(extend_op(module.as_operation())) {
            let attribute = operation.attribute(&ATTRIBUTE).ok();
            if let Some(json) = attribute.and_then(|json| StringAttribute::try_from(json).ok()) {
                let description = parse::<KernelDescription>(json.value()).expect("a description");
                kernels.insert(description.symbol.clone(), description);
            } else if name_of(operation) != "llvm.func" {
                // Parameters and the control program, which `lower-control` would take away.
                erase(operation);
            }
        }
        for step in pipeline::steps(pipeline::Stage::Llvm) {
            if let pipeline::Step::Upstream(text) = step {
                let manager = PassManager::new(context);
                let text = format!("builtin.module({text})");
                parse_pass_pipeline(manager.as_operation_pass_manager(), &text)
                    .expect("a pipeline");
                manager.run(&mut module).expect("the conversions");
            }
        }
        let engine = ExecutionEngine::new(&module, 3, &[], false, false);
        // SAFETY: the functions have the signatures of the symbols.
        unsafe {
            engine.register_symbol(symbols::LATE, cohort_late as *mut ());
            engine.register_symbol(symbols::SHARE_PRODUCT, cohort_share_product as *mut ());
        }
        Jit { engine, kernels }
    }

    pub fn function(&self, name: &str) -> KernelFn {
        let symbol = self.engine.lookup(name);
        assert!(!symbol.is_null(), "no kernel `{name}`");
        // SAFETY: the pass gives every kernel this signature.
        unsafe { std::mem::transmute::<*mut (), KernelFn>(symbol) }
    }

    /// A call of a kernel, ready to be made any number of times.
    pub fn call(&self, name: &str, params: &HashMap<&str, Bits>, operands: &[Operand]) -> Call {
        let kernel = self.kernels[name].clone();
        let constants = kernel
            .constants
            .iter()
            .map(|constant| constant_memory(constant, params));
        let inputs = operands
            .iter()
            .zip(&kernel.operands)
            .map(|(operand, description)| {
                use cohort_abi::manifest::Operand::*;
                let rows = match description {
                    Row { pool: row }
                    | Rows { pool: row }
                    | Ragged { pool: row, .. }
                    | Stacked { pool: row, .. } => {
                        let bytes = operand.pool.len() * row.elem.bytes();
                        let mut memory = Aligned::new(bytes);
                        for (at, bits) in operand.pool.iter().enumerate() {
                            put(&mut memory, row.elem, at, *bits);
                        }
                        memory
                    }
                    Scalar(_) | Length => Aligned::new(0),
                };
                (rows, operand.clone())
            });
        // What a kernel over calls gets besides: the first row of each call, and work items.
        let extra = operands.iter().skip(kernel.operands.len());
        let inputs = inputs.chain(extra.map(|operand| (Aligned::new(0), operand.clone())));
        Call {
            function: self.function(name),
            constants: constants.collect(),
            inputs: inputs.collect(),
            scratch: Aligned::new(kernel.scratch_bytes as usize),
            kernel,
            seconds: 0.0,
        }
    }
}

/// A row operand: the rows of its row pool and which row reads which; a scalar: only its bits; a list:
/// which row reads which entries of the index, too.
#[derive(Clone, Default)]
pub struct Operand {
    pub pool: Bits,
    pub index: Vec<u32>,
    pub offsets: Vec<u32>,
}

pub struct Call {
    function: KernelFn,
    pub kernel: KernelDescription,
    constants: Vec<Aligned>,
    inputs: Vec<(Aligned, Operand)>,
    scratch: Aligned,
    /// What the kernel itself took in the last run.
    pub seconds: f64,
}

impl Call {
    /// Computes `rows` rows in the given ranges; the results' bits.
    pub fn run(&mut self, rows: usize, ranges: &[(usize, usize)]) -> Vec<Bits> {
        let mut results: Vec<_> = self
            .kernel
            .results
            .iter()
            .map(|row| {
                let elements = row.shape.iter().product::<u64>() as usize * rows;
                // What is not written must show, also behind the last row.
                let mut memory = Aligned::new((elements + 16) * row.elem.bytes());
                memory.bytes().fill(0x5A);
                (memory, elements, row.elem)
            })
            .collect();
        let operands: Vec<_> = self
            .inputs
            .iter_mut()
            .map(|(memory, operand)| OperandRef {
                base: memory.pointer(),
                index: operand.index.as_ptr(),
                offsets: operand.offsets.as_ptr(),
            })
            .collect();
        let pointers: Vec<_> = results
            .iter_mut()
            .map(|(memory, ..)| memory.pointer())
            .collect();
        let constants: Vec<_> = self
            .constants
            .iter_mut()
            .map(|memory| memory.pointer().cast_const())
            .collect();
        let start = std::time::Instant::now();
        for (begin, end) in ranges {
            // SAFETY: everything is as the kernel's description asks for.
            unsafe {
                (self.function)(
                    *begin as i64,
                    *end as i64,
                    operands.as_ptr(),
                    pointers.as_ptr(),
                    constants.as_ptr(),
                    self.scratch.pointer(),
                );
            }
        }
        self.seconds = start.elapsed().as_secs_f64();
        results
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
}

pub fn constant_memory(constant: &ConstantDescription, params: &HashMap<&str, Bits>) -> Aligned {
    let plain = |elem: Elem, bits: &[u32]| {
        let mut memory = Aligned::new(bits.len() * elem.bytes() + 64);
        for (at, bits) in bits.iter().enumerate() {
            put(&mut memory, elem, at, *bits);
        }
        memory
    };
    match constant {
        ConstantDescription::Dense { elem, bits } => plain(*elem, bits),
        ConstantDescription::Part { .. } => unreachable!("`unify-kernels` does not run"),
        ConstantDescription::Plain { param } => plain(Elem::F32, &params[param.as_str()]),
        ConstantDescription::Rounded {
            precision,
            param,
            offset,
            strides: [down, across],
            k,
            columns,
            by_columns,
        } => {
            let bits = &params[param.as_str()];
            let element = |row: usize, column: usize| {
                let at = *offset as usize + row * *down as usize + column * *across as usize;
                f32::from_bits(bits[at])
            };
            let size = (*k as usize, *columns as usize);
            let words: Vec<u32> = match by_columns {
                true => rounding::words_by_columns(size, element).collect(),
                false => rounding::words(*precision, size, element).collect(),
            };
            plain(Elem::I32, &words)
        }
        ConstantDescription::Panels { param, width, .. } => {
            let (bits, width) = (&params[param.as_str()], *width as usize);
            // The tests name a matrix for its columns: `w_28`.
            let columns: usize = param
                .rsplit('_')
                .next()
                .and_then(|n| n.parse().ok())
                .expect("columns in the name");
            let rows = bits.len() / columns;
            let mut memory = Aligned::new(columns.div_ceil(width) * rows * width * 4);
            for row in 0..rows {
                for column in 0..columns {
                    let panel = column / width;
                    let at = (panel * rows + row) * width + column % width;
                    put(&mut memory, Elem::F32, at, bits[row * columns + column]);
                }
            }
            memory
        }
    }
}
