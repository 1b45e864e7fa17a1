//! `--emit` and `.coh` inputs: the compiler's own way down the levels.

use std::path::Path;

use cohort_codegen::gpu::binary::{self, Architecture, GpuError};
use cohort_codegen::gpu::{lower_kernels_to_gpu, persistence};
use cohort_codegen::pipeline::{self, Stage};
use cohort_passes::pass;
use cohort_runtime::Artifact;
use cohort_runtime::program::artifact::{LoadedObject, SecretKey};
use melior::Context;
use melior::ir::{Module, operation::OperationLike};
use melior::pass::PassManager;

use super::glue::Options;
use crate::compile::diagnostics::{self, Reporter};
use crate::compile::gpu::{self, GpuCode};
use crate::compile::object::Target;
use crate::compile::source::{self, Source};
use crate::compile::{self, Entry, Format, Job, ObjectForm, module, tuning};
use crate::exit::{Stop, USAGE};

/// What `--emit` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Ast,
    Stage(Stage),
    Object,
    Artifact,
    Ptx,
    Cubin,
}

impl Level {
    pub fn parse(name: &str) -> Result<Level, Stop> {
        Ok(match name {
            "ast" => Level::Ast,
            "program" => Level::Stage(Stage::Program),
            "blocks" => Level::Stage(Stage::Blocks),
            "batched" => Level::Stage(Stage::Batched),
            "loops" => Level::Stage(Stage::Loops),
            "target" => Level::Stage(Stage::Target),
            "llvm" => Level::Stage(Stage::Llvm),
            "object" => Level::Object,
            "artifact" => Level::Artifact,
            "ptx" => Level::Ptx,
            "cubin" => Level::Cubin,
            _ => {
                return Err(Stop::usage(format!(
                    "unknown level `{name}`; `--emit` takes ast, program, blocks, batched, loops, \
                     target, llvm, object, ptx, cubin or artifact"
                )));
            }
        })
    }
}

/// The program as text: its syntax and, where its dims are known, the typed program.
pub fn ast(options: &Options, format: Format, input: &[u8]) -> Result<String, Stop> {
    if format != Format::Coh {
        return Err(Stop::usage("`--emit=ast` needs a `.coh` program"));
    }
    let (sources, file) = source::sources(&options.input, input)?;
    let mut text = cohort_frontend::dump_ast(&sources, file)
        .map_err(|diagnostics| source::report(&diagnostics, &sources))?;
    let dims = options.dims()?;
    let source = Source::check(&options.input, input, options.entry())?;
    if !dims.is_empty() || source.checked.dims().is_empty() {
        text += "\n// The typed program, dims bound.\n";
        text += &cohort_frontend::dump_program(&source.bind(&dims, options.gradients)?);
    }
    Ok(text)
}

/// The level-0 module of a `.coh` program, as bytecode, which keeps locations.
pub fn program(
    options: &Options,
    pipeline: &pipeline::Options,
    input: &[u8],
) -> Result<Vec<u8>, Stop> {
    let source = Source::check(&options.input, input, options.entry())?;
    let program = source.bind(&options.dims()?, options.gradients)?;
    let context = cohort_dialects::new_context();
    let module = source.lower(&context, &program)?;
    pipeline.write_down(&context, &module);
    Ok(module.as_operation().write_bytecode())
}

/// The machine code of a program as an object file.
pub fn object(
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
) -> Result<Vec<u8>, Stop> {
    let gpu = GpuCode::default();
    let artifact = compile(options, pipeline, format, input, &gpu, ObjectForm::One)?;
    Ok(artifact.objects.concat())
}

/// A program with all that it takes to run it where there is no compiler.
pub fn artifact(
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
) -> Result<Vec<u8>, Stop> {
    let gpu = GpuCode::parse(options.gpu_arch.as_deref())?;
    let mut pipeline = pipeline.clone();
    pipeline.gpu = gpu.is_wanted();
    let artifact = compile(options, &pipeline, format, input, &gpu, ObjectForm::Parts)?;
    let mut bytes = artifact
        .to_bytes()
        .map_err(|error| Stop::usage(error.to_string()))?;
    if let Some(path) = &options.sign_key {
        sign(&mut bytes, path)?;
    }
    Ok(bytes)
}

/// Signs an artifact with the key in a file.
fn sign(artifact: &mut [u8], path: &Path) -> Result<(), Stop> {
    let text = crate::text::read(path)?;
    std::str::from_utf8(&text)
        .map_err(|_| "it is not text".to_owned())
        .and_then(SecretKey::from_pem)
        .and_then(|key| key.sign(artifact).map_err(|problem| problem.to_string()))
        .map_err(|reason| Stop::usage(format!("cannot sign with {}: {reason}", path.display())))
}

/// The kernels of a program for a GPU, as text or as what a driver loads.
pub fn gpu(
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
    level: Level,
) -> Result<Vec<u8>, Stop> {
    let usage = |error: GpuError| Stop::usage(error.to_string());
    let architecture = options.gpu_arch.as_deref();
    let architecture = architecture.unwrap_or(Architecture::OLDEST);
    let architecture = Architecture::parse(architecture).map_err(usage)?;
    let context = cohort_dialects::new_context();
    let mut pipeline = pipeline.clone();
    pipeline.gpu = true;
    let pipeline = &pipeline;
    let mut module = lowered(&context, options, pipeline, format, input, Stage::Loops)?;
    let manager = PassManager::new(&context);
    manager.add_pass(pass::create(lower_kernels_to_gpu::PASS));
    if !pipeline.is_without(persistence::PASS) {
        manager.add_pass(pass::create(persistence::PASS));
    }
    manager
        .run(&mut module)
        .map_err(|_| Stop::reported(USAGE))?;
    let cache = options.cache();
    let ptx = gpu::ptx(&context, &module, &architecture, cache.as_ref())?;
    if level == Level::Ptx {
        return Ok(ptx.into_bytes());
    }
    let assembler = binary::find_assembler().map_err(usage)?;
    let cubin = binary::cubin(&ptx, &architecture, &assembler).map_err(usage)?;
    Ok(cubin.bytes)
}

fn compile(
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
    gpu: &GpuCode,
    form: ObjectForm,
) -> Result<Artifact, Stop> {
    let target = Target::new(options.target_cpu.as_deref())?;
    let job = Job {
        path: &options.input,
        bytes: input,
        format,
        entry: Entry {
            name: options.entry(),
            gives_loss: false,
        },
        dims: &options.dims()?,
        pipeline,
        target: &target,
        gpu,
        form,
        options: [options.described(), tuning::described(&pipeline.tuning)].concat(),
        cache: options.cache(),
        keeps_artifact: false,
    };
    let artifact = compile::compile(job, &mut |_, _| Ok(()))?;
    // What could not be loaded is found out here and not where there is no compiler.
    let functions = LoadedObject::check(&artifact.objects, target.host.arch())
        .map_err(|problem| Stop::usage(format!("internal error: the object {problem}")))?;
    if !functions.contains(&artifact.manifest.entry) {
        return Err(Stop::usage("the program has no entry"));
    }
    Ok(artifact)
}

/// The module of an input, brought down to a stage, or as it is where it is below it.
fn lowered<'c>(
    context: &'c Context,
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
    upto: Stage,
) -> Result<Module<'c>, Stop> {
    match format {
        Format::Coh => {
            let source = Source::check(&options.input, input, options.entry())?;
            let program = source.bind(&options.dims()?, options.gradients)?;
            let _handler = Reporter::with_sources(&source.sources).attach(context);
            let mut module = source.lower(context, &program)?;
            module::run_passes_upto(context, &mut module, Stage::Program, upto, pipeline)?;
            Ok(module)
        }
        Format::Mlir => {
            let mut module = module::parse(context, &options.input, input)?;
            let _handler = diagnostics::attach_log(context);
            let level = module::level(&module);
            module::run_passes_upto(context, &mut module, level, upto, pipeline)?;
            Ok(module)
        }
    }
}
