//! `batch-run`: runs a program over a file of instances.
//!
//! Compile ([`crate::compile`]) or load an artifact, load the weights, and hand the input and the output to a
//! [`cohort_runtime::Session`]; or, with `--oracle`, to the interpreter; or, with `--sandbox`, to a process
//! that does all of this and can do nothing else.

mod args;
#[cfg(feature = "compiler")]
mod check_kernels;
mod expect;
mod explain;
mod files;
mod gradients;
#[cfg(feature = "compiler")]
mod oracle;
mod progress;
mod sandbox;
mod verify;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use cohort_runtime::report::profile::{MOST_EVENTS, Profile, Span};
use cohort_runtime::{Session, Stats, Weights, memory};

use crate::exit::{FAILED, SUCCESS, Stop, stop};
use crate::formats::Format;
#[cfg(not(feature = "compiler"))]
use crate::model;
use crate::output::{Document, Lines};
use crate::sarif::Log;
use args::Arguments;
use expect::Comparison;
use watch::Watch;

/// Runs the tool and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Result<u8, Stop> {
    let mut arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout with code 0, a mistake to stderr with code 2.
            let code = u8::try_from(error.exit_code()).unwrap_or(crate::exit::USAGE);
            let _ = error.print();
            return Ok(code);
        }
    };
    arguments.refuse_unsupported()?;
    arguments.model.gradients = arguments.gradients.are_wanted();
    // The gradients of inputs are what is verified.
    arguments.model.parameters_only =
        arguments.gradients.of_inputs.is_none() && arguments.verify_batch_invariance.is_none();
    arguments.model.gives_loss =
        arguments.model.gradients && arguments.gradients.cotangents.is_none();
    arguments.refuse_overwriting()?;
    if arguments.inside_sandbox {
        sandbox::redirect(&mut arguments)?;
    }
    let log = arguments.sarif.as_deref();
    let log = log.map(|path| Log::begin("batch-run", path)).transpose()?;
    let result = run_logged(&arguments);
    match log {
        Some(log) => log.end(result),
        None => result,
    }
}

fn run_logged(arguments: &Arguments) -> Result<u8, Stop> {
    let watch = Watch::start(arguments.max_run_seconds)?;
    #[cfg(feature = "compiler")]
    if arguments.oracle {
        return oracle::run(arguments, &watch);
    }
    if arguments.sandbox && !arguments.inside_sandbox {
        return sandbox::supervise(arguments, &watch);
    }
    run(arguments, &watch)
}

fn run(arguments: &Arguments, watch: &Watch) -> Result<u8, Stop> {
    let begin = Instant::now();
    let profile = (arguments.profile.as_ref()).map(|_| Arc::new(Profile::default()));
    let started = |name, begin| {
        if let Some(profile) = &profile {
            profile.spent(Span::Start(name), begin);
        }
    };
    let total = arguments.model.total_memory();
    // What is loaded may take all that is free, and no more.
    memory::set_most(memory::free_bytes().unwrap_or(u64::MAX));
    let mut config = arguments.model.config(arguments.batches(), total);
    config.may_end_early =
        arguments.batch.is_none() && !arguments.no_batch && arguments.in_flight.is_none();
    cohort_runtime::device::probe(config.device).map_err(stop)?;
    // A pipe can be read but once.
    let weights = match &arguments.model.weights {
        Some(path) => Some(Arc::new(Weights::open(path).map_err(stop)?)),
        None => None,
    };
    started("open", begin);
    let compiling = Instant::now();
    #[cfg(feature = "compiler")]
    let (program, reference) = check_kernels::load(arguments, weights.clone())?;
    #[cfg(not(feature = "compiler"))]
    let program = model::load(&arguments.model, weights.clone())?;
    started("compile", compiling);
    arguments.model.guide(&mut config, program.manifest())?;
    let weights = weights.unwrap_or_else(|| Arc::new(Weights::none()));
    let compile_seconds = begin.elapsed().as_secs_f64();

    if let Some(compositions) = arguments.verify_batch_invariance {
        return verify::run(arguments, config, &program, &weights, compositions);
    }
    let open = |path: &Option<PathBuf>| path.as_deref().map(|path| sandbox::open(arguments, path));
    let stats_file = open(&arguments.stats).transpose()?;
    let profile_file = open(&arguments.profile).transpose()?;
    let (question, input_gradients) = arguments.gradients.question(&config)?;
    if let Some(lines) = &input_gradients {
        watch.keep(lines);
    }
    let gradients_file = open(&arguments.gradients.of_params).transpose()?;
    let explain_file = open(&arguments.explain_output).transpose()?;
    let is_lines = |path: &PathBuf| Format::of(path) == Format::Lines;
    let input = is_lines(&arguments.input).then(|| files::input(&arguments.input));
    let input = input.transpose()?;
    let output = is_lines(&arguments.output).then(|| Lines::open(&arguments.output));
    let output = output.transpose()?;
    if let Some(output) = &output {
        watch.keep(output);
    }
    if arguments.inside_sandbox {
        sandbox::enter()?;
    }
    let conversions = weights.conversions(program.manifest());
    let packing = Instant::now();
    let mut session = Session::new(program, &weights, config).map_err(stop)?;
    started("pack the weights", packing);
    if let Some(profile) = &profile {
        session.set_profile(profile.clone());
    }
    if config.gradients {
        session.ask(question).map_err(stop)?;
    }
    #[cfg(feature = "compiler")]
    let findings = check_kernels::attach(&mut session, reference, &weights, arguments.tolerance)?;
    for sentence in conversions {
        crate::exit::say(&format!("note: {sentence}"));
    }
    // They are packed now.
    drop(weights);
    memory::set_most(total);
    if arguments.explain.is_some() {
        session.survey();
    }
    let mut bar = progress::Bar::new(arguments);
    let mut show = |progress| bar.show(progress);
    let mut compared = None;
    let result = match (input, output.clone()) {
        (Some(input), Some(output)) => match (arguments.benchmark_repetitions, &arguments.expect) {
            (Some(repetitions), _) => {
                let is_warm = arguments.benchmark_warm;
                session.benchmark(input, output, repetitions, is_warm, &mut show)
            }
            (None, None) => session.run_stream(input, output, &mut show),
            (None, Some(path)) => {
                let mut comparison = Comparison::new(output, path, arguments.tolerance)?;
                let result = session.run_stream(input, &mut comparison, &mut show);
                compared = Some(comparison.finish());
                result
            }
        }
        .map_err(stop),
        #[cfg(feature = "formats")]
        (input, output) => crate::formats::run(
            &mut session,
            &config,
            (&arguments.input, input),
            (&arguments.output, output),
            &mut show,
        ),
        #[cfg(not(feature = "formats"))]
        _ => Err(Stop::usage("this batch-run was built for JSON Lines alone")),
    };
    bar.finish();
    let mut stats = result.inspect_err(|_| {
        for lines in output.iter().chain(&input_gradients) {
            lines.keep();
        }
    })?;
    for lines in output.iter().chain(&input_gradients) {
        lines.finish()?;
    }
    stats.compile_seconds = compile_seconds;
    stats.wall_seconds = begin.elapsed().as_secs_f64();
    if let Some(file) = stats_file {
        write_stats(file, &stats)?;
    }
    if let (Some(file), Some(profile)) = (profile_file, &profile) {
        write_profile(file, profile, arguments, &session)?;
    }
    if let Some(format) = arguments.explain
        && let Some(explanation) = session.explain(&stats)
    {
        explanation.losses.iter().for_each(explain::log);
        let text = explain::render(&explanation, format)?;
        match explain_file {
            Some(file) => file.write(text.as_bytes())?,
            None => crate::exit::say(text.trim_end()),
        }
    }
    if let Some(file) = gradients_file
        && let Some(sums) = session.gradients()
    {
        let bytes = sums.to_safetensors(session.program().manifest());
        file.write(&bytes.map_err(|error| Stop::usage(error.to_string()))?)?;
    }
    summarise(arguments, stats.instances, stats.failed);
    #[cfg(feature = "compiler")]
    if let Some(findings) = findings
        && !findings.judge(arguments.quiet)
    {
        return Ok(FAILED);
    }
    if let Some(compared) = compared {
        return Ok(judge(arguments, &compared));
    }
    Ok(if stats.failed == 0 { SUCCESS } else { FAILED })
}

/// Says how a comparison went. Instances that failed as expected count as equal.
fn judge(arguments: &Arguments, compared: &expect::Outcome) -> u8 {
    if let Some(first) = &compared.first {
        crate::exit::say(&format!(
            "error: {} of {} records are not as expected; the first: {first}",
            compared.different, compared.records
        ));
        return FAILED;
    }
    if !arguments.quiet {
        crate::exit::say(&format!(
            "{} records are as expected; numbers differ by at most {:.1e} of their record's largest",
            compared.records, compared.worst
        ));
    }
    SUCCESS
}

/// Says how many instances failed; their records are in the output.
fn summarise(arguments: &Arguments, instances: u64, failed: u64) {
    if failed > 0 && !arguments.quiet {
        crate::exit::say(&format!(
            "{failed} of {instances} instances failed; see their records in the output"
        ));
    }
}

fn write_profile(
    file: Document,
    profile: &Profile,
    arguments: &Arguments,
    session: &Session,
) -> Result<(), Stop> {
    let left_out = profile.left_out();
    if left_out > 0 {
        crate::exit::say(&format!(
            "note: the profile has the first {MOST_EVENTS} events, and {left_out} more were left out"
        ));
    }
    let title = arguments.model.path.display().to_string();
    let threads = usize::from(arguments.model.threads).max(1);
    let mut json = Vec::new();
    profile
        .write(session.program().manifest(), &title, threads, &mut json)
        .map_err(|error| Stop::usage(format!("cannot write the profile: {error}")))?;
    file.write(&json)
}

fn write_stats(file: Document, stats: &Stats) -> Result<(), Stop> {
    let mut json = serde_json::to_vec_pretty(stats)
        .map_err(|error| Stop::usage(format!("cannot write the statistics: {error}")))?;
    json.push(b'\n');
    file.write(&json)
}
