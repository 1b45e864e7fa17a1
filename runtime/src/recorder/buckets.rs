//! The buckets of a batch, and the tables that find the one of a kernel and an order key.
//!
//! Buckets below the first of calls are those of sources, inputs and cached calls ([`Numbering`]). The
//! others are opened when a kernel is first called at a key, and are *pending* until a flush computes
//! them; then their key is 0, as it is of sources and inputs, and when nobody holds a handle into them
//! any more, their numbers are used again.

use cohort_abi::Handle;

use crate::program::numbering::Numbering;

/// Where the phase begins in an order key; its depth is below.
pub(super) const PHASE_SHIFT: u32 = 32;
/// Later phases count as this one: still correct, since depths go on growing in it.
pub(super) const MAX_PHASE: u64 = (1 << 12) - 1;

/// The key of cached calls, computed or not: the first phase, the first depth.
const KEPT_KEY: u64 = 1;

const NO_BUCKET: u32 = u32::MAX;

/// See the [module's page](self).
#[derive(Debug)]
pub struct Buckets {
    /// For each bucket: its order key, its number of rows, its kernel.
    keys: Vec<u64>,
    rows: Vec<u32>,
    kernels: Vec<u32>,
    /// For each bucket of a ragged kernel: its number of calls.
    calls: Vec<u32>,
    /// Those that were opened since the last flush.
    pending: Vec<u32>,
    /// Numbers that are in use no more.
    free: Vec<u32>,
    /// For each kernel the bucket of each depth in `table_phase`, or [`NO_BUCKET`].
    tables: Vec<Vec<u32>>,
    table_phase: u32,
    /// The tables of the other phases.
    parked: Vec<Vec<Vec<u32>>>,
    /// Whether every call has a bucket of its own.
    is_alone: bool,
    numbering: Numbering,
    first: usize,
    most: u64,
}

impl Buckets {
    /// None. At most `most` buckets hold calls of batches at once.
    pub(super) fn new(numbering: Numbering, most: u64, is_alone: bool) -> Buckets {
        let mut tables = Vec::new();
        // Ghosts are of a kernel of their own.
        tables.resize_with(numbering.kernels + 1, Vec::new);
        Buckets {
            keys: Vec::new(),
            rows: Vec::new(),
            kernels: Vec::new(),
            calls: Vec::new(),
            pending: Vec::new(),
            free: Vec::new(),
            tables,
            table_phase: 0,
            parked: Vec::new(),
            is_alone,
            numbering,
            first: 0,
            most,
        }
    }

    /// Forgets all calls but those that are cached; from now on there are `chunks` chunks of inputs.
    pub(super) fn reset(&mut self, chunks: usize) {
        self.close_pending();
        let first = self.numbering.first_call(chunks);
        self.first = first;
        self.free.clear();
        self.keys.clear();
        self.keys.resize(first, 0);
        self.rows.clear();
        self.rows.resize(first, 0);
        self.kernels.clear();
        self.kernels.resize(first, u32::MAX);
        self.calls.fill(0);
        for kernel in 0..self.numbering.kernels {
            let bucket = self.numbering.cached(kernel);
            (self.keys[bucket], self.kernels[bucket]) = (KEPT_KEY, kernel as u32);
        }
    }

    /// Nothing more joins the pending buckets: they are computed.
    pub(super) fn close_pending(&mut self) {
        for bucket in &self.pending {
            let bucket = *bucket as usize;
            let key = std::mem::take(&mut self.keys[bucket]);
            self.rows[bucket] = 0;
            if let Some(calls) = self.calls.get_mut(bucket) {
                *calls = 0;
            }
            let kernel = self.kernels[bucket] as usize;
            let phase = (key >> PHASE_SHIFT) as u32;
            let tables = match phase == self.table_phase {
                true => Some(&mut self.tables),
                false => self.parked.get_mut(phase as usize),
            };
            let table = tables.and_then(|tables| tables.get_mut(kernel));
            if let Some(bucket) = table.and_then(|table| table.get_mut(key as u32 as usize)) {
                *bucket = NO_BUCKET;
            }
        }
        self.pending.clear();
    }

    /// No handle into these buckets is left; their numbers are used again.
    pub(super) fn recycle(&mut self, buckets: &mut Vec<u32>) {
        self.free.append(buckets);
    }

    /// The bucket of a kernel at a key, opened if need be; `None` if there would be too many.
    #[inline]
    pub(super) fn at(&mut self, kernel: u32, key: u64) -> Option<u32> {
        match self.tables[kernel as usize].get(key as u32 as usize) {
            Some(&bucket)
                if bucket != NO_BUCKET && (key >> PHASE_SHIFT) as u32 == self.table_phase =>
            {
                Some(bucket)
            }
            _ => self.find(kernel, key),
        }
    }

    /// Appends calls of a kernel at one depth after another, from that key on: of `rows` rows at each. Their handles go
    /// to `handles`. `None` if there are too few buckets.
    #[inline]
    pub(super) fn append_run(
        &mut self,
        kernel: u32,
        key: u64,
        rows: &[u32],
        handles: &mut Vec<u64>,
    ) -> Option<()> {
        let (phase, depth) = ((key >> PHASE_SHIFT) as u32, key as u32 as usize);
        let mut done = 0;
        loop {
            // Where calls of all phases come in turn, the tables at hand stay.
            let tables = match phase == self.table_phase {
                true => Some(&self.tables),
                false => self.parked.get(phase as usize),
            };
            let table = tables.and_then(|tables| tables.get(kernel as usize)?.get(depth + done..));
            let known = table.unwrap_or(&[]).iter();
            let known = known.take_while(|bucket| **bucket != NO_BUCKET);
            for (bucket, rows) in known.zip(&rows[done..]) {
                let length = &mut self.rows[*bucket as usize];
                handles.push(Handle::new(*bucket, 0, *length).0);
                *length += rows;
                done += 1;
            }
            if done == rows.len() {
                return Some(());
            }
            self.find(kernel, key + done as u64)?;
        }
    }

    /// The bucket of a key that the tables at hand do not have.
    #[cold]
    #[inline(never)]
    fn find(&mut self, kernel: u32, key: u64) -> Option<u32> {
        if self.is_alone {
            return self.open(kernel, key);
        }
        self.show_phase((key >> PHASE_SHIFT) as u32);
        let depth = key as u32 as usize;
        match self.tables[kernel as usize].get(depth) {
            Some(&bucket) if bucket != NO_BUCKET => return Some(bucket),
            _ => {}
        }
        let bucket = self.open(kernel, key)?;
        let table = &mut self.tables[kernel as usize];
        if table.len() <= depth {
            table.resize(depth + 1, NO_BUCKET);
        }
        table[depth] = bucket;
        Some(bucket)
    }

    /// Puts the tables of the phase in place of those at hand.
    fn show_phase(&mut self, phase: u32) {
        if phase == self.table_phase {
            return;
        }
        let kernels = self.tables.len();
        let most = phase.max(self.table_phase) as usize;
        if self.parked.len() <= most {
            self.parked.resize_with(most + 1, Vec::new);
        }
        let mut tables = std::mem::take(&mut self.parked[phase as usize]);
        tables.resize_with(kernels, Vec::new);
        self.parked[self.table_phase as usize] = std::mem::replace(&mut self.tables, tables);
        self.table_phase = phase;
    }

    fn open(&mut self, kernel: u32, key: u64) -> Option<u32> {
        let bucket = match self.free.pop() {
            Some(bucket) => {
                let index = bucket as usize;
                (self.keys[index], self.kernels[index]) = (key, kernel);
                bucket
            }
            None => {
                let bucket = self.keys.len();
                if (bucket - self.first) as u64 >= self.most {
                    return None;
                }
                self.keys.push(key);
                self.rows.push(0);
                self.kernels.push(kernel);
                bucket as u32
            }
        };
        self.pending.push(bucket);
        Some(bucket)
    }

    /// Appends a call of `rows` rows; gives the number of the first of them.
    #[inline]
    pub(super) fn append(&mut self, bucket: u32, rows: u32) -> u32 {
        let length = &mut self.rows[bucket as usize];
        let position = *length;
        // Within an instance's limits, and a batch takes no other when it has many rows.
        *length += rows;
        position
    }

    /// Counts `count` more calls of a ragged kernel in the bucket.
    #[inline(never)]
    pub(super) fn add_calls(&mut self, bucket: u32, count: u32) {
        let bucket = bucket as usize;
        if self.calls.len() <= bucket {
            self.calls.resize(bucket + 1, 0);
        }
        self.calls[bucket] += count;
    }

    /// Takes the last call back, which made `rows` rows.
    pub(super) fn take_back(&mut self, bucket: usize, rows: u32, is_ragged: bool) {
        self.rows[bucket] -= rows;
        if is_ragged {
            self.calls[bucket] -= 1;
        }
    }

    /// The order key of what a handle into the bucket names. An unknown bucket is caught when its
    /// rows are looked up.
    #[inline]
    pub(super) fn key(&self, bucket: usize) -> u64 {
        self.keys.get(bucket).copied().unwrap_or(0)
    }

    /// Number of buckets, sources and inputs included.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Buckets of calls that are not recycled.
    pub fn used(&self) -> u64 {
        (self.keys.len() - self.first - self.free.len()) as u64
    }

    /// How many others there are for calls.
    pub(super) fn left(&self) -> u64 {
        self.most.saturating_sub(self.used())
    }

    /// Whether there is no other for calls.
    pub(super) fn is_full(&self) -> bool {
        self.used() >= self.most
    }

    /// The buckets that were opened since the last flush, some of them empty again.
    pub fn pending(&self) -> &[u32] {
        &self.pending
    }

    /// Whether rows of the bucket can be read, but for one of cached calls; `None` if there is no such
    /// bucket.
    pub(super) fn is_computed(&self, bucket: usize) -> Option<bool> {
        self.keys.get(bucket).map(|key| *key == 0)
    }

    /// The phase of its calls.
    pub fn phase(&self, bucket: usize) -> u32 {
        (self.keys[bucket] >> PHASE_SHIFT) as u32
    }

    /// The depth of its calls.
    pub fn depth(&self, bucket: usize) -> u32 {
        self.keys[bucket] as u32
    }

    /// Rows that its calls make.
    pub fn rows(&self, bucket: usize) -> u32 {
        self.rows[bucket]
    }

    /// The calls of a bucket of a ragged kernel. Those of any other are its rows.
    pub fn ragged_calls(&self, bucket: usize) -> u32 {
        self.calls.get(bucket).copied().unwrap_or(0)
    }

    /// The number of its kernel, that after the last one's for ghosts; `u32::MAX` for sources and
    /// inputs, and where there is no such bucket.
    pub fn kernel(&self, bucket: usize) -> u32 {
        self.kernels.get(bucket).copied().unwrap_or(u32::MAX)
    }
}
