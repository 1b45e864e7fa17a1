//! From the file that holds a program to code in memory, as far as the user lets it come.
//!
//! A `.coh` program can only compute. An artifact is machine code, and IR may call whatever this process
//! may, so both run on somebody's word: an artifact by its name, `--trust` and `--sandbox`, IR by
//! `--allow-ir`. What a file is follows from its name and never from its bytes, so that nothing that looks
//! harmless runs as code.

pub mod args;
mod guided;
pub mod techniques;

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "compiler")]
use cohort_passes::kernel::reference::Reference;
use cohort_runtime::program::artifact::TrustedKeys;
use cohort_runtime::{Artifact, Error, Program, Weights};

#[cfg(feature = "compiler")]
use crate::compile::{
    Entry, Format, Job, Look, ObjectForm, cache::Cache, gpu::GpuCode, object::Target, source::Dims,
};
use crate::exit::{Stop, stop};
use args::ModelArguments;

/// What a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program of the language, `.coh`.
    Source,
    /// IR, `.mlir`.
    Ir,
    /// An artifact, `.cohort`.
    Artifact,
}

impl Kind {
    /// By the name of its file.
    pub fn of(path: &Path) -> Kind {
        match path.extension().and_then(|name| name.to_str()) {
            Some("coh") => Kind::Source,
            Some("cohort") => Kind::Artifact,
            _ => Kind::Ir,
        }
    }
}

/// Reads the program, checks that it may run, and compiles it unless it is compiled.
pub fn load(arguments: &ModelArguments, weights: Option<Arc<Weights>>) -> Result<Program, Stop> {
    match read(arguments)? {
        Read::Compiled(program) => Ok(*program),
        Read::Text(bytes) => compile(arguments, &bytes, weights),
    }
}

/// A program's file.
enum Read {
    Compiled(Box<Program>),
    Text(Vec<u8>),
}

fn read(arguments: &ModelArguments) -> Result<Read, Stop> {
    let path = &arguments.path;
    let kind = Kind::of(path);
    if kind == Kind::Ir && !arguments.allow_ir {
        return Err(Stop::usage(format!(
            "{} is taken for IR, by its name; IR can do all that this process can, so it runs with \
             `--allow-ir` alone (programs are called `.coh`, artifacts `.cohort`)",
            path.display()
        )));
    }
    if kind == Kind::Ir && arguments.entry.is_some() {
        return Err(Stop::usage(
            "`--entry` is for `.coh` programs: IR has one entry",
        ));
    }
    let bytes = crate::text::read(path)?;
    if kind == Kind::Artifact {
        arguments.refuse_for_artifacts()?;
        if let Some(keys) = &arguments.trust {
            check_signature(path, &bytes, keys)?;
        }
        let program = Artifact::open(path, &bytes).map_err(stop)?;
        return Ok(Read::Compiled(Box::new(program)));
    }
    if Artifact::is_artifact(&bytes) {
        return Err(Stop::usage(format!(
            "{} holds an artifact, whose name must end in `.cohort`",
            path.display()
        )));
    }
    if arguments.trust.is_some() {
        return Err(Stop::usage(format!(
            "`--trust` asks for a signature, which only an artifact can have, and {} is none",
            path.display()
        )));
    }
    Ok(Read::Text(bytes))
}

/// Refuses an artifact that was not signed with one of the keys in a file.
fn check_signature(path: &Path, bytes: &[u8], keys: &Path) -> Result<(), Stop> {
    let text = crate::text::read(keys)?;
    let trusted = std::str::from_utf8(&text)
        .map_err(|_| "it is not text".to_owned())
        .and_then(TrustedKeys::from_pem)
        .map_err(|reason| Stop::usage(format!("cannot use {}: {reason}", keys.display())))?;
    trusted.check(bytes).map_err(|problem| {
        stop(Error::Artifact {
            path: path.to_owned(),
            problem: Box::new(problem),
        })
    })
}

/// The same, with what each kernel means at level 2.
#[cfg(feature = "compiler")]
pub fn load_with_reference(
    arguments: &ModelArguments,
    weights: Option<Arc<Weights>>,
) -> Result<(Program, Reference), Stop> {
    let path = arguments.path.display();
    let Read::Text(bytes) = read(arguments)? else {
        return Err(Stop::usage(format!(
            "`--check-kernels` compares code with the program it was made of, and {path} is code alone; give \
             the program"
        )));
    };
    let mut arguments = arguments.clone();
    // Each function is to be that of one kernel.
    arguments.without.push("unify-kernels".to_owned());
    // The program is to come by level 2.
    arguments.no_cache = true;
    let mut reference = None;
    let program = compile_and_look(&arguments, &bytes, weights, &mut |context, module| {
        let read = Reference::read(context, module);
        reference = Some(read.map_err(|problem| {
            Stop::usage(format!(
                "internal error: the kernels cannot be read: {problem}"
            ))
        })?);
        Ok(())
    })?;
    let reference = reference.ok_or_else(|| {
        Stop::usage(format!(
            "`--check-kernels` reads kernels at level 2, and {path} is below it; give the program, or IR of an \
             earlier level"
        ))
    })?;
    Ok((program, reference))
}

#[cfg(feature = "compiler")]
fn compile(
    arguments: &ModelArguments,
    bytes: &[u8],
    weights: Option<Arc<Weights>>,
) -> Result<Program, Stop> {
    compile_and_look(arguments, bytes, weights, &mut |_, _| Ok(()))
}

#[cfg(feature = "compiler")]
fn compile_and_look(
    arguments: &ModelArguments,
    bytes: &[u8],
    weights: Option<Arc<Weights>>,
    look: Look<'_>,
) -> Result<Program, Stop> {
    let job = Job {
        path: &arguments.path,
        bytes,
        format: Format::of(&arguments.path),
        entry: Entry {
            name: arguments.entry(),
            gives_loss: arguments.gives_loss,
        },
        dims: &Dims::new(weights, &arguments.dims)?,
        pipeline: &arguments.pipeline()?,
        target: &Target::new(None)?,
        gpu: &arguments.gpu_code(),
        form: ObjectForm::Parts,
        options: vec![],
        cache: cache(arguments.no_cache),
        keeps_artifact: true,
    };
    program(job, look)
}

/// Compiles the function `entry` of a `.coh` program, for the processor alone. Where it is differentiated
/// it gives a loss.
#[cfg(feature = "compiler")]
pub fn compile_source(
    path: &Path,
    bytes: &[u8],
    entry: &str,
    dims: &Dims,
    pipeline: &cohort_codegen::pipeline::Options,
    no_cache: bool,
) -> Result<Program, Stop> {
    let job = Job {
        path,
        bytes,
        format: Format::Coh,
        entry: Entry {
            name: entry,
            gives_loss: pipeline.gradients,
        },
        dims,
        pipeline,
        target: &Target::new(None)?,
        gpu: &GpuCode::default(),
        form: ObjectForm::Parts,
        options: vec![],
        cache: cache(no_cache),
        keeps_artifact: true,
    };
    program(job, &mut |_, _| Ok(()))
}

/// Where compiled programs are kept. What passes say is part of a log, so with one nothing is kept.
#[cfg(feature = "compiler")]
fn cache(is_unwanted: bool) -> Option<Cache> {
    match is_unwanted || crate::sarif::is_kept() {
        true => None,
        false => Cache::of_user(),
    }
}

/// Compiles a program for this machine and loads it.
#[cfg(feature = "compiler")]
fn program(job: Job<'_>, look: Look<'_>) -> Result<Program, Stop> {
    /// MLIR's passes recurse over what they transform.
    const STACK_BYTES: usize = 1 << 30;
    let path = job.path;
    let artifact =
        crate::stack::with_stack(STACK_BYTES, move || crate::compile::compile(job, look))?;
    artifact.load(path).map_err(|error| match error {
        Error::Artifact { problem, .. } => Stop::usage(format!(
            "cannot run {}: {}: expected {}, found {}",
            path.display(),
            problem.place,
            problem.expected,
            problem.found
        )),
        error => stop(error),
    })
}

#[cfg(not(feature = "compiler"))]
fn compile(arguments: &ModelArguments, _: &[u8], _: Option<Arc<Weights>>) -> Result<Program, Stop> {
    Err(Stop::usage(format!(
        "{} is not an artifact, and this batch-run was built without the compiler; make an artifact of \
         it with `batch-opt --emit artifact`",
        arguments.path.display()
    )))
}
