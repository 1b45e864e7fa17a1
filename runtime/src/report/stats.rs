//! What a run did and how long it took: the object that `--stats` writes.

use std::time::Duration;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::{Constant, Kernel, Manifest};
use serde::Serialize;

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

impl Times {
    /// Adds the times of another part of the run.
    pub fn add(&mut self, other: &Times) {
        self.record += other.record;
        self.execute += other.execute;
        self.write += other.write;
    }

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
    /// Adding up the gradients of parameters,
    pub sum_seconds: f64,
    /// and the operations of their products.
    pub sum_flops: u64,
}

/// What a device did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceStats {
    /// As the device tells it: `NVIDIA H200 (cuda:0)`.
    pub name: String,
    /// What the factors of products were rounded to at most; `f32` is not at all.
    pub precision: Precision,
    /// By the device's own clock: from a flush's first copy to the device to the end of its last
    /// launch, over all flushes. Of flushes at the same time each counts.
    pub seconds: f64,
    /// Of these, until the first launch began: copies to the device. Only where calls are timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_seconds: Option<f64>,
    /// Bringing decisions and results together and to the host.
    pub fetch_seconds: f64,
    /// The most that was in use of its memory.
    pub peak_memory_bytes: u64,
    /// Functions that were launched, those in graphs included; a call of a kernel may be several.
    pub launches: u64,
    /// How often launches, of one call or of different ones, waited for all before them, the first of each flush counted:
    /// those of one step need nothing of each other.
    pub steps: u64,
    /// Copies between host and device.
    pub copies: Copies,
    /// Flushes that were launched as a graph.
    pub graphs: GraphStats,
    /// Flushes that were one launch, where they could be divided between clusters of blocks; nothing if none could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterStats>,
}

/// Flushes that were one launch of a program that can divide them between clusters of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterStats {
    /// How many.
    pub flushes: u64,
    /// Of these, how many were divided.
    pub divided: u64,
    /// What those launched that were not.
    pub undivided: StepsLaunched,
    /// Of those that were divided, what all clusters compute together,
    pub shared: StepsLaunched,
    /// and the part that takes longest.
    pub longest: StepsLaunched,
}

/// Steps one after another, and what is launched in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepsLaunched {
    /// How many.
    pub steps: u64,
    /// By kernels and rows.
    pub launches: Vec<RowsLaunched>,
}

/// A kernel's launches with the same number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowsLaunched {
    /// The kernel's name.
    pub kernel: String,
    /// Rows of each.
    pub rows: u32,
    /// How often it was launched for that number.
    pub times: u64,
}

impl StepsLaunched {
    fn join(&mut self, other: StepsLaunched) {
        self.steps += other.steps;
        for other in other.launches {
            let is_same =
                |own: &&mut RowsLaunched| (&own.kernel, own.rows) == (&other.kernel, other.rows);
            match self.launches.iter_mut().find(is_same) {
                Some(own) => own.times += other.times,
                None => self.launches.push(other),
            }
        }
    }
}

impl ClusterStats {
    fn join(mut self, other: ClusterStats) -> ClusterStats {
        self.flushes += other.flushes;
        self.divided += other.divided;
        self.undivided.join(other.undivided);
        self.shared.join(other.shared);
        self.longest.join(other.longest);
        self
    }
}

impl DeviceStats {
    /// With what another one of the same device did at the same time.
    #[must_use]
    pub fn join(self, other: DeviceStats) -> DeviceStats {
        let list_seconds = match (self.list_seconds, other.list_seconds) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        DeviceStats {
            seconds: self.seconds + other.seconds,
            list_seconds,
            fetch_seconds: self.fetch_seconds + other.fetch_seconds,
            peak_memory_bytes: self.peak_memory_bytes.max(other.peak_memory_bytes),
            launches: self.launches + other.launches,
            steps: self.steps + other.steps,
            clusters: match (self.clusters, other.clusters) {
                (Some(one), Some(two)) => Some(one.join(two)),
                (one, two) => one.or(two),
            },
            copies: self.copies.join(other.copies),
            graphs: self.graphs.join(other.graphs),
            ..self
        }
    }
}

/// Copies between host and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// Copies to the device.
    pub to_device: u64,
    /// Bytes of these copies together.
    pub bytes_to_device: u64,
    /// Copies to the host.
    pub to_host: u64,
    /// Bytes of these copies together.
    pub bytes_to_host: u64,
}

impl Copies {
    /// With others.
    #[must_use]
    pub fn join(self, other: Copies) -> Copies {
        Copies {
            to_device: self.to_device + other.to_device,
            bytes_to_device: self.bytes_to_device + other.bytes_to_device,
            to_host: self.to_host + other.to_host,
            bytes_to_host: self.bytes_to_host + other.bytes_to_host,
        }
    }

    /// Counts a copy to the device.
    pub fn sent(&mut self, bytes: usize) {
        self.to_device += 1;
        self.bytes_to_device += bytes as u64;
    }

    /// Counts a copy to the host.
    pub fn fetched(&mut self, bytes: usize) {
        self.to_host += 1;
        self.bytes_to_host += bytes as u64;
    }
}

/// Flushes that were launched as one graph, and what was done to make that possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphStats {
    /// Graphs that were made, for a form of flush that came again.
    pub made: u64,
    /// Flushes that were launched as a graph made before,
    pub replayed: u64,
    /// and of their launches those that had other rows, arguments or functions than the time before.
    pub changed_launches: u64,
}

impl GraphStats {
    /// With others.
    #[must_use]
    pub fn join(self, other: GraphStats) -> GraphStats {
        GraphStats {
            made: self.made + other.made,
            replayed: self.replayed + other.replayed,
            changed_launches: self.changed_launches + other.changed_launches,
        }
    }
}

/// What one kernel did in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelStats {
    /// As reports and the compiler's output call it.
    pub name: String,
    /// Where it comes from in the source, as `file:line:column`.
    pub location: String,
    /// How often it was launched.
    pub launches: u64,
    /// Rows that it computed.
    pub rows: u64,
    /// On a device only where calls are timed.
    pub seconds: f64,
    /// Of products.
    pub flops: u64,
    /// The least that its launches had to read and write: operands, results and constants, each once.
    pub bytes: u64,
    /// Of a kernel whose calls have rows as their instances have lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ragged: Option<RaggedWork>,
}

/// How often an operand of a kernel was read in which mode, in launches; see
/// [`crate::execute`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Modes {
    /// Launches that read rows one behind another.
    pub contiguous: u64,
    /// Launches that read one row again and again.
    pub identical: u64,
    /// Launches that read each row by its index.
    pub gathered: u64,
}

/// What a kernel did, as the executor counts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launches {
    /// How often it was launched.
    pub launches: u64,
    /// Rows that it computed.
    pub rows: u64,
    /// What all launches took together.
    pub nanoseconds: u64,
    /// Of each operand.
    pub modes: Vec<Modes>,
    /// Rows of operands that were copied together first.
    pub copied_rows: u64,
    /// Of a ragged kernel.
    pub ragged: RaggedWork,
    /// Over all launches: the squares of the rows, and rows times nanoseconds.
    rows_squared: f64,
    rows_nanoseconds: f64,
}

/// What a ragged kernel did: operations of products, and bytes of ragged operands and results.
/// *Dense* is what it would be if all calls of a launch were as long as the longest: the difference
/// is padding that was not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaggedWork {
    /// How many calls.
    pub calls: u64,
    /// Floating-point operations of products.
    pub flops: u64,
    /// Read and written: ragged operands and results.
    pub bytes: u64,
    /// Rows, if it were dense.
    pub dense_rows: u64,
    /// Operations, if it were dense.
    pub dense_flops: u64,
    /// Bytes, if it were dense.
    pub dense_bytes: u64,
}

impl RaggedWork {
    /// Adds what was done elsewhere.
    pub fn add(&mut self, other: &RaggedWork) {
        for (sum, part) in [
            (&mut self.calls, other.calls),
            (&mut self.flops, other.flops),
            (&mut self.bytes, other.bytes),
            (&mut self.dense_rows, other.dense_rows),
            (&mut self.dense_flops, other.dense_flops),
            (&mut self.dense_bytes, other.dense_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

impl Launches {
    /// Of a kernel with `operands` operands, which has done nothing so far.
    pub fn new(operands: usize) -> Launches {
        Launches {
            modes: vec![Modes::default(); operands],
            ..Launches::default()
        }
    }

    /// Sets all counts to zero.
    pub fn clear(&mut self) {
        *self = Launches::new(self.modes.len());
    }

    /// Takes in what the same kernel did elsewhere.
    pub fn join(&mut self, other: &Launches) {
        self.launches += other.launches;
        self.rows += other.rows;
        self.nanoseconds += other.nanoseconds;
        for (modes, more) in self.modes.iter_mut().zip(&other.modes) {
            modes.contiguous += more.contiguous;
            modes.identical += more.identical;
            modes.gathered += more.gathered;
        }
        self.copied_rows += other.copied_rows;
        self.ragged.add(&other.ragged);
        self.rows_squared += other.rows_squared;
        self.rows_nanoseconds += other.rows_nanoseconds;
    }

    /// Operations of products of all its launches.
    pub fn flops(&self, flops_per_row: u64) -> u64 {
        match self.ragged.calls {
            0 => self.rows.saturating_mul(flops_per_row),
            _ => self.ragged.flops,
        }
    }

    /// The least that all its launches had to read and write: see [`KernelStats::bytes`].
    pub fn bytes(&self, manifest: &Manifest, kernel: &Kernel) -> u64 {
        let row = |pool: usize| manifest.row_pools[pool].row_bytes();
        let results: u64 = kernel.results.iter().map(|pool| row(*pool)).sum();
        let operands = kernel
            .operands
            .iter()
            .map(|operand| operand.pool().map_or(size_of::<u32>() as u64, row));
        let elements = |param: usize| {
            let weight = manifest.weight(param);
            weight.map_or(0, |weight| weight.shape.iter().product())
        };
        let constants = kernel
            .constants
            .iter()
            .map(|constant| match constant.whole().0 {
                Constant::Panels { param, format, .. } => elements(*param) * format.bytes() as u64,
                Constant::Plain { param } | Constant::Rounded { param, .. } => {
                    let elem = manifest
                        .weight(*param)
                        .map_or(0, |weight| weight.elem.bytes());
                    elements(*param) * elem as u64
                }
                Constant::Dense { elem, bits } => (bits.len() * elem.bytes()) as u64,
                // A part of a part is none of a valid manifest.
                Constant::Part { .. } => 0,
            });
        let rows = match self.ragged.calls {
            0 => (self.rows).saturating_mul(results + operands.sum::<u64>()),
            _ => self.ragged.bytes,
        };
        rows.saturating_add(self.launches.saturating_mul(constants.sum()))
    }

    /// Counts a launch of `rows` rows.
    pub fn add(&mut self, rows: u32, nanoseconds: u64) {
        self.launches += 1;
        self.rows += u64::from(rows);
        self.nanoseconds += nanoseconds;
        self.rows_squared += f64::from(rows) * f64::from(rows);
        self.rows_nanoseconds += f64::from(rows) * nanoseconds as f64;
    }

    /// Nanoseconds that a launch takes whatever its rows: where the line that fits all launches best
    /// meets no rows. `None` when all launches had the same number of rows.
    pub fn fixed_cost(&self) -> Option<f64> {
        let (n, rows) = (self.launches as f64, self.rows as f64);
        let spread = n * self.rows_squared - rows * rows;
        if spread <= 0.0 {
            return None;
        }
        let nanoseconds = self.nanoseconds as f64;
        let a_row = (n * self.rows_nanoseconds - rows * nanoseconds) / spread;
        let fixed = (nanoseconds - a_row * rows) / n;
        // No launch costs less than nothing, nor more than an average one.
        Some(fixed.clamp(0.0, nanoseconds / n))
    }
}

/// Which order launches were in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SchedulerStats {
    /// The scheduler that the run was told to use,
    pub asked: String,
    /// and the one that it used at its end.
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
    /// Instances whose calls were,
    pub reused: u64,
    /// and those that the control program ran for.
    pub recorded: u64,
    /// The share of the former.
    pub hit_rate: f64,
    /// Structures whose recordings are kept at the end,
    pub kept: u64,
    /// and the bytes of these.
    pub kept_bytes: u64,
    /// Why nothing is reused, in words, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<&'static str>,
}

/// Strands of instances: parts that do not need each other and may wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StrandStats {
    /// Those that waited beside others of their instance,
    pub side_by_side: u64,
    /// and those that ran in their turn, as enough waited already.
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
    /// Filled in by who compiled the program.
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
    /// Calls on a parameter's row whose results are kept for later batches at the end,
    pub kept_calls: u64,
    /// and the bytes of these results.
    pub kept_bytes: u64,
    /// Times that an instance waited for a decision.
    pub suspensions: u64,
    /// The most rows, inputs included, that were kept at once,
    pub peak_rows: u64,
    /// and the most buckets; both only of programs whose path depends on tensors, and of several engines the
    /// sum of what each had at most.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_launch_costs_by_itself_is_told_apart_from_what_its_rows_cost() {
        let mut launches = Launches::new(0);
        assert_eq!(launches.fixed_cost(), None);
        launches.add(10, 1500);
        launches.add(10, 1500);
        assert_eq!(launches.fixed_cost(), None);
        launches.add(30, 2500);
        let fixed = launches.fixed_cost().unwrap();
        assert!((fixed - 1000.0).abs() < 1e-6, "{fixed}");
    }
}
