//! Schedules are kept by structure and used again.
//!
//! Where no tensor decides, which calls an instance makes follows from its structure ([`crate::program::structure`]). What the
//! control program records of a structure is kept as a [`Recording`], and when the structure comes again, in the same
//! batch or a later one, its calls are written from that, with the instance's own rows. The log, the launches and the
//! bits are those that the control program would have led to.
//!
//! Most structures of real inputs never come again, and to make a recording takes as long as to run the control program
//! some times. So one is made when a structure has come often enough ([`store::WORTH`]). What is kept is bounded; what was
//! not used for long goes first.

mod store;

use std::collections::VecDeque;

use cohort_abi::EntryFn;
use cohort_abi::manifest::{Manifest, Source};

use crate::error::Error;
use crate::io::input::Known;
use crate::program::structure::{Image, ValueForm};
use crate::recorder::{Marks, Recorder, Recording, Take};
use crate::threads::fiber::{Event, Fiber, Job};
use store::{Entry, Store};

/// Slots of the arguments, or of the result, of an instance of which a recording is made.
const MOST_SLOTS: usize = 1 << 20;

/// Recordings of a program's structures, and what makes them.
pub struct Reuse {
    entry: EntryFn,
    arguments: ValueForm,
    result: ValueForm,
    /// The rows of each source that numbers choose from.
    source_rows: Vec<u64>,
    /// Where the control program runs for recordings.
    scout: Box<Recorder>,
    store: Store,
    /// What is kept of instances that come next.
    ahead: VecDeque<(u128, Option<Entry>)>,
    /// Whether more is kept since.
    has_grown: bool,
    counts: Counts,
}

/// How instances were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instances whose calls were taken from what was kept.
    pub reused: u64,
    /// Instances that the control program ran for.
    pub recorded: u64,
}

impl Reuse {
    /// How many instances are looked up together, so that the processor waits for their cache misses at once.
    pub const AHEAD: usize = 16;

    /// For a program, which keeps at most `bytes` bytes. The scout is a recorder of the program which shares no calls.
    /// `None` where schedules do not follow from structures.
    pub fn new(
        entry: EntryFn,
        manifest: &Manifest,
        scout: Box<Recorder>,
        bytes: u64,
    ) -> Option<Reuse> {
        let source_rows = manifest.sources.iter().map(|source| match source {
            Source::Table { param, .. } => {
                let rows = manifest.weight(*param)?.shape.first();
                rows.copied()
            }
            _ => None,
        });
        Some(Reuse {
            entry,
            arguments: ValueForm::of_arguments(manifest)?,
            result: ValueForm::of_result(manifest)?,
            source_rows: source_rows.map(Option::unwrap_or_default).collect(),
            scout,
            store: Store::new(usize::try_from(bytes).unwrap_or(usize::MAX)),
            ahead: VecDeque::new(),
            has_grown: false,
            counts: Counts::default(),
        })
    }

    /// Instances are recorded on a recorder that has nothing to flush.
    pub fn begin_batch(&mut self, recorder: &mut Recorder) {
        self.ahead.clear();
        recorder.recordings().drop(self.store.gone());
    }

    /// Instances of these structures are recorded next.
    pub fn expect(&mut self, keys: impl Iterator<Item = u128>) {
        self.ahead.clear();
        self.has_grown = false;
        let store = &mut self.store;
        self.ahead.extend(keys.map(|key| (key, store.find(key))));
    }

    /// An instance of this structure comes after this one.
    #[inline]
    pub fn fetch(&self, key: u128) {
        self.store.fetch(key);
    }

    /// Records the calls of the instance that has just begun on the recorder and writes its result, if its structure
    /// is known; otherwise the control program must.
    ///
    /// # Safety
    ///
    /// The instance is one of the program.
    pub unsafe fn replay(
        &mut self,
        recorder: &mut Recorder,
        fiber: &mut Fiber,
        instance: Known<'_>,
        results: &mut [u64],
    ) -> Result<bool, Error> {
        let key = instance.key;
        let found = match self.ahead.pop_front() {
            Some((of, found)) if of == key && (found.is_some() || !self.has_grown) => found,
            // It may have become known since.
            _ => self.store.find(key),
        };
        // The next but one comes from memory while this one and the next are recorded.
        if let Some((_, Some(entry))) = self.ahead.get(1)
            && let Some(number) = entry.recording
        {
            recorder.recordings().get(number).fetch();
        }
        let entry = match found {
            Some(entry) => Some(entry),
            None if !self.store.is_due(key) => None,
            None => {
                // SAFETY: the caller's promise.
                let recording = unsafe { self.record(recorder, fiber, instance)? };
                let entry = Entry {
                    bytes: recording.as_ref().map_or(0, Recording::size),
                    recording: recording.map(|recording| recorder.recordings().put(recording)),
                };
                self.store.put(key, entry);
                self.has_grown = true;
                Some(entry)
            }
        };
        let is_done = match entry.and_then(|entry| entry.recording) {
            Some(recording) => recorder.replay(recording, instance.data, results),
            None => false,
        };
        match is_done {
            true => self.counts.reused += 1,
            false => self.counts.recorded += 1,
        }
        Ok(is_done)
    }

    /// Runs the control program on marks and finds out where what it records comes from; `None` where that fails.
    ///
    /// # Safety
    ///
    /// As [`Reuse::replay`].
    unsafe fn record(
        &mut self,
        recorder: &Recorder,
        fiber: &mut Fiber,
        instance: Known<'_>,
    ) -> Result<Option<Recording>, Error> {
        let slots = instance.slots.as_ptr();
        // SAFETY: the caller's promise.
        let arguments = unsafe { Image::of(&self.arguments, slots, MOST_SLOTS) };
        let Some(mut arguments) = arguments else {
            return Ok(None);
        };
        arguments.make_addresses();
        let Some(marks) = Marks::new(arguments.rows.len(), self.arguments.fewest_rows()) else {
            return Ok(None);
        };
        let mut takes = Vec::new();
        for take in 0..marks.takes() {
            for (number, place) in arguments.rows.iter().enumerate() {
                arguments.slots[*place] = marks.mark(take, number);
            }
            let scout = &mut *self.scout;
            scout.begin_batch();
            scout.begin_instance(0, instance.bytes);
            let mut results = vec![0; self.result.slots()];
            let job = Job {
                entry: self.entry,
                host: scout.host(),
                arguments: arguments.slots.as_ptr(),
                results: results.as_mut_ptr(),
            };
            // SAFETY: the recorder is not touched before the fiber gives control back; the arguments are a copy of
            // some of this program, and the results have a slot for each of its result's.
            let signal = unsafe { fiber.run(job)? };
            if !matches!(signal.event(), Event::Finished) {
                return Ok(None);
            }
            // SAFETY: the entry wrote the result, and what it points to is memory of the scout and of the arguments.
            let result = unsafe { Image::of(&self.result, results.as_ptr(), MOST_SLOTS) };
            let Some(result) = result else {
                return Ok(None);
            };
            let log = self.scout.log().to_vec();
            takes.push(Take { log, result });
        }
        let shares = |kernel, operand| recorder.shares(kernel, operand);
        let inputs = &instance.data[..recorder.row_pools()];
        Ok(self
            .scout
            .recording(shares, marks, &takes, inputs, &self.source_rows))
    }

    /// Forgets all structures.
    pub fn forget(&mut self) {
        self.store.clear();
    }

    /// How instances were recorded since [`Reuse::clear_counts`].
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Begins to count anew.
    pub fn clear_counts(&mut self) {
        self.counts = Counts::default();
    }

    /// How many recordings are kept, and their bytes.
    pub fn kept(&self) -> (usize, usize) {
        (self.store.count(), self.store.bytes())
    }
}
