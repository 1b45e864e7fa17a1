//! How a session runs its instances.

use cohort_abi::Handle;

use crate::device::{self, DeviceKind};
use crate::limits::Limits;
use crate::schedule::Policy;

/// Copying fewer bytes costs less than asking of each launch what it reads.
const LENDS_FROM: u64 = 1 << 20;

/// How many instances make a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// This number, all of which end together.
    Count(usize),
    /// This number at once, where tensors decide: as one is done, the next one begins. Elsewhere an
    /// instance is done when its batch is, so it is the same as `Count`.
    InFlight(usize),
    /// All there are, within [`Config::batch_memory`].
    All,
    /// The unbatched reading of the program: one instance after another, and each kernel call a
    /// launch of its own, of one row, in the order of the program.
    Unbatched,
}

/// How a session runs its instances, and on what.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How instances make batches.
    pub batch: Batch,
    /// Whether a batch may end early where more instances would gain nothing, because nobody asked for the
    /// number that it may have. It never does where tensors decide, or on a device.
    pub may_end_early: bool,
    /// Threads that compute; 0 counts as 1.
    pub threads: usize,
    /// What one instance may use.
    pub limits: Limits,
    /// Bytes that the instances of a batch may use together before it is flushed.
    pub batch_memory: u64,
    /// Buckets (kernels at a depth, sources and inputs included) that a batch may have before it is
    /// flushed, and that one instance may need.
    pub max_buckets: u64,
    /// A longer line of the input is an error record.
    pub max_line_bytes: usize,
    /// Whether the weights may have tensors that the program does not ask for; they are an error, if not.
    pub allow_unused_weights: bool,
    /// Whether what the program shows by `debug` goes to the standard error stream.
    pub debug: bool,
    /// Whether equal calls on a parameter's row are made once.
    pub share_calls: bool,
    /// Bytes of the results of such calls that are kept for later batches; they count for no limit of
    /// an instance or a batch. On a device, at most a part of its memory.
    pub keep_memory: u64,
    /// Bytes of schedules that are kept by the structure of instances; 0 keeps none. Where tensors decide, and for
    /// [`Batch::Unbatched`], there are none.
    pub schedule_memory: u64,
    /// How launches are found, but for [`Batch::Unbatched`].
    pub scheduler: Policy,
    /// Whether that is what an earlier run chose, for statistics to say so.
    pub is_guided: bool,
    /// Whether kernels read their operands where they lie, or get copies.
    pub gather_fusion: bool,
    /// Minimum size in bytes for the rows that a chunk of inputs has in a row pool to be lent: kernels on the processor read them
    /// where they are.
    pub lends_from: u64,
    /// Whether a call may be divided between threads, and the heaviest work begins first.
    pub remapping: bool,
    /// Whether a call gets no more rows than it has, or, for comparison, as many as the longest of its
    /// launch.
    pub ragged_storage: bool,
    /// Whether what the lengths of calls make is made once a batch for all launches of equal lengths, or,
    /// for comparison, for each.
    pub shared_prelude: bool,
    /// Whether the gradient of the instances' losses is computed, of a program that was compiled for it.
    pub gradients: bool,
    /// Which random numbers instances have: any number gives others.
    pub draw: u64,
    /// Where kernels run.
    pub device: DeviceKind,
    /// Bytes of the device's memory that may be used; most of what is free, without.
    pub device_memory: Option<u64>,
    /// How the device works, where there is one.
    pub device_options: device::Options,
}

impl Config {
    /// Batches that may run side by side: one for each thread, and on a device two, of which one is recorded while the
    /// other is computed. Not where somebody has so much time and no more: they wait for each other there.
    pub(super) fn side_by_side(&self, is_on_device: bool) -> usize {
        let options = self.device_options;
        let overlaps = options.overlap && !options.times && self.limits.max_time.is_none();
        match is_on_device {
            true if overlaps && !self.gradients => 2,
            true => 1,
            false => self.threads.max(1),
        }
    }

    /// Lanes that there may be: those side by side, and the one that runs batches one after another.
    pub(super) fn most_lanes(&self, is_on_device: bool) -> u64 {
        match self.side_by_side(is_on_device) {
            1 => 1,
            lanes => lanes as u64 + 1,
        }
    }

    /// Instances of a batch, as far as they are limited.
    pub(super) fn batch_count(&self) -> usize {
        match self.batch {
            Batch::Count(count) | Batch::InFlight(count) => count,
            Batch::All => usize::MAX,
            Batch::Unbatched => 1,
        }
    }
}

impl Default for Config {
    /// Batches of 256 instances and 4 GiB, one thread, lines of 256 MiB; 64 MiB are kept.
    fn default() -> Config {
        Config {
            batch: Batch::Count(256),
            may_end_early: false,
            threads: 1,
            limits: Limits::default(),
            batch_memory: 4 << 30,
            max_buckets: Handle::MAX_BUCKETS,
            max_line_bytes: 256 << 20,
            allow_unused_weights: false,
            debug: true,
            share_calls: true,
            keep_memory: 64 << 20,
            schedule_memory: 64 << 20,
            scheduler: Policy::Auto,
            is_guided: false,
            gather_fusion: true,
            remapping: true,
            ragged_storage: true,
            shared_prelude: true,
            lends_from: LENDS_FROM,
            gradients: false,
            draw: 0,
            device: DeviceKind::Cpu,
            device_memory: None,
            device_options: device::Options::default(),
        }
    }
}
