//! The command line of `batch-run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use cohort_runtime::{Batch, Config};

use super::explain;
use super::gradients::Gradients;
use crate::exit::Stop;
use crate::formats::Format;
use crate::model::Kind;
use crate::model::args::{Device, ModelArguments, parse_seconds};
use crate::output::{self, Named};

/// Runs a program over many instances, batched.
///
/// Exits with 0, with 1 when some instances failed (their records in the output say why) or the
/// run's time was over, with 2 when the command line, the program or the weights are wrong or the
/// output cannot be written, and with 130 or 143 when it was interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "batch-run",
    version,
    group = clap::ArgGroup::new("compares").multiple(true)
)]
pub struct Arguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// The instances, one JSON object a line, or, by its name, an `.npz`, `.npy`, `.arrow` or `.parquet`;
    /// `-` is stdin
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub input: PathBuf,
    /// Where to write the results, one JSON object a line, or, by its name, as such a file, which is
    /// written at the end; `-` is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Run an artifact in a process of its own that can reach no file, network or other process, only
    /// the input and the output
    #[arg(
        long,
        conflicts_with_all = ["benchmark_repetitions", "verify_batch_invariance", "expect", "oracle"]
    )]
    pub sandbox: bool,
    /// This is that process
    #[arg(long, hide = true, requires = "sandbox")]
    pub inside_sandbox: bool,
    /// Instances in a batch, or `all`; without, 256, or fewer where more would gain nothing
    #[arg(long, value_name = "N", value_parser = parse_batch)]
    pub batch: Option<BatchSize>,
    /// Run one instance after another, each kernel call by itself
    #[arg(long, conflicts_with = "batch")]
    pub no_batch: bool,
    /// Keep this many instances running, where tensors decide: as one is done, the next one begins
    #[arg(
        long, value_name = "N", conflicts_with_all = ["batch", "no_batch"],
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub in_flight: Option<u64>,
    /// Interpret the program in f64 instead of compiling it; slow, for comparison
    #[arg(long, conflicts_with_all = ["batch", "no_batch", "in_flight", "max_seconds", "benchmark_repetitions"])]
    pub oracle: bool,
    #[command(flatten)]
    pub gradients: Gradients,
    /// How many seconds the run may take, compiling included; what is finished then is in the output
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub max_run_seconds: Option<Duration>,

    /// Write what was done and how long it took, as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Write what was done when, launch by launch, for a viewer of traces such as ui.perfetto.dev
    #[arg(long, value_name = "FILE", conflicts_with_all = ["oracle", "verify_batch_invariance"])]
    pub profile: Option<PathBuf>,
    /// Read all instances first, then run them to warm up and N times
    #[arg(long, value_name = "N", value_parser = parse_repetitions, conflicts_with = "max_seconds")]
    pub benchmark_repetitions: Option<usize>,
    /// Let each repetition begin with what those before it kept, in place of nothing
    #[arg(long, requires = "benchmark_repetitions")]
    pub benchmark_warm: bool,
    /// Tell, a block, how it was batched, and where batching was lost, why and at what cost; as
    /// tables, as JSON, or as a page with the source
    #[arg(
        long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
        default_missing_value = "text", conflicts_with_all = ["oracle", "verify_batch_invariance"]
    )]
    pub explain: Option<explain::Format>,
    /// Where `--explain` writes, in place of stderr; `-` is stdout
    #[arg(long, value_name = "FILE", requires = "explain")]
    pub explain_output: Option<PathBuf>,
    /// Write what there is to say of the program, and of lost batching where `--explain` is given, as
    /// SARIF 2.1.0
    #[arg(long, value_name = "FILE", conflicts_with = "sandbox")]
    pub sarif: Option<PathBuf>,
    /// Run the instances in N random compositions and orders and compare every bit with the first
    /// run; the report goes to the output in place of the results, exit code 1 on a difference
    #[arg(
        long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["oracle", "max_seconds", "benchmark_repetitions", "stats"]
    )]
    pub verify_batch_invariance: Option<u64>,
    /// Of the random compositions
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "verify_batch_invariance"
    )]
    pub seed: u64,
    /// Compare the results with those of another run, such as one with `--oracle`, which a file
    /// holds; exit code 1 when they differ
    #[arg(
        long, value_name = "FILE", group = "compares",
        conflicts_with_all = ["benchmark_repetitions", "verify_batch_invariance", "oracle"]
    )]
    pub expect: Option<PathBuf>,
    /// Compute every launch again in f64, from its own operands, and name the first that is wrong, with
    /// its row and what it read; slow. Exit code 1 when one is
    #[arg(
        long, group = "compares",
        conflicts_with_all = ["benchmark_repetitions", "verify_batch_invariance", "oracle", "sandbox"]
    )]
    pub check_kernels: bool,
    /// How far numbers may be from those expected, as a part of the instance's largest number, or, with
    /// `--check-kernels`, of the row's
    #[arg(
        long, value_name = "PART", default_value = "1e-4", requires = "compares",
        allow_negative_numbers = true, value_parser = parse_tolerance
    )]
    pub tolerance: f64,
    /// No progress bar, no summary
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    Count(usize),
    All,
}

impl Arguments {
    /// How instances fall into batches.
    pub fn batches(&self) -> Batch {
        match (self.no_batch, self.in_flight, self.batch) {
            (true, _, _) => Batch::Unbatched,
            (false, Some(count), _) => Batch::InFlight(count as usize),
            (false, None, Some(BatchSize::Count(count))) => Batch::Count(count),
            (false, None, Some(BatchSize::All)) => Batch::All,
            (false, None, None) => Config::default().batch,
        }
    }

    /// Files that are written must not be read as well.
    pub fn refuse_overwriting(&self) -> Result<(), Stop> {
        let written = [
            Some(("--output", &self.output)),
            self.stats.as_ref().map(|path| ("--stats", path)),
            self.profile.as_ref().map(|path| ("--profile", path)),
            (self.explain_output.as_ref()).map(|path| ("--explain-output", path)),
            self.sarif.as_ref().map(|path| ("--sarif", path)),
        ];
        let written = written.into_iter().chain(self.gradients.written());
        let read = [
            Some(("the program", &self.model.path)),
            Some(("the input", &self.input)),
            (self.model.weights.as_ref()).map(|path| ("the weights file", path)),
            (self.model.profile_guided.as_ref()).map(|path| ("--profile-guided", path)),
            self.expect.as_ref().map(|path| ("what is expected", path)),
            self.gradients.read(),
        ];
        let named = |(name, path)| -> Named<'_> { (name, Path::new(path)) };
        let written: Vec<_> = written.flatten().map(named).collect();
        let imported = self.model.imported();
        let imported = imported.iter().map(|path| ("a file of the program", path));
        let read: Vec<_> = (read.into_iter().flatten().chain(imported))
            .map(named)
            .collect();
        output::refuse_same(&written, &read)
    }

    /// Files other than JSON Lines where they cannot be.
    fn refuse_tables(&self) -> Result<(), Stop> {
        let of_lines = [
            (self.sandbox, "--sandbox"),
            (self.oracle, "--oracle"),
            (self.expect.is_some(), "--expect"),
            (
                self.benchmark_repetitions.is_some(),
                "--benchmark-repetitions",
            ),
            (
                self.verify_batch_invariance.is_some(),
                "--verify-batch-invariance",
            ),
        ];
        for path in [&self.input, &self.output] {
            Format::of(path).check(path)?;
            if Format::of(path) == Format::Lines {
                continue;
            }
            if let Some((_, option)) = of_lines.iter().find(|(is_given, _)| *is_given) {
                return Err(Stop::usage(format!(
                    "`{option}` is for JSON Lines, and {} is none by its name",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Options that make no sense together, or in this build.
    pub fn refuse_unsupported(&self) -> Result<(), Stop> {
        self.model.refuse_unsupported(self.oracle)?;
        self.refuse_tables()?;
        if self.sandbox && self.model.device != Device::Cpu {
            return Err(Stop::usage(
                "`--sandbox` is for `--device cpu`: a GPU's driver needs what the sandbox forbids",
            ));
        }
        if self.sandbox && Kind::of(&self.model.path) != Kind::Artifact {
            return Err(Stop::usage(
                "`--sandbox` is for artifacts; make one with `batch-opt --emit artifact`",
            ));
        }
        if self.oracle && !cfg!(feature = "compiler") {
            return Err(Stop::usage(
                "`--oracle` needs a batch-run built with the compiler",
            ));
        }
        if self.check_kernels && !cfg!(feature = "compiler") {
            return Err(Stop::usage(
                "`--check-kernels` needs a batch-run built with the compiler",
            ));
        }
        if self.check_kernels && self.model.device != Device::Cpu {
            return Err(Stop::usage(
                "`--check-kernels` is for `--device cpu`: it reads operands where the processor has them",
            ));
        }
        if let (Some(_), Some(_)) = (&self.gradients.of_inputs, self.benchmark_repetitions) {
            return Err(Stop::usage(
                "`--input-gradients` is for one run, and `--benchmark-repetitions` makes several",
            ));
        }
        if self.sandbox && self.gradients.of_inputs.is_some() {
            return Err(Stop::usage(
                "`--input-gradients` is not for `--sandbox`, which passes one stream of records on",
            ));
        }
        if self.gradients.are_wanted() && self.model.rounds_weights() {
            return Err(Stop::usage(
                "`--keep-weights bf16` is for running a program: weights that are trained are kept in f32; leave it \
                 out for gradients",
            ));
        }
        self.gradients.refuse_unsupported()
    }
}

fn parse_batch(text: &str) -> Result<BatchSize, String> {
    match (text, text.parse::<usize>()) {
        ("all", _) => Ok(BatchSize::All),
        (_, Ok(count)) if count > 0 => Ok(BatchSize::Count(count)),
        _ => Err("a number from 1, or `all`".to_owned()),
    }
}

fn parse_repetitions(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "a number from 1".to_owned())
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let part = text.parse().ok();
    part.filter(|part: &f64| part.is_finite() && *part >= 0.0)
        .ok_or_else(|| "a number from 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
