//! What a run did when: its phases, flushes and launches on a line of time, for a viewer of traces.
//!
//! Whoever does something tells when it began, and the profile keeps it with its thread. Spans of a thread
//! lie within each other or apart. So that a long run ends with a file that can be opened, only the first
//! [`MOST_EVENTS`] are kept, and the others are counted. [`Profile::write`] has the file's form.

mod write;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::locks::locked;

/// Events that are kept: some 20 MB in memory, and up to 100 MB as text.
pub const MOST_EVENTS: usize = 1 << 19;

/// What took its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Before instances run: opening weights, compiling, packing.
    Start(&'static str),
    /// Reading and decoding a chunk of instances.
    Read,
    /// Running the control program of instances.
    Record,
    /// A flush, with the calls that were waiting for it.
    Flush,
    /// All of a flush before its first launch: order, rows, indices.
    Schedule,
    /// A launch of a kernel.
    Launch {
        /// The kernel's number in the manifest.
        kernel: u32,
        /// Calls that it computed.
        calls: u32,
        /// Rows that these have.
        rows: u32,
    },
    /// One thread's part of a launch.
    Share {
        /// The kernel's number in the manifest.
        kernel: u32,
        /// Ranges of rows, or tasks, that the thread computed.
        items: u32,
    },
    /// Results, handed on.
    Write,
    /// Decisions are read, and those that waited for them go on until they wait again.
    Decide,
    /// Going back over the calls of instances, where gradients are computed.
    Backward,
}

impl Span {
    /// How deep it lies in others that may begin when it does.
    fn nesting(self) -> u8 {
        match self {
            Span::Start(_) | Span::Record | Span::Write | Span::Decide | Span::Backward => 0,
            Span::Read | Span::Flush => 1,
            Span::Schedule | Span::Launch { .. } => 2,
            Span::Share { .. } => 3,
        }
    }
}

/// What is in use at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Bytes of the rows of inputs and results.
    RowBytes(u64),
    /// Bytes that the control programs of those that are alive hold.
    ControlBytes(u64),
    /// Instances.
    Alive(u64),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Span {
        what: Span,
        /// 0 is the one that records; on a device, the one behind the last.
        thread: u32,
        begin: u64,
        nanoseconds: u64,
    },
    Gauge {
        at: u64,
        gauge: Gauge,
    },
    /// An instance, from when it was admitted until its result was handed on.
    Instance {
        number: u64,
        begin: u64,
        end: u64,
        is_failed: bool,
    },
}

/// Events of one run; all of its threads tell.
#[derive(Debug)]
pub struct Profile {
    zero: Instant,
    /// The kernel of the launch at hand.
    kernel: AtomicU32,
    events: Mutex<Events>,
}

#[derive(Debug, Default)]
struct Events {
    starts: Vec<Event>,
    kept: Vec<Event>,
    left_out: u64,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            zero: Instant::now(),
            kernel: AtomicU32::new(0),
            events: Mutex::default(),
        }
    }
}

impl Profile {
    /// The recording thread did this until now.
    pub fn spent(&self, what: Span, begin: Instant) {
        self.span(what, begin, Instant::now());
    }

    /// The recording thread did this from `begin` to `end`.
    pub fn span(&self, what: Span, begin: Instant, end: Instant) {
        // What began before the profile did is shown from there on.
        let begin = self.at(begin);
        self.timed(what, 0, begin, self.at(end) - begin);
    }

    /// As [`Profile::span`], of any thread and by a clock that began when the profile did.
    pub(crate) fn timed(&self, what: Span, thread: u32, begin: u64, nanoseconds: u64) {
        let event = Event::Span {
            what,
            thread,
            begin,
            nanoseconds,
        };
        match what {
            Span::Start(_) => self.events().starts.push(event),
            _ => self.keep(event),
        }
    }

    pub(crate) fn gauge(&self, gauge: Gauge) {
        let at = self.at(Instant::now());
        self.keep(Event::Gauge { at, gauge });
    }

    pub(crate) fn instance(&self, number: u64, begin: Instant, is_failed: bool) {
        self.keep(Event::Instance {
            number,
            begin: self.at(begin),
            end: self.at(Instant::now()),
            is_failed,
        });
    }

    /// From now on, what threads share is of this kernel.
    pub(crate) fn begin_launch(&self, kernel: u32) {
        self.kernel.store(kernel, Ordering::Relaxed);
    }

    /// A thread did `items` work items that threads share.
    pub(crate) fn shared(&self, thread: usize, begin: Instant, items: u32) {
        let kernel = self.kernel.load(Ordering::Relaxed);
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        let what = Span::Share { kernel, items };
        self.timed(what, thread as u32, self.at(begin), nanoseconds);
    }

    /// Forgets what was run, but not how it was started: a run begins anew.
    pub(crate) fn clear(&self) {
        let mut events = self.events();
        events.kept.clear();
        events.left_out = 0;
    }

    /// Events that there was no room for.
    pub fn left_out(&self) -> u64 {
        self.events().left_out
    }

    /// Nanoseconds since the beginning.
    pub(crate) fn at(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.zero).as_nanos() as u64
    }

    fn keep(&self, event: Event) {
        let mut events = self.events();
        match events.kept.len() < MOST_EVENTS {
            true => events.kept.push(event),
            false => events.left_out += 1,
        }
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        locked(&self.events)
    }
}
