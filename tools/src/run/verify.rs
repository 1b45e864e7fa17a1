//! `batch-run --verify-batch-invariance N`: the instances in other company, compared bit for bit.

use std::io::Read;
use std::rc::Rc;

use cohort_runtime::verify::{Options, Verdict, verify};
use cohort_runtime::{Config, Program, Weights};

use super::args::Arguments;
use super::{files, stop};
use crate::exit::{FAILED, SUCCESS, Stop};

/// Runs the check; the report takes the place of the results.
pub fn run(
    arguments: &Arguments,
    config: Config,
    program: &Program,
    weights: &Weights,
    compositions: u64,
) -> Result<u8, Stop> {
    let mut input = Vec::new();
    files::input(&arguments.input)?
        .read_to_end(&mut input)
        .map_err(|error| Stop::usage(format!("cannot read the input: {error}")))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cotangents = arguments.gradients.cotangents(&config)?;
    let options = Options {
        compositions,
        seed: arguments.seed,
        // Two threads split launches even where there is one core.
        max_threads: cores.clamp(2, 8).max(usize::from(arguments.model.threads)),
        cotangents: cotangents.map(Rc::new),
    };
    let verdict = verify(program, weights, config, &input, options, &mut |_| {}).map_err(stop)?;
    let (code, text) = match &verdict {
        Verdict::Holds(summary) => (SUCCESS, format!("{summary}\n")),
        Verdict::Differs(difference) => (FAILED, format!("{difference}\n")),
        Verdict::SumsDiffer(difference) => (FAILED, format!("{difference}\n")),
    };
    crate::output::write(&arguments.output, text.as_bytes())?;
    Ok(code)
}
