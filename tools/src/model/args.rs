//! What says which program runs, and how: options that the tools which run programs have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::device::{self, DeviceKind};
use cohort_runtime::{Batch, Config, Limits, Policy, memory};

use super::techniques::Without;
#[cfg(feature = "compiler")]
use crate::compile::gpu::GpuCode;
use crate::exit::Stop;

/// A program, and how it is compiled and run.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelArguments {
    /// The program, whose name says what it is: `.coh`, an artifact (`.cohort`), or else IR (`.mlir`)
    #[arg(value_name = "MODEL")]
    pub path: PathBuf,
    /// The program's weights, a safetensors file; binds its dims
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// Whether gradients are computed, as the tool's own options tell.
    #[arg(skip)]
    pub gradients: bool,
    /// Whether nobody asks for those of inputs.
    #[arg(skip)]
    pub parameters_only: bool,
    /// Whether they are those of a loss, which the entry must give.
    #[arg(skip)]
    pub gives_loss: bool,

    /// The function of a `.coh` program that runs for each instance, in place of `main`; its arguments
    /// are the input's members
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Bind a program dim, `H=256`; may be given several times
    #[arg(long = "dim", value_name = "NAME=SIZE")]
    pub dims: Vec<String>,
    /// Accept tensors in the weights file that the program does not use
    #[arg(long)]
    pub allow_unused_weights: bool,

    /// Compile the program anew, also where it is kept from an earlier run (in `COHORT_CACHE`, or in `cohort` in
    /// the user's folder for caches), and do not keep it
    #[arg(long)]
    pub no_cache: bool,
    /// Run IR, which can do all that this process can; without it, only `.coh` and artifacts run
    #[arg(long)]
    pub allow_ir: bool,
    /// Run an artifact only if it is signed with one of the Ed25519 public keys in a PEM file
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,

    /// Where kernels run: on the processor, on an NVIDIA GPU, or, to check what a GPU would compute,
    /// in a simulator of one
    #[arg(long, value_enum, default_value_t = Device::Cpu)]
    pub device: Device,
    /// What the factors of products are rounded to on a GPU, whose tensor cores multiply them; sums are
    /// of f32 in any, and f32 rounds nothing
    #[arg(long, value_enum)]
    pub precision: Option<Precision>,
    /// What the packed weights of products are kept in on the processor: bf16 has half the bytes, which makes launches
    /// of few rows faster, and rounds each weight once; products compute in f32 in either. `f32` without this
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub keep_weights: Option<KeepWeights>,
    /// How much memory of the GPU may be used, `8G`; without, most of what is free
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub device_memory: Option<u64>,
    /// Launch every kernel by itself, also where a flush is like one before it and could be launched
    /// as one graph
    #[arg(long)]
    pub no_graphs: bool,
    /// How sums of products are rounded on the tensor cores that `--device ptx-sim` imitates; `nearest`
    /// without this
    #[arg(long, value_enum, value_name = "MODEL")]
    pub tensor_cores: Option<TensorCores>,
    /// Take the time of each kernel call on the GPU, for `--stats` and `--explain`; calls run one
    /// after another then, and not as graphs
    #[arg(long)]
    pub device_times: bool,
    /// Threads that compute kernels
    #[arg(
        long, value_name = "N", default_value = "1", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS)
    )]
    pub threads: u16,
    /// Compute equal calls on a parameter's row each time they occur
    #[arg(long)]
    pub no_sharing: bool,
    /// How much memory may be used to keep the results of calls on a parameter's row for later
    /// batches, `512M`; on a GPU at most a sixteenth of its memory
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    pub keep_memory: u64,
    /// How much memory may be used to keep the schedules of instances by their structure, `512M`
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    pub schedule_memory: u64,
    /// How kernel calls are put together into launches, and these in order
    #[arg(long, value_enum, default_value_t = Scheduler::Auto)]
    pub scheduler: Scheduler,
    /// Schedule as an earlier run of the program did, whose `--stats` this is, and choose nothing while
    /// instances run
    #[arg(long, value_name = "FILE", conflicts_with = "scheduler")]
    pub profile_guided: Option<PathBuf>,
    /// What is scheduled as one: a tensor operation, whatever can run together, a function that is
    /// tensor code only, or all that an instance does between two flushes; `block` without this
    #[arg(long, value_enum, value_name = "UNIT")]
    pub granularity: Option<Granularity>,
    /// How many levels of children a recursive function computes with each node: fewer levels, of more
    /// kernels; 0 without this
    #[arg(long, value_name = "LEVELS")]
    pub unroll: Option<u32>,
    /// Do without these passes and techniques, to see what they gain; a wrong name lists those that
    /// can go
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub without: Vec<String>,

    /// Which random numbers `random` gives: each N gives an instance others, such as one N an epoch
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub draw: u64,
    /// How deep an instance may recurse
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_depth)]
    pub max_depth: u64,
    /// How many kernel calls an instance may need
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_nodes)]
    pub max_nodes: u64,
    /// How much memory an instance may need, `512M`; without, 4G, or a quarter of --total-memory
    /// where that is less
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_memory: Option<u64>,
    /// How much memory all instances of a batch may use together; without, half of what is free for
    /// this process when it starts
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub total_memory: Option<u64>,
    /// How many turns of loops and calls of functions an instance may need
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_steps)]
    pub max_steps: u64,
    /// How many seconds an instance may take, waiting for the others of its batch included
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub max_seconds: Option<Duration>,
}

/// What runs the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(
    missing_docs,
    reason = "what documents a value is shown by `--help`, where the option says it"
)]
pub enum Device {
    Cpu,
    Cuda,
    GpuSim,
    PtxSim,
}

/// How tensor cores add, where PTX is interpreted
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TensorCores {
    /// Rounded once, as `gpu-sim` does
    Nearest,
    /// As measurements found of sm_80: cut off at 24 bits below the largest
    Ampere,
    /// As measurements found of sm_90: cut off at 25 bits below the largest
    Hopper,
}

/// What the factors of products are rounded to on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(
    missing_docs,
    reason = "what documents a value is shown by `--help`, where the option says it"
)]
pub enum Precision {
    F32,
    Tf32,
    Bf16,
}

/// What the packed weights of products are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(
    missing_docs,
    reason = "what documents a value is shown by `--help`, where the option says it"
)]
pub enum KeepWeights {
    F32,
    Bf16,
}

/// Which calls that are ready run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheduler {
    /// By depth or by looking ahead, as is measured to be faster while instances run
    Auto,
    /// All calls of a kernel at one depth; the least deep first
    Depth,
    /// The kernel whose calls are the least deep on average, with all its calls that are ready
    Agenda,
    /// The kernel that leaves no call behind for which it would have to run again
    Lookahead,
}

/// What one unit of batching is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(
    missing_docs,
    reason = "what documents a value is shown by `--help`, where the option says it"
)]
pub enum Granularity {
    Operator,
    Block,
    Function,
    Instance,
}

/// What an instance, and a batch before another is begun, may use at most unless told.
const MOST_MEMORY: u64 = 4 << 30;
/// Of all memory, the part of an instance, and of a batch: a batch holds its inputs twice, as text and
/// as rows, and what is beyond its own part is one instance's.
const SHARES: u64 = 4;
/// Where less is free, it is not known to be too little.
const LEAST_TOTAL: u64 = 256 << 20;
/// More threads than any machine has cores make nothing faster, and each takes memory.
const MOST_THREADS: i64 = 1024;

impl ModelArguments {
    /// The files that the program imports. A program that is not a file is read but once, and not here.
    #[cfg(feature = "compiler")]
    pub fn imported(&self) -> Vec<PathBuf> {
        let is_file = || std::fs::metadata(&self.path).is_ok_and(|about| about.is_file());
        if !crate::compile::is_coh(&self.path) || !is_file() {
            return vec![];
        }
        // What cannot be read is told by who needs it.
        let bytes = crate::text::read(&self.path).unwrap_or_default();
        crate::compile::source::imported(&self.path, &bytes)
    }

    /// None: an artifact imports nothing.
    #[cfg(not(feature = "compiler"))]
    pub fn imported(&self) -> Vec<PathBuf> {
        vec![]
    }

    /// Options that make no sense together, or with the oracle.
    pub fn refuse_unsupported(&self, is_interpreted: bool) -> Result<(), Stop> {
        let without = Without::new(&self.without);
        if self.device != Device::Cpu && without.gather_fusion {
            return Err(Stop::usage(
                "`--without gather-fusion` is for `--device cpu`: on a GPU rows are always read \
                 where they lie",
            ));
        }
        if self.device != Device::Cpu && without.ragged_storage {
            return Err(Stop::usage(
                "`--without ragged-storage` is for `--device cpu`: on a GPU calls have no more rows \
                 than they need",
            ));
        }
        let of_gpus = [
            (self.device_memory.is_some(), "--device-memory"),
            (self.no_graphs, "--no-graphs"),
            (self.device_times, "--device-times"),
        ];
        if let Some((_, option)) = of_gpus.iter().find(|(is_given, _)| *is_given)
            && self.device == Device::Cpu
        {
            return Err(Stop::usage(format!(
                "`{option}` is for a GPU; say which by `--device`"
            )));
        }
        if self.tensor_cores.is_some() && self.device != Device::PtxSim {
            return Err(Stop::usage(
                "`--tensor-cores` is for `--device ptx-sim`, which imitates them",
            ));
        }
        let rounds = !matches!(self.precision, None | Some(Precision::F32));
        if rounds && (self.device == Device::Cpu || is_interpreted) {
            return Err(Stop::usage(
                "`--precision` rounds products on a GPU: the processor computes in f32, the oracle in \
                 f64; it needs `--device cuda`, `gpu-sim` or `ptx-sim`",
            ));
        }
        if self.rounds_weights() && (self.device != Device::Cpu || is_interpreted) {
            return Err(Stop::usage(
                "`--keep-weights` is for `--device cpu`: on a GPU weights are kept as products take them, which \
                 `--precision` says, and the oracle computes in f64",
            ));
        }
        if self.granularity == Some(Granularity::Instance) && self.scheduler != Scheduler::Auto {
            return Err(Stop::usage(
                "`--granularity instance` leaves nothing to order: it needs no `--scheduler`",
            ));
        }
        if self.granularity == Some(Granularity::Instance) && self.profile_guided.is_some() {
            return Err(Stop::usage(
                "`--granularity instance` leaves nothing to order: it needs no `--profile-guided`",
            ));
        }
        Ok(())
    }

    /// Whether weights are rounded when they are packed.
    pub fn rounds_weights(&self) -> bool {
        self.keep_weights
            .is_some_and(|kept| kept != KeepWeights::F32)
    }

    /// The function that runs for each instance.
    #[cfg(feature = "compiler")]
    pub fn entry(&self) -> &str {
        self.entry.as_deref().unwrap_or(cohort_frontend::MAIN)
    }

    /// Options that say how to compile what is compiled already.
    pub fn refuse_for_artifacts(&self) -> Result<(), Stop> {
        let compiles = |granularity| granularity != Granularity::Instance;
        let passes = Without::new(&self.without).passes;
        let option = if self.entry.is_some() {
            "--entry".to_owned()
        } else if !self.dims.is_empty() {
            "--dim".to_owned()
        } else if self.granularity.is_some_and(compiles) {
            "--granularity".to_owned()
        } else if self.unroll.is_some() {
            "--unroll".to_owned()
        } else if self.precision.is_some() {
            "--precision".to_owned()
        } else if self.keep_weights.is_some() {
            "--keep-weights".to_owned()
        } else if let Some(pass) = passes.first() {
            format!("--without {pass}")
        } else {
            return Ok(());
        };
        Err(Stop::usage(format!(
            "`{option}` is for the compiler, and {} is compiled already; give it to \
             `batch-opt --emit artifact`",
            self.path.display()
        )))
    }

    /// How the compiler's pipeline differs from the default.
    #[cfg(feature = "compiler")]
    pub fn pipeline(&self) -> Result<cohort_codegen::pipeline::Options, Stop> {
        use cohort_codegen::pipeline;
        let names = Without::new(&self.without).passes;
        let mut options = pipeline::Options::without(&names)
            .map_err(|error| Stop::usage(format!("{error}{}", super::techniques::list())))?;
        options.granularity = match self.granularity.unwrap_or(Granularity::Block) {
            Granularity::Operator => pipeline::Granularity::Operator,
            // What is run as one instance is compiled like any other program.
            Granularity::Block | Granularity::Instance => pipeline::Granularity::Block,
            Granularity::Function => pipeline::Granularity::Function,
        };
        options.unroll = self.unroll.unwrap_or(0);
        options.gradients = self.gradients;
        options.parameters_only = self.parameters_only;
        options.gpu = self.gpu_code().is_wanted();
        options.precision = match self.precision.unwrap_or(Precision::F32) {
            Precision::F32 => cohort_abi::gpu::Precision::F32,
            Precision::Tf32 => cohort_abi::gpu::Precision::Tf32,
            Precision::Bf16 => cohort_abi::gpu::Precision::Bf16,
        };
        options.keep_weights = match self.keep_weights.unwrap_or(KeepWeights::F32) {
            KeepWeights::F32 => cohort_abi::manifest::WeightFormat::F32,
            KeepWeights::Bf16 => cohort_abi::manifest::WeightFormat::Bf16,
        };
        Ok(options)
    }

    /// The code that the device needs.
    #[cfg(feature = "compiler")]
    pub fn gpu_code(&self) -> GpuCode {
        match self.device {
            Device::Cpu => GpuCode::default(),
            Device::Cuda => GpuCode::for_capability(device::Cuda::capability()),
            Device::PtxSim => GpuCode::of_hopper(),
            Device::GpuSim => GpuCode::SIMULATOR,
        }
    }

    /// What is used by instances, and neither by weights nor by code.
    pub fn total_memory(&self) -> u64 {
        let free = || {
            let weights = self.weights.as_deref().and_then(crate::text::size);
            let free = memory::free_bytes()?.saturating_sub(weights.unwrap_or(0));
            Some((free / 2).max(LEAST_TOTAL))
        };
        // Of a share of nothing no instance could even begin, to be told that it needs more.
        self.total_memory
            .or_else(free)
            .unwrap_or(u64::MAX)
            .max(SHARES)
    }

    /// What an instance may use of what all of them may use together.
    pub fn max_memory(&self, total: u64) -> u64 {
        (self.max_memory).unwrap_or(MOST_MEMORY.min(total / SHARES))
    }

    fn limits(&self, total: u64) -> Limits {
        Limits {
            max_depth: self.max_depth,
            max_nodes: self.max_nodes,
            max_memory: self.max_memory(total),
            max_steps: self.max_steps,
            max_time: self.max_seconds,
        }
    }

    /// What an earlier run says of how the program, whose manifest this is, should run.
    pub fn guide(&self, config: &mut Config, manifest: &Manifest) -> Result<(), Stop> {
        if let Some(path) = &self.profile_guided {
            config.scheduler = super::guided::scheduler(path, manifest)?;
            config.is_guided = true;
        }
        Ok(())
    }

    /// `total` are the bytes that instances may use together.
    pub fn config(&self, batch: Batch, total: u64) -> Config {
        let scheduler = match (self.granularity, self.scheduler) {
            (Some(Granularity::Instance), _) => Policy::Instances,
            (_, Scheduler::Auto) => Policy::Auto,
            (_, Scheduler::Depth) => Policy::Depth,
            (_, Scheduler::Agenda) => Policy::Agenda,
            (_, Scheduler::Lookahead) => Policy::Lookahead,
        };
        let without = Without::new(&self.without);
        Config {
            batch,
            threads: usize::from(self.threads),
            limits: self.limits(total),
            batch_memory: MOST_MEMORY.min(total / SHARES),
            allow_unused_weights: self.allow_unused_weights,
            share_calls: !self.no_sharing && !without.sharing,
            gradients: self.gradients,
            keep_memory: self.keep_memory,
            schedule_memory: match without.schedule_reuse {
                true => 0,
                false => self.schedule_memory,
            },
            scheduler,
            gather_fusion: !without.gather_fusion,
            lends_from: match without.lending {
                true => u64::MAX,
                false => Config::default().lends_from,
            },
            ragged_storage: !without.ragged_storage,
            remapping: !without.remapping,
            shared_prelude: !without.shared_prelude,
            device: match self.device {
                Device::Cpu => DeviceKind::Cpu,
                Device::Cuda => DeviceKind::Cuda,
                Device::GpuSim => DeviceKind::GpuSim,
                Device::PtxSim => DeviceKind::PtxSim,
            },
            draw: self.draw,
            device_memory: self.device_memory,
            device_options: device::Options {
                graphs: !self.no_graphs,
                times: self.device_times,
                overlap: !without.overlap,
                speculation: !without.speculation,
                tensor_cores: match self.tensor_cores {
                    None | Some(TensorCores::Nearest) => device::TensorCores::Nearest,
                    Some(TensorCores::Ampere) => device::TensorCores::Ampere,
                    Some(TensorCores::Hopper) => device::TensorCores::Hopper,
                },
            },
            ..Config::default()
        }
    }
}

/// Reads a time for a command line, in seconds; more than 0, and at most 1e9.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    // The clock ends some day.
    let possible = |seconds: &f64| *seconds > 0.0 && *seconds <= 1e9;
    let seconds = text.parse().ok().filter(possible);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a number of seconds above 0, a billion at the most".to_owned())
}

/// A number of bytes, with K, M or G for powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((end, 'K' | 'k')) => (&text[..end], 1 << 10),
        Some((end, 'M' | 'm')) => (&text[..end], 1 << 20),
        Some((end, 'G' | 'g')) => (&text[..end], 1 << 30),
        _ => (text, 1),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "a number of bytes such as `4096`, `512M` or `4G`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("17"), Ok(17));
        assert_eq!(parse_bytes("3k"), Ok(3 << 10));
        assert_eq!(parse_bytes("512M"), Ok(512 << 20));
        assert_eq!(parse_bytes("4G"), Ok(4 << 30));
        for wrong in ["", "G", "-1", "4T", "99999999999G", "1.5G", "é"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
