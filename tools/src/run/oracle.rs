//! `--oracle`: the same files through the f64 interpreter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cohort_oracle::{Limits, Oracle, parse_weights, unused_weights};
use cohort_runtime::{Stats, Weights};

use super::args::Arguments;
use super::watch::Watch;
use super::{files, stop, summarise, write_stats};
use crate::compile::source::{Dims, Source};
use crate::exit::{FAILED, SUCCESS, Stop};
use crate::output::Lines;

pub fn run(arguments: &Arguments, watch: &Watch) -> Result<u8, Stop> {
    let begin = Instant::now();
    let bytes = crate::text::read(&arguments.model)?;
    if !crate::compile::is_coh(&arguments.model) {
        return Err(Stop::usage("`--oracle` runs `.coh` programs only"));
    }
    let source = Source::check(&arguments.model, &bytes)?;
    let (mut shapes, mut weights) = (None, BTreeMap::new());
    if let Some(path) = &arguments.weights {
        let bytes = crate::text::read(path)?;
        shapes = Some(Arc::new(
            Weights::of(path, bytes.clone().into()).map_err(stop)?,
        ));
        weights = parse_weights(&bytes)
            .map_err(|error| Stop::usage(format!("{}: {error}", path.display())))?;
    }
    let program = source.bind(&Dims::new(shapes, &arguments.dims)?)?;
    let compile_seconds = begin.elapsed().as_secs_f64();
    let unused = unused_weights(&program, &weights);
    if !arguments.allow_unused_weights && !unused.is_empty() {
        return Err(Stop::usage(format!(
            "the program has no parameter {}; allow it with --allow-unused-weights",
            unused.join(", ")
        )));
    }
    let oracle = Oracle::new(&program, weights).map_err(|error| Stop::usage(error.to_string()))?;
    let limits = Limits {
        max_depth: arguments.max_depth,
        max_steps: arguments.max_steps,
    };
    let input = files::input(&arguments.input)?;
    let output = Lines::open(&arguments.output)?;
    watch.keep(&output);
    let run = oracle.run_stream(input, output.clone(), limits);
    let summary = run.map_err(|error| {
        output.keep();
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Stop::reported(FAILED);
        }
        Stop::usage(format!(
            "cannot read the input or write the output: {error}"
        ))
    })?;
    output.finish()?;
    if let Some(path) = &arguments.stats {
        let stats = Stats {
            instances: summary.instances,
            failed: summary.failed,
            compile_seconds,
            wall_seconds: begin.elapsed().as_secs_f64(),
            peak_memory_bytes: cohort_runtime::stats::peak_memory_bytes(),
            threads: 1,
            ..Stats::default()
        };
        write_stats(crate::output::Document::open(path)?, &stats)?;
    }
    summarise(arguments, summary.instances, summary.failed);
    Ok(if summary.failed == 0 { SUCCESS } else { FAILED })
}
