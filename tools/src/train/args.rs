//! The command line of `batch-train`.

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use cohort_oracle::Limits;
use cohort_train::criterion::Criterion;
use cohort_train::schedule::Course;

use crate::exit::Stop;
use crate::output::{self, Named};

/// Trains a program's parameters on a file of instances.
///
/// Exits with 0, with 1 when some instances failed or had no finite loss (stderr names them) or training
/// came to nothing, with 2 when the command line, the program, the data or a checkpoint is wrong or a
/// file cannot be written, and with 130 or 143 when it was interrupted.
#[derive(Debug, Parser)]
#[command(name = "batch-train", version)]
pub struct Arguments {
    /// The program, a `.coh` file
    pub model: PathBuf,
    /// The instances to train on, one JSON object a line
    #[arg(long, value_name = "FILE", visible_alias = "train")]
    pub input: PathBuf,
    /// Where the trained parameters go, a safetensors file: those of the best epoch on `--dev`, or else
    /// the last ones
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The function that gives an instance's loss: an f32, or a tuple of one and metrics
    #[arg(long, value_name = "NAME", default_value = "loss")]
    pub entry: String,

    /// Parameters to begin with, a safetensors file; binds the program's dims. It may have only some: the
    /// others begin by `--init`
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Accept tensors in the weights file that the program does not use
    #[arg(long)]
    pub allow_unused_weights: bool,
    /// Bind a program dim, `H=256`; may be given several times
    #[arg(long = "dim", value_name = "NAME=SIZE")]
    pub dims: Vec<String>,
    /// How parameters of these names begin, `'w*=xavier'`: `xavier`, `normal(σ)`, `uniform(a)`,
    /// `constant(c)`, `zeros` or `ones`; the last option that matches counts. Without one vectors are
    /// zeros, and matrices `xavier`
    #[arg(long, value_name = "NAMES=RULE")]
    pub init: Vec<String>,

    /// Compile the program anew, also where it is kept from an earlier run, and do not keep it
    #[arg(long, conflicts_with = "oracle")]
    pub no_cache: bool,
    /// Compute gradients by the f64 interpreter, an instance after the other; slow
    #[arg(long)]
    pub oracle: bool,
    /// Threads that compute
    #[arg(
        long, value_name = "N", default_value_t = 1, conflicts_with = "oracle",
        value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS)
    )]
    pub threads: u16,

    #[arg(long, value_enum, visible_alias = "optimizer", default_value_t = Optimiser::Adam)]
    pub optimiser: Optimiser,
    /// The learning rate; without, 0.001 for Adam and AdamW, and 0.01 for the others
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = above_zero)]
    pub rate: Option<f64>,
    /// Weight decay: as a part of the gradient, but for AdamW
    #[arg(long, value_name = "DECAY", default_value = "0", allow_negative_numbers = true, value_parser = from_zero)]
    pub decay: f64,
    /// Of SGD
    #[arg(long, value_name = "PART", default_value = "0", allow_negative_numbers = true, value_parser = from_zero)]
    pub momentum: f64,
    /// Nesterov's momentum
    #[arg(long, requires = "momentum")]
    pub nesterov: bool,
    /// Of Adam and AdamW, for the mean of the gradients
    #[arg(long, value_name = "PART", default_value = "0.9", allow_negative_numbers = true, value_parser = below_one)]
    pub beta1: f64,
    /// Of Adam and AdamW, for the mean of their squares
    #[arg(long, value_name = "PART", default_value = "0.999", allow_negative_numbers = true, value_parser = below_one)]
    pub beta2: f64,
    /// What keeps from dividing by zero; without, 1e-8 for Adam and AdamW, and 1e-10 for AdaGrad
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = from_zero)]
    pub epsilon: Option<f64>,
    /// What is different for parameters of these names, `'emb:rate=0.1,decay=0'`, `'enc.*:frozen'`: `rate`,
    /// `decay`, `optimiser`, `frozen`, and `sparse`, whether rows without gradient stay as they are
    #[arg(long = "group", value_name = "NAMES:KEY=VALUE,…")]
    pub groups: Vec<String>,
    /// The longest that the gradient of all parameters together may be; a longer one is scaled
    #[arg(long, value_name = "NORM", allow_negative_numbers = true, value_parser = norm)]
    pub clip: Option<f64>,
    /// Whether the loss of a mini-batch is the mean of its instances' losses, or their sum
    #[arg(long, value_enum, default_value_t = Reduction::Mean)]
    pub reduction: Reduction,
    /// How the rate goes on: `constant`, `linear` or `cosine` down to 0, `step(10,0.5)`, every 10 epochs
    /// times 0.5, or `inverse-sqrt`
    #[arg(long, value_name = "COURSE", default_value = "constant")]
    pub schedule: Course,
    /// So many steps the rate rises to its whole first
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    pub warmup: u64,

    /// Instances in a mini-batch
    #[arg(
        long, value_name = "N", default_value = "32",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub batch: u64,
    /// How often all instances are trained on
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub epochs: u64,
    /// Of the order of instances, of parameters to begin with, and of `random`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Instances that are not trained on, to measure each epoch by
    #[arg(long, value_name = "FILE")]
    pub dev: Option<PathBuf>,
    /// The function that gives loss and metrics of those, such as one that drops nothing out; without,
    /// that of `--entry`
    #[arg(long, value_name = "NAME", requires = "dev")]
    pub dev_entry: Option<String>,
    /// The names of the metrics behind the loss
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// By what the best epoch is found: `loss`, the least, or a metric, the most, or `error:min`
    #[arg(long, value_name = "METRIC", default_value = "loss", requires = "dev")]
    pub best: Criterion,
    /// End after this number of epochs without a better one
    #[arg(
        long, value_name = "EPOCHS", requires = "dev", value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub patience: Option<u64>,

    /// Keep the state of the training there after every epoch, and when it is interrupted
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// And each time this number of steps was made
    #[arg(
        long, value_name = "STEPS", requires = "checkpoint",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub checkpoint_steps: Option<u64>,
    /// Go on from a checkpoint, that of `--checkpoint` unless another is named; what comes is the same to
    /// the bit as without the interruption
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub resume: Option<Option<PathBuf>>,

    /// Write a line of JSON for each epoch
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// And for each time this number of steps was made
    #[arg(
        long, value_name = "STEPS", requires = "log", value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub log_steps: Option<u64>,
    /// Draw losses and metrics by epoch, an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// End when an instance fails or has no finite loss, which is left out otherwise
    #[arg(long)]
    pub stop_on_failure: bool,
    /// How deep an instance may recurse
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_depth)]
    pub max_depth: u64,
    /// How many turns of loops and calls of functions an instance may need
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_steps)]
    pub max_steps: u64,
    /// No progress bar, no line an epoch
    #[arg(long)]
    pub quiet: bool,
}

/// More are none of any machine's.
const MOST_THREADS: i64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Optimiser {
    Sgd,
    #[value(name = "adagrad")]
    AdaGrad,
    Adam,
    #[value(name = "adamw")]
    AdamW,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reduction {
    Mean,
    Sum,
}

impl Arguments {
    /// The checkpoint to go on from.
    pub fn resumed(&self) -> Option<&Path> {
        match &self.resume {
            None => None,
            Some(Some(path)) => Some(path),
            Some(None) => self.checkpoint.as_deref(),
        }
    }

    /// Where checkpoints go: also to the one that is gone on from.
    pub fn checkpoint_file(&self) -> Option<&Path> {
        self.checkpoint.as_deref().or_else(|| self.resumed())
    }

    pub fn limits(&self) -> Limits {
        Limits {
            max_depth: self.max_depth,
            max_steps: self.max_steps,
            ..Limits::default()
        }
    }

    /// Options that make no sense together, or in this build.
    pub fn refuse_unsupported(&self) -> Result<(), Stop> {
        let refused = if !crate::compile::is_coh(&self.model) {
            "a program that is trained is a `.coh` file"
        } else if self.resume.is_some() && self.resumed().is_none() {
            "`--resume` needs a checkpoint: name it, or give `--checkpoint`"
        } else if self.output.is_none() && self.checkpoint_file().is_none() {
            "say by `--output` or `--checkpoint` where the trained parameters go"
        } else if self.momentum != 0.0 && self.optimiser != Optimiser::Sgd {
            "`--momentum` is of `--optimiser sgd`"
        } else {
            return Ok(());
        };
        Err(Stop::usage(refused))
    }

    /// Files that are written must not be read as well, and their folders must be there.
    pub fn refuse_overwriting(&self) -> Result<(), Stop> {
        let written = [
            ("--output", &self.output),
            ("--checkpoint", &self.checkpoint),
            ("--log", &self.log),
            ("--plot", &self.plot),
        ];
        let read = [
            ("the program", Some(&self.model)),
            ("the training data", Some(&self.input)),
            ("the weights file", self.weights.as_ref()),
            ("the development data", self.dev.as_ref()),
        ];
        let named = |(name, path)| -> Option<Named<'_>> { Some((name, Path::new(path?))) };
        let written: Vec<_> = written
            .into_iter()
            .filter_map(|(name, path)| named((name, path.as_ref())))
            .collect();
        let read: Vec<_> = read.into_iter().filter_map(named).collect();
        output::refuse_same(&written, &read)?;
        output::refuse_missing(&written)
    }
}

fn from_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let fits = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    fits.ok_or_else(|| "a number from 0".to_owned())
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = from_zero(text).ok().filter(|number| *number > 0.0);
    number.ok_or_else(|| "a number above 0".to_owned())
}

/// What a gradient is scaled to, which would be nothing at 0.
fn norm(text: &str) -> Result<f64, String> {
    let why = |above| format!("{above}; a gradient no longer than 0 trains nothing");
    above_zero(text).map_err(why)
}

fn below_one(text: &str) -> Result<f64, String> {
    let number = from_zero(text).ok().filter(|number| *number < 1.0);
    number.ok_or_else(|| "a number from 0 and below 1".to_owned())
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
