//! What a run did and how long it took: the object that `--stats` writes.

/// Sums of a type's fields, all of which are named: one that is added and not counted does not compile.
macro_rules! add_by_field {
    ($type:ident { $($field:ident),+ $(,)? }) => {
        impl std::ops::AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                let $type { $($field),+ } = other;
                $(self.$field += $field;)+
            }
        }

        impl std::ops::Add for $type {
            type Output = $type;

            fn add(mut self, other: $type) -> $type {
                self += other;
                self
            }
        }
    };
}

mod device;
mod kernels;

use std::time::Duration;

use serde::Serialize;

pub use device::{ClusterStats, Copies, DeviceStats, GraphStats, RowsLaunched, StepsLaunched};
pub use kernels::{KernelStats, Launches, Modes, RaggedWork};

/// Where the time of a run goes, but for reading.
#[derive(Clone, Copy, Default)]
pub struct Times {
    /// Running the control program.
    pub record: Duration,
    /// Placing rows, converting handles, kernels.
    pub execute: Duration,
    /// Handing on results.
    pub write: Duration,
}

add_by_field!(Times {
    record,
    execute,
    write
});

impl Times {
    /// Of threads that worked at the same time: parts of what passed meanwhile.
    pub fn within(&self, took: Duration) -> Times {
        let worked = self.record + self.execute;
        if worked <= took {
            return *self;
        }
        let part = took.as_secs_f64() / worked.as_secs_f64();
        Times {
            record: self.record.mul_f64(part),
            execute: self.execute.mul_f64(part),
            ..*self
        }
    }
}

/// One of the repetitions of a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Repetition {
    /// Running the control program.
    pub record_seconds: f64,
    /// Placing rows, converting handles, kernels.
    pub execute_seconds: f64,
    /// What of that is backward, where gradients are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward_seconds: Option<f64>,
}

/// What backward took; it is in the seconds of execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GradientStats {
    /// All of it, kernels included. What is left of a run is its forward, which keeps what backward takes.
    pub seconds: f64,
    /// Going back over the calls of instances.
    pub record_seconds: f64,
    /// Adding up the gradients of parameters.
    pub sum_seconds: f64,
    /// The operations of the products that these are sums of.
    pub sum_flops: u64,
}

/// Which order launches were in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SchedulerStats {
    /// The scheduler that the run was told to use.
    pub asked: String,
    /// The scheduler that it used at its end.
    pub used: String,
    /// Why it used that one, in words.
    pub why: String,
    /// Of a run that chooses: what was computed in each order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredOrder>,
}

/// Calls of instances that were taken from what was recorded of others of the same structure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScheduleReuse {
    /// Instances whose calls were taken from a recording.
    pub reused: u64,
    /// Instances that the control program ran for.
    pub recorded: u64,
    /// The share of instances whose calls were taken from a recording.
    pub hit_rate: f64,
    /// Structures whose recordings are kept at the end.
    pub kept: u64,
    /// The bytes of the recordings that are kept at the end.
    pub kept_bytes: u64,
    /// Why nothing is reused, in words, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<&'static str>,
}

/// Strands of instances: parts that do not need each other and may wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StrandStats {
    /// Strands that waited beside others of their instance.
    pub side_by_side: u64,
    /// Strands that ran in their turn, as enough waited already.
    pub in_turn: u64,
    /// What decides, in words.
    pub why: String,
}

/// Batches that ended early, for their rows were enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchStats {
    /// Instances that a batch might have had.
    pub most_instances: u64,
    /// Bytes of rows with which one ends at the earliest.
    pub enough_bytes: u64,
    /// How many ended so.
    pub ended_early: u64,
    /// Why that is, in words.
    pub why: String,
}

/// What was computed by one of the schedulers among which a run chooses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredOrder {
    /// As [`SchedulerStats::used`] names it.
    pub scheduler: String,
    /// Flushes that it scheduled.
    pub flushes: u64,
    /// Launches of these flushes.
    pub launches: u64,
    /// Rows that they computed.
    pub rows: u64,
    /// From the search for launches to the end of the last.
    pub seconds: f64,
}

impl SchedulerStats {
    /// Takes in what a thread that ran batches of its own chose and measured: what most rows were computed by
    /// is used.
    pub fn join(&mut self, other: SchedulerStats) {
        let rows = |stats: &SchedulerStats| stats.measured.iter().map(|of| of.rows).sum::<u64>();
        if rows(&other) > rows(self) {
            self.used = other.used;
            self.why = other.why;
        }
        for more in other.measured {
            let same = |of: &&mut MeasuredOrder| of.scheduler == more.scheduler;
            match self.measured.iter_mut().find(same) {
                Some(of) => {
                    of.flushes += more.flushes;
                    of.launches += more.launches;
                    of.rows += more.rows;
                    of.seconds += more.seconds;
                }
                None => self.measured.push(more),
            }
        }
    }
}

/// Tables that the lengths of calls make, each time that a launch of a ragged kernel asks for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableCounts {
    /// Made for the launch that asked.
    pub made: u64,
    /// Made before, for another launch of the batch with the same lengths.
    pub shared: u64,
}

impl TableCounts {
    /// Adds the counts of another part of the run.
    pub fn add(&mut self, other: TableCounts) {
        self.made += other.made;
        self.shared += other.shared;
    }
}

/// What a run did and how long it took, as a whole and by kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Instances that were run, failed ones included.
    pub instances: u64,
    /// Those that failed.
    pub failed: u64,
    /// Compiling the program; filled in by the caller that compiled it.
    pub compile_seconds: f64,
    /// Opening and packing the weights.
    pub load_seconds: f64,
    /// Reading and decoding instances.
    pub read_seconds: f64,
    /// Running the control program. In a benchmark, of the last repetition, as is what follows.
    pub record_seconds: f64,
    /// Placing rows, converting handles, kernels.
    pub execute_seconds: f64,
    /// Of these, all but the kernels: finding launches and their order, rows, indices.
    pub schedule_seconds: f64,
    /// Of these, finding out where the rows of calls are and how long they are; 0 when no kernel is
    /// ragged.
    pub prelude_seconds: f64,
    /// What lengths make, see [`TableCounts`].
    pub prelude_tables: TableCounts,
    /// Handing on results: making lines of them and writing these.
    pub write_seconds: f64,
    /// Of the whole run; filled in by [`crate::Session`] for its own part, to be extended by who
    /// compiled the program.
    pub wall_seconds: f64,
    /// Launches of all kernels.
    pub kernel_launches: u64,
    /// Rows that the launches computed.
    pub rows: u64,
    /// Rows of a launch on average.
    pub mean_rows_per_launch: f64,
    /// The most memory that the process ever had, see [`peak_memory_bytes`].
    pub peak_memory_bytes: u64,
    /// Threads that computed.
    pub threads: usize,
    /// How often recorded calls were computed.
    pub flushes: u64,
    /// Calls on a parameter's row that were answered by an equal one.
    pub shared_calls: u64,
    /// Calls on a parameter's row whose results are kept for later batches at the end.
    pub kept_calls: u64,
    /// The bytes of the results that are kept at the end.
    pub kept_bytes: u64,
    /// Times that an instance waited for a decision.
    pub suspensions: u64,
    /// The most rows, inputs included, that were kept at once; only of programs whose path depends on tensors, and of
    /// several engines the sum of what each had at most.
    pub peak_rows: u64,
    /// The most buckets that were kept at once, of the same programs and counted in the same way.
    pub peak_buckets: u64,
    /// Rows of instances with a result, over all rows that were computed.
    pub useful_rows_share: f64,
    /// Which order launches were in; of a run that puts none together, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerStats>,
    /// How schedules were reused by the structure of instances.
    pub schedule_reuse: ScheduleReuse,
    /// Of a program whose instances have strands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strands: Option<StrandStats>,
    /// Where decisions were guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculation: Option<SpeculationStats>,
    /// Of a run that chose to end batches early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchStats>,
    /// Empty but for a benchmark.
    pub repetitions: Vec<Repetition>,
    /// Where gradients are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<GradientStats>,
    /// What each kernel did, in the manifest's order.
    pub kernels: Vec<KernelStats>,
    /// Where kernels ran, if not on the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceStats>,
}

/// How decisions were guessed; see [`crate::speculation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpeculationStats {
    /// Decisions that an instance did not wait for, as it guessed them.
    pub guesses: u64,
    /// Guesses that were wrong, behind ones that were right.
    pub wrong: u64,
    /// Rows that were computed behind these for nothing.
    pub wasted_rows: u64,
}

/// The most memory that this process ever had, as the system counts it; 0 if it does not say.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix("kB"))
        .and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok())
        .map_or_else(most_resident_bytes, |kilobytes| kilobytes * 1024)
}

/// The same by another way, where the process may open no file; it may count what ran before `exec`.
fn most_resident_bytes() -> u64 {
    // SAFETY: all fields are numbers, of which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value that the call fills.
    match unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } {
        0 => u64::try_from(usage.ru_maxrss).map_or(0, |kilobytes| kilobytes * 1024),
        _ => 0,
    }
}
