//! `--oracle`: the same files through the f64 interpreter.

use std::collections::BTreeMap;
use std::time::Instant;

use cohort_frontend::check_loss;
use cohort_oracle::{Cotangents, Limits, Oracle, StreamSummary, unused_weights};
use cohort_runtime::Stats;

use super::args::Arguments;
use super::files::Input;
use super::gradients::Gradients;
use super::watch::Watch;
use super::{files, summarise, write_stats};
use crate::compile::source::{Dims, Source, read_weights, report};
use crate::exit::{FAILED, SUCCESS, Stop};
use crate::output::{Document, Lines};

pub fn run(arguments: &Arguments, watch: &Watch) -> Result<u8, Stop> {
    let begin = Instant::now();
    let bytes = crate::text::read(&arguments.model.path)?;
    if !crate::compile::is_coh(&arguments.model.path) {
        return Err(Stop::usage("`--oracle` runs `.coh` programs only"));
    }
    let source = Source::check(&arguments.model.path, &bytes, arguments.model.entry())?;
    let (mut shapes, mut weights) = (None, BTreeMap::new());
    if let Some(path) = &arguments.model.weights {
        let (read, tensors) = read_weights(path)?;
        (shapes, weights) = (Some(read), tensors);
    }
    let program = source.bind(&Dims::new(shapes, &arguments.model.dims)?, false)?;
    // A length that nothing tells is found on the way to level 0: what the compiler refuses is refused here.
    source.lower(&cohort_dialects::new_context(), &program)?;
    let compile_seconds = begin.elapsed().as_secs_f64();
    let unused = unused_weights(&program, &weights);
    if !arguments.model.allow_unused_weights && !unused.is_empty() {
        return Err(Stop::usage(format!(
            "the program has no parameter {}; allow it with --allow-unused-weights",
            unused.join(", ")
        )));
    }
    let wanted = &arguments.gradients;
    if wanted.are_wanted() && wanted.cotangents.is_none() {
        check_loss(&program).map_err(|diagnostic| report(&[*diagnostic], &source.sources))?;
    }
    let oracle = Oracle::new(&program, weights)
        .map_err(|error| Stop::usage(error.to_string()))?
        .with_draw(arguments.model.draw);
    let limits = Limits {
        max_depth: arguments.model.max_depth,
        max_steps: arguments.model.max_steps,
        max_memory: arguments.model.max_memory(arguments.model.total_memory()),
    };
    let input = files::input(&arguments.input)?;
    let output = Lines::open(&arguments.output)?;
    watch.keep(&output);
    let summary = match wanted.are_wanted() {
        true => differentiate(&oracle, wanted, input, &output, limits)?,
        false => {
            let run = oracle.run_stream(input, output.clone(), limits);
            run.map_err(|error| ended(&error, &[&output]))?
        }
    };
    output.finish()?;
    if let Some(path) = &arguments.stats {
        let stats = Stats {
            instances: summary.instances,
            failed: summary.failed,
            compile_seconds,
            wall_seconds: begin.elapsed().as_secs_f64(),
            peak_memory_bytes: cohort_runtime::report::stats::peak_memory_bytes(),
            threads: 1,
            ..Stats::default()
        };
        write_stats(Document::open(path)?, &stats)?;
    }
    summarise(arguments, summary.instances, summary.failed);
    Ok(if summary.failed == 0 { SUCCESS } else { FAILED })
}

/// Runs all instances and writes what is wanted of their gradients.
fn differentiate(
    oracle: &Oracle<'_>,
    wanted: &Gradients,
    input: Input,
    output: &Lines,
    limits: Limits,
) -> Result<StreamSummary, Stop> {
    let of_params = wanted
        .of_params
        .as_deref()
        .map(Document::open)
        .transpose()?;
    let of_inputs = wanted.of_inputs.as_deref().map(Lines::open).transpose()?;
    let cotangents = wanted.cotangents.as_deref().map(|path| {
        Cotangents::read(files::input(path)?, limits)
            .map_err(|error| Stop::usage(format!("{}: {error}", path.display())))
    });
    let cotangents = cotangents.transpose()?;
    let run = oracle.differentiate_stream(
        input,
        output.clone(),
        limits,
        cotangents.as_ref(),
        of_inputs.clone(),
    );
    let (summary, sum) = run.map_err(|error| {
        let written: Vec<&Lines> = [output].into_iter().chain(&of_inputs).collect();
        ended(&error, &written)
    })?;
    if let Some(of_inputs) = of_inputs {
        of_inputs.finish()?;
    }
    if let Some(of_params) = of_params {
        let bytes = sum.to_safetensors();
        of_params.write(&bytes.map_err(|error| Stop::usage(error.to_string()))?)?;
    }
    Ok(summary)
}

/// The run ends early; what is written by then is kept.
fn ended(error: &std::io::Error, written: &[&Lines]) -> Stop {
    for lines in written {
        lines.keep();
    }
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Stop::reported(FAILED);
    }
    Stop::usage(format!(
        "cannot read the input or write the output: {error}"
    ))
}
