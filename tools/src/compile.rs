//! From a program's text to code in memory: what both tools share of the way down.

pub mod diagnostics;
pub mod gpu;
pub mod jit;
pub mod module;
pub mod object;
pub mod source;
pub mod trial;

use std::path::Path;

use cohort_abi::manifest::Manifest;
use cohort_passes::pipeline::{self, Stage};
use cohort_runtime::artifact::DeviceCode;
use melior::{Context, ir::Module};

use crate::exit::Stop;
use diagnostics::Reporter;
use gpu::GpuCode;
use object::Target;
use source::{Dims, Source};

/// The function that runs for each instance.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub name: &'a str,
    /// Whether it must give a loss, to be differentiated without being told by what to weigh it.
    pub gives_loss: bool,
}

/// Sees the module at level 2, if it comes by there.
pub type Look<'a> = &'a mut (dyn FnMut(&Context, &Module<'_>) -> Result<(), Stop> + Send);

/// Compiles a function of a `.coh` program, or MLIR of any level, for this machine and for GPUs as well
/// where the pipeline makes code for them.
pub fn compile(
    path: &Path,
    bytes: &[u8],
    entry: Entry<'_>,
    dims: &Dims,
    pipeline: &pipeline::Options,
    gpu: &GpuCode,
    look: Look<'_>,
) -> Result<cohort_runtime::Program, Stop> {
    let (manifest, code, device_code) = if is_coh(path) {
        let source = Source::check(path, bytes, entry.name)?;
        let program = source.bind(dims, pipeline.gradients)?;
        if entry.gives_loss {
            cohort_frontend::check_loss(&program)
                .map_err(|diagnostic| source::report(&[*diagnostic], &source.sources))?;
        }
        let reporter = Reporter::with_sources(&source.sources);
        let context = cohort_dialects::new_context();
        let _handler = reporter.attach(&context);
        let mut module = source.lower(&context, &program)?;
        to_code(&context, &mut module, Stage::Program, pipeline, gpu, look)?
    } else {
        let context = cohort_dialects::new_context();
        let mut module = module::parse(&context, path, bytes)?;
        let level = module::level(&module);
        to_code(&context, &mut module, level, pipeline, gpu, look)?
    };
    let program = cohort_runtime::Program::new(manifest, Box::new(code))
        .map_err(|error| Stop::usage(error.to_string()))?;
    Ok(program.with_device_code(device_code))
}

/// Whether a file holds a `.coh` program, going by its name.
pub fn is_coh(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "coh")
}

fn to_code(
    context: &Context,
    module: &mut Module<'_>,
    from: Stage,
    pipeline: &pipeline::Options,
    gpu: &GpuCode,
    look: Look<'_>,
) -> Result<(Manifest, jit::Jit, Vec<DeviceCode>), Stop> {
    let mut pipeline = pipeline.clone();
    pipeline.vector_registers = Some(Target::new(None)?.vector_registers());
    let pipeline = &pipeline;
    if from <= Stage::Batched {
        module::run_passes_upto(context, module, from, Stage::Batched, pipeline)?;
        look(context, module)?;
    }
    let from = from.max(Stage::Batched);
    module::run_passes_upto(context, module, from, Stage::Target, pipeline)?;
    let device_code = gpu.take(context, module)?;
    module::run_passes(context, module, Stage::Target, pipeline)?;
    let manifest = module::manifest(module)?;
    let code = jit::Jit::new(module, gpu.effort())?;
    code.register(&cohort_runtime::abi_symbols());
    Ok((manifest, code, device_code))
}
