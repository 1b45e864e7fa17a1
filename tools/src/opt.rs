//! `batch-opt`: the compiler as a filter, like `mlir-opt`.
//!
//! It reads a `.coh` program or MLIR at any level, runs passes or goes down to a level, and prints
//! the result. The command line and the driver are mlir-opt's own ([`glue`]), so that its options
//! work as they do there; `.coh` and `--emit` are ours ([`emit`]).

mod bisect;
mod emit;
mod glue;
mod passes;
mod tune;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use cohort_abi::gpu::Precision;
use cohort_codegen::pipeline::{self, PASSES, Stage};

use self::emit::Level;
use self::glue::Options;
use crate::compile::gpu::GpuCode;
use crate::compile::object::Target;
use crate::compile::{Format, trial, tuning};
use crate::exit::{FAILED, SUCCESS, Stop};
use crate::output::{self, Named};
use crate::sarif::Log;
use crate::text;

/// The level that differs for a GPU.
const LOOPS: Level = Level::Stage(Stage::Loops);

/// MLIR's parsers and passes recurse over what they read.
const STACK_BYTES: usize = 1 << 30;

/// Runs the tool and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Result<u8, Stop> {
    let arguments: Vec<Vec<u8>> = arguments.map(OsStringExt::into_vec).collect();
    crate::stack::with_stack(STACK_BYTES, move || run(arguments))
}

fn run(arguments: Vec<Vec<u8>>) -> Result<u8, Stop> {
    let registry = glue::Registry::new();
    let options = glue::parse(&registry, arguments, &overview())?;
    if options.list_passes_markdown {
        output::write(Path::new("-"), passes::markdown().as_bytes())?;
        return Ok(SUCCESS);
    }
    if options.bisect {
        if options.sarif.is_some() {
            return Err(Stop::usage(
                "`--sarif` is not for `--bisect`, which compiles the program many times",
            ));
        }
        return bisect::run(&options);
    }
    refuse_misplaced(&options)?;
    let log = options.sarif.as_deref();
    let written = log.map(|path| ("--sarif", path));
    let found = options.write_tuning.as_deref();
    let found = found.map(|path| ("--write-tuning", path));
    let written: Vec<Named<'_>> = ([("-o", options.output.as_path())].into_iter())
        .chain(written)
        .chain(found)
        .collect();
    let read = [
        Some(("the input", options.input.as_path())),
        (options.weights.as_deref()).map(|path| ("the weights file", path)),
        (options.instances.as_deref()).map(|path| ("the instances", path)),
        (options.tuning.as_deref()).map(|path| ("the tuning", path)),
    ];
    let read: Vec<Named<'_>> = read.into_iter().flatten().collect();
    output::refuse_same(&written, &read)?;
    let log = log.map(|path| Log::begin("batch-opt", path)).transpose()?;
    let result = transform(&registry, &options, &written);
    match log {
        Some(log) => log.end(result),
        None => result,
    }
}

/// Refuses options of what is not asked for.
fn refuse_misplaced(options: &Options) -> Result<(), Stop> {
    if options.tolerance.is_some() {
        return Err(Stop::usage(
            "`--tolerance` is for `--bisect`, which compares results",
        ));
    }
    if options.tune {
        return Ok(());
    }
    if options.instances.is_some() {
        return Err(Stop::usage(
            "`--input` is for `--bisect` and `--tune`, which run the program",
        ));
    }
    match options.budget.is_some() || options.write_tuning.is_some() {
        true => Err(Stop::usage(
            "`--budget` and `--write-tuning` are for `--tune`",
        )),
        false => Ok(()),
    }
}

fn transform(
    registry: &glue::Registry,
    options: &Options,
    written: &[Named<'_>],
) -> Result<u8, Stop> {
    let input = text::read(&options.input)?;
    let format = options.format()?;
    if format == Format::Coh {
        let imported = crate::compile::source::imported(&options.input, &input);
        let named = |path| ("a file of the program", path);
        let read: Vec<Named<'_>> = imported.iter().map(|path| named(path.as_path())).collect();
        output::refuse_same(written, &read)?;
    }
    let level = options.emit.as_deref().map(Level::parse).transpose()?;
    if format == Format::Mlir && options.entry.is_some() {
        return Err(Stop::usage(
            "`--entry` is for `.coh` programs: IR has one entry",
        ));
    }
    let mut pipeline_options = options.pipeline()?;
    if level.is_none() && options.changes_pipeline() {
        return Err(Stop::usage(
            "`--without`, `--granularity`, `--unroll`, `--keep-weights` and `--tuning` change what `--emit` does, and need \
             it",
        ));
    }
    if format == Format::Mlir && options.tuning.is_some() {
        return Err(Stop::usage(
            "`--tuning` is for `.coh` programs: IR says it by `cfb.tuning` of the module, or has the numbers",
        ));
    }
    if options.tune && options.tuning.is_some() {
        return Err(Stop::usage("`--tune` finds what `--tuning` would say"));
    }
    if options.tune && !matches!(level, Some(Level::Artifact | Level::Object | LOOPS)) {
        return Err(Stop::usage(
            "`--tune` chooses for `--emit=artifact`, `--emit=object` or `--emit=loops`, and needs one of them",
        ));
    }
    if format == Format::Mlir && options.unroll.is_some() {
        return Err(Stop::usage(
            "`--unroll` is for `.coh` programs: IR says it by `cfb.unroll` of the module, and \
             `--unroll-recursion` does it",
        ));
    }
    let writes_caches = format == Format::Coh && matches!(level, Some(Level::Stage(_)));
    let has_target = writes_caches || matches!(level, Some(Level::Object | Level::Artifact));
    if options.target_cpu.is_some() && !has_target {
        return Err(Stop::usage(
            "`--target-cpu` is what `--emit=object` and `--emit=artifact` compile for, and whose caches the IR of a \
             `.coh` program has",
        ));
    }
    if options.gpu_arch.is_some()
        && !matches!(
            level,
            Some(Level::Ptx | Level::Cubin | Level::Artifact | LOOPS)
        )
    {
        return Err(Stop::usage(
            "`--gpu-arch` is what `--emit=loops`, `--emit=ptx`, `--emit=cubin` and `--emit=artifact` \
             compile for",
        ));
    }
    if options.kernel.is_some() && !matches!(level, Some(Level::Stage(_))) {
        return Err(Stop::usage(
            "`--kernel` is for the levels that `--emit` prints as IR, from program to llvm",
        ));
    }
    if options.sign_key.is_some() && level != Some(Level::Artifact) {
        return Err(Stop::usage(
            "`--sign-key` signs what `--emit=artifact` makes",
        ));
    }
    let has_gpu_code = match level {
        Some(Level::Ptx | Level::Cubin) => true,
        Some(Level::Artifact | LOOPS) => options.gpu_arch.is_some(),
        _ => false,
    };
    if pipeline_options.precision != Precision::F32 && !has_gpu_code {
        return Err(Stop::usage(
            "`--precision` is of products on a GPU: it is for `--emit=ptx`, `--emit=cubin`, and \
             `--emit=loops` and `--emit=artifact` with `--gpu-arch`",
        ));
    }
    if !pipeline_options.keep_weights.is_f32() && options.gradients {
        return Err(Stop::usage(
            "`--keep-weights bf16` is for running a program: weights that are trained are kept in f32; leave it out \
             with `--gradients`",
        ));
    }
    if !pipeline_options.keep_weights.is_f32() && has_gpu_code {
        return Err(Stop::usage(
            "`--keep-weights` is of the processor: on a GPU weights are kept as products take them, which \
             `--precision` says",
        ));
    }
    if let Some(path) = &options.tuning {
        pipeline_options.tuning = tuning::read(path)?;
    }
    if options.tune {
        pipeline_options.tuning = tune::run(options, &pipeline_options, format, &input)?;
        if let Some(path) = &options.write_tuning {
            output::write(path, tuning::text(&pipeline_options.tuning)?.as_bytes())?;
        }
    }
    if writes_caches {
        pipeline_options.caches = Target::new(options.target_cpu.as_deref())?.caches;
    }
    if level == Some(LOOPS) {
        pipeline_options.gpu = GpuCode::parse(options.gpu_arch.as_deref())?.is_wanted();
    }
    let pipeline = match level {
        None => String::new(),
        Some(Level::Stage(stage)) => passes::pipeline(stage, &pipeline_options),
        Some(Level::Ast) => {
            let ast = emit::ast(options, format, &input)?;
            output::write(&options.output, ast.as_bytes())?;
            return Ok(SUCCESS);
        }
        Some(Level::Object) => {
            let object = emit::object(options, &pipeline_options, format, &input)?;
            output::write(&options.output, &object)?;
            return Ok(SUCCESS);
        }
        Some(level @ (Level::Ptx | Level::Cubin)) => {
            let code = emit::gpu(options, &pipeline_options, format, &input, level)?;
            output::write(&options.output, &code)?;
            return Ok(SUCCESS);
        }
        Some(Level::Artifact) => {
            let artifact = emit::artifact(options, &pipeline_options, format, &input)?;
            output::write(&options.output, &artifact)?;
            return Ok(SUCCESS);
        }
    };
    let input = match format {
        Format::Mlir => {
            trial::parse(&options.input, &input)?;
            input
        }
        Format::Coh => emit::program(options, &pipeline_options, &input)?,
    };
    let (succeeded, output) = glue::run(registry, &input, &options.input, &pipeline);
    if succeeded || !output.is_empty() {
        output::write(&options.output, &output)?;
    }
    Ok(if succeeded { SUCCESS } else { FAILED })
}

fn overview() -> String {
    let mut overview = String::from(
        "The compiler of Cohort as a filter: reads a .coh program or MLIR of any level, runs \
         passes or goes down to a level (--emit), and prints the result.\n\nCohort's own passes:\n",
    );
    for pass in PASSES {
        overview += &format!("  --{:<22} {}\n", pass.name, pass.summary);
    }
    overview += "\nThose of them that `--without` leaves out:";
    overview += &pipeline::list_optional();
    overview += "\n";
    overview
}
