//! Recording: kernel calls of the control program become entries of a log.
//!
//! # Vocabulary
//!
//! * A *bucket* is identified by a dense number, which every handle into it carries. The first
//!   buckets are the manifest's sources, then comes one *input bucket* a row pool, whose rows come
//!   with the instances; these have key 0. The others are opened when a kernel is first called
//!   at an order key, and are *pending* until a flush computes them.
//! * The *order key* of a call is its phase in the upper half and its depth in the lower: one more
//!   than the largest key of its operands, and at least the first of its phase. What is computed
//!   has key 0. So a call runs after its operands and after all calls of earlier phases.
//! * The *log* holds one entry a call, in the order of recording: the bucket, then the operands'
//!   slots. A call's position in its bucket is the number of rows that the bucket's entries before
//!   it make, so it is not stored. The slot of a list operand holds the list's length; the handles of
//!   all the call's lists follow after the slots, so that no array has to outlive the call.
//! * A call makes one row, but for those of ragged kernels ([`crate::program::call_form`]), whose lengths say
//!   how many. Their handle is that of the first.
//! * A *ghost* is another name of a row, with a larger key. It has an entry like a call of a kernel
//!   of its own, whose number is that after the last kernel's, and which computes nothing.
//!
//! # Why a log
//!
//! Appending to one block touches one cache line a call, whatever the number of buckets; giving an
//! instance up means cutting its tail off; and memory never depends on how calls are spread over
//! buckets. [`crate::execute`] reads it once and writes the index lists of all buckets.
//!
//! # Instances that wait
//!
//! What belongs to the running instance alone is its [`State`]. It is swapped out when the instance
//! waits for a decision, and back in when it goes on. An instance runs from one decision to the
//! next without any other in between, so its entries since the last flush are the log's tail.
//!
//! # Cost
//!
//! A call looks up the key of each operand's bucket, one table a kernel from depth to bucket,
//! and writes its entry: a few nanoseconds, and nothing is ever searched.

mod buckets;
mod cached;
mod calls;
mod costs;
mod draw;
pub mod enough;
mod forks;
mod ghosts;
mod instances;
mod making;
mod marks;
mod recording;
mod recordings;
mod replay;
mod requests;
mod saved;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod time;

use cohort_abi::Handle;
use cohort_abi::manifest::Manifest;

pub use buckets::Buckets;
use costs::KernelCalls;
use forks::Forks;
use ghosts::ragged_inputs;
pub use making::Take;
pub use marks::Marks;
pub use recording::Recording;
pub(crate) use recording::{Form, Part, Run, follow};
pub use recordings::Recordings;
pub(crate) use replay::Calls;
use replay::Replayed;
pub use saved::Saved;
pub use state::{STRAND, State, StrandState};

use crate::failure::Stop;
use crate::late::Interrupt;
use crate::limits::Limits;
use crate::memory::bump::Bump;
use crate::program::numbering::Numbering;
use crate::report::trace::Tracer;
use crate::threads::fiber::{Gate, Host};

/// Rows that the calls of one batch may make in a row pool, so that row numbers fit 32 bits.
const MAX_ROWS: u64 = 1 << 30;
/// Buckets of inputs, when there are several chunks of them.
pub const MAX_CHUNK_BUCKETS: u64 = 1 << 16;

/// Why an instance has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The instance itself failed.
    Failure(Stop),
    /// Nobody waits for it any more.
    Interrupted,
    /// The batch has no bucket left. The instance may well run in a batch of its own.
    BatchFull,
    /// There is no memory for it besides what others use. It may well run without them.
    OutOfMemory,
    /// Compiled code broke the ABI.
    Broken(String),
}

/// How calls are put into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// The calls of a kernel at one order key; equal calls that need nothing computed are made once
    /// if `share`.
    ByDepth {
        /// Whether equal calls are made once.
        share: bool,
    },
    /// Every call alone.
    Unbatched,
}

/// The state behind the context that compiled code passes around.
#[repr(C)]
pub struct Recorder {
    /// Must come first: compiled code reads and writes the context, with which it begins, through
    /// the same pointer.
    state: State,
    log: Vec<u64>,
    buckets: Buckets,
    /// Where in the log the entries of an instance begin.
    segments: Vec<usize>,
    forks: Forks,
    /// Whether some instance began deeper than others since the last flush.
    has_gaps: bool,
    /// Whether a call since the last flush that instances may share is not of the first depth of the first phase.
    shares_late: bool,
    /// By number, and then that of ghosts.
    kernels: Vec<KernelCalls>,
    /// One more than the flushes before this one and the times that shared calls were forgotten;
    /// what was remembered before `known_epoch` is forgotten.
    epoch: u64,
    known_epoch: u64,
    /// The kernels of the cached calls that the next flush computes, in the order of recording.
    new_cached: Vec<u32>,
    /// Calls that were answered by equal ones.
    shared_calls: u64,
    grouping: Grouping,
    gate: Gate,
    stopped: Option<Stopped>,
    interrupt: Interrupt,
    limits: Limits,
    numbering: Numbering,
    chunks: usize,
    /// Whether a row pool has rows of inputs that are parts of a ragged tensor.
    is_ragged_input: Vec<bool>,
    /// Rows and bytes of the instances that finished since the batch began.
    used_rows: u64,
    used_bytes: u64,
    /// Bytes and rows of all instances since the last flush.
    pending_bytes: u64,
    pending_rows: u64,
    max_results: u64,
    /// Calls of one row each that together make the most rows there may be.
    max_calls: u64,
    /// Which of the random numbers of instances are meant.
    draw: u64,
    /// Whether instances keep tapes, for gradients.
    keeps_tapes: bool,
    /// Watches one instance, when two runs are compared.
    tracer: Option<Box<Tracer>>,
    recordings: Recordings,
    replayed: Replayed,
}

impl Recorder {
    /// `max_buckets` limits the buckets of a batch, beyond what handles can name.
    pub fn new(
        manifest: &Manifest,
        limits: Limits,
        max_buckets: u64,
        grouping: Grouping,
        stack_limit: u64,
    ) -> Box<Recorder> {
        let share = grouping == Grouping::ByDepth { share: true };
        let mut kernels: Vec<KernelCalls> = manifest
            .kernels
            .iter()
            .enumerate()
            .map(|(number, _)| KernelCalls::of(manifest, number, share))
            .collect();
        kernels.push(KernelCalls::ghosts());
        let numbering = Numbering::of(manifest);
        let given = (numbering.sources + numbering.row_pools) as u64;
        let max_results = manifest
            .kernels
            .iter()
            .map(|kernel| kernel.results.len() as u64)
            .max()
            .unwrap_or(0)
            .max(1);
        let call_buckets = max_buckets
            .min(Handle::MAX_BUCKETS - MAX_CHUNK_BUCKETS - numbering.kernels as u64)
            .saturating_sub(given)
            .max(1);
        let max_calls = MAX_ROWS / max_results;
        let mut max_nodes = limits.max_nodes.min(max_calls);
        if grouping == Grouping::Unbatched {
            max_nodes = max_nodes.min(call_buckets);
        }
        let is_alone = grouping == Grouping::Unbatched;
        let mut recorder = Box::new(Recorder {
            state: State::new(stack_limit, Bump::default()),
            log: Vec::new(),
            buckets: Buckets::new(numbering, call_buckets, is_alone),
            segments: Vec::new(),
            has_gaps: false,
            shares_late: false,
            forks: Forks::default(),
            kernels,
            epoch: 0,
            known_epoch: 0,
            new_cached: Vec::new(),
            shared_calls: 0,
            grouping,
            gate: Gate::default(),
            stopped: None,
            interrupt: Interrupt::default(),
            limits: Limits {
                max_nodes,
                ..limits
            },
            numbering,
            chunks: 1,
            is_ragged_input: ragged_inputs(manifest),
            used_rows: 0,
            used_bytes: 0,
            pending_bytes: 0,
            pending_rows: 0,
            max_results,
            max_calls,
            draw: 0,
            keeps_tapes: false,
            tracer: None,
            recordings: Recordings::default(),
            replayed: Replayed::default(),
        });
        recorder.begin_batch();
        recorder
    }

    /// The limits in force: those asked for, lowered to what handles can name.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many row pools rows are in.
    pub fn row_pools(&self) -> usize {
        self.numbering.row_pools
    }

    /// Forgets all calls and buckets, but what is cached; the memory stays.
    pub fn begin_batch(&mut self) {
        self.set_chunks(self.chunks);
    }

    /// As [`Recorder::begin_batch`]; from now on, `chunks` chunks of inputs have buckets of their own.
    pub fn set_chunks(&mut self, chunks: usize) {
        // Nobody computed these.
        self.give_up_calls();
        self.chunks = chunks;
        self.buckets.reset(chunks);
        self.state.memory.reset();
        self.used_rows = 0;
        self.used_bytes = 0;
    }

    /// After a flush: what was recorded is computed, and its handles stay valid until their buckets
    /// are recycled.
    pub fn flushed(&mut self) {
        self.buckets.close_pending();
        self.log.clear();
        self.replayed.clear();
        self.segments.clear();
        self.has_gaps = false;
        self.shares_late = false;
        self.cached_flushed();
        self.epoch += 1;
        self.pending_bytes = 0;
        self.pending_rows = 0;
    }

    /// Whether something waits for a flush.
    pub fn has_calls(&self) -> bool {
        !self.log.is_empty() || !self.buckets.pending().is_empty() || !self.new_cached.is_empty()
    }

    /// Whether the row of a handle can be read; `None` if it is in no bucket.
    pub fn is_computed(&self, handle: Handle) -> Option<bool> {
        let bucket = handle.bucket() as usize;
        match self.numbering.cached_kernel(bucket) {
            Some(kernel) => {
                let shared = self.kernels[kernel].shared.as_ref()?;
                Some((handle.position() as usize) < shared.cached.computed())
            }
            None => self.buckets.is_computed(bucket),
        }
    }

    /// No handle into these buckets is left; their numbers are used again.
    pub fn recycle(&mut self, buckets: &mut Vec<u32>) {
        self.buckets.recycle(buckets);
    }

    /// What was recorded since the last flush cannot be computed: its instances are given up, or run
    /// again.
    pub fn give_up_calls(&mut self) {
        self.take_back_cached(0);
        self.flushed();
        self.forget_shared_calls();
    }

    /// A batch begins, or an instance took its calls back.
    fn forget_shared_calls(&mut self) {
        self.epoch += 1;
        self.known_epoch = self.epoch;
    }

    /// Whether the batch should be flushed before another instance is recorded.
    pub fn is_full(&self, batch_memory: u64) -> bool {
        self.used_bytes >= batch_memory
            || self.used_rows.saturating_mul(self.max_results) >= MAX_ROWS
            || self.buckets.is_full()
    }

    /// Bytes of rows of the instances that are done and begun since [`Recorder::begin_batch`].
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Bytes of rows that were recorded since the last flush, by instances that wait or are done.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Whether another instance may be recorded, when `bytes` and `rows` are in use besides what
    /// was recorded since the last flush.
    pub fn has_room(&self, bytes: u64, rows: u64, most_bytes: u64) -> bool {
        bytes.saturating_add(self.pending_bytes) < most_bytes
            && rows.saturating_add(self.pending_rows) < MAX_ROWS
            && !self.buckets.is_full()
    }

    /// Where in the log the entries of an instance begin, in order.
    pub fn segments(&self) -> &[usize] {
        &self.segments
    }

    /// Whether instances may share a call since the last flush that is not of the first depth of the first phase.
    pub fn shares_late(&self) -> bool {
        self.shares_late
    }

    /// Whether a call since the last flush may lie deeper than its operands ask for: [`Recorder::set_floor`].
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// The buckets of the batch.
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// The calls of a bucket of that kernel.
    pub fn bucket_calls(&self, bucket: usize) -> u32 {
        let kernel = self.buckets.kernel(bucket) as usize;
        match self.kernels[kernel].form.is_ragged {
            true => self.buckets.ragged_calls(bucket),
            false => self.buckets.rows(bucket),
        }
    }

    /// The entries since the last flush, one after another: `[bucket, operand slots…]` and then the
    /// handles of lists. A ghost's operand is the handle that it stands for. Calls that are written from recordings
    /// are not among them before [`Recorder::write_out`].
    pub fn log(&self) -> &[u64] {
        &self.log
    }

    pub(crate) fn set_tracer(&mut self, tracer: Option<Box<Tracer>>) {
        self.tracer = tracer;
    }

    pub(crate) fn tracer(&mut self) -> &mut Option<Box<Tracer>> {
        &mut self.tracer
    }

    /// What compiled code runs with that records here: valid until the recorder is used otherwise.
    pub fn host(&mut self) -> Host {
        let recorder: *mut Recorder = self;
        // SAFETY: the pointer is that of a reference.
        let gate = unsafe { &raw mut (*recorder).gate };
        Host {
            context: recorder.cast(),
            gate,
        }
    }
}
