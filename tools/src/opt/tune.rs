//! `--tune`: which numbers of its schedule a kernel runs fastest with, on this machine, over sample instances.
//!
//! A number is tried in all kernels at once, since a run tells the time of each: the program is compiled with it, its
//! results are compared with those of the program as the compiler would have it, and the two run in turns. A kernel
//! keeps the number with which the median of its times was the shortest. What gives other bits is none that may be
//! chosen, and is dropped. At the end the program with all choices runs in turns with the one without any: where it is
//! not faster as a whole, nothing is chosen.

mod measure;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_codegen::pipeline;
use cohort_frontend::program::Program;
use cohort_passes::kernel::tuning::{Choice, Tuning};
use cohort_runtime::Weights;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::measure::{Measured, Times, in_turns, median};
use super::glue::Options;
use crate::compile::object::Target;
use crate::compile::source::Source;
use crate::compile::{self, Format};
use crate::exit::{Stop, say, stop};

/// How long the search takes at most, where nothing is said, and what may be said.
const BUDGET: Duration = Duration::from_secs(120);
const MOST_SECONDS: f64 = 86_400.0;
/// Of the time of all kernels, what one must take to be worth a choice.
const LEAST_SHARE: f64 = 0.02;
/// A kernel with a number takes at most so much of its time before, or it keeps what it has.
const GAIN: f64 = 0.98;
/// Of the budget, what runs in turns take in a trial, and what the comparison at the end is left.
const TRIAL_SHARE: f64 = 0.02;
const END_SHARE: f64 = 0.15;

/// Searches, and says what was found.
pub fn run(
    options: &Options,
    pipeline: &pipeline::Options,
    format: Format,
    input: &[u8],
) -> Result<Tuning, Stop> {
    if format != Format::Coh {
        return Err(Stop::usage(
            "`--tune` is for `.coh` programs: of IR, change the numbers that `--emit=loops` prints",
        ));
    }
    let (Some(_), Some(instances)) = (&options.weights, &options.instances) else {
        return Err(Stop::usage(
            "`--tune` runs the program: it needs its weights, `--weights FILE`, and sample instances, \
             `--input FILE`",
        ));
    };
    if [&options.input, instances]
        .into_iter()
        .all(|path| path == Path::new("-"))
    {
        return Err(Stop::usage(
            "the program and the instances cannot both be stdin",
        ));
    }
    if options
        .target_cpu
        .as_deref()
        .is_some_and(|name| name != "native")
    {
        return Err(Stop::usage(
            "`--tune` measures on this processor: it compiles for `--target-cpu native`",
        ));
    }
    let budget = budget(options.budget.as_deref())?;
    let mut pipeline = pipeline.clone();
    // What runs here is the processor's code.
    pipeline.gpu = false;
    let instances = crate::text::read(instances)?;
    let dims = options.dims()?;
    let source = Source::check_again(&options.input, input, options.entry())?;
    let tuner = Tuner {
        path: &options.input,
        program: source.bind(&dims, pipeline.gradients)?,
        source,
        pipeline,
        target: Target::new(None)?,
        weights: dims.weights.unwrap_or_else(|| Arc::new(Weights::none())),
        instances: &instances,
        begin: Instant::now(),
        budget,
    };
    tuner.search()
}

fn budget(text: Option<&str>) -> Result<Duration, Stop> {
    let Some(text) = text else { return Ok(BUDGET) };
    let seconds = text.parse::<f64>().ok();
    let possible = |seconds: &f64| *seconds > 0.0 && *seconds <= MOST_SECONDS;
    seconds
        .filter(possible)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            Stop::usage(format!(
                "`--budget {text}`: expected a number of seconds above 0, a day at the most"
            ))
        })
}

struct Tuner<'a> {
    path: &'a Path,
    source: Source,
    program: Program,
    pipeline: pipeline::Options,
    target: Target,
    weights: Arc<Weights>,
    instances: &'a [u8],
    begin: Instant,
    budget: Duration,
}

/// A program as it is so far, with the choices that it was compiled with.
struct Best<'a> {
    chosen: Tuning,
    measured: Measured<'a>,
}

/// A number that was found for a kernel.
struct Found {
    number: i64,
    /// The time with it, as a part of that without.
    ratio: f64,
}

impl Tuner<'_> {
    fn search(&self) -> Result<Tuning, Stop> {
        let planned = compile::tunable(&self.source, &self.program, &self.pipeline, &self.target)?;
        let chosen = Tuning::default();
        let measured = self.measured(&chosen)?;
        let mut best = Best { chosen, measured };
        let first = best.measured.run()?;
        let kernels = worth_it(&planned, &first.times.kernels);
        let trials = trials(&kernels);
        let bar = self.bar(trials.len());
        for choice in Choice::ALL {
            let mut found = BTreeMap::new();
            for (_, number) in trials.iter().filter(|(of, _)| *of == choice) {
                if self.begin.elapsed() > self.budget.mul_f64(1.0 - END_SHARE) {
                    break;
                }
                bar.set_message(format!("{} {number}", choice.name()));
                self.try_number(
                    (choice, *number),
                    &kernels,
                    (&mut best, &first.output),
                    &mut found,
                )?;
                bar.inc(1);
            }
            if !found.is_empty() {
                for (kernel, Found { number, .. }) in found {
                    best.chosen.set(kernel, choice, number);
                }
                best.measured = self.measured(&best.chosen)?;
            }
        }
        bar.finish_and_clear();
        if bar.position() < trials.len() as u64 {
            say(&format!(
                "note: the budget of {} s was enough for {} of {} trials",
                self.budget.as_secs_f64(),
                bar.position(),
                trials.len()
            ));
        }
        self.judge(best, &planned, &first.output)
    }

    /// Tries a number in each of the kernels that have another, beside what they have so far.
    fn try_number<'k>(
        &self,
        (choice, number): (Choice, i64),
        kernels: &'k Tuning,
        (best, expected): (&mut Best<'_>, &[u8]),
        found: &mut BTreeMap<&'k str, Found>,
    ) -> Result<(), Stop> {
        let names = kernels.0.keys().map(String::as_str);
        let changed = names.filter(|kernel| {
            let now = kernels.get(kernel, choice);
            now.is_some_and(|now| now != number)
        });
        let changed: Vec<&str> = changed.collect();
        let mut tried = best.chosen.clone();
        for kernel in &changed {
            tried.set(kernel, choice, number);
        }
        let mut with = self.measured(&tried)?;
        if with.run()?.output != expected {
            let name = choice.name();
            say(&format!(
                "remark: {name} {number} gives other bits, and is not chosen"
            ));
            return Ok(());
        }
        let end = Instant::now() + self.budget.mul_f64(TRIAL_SHARE);
        let turns = in_turns(&mut best.measured, &mut with, end)?;
        for kernel in changed {
            let of = |times: &Times| times.kernels.get(kernel).copied().unwrap_or(0.0);
            let ratio = median(
                turns
                    .iter()
                    .map(|[without, with]| of(with) / of(without).max(1e-9)),
            );
            let least = found.get(kernel).map_or(GAIN, |found| found.ratio);
            if ratio < least {
                found.insert(kernel, Found { number, ratio });
            }
        }
        Ok(())
    }

    /// Compares what was chosen with what the compiler would choose, and says how they differ.
    fn judge(&self, best: Best<'_>, planned: &Tuning, expected: &[u8]) -> Result<Tuning, Stop> {
        let Best {
            chosen,
            measured: mut tuned,
        } = best;
        if chosen.is_empty() {
            say("tuned: nothing is faster than what the compiler chooses");
            return Ok(chosen);
        }
        if tuned.run()?.output != expected {
            say("remark: all choices together give other bits; nothing is chosen");
            return Ok(Tuning::default());
        }
        let mut untuned = self.measured(&Tuning::default())?;
        let end = Instant::now() + self.budget.mul_f64(END_SHARE / 2.0);
        let turns = in_turns(&mut untuned, &mut tuned, end)?;
        let ratio = median(
            turns
                .iter()
                .map(|[untuned, tuned]| untuned.seconds / tuned.seconds),
        );
        if ratio <= 1.0 {
            say(&format!(
                "tuned: {ratio:.3}x of the compiler's choices as a whole; nothing is chosen"
            ));
            return Ok(Tuning::default());
        }
        for (kernel, choices) in &chosen.0 {
            for (choice, number) in choices {
                let before = planned.get(kernel, *choice).unwrap_or_default();
                say(&format!(
                    "tuned: {kernel}: {} {before} -> {number}",
                    choice.name()
                ));
            }
        }
        say(&format!(
            "tuned: {ratio:.3}x of the compiler's choices, over {} turns",
            turns.len()
        ));
        Ok(chosen)
    }

    fn measured(&self, tuning: &Tuning) -> Result<Measured<'_>, Stop> {
        let mut pipeline = self.pipeline.clone();
        pipeline.tuning = tuning.clone();
        let artifact =
            compile::compile_again(&self.source, &self.program, &pipeline, &self.target)?;
        let program = artifact.load(self.path).map_err(stop)?;
        Measured::new(program, &self.weights, self.instances)
    }

    fn bar(&self, trials: usize) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            let bar = ProgressBar::hidden();
            bar.set_length(trials as u64);
            return bar;
        }
        let bar = ProgressBar::new(trials as u64);
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let template = "{elapsed_precise} {wide_bar} {pos}/{len} {msg} (eta {eta})";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }
}

/// The choices of the kernels that take a part of the time which is worth it.
fn worth_it(planned: &Tuning, seconds: &BTreeMap<String, f64>) -> Tuning {
    let all: f64 = seconds.values().sum();
    let is_worth_it = |kernel: &str| {
        let own = seconds.get(kernel).copied().unwrap_or(0.0);
        own > LEAST_SHARE * all
    };
    let kernels = planned.0.iter().filter(|(kernel, _)| is_worth_it(kernel));
    Tuning(
        kernels
            .map(|(kernel, choices)| (kernel.clone(), choices.clone()))
            .collect(),
    )
}

/// The numbers that some kernel does not have, choice by choice.
fn trials(kernels: &Tuning) -> Vec<(Choice, i64)> {
    let of_choice = |choice: Choice| {
        let is_new = move |number: &i64| {
            let mut kernels = kernels.0.values();
            kernels.any(|choices| choices.get(&choice).is_some_and(|now| now != number))
        };
        let numbers = choice.candidates().iter().copied().filter(is_new);
        numbers
            .map(move |number| (choice, number))
            .collect::<Vec<_>>()
    };
    Choice::ALL.into_iter().flat_map(of_choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_tried_where_a_kernel_has_another() {
        let mut kernels = Tuning::default();
        assert!(trials(&kernels).is_empty());
        kernels.set("cell", Choice::Tile, 12);
        let of_tile = [4, 6, 8].map(|number| (Choice::Tile, number));
        assert_eq!(trials(&kernels), of_tile);
        kernels.set("main", Choice::Tile, 8);
        kernels.set("main", Choice::Width, 32);
        let of_tile = [4, 6, 8, 12].map(|number| (Choice::Tile, number));
        assert_eq!(trials(&kernels)[..4], of_tile);
        assert_eq!(trials(&kernels)[4..], [(Choice::Width, 16)]);
    }

    #[test]
    fn a_budget_is_some_time() {
        assert_eq!(budget(None).expect("some"), BUDGET);
        assert_eq!(
            budget(Some("1.5")).expect("some"),
            Duration::from_millis(1500)
        );
        for text in ["0", "-1", "nan", "inf", "ten", "1e9", ""] {
            let stop = budget(Some(text)).expect_err(text);
            assert!(stop.message.contains("seconds above 0"), "{text}");
        }
    }
}
