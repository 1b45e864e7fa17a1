//! Recording: kernel calls of the control program become entries of a log.
//!
//! # Vocabulary
//!
//! * A *bucket* is identified by a dense number, which every handle into it carries. The first
//!   buckets are the manifest's sources, then comes one *input bucket* a space, whose rows come
//!   with the instances; these have key 0. The others are opened when a kernel is first called
//!   at an order key, and are *pending* until a flush computes them.
//! * The *order key* of a call is its phase in the upper half and its depth in the lower: one more
//!   than the largest key of its operands, and at least the first of its phase. What is computed
//!   has key 0. So a call runs after its operands and after all calls of earlier phases.
//! * The *log* holds one entry a call, in the order of recording: the bucket, then the operands'
//!   slots. A call's position in its bucket is the number of rows that the bucket's entries before
//!   it make, so it is not stored. The slot of a list operand holds the list's length; the handles of
//!   all the call's lists follow after the slots, so that no array has to outlive the call.
//! * A call makes one row, but for those of ragged kernels ([`crate::call_form`]), whose lengths say
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

use cohort_abi::manifest::{Manifest, Type, Unit};
use cohort_abi::{Context, Failure, Handle};

use crate::bump::{Bump, Mark};
use crate::call_form::CallForm;
use crate::failure::{Place, Stop};
use crate::fiber::{Event, Input, Switch};
use crate::limits::Limits;
use crate::sharing::SharedCalls;
use crate::slot::Slot;
use crate::trace::Tracer;

const NO_BUCKET: u32 = u32::MAX;
/// What a handle of a list uses until the end of its batch: log, index.
const HANDLE_BYTES: u64 = 8 + 4;
/// Rows that the calls of one batch may make in a space, so that row numbers fit 32 bits.
const MAX_ROWS: u64 = 1 << 30;
/// No dim of a ragged tensor may be longer.
const MAX_LENGTH: u64 = (1 << 31) - 1;
/// Buckets of inputs, when there are several chunks of them.
pub const MAX_CHUNK_BUCKETS: u64 = 1 << 16;
/// Where the phase begins in an order key.
const PHASE_SHIFT: u32 = 32;
/// Later phases count as this one: still correct, since depths go on growing in it.
const MAX_PHASE: u64 = (1 << 12) - 1;
/// Levels that one ghost may go deeper.
const MAX_LEVELS: u32 = (1 << 12) - 1;
/// What a ghost uses until it is forgotten: log, row.
const GHOST_BYTES: u64 = 16 + 8;

/// Why an instance has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    Failure(Stop),
    /// The batch has no bucket left. The instance may well run in a batch of its own.
    BatchFull,
    /// Compiled code broke the ABI.
    Broken(String),
}

/// How calls are put into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// The calls of a kernel at one order key; equal calls that need nothing computed are made once
    /// if `share`.
    ByDepth { share: bool },
    /// Every call alone.
    Unbatched,
}

/// What recording a call of a kernel needs.
struct KernelCalls {
    form: Box<CallForm>,
    /// For each operand; as the form has them.
    slots: Box<[Slot]>,
    /// Whether what a call takes must be looked up: it has lists, or is ragged.
    is_special: bool,
    /// Bytes that one call uses until the end of its batch: log, index, rows. Of a ragged kernel,
    /// without what depends on its rows.
    call_bytes: u64,
    /// Bytes that a row of a call of a ragged kernel uses: index, results.
    row_bytes: u64,
    /// The bucket of each depth in the recorder's `table_phase`, or [`NO_BUCKET`].
    buckets: Vec<u32>,
    shared: Option<SharedCalls>,
}

/// Where what an instance recorded since the last flush begins, to cut it off.
#[derive(Debug)]
struct Start {
    log: usize,
    memory_left: u64,
    memory: Mark,
}

/// What belongs to one instance while it runs or waits.
#[repr(C)]
#[derive(Debug)]
pub struct State {
    /// Must come first, see [`Recorder`].
    context: Context,
    nodes_left: u64,
    /// Of those that calls of ragged kernels make beyond one each.
    rows_left: i64,
    memory_left: u64,
    steps_left: u64,
    /// The order key from which its calls count.
    floor: u64,
    /// The epoch in which it began; see [`crate::sharing`].
    first_epoch: u64,
    /// Rows of calls that were recorded before the last flush.
    computed_rows: u64,
    memory: Bump,
    start: Start,
}

impl State {
    /// For an instance on the fiber with that limit. The memory must be empty.
    pub fn new(stack_limit: u64, memory: Bump) -> State {
        State {
            context: Context {
                stack_limit,
                ..Context::default()
            },
            nodes_left: 0,
            rows_left: 0,
            memory_left: 0,
            steps_left: 0,
            floor: 0,
            first_epoch: 0,
            computed_rows: 0,
            start: Start {
                log: 0,
                memory_left: 0,
                memory: memory.mark(),
            },
            memory,
        }
    }

    /// Takes back the memory of an instance that is done.
    pub fn clear(&mut self) {
        self.memory.reset();
        self.memory.shrink();
    }

    /// Rows of calls that cannot be taken back any more, equal calls counted each.
    pub fn computed_rows(&self) -> u64 {
        self.computed_rows
    }

    /// Bytes that the instance allocated, roughly.
    pub fn held_bytes(&self) -> u64 {
        self.memory.bytes()
    }
}

/// The state behind the context that compiled code passes around.
#[repr(C)]
pub struct Recorder {
    /// Must come first: compiled code reads and writes the context, with which it begins, through
    /// the same pointer.
    state: State,
    log: Vec<u64>,
    /// For each bucket: its order key, its number of rows, its kernel.
    keys: Vec<u64>,
    lengths: Vec<u32>,
    bucket_kernels: Vec<u32>,
    /// For each bucket of a ragged kernel: its number of calls.
    calls: Vec<u32>,
    /// Whether a space has rows of inputs that are parts of a ragged tensor.
    is_ragged_input: Vec<bool>,
    /// The buckets that were opened since the last flush.
    pending: Vec<u32>,
    /// Where in the log the entries of an instance begin.
    segments: Vec<usize>,
    /// Numbers of buckets that are in use no more.
    free: Vec<u32>,
    kernels: Vec<KernelCalls>,
    /// One more than the flushes before this one and the times that shared calls were forgotten;
    /// what was remembered before `known_epoch` is forgotten.
    epoch: u64,
    known_epoch: u64,
    /// The phase whose tables the kernels have; those of the others, by phase and kernel.
    table_phase: u32,
    parked: Vec<Vec<Vec<u32>>>,
    grouping: Grouping,
    switch: *const Switch,
    stopped: Option<Stopped>,
    limits: Limits,
    sources: usize,
    spaces: usize,
    first_bucket: usize,
    /// Buckets that the calls of a batch may have.
    call_buckets: u64,
    /// Rows and bytes of the instances that finished since the batch began.
    used_rows: u64,
    used_bytes: u64,
    /// Bytes and rows of all instances since the last flush.
    pending_bytes: u64,
    pending_rows: u64,
    max_results: u64,
    /// Watches one instance, when two runs are compared.
    tracer: Option<Box<Tracer>>,
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
        let mut kernels: Vec<KernelCalls> = manifest
            .kernels
            .iter()
            .map(|kernel| {
                let form = CallForm::of(kernel);
                let operands = kernel.operands.len() as u64;
                let rows: u64 = kernel
                    .results
                    .iter()
                    .map(|space| manifest.spaces[*space].row_bytes())
                    .sum();
                let log = 8 * (1 + operands);
                let (call_bytes, row_bytes) = match (form.is_ragged, form.unit) {
                    (false, _) => (log + 4 * operands + rows, 0),
                    // Its row among those of its bucket, even where there are no operands.
                    (true, Unit::Rows) => (log + 8, 4 * operands.max(1) + rows),
                    (true, Unit::Calls) => (log + 4 * (operands + 1) + 8, rows.max(1)),
                };
                KernelCalls {
                    is_special: form.is_ragged || form.slots.contains(&Slot::List),
                    call_bytes,
                    row_bytes,
                    buckets: Vec::new(),
                    shared: match grouping {
                        Grouping::ByDepth { share: true } if !form.is_ragged => {
                            SharedCalls::of(manifest, kernel)
                        }
                        _ => None,
                    },
                    slots: form.slots.clone(),
                    form: form.into(),
                }
            })
            .collect();
        kernels.push(KernelCalls {
            form: CallForm::plain([Slot::Row].into()).into(),
            slots: [Slot::Row].into(),
            is_special: false,
            call_bytes: GHOST_BYTES,
            row_bytes: 0,
            buckets: Vec::new(),
            shared: None,
        });
        let first_bucket = manifest.sources.len() + manifest.spaces.len();
        let max_results = manifest
            .kernels
            .iter()
            .map(|kernel| kernel.results.len() as u64)
            .max()
            .unwrap_or(0)
            .max(1);
        let call_buckets = max_buckets
            .min(Handle::MAX_BUCKETS - MAX_CHUNK_BUCKETS)
            .saturating_sub(first_bucket as u64)
            .max(1);
        let mut max_nodes = limits.max_nodes.min(MAX_ROWS / max_results);
        if grouping == Grouping::Unbatched {
            max_nodes = max_nodes.min(call_buckets);
        }
        let mut recorder = Box::new(Recorder {
            state: State::new(stack_limit, Bump::default()),
            log: Vec::new(),
            keys: Vec::new(),
            lengths: Vec::new(),
            bucket_kernels: Vec::new(),
            calls: Vec::new(),
            is_ragged_input: ragged_inputs(manifest),
            pending: Vec::new(),
            segments: Vec::new(),
            free: Vec::new(),
            kernels,
            epoch: 0,
            known_epoch: 0,
            table_phase: 0,
            parked: Vec::new(),
            grouping,
            switch: std::ptr::null(),
            stopped: None,
            limits: Limits {
                max_nodes,
                ..limits
            },
            sources: manifest.sources.len(),
            spaces: manifest.spaces.len(),
            first_bucket,
            call_buckets,
            used_rows: 0,
            used_bytes: 0,
            pending_bytes: 0,
            pending_rows: 0,
            max_results,
            tracer: None,
        });
        recorder.begin_batch();
        recorder
    }

    /// The limits in force: those asked for, lowered to what handles can name.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Forgets all calls and buckets; keeps the memory.
    pub fn begin_batch(&mut self) {
        self.close_pending();
        self.forget_shared_calls();
        self.pending.clear();
        self.free.clear();
        self.keys.clear();
        self.keys.resize(self.first_bucket, 0);
        self.lengths.clear();
        self.lengths.resize(self.first_bucket, 0);
        self.bucket_kernels.clear();
        self.bucket_kernels.resize(self.first_bucket, u32::MAX);
        self.calls.fill(0);
        self.state.memory.reset();
        self.used_rows = 0;
        self.used_bytes = 0;
        self.pending_bytes = 0;
        self.pending_rows = 0;
    }

    /// Forgets all calls and buckets; from now on, that many chunks of inputs have buckets of
    /// their own, those of a chunk one after another.
    pub fn set_chunks(&mut self, chunks: usize) {
        self.first_bucket = self.sources + chunks * self.spaces;
        self.begin_batch();
    }

    /// After a flush: what was recorded is computed, and its handles stay valid until their buckets
    /// are recycled.
    pub fn flushed(&mut self) {
        self.close_pending();
        self.pending.clear();
        self.pending_bytes = 0;
        self.pending_rows = 0;
    }

    /// No handle into these buckets is left; their numbers are used again.
    pub fn recycle(&mut self, buckets: &mut Vec<u32>) {
        self.free.append(buckets);
    }

    /// Nothing more joins the pending buckets.
    fn close_pending(&mut self) {
        for bucket in &self.pending {
            let bucket = *bucket as usize;
            let key = std::mem::take(&mut self.keys[bucket]);
            self.lengths[bucket] = 0;
            if let Some(calls) = self.calls.get_mut(bucket) {
                *calls = 0;
            }
            let kernel = self.bucket_kernels[bucket] as usize;
            let table = if (key >> PHASE_SHIFT) as u32 == self.table_phase {
                &mut self.kernels[kernel].buckets
            } else if let Some(tables) = self.parked.get_mut((key >> PHASE_SHIFT) as usize) {
                &mut tables[kernel]
            } else {
                continue;
            };
            if let Some(bucket) = table.get_mut(key as u32 as usize) {
                *bucket = NO_BUCKET;
            }
        }
        self.log.clear();
        self.segments.clear();
        self.epoch += 1;
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
            || self.used_buckets() >= self.call_buckets
    }

    /// Whether another instance may be recorded, when `bytes` and `rows` are in use besides what
    /// was recorded since the last flush.
    pub fn has_room(&self, bytes: u64, rows: u64, most_bytes: u64) -> bool {
        bytes.saturating_add(self.pending_bytes) < most_bytes
            && rows.saturating_add(self.pending_rows) < MAX_ROWS
            && self.used_buckets() < self.call_buckets
    }

    /// Buckets of calls that are not recycled.
    pub fn used_buckets(&self) -> u64 {
        (self.keys.len() - self.first_bucket - self.free.len()) as u64
    }

    /// `input_bytes` are those that the instance's arguments occupy.
    pub fn begin_instance(&mut self, input_bytes: u64) {
        let state = &mut self.state;
        state.context.depth = 0;
        state.context.phase = 0;
        state.context.max_depth = self.limits.max_depth;
        state.nodes_left = self.limits.max_nodes;
        state.rows_left = (MAX_ROWS / self.max_results) as i64;
        state.memory_left = self.limits.max_memory.saturating_sub(input_bytes);
        state.steps_left = self.limits.max_steps;
        state.floor = 0;
        state.first_epoch = self.epoch;
        state.computed_rows = 0;
        state.start = Start {
            log: self.log.len(),
            memory_left: state.memory_left,
            memory: state.memory.mark(),
        };
        self.segments.push(self.log.len());
        self.stopped = None;
    }

    /// The instance whose state was just swapped in begins or goes on; its calls count from that
    /// depth, which shifts them against those of other instances and changes nothing else.
    pub fn set_floor(&mut self, depth: u32) {
        self.state.floor = self.phase_key() + u64::from(depth);
    }

    /// How many levels above the floor the bucket is, if it is pending and in the phase in which
    /// the instance went on.
    pub fn levels(&self, bucket: usize) -> Option<u32> {
        let (key, floor) = (*self.keys.get(bucket)?, self.state.floor);
        (key >> PHASE_SHIFT == floor >> PHASE_SHIFT && key > 0)
            .then(|| (key as u32).saturating_sub(floor as u32))
    }

    /// The first key of the instance's phase.
    #[inline]
    fn phase_key(&self) -> u64 {
        self.state.context.phase.min(MAX_PHASE) << PHASE_SHIFT
    }

    /// The instance whose state was just swapped in goes on.
    pub fn continue_instance(&mut self) {
        self.state.start.log = self.log.len();
        self.state.start.memory_left = self.state.memory_left;
        self.state.computed_rows = self.instance_rows();
        self.segments.push(self.log.len());
        self.stopped = None;
    }

    /// The running instance waits, or is done and its calls stay.
    pub fn pause_instance(&mut self) {
        self.pending_bytes += self.state.start.memory_left - self.state.memory_left;
        let rows = self
            .instance_rows()
            .saturating_sub(self.state.computed_rows);
        self.pending_rows += rows.saturating_mul(self.max_results);
    }

    /// The running instance waited, and is given up without going on.
    pub fn stop_waiting(&mut self, stop: Stop) {
        self.stopped = Some(Stopped::Failure(stop));
    }

    /// Exchanges what belongs to the running instance.
    pub fn swap_state(&mut self, state: &mut State) {
        std::mem::swap(&mut self.state, state);
    }

    /// The instance's calls stay.
    pub fn finish_instance(&mut self) {
        self.used_rows += self.instance_rows();
        self.used_bytes += self.limits.max_memory - self.state.memory_left;
    }

    /// Rows that the calls of the running instance make, equal calls counted each.
    fn instance_rows(&self) -> u64 {
        let calls = self.limits.max_nodes - self.state.nodes_left;
        let most = (MAX_ROWS / self.max_results) as i64;
        calls.saturating_add_signed(most - self.state.rows_left)
    }

    /// The instance's calls since the last flush and its memory are taken back; says why it was
    /// stopped, and at what depth.
    pub fn abandon_instance(&mut self) -> (Stopped, u64) {
        let mut at = self.state.start.log;
        while let Some(&bucket) = self.log.get(at) {
            let bucket = bucket as usize;
            let form = &self.kernels[self.bucket_kernels[bucket] as usize].form;
            let entry = &self.log[at + 1..];
            self.lengths[bucket] -= form.rows(entry) as u32;
            if form.is_ragged {
                self.calls[bucket] -= 1;
            }
            at += 1 + form.entry_length(entry);
        }
        self.log.truncate(self.state.start.log);
        self.forget_shared_calls();
        self.state.memory.rollback(self.state.start.memory);
        let stopped = self
            .stopped
            .take()
            .unwrap_or_else(|| Stopped::Broken("an instance stopped without a reason".to_owned()));
        (stopped, self.state.context.depth)
    }

    /// The buckets that were opened since the last flush, some of them empty again.
    pub fn pending(&self) -> &[u32] {
        &self.pending
    }

    /// Where in the log the entries of an instance begin, in order.
    pub fn segments(&self) -> &[usize] {
        &self.segments
    }

    /// Number of buckets, sources and inputs included.
    pub fn buckets(&self) -> usize {
        self.keys.len()
    }

    /// The number of the first bucket that kernels fill.
    pub fn first_bucket(&self) -> usize {
        self.first_bucket
    }

    /// Whether rows of the bucket can be read; `None` if there is no such bucket.
    pub fn is_computed(&self, bucket: usize) -> Option<bool> {
        self.keys.get(bucket).map(|key| *key == 0)
    }

    pub fn bucket_phase(&self, bucket: usize) -> u32 {
        (self.keys[bucket] >> PHASE_SHIFT) as u32
    }

    pub fn bucket_depth(&self, bucket: usize) -> u32 {
        self.keys[bucket] as u32
    }

    /// The rows of a bucket.
    pub fn bucket_rows(&self, bucket: usize) -> u32 {
        self.lengths[bucket]
    }

    /// The calls of a bucket of that kernel.
    pub fn bucket_calls(&self, bucket: usize) -> u32 {
        match self.kernels[self.bucket_kernels[bucket] as usize]
            .form
            .is_ragged
        {
            true => self.calls[bucket],
            false => self.lengths[bucket],
        }
    }

    pub fn bucket_kernel(&self, bucket: usize) -> u32 {
        self.bucket_kernels[bucket]
    }

    /// All entries since the last flush, one after another: `[bucket, operand slots…]` and then the
    /// handles of lists. A ghost's
    /// operand is the handle that it stands for.
    pub fn log(&self) -> &[u64] {
        &self.log
    }

    pub(crate) fn set_tracer(&mut self, tracer: Option<Box<Tracer>>) {
        self.tracer = tracer;
    }

    pub(crate) fn tracer(&mut self) -> &mut Option<Box<Tracer>> {
        &mut self.tracer
    }

    pub(crate) fn set_switch(&mut self, switch: *const Switch) {
        self.switch = switch;
    }

    /// Appends a call; see [`cohort_abi::symbols::RECORD`].
    ///
    /// # Safety
    ///
    /// `operands` points to as many slots as the manifest says for the kernel, and an instance
    /// runs on this recorder.
    #[inline]
    pub(crate) unsafe fn record(&mut self, kernel: u32, operands: *const u64) -> u64 {
        let Some(calls) = self.kernels.get_mut(kernel as usize) else {
            self.stop(Stopped::Broken(format!("a call of kernel {kernel}")));
        };
        if self.state.nodes_left == 0 || self.state.memory_left < calls.call_bytes {
            self.stop_at_limit(kernel);
        }
        self.state.nodes_left -= 1;
        self.state.memory_left -= calls.call_bytes;

        let mut remember = None;
        let since = self.state.first_epoch.max(self.known_epoch);
        if let Some(shared) = &mut calls.shared {
            // SAFETY: a kernel with shared calls has one operand.
            remember = shared.slot(unsafe { *operands });
            if let Some(handle) = remember.and_then(|slot| shared.get(slot, since)) {
                if let Some(tracer) = &mut self.tracer {
                    tracer.call(kernel, handle, 1);
                }
                return handle;
            }
        }
        // SAFETY: the caller's promise.
        let handle = unsafe {
            match calls.is_special {
                false => self.append::<false>(kernel, operands, 1),
                true => self.append_special(kernel, operands),
            }
        };
        if let Some(slot) = remember
            && let Some(shared) = &mut self.kernels[kernel as usize].shared
        {
            shared.set(slot, self.epoch, handle);
        }
        if self.tracer.is_some() {
            // SAFETY: the caller's promise.
            unsafe { self.trace_call(kernel, operands, handle) };
        }
        handle
    }

    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[cold]
    unsafe fn trace_call(&mut self, kernel: u32, operands: *const u64, handle: u64) {
        let form = &self.kernels[kernel as usize].form;
        // SAFETY: the caller's promise.
        let entry = unsafe { std::slice::from_raw_parts(operands, form.slots.len()) };
        if let Some(tracer) = &mut self.tracer {
            tracer.call(kernel, handle, form.rows(entry) as u32);
        }
    }

    /// As [`Recorder::append`], for a call with lists or of a ragged kernel.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[inline(never)]
    unsafe fn append_special(&mut self, kernel: u32, operands: *const u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.append::<true>(kernel, operands, 1) }
    }

    /// Appends an entry whose key is `levels` more than its operands', at least one; gives its
    /// handle.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`]; there is a kernel of that number.
    #[inline(always)]
    unsafe fn append<const IS_SPECIAL: bool>(
        &mut self,
        kernel: u32,
        operands: *const u64,
        levels: u32,
    ) -> u64 {
        // Operands of earlier phases have smaller keys than this.
        let mut key = self.phase_key().max(self.state.floor);
        let calls = &self.kernels[kernel as usize];
        let count = calls.slots.len();
        let (mut size, mut rows) = (1 + count, 1);
        if IS_SPECIAL {
            // SAFETY: the caller's promise.
            let (listed, of_call) = unsafe { self.take_special(kernel, operands) };
            size += listed;
            rows = of_call;
        }
        if self.log.capacity() - self.log.len() < size {
            self.log.reserve(size);
        }
        let calls = &self.kernels[kernel as usize];
        let length = self.log.len();
        // An unknown bucket is caught when its rows are looked up.
        let key_of = |handle: u64| {
            let bucket = (handle >> Handle::BUCKET_SHIFT) as usize;
            self.keys.get(bucket).copied().unwrap_or(0)
        };
        // SAFETY: the log has room for `size` more slots, all of which are written before its
        // length says so; the caller promises `count` readable slots, and where one is the address
        // of an array, its length and as many handles.
        let entry = unsafe {
            let entry = self.log.as_mut_ptr().add(length);
            let mut tail = entry.add(1 + count);
            for (index, slot) in calls.slots.iter().enumerate() {
                let operand = *operands.add(index);
                *entry.add(1 + index) = operand;
                match slot {
                    Slot::Scalar => {}
                    Slot::Row => key = key.max(key_of(operand)),
                    Slot::List if !IS_SPECIAL => {}
                    Slot::List => {
                        let list = list_at(operand);
                        *entry.add(1 + index) = list.len() as u64;
                        for handle in list {
                            *tail = *handle;
                            tail = tail.add(1);
                            key = key.max(key_of(*handle));
                        }
                    }
                }
            }
            entry
        };
        key += u64::from(levels);
        let bucket = match calls.buckets.get(key as u32 as usize) {
            Some(&bucket)
                if bucket != NO_BUCKET && (key >> PHASE_SHIFT) as u32 == self.table_phase =>
            {
                bucket
            }
            _ => self.find_bucket(kernel, key),
        };
        let position = &mut self.lengths[bucket as usize];
        let handle = Handle::new(bucket, 0, *position);
        // Within an instance's limits, and a batch takes no other when it has many rows.
        *position += rows;
        if IS_SPECIAL {
            self.count_call(kernel, bucket);
        }
        // SAFETY: `entry` is the first slot past the log's length, in its capacity, and opening a
        // bucket does not touch the log; now all `size` slots are written.
        unsafe {
            *entry = u64::from(bucket);
            self.log.set_len(length + size);
        }
        handle.0
    }

    /// Pays for the lists and the rows of a call; how many handles its lists have together, and how
    /// many rows it makes.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[inline(never)]
    unsafe fn take_special(&mut self, kernel: u32, operands: *const u64) -> (usize, u32) {
        let calls = &self.kernels[kernel as usize];
        // SAFETY: the caller's promise.
        match unsafe { special_costs(calls, kernel, operands, &self.state) } {
            Ok(costs) => {
                self.state.memory_left -= costs.bytes;
                self.state.rows_left -= i64::from(costs.rows) - 1;
                (costs.listed, costs.rows)
            }
            Err(stop) => self.stop(Stopped::Failure(stop)),
        }
    }

    /// Another call of a ragged kernel is in the bucket.
    #[inline(never)]
    fn count_call(&mut self, kernel: u32, bucket: u32) {
        if !self.kernels[kernel as usize].form.is_ragged {
            return;
        }
        let bucket = bucket as usize;
        if self.calls.len() <= bucket {
            self.calls.resize(bucket + 1, 0);
        }
        self.calls[bucket] += 1;
    }

    /// The bucket of a key that the tables at hand do not have.
    #[cold]
    #[inline(never)]
    fn find_bucket(&mut self, kernel: u32, key: u64) -> u32 {
        if self.grouping == Grouping::Unbatched {
            return self.open_bucket(kernel, key);
        }
        self.show_phase((key >> PHASE_SHIFT) as u32);
        let depth = key as u32 as usize;
        match self.kernels[kernel as usize].buckets.get(depth) {
            Some(&bucket) if bucket != NO_BUCKET => return bucket,
            _ => {}
        }
        let bucket = self.open_bucket(kernel, key);
        let buckets = &mut self.kernels[kernel as usize].buckets;
        if buckets.len() <= depth {
            buckets.resize(depth + 1, NO_BUCKET);
        }
        buckets[depth] = bucket;
        bucket
    }

    /// Gives the kernels their tables of the phase.
    fn show_phase(&mut self, phase: u32) {
        if phase == self.table_phase {
            return;
        }
        let kernels = self.kernels.len();
        let most = phase.max(self.table_phase) as usize;
        if self.parked.len() <= most {
            self.parked.resize_with(most + 1, Vec::new);
        }
        for phase in [self.table_phase, phase] {
            self.parked[phase as usize].resize_with(kernels, Vec::new);
        }
        for (index, kernel) in self.kernels.iter_mut().enumerate() {
            let table = std::mem::take(&mut self.parked[phase as usize][index]);
            self.parked[self.table_phase as usize][index] =
                std::mem::replace(&mut kernel.buckets, table);
        }
        self.table_phase = phase;
    }

    fn open_bucket(&mut self, kernel: u32, key: u64) -> u32 {
        let bucket = match self.free.pop() {
            Some(bucket) => {
                let index = bucket as usize;
                (self.keys[index], self.bucket_kernels[index]) = (key, kernel);
                bucket
            }
            None => {
                let bucket = self.keys.len();
                if (bucket - self.first_bucket) as u64 >= self.call_buckets {
                    self.stop(Stopped::BatchFull);
                }
                self.keys.push(key);
                self.lengths.push(0);
                self.bucket_kernels.push(kernel);
                bucket as u32
            }
        };
        self.pending.push(bucket);
        bucket
    }

    /// Another name of a row, `levels` deeper; see [`cohort_abi::symbols::GHOST`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    pub(crate) unsafe fn ghost(&mut self, handle: u64, levels: u32) -> u64 {
        match self.state.memory_left.checked_sub(GHOST_BYTES) {
            Some(left) => self.state.memory_left = left,
            None => self.stop_because(Failure::MemoryLimit, Place::Unknown),
        }
        if levels == 0 || self.grouping == Grouping::Unbatched || self.is_ragged(handle) {
            return handle;
        }
        let ghosts = self.kernels.len() - 1;
        // SAFETY: the last kernel is that of the ghosts, which has one operand.
        unsafe { self.append::<false>(ghosts as u32, &handle, levels.min(MAX_LEVELS)) }
    }

    /// Whether the handle may be that of several rows. Those of a ghost would not be one behind
    /// another, so such a tensor has none, and what reads it is launched where it is.
    fn is_ragged(&self, handle: u64) -> bool {
        let bucket = Handle(handle).bucket() as usize;
        let kernel = self.bucket_kernels.get(bucket).copied().unwrap_or(u32::MAX);
        match self.kernels.get(kernel as usize) {
            Some(calls) => calls.form.has_extent(),
            None => {
                let input = bucket.checked_sub(self.sources);
                input.is_some_and(|input| self.is_ragged_input[input % self.spaces.max(1)])
            }
        }
    }

    /// Memory of the instance; see [`cohort_abi::symbols::ALLOC`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[inline]
    pub(crate) unsafe fn alloc(&mut self, slots: u64) -> *mut u64 {
        match slots.checked_mul(8) {
            Some(bytes) if bytes <= self.state.memory_left => {
                self.state.memory_left -= bytes;
                self.state.memory.alloc(slots as usize)
            }
            _ => self.stop_because(Failure::MemoryLimit, Place::Unknown),
        }
    }

    /// Counts iterations; see [`cohort_abi::symbols::STEP`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[inline]
    pub(crate) unsafe fn step(&mut self, steps: u64) {
        match self.state.steps_left.checked_sub(steps) {
            Some(left) => self.state.steps_left = left,
            None => self.stop_because(Failure::StepLimit, Place::Unknown),
        }
    }

    /// Waits until a row is computed; see [`cohort_abi::symbols::FORCE`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder. While it waits, whoever owns the recorder uses it, so the
    /// caller must hold no reference to it.
    pub(crate) unsafe fn force(recorder: *mut Recorder, handle: u64, force: u32) -> u32 {
        // SAFETY: the caller's promise.
        let switch = unsafe { (*recorder).switch };
        if !switch.is_null() {
            let handle = Handle(handle);
            // SAFETY: the fiber set the switch when it began or continued this instance, and it
            // lives at the bottom of the stack that this code runs on.
            let input = unsafe { (*switch).suspend(Event::Forced { handle, force }) };
            if let Input::Decided(bits) = input {
                // SAFETY: this instance runs again. The others have set their own switches.
                unsafe { (*recorder).set_switch(switch) };
                return bits;
            }
        }
        // Reached only if compiled code runs outside a fiber.
        std::process::abort()
    }

    /// Gives the instance up; see [`cohort_abi::symbols::FAIL`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    #[cold]
    pub(crate) unsafe fn fail(&mut self, code: u32, a: i64, b: i64, location: u32) -> ! {
        let stopped = match Failure::from_code(code) {
            Some(failure) => Stopped::Failure(Stop {
                failure,
                a,
                b,
                place: Place::Location(location),
            }),
            None => Stopped::Broken(format!("failure code {code}")),
        };
        self.stop(stopped)
    }

    #[cold]
    #[inline(never)]
    fn stop_at_limit(&mut self, kernel: u32) -> ! {
        let failure = if self.state.nodes_left == 0 {
            Failure::NodeLimit
        } else {
            Failure::MemoryLimit
        };
        self.stop_because(failure, Place::Kernel(kernel))
    }

    #[cold]
    #[inline(never)]
    fn stop_because(&mut self, failure: Failure, place: Place) -> ! {
        self.stop(Stopped::Failure(Stop {
            failure,
            a: 0,
            b: 0,
            place,
        }))
    }

    /// Leaves compiled code for good.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, stopped: Stopped) -> ! {
        self.stopped = Some(stopped);
        let switch = self.switch;
        if !switch.is_null() {
            // SAFETY: the fiber set the switch when it began this instance, and it lives at the
            // bottom of the stack that this code runs on.
            unsafe { (*switch).suspend(Event::Stopped) };
        }
        // Reached only if a stopped instance is resumed, or compiled code runs outside a fiber.
        std::process::abort()
    }
}

/// What a call takes that has lists or is ragged.
struct SpecialCosts {
    /// Handles of all its lists.
    listed: usize,
    rows: u32,
    bytes: u64,
}

/// Whether an instance that has this left may make a call, and what that takes.
///
/// # Safety
///
/// As [`Recorder::record`].
unsafe fn special_costs(
    calls: &KernelCalls,
    kernel: u32,
    operands: *const u64,
    state: &State,
) -> Result<SpecialCosts, Stop> {
    let stop = |failure, a: u64, b: u64, place| Stop {
        failure,
        a: i64::try_from(a).unwrap_or(i64::MAX),
        b: b as i64,
        place,
    };
    let form = &calls.form;
    // SAFETY: the caller's promise.
    let entry = unsafe { std::slice::from_raw_parts(operands, form.slots.len()) };
    let mut rows = 1;
    if form.is_ragged {
        if let Some(length) = form.lengths().find(|length| entry[*length] > MAX_LENGTH) {
            return Err(Stop {
                a: entry[length] as i64,
                ..stop(Failure::ShapeMismatch, 0, MAX_LENGTH, Place::Length(kernel))
            });
        }
        rows = form.rows(entry);
        let of_memory = state.memory_left / calls.row_bytes.max(1);
        let most = of_memory.min(state.rows_left.max(0) as u64);
        if rows > most {
            return Err(stop(Failure::MemoryLimit, rows, most, Place::Rows(kernel)));
        }
    }
    // SAFETY: the slot of a list operand is the address of an array.
    let length_of = |operand: usize| unsafe { list_at(entry[operand]).len() };
    let is_list = |operand: &usize| form.slots[*operand] == Slot::List;
    let listed: usize = (0..entry.len()).filter(is_list).map(length_of).sum();
    for (operand, wanted) in form.operand_rows(entry) {
        if is_list(&operand) && length_of(operand) as u64 != wanted {
            let length = length_of(operand) as u64;
            return Err(stop(
                Failure::ShapeMismatch,
                wanted,
                length,
                Place::Kernel(kernel),
            ));
        }
    }
    // Where the unit is the row, each row of a call has its lists.
    let repeated = match form.unit {
        Unit::Rows => rows.max(1),
        Unit::Calls => 1,
    };
    let of_rows = match form.is_ragged {
        true => rows * calls.row_bytes,
        false => 0,
    };
    let bytes = (HANDLE_BYTES * listed as u64)
        .saturating_mul(repeated)
        .saturating_add(of_rows);
    if bytes > state.memory_left {
        return Err(stop(Failure::MemoryLimit, 0, 0, Place::Kernel(kernel)));
    }
    Ok(SpecialCosts {
        listed,
        rows: rows as u32,
        bytes,
    })
}

/// Of each space, whether arguments have ragged tensors in it. What a program hands around as a
/// tensor of known shape may be in it too.
fn ragged_inputs(manifest: &Manifest) -> Vec<bool> {
    fn note(ty: &Type, spaces: &mut [bool]) {
        match ty {
            Type::Ragged { space, .. } => spaces[*space] = true,
            Type::Tuple(types) => types.iter().for_each(|ty| note(ty, spaces)),
            Type::Array(element) => note(element, spaces),
            // Their fields are looked at once, below.
            Type::Adt(_) | Type::Scalar(_) | Type::Tensor { .. } | Type::Stacked { .. } => {}
        }
    }
    let mut spaces = vec![false; manifest.spaces.len()];
    let arguments = manifest.arguments.iter().map(|argument| &argument.ty);
    let constructors = manifest.adts.iter().flat_map(|adt| &adt.constructors);
    let fields = constructors.flat_map(|constructor| &constructor.fields);
    for ty in arguments.chain(fields) {
        note(ty, &mut spaces);
    }
    spaces
}

/// The handles of an array.
///
/// # Safety
///
/// `address` is that of an array of the control program, which stays as it is during `'a`.
unsafe fn list_at<'a>(address: u64) -> &'a [u64] {
    let array = address as *const u64;
    // SAFETY: an array is its length and then as many slots.
    unsafe { std::slice::from_raw_parts(array.add(1), *array as usize) }
}

#[cfg(test)]
mod tests {
    use cohort_abi::manifest::Operand;

    use super::*;

    #[test]
    fn the_context_comes_first() {
        assert_eq!(std::mem::offset_of!(Recorder, state), 0);
        assert_eq!(std::mem::offset_of!(State, context), 0);
    }

    /// A recorder for a kernel with one operand, on which calls are made as compiled code would.
    struct Calls(Box<Recorder>);

    impl Calls {
        fn new() -> Calls {
            Calls::of(crate::arena::tests::manifest(), false)
        }

        /// Its operands are rows of a table, whose equal calls are shared.
        fn sharing() -> Calls {
            let mut manifest = crate::arena::tests::manifest();
            manifest.params.push(cohort_abi::manifest::Param {
                name: String::new(),
                elem: cohort_abi::manifest::Elem::I32,
                shape: vec![8, 2],
            });
            manifest
                .sources
                .push(cohort_abi::manifest::Source::Table { param: 0, space: 0 });
            Calls::of(manifest, true)
        }

        fn of(mut manifest: Manifest, share: bool) -> Calls {
            manifest.kernels.push(cohort_abi::manifest::Kernel {
                name: String::new(),
                symbol: String::new(),
                location: String::new(),
                operands: vec![Operand::Row { space: 0 }],
                results: vec![0],
                constants: vec![],
                scratch_bytes: 0,
                row_tile: 1,
                flops_per_row: 0,
                row_products: vec![],
                call: Default::default(),
                gpu: None,
            });
            let grouping = Grouping::ByDepth { share };
            Calls(Recorder::new(
                &manifest,
                Limits::default(),
                100,
                grouping,
                0,
            ))
        }

        fn begin(&mut self) -> Handle {
            self.0.begin_instance(0);
            Handle::new(0, 0, 0)
        }

        fn call(&mut self, operand: Handle) -> Handle {
            // SAFETY: the kernel has one operand.
            Handle(unsafe { self.0.record(0, &operand.0) })
        }

        fn ghost(&mut self, handle: Handle, levels: u32) -> Handle {
            // SAFETY: there are no limits that it could meet.
            Handle(unsafe { self.0.ghost(handle.0, levels) })
        }

        fn key(&self, handle: Handle) -> (u32, u32) {
            let bucket = handle.bucket() as usize;
            (self.0.bucket_phase(bucket), self.0.bucket_depth(bucket))
        }
    }

    #[test]
    fn phases_count_their_own_depths_and_share_buckets() {
        let mut calls = Calls::new();
        let mut last = Vec::new();
        for depth in [3, 5] {
            let mut handle = calls.begin();
            for _ in 0..depth {
                handle = calls.call(handle);
            }
            assert_eq!(calls.key(handle), (0, depth));
            calls.0.state.context.phase = 1;
            let first = calls.call(handle);
            assert_eq!(calls.key(first), (1, 1));
            calls.0.state.context.phase = u64::MAX;
            let late = calls.call(first);
            assert_eq!(calls.key(late), (MAX_PHASE as u32, 1));
            last.push((first, late));
        }
        assert_eq!(last[0].0.bucket(), last[1].0.bucket());
        assert_eq!(last[0].1.bucket(), last[1].1.bucket());
        let pending = calls.0.pending().len();
        calls.0.flushed();
        // All tables are empty again: nothing joins what is computed.
        let handle = calls.begin();
        let handle = calls.call(handle);
        assert_eq!(
            (calls.0.buckets(), calls.key(handle)),
            (1 + pending + 1, (0, 1))
        );
        assert_eq!(calls.0.is_computed(last[0].1.bucket() as usize), Some(true));
        let after = calls.call(last[0].1);
        assert_eq!(after.bucket(), handle.bucket());
    }

    #[test]
    fn ghosts_are_deeper_and_are_taken_back() {
        let mut calls = Calls::new();
        let source = calls.begin();
        let long = calls.call(source);
        let long = calls.call(long);
        let long = calls.call(long);
        let source = calls.begin();
        let ghost = calls.ghost(source, 1);
        let ghost = calls.ghost(ghost, 1);
        assert_eq!(calls.key(ghost), (0, 2));
        assert_eq!(calls.call(ghost).bucket(), long.bucket());
        assert_eq!(calls.ghost(ghost, 0), ghost);
        let log = calls.0.log().len();
        let source = calls.begin();
        let again = calls.ghost(source, 2);
        assert_eq!((again.bucket(), again.position()), (ghost.bucket(), 1));
        calls.0.abandon_instance();
        assert_eq!(calls.0.log().len(), log);
        let source = calls.begin();
        assert_eq!(calls.ghost(source, 2), again);
    }

    #[test]
    fn calls_are_shared_with_instances_that_were_alive_when_they_were_computed() {
        let mut calls = Calls::sharing();
        let row = calls.begin();
        let first = calls.call(row);
        assert_eq!(calls.call(row), first);
        calls.0.flushed();
        // The same instance goes on: its generation is kept for it.
        assert_eq!(calls.call(row), first);
        // One that begins only now must not name what may be taken back before it ends.
        calls.begin();
        let second = calls.call(row);
        assert_ne!(second, first);
        assert_eq!(calls.call(row), second);
        // What an instance takes back, no other may name.
        calls.0.abandon_instance();
        calls.begin();
        assert_eq!(calls.0.log().len(), 0);
        calls.call(row);
        assert_eq!(calls.0.log().len(), 2);
    }

    #[test]
    fn numbers_of_buckets_are_used_again() {
        let mut calls = Calls::new();
        for _ in 0..1000 {
            let source = calls.begin();
            let handle = calls.call(source);
            calls.call(handle);
            let mut buckets = calls.0.pending().to_vec();
            calls.0.flushed();
            calls.0.recycle(&mut buckets);
        }
        assert_eq!((calls.0.buckets(), calls.0.used_buckets()), (3, 0));
    }
}
