//! From a program's text to an artifact: what all tools share of the way down.

pub mod cache;
pub mod diagnostics;
pub mod gpu;
pub mod module;
pub mod object;
pub mod source;
mod split;
pub mod trial;
pub mod tuning;

use std::path::Path;

use cohort_codegen::pipeline::{self, Stage};
use cohort_frontend::program::Program;
use cohort_passes::kernel::tuning::Tuning;
use cohort_runtime::Artifact;
use melior::{Context, ir::Module};

use crate::exit::Stop;
use cache::{Cache, Key};
use diagnostics::Reporter;
use gpu::GpuCode;
use object::Target;
use source::{Dims, Source};

/// What a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A program of the language.
    Coh,
    /// IR.
    Mlir,
}

impl Format {
    /// By the name of its file.
    pub fn of(path: &Path) -> Format {
        match is_coh(path) {
            true => Format::Coh,
            false => Format::Mlir,
        }
    }
}

/// The function that runs for each instance.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// Whether it must give a loss, to be differentiated without being told by what to weigh it.
    pub gives_loss: bool,
}

/// How many object files the host code becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectForm {
    /// One file.
    One,
    /// Several, compiled side by side.
    Parts,
}

/// A program's text, and what it is compiled for.
pub struct Job<'a> {
    /// Its file, for messages.
    pub path: &'a Path,
    /// The text.
    pub bytes: &'a [u8],
    /// What the text is.
    pub format: Format,
    /// The function that instances are given to.
    pub entry: Entry<'a>,
    /// Where sizes come from.
    pub dims: &'a Dims,
    /// What the compiler is told.
    pub pipeline: &'a pipeline::Options,
    /// The machine that runs the host code.
    pub target: &'a Target,
    /// What GPUs it is compiled for besides.
    pub gpu: &'a GpuCode,
    /// How the host's code is handed over.
    pub form: ObjectForm,
    /// How the compiler was told to differ from its default, for people.
    pub options: Vec<String>,
    /// Where what was compiled is kept, and looked for first.
    pub cache: Option<Cache>,
    /// Whether that is all of the artifact, or only what programs have in common.
    pub keeps_artifact: bool,
}

/// Sees the module at level 2, if it comes by there.
pub type Look<'a> = &'a mut (dyn FnMut(&Context, &Module<'_>) -> Result<(), Stop> + Send);

/// Compiles a function of a `.coh` program, or MLIR of any level, for a machine and for GPUs as well where the
/// pipeline makes code for them.
pub fn compile(job: Job<'_>, look: Look<'_>) -> Result<Artifact, Stop> {
    let context = cohort_dialects::new_context();
    match job.format {
        Format::Coh => {
            let source = Source::check(job.path, job.bytes, job.entry.name)?;
            let program = source.bind(job.dims, job.pipeline.gradients)?;
            if job.entry.gives_loss {
                cohort_frontend::check_loss(&program)
                    .map_err(|diagnostic| source::report(&[*diagnostic], &source.sources))?;
            }
            let cache = job.cache.as_ref().filter(|_| job.keeps_artifact);
            let key = cache.and_then(|cache| {
                let key = Key::new(&job, &source.sources)?;
                Some((cache.clone(), key))
            });
            if let Some((cache, key)) = &key
                && let Some(artifact) = cache.find(key)
            {
                return Ok(artifact);
            }
            let reporter = Reporter::with_sources(&source.sources);
            let _handler = reporter.attach(&context);
            let module = source.lower(&context, &program)?;
            let artifact = to_code(&context, module, Stage::Program, job, look)?;
            // What a pass warns of is to be said each time.
            if let Some((cache, key)) = &key
                && !reporter.has_spoken()
            {
                cache.keep(key, &artifact);
            }
            Ok(artifact)
        }
        Format::Mlir => {
            let module = module::parse(&context, job.path, job.bytes)?;
            let _handler = diagnostics::attach_log(&context);
            let level = module::level(&module);
            to_code(&context, module, level, job, look)
        }
    }
}

/// Compiles a program that was checked, whose warnings are shown elsewhere, for this machine's processor.
pub fn compile_again(
    source: &Source,
    program: &Program,
    pipeline: &pipeline::Options,
    target: &Target,
) -> Result<Artifact, Stop> {
    let context = cohort_dialects::new_context();
    let _handler = diagnostics::attach_silence(&context);
    let module = source.lower(&context, program)?;
    let job = Job {
        path: Path::new(""),
        bytes: &[],
        format: Format::Coh,
        entry: Entry {
            name: cohort_frontend::MAIN,
            gives_loss: false,
        },
        dims: &Dims::default(),
        pipeline,
        target,
        gpu: &GpuCode::default(),
        form: ObjectForm::Parts,
        options: vec![],
        cache: Cache::of_user(),
        keeps_artifact: false,
    };
    to_code(&context, module, Stage::Program, job, &mut |_, _| Ok(()))
}

/// What the kernels of such a program have, planned for a processor, of what may be tuned.
pub fn tunable(
    source: &Source,
    program: &Program,
    pipeline: &pipeline::Options,
    target: &Target,
) -> Result<Tuning, Stop> {
    let context = cohort_dialects::new_context();
    let _handler = diagnostics::attach_silence(&context);
    let mut module = source.lower(&context, program)?;
    module::run_passes_upto(
        &context,
        &mut module,
        Stage::Program,
        Stage::Loops,
        &target.pipeline(pipeline),
    )?;
    Ok(Tuning::of_module(module.as_operation()))
}

/// Whether a file holds a `.coh` program, going by its name.
pub fn is_coh(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "coh")
}

fn to_code(
    context: &Context,
    mut module: Module<'_>,
    from: Stage,
    job: Job<'_>,
    look: Look<'_>,
) -> Result<Artifact, Stop> {
    let pipeline = job.target.pipeline(job.pipeline);
    if from <= Stage::Batched {
        module::run_passes_upto(context, &mut module, from, Stage::Batched, &pipeline)?;
        look(context, &module)?;
    }
    let from = from.max(Stage::Batched);
    module::run_passes_upto(context, &mut module, from, Stage::Target, &pipeline)?;
    let device_code = job.gpu.take(context, &mut module, job.cache.as_ref())?;
    module::run_passes(context, &mut module, Stage::Target, &pipeline)?;
    let manifest = module::manifest(&module)?;
    module::mark(context, &module, &manifest)?;
    let effort = job.gpu.effort();
    let objects = match job.form {
        ObjectForm::One => vec![object::emit(&module, job.target, effort)?],
        ObjectForm::Parts => {
            let parts = split::split(context, &module, &manifest.entry);
            object::emit_all(&parts, job.target, effort, job.cache.as_ref())?
        }
    };
    Ok(Artifact {
        compiler: env!("CARGO_PKG_VERSION").to_owned(),
        options: job.options,
        target: job.target.host.clone(),
        manifest,
        objects,
        device_code,
    })
}
